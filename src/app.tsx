import { toOpenAPISchema } from "@elysiajs/openapi";
import { Type } from "@sinclair/typebox";
import type { ValueError } from "@sinclair/typebox/errors";
import { type AnyElysia, Elysia } from "elysia";
import { maxArchiveBytes } from "./archives/archive-check.ts";
import { archiveRoutes } from "./archives/routes.ts";
import { noteClient, type Peer } from "./auth/address.ts";
import { type Caller, callerOf, checkScope, withClearPath } from "./auth/gate.ts";
import { comparisonRoutes } from "./comparisons/routes.ts";
import { comparisonTools } from "./comparisons/tools.ts";
import { type DiskFault, isBusy } from "./db/fault.ts";
import { AppError, badRequest, errorStatus, notFound, unavailable } from "./errors.ts";
import { exchangeRoutes } from "./exchange/routes.ts";
import { frictionRoutes } from "./friction/routes.ts";
import { gateRoutes } from "./gates/routes.ts";
import { closeUnread, refuseLargeBody } from "./http/body.ts";
import { toOpenApi } from "./http/openapi.ts";
import { errors, type OrgOf, operation, scopes } from "./http/operation.ts";
import { readQueryNumbers } from "./http/paging.ts";
import type { Endpoint, Surface } from "./mcp/endpoint.ts";
import { mcpPath, mcpRoutes } from "./mcp/routes.ts";
import type { toSurface } from "./mcp/surface.ts";
import { refuseMethod, type Tool } from "./mcp/tool.ts";
import { promptRoutes } from "./prompts/routes.ts";
import { promptTools } from "./prompts/tools.ts";
import { providerRoutes } from "./providers/routes.ts";
import { regradeRoutes } from "./regrades/routes.ts";
import { reportResources } from "./reports/resources.ts";
import { reportRoutes } from "./reports/routes.ts";
import { reportTools } from "./reports/tools.ts";
import { workPrompts } from "./reports/work-prompts.ts";
import { runRoutes } from "./runs/routes.ts";
import { runTools } from "./runs/tools.ts";
import { invalidInput, Nullable, OneOf } from "./schema.ts";
import type { Service } from "./service.ts";
import { shareRoutes } from "./shares/routes.ts";
import { trendRoutes } from "./trends/routes.ts";
import { trendTools } from "./trends/tools.ts";
import type { OpenApiDocument } from "./web/pages/reference.tsx";
import { findErrorPage, pageRoutes } from "./web/routes.tsx";

