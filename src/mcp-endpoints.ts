import { databaseLocked, toAppError } from "./app-error.ts";
import { comparisonTools } from "./comparisons/tools.ts";
import type { Context } from "./context.ts";
import { untilUnlocked } from "./db/write-lock.ts";
import { fieldTools } from "./field/tools.ts";
import { type Caller, isReporter } from "./http/caller.ts";
import type { Endpoint, Surface } from "./mcp/endpoint.ts";
import type { ServerFeatures } from "./mcp/surface.ts";
import type { Tool } from "./mcp/tool.ts";
import { lazy } from "./once.ts";
import { promptEditTools, promptTools } from "./prompts/tools.ts";
import { proposalTools } from "./proposals/tools.ts";
import { mcpPrompts } from "./reports/mcp-prompts.ts";
import { reportResources } from "./reports/resources.ts";
import { reportTools } from "./reports/tools.ts";
import { runEditTools, runTools } from "./runs/tools.ts";
import { trendTools } from "./trends/tools.ts";

/** The MCP tools for every key. */
export const toTools = (ctx: Context): Tool[] => [
  ...reportTools(ctx),
  ...comparisonTools(ctx),
  ...trendTools(ctx),
  ...promptTools(ctx),
  ...runTools(ctx),
];

/** More tools, only for keys that name the scope `write`. Other keys pay only for the usual tools. */
export const toEditTools = (ctx: Context): Tool[] => [
  ...promptEditTools(ctx),
  ...proposalTools(ctx),
  ...runEditTools(ctx),
];

const isEditor = ({ scopes }: Caller): boolean => scopes?.includes("write") === true;

/** Everything that is available over MCP. */
function featuresOf(ctx: Context, tools: Tool[]): ServerFeatures {
  const resources = reportResources(ctx);
  const methods = { ...resources.handlers, ...mcpPrompts(ctx, resources) };
  return { ...mcpHooks(ctx), tools, methods };
}

/** What is available over MCP with a key that can only report friction. */
const reporterFeaturesOf = (ctx: Context): ServerFeatures => ({
  ...mcpHooks(ctx),
  tools: fieldTools(ctx),
  methods: {},
  restriction: {
    scope: "report_friction",
    instructions:
      "Call report_friction when this product or its docs mislead you, fail without a clear error, or make you guess. The maintainers read it.",
  },
});

const mcpHooks = (ctx: Context) => ({
  async onChange(tool: string, { keyId }: Caller) {
    ctx.log.info({ tool, key: keyId }, "MCP tool called");
    if (!(await untilUnlocked(ctx.db))) throw databaseLocked();
  },
  toAppError(error: unknown) {
    const answer = toAppError(error, ctx.disk.onError(error), undefined);
    if (answer.code === "internal") ctx.log.error({ err: error }, "MCP request failed");
    return answer;
  },
});

/** The SDKs are loaded lazily, because they take longer to load than everything else together, and many services never use MCP. */
async function loadEndpoint(ctx: Context, offer: ServerFeatures | Surface): Promise<Endpoint> {
  const [{ createEndpoint }, { toSurface }] = await Promise.all([
    import("./mcp/endpoint.ts"),
    import("./mcp/surface.ts"),
  ]);
  return createEndpoint(ctx, "tools" in offer ? toSurface(offer) : offer);
}

/** The MCP endpoint for a kind of key. It is created when a key of that kind is first used. `surface` replaces the usual endpoint. */
export function createMcpEndpoints(ctx: Context, surface?: Surface): (caller: Caller) => Promise<Endpoint> {
  const mainEndpoint = lazy(() => loadEndpoint(ctx, surface ?? featuresOf(ctx, toTools(ctx))));
  const editorEndpoint = lazy(() => loadEndpoint(ctx, featuresOf(ctx, [...toTools(ctx), ...toEditTools(ctx)])));
  const reporterEndpoint = lazy(() => loadEndpoint(ctx, reporterFeaturesOf(ctx)));
  return (caller) => {
    if (isReporter(caller)) return reporterEndpoint();
    return isEditor(caller) ? editorEndpoint() : mainEndpoint();
  };
}
