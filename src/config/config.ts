import { ConfigError } from "../errors.ts";
import { parseAgentEntries } from "./agent-entries.ts";
import { allowSyntax, isSwitchWord, parseAllowRules } from "./allow-rules.ts";
import { backupSettings, toBackupSettings } from "./backup-settings.ts";
import {
  parseModelList,
  parseModelSetting,
  parsePrices,
  parseSecretKey,
  readModelEndpoints,
} from "./model-settings.ts";
import { peopleSettings, toPeopleSettings } from "./people-settings.ts";
import { listSettings, parseFlag, readSettings, setting, splitList, throwExpected, toPlainUrl } from "./setting.ts";
import { telemetrySettings, toTelemetrySettings } from "./telemetry-settings.ts";
import { parseWeights } from "./weights.ts";
import { workerSettings } from "./worker-settings.ts";

const logFormats = ["auto", "text", "json"] as const;
const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;

const integer = (min: number, max: number) => (value: string) =>
  /^\d{1,9}$/.test(value) && Number(value) >= min && Number(value) <= max
    ? Number(value)
    : throwExpected(`a whole number from ${min} to ${max}`);

const parseUsd = (value: string) =>
  /^\d{1,6}(\.\d{1,6})?$/.test(value) ? Number(value) : throwExpected("an amount in USD, such as 0.5");

/** For a setting with a larger unit than the field in `Config`. */
const times = (factor: number, parse: (value: string) => number) => (value: string) => parse(value) * factor;

/** For a setting where 0 means no limit. */
const unlessZero = (parse: (value: string) => number) => (value: string) => parse(value) || null;

const oneOf =
  <T extends string>(values: readonly T[]) =>
  (value: string) =>
    values.find((each) => each === value) ?? throwExpected(`one of ${values.join(", ")}`);

const nonEmpty = (expected: string) => (value: string) => value || throwExpected(expected);

const parseBaseUrl = (value: string): string | null =>
  value === ""
    ? null
    : (toPlainUrl(value) ??
      throwExpected("an http or https URL without user name, query or fragment, such as https://example.com/evals"));

const originSyntax = "a comma-separated list of http or https origins, such as https://app.acme.example";

function toOrigin(value: string): string {
  const origin = URL.parse(value)?.origin;
  const isOnlyOrigin = value === origin || value === `${origin}/`;
  if (!origin || !/^https?:/.test(origin) || !isOnlyOrigin) return throwExpected(originSyntax);
  // No page has an origin with a *.
  if (origin.includes("*")) return throwExpected(`${originSyntax}; a * matches nothing, so list each origin`);
  return origin;
}

const hostsSyntax =
  "a comma-separated list of host names, where *.example.com matches all subdomains, such as api.acme.example,*.acme.dev";

function toHost(item: string): string {
  if (isSwitchWord(item)) throwExpected(`${hostsSyntax}: name the hosts to allow, in place of ${item}`);
  return /^(\*\.)?[a-z0-9_-][a-z0-9._-]*$/.test(item) ? item : throwExpected(hostsSyntax);
}

const secondMs = 1000;
const dayMs = 24 * 3600 * secondMs;
const mib = 1024 * 1024;

