import { databaseLocked, toAppError, unknownUrl } from "./app-error.ts";
import { maxSiteBytes } from "./archives/archive-check.ts";
import { untilUnlocked } from "./db/write-lock.ts";
import { AppError, errorStatus, unavailable } from "./errors.ts";
import { reportPaths } from "./field/routes.ts";
import { refuseLargeBody } from "./http/body.ts";
import {
  type Authenticate,
  findRequestState,
  identifyCaller,
  isReporter,
  trackRequest,
  usesCompatibilityMode,
} from "./http/caller.ts";
import { type Reply, sentMethod } from "./http/elysia.ts";
import { isCompressible, pathBelow, pathOf, securityHeaders } from "./http/responses.ts";
import { openApiPath } from "./http/system-routes.ts";
import { mcpPath } from "./mcp/routes.ts";
import { refuseMethod } from "./mcp/tool.ts";
import { decodePercent } from "./net/percent.ts";
import type { Service } from "./service.ts";
import { countResponse } from "./telemetry/metrics.ts";
import { exchangePath } from "./trusts/routes.ts";
import { wantsHtml } from "./web/responses.ts";

/**
 * Admits a request before it is routed: gives it an ID, identifies the caller of the API, and refuses what no route could handle. For an MCP request
 * with another method than POST, it returns a response in MCP's own format. Throws `AppError`.
 */
export function admitRequest({ ctx }: Service, request: Request, reply: Reply, authenticate: Authenticate) {
  reply.headers["x-request-id"] = trackRequest(request).id;
  const fullPath = pathOf(request);
  const path = pathBelow(fullPath, ctx.config.basePath);
  const isApi = path.startsWith("/api/");
  reply.headers["x-content-type-options"] = "nosniff";
  if (isCompressible(request, path)) reply.headers.vary = "Accept-Encoding";
  if (isApi) reply.headers["cache-control"] = "private, no-store";
  if (!isRead(request) && timedOut.has(request)) throw databaseLocked();
  if (isApi && ctx.disk.findProblem() !== null) throw unavailable("The disk failed. The service is restarting.");
  if (isApi && !isOpen(request, path)) {
    const caller = identifyCaller(request, authenticate);
    if (isReporter(caller) && !isReport(request, path)) throw onlyReports();
  }
  // If a parameter can't be decoded, the router would pass null to the route.
  if (decodePercent(fullPath) === null) throw unknownUrl();
  if (!isApi) return undefined;
  refuseLargeBody(request, isUpload(request, path) ? maxSiteBytes : undefined);
  return request.method !== "POST" && isMcp(path) ? refuseMethod() : undefined;
}

/** Turns an error into the AppError to respond with. Logs it if it was not expected. `code`: Elysia's error code. */
export function noteError({ ctx }: Service, request: Request, error: unknown, code: unknown): AppError {
  const failure = toAppError(error, ctx.disk.onError(error), code);
  if (failure.code === "internal") ctx.log.error({ req: findRequestState(request)?.id, err: error }, "request failed");
  return failure;
}

/** Responds to a failure with a page for a browser, or else with the error body of the API. */
export async function respondToError({ ctx }: Service, request: Request, reply: Reply, failure: AppError) {
  if (wantsHtml(request) && !pathBelow(pathOf(request), ctx.config.basePath).startsWith("/api/")) {
    const { showError } = await import("./web/page-requests.tsx");
    return await showError(ctx, request, failure);
  }
  if (failure.code === "unauthorized") reply.headers["www-authenticate"] = "Bearer";
  if (failure.retryAfterSeconds !== undefined) reply.headers["retry-after"] = String(failure.retryAfterSeconds);
  const error = usesCompatibilityMode(request) ? `${failure.code}: ${failure.detail}` : failure.code;
  return { error, detail: failure.detail };
}

/**
 * Counts a response and logs it. Reads that succeed or find nothing are logged at debug, everything else at info. MCP tools log their changes
 * themselves. `route`: the path with the names of parameters.
 */
export function recordResponse(
  { ctx, telemetry }: Service,
  request: Request,
  path: string,
  route: string,
  status: number,
): void {
  const state = findRequestState(request);
  const ms = state ? performance.now() - state.startedAt : 0;
  const method = sentMethod(request);
  const { metrics } = telemetry;
  if (metrics) countResponse(metrics, method, route.slice(ctx.config.basePath.length), status, ms);
  const isQuiet = (isRead(request) || isMcp(pathBelow(path, ctx.config.basePath))) && (status < 400 || status === 404);
  const level = isQuiet ? "debug" : "info";
  if (!ctx.log.isLevelEnabled(level)) return;
  ctx.log[level](
    { req: state?.id, method, path: withoutToken(path), status, ms: Math.round(ms), key: state?.caller?.keyId },
    "request",
  );
}

/** Write requests that timed out waiting for another process. `admitRequest` refuses them, because only its errors become responses. */
const timedOut = new WeakSet<Request>();

/**
 * Waits until no other process is writing, because the write of a request would block this thread. MCP tools and the commit of new runs
 * wait themselves.
 */
export async function whenUnlocked(
  { ctx }: Service,
  request: Request,
  next: (request: Request) => Response | Promise<Response>,
): Promise<Response> {
  if (!(await untilUnlocked(ctx.db))) timedOut.add(request);
  return next(request);
}

/**
 * Refuses a request because too many other requests of its tenant are waiting. `error` says so. Rethrows any other error. The body of the request is
 * not read.
 */
export function refuseWaiting(service: Service, request: Request, path: string, error: unknown): Response {
  if (!(error instanceof AppError)) throw error;
  const { id } = trackRequest(request);
  const status = errorStatus[error.code];
  recordResponse(service, request, path, "", status);
  const headers = {
    ...securityHeaders,
    "cache-control": "private, no-store",
    "x-request-id": id,
    "retry-after": String(error.retryAfterSeconds),
  };
  return Response.json({ error: error.code, detail: error.detail }, { status, headers });
}

/** The path of a request for runs, such as `/api/v1/prompts/ID/run`. */
const runRequestPath = /\/v1\/prompts\/[^/]+\/run\/?$/;

/** Whether a request has to wait for the database first. `path`: without the base path. */
export const mayWrite = (request: Request, path: string): boolean =>
  !isRead(request) && !isMcp(path) && !runRequestPath.test(path);

const isRead = ({ method }: Request): boolean => method === "GET";

/** Whether a path needs no API key: the description of the API, or the exchange of an ID token, where the token is the credential. */
const isOpen = ({ method }: Request, path: string): boolean =>
  (method === "GET" && path === openApiPath) || (method === "POST" && path === exchangePath);

/** The router ignores a trailing slash. */
const isMcp = (path: string): boolean => path === mcpPath || path === `${mcpPath}/`;

/** The only requests that a key for reporting friction can make. */
const isReport = (request: Request, path: string): boolean =>
  isMcp(path) || (request.method === "POST" && reportPaths.includes(path.replace(/\/$/, "")));

const onlyReports = () =>
  new AppError(
    "forbidden",
    "This API key can only report friction: POST /api/v1/field-friction or /api/v1/field-sessions, or MCP.",
  );

const isUpload = ({ method }: Request, path: string): boolean => method === "POST" && path.endsWith("/v1/archives");

/** A path with a secret token at its end, such as `/shared/TOKEN`. */
const tokenPath = /(\/(?:setup|invite|reset|shared|results|badges|account\/email)\/)[^/]+/;

/** The path to log, without the secret token. */
const withoutToken = (path: string): string => (decodePercent(path) ?? path).replace(tokenPath, "$1[redacted]");
