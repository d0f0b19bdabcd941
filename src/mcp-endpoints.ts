import { databaseLocked, toAppError } from "./app-error.ts";
import { comparisonTools } from "./comparisons/tools.ts";
import type { Context } from "./context.ts";
import { untilUnlocked } from "./db/write-lock.ts";
import { fieldTools } from "./field/tools.ts";
import { type Caller, isReporter } from "./http/caller.ts";
import type { Endpoint, Surface } from "./mcp/endpoint.ts";
import type { toSurface } from "./mcp/surface.ts";
import type { Tool } from "./mcp/tool.ts";
import { lazy } from "./once.ts";
import { promptTools } from "./prompts/tools.ts";
import { reportResources } from "./reports/resources.ts";
import { reportTools } from "./reports/tools.ts";
import { workPrompts } from "./reports/work-prompts.ts";
import { runTools } from "./runs/tools.ts";
import type { Service } from "./service.ts";
import { trendTools } from "./trends/tools.ts";

/** Every MCP tool. */
export const toTools = (ctx: Context): Tool[] => [
  ...reportTools(ctx),
  ...comparisonTools(ctx),
  ...trendTools(ctx),
  ...promptTools(ctx),
  ...runTools(ctx),
];

type Offer = Parameters<typeof toSurface>[0];

/** Everything that is available over MCP. */
function offerOf(service: Service): Offer {
  const resources = reportResources(service.ctx);
  return {
    ...mcpHooks(service),
    tools: toTools(service.ctx),
    methods: { ...resources.handlers, ...workPrompts(service.ctx, resources) },
  };
}

/** What is available over MCP with a key that can only report friction. */
const reporterOfferOf = (service: Service): Offer => ({
  ...mcpHooks(service),
  ...{
    tools: fieldTools(service.ctx),
    methods: {},
    restriction: { scope: "report_friction", instructions: reporterInstructions },
  },
});

const reporterInstructions =
  "Call report_friction when this product or its docs mislead you, fail without a clear error, or make you guess. The maintainers read it.";

function mcpHooks(service: Service) {
  return {
    async onChange(tool: string, { keyId }: Caller) {
      service.ctx.log.info({ tool, key: keyId }, "MCP tool called");
      if (!(await untilUnlocked(service.ctx.db))) throw databaseLocked();
    },
    toAppError(error: unknown) {
      const answer = toAppError(error, service.ctx.disk.onError(error), undefined);
      if (answer.code === "internal") service.ctx.log.error({ err: error }, "MCP request failed");
      return answer;
    },
  };
}

/** The SDKs are loaded lazily, because they take longer to load than everything else together, and many services never use MCP. */
async function loadEndpoint(service: Service, offer: Offer, surface?: Surface): Promise<Endpoint> {
  const { ctx } = service;
  const [{ createEndpoint }, { toSurface }] = await Promise.all([
    import("./mcp/endpoint.ts"),
    import("./mcp/surface.ts"),
  ]);
  return createEndpoint(surface ?? toSurface(offer), {
    ownUrl: ctx.baseUrl,
    origins: ctx.config.corsOrigins,
    onError: (error) => ctx.log.debug({ err: error }, "MCP request rejected"),
  });
}

/** The MCP endpoint for a kind of key, created when one of them first uses it. `surface` replaces the usual one. */
export function createMcpEndpoints(service: Service, surface?: Surface): (caller: Caller) => Promise<Endpoint> {
  const mainEndpoint = lazy(() => loadEndpoint(service, offerOf(service), surface));
  const reporterEndpoint = lazy(() => loadEndpoint(service, reporterOfferOf(service)));
  return (caller) => (isReporter(caller) ? reporterEndpoint() : mainEndpoint());
}
