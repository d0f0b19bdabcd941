import { type AnyElysia, Elysia } from "elysia";
import { archiveRoutes } from "./archives/routes.ts";
import { auditRoutes } from "./audit/routes.ts";
import { authenticate, withUnambiguousPath } from "./auth/authentication.ts";
import { keyRoutes } from "./auth/routes.ts";
import { tenantOf } from "./auth/tenant.ts";
import { backupRoutes } from "./backups/routes.ts";
import { bisectRoutes } from "./bisects/routes.ts";
import { calibrationRoutes } from "./calibration/routes.ts";
import { comparisonRoutes } from "./comparisons/routes.ts";
import { deletionRoutes } from "./deletions/routes.ts";
import { errorStatus } from "./errors.ts";
import { exchangeRoutes } from "./exchange/routes.ts";
import { experimentRoutes } from "./experiments/routes.ts";
import { fieldRoutes } from "./field/routes.ts";
import { fixRoutes } from "./fixes/routes.ts";
import { frictionRoutes } from "./friction/routes.ts";
import { gateRoutes } from "./gates/routes.ts";
import { type Peer, trackClient } from "./http/address.ts";
import { answerLargeBody, hasLargeBody } from "./http/body.ts";
import type { Authenticate } from "./http/caller.ts";
import { withRequest } from "./http/current-request.ts";
import { addHeaders, routedAsGet, statusOf } from "./http/elysia.ts";
import { toOpenApi } from "./http/openapi.ts";
import { readQueryNumbers } from "./http/paging.ts";
import { answerRequest, pathBelow, pathOf } from "./http/responses.ts";
import { healthRoutes, openApiRoutes } from "./http/system-routes.ts";
import { trackTurn, turnsOf } from "./http/turns.ts";
import { inboxRoutes } from "./inbox/routes.ts";
import { matrixRoutes } from "./matrix/routes.ts";
import type { Surface } from "./mcp/endpoint.ts";
import { mcpRoutes } from "./mcp/routes.ts";
import { createMcpEndpoints } from "./mcp-endpoints.ts";
import { loginRoutes } from "./models/routes.ts";
import { notificationRoutes } from "./notifications/routes.ts";
import { once } from "./once.ts";
import { promptRoutes } from "./prompts/routes.ts";
import { proposalRoutes } from "./proposals/routes.ts";
import { providerRoutes } from "./providers/routes.ts";
import { queueRoutes } from "./queue/routes.ts";
import { regradeRoutes } from "./regrades/routes.ts";
import { reportRoutes } from "./reports/routes.ts";
import {
  admitRequest,
  mayWrite,
  noteError,
  recordResponse,
  refuseWaiting,
  respondToError,
  whenUnlocked,
} from "./request-hooks.ts";
import { runRoutes } from "./runs/routes.ts";
import { scheduleRoutes } from "./schedules/routes.ts";
import { secretRoutes } from "./secrets/routes.ts";
import type { Service } from "./service.ts";
import { shareRoutes } from "./shares/routes.ts";
import { spendingRoutes } from "./spending/routes.ts";
import { suiteRoutes } from "./suites/routes.ts";
import { fieldTrafficRoutes } from "./traffic/routes.ts";
import { trendRoutes } from "./trends/routes.ts";
import { trustRoutes } from "./trusts/routes.ts";
import type { OpenApiDocument } from "./web/pages/reference.tsx";
import { pageRoutes } from "./web/routes.tsx";
import { workerRoutes } from "./workers/routes.ts";

type AppOptions = {
  /** The MCP tools, resources and prompts to serve; default: all. */
  surface?: Surface;
  /** Finds the caller of a request to the API; default: by its API key. */
  authenticate?: Authenticate;
};

