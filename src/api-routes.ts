import { type AnyElysia, Elysia } from "elysia";
import { archiveRoutes } from "./archives/routes.ts";
import { auditRoutes } from "./audit/routes.ts";
import { keyRoutes } from "./auth/routes.ts";
import { backupRoutes } from "./backups/routes.ts";
import { bisectRoutes } from "./bisects/routes.ts";
import { calibrationRoutes } from "./calibration/routes.ts";
import { comparisonRoutes } from "./comparisons/routes.ts";
import { deletionRoutes } from "./deletions/routes.ts";
import { exchangeRoutes } from "./exchange/routes.ts";
import { experimentRoutes } from "./experiments/routes.ts";
import { fieldRoutes } from "./field/routes.ts";
import { fixRoutes } from "./fixes/routes.ts";
import { frictionRoutes } from "./friction/routes.ts";
import { gateRoutes } from "./gates/routes.ts";
import { toOpenApi } from "./http/openapi.ts";
import { openApiRoutes } from "./http/system-routes.ts";
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
import { workerRoutes } from "./workers/routes.ts";

/** The API: features, MCP and the OpenAPI document. `surface`: the MCP tools, resources and prompts to serve; default: all. */
export function createApiRoutes(service: Service, surface?: Surface) {
  const { ctx } = service;
  const endpointOf = createMcpEndpoints(ctx, surface);
  const toRoutes = (): AnyElysia =>
    new Elysia().use(featureRoutes(service)).use(mcpRoutes(endpointOf)).use(openApiRoutes(openApi));
  const openApi = once(async () => {
    // Few requests need it. A `require` would load another copy of Elysia and TypeBox.
    const { toOpenAPISchema } = await import("@elysiajs/openapi/openapi");
    // These are new routes, because the router adds the base path to the routes that it gets. In the document, the server URL has the base path.
    return toOpenApi(toOpenAPISchema(toRoutes(), { staticFile: false }), ctx.baseUrl()) as OpenApiDocument;
  });
  return { routes: toRoutes(), openApi };
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