/** The HTTP side of a service: gate, errors, API, MCP, pages. Every request enters through `handle`. */
export function createApp(service: Service, surface?: Surface) {
  const { deps, keys } = service;
  const { basePath } = deps.config;
  const callers = new WeakMap<Request, Caller>();
  const pending = new WeakMap<Request, { id: string; at: number }>();
  const apiPrefix = `${basePath}/api/`;

  const isUpload = ({ method, url }: Request) => method === "POST" && new URL(url).pathname.endsWith("/v1/archives");
  /** The same path as the router's. */
  const isApi = ({ url }: Request) => url.startsWith(apiPrefix, url.indexOf("/", 11));
  const callerOfApi = (request: Request) => {
    const caller = callers.get(request);
    if (!caller) throw new Error("a route under /api/ was reached without authentication");
    return caller;
  };
  /** The router ignores a trailing slash. */
  const isMcp = (path: string) => path.replace(/\/$/, "") === basePath + mcpPath;
  const orgOf: OrgOf = (request, scope = request.method === "GET" ? "read" : "write") => {
    const caller = callerOfApi(request);
    checkScope(caller, scope);
    return caller.org;
  };

  /** For streams, which may outlive a key. */
  function mayStillRead(request: Request): boolean {
    try {
      callerOf(request, keys);
      return true;
    } catch {
      return false;
    }
  }

  const nameOf = (request: Request) => `the API key ${JSON.stringify(callers.get(request)?.name ?? "")}`;

  /** Logs successful reads at debug, everything else at info; MCP tools log their changes themselves. Not in onAfterResponse, which alone costs a fifth of a read. */
  function logRequest(request: Request, path: string, status: unknown): void {
    const isRead = request.method === "GET" || request.method === "HEAD" || isMcp(path);
    const level = isRead && Number(status) < 400 ? "debug" : "info";
    if (!deps.log.isLevelEnabled(level)) return;
    const seen = pending.get(request);
    const ms = seen ? Math.round(performance.now() - seen.at) : null;
    deps.log[level](
      { req: seen?.id, method: request.method, path: withoutToken(path), status, ms, key: callers.get(request)?.keyId },
      "request",
    );
  }

  /** Loaded lazily: the SDKs take longer to load than everything else together, and many services never use MCP. */
  async function loadEndpoint(): Promise<Endpoint> {
    const [{ createEndpoint }, { toSurface }] = await Promise.all([
      import("./mcp/endpoint.ts"),
      import("./mcp/surface.ts"),
    ]);
    return createEndpoint(surface ?? toSurface(offerOf(service)), {
      ownUrl: deps.baseUrl,
      onError: (error) => deps.log.debug({ err: error }, "MCP request rejected"),
    });
  }
  let endpoint: Promise<Endpoint> | undefined;

  const toRoutes = () =>
    new Elysia()
      .use(systemRoutes(service))
      .use(promptRoutes(service.prompts, orgOf))
      .use(providerRoutes(service.providers, orgOf))
      .use(archiveRoutes(service.archives, orgOf))
      .use(runRoutes({ ...service, baseUrl: deps.baseUrl, nameOf, mayStillRead }, orgOf))
      .use(reportRoutes(service, deps, orgOf))
      .use(shareRoutes(service.shares, orgOf))
      .use(comparisonRoutes(service.compare, orgOf))
      .use(frictionRoutes({ ...service, nameOf }, orgOf))
      .use(trendRoutes(deps, orgOf))
      .use(gateRoutes(service.gates, orgOf))
      .use(exchangeRoutes(service, orgOf))
      .use(regradeRoutes({ ...service, nameOf }, orgOf))
      .get("/api/v1/whoami", ({ request }) => whoami(service, callers.get(request)), {
        ...operation("System", "whoami", "Get the organization and API key of the request", {
          200: Whoami,
          ...errors(),
        }),
      })
      .use(mcpRoutes(() => (endpoint ??= loadEndpoint()), callerOfApi))
      .use(pageRoutes(service, openApi))
      .get("/openapi.json", openApi, {
        ...operation("System", "openapi", "Get the OpenAPI document", { 200: OpenApi }, { security: [] }),
      });
  let document: OpenApiDocument | undefined;
  function openApi(): OpenApiDocument {
    // Applies to routes without the base path. In the OpenAPI document, the base path is part of the server URL.
    document ??= toOpenApi(
      toOpenAPISchema(toRoutes() as AnyElysia, { staticFile: false }),
      deps.baseUrl(),
    ) as OpenApiDocument;
    return document;
  }

  const app = new Elysia({ prefix: basePath, normalize: true })
    .onRequest(({ request, set }) => {
      const id = crypto.randomUUID();
      pending.set(request, { id, at: performance.now() });
      set.headers["x-request-id"] = id;
      if (!isApi(request)) return;
      if (service.isBroken()) throw unavailable("The disk failed. The service is restarting.");
      callers.set(request, callerOf(request, keys));
      refuseLargeBody(request, isUpload(request) ? maxArchiveBytes : undefined);
      if (request.method !== "POST" && isMcp(new URL(request.url).pathname)) return refuseMethod();
    })
    .onTransform(({ request, query }) => {
      readQueryNumbers(query, request.url);
    })
    .onError(async ({ error, code, request, path, set }) => {
      const answer = toAppError(error, service.onError(error), code);
      if (answer.code === "internal") deps.log.error({ req: pending.get(request)?.id, err: error }, "request failed");
      set.status = errorStatus[answer.code];
      logRequest(request, path, set.status);
      const page = await findErrorPage(service, request, answer);
      if (page) return page;
      if (answer.code === "unauthorized") set.headers["www-authenticate"] = "Bearer";
      if (answer.retryAfterSeconds !== undefined) set.headers["retry-after"] = String(answer.retryAfterSeconds);
      return { error: answer.code, detail: answer.detail };
    })
    .onAfterHandle(({ request, path, responseValue, set }) => {
      // A page is a Response already, with its own status.
      logRequest(request, path, responseValue instanceof Response ? responseValue.status : (set.status ?? 200));
    })
    .use(toRoutes());

  function handle(incoming: Request, peer: Peer = () => undefined): Response | Promise<Response> {
    const request = withClearPath(incoming);
    if (!isApi(request)) noteClient(request, peer, deps.config.trustsProxy);
    const answer = app.fetch(request);
    return request.headers.has("transfer-encoding") ? closeUnread(request, answer) : answer;
  }
  return { handle, routes: app.routes };
}