/** The HTTP side of a service: API, MCP and pages. Every request enters through `handle`. */
export function createApp(service: Service, options: AppOptions = {}) {
  const { ctx } = service;
  const { basePath } = ctx.config;
  const findCaller = options.authenticate ?? ((request) => authenticate(ctx, request));
  const endpointOf = createMcpEndpoints(ctx, options.surface);

  const apiRoutes = () =>
    new Elysia().use(featureRoutes(service)).use(mcpRoutes(endpointOf)).use(openApiRoutes(openApi));
  // Applies to routes without the base path. In the OpenAPI document, the base path is part of the server URL.
  const openApi: () => Promise<OpenApiDocument> = once(async () => {
    // Few requests need it. A `require` would load another copy of Elysia and TypeBox.
    const { toOpenAPISchema } = await import("@elysiajs/openapi/openapi");
    return toOpenApi(
      toOpenAPISchema(apiRoutes() as AnyElysia, { staticFile: false }),
      ctx.baseUrl(),
    ) as OpenApiDocument;
  });

  const app = new Elysia({ prefix: basePath, normalize: true })
    .onRequest(({ request, set }) => admitRequest(service, request, set, findCaller))
    .onTransform(({ request, query }) => {
      readQueryNumbers(query, request.url);
    })
    .onError(async ({ error, code, request, path, route = "", set }) => {
      const failure = noteError(service, request, error, code);
      set.status = errorStatus[failure.code];
      recordResponse(service, request, path, route, set.status);
      return await respondToError(service, request, set, failure);
    })
    // This is not done in onAfterResponse, which alone takes a fifth of the time of a read.
    .onAfterHandle(({ request, path, route, responseValue, set }) => {
      recordResponse(service, request, path, route, statusOf(responseValue, set));
      addHeaders(responseValue, set);
    })
    .use(healthRoutes({ ...service, instance: ctx.instance }))
    .use(apiRoutes())
    .use(pageRoutes(service, openApi));

  const turns = turnsOf(ctx);

  function handle(incoming: Request, peer: Peer = () => undefined): Response | Promise<Response> {
    const request = routedAsGet(withUnambiguousPath(incoming));
    const path = pathBelow(pathOf(request), basePath);
    const isApi = path.startsWith("/api/");
    trackClient(request, peer, ctx.config.trustsProxy);
    const tenant = () => tenantOf(ctx, request);
    // A read of the API never waits for anything else.
    if (!isApi || request.method !== "GET") trackTurn(request, turns, tenant);
    const route = (each: Request) => {
      const work = () =>
        withRequest(each, () => (mayWrite(each, path) ? whenUnlocked(service, each, app.fetch) : app.fetch(each)));
      try {
        return turns.run(each, tenant, work);
      } catch (error) {
        return refuseWaiting(service, each, path, error);
      }
    };
    const answer = answerRequest(ctx.config, request, route);
    return hasLargeBody(request) ? answerLargeBody(request, answer) : answer;
  }
  return { handle, routes: app.routes };
}

/** The API of the features. */
const featureRoutes = ({ ctx, workers }: Service) =>
  new Elysia({ name: "features" })
    .use(keyRoutes(ctx))
    .use(auditRoutes(ctx))
    .use(promptRoutes(ctx))
    .use(scheduleRoutes(ctx))
    .use(proposalRoutes(ctx))
    .use(providerRoutes(ctx))
    .use(loginRoutes(ctx))
    .use(secretRoutes(ctx))
    .use(archiveRoutes(ctx))
    .use(runRoutes(ctx))
    .use(spendingRoutes(ctx))
    .use(reportRoutes(ctx))
    .use(shareRoutes(ctx))
    .use(comparisonRoutes(ctx))
    .use(frictionRoutes(ctx))
    .use(fixRoutes(ctx))
    .use(fieldRoutes(ctx))
    .use(fieldTrafficRoutes(ctx))
    .use(trendRoutes(ctx))
    .use(matrixRoutes(ctx))
    .use(suiteRoutes(ctx))
    .use(experimentRoutes(ctx))
    .use(bisectRoutes(ctx))
    .use(calibrationRoutes(ctx))
    .use(inboxRoutes(ctx))
    .use(gateRoutes(ctx))
    .use(exchangeRoutes(ctx))
    .use(notificationRoutes(ctx))
    .use(trustRoutes(ctx))
    .use(workerRoutes(ctx, workers))
    .use(queueRoutes(ctx, workers))
    .use(backupRoutes(ctx))
    .use(regradeRoutes(ctx))
    .use(deletionRoutes(ctx));