/** Every setting, by the name of its field in `Config`, in the order of the documentation. */
const settings = {
  dataDir: setting("EVALD_DATA_DIR", "./data", "Data directory", nonEmpty("a directory")),
  host: setting(
    "EVALD_HOST",
    "127.0.0.1",
    "Host to listen on",
    nonEmpty("a host name or IP address, such as 127.0.0.1"),
  ),
  port: setting("EVALD_PORT", "3000", "Port to listen on; 0 picks a free port and prints it", integer(0, 65535)),
  /** null: the address the service listens on. Never ends in a slash. */
  baseUrl: setting(
    "EVALD_BASE_URL",
    "",
    "Public URL of the service, with its path; default: the address it listens on",
    parseBaseUrl,
  ),
  trustsProxy: setting(
    "EVALD_TRUST_PROXY",
    "0",
    "1: a proxy in front of the service sets X-Forwarded-For, and its last address is the client's; 0: ignore the header",
    parseFlag,
  ),
  /** Origins whose pages may use the API. */
  corsOrigins: setting(
    "EVALD_CORS_ORIGINS",
    "",
    "Comma-separated list of origins whose pages may use the API with an API key, such as https://app.acme.example; default: none",
    (value) => splitList(value).map(toOrigin),
  ),
  concurrency: setting("EVALD_CONCURRENCY", "4", "Maximum concurrent runs", integer(1, 64)),
  runTimeoutMs: setting(
    "EVALD_RUN_TIMEOUT_SECONDS",
    "1800",
    "Maximum duration of a run, in seconds",
    times(secondMs, integer(1, 86_400)),
  ),
  idleTimeoutMs: setting(
    "EVALD_IDLE_TIMEOUT_SECONDS",
    "300",
    "How long an agent may be idle before its run is stopped, in seconds",
    times(secondMs, integer(1, 86_400)),
  ),
  runsPerOrg: setting(
    "EVALD_RUNS_PER_ORG",
    "64",
    "Maximum concurrent runs per organization, unless the organization sets its own",
    integer(1, 64),
  ),
  /** null: no limit. */
  runsADay: setting(
    "EVALD_RUNS_A_DAY",
    "0",
    "Maximum runs an organization may start per rolling 24 hours, unless it sets its own; extra runs are queued; 0: unlimited",
    unlessZero(integer(0, 1_000_000)),
  ),
  runsPerHost: setting("EVALD_RUNS_PER_HOST", "4", "Maximum concurrent runs against the same host", integer(1, 64)),
  /** null: forever. */
  keepSessionsMs: setting(
    "EVALD_KEEP_SESSIONS_DAYS",
    "90",
    "Days to keep session events and deliveries of notifications; reports are kept forever; 0: keep all forever",
    unlessZero(times(dayMs, integer(0, 36_500))),
  ),
  /** null: forever. */
  keepAuditLogMs: setting(
    "EVALD_KEEP_AUDIT_LOG_DAYS",
    "400",
    "Days to keep the audit log; 0: keep it forever",
    unlessZero(times(dayMs, integer(0, 36_500))),
  ),
  maxPages: setting(
    "EVALD_MAX_PAGES",
    "25",
    "Maximum pages the explorer reads while looking for the goal",
    integer(1, 1000),
  ),
  maxRequests: setting("EVALD_MAX_REQUESTS", "400", "Maximum HTTP requests per run", integer(1, 10_000)),
  agentMemoryBytes: setting(
    "EVALD_AGENT_MEMORY_MB",
    "1024",
    "Memory limit of an agent's process, and of each of its commands, in MiB",
    times(mib, integer(128, 65_536)),
  ),
  /** Per run; `costUsd` null: no limit. */
  modelLimits: {
    calls: setting("EVALD_MAX_MODEL_CALLS", "200", "Maximum model calls per run", integer(1, 100_000)),
    tokens: setting("EVALD_MAX_TOKENS", "5000000", "Maximum input and output tokens per run", integer(1, 999_999_999)),
    costUsd: setting(
      "EVALD_MAX_COST_USD",
      "2",
      "Maximum model cost per run, in USD; 0: unlimited",
      unlessZero(parseUsd),
    ),
  },
  maxToolCalls: setting("EVALD_MAX_TOOL_CALLS", "200", "Maximum tool calls per run", integer(1, 100_000)),
  maxBytesOut: setting(
    "EVALD_MAX_UPLOAD_MB",
    "50",
    "Maximum data an agent may upload per run, in MiB",
    times(mib, integer(1, 100_000)),
  ),
  workspaceBytes: setting(
    "EVALD_WORKSPACE_MB",
    "1024",
    "Maximum size of the workspace of a run, in MiB",
    times(mib, integer(1, 1_000_000)),
  ),
  allowPrivate: setting(
    "EVALD_ALLOW_PRIVATE",
    "",
    `Private hosts that runs may reach: ${allowSyntax}`,
    parseAllowRules,
  ),
  /** `provider/model`; null: none. */
  agentModel: setting(
    "EVALD_AGENT_MODEL",
    "",
    "Default model of agents that use one, such as anthropic/claude-opus-4-8",
    parseModelSetting,
  ),
  /** In order of preference; empty: sessions are not judged. */
  judgeModels: setting(
    "EVALD_JUDGE_MODEL",
    "",
    "Comma-separated list of models that may judge sessions, such as openai/gpt-5; the first from a different vendor than the agent's model is used",
    parseModelList,
  ),
  modelPrices: setting(
    "EVALD_MODEL_PRICES",
    "",
    "Prices of models that evald has no price for, in USD per million tokens: JSON, or the path of a JSON file",
    parsePrices,
  ),
  customAgents: setting(
    "EVALD_AGENTS",
    "",
    "Additional coding agents: a JSON list, or the path of a file or of a folder with files; see Coding agents",
    parseAgentEntries,
  ),
  /** null: the built-in weights. */
  methodology: setting(
    "EVALD_METHODOLOGY",
    "",
    "Custom weights for the dimensions of a score: JSON with an id and the weights, or the path of a JSON file",
    parseWeights,
  ),
  /** 32 bytes; null: organizations cannot store model keys. */
  secretKey: setting(
    "EVALD_SECRET_KEY",
    "",
    "Key that encrypts the API keys that organizations store for model providers: 32 bytes as base64 or hex",
    parseSecretKey,
    { isSecret: true },
  ),
  egressAllow: setting(
    "EVALD_EGRESS_ALLOW",
    "",
    `Hosts that sandboxed commands may reach in every run: ${hostsSyntax}`,
    (value) => splitList(value.toLowerCase()).map(toHost),
  ),
  people: peopleSettings,
  telemetry: telemetrySettings,
  workers: workerSettings,
  backups: backupSettings,
  drainMs: setting(
    "EVALD_DRAIN_SECONDS",
    "30",
    "Shutdown grace period for active runs, in seconds",
    times(secondMs, integer(0, 3600)),
  ),
  logLevel: setting("EVALD_LOG_LEVEL", "info", `Minimum log level: ${logLevels.join(", ")}`, oneOf(logLevels)),
  logFormat: setting(
    "EVALD_LOG_FORMAT",
    "auto",
    "Log format: text, json, or auto: text on a terminal, else json",
    oneOf(logFormats),
  ),
  welcome: setting(
    "EVALD_WELCOME",
    "1",
    "1: create an example organization and run an example on the first start; 0: start empty",
    parseFlag,
  ),
};

