import { ConfigError } from "../errors.ts";
import { type AllowRule, allowRule, allowSyntax } from "./allow-rules.ts";
import { corsSetting } from "./cors-setting.ts";
import { type CustomAgent, customAgentsSetting } from "./custom-agents.ts";
import {
  type ModelPlace,
  type ModelProvider,
  modelSetting,
  modelsSetting,
  type Prices,
  pricesSetting,
  readModelPlaces,
  secretSetting,
} from "./model-settings.ts";
import { type PeopleSettings, peopleSettings, readPeopleSettings } from "./people-settings.ts";
import { readSetting } from "./reading.ts";
import { readTelemetrySettings, type TelemetrySettings, telemetrySettings } from "./telemetry-settings.ts";
import { type OwnWeights, weightsSetting } from "./weights.ts";
import { readWorkerSettings, type WorkerSettings, workerSettings } from "./worker-settings.ts";

const logFormats = ["auto", "text", "json"] as const;
const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;

type Setting<T> = { default: string; description: string; parse: (value: string) => T; secret?: boolean };

const bad = (expected: string) => {
  throw new ConfigError(expected);
};

const integer = (min: number, max: number) => (value: string) =>
  /^\d{1,9}$/.test(value) && Number(value) >= min && Number(value) <= max
    ? Number(value)
    : bad(`a whole number from ${min} to ${max}`);

const usd = (value: string) =>
  /^\d{1,6}(\.\d{1,6})?$/.test(value) ? Number(value) : bad("an amount in USD, such as 0.5");

const items = (value: string) => value.split(",").flatMap((item) => item.trim() || []);

const flag = (value: string) => (value === "1" ? true : value === "0" ? false : bad("0 or 1"));

const oneOf =
  <T extends string>(values: readonly T[]) =>
  (value: string) =>
    values.find((known) => known === value) ?? bad(`one of ${values.join(", ")}`);

function baseUrl(value: string): Pick<Config, "baseUrl" | "basePath"> {
  if (value === "") return { baseUrl: null, basePath: "" };
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    return bad("an http or https URL without user name, query or fragment, such as https://example.com/evals");
  const basePath = url.pathname.replace(/\/+$/, "");
  return { baseUrl: url.origin + basePath, basePath };
}

const hostsSyntax =
  "a comma-separated list of host names, where *.example.com matches all subdomains, such as api.acme.example,*.acme.dev";

