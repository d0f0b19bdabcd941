import { type Static, Type } from "@sinclair/typebox";
import type { Task } from "../agents/agent.ts";
import type { Config } from "../config.ts";
import { badRequest } from "../errors.ts";
import { Nullable } from "../schema.ts";

const mib = 1024 * 1024;
const whole = (minimum: number, description: string) =>
  Type.Optional(Nullable(Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description })));

/** What one run may use at most, as a prompt asks for it; what is left out or null is the operator's. */
export const Limits = Type.Object(
  {
    wallClockSeconds: whole(1, "Time of the whole run"),
    idleSeconds: whole(1, "Time in which the agent may do nothing"),
    modelCalls: whole(1, "Calls of the agent's model"),
    tokens: whole(1, "Tokens of the agent's model, in and out"),
    costUsd: Type.Optional(Nullable(Type.Number({ minimum: 0.000001, description: "Cost of the agent's model, USD" }))),
    toolCalls: whole(1, "Calls of tools"),
    requests: whole(1, "Requests, those of commands too"),
    bytesOut: whole(1, "Bytes sent out: bodies of requests, and all that goes into tunnels"),
    workspaceBytes: whole(mib, "Bytes of the folder in which commands work"),
    memoryBytes: whole(128 * mib, "Memory of the agent's process, and of each of its commands"),
  },
  { description: "What one run may use; each at most what the operator allows, which is also the default" },
);
export type Limits = Static<typeof Limits>;

/** The operator's setting of each limit and its value in the unit of the limit. */
const settings: { [K in keyof Required<Limits>]: { setting: string; of: (config: Config) => number | null } } = {
  wallClockSeconds: { setting: "EVALD_RUN_TIMEOUT_SECONDS", of: (config) => config.runTimeoutMs / 1000 },
  idleSeconds: { setting: "EVALD_IDLE_TIMEOUT_SECONDS", of: (config) => config.idleTimeoutMs / 1000 },
  modelCalls: { setting: "EVALD_MAX_MODEL_CALLS", of: (config) => config.modelLimits.calls },
  tokens: { setting: "EVALD_MAX_TOKENS", of: (config) => config.modelLimits.tokens },
  costUsd: { setting: "EVALD_MAX_COST_USD", of: (config) => config.modelLimits.costUsd },
  toolCalls: { setting: "EVALD_MAX_TOOL_CALLS", of: (config) => config.maxToolCalls },
  requests: { setting: "EVALD_MAX_REQUESTS", of: (config) => config.maxRequests },
  bytesOut: { setting: "EVALD_MAX_UPLOAD_MB", of: (config) => config.maxBytesOut },
  workspaceBytes: { setting: "EVALD_WORKSPACE_MB", of: (config) => config.workspaceBytes },
  memoryBytes: { setting: "EVALD_AGENT_MEMORY_MB", of: (config) => config.agentMemoryBytes },
};
export const limitNames = Object.keys(settings) as (keyof Limits)[];

/** Throws bad_request that names the first limit above what the operator allows, and what that is. */
export function checkLimits(limits: Limits | null, config: Config): void {
  for (const name of limitNames) {
    const { setting, of } = settings[name];
    const asked = limits?.[name] ?? null;
    const cap = of(config);
    if (asked !== null && cap !== null && asked > cap)
      throw badRequest(`limits.${name}: ${asked} is more than ${cap}, the most that this service allows (${setting})`);
  }
}

/** What a run may use: what its prompt asks for, and never more than the operator allows at this time. */
export function decideLimits(limits: Limits | null | undefined, config: Config): Task["limits"] {
  const atMost = (name: keyof Limits) =>
    Math.min(limits?.[name] ?? Number.POSITIVE_INFINITY, settings[name].of(config) ?? Number.POSITIVE_INFINITY);
  const costUsd = atMost("costUsd");
  return {
    wallClockMs: atMost("wallClockSeconds") * 1000,
    idleMs: atMost("idleSeconds") * 1000,
    maxPages: config.maxPages,
    maxRequests: atMost("requests"),
    maxToolCalls: atMost("toolCalls"),
    maxBytesOut: atMost("bytesOut"),
    workspaceBytes: atMost("workspaceBytes"),
    memoryBytes: atMost("memoryBytes"),
    model: {
      calls: atMost("modelCalls"),
      tokens: atMost("tokens"),
      costUsd: Number.isFinite(costUsd) ? costUsd : null,
    },
  };
}
