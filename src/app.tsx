import { toOpenAPISchema } from "@elysiajs/openapi";
import { type AnyElysia, Elysia } from "elysia";
import { locked, toAppError, unknownUrl } from "./app-error.ts";
import { maxArchiveBytes } from "./archives/archive-check.ts";
import { archiveRoutes } from "./archives/routes.ts";
import { noteClient, type Peer } from "./auth/address.ts";
import { authenticate, checkOwner, withClearPath } from "./auth/gate.ts";
import { whoamiRoutes } from "./auth/routes.ts";
import { comparisonRoutes } from "./comparisons/routes.ts";
import type { Db } from "./db/open.ts";
import { untilUnlocked } from "./db/write-lock.ts";
import { AppError, errorStatus, unavailable } from "./errors.ts";
import { exchangeRoutes } from "./exchange/routes.ts";
import { fieldPath, fieldRoutes } from "./field/routes.ts";
import { frictionRoutes } from "./friction/routes.ts";
import { gateRoutes } from "./gates/routes.ts";
import { closeUnread, refuseLargeBody } from "./http/body.ts";
import {
  type Authenticate,
  findRequestState,
  identifyCaller,
  isCompatible,
  isReporter,
  trackRequest,
} from "./http/caller.ts";
import { createDelivery, isCompressible, pathOf } from "./http/delivery.ts";
import { healthRoutes } from "./http/health.ts";
import { toOpenApi } from "./http/openapi.ts";
import { openApiPath, openApiRoutes } from "./http/openapi-routes.ts";
import { readQueryNumbers } from "./http/paging.ts";
import type { Surface } from "./mcp/endpoint.ts";
import { mcpPath, mcpRoutes } from "./mcp/routes.ts";
import { refuseMethod } from "./mcp/tool.ts";
import { createMcpEndpoints } from "./mcp-endpoints.ts";
import { notificationRoutes } from "./notifications/routes.ts";
import { promptRoutes } from "./prompts/routes.ts";
import { providerRoutes } from "./providers/routes.ts";
import { regradeRoutes } from "./regrades/routes.ts";
import { reportRoutes } from "./reports/routes.ts";
import { runRoutes } from "./runs/routes.ts";
import type { Service } from "./service.ts";
import { shareRoutes } from "./shares/routes.ts";
import { trendRoutes } from "./trends/routes.ts";
import { exchangePath, trustRoutes } from "./trusts/routes.ts";
import type { OpenApiDocument } from "./web/pages/reference.tsx";
import { findErrorPage, pageRoutes } from "./web/routes.tsx";
import { workerRoutes } from "./workers/routes.ts";

type AppOptions = {
  /** What is available over MCP, in place of everything. */
  surface?: Surface;
  /** Finds the caller of a request to the API, in place of its API key. */
  authenticate?: Authenticate;
};