const settings = {
  EVALD_DATA_DIR: setting("./data", "Data directory", (value) => value || bad("a directory")),
  EVALD_HOST: setting(
    "127.0.0.1",
    "Host to listen on",
    (value) => value || bad("a host name or IP address, such as 127.0.0.1"),
  ),
  EVALD_PORT: setting("3000", "Port to listen on; 0 picks a free port and prints it", integer(0, 65535)),
  EVALD_BASE_URL: setting("", "Public URL of the service, with its path; default: the address it listens on", baseUrl),
  EVALD_TRUST_PROXY: setting(
    "0",
    "1: a proxy in front of the service sets X-Forwarded-For, and its last address is the client's; 0: ignore the header",
    flag,
  ),
  EVALD_CORS_ORIGINS: setting(...corsSetting),
  EVALD_CONCURRENCY: setting("4", "Maximum concurrent runs", integer(1, 64)),
  EVALD_RUN_TIMEOUT_SECONDS: setting("1800", "Maximum duration of a run, in seconds", integer(1, 86_400)),
  EVALD_IDLE_TIMEOUT_SECONDS: setting(
    "300",
    "How long an agent may be idle before its run is stopped, in seconds",
    integer(1, 86_400),
  ),
  EVALD_RUNS_PER_ORG: setting(
    "64",
    "Maximum concurrent runs per organization, unless the organization sets its own",
    integer(1, 64),
  ),
  EVALD_RUNS_A_DAY: setting(
    "0",
    "Maximum runs an organization may start per rolling 24 hours, unless it sets its own; extra runs are queued; 0: unlimited",
    integer(0, 1_000_000),
  ),
  EVALD_RUNS_PER_HOST: setting("4", "Maximum concurrent runs against the same host", integer(1, 64)),
  EVALD_KEEP_SESSIONS_DAYS: setting(
    "90",
    "Days to keep session events and deliveries of notifications; reports are kept forever; 0: keep all forever",
    integer(0, 36_500),
  ),
  EVALD_MAX_PAGES: setting("25", "Maximum pages the explorer reads while looking for the goal", integer(1, 1000)),
  EVALD_MAX_REQUESTS: setting("400", "Maximum HTTP requests per run", integer(1, 10_000)),
  EVALD_AGENT_MEMORY_MB: setting(
    "1024",
    "Memory limit of an agent's process, and of each of its commands, in MiB",
    integer(128, 65_536),
  ),
  EVALD_MAX_MODEL_CALLS: setting("200", "Maximum model calls per run", integer(1, 100_000)),
  EVALD_MAX_TOKENS: setting("5000000", "Maximum input and output tokens per run", integer(1, 999_999_999)),
  EVALD_MAX_COST_USD: setting("2", "Maximum model cost per run, in USD; 0: unlimited", usd),
  EVALD_MAX_TOOL_CALLS: setting("200", "Maximum tool calls per run", integer(1, 100_000)),
  EVALD_MAX_UPLOAD_MB: setting("50", "Maximum data an agent may upload per run, in MiB", integer(1, 100_000)),
  EVALD_WORKSPACE_MB: setting("1024", "Maximum size of the workspace of a run, in MiB", integer(1, 1_000_000)),
  EVALD_ALLOW_PRIVATE: setting("", `Private hosts that runs may reach: ${allowSyntax}`, (value) =>
    items(value).map(allowRule),
  ),
  EVALD_AGENT_MODEL: setting(
    "",
    "Default model of agents that use one, such as anthropic/claude-opus-4-8",
    modelSetting,
  ),
  EVALD_JUDGE_MODEL: setting(
    "",
    "Comma-separated list of models that may judge sessions, such as openai/gpt-5; the first from a different vendor than the agent's model is used",
    modelsSetting,
  ),
  EVALD_MODEL_PRICES: setting(
    "",
    "Prices of models that evald has no price for, in USD per million tokens: JSON, or the path of a JSON file",
    pricesSetting,
  ),
  EVALD_AGENTS: setting(
    "",
    "Additional coding agents: a JSON list, or the path of a JSON file; see Coding agents",
    customAgentsSetting,
  ),
  EVALD_METHODOLOGY: setting(
    "",
    "Custom weights for the dimensions of a score: JSON with an id and the weights, or the path of a JSON file",
    weightsSetting,
  ),
  EVALD_SECRET_KEY: {
    ...setting(
      "",
      "Key that encrypts the API keys that organizations store for model providers: 32 bytes as base64 or hex",
      secretSetting,
    ),
    secret: true,
  },
  EVALD_EGRESS_ALLOW: setting("", `Hosts that sandboxed commands may reach in every run: ${hostsSyntax}`, (value) =>
    items(value.toLowerCase()).map((item) => (/^(\*\.)?[a-z0-9_-][a-z0-9._-]*$/.test(item) ? item : bad(hostsSyntax))),
  ),
  ...peopleSettings,
  ...telemetrySettings,
  ...workerSettings,
  EVALD_DRAIN_SECONDS: setting("30", "Shutdown grace period for active runs, in seconds", integer(0, 3600)),
  EVALD_LOG_LEVEL: setting("info", `Minimum log level: ${logLevels.join(", ")}`, oneOf(logLevels)),
  EVALD_LOG_FORMAT: setting(
    "auto",
    "Log format: text, json, or auto: text on a terminal, else json",
    oneOf(logFormats),
  ),
  EVALD_WELCOME: setting(
    "1",
    "1: create an example organization and run an example on the first start; 0: start empty",
    flag,
  ),
};