/** Every setting with its default and description, in the order of the documentation. */
export const settingTable = listSettings(settings);

export type Config = ReturnType<typeof readConfig>;

/**
 * Reads the settings from an environment. `options`: as in `readSettings`. Throws ConfigError for the first invalid value, which the error quotes,
 * and for an unknown name with the prefix `EVALD_`.
 */
export function readConfig(env: Record<string, string | undefined>, options: Record<string, string> = {}) {
  const names = settingTable.map(({ name }) => name);
  for (const name of Object.keys(env)) {
    if (!name.startsWith("EVALD_") || names.includes(name)) continue;
    const suggestion = mostSimilar(name, names);
    throw new ConfigError(`${name} is not a setting.${suggestion ? ` Did you mean ${suggestion}?` : ""}`);
  }
  const values = readSettings(settings, env, options);
  return Object.freeze({
    ...values,
    /** The path of `baseUrl`, which is the prefix of every route: empty, or for example `/evals`. */
    basePath: values.baseUrl === null ? "" : new URL(values.baseUrl).pathname.replace(/\/$/, ""),
    /** Key and base URL of each model provider, from the environment. */
    modelEndpoints: readModelEndpoints(env),
    people: toPeopleSettings(values.people),
    telemetry: toTelemetrySettings(values.telemetry),
    /** null: no scheduled backups. */
    backups: toBackupSettings(values.backups, env),
  });
}

/** The minimum similarity of a name that is suggested instead of a mistyped one. */
const minSimilarity = 0.6;

/** The name that is most similar to a mistyped one by shared bigrams (Dice coefficient), if any. */
function mostSimilar(name: string, names: string[]): string | undefined {
  const bigrams = bigramsOf(name);
  const scores = names.map((candidate) => {
    const others = bigramsOf(candidate);
    return { candidate, score: (2 * bigrams.intersection(others).size) / (bigrams.size + others.size) };
  });
  const best = scores.sort((a, b) => b.score - a.score)[0];
  return best && best.score >= minSimilarity ? best.candidate : undefined;
}

const bigramsOf = (text: string): Set<string> =>
  new Set(Array.from({ length: text.length - 1 }, (_, i) => text.slice(i, i + 2)));
