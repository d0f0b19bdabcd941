const methods = "GET, HEAD, POST, PATCH, DELETE";
const requestHeaders =
  "Authorization, Content-Type, Accept, Idempotency-Key, If-None-Match, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name";
const responseHeaders = "ETag, Retry-After, WWW-Authenticate, X-Request-Id, X-Total-Count";

/** Access of pages on other origins to the API, with an API key. Cookies are never allowed. */
export function createCors(origins: readonly string[]) {
  const allowedOf = ({ headers }: Request): string | null => {
    const origin = headers.get("origin");
    return origin !== null && origins.includes(origin) ? origin : null;
  };

  return {
    /** The response to a CORS preflight request from an allowed origin; null for any other request. */
    preflight(request: Request): Response | null {
      const origin = allowedOf(request);
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
    },

    /** Lets a page on an allowed origin read the response. */
    allow(request: Request, response: Response): void {
      if (origins.length === 0) return;
      response.headers.append("vary", "Origin");
      const origin = allowedOf(request);
      if (origin === null) return;
      response.headers.set("access-control-allow-origin", origin);
      response.headers.set("access-control-expose-headers", responseHeaders);
    },
  };
}
