import { type AnyElysia, Elysia } from "elysia";
import { authenticate, withUnambiguousPath } from "./auth/authentication.ts";
import { tenantOf } from "./auth/tenant.ts";
import { errorStatus } from "./errors.ts";
import { type Peer, trackClient } from "./http/address.ts";
import { answerLargeBody, hasLargeBody } from "./http/body.ts";
import type { Authenticate } from "./http/caller.ts";
import { withRequest } from "./http/current-request.ts";
import { addHeaders, routedAsGet, statusOf } from "./http/elysia.ts";
import { readQueryNumbers } from "./http/paging.ts";
import { answerRequest, pathBelow, pathOf } from "./http/responses.ts";
import { healthRoutes, isHealthPath, openApiJsonPath } from "./http/system-routes.ts";
import { trackTurn, turnsOf } from "./http/turns.ts";
import type { Surface } from "./mcp/endpoint.ts";
import { once } from "./once.ts";
import {
  admitRequest,
  mayWrite,
  noteError,
  recordResponse,
  refuseWaiting,
  respondToError,
  whenUnlocked,
} from "./request-hooks.ts";
import type { Service } from "./service.ts";

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
  const parts = createParts(service, options);
  const turns = turnsOf(ctx);

  function handle(incoming: Request, peer: Peer = () => undefined): Response | Promise<Response> {
    const request = routedAsGet(withUnambiguousPath(incoming));
    const path = pathBelow(pathOf(request), basePath);
    const isApi = path.startsWith("/api/");
    trackClient(request, peer, ctx.config.trustsProxy);
    const tenant = () => tenantOf(ctx, request);
    // A request that has waited, such as for its body, takes another turn before it goes on. A read of the API never waits.
    if (!isApi || request.method !== "GET") trackTurn(request, turns, tenant);
    const { answer } = parts.find(path);
    const route = (each: Request) => {
      const work = () =>
        withRequest(each, () => (mayWrite(each, path) ? whenUnlocked(service, each, answer) : answer(each)));
      try {
        return turns.run(each, tenant, work);
      } catch (error) {
        return refuseWaiting(service, each, path, error);
      }
    };
    const response = answerRequest(ctx.config, request, route);
    return hasLargeBody(request) ? answerLargeBody(request, response) : response;
  }
  return { handle, loadRoutes: parts.loadRoutes };
}

/**
 * The routes in three parts. The first request for a part loads it, because loading takes longer than the rest of the start and many services need
 * only one part.
 */
function createParts(service: Service, { surface, authenticate }: AppOptions) {
  const toRouter = () => createRouter(service, authenticate);
  const loadApiRoutes = once(async () => {
    const { createApiRoutes } = await import("./api-routes.ts");
    return createApiRoutes(service, surface);
  });
  const health = createPart(async () => toRouter().use(healthRoutes({ ...service, instance: service.ctx.instance })));
  const api = createPart(async () => toRouter().use((await loadApiRoutes()).routes));
  const pages = createPart(async () => {
    const { pageRoutes } = await import("./web/routes.tsx");
    return toRouter().use(pageRoutes(service, async () => (await loadApiRoutes()).openApi()));
  });
  return {
    /** `path`: without the base path. Unknown paths belong to the pages. */
    find(path: string) {
      if (path.startsWith("/api/") || path === openApiJsonPath) return api;
      return isHealthPath(path) ? health : pages;
    },
    /** All routes, to check what is served. */
    async loadRoutes() {
      const routers = await Promise.all([health, api, pages].map((part) => part.load()));
      return routers.flatMap(({ routes }) => routes);
    },
  };
}

/** A router without routes. It has the hooks that run for every request. */
function createRouter(service: Service, findCaller: Authenticate = (request) => authenticate(service.ctx, request)) {
  const { ctx } = service;
  return (
    new Elysia({ prefix: ctx.config.basePath, normalize: true })
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
      // onAfterResponse is not used, because it alone takes a fifth of the time of a read.
      .onAfterHandle(({ request, path, route, responseValue, set }) => {
        recordResponse(service, request, path, route, statusOf(responseValue, set));
        addHeaders(responseValue, set);
      })
  );
}

/** A part of the routes. When it is loaded, a synchronous route answers synchronously, so that `turns` can tell how long it takes. */
function createPart(create: () => Promise<AnyElysia>) {
  let router: AnyElysia | undefined;
  const load = once(async () => {
    router = await create();
    return router;
  });
  const answer = (request: Request): Response | Promise<Response> =>
    router ? router.fetch(request) : load().then((loaded) => loaded.fetch(request));
  return { load, answer };
}