function setting<T>(fallback: string, description: string, parse: (value: string) => T): Setting<T> {
  return { default: fallback, description, parse };
}

/** Every setting with its default and description, in the order of the documentation. */
export const settingTable = Object.entries(settings).map(([name, { default: fallback, description }]) => ({
  name,
  default: fallback,
  description,
}));

export type Config = Readonly<{
  dataDir: string;
  host: string;
  port: number;
  /** null: the address the service listens on. Never ends in a slash. */
  baseUrl: string | null;
  /** The path of `baseUrl`, which prefixes every route: empty, or such as `/evals`. */
  basePath: string;
  trustsProxy: boolean;
  concurrency: number;
  runTimeoutMs: number;
  idleTimeoutMs: number;
  runsPerOrg: number;
  /** null: no limit. */
  runsADay: number | null;
  runsPerHost: number;
  /** null: forever. */
  keepSessionsMs: number | null;
  maxPages: number;
  maxRequests: number;
  agentMemoryBytes: number;
  /** Per run; `costUsd` null: no limit. */
  modelLimits: { calls: number; tokens: number; costUsd: number | null };
  maxToolCalls: number;
  maxBytesOut: number;
  workspaceBytes: number;
  /** Origins whose pages may use the API. */
  corsOrigins: readonly string[];
  allowPrivate: readonly AllowRule[];
  /** `provider/model`; null: none. */
  agentModel: string | null;
  /** In order of preference; empty: sessions are not judged. */
  judgeModels: readonly string[];
  modelPrices: Prices;
  customAgents: readonly CustomAgent[];
  /** null: the built-in weights. */
  methodology: OwnWeights | null;
  /** 32 bytes; null: organizations cannot store model keys. */
  secretKey: Uint8Array | null;
  /** Key and base URL of each model provider, from the environment. */
  modelPlaces: Readonly<Record<ModelProvider, ModelPlace>>;
  egressAllow: readonly string[];
  people: PeopleSettings;
  telemetry: TelemetrySettings;
  workers: WorkerSettings;
  drainMs: number;
  logLevel: (typeof logLevels)[number];
  logFormat: (typeof logFormats)[number];
  welcome: boolean;
}>;

/**
 * Reads the settings from an environment. `options`: those that set some of them, by their names. Throws ConfigError on the first invalid
 * value, with what was given, and on an unknown `EVALD_` name.
 */
