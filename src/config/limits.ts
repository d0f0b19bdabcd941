import { type Static, Type } from "@sinclair/typebox";
import { invalidField } from "../errors.ts";
import { Nullable } from "../schema.ts";
import type { Config } from "./config.ts";

const mib = 1024 * 1024;
const integer = (minimum: number, description: string) =>
  Type.Optional(Nullable(Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description })));

/** Limits that a prompt sets for its runs. If a limit is missing or null, the operator's limit applies. */
export const Limits = Type.Object(
  {
    wallClockSeconds: integer(1, "Maximum duration of the run, in seconds"),
    idleSeconds: integer(1, "How long the agent may be idle, in seconds"),
    modelCalls: integer(1, "Maximum calls to the agent's model"),
    tokens: integer(1, "Maximum input and output tokens of the agent's model"),
    costUsd: Type.Optional(
      Nullable(Type.Number({ minimum: 0.000001, description: "Maximum cost of the agent's model, in USD" })),
    ),
    toolCalls: integer(1, "Maximum tool calls"),
    requests: integer(1, "Maximum HTTP requests, including those of commands"),
    bytesOut: integer(1, "Maximum bytes uploaded: request bodies, and everything sent through tunnels"),
    workspaceBytes: integer(mib, "Maximum size of the workspace, in bytes"),
    memoryBytes: integer(128 * mib, "Memory limit of the agent's process, and of each of its commands, in bytes"),
  },
  { title: "Limits", description: "Limits of one run; the server's settings are the default and the maximum" },
);
export type Limits = Static<typeof Limits>;

/** The operator's setting for each limit. `maxOf`: its maximum, in the unit of the limit; null: no maximum. */
const settings: { [K in keyof Required<Limits>]: { setting: string; maxOf: (config: Config) => number | null } } = {
  wallClockSeconds: { setting: "EVALD_RUN_TIMEOUT_SECONDS", maxOf: (config) => config.runTimeoutMs / 1000 },
  idleSeconds: { setting: "EVALD_IDLE_TIMEOUT_SECONDS", maxOf: (config) => config.idleTimeoutMs / 1000 },
  modelCalls: { setting: "EVALD_MAX_MODEL_CALLS", maxOf: (config) => config.modelLimits.calls },
  tokens: { setting: "EVALD_MAX_TOKENS", maxOf: (config) => config.modelLimits.tokens },
  costUsd: { setting: "EVALD_MAX_COST_USD", maxOf: (config) => config.modelLimits.costUsd },
  toolCalls: { setting: "EVALD_MAX_TOOL_CALLS", maxOf: (config) => config.maxToolCalls },
  requests: { setting: "EVALD_MAX_REQUESTS", maxOf: (config) => config.maxRequests },
  bytesOut: { setting: "EVALD_MAX_UPLOAD_MB", maxOf: (config) => config.maxBytesOut },
  workspaceBytes: { setting: "EVALD_WORKSPACE_MB", maxOf: (config) => config.workspaceBytes },
  memoryBytes: { setting: "EVALD_AGENT_MEMORY_MB", maxOf: (config) => config.agentMemoryBytes },
};
export const limitNames = Object.keys(settings) as (keyof Limits)[];

/** Throws bad_request for the first limit above the operator's maximum. */
export function checkLimits(limits: Limits | null, config: Config): void {
  for (const name of limitNames) {
    const { setting, maxOf } = settings[name];
    const requested = limits?.[name] ?? null;
    const max = maxOf(config);
    if (requested !== null && max !== null && requested > max)
      throw invalidField(`limits.${name}`, `${requested} exceeds the server's maximum of ${max} (${setting})`);
  }
}

/** The name of the operator's setting for a limit, such as `EVALD_MAX_TOKENS`. */
export const settingOf = (name: keyof Limits): string => settings[name].setting;

/** Whether the limit that applies is the prompt's own rather than the operator's. */
export function isSetByPrompt(limits: Limits | null | undefined, config: Config, name: keyof Limits): boolean {
  const value = limits?.[name] ?? null;
  return value !== null && value <= maxLimit(name, config);
}

const maxLimit = (name: keyof Limits, config: Config): number =>
  settings[name].maxOf(config) ?? Number.POSITIVE_INFINITY;

/** The effective limits of a run. The prompt's limits are capped by the operator's current limits. Durations are in milliseconds. */
export function decideLimits(limits: Limits | null | undefined, config: Config) {
  const limitOf = (name: keyof Limits) => Math.min(limits?.[name] ?? Number.POSITIVE_INFINITY, maxLimit(name, config));
  const costUsd = limitOf("costUsd");
  return {
    wallClockMs: limitOf("wallClockSeconds") * 1000,
    idleMs: limitOf("idleSeconds") * 1000,
    maxPages: config.maxPages,
    maxRequests: limitOf("requests"),
    maxToolCalls: limitOf("toolCalls"),
    maxBytesOut: limitOf("bytesOut"),
    workspaceBytes: limitOf("workspaceBytes"),
    memoryBytes: limitOf("memoryBytes"),
    model: {
      calls: limitOf("modelCalls"),
      tokens: limitOf("tokens"),
      costUsd: Number.isFinite(costUsd) ? costUsd : null,
    },
  };
}