/** The HTTP side of a service: gate, errors, API, MCP, pages. Every request enters through `handle`. */
export function createApp(service: Service, { surface, ...options }: AppOptions = {}) {
  const { ctx } = service;
  const findCaller = options.authenticate ?? ((request) => authenticate(ctx, request));
  const { basePath } = ctx.config;
  const apiPrefix = `${basePath}/api/`;

  /** Needs no API key: the description of the API, and the exchange of an ID token, which is the credential. */
  const isOpen = ({ method }: Request, path: string) =>
    (method === "GET" && path === basePath + openApiPath) || (method === "POST" && path === basePath + exchangePath);
  const mcp = basePath + mcpPath;
  /** The router ignores a trailing slash. */
  const isMcp = (path: string) => path === mcp || path === `${mcp}/`;
  /** All that a key for reporting friction can be used for. */
  const isReport = (request: Request, path: string) =>
    isMcp(path) || (request.method === "POST" && path.replace(/\/$/, "") === basePath + fieldPath);

  /** Counts a response, and logs it: reads that succeed or find nothing at debug, everything else at info; MCP tools log their changes themselves. Not in onAfterResponse, which alone costs a fifth of a read. */
  function noteResponse(request: Request, path: string, route: string, status: unknown): void {
    const seen = findRequestState(request);
    const ms = seen ? performance.now() - seen.startedAt : 0;
    const method = methodOf(request);
    service.telemetry.metrics?.countResponse(method, route.slice(basePath.length), Number(status), ms);
    const isPlain = Number(status) < 400 || Number(status) === 404;
    const level = (isRead(request) || isMcp(path)) && isPlain ? "debug" : "info";
    if (!ctx.log.isLevelEnabled(level)) return;
    ctx.log[level](
      {
        req: seen?.id,
        method,
        path: withoutToken(path),
        status,
        ms: Math.round(ms),
        key: seen?.caller?.keyId,
      },
      "request",
    );
  }

  const endpointOf = createMcpEndpoints(service, surface);

  const apiRoutes = () =>
    new Elysia().use(featureRoutes(service)).use(mcpRoutes(endpointOf)).use(openApiRoutes(openApi));
  let document: OpenApiDocument | undefined;
  function openApi(): OpenApiDocument {
    // Applies to routes without the base path. In the OpenAPI document, the base path is part of the server URL.
    document ??= toOpenApi(
      toOpenAPISchema(apiRoutes() as AnyElysia, { staticFile: false }),
      ctx.baseUrl(),
    ) as OpenApiDocument;
    return document;
  }

  const app = new Elysia({ prefix: basePath, normalize: true })
    .onRequest(({ request, set }) => {
      set.headers["x-request-id"] = trackRequest(request).id;
      const path = pathOf(request);
      if (isCompressible(request, path.slice(basePath.length))) set.headers.vary = "Accept-Encoding";
      const api = path.startsWith(apiPrefix);
      checkStorage(service, request, api);
      if (api) set.headers["cache-control"] = "private, no-store";
      if (api && !isOpen(request, path)) {
        const caller = identifyCaller(request, findCaller);
        if (isReporter(caller) && !isReport(request, path)) throw onlyReports();
      }
      checkEncoding(path);
      if (!api) return;
      refuseLargeBody(request, isUpload(request, path) ? maxArchiveBytes : undefined);
      // Elysia waits for a hook whose source returns a call, which delays each request.
      const refusal = request.method !== "POST" && isMcp(path) ? refuseMethod() : undefined;
      if (refusal) return refusal;
    })
    .onTransform(({ request, query }) => {
      readQueryNumbers(query, request.url);
    })
    .onError(async ({ error, code, request, path, route = "", set }) => {
      const answer = toAppError(error, service.onError(error), code);
      if (answer.code === "internal")
        ctx.log.error({ req: findRequestState(request)?.id, err: error }, "request failed");
      set.status = errorStatus[answer.code];
      noteResponse(request, path, route, set.status);
      const page = await findErrorPage(service, request, answer);
      if (page) return page;
      if (answer.code === "unauthorized") set.headers["www-authenticate"] = "Bearer";
      if (answer.retryAfterSeconds !== undefined) set.headers["retry-after"] = String(answer.retryAfterSeconds);
      const readable = isCompatible(request) ? `${answer.code}: ${answer.detail}` : answer.code;
      return { error: readable, detail: answer.detail };
    })
    .onAfterHandle(({ request, path, route, responseValue, set }) => {
      noteResponse(request, path, route, statusOf(responseValue, set));
      if (responseValue instanceof Response) moveHeaders(set, responseValue);
    })
    .use(healthRoutes(service.findProblem))
    .use(apiRoutes())
    .use(pageRoutes(service, openApi));

  const deliver = createDelivery(ctx.config);

  function handle(incoming: Request, peer: Peer = () => undefined): Response | Promise<Response> {
    const clear = withClearPath(incoming);
    const request = clear.method === "HEAD" ? toGet(clear) : clear;
    const path = pathOf(request);
    if (!path.startsWith(apiPrefix)) noteClient(request, peer, ctx.config.trustsProxy);
    const waits = !isRead(request) && !isMcp(path) && !startsRuns(path);
    const answer = deliver(request, (each) => (waits ? whenUnlocked(ctx.db, each, app.fetch) : app.fetch(each)));
    return request.headers.has("transfer-encoding") ? closeUnread(request, answer) : answer;
  }
  return { handle, routes: app.routes };
}

