import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Config } from "../config/config.ts";
import { allowOrigin, preflight } from "./cors.ts";
import { openApiJsonPath, openApiPath } from "./system-routes.ts";

/** Headers of every page and stream. They forbid content from other hosts, framing, and guessing of types. */
export const securityHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
};

const gzipInThread = promisify(gzip);
/** Smaller responses fit into one packet even uncompressed. */
const minBytes = 1400;

/** The items of a header such as Accept, in lower case, with their weights from 0 to 1 (RFC 9110, section 12.4.2). */
export function weightsOf(header: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const item of header.toLowerCase().split(",")) {
    const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
    const weight = Number(parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? 1);
    weights.set(name, Number.isFinite(weight) ? weight : 0);
  }
  return weights;
}

/** Whether a client prefers gzip to an uncompressed response (RFC 9110, section 12.5.3). */
export function acceptsGzip({ headers }: Request): boolean {
  const accepted = headers.get("accept-encoding");
  if (accepted === null) return false;
  const weights = weightsOf(accepted);
  const gzipWeight = weights.get("gzip") ?? weights.get("*") ?? 0;
  return gzipWeight > 0 && gzipWeight >= (weights.get("identity") ?? 0);
}

/** A weak ETag of a text. */
export const etagOf = (text: string): string => `W/"${Bun.hash(text).toString(36)}"`;

/** Whether the client already has the version with this ETag. */
export function hasVersion({ headers }: Request, etag: string): boolean {
  const tags = headers.get("if-none-match")?.split(",") ?? [];
  return tags.map((tag) => tag.trim()).some((tag) => tag === "*" || tag === etag || `W/${tag}` === etag);
}

const reportsPath = "/api/v1/reports/";

/** Whether JSON responses at a path have an ETag. The path has no base path. */
export const hasEtag = (path: string): boolean =>
  path === openApiJsonPath || path === openApiPath || path.startsWith(reportsPath);

/** The path of a request's URL, as the router reads it. The path begins after `http://` and a host of at least 4 characters. */
export function pathOf({ url }: Request): string {
  const start = url.indexOf("/", 11);
  const end = url.indexOf("?", start);
  return end < 0 ? url.slice(start) : url.slice(start, end);
}

/** A path without the base path; empty for a path outside the base path. */
export const pathBelow = (path: string, basePath: string): string =>
  path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : "";

/** Whether a path belongs to the API or to its OpenAPI document. The path has no base path. */
const isOfApi = (path: string): boolean => path === openApiJsonPath || path.startsWith("/api/");

/** Whether responses at a path depend on Accept-Encoding. The path has no base path. */
export const isCompressible = ({ method }: Request, path: string): boolean => method === "GET" && isOfApi(path);

/**
 * Adds CORS headers and compression to responses of the API and openapi.json. Adds an ETag to reports and openapi.json. Doesn't change responses to
 * other requests.
 */
export function answerRequest(
  { corsOrigins, basePath }: Config,
  request: Request,
  next: (request: Request) => Response | Promise<Response>,
): Response | Promise<Response> {
  const path = pathBelow(pathOf(request), basePath);
  if (!isOfApi(path)) return next(request);
  const mayCompress = isCompressible(request, path) && acceptsGzip(request);
  const mayTag = request.method === "GET" && hasEtag(path);
  if (corsOrigins.length === 0 && !mayCompress && !mayTag) return next(request);
  const deliverNext = async () => {
    const response = await next(request);
    allowOrigin(corsOrigins, request, response);
    if (path === openApiJsonPath) response.headers.set("cache-control", "public, max-age=300, must-revalidate");
    return compress(request, response, { mayCompress, mayTag });
  };
  return preflight(corsOrigins, request) ?? deliverNext();
}

/**
 * With `mayCompress`, compresses a large JSON response in a separate thread. With `mayTag`, adds an ETag, and returns 304 if the client already has
 * this version.
 */
async function compress(
  request: Request,
  response: Response,
  { mayCompress, mayTag }: { mayCompress: boolean; mayTag: boolean },
): Promise<Response> {
  const { headers, status } = response;
  if (!headers.get("content-type")?.startsWith("application/json")) return response;
  const getsGzip = mayCompress && !headers.has("content-encoding");
  const getsEtag = mayTag && status === 200;
  if (!getsGzip && !getsEtag) return response;
  const text = await response.text();
  if (getsEtag) {
    const etag = etagOf(text);
    headers.set("etag", etag);
    if (hasVersion(request, etag)) {
      headers.delete("content-type");
      return new Response(null, { status: 304, headers });
    }
  }
  if (!getsGzip || text.length < minBytes) return new Response(text, { status, headers });
  headers.set("content-encoding", "gzip");
  headers.delete("content-length");
  return new Response(await gzipInThread(text), { status, headers });
}
