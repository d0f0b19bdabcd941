import { type AppError, errorStatus } from "../errors.ts";
import { acceptsGzip, etagOf, hasVersion, securityHeaders, weightsOf } from "../http/responses.ts";

const contentTypes = {
  html: "text/html; charset=utf-8",
  markdown: "text/markdown; charset=utf-8",
  text: "text/plain; charset=utf-8",
  json: "application/json",
  csv: "text/csv; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  xml: "application/xml; charset=utf-8",
  svg: "image/svg+xml",
};

type ContentKind = keyof typeof contentTypes;

/** A private response that must not be cached. */
export const privateResponse = (
  kind: ContentKind,
  body: string,
  status = 200,
  headers: Record<string, string> = {},
): Response =>
  new Response(body, {
    status,
    headers: {
      ...securityHeaders,
      "content-type": contentTypes[kind],
      "cache-control": "private, no-store",
      ...headers,
    },
  });

/** A file to download. The name gets the kind as its extension. */
export const toDownload = (kind: "json" | "csv", body: string, name: string): Response =>
  privateResponse(kind, body, 200, { "content-disposition": `attachment; filename="${name}.${kind}"` });

/** A value as a JSON file to download. */
export const toJsonDownload = (value: unknown, name: string): Response =>
  toDownload("json", `${JSON.stringify(value, null, 2)}\n`, name);

/** A public response that can be cached. It is a 304 if the ETag matches. */
export function publicResponse(
  request: Request,
  kind: ContentKind,
  body: string,
  headers: Record<string, string> = {},
): Response {
  const etag = etagOf(body);
  const allHeaders = {
    ...securityHeaders,
    "content-type": contentTypes[kind],
    "cache-control": "public, max-age=300, must-revalidate",
    etag,
    ...headers,
  };
  const isNew = !hasVersion(request, etag);
  return compress(
    request,
    isNew ? new Response(body, { headers: allHeaders }) : new Response(null, { status: 304, headers: allHeaders }),
  );
}

export const varyAccept = { vary: "Accept" };

/** A stylesheet or a script. URLs with a digest are cached forever. */
export const assetResponse = (request: Request, kind: "css" | "js", body: string): Response =>
  compress(
    request,
    new Response(body, {
      headers: {
        ...securityHeaders,
        "content-type": contentTypes[kind],
        "cache-control": new URL(request.url).search ? "public, max-age=31536000, immutable" : "public, max-age=300",
      },
    }),
  );

/** A font. It isn't compressed, because the file already is. */
export const fontResponse = (body: Uint8Array<ArrayBuffer>): Response =>
  new Response(body, {
    headers: {
      ...securityHeaders,
      "content-type": "font/woff2",
      "cache-control": "public, max-age=31536000, immutable",
    },
  });

const eventStreamType = /^text\/event-stream/;

/**
 * Compresses a response with gzip if the client accepts it. Event streams are not compressed. Responses to forms aren't either, because they may show
 * new keys and links. If such a secret is compressed together with text that somebody else chose, the size reveals the secret.
 */
export function compress(request: Request, response: Response): Response {
  const { headers, body, status } = response;
  // A 304 needs the same vary header as the response that it replaces.
  const isEmpty = body === null && status !== 304;
  const isEncoded = headers.has("content-encoding");
  const isEventStream = eventStreamType.test(headers.get("content-type") ?? "");
  if (request.method === "POST" || isEmpty || isEncoded || isEventStream) return response;
  const compressedHeaders = new Headers(headers);
  compressedHeaders.append("vary", "Accept-Encoding");
  if (body === null || !acceptsGzip(request)) return new Response(body, { status, headers: compressedHeaders });
  compressedHeaders.set("content-encoding", "gzip");
  return new Response(body.pipeThrough(new CompressionStream("gzip")), { status, headers: compressedHeaders });
}

/** Whether the Accept header prefers text/markdown over text/html. */
export function prefersMarkdown(request: Request): boolean {
  const weights = weightsOf(request.headers.get("accept") ?? "");
  const markdown = weights.get("text/markdown") ?? 0;
  return markdown > 0 && markdown >= (weights.get("text/html") ?? 0);
}

/** Whether a request accepts HTML, as requests from browsers do. */
export const wantsHtml = (request: Request): boolean => /\btext\/html\b/i.test(request.headers.get("accept") ?? "");

/** The HTTP status of an error. */
export const statusOf = (error: AppError): number => errorStatus[error.code];