const onlyReports = () =>
  new AppError("forbidden", "This API key can only report friction: POST /api/v1/field-friction, or MCP.");

const head = Symbol("head");
type Tracked = Request & { [head]?: true };

/** A request for the headers of a page, as one for the page: Bun's server sends no body for it, and ends streams. */
const toGet = (request: Request): Request => Object.assign(new Request(request, { method: "GET" }), { [head]: true });

/** The method as sent. */
const methodOf = (request: Request): string => ((request as Tracked)[head] ? "HEAD" : request.method);

const isUpload = ({ method }: Request, path: string): boolean => method === "POST" && path.endsWith("/v1/archives");

/** A page is a Response already, with its own status. */
const statusOf = (answer: unknown, { status = 200 }: { status?: unknown }) =>
  answer instanceof Response ? answer.status : status;

/** Gives a response the headers that it lacks. Elysia would copy the response and turn its body into a stream, which takes longer than most requests. */
function moveHeaders(set: { headers: Record<string, unknown>; status?: unknown }, { headers }: Response): void {
  if ((set.status ?? 200) !== 200) return;
  for (const [name, value] of Object.entries(set.headers)) if (!headers.has(name)) headers.set(name, String(value));
  set.headers = {};
}

/** The API of the features. */
function featureRoutes(service: Service) {
  const { ctx } = service;
  const ownerFor = (what: string) => (request: Request) => checkOwner(ctx, request, what);
  return new Elysia({ name: "features" })
    .use(whoamiRoutes(ctx))
    .use(promptRoutes(service))
    .use(providerRoutes(ctx))
    .use(archiveRoutes(ctx))
    .use(runRoutes(ctx, service))
    .use(reportRoutes(ctx))
    .use(shareRoutes(service.shares, ownerFor("share reports")))
    .use(comparisonRoutes(ctx))
    .use(frictionRoutes(service))
    .use(fieldRoutes(service))
    .use(trendRoutes(ctx))
    .use(gateRoutes(service.gates))
    .use(exchangeRoutes(ctx))
    .use(notificationRoutes(ctx))
    .use(trustRoutes(ctx))
    .use(workerRoutes(service.workers, ownerFor("manage workers")))
    .use(regradeRoutes(service));
}

const isRead = ({ method }: Request): boolean => method === "GET";

/** Writes that waited for another process in vain. */
const lockedOut = new WeakSet<Request>();

/** Whether a write at this path starts runs of a prompt. */
const startsRuns = (path: string): boolean => /\/v1\/prompts\/[^/]+\/run\/?$/.test(path);

/**
 * Waits for another process that is writing, because the write of a request would block this thread. MCP tools wait themselves,
 * and the commit of new runs does.
 */
async function whenUnlocked(db: Db, request: Request, work: (request: Request) => Response | Promise<Response>) {
  if (!(await untilUnlocked(db))) lockedOut.add(request);
  return work(request);
}

/** Throws not_found for a path that can't be decoded. The router would pass null to the route in place of the parameter. */
function checkEncoding(path: string): void {
  if (decoded(path) === null) throw unknownUrl();
}

function decoded(path: string): string | null {
  if (!path.includes("%")) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

/** Throws unavailable for a request that can't be answered or stored at this moment. */
function checkStorage(service: Service, request: Request, isApi: boolean): void {
  if (!isRead(request) && lockedOut.has(request)) throw locked();
  if (isApi && service.isBroken()) throw unavailable("The disk failed. The service is restarting.");
}

/** A path for the log: in those of links, the token is a secret. */
const withoutToken = (path: string): string =>
  (decoded(path) ?? path).replace(/(\/(?:setup|invite|reset|shared|results)\/)[^/]+/, "$1[redacted]");