/** Every MCP tool. */
export const toTools = (service: Service): Tool[] => [
  ...reportTools(service),
  ...comparisonTools(service.compare),
  ...trendTools(service),
  ...promptTools(service.prompts),
  ...runTools(service),
];

/** Everything that is available over MCP. */
function offerOf(service: Service): Parameters<typeof toSurface>[0] {
  const resources = reportResources(service.reports);
  return {
    onChange: (tool, { keyId }) => service.deps.log.info({ tool, key: keyId }, "MCP tool called"),
    tools: toTools(service),
    methods: { ...resources.handlers, ...workPrompts({ ...service, resources }) },
    toAppError(error) {
      const answer = toAppError(error, service.onError(error), undefined);
      if (answer.code === "internal") service.deps.log.error({ err: error }, "MCP request failed");
      return answer;
    },
  };
}

/** A path for the log: in those of links, the token is a secret. */
const withoutToken = (path: string): string => path.replace(/(\/(?:setup|invite|reset|shared)\/)[^/]+/, "$1[redacted]");

const Whoami = Type.Object({
  organization: Type.Object({ id: Type.String({ format: "uuid" }), name: Type.String(), timeZone: Type.String() }),
  key: Type.Object({
    id: Type.String({ format: "uuid" }),
    name: Type.String(),
    scopes: Nullable(Type.Array(OneOf(scopes), { description: "Scopes of the key; null: all" })),
  }),
});

function whoami({ orgs }: Service, caller: Caller | undefined) {
  if (!caller) throw notFound("Not found.");
  const { id, name, timeZone } = orgs.getOrg(caller.org);
  return { organization: { id, name, timeZone }, key: { id: caller.keyId, name: caller.name, scopes: caller.scopes } };
}

const OpenApi = Type.Object({}, { additionalProperties: true, description: "An OpenAPI 3.1 document" });

const Health = Type.Object({ status: Type.String(), detail: Type.Optional(Type.String()) });

const systemRoutes = (service: Service) =>
  new Elysia({ name: "system" })
    .get("/healthz", () => ({ status: "alive" }), {
      ...operation("System", "healthz", "Check that the process is alive", { 200: Health }, { security: [] }),
    })
    .get(
      "/readyz",
      async ({ set }) => {
        const problem = await service.findProblem();
        if (problem === null) return { status: "ready" };
        set.status = 503;
        return { status: "not ready", detail: problem };
      },
      operation(
        "System",
        "readyz",
        "Check that the service is ready: the database is writable, the job runner works and no shutdown is in progress",
        { 200: Health, 503: Health },
        { security: [] },
      ),
    );

/** Turns every failure into an error that is safe to show. Unexpected errors reveal nothing. */
function toAppError(error: unknown, fault: DiskFault | null, code: unknown): AppError {
  if (error instanceof AppError) return error;
  if (fault === "full") return unavailable("The disk is full or read-only. Stored data can still be read.");
  if (fault === "broken") return unavailable("The disk failed. The service is restarting.");
  if (isBusy(error)) return unavailable("The database is locked by another process. Try again in a few seconds.");
  const internal = new AppError(
    "internal",
    "Something went wrong. The server log has the details; search it for the ID in X-Request-Id.",
  );
  if (code === "NOT_FOUND") return notFound("Not found. See /openapi.json for all endpoints.");
  if (code === "PARSE") return error instanceof Error && error.cause instanceof AppError ? error.cause : internal;
  if (code !== "VALIDATION" || !(error instanceof Error)) return internal;
  const { type, valueError } = error as { type?: string; valueError?: ValueError };
  // An ID or slug that can't be decoded doesn't exist.
  if (type === "params") return notFound("Not found. See /openapi.json for all endpoints.");
  return valueError ? invalidInput(valueError, type ?? "request") : badRequest("The request is not valid.");
}