export function readConfig(env: Record<string, string | undefined>, options: Record<string, string> = {}): Config {
  for (const name of Object.keys(env)) {
    if (!name.startsWith("EVALD_") || name in settings) continue;
    const near = nearest(name, Object.keys(settings));
    throw new ConfigError(`${name} is not a setting.${near ? ` Did you mean ${near}?` : ""}`);
  }
  const read = <T>(name: keyof typeof settings, { default: fallback, parse, secret }: Setting<T>): T =>
    readSetting({ name: options[name] ?? name, value: env[name] ?? fallback, parse, isSecret: secret });
  return Object.freeze({
    dataDir: read("EVALD_DATA_DIR", settings.EVALD_DATA_DIR),
    host: read("EVALD_HOST", settings.EVALD_HOST),
    port: read("EVALD_PORT", settings.EVALD_PORT),
    ...read("EVALD_BASE_URL", settings.EVALD_BASE_URL),
    trustsProxy: read("EVALD_TRUST_PROXY", settings.EVALD_TRUST_PROXY),
    concurrency: read("EVALD_CONCURRENCY", settings.EVALD_CONCURRENCY),
    runTimeoutMs: read("EVALD_RUN_TIMEOUT_SECONDS", settings.EVALD_RUN_TIMEOUT_SECONDS) * 1000,
    idleTimeoutMs: read("EVALD_IDLE_TIMEOUT_SECONDS", settings.EVALD_IDLE_TIMEOUT_SECONDS) * 1000,
    runsPerOrg: read("EVALD_RUNS_PER_ORG", settings.EVALD_RUNS_PER_ORG),
    runsADay: read("EVALD_RUNS_A_DAY", settings.EVALD_RUNS_A_DAY) || null,
    runsPerHost: read("EVALD_RUNS_PER_HOST", settings.EVALD_RUNS_PER_HOST),
    keepSessionsMs: read("EVALD_KEEP_SESSIONS_DAYS", settings.EVALD_KEEP_SESSIONS_DAYS) * 24 * 3600_000 || null,
    maxPages: read("EVALD_MAX_PAGES", settings.EVALD_MAX_PAGES),
    maxRequests: read("EVALD_MAX_REQUESTS", settings.EVALD_MAX_REQUESTS),
    agentMemoryBytes: read("EVALD_AGENT_MEMORY_MB", settings.EVALD_AGENT_MEMORY_MB) * 1024 * 1024,
    modelLimits: {
      calls: read("EVALD_MAX_MODEL_CALLS", settings.EVALD_MAX_MODEL_CALLS),
      tokens: read("EVALD_MAX_TOKENS", settings.EVALD_MAX_TOKENS),
      costUsd: read("EVALD_MAX_COST_USD", settings.EVALD_MAX_COST_USD) || null,
    },
    maxToolCalls: read("EVALD_MAX_TOOL_CALLS", settings.EVALD_MAX_TOOL_CALLS),
    maxBytesOut: read("EVALD_MAX_UPLOAD_MB", settings.EVALD_MAX_UPLOAD_MB) * 1024 * 1024,
    workspaceBytes: read("EVALD_WORKSPACE_MB", settings.EVALD_WORKSPACE_MB) * 1024 * 1024,
    corsOrigins: read("EVALD_CORS_ORIGINS", settings.EVALD_CORS_ORIGINS),
    allowPrivate: read("EVALD_ALLOW_PRIVATE", settings.EVALD_ALLOW_PRIVATE),
    agentModel: read("EVALD_AGENT_MODEL", settings.EVALD_AGENT_MODEL),
    judgeModels: read("EVALD_JUDGE_MODEL", settings.EVALD_JUDGE_MODEL),
    modelPrices: read("EVALD_MODEL_PRICES", settings.EVALD_MODEL_PRICES),
    customAgents: read("EVALD_AGENTS", settings.EVALD_AGENTS),
    methodology: read("EVALD_METHODOLOGY", settings.EVALD_METHODOLOGY),
    secretKey: read("EVALD_SECRET_KEY", settings.EVALD_SECRET_KEY),
    modelPlaces: readModelPlaces(env),
    egressAllow: read("EVALD_EGRESS_ALLOW", settings.EVALD_EGRESS_ALLOW),
    people: readPeopleSettings((name) => read(name, settings[name] as Setting<never>)),
    telemetry: readTelemetrySettings((name) => read(name, settings[name] as Setting<never>)),
    workers: readWorkerSettings((name) => read(name, settings[name] as Setting<never>)),
    drainMs: read("EVALD_DRAIN_SECONDS", settings.EVALD_DRAIN_SECONDS) * 1000,
    logLevel: read("EVALD_LOG_LEVEL", settings.EVALD_LOG_LEVEL),
    logFormat: read("EVALD_LOG_FORMAT", settings.EVALD_LOG_FORMAT),
    welcome: read("EVALD_WELCOME", settings.EVALD_WELCOME),
  });
}

/** The known name most similar to a mistyped one by shared bigrams (Dice coefficient, at least 0.6), if any. */
function nearest(name: string, known: string[]): string | undefined {
  const pieces = (text: string) => new Set(Array.from({ length: text.length - 1 }, (_, i) => text.slice(i, i + 2)));
  const own = pieces(name);
  const scored = known.map((other) => {
    const theirs = pieces(other);
    return { other, score: (2 * own.intersection(theirs).size) / (own.size + theirs.size) };
  });
  const best = scored.sort((a, b) => b.score - a.score)[0];
  return best && best.score >= 0.6 ? best.other : undefined;
}
