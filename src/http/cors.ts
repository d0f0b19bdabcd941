const methods = "GET, HEAD, POST, PATCH, DELETE";
const requestHeaders =
  "Authorization, Content-Type, Accept, Idempotency-Key, If-None-Match, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name";
const responseHeaders = "ETag, Retry-After, WWW-Authenticate, X-Request-Id, X-Total-Count";

/** The origin of a request, if its pages may use the API with an API key; else null. Cookies are never allowed. */
function allowedOrigin(origins: readonly string[], { headers }: Request): string | null {
  const origin = headers.get("origin");
  return origin !== null && origins.includes(origin) ? origin : null;
}

/** The response to a CORS preflight request from an allowed origin; null for any other request. */
export function preflight(origins: readonly string[], request: Request): Response | null {
  const origin = allowedOrigin(origins, request);
  if (origin === null || request.method !== "OPTIONS" || !request.headers.has("access-control-request-method"))
    return null;
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": methods,
      "access-control-allow-headers": requestHeaders,
      "access-control-max-age": "600",
      vary: "Origin",
    },
  });
}

/** Lets a page on an allowed origin read the response. */
export function allowOrigin(origins: readonly string[], request: Request, response: Response): void {
  if (origins.length === 0) return;
  response.headers.append("vary", "Origin");
  const origin = allowedOrigin(origins, request);
  if (origin === null) return;
  response.headers.set("access-control-allow-origin", origin);
  response.headers.set("access-control-expose-headers", responseHeaders);
}
