import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { ConfigError } from "./errors.ts";
import {
  type ModelPlace,
  type ModelProvider,
  modelSetting,
  modelsSetting,
  type Prices,
  pricesSetting,
  readModelPlaces,
  secretSetting,
} from "./modelsettings.ts";
import { type PeopleSettings, peopleSettings, readPeopleSettings } from "./peoplesettings.ts";
import { type OwnWeights, weightsSetting } from "./weights.ts";

/** A private place that the operator opened: a host name, an address or a CIDR range, on one port or (null) on all. */
export type AllowRule = { host: string; port: number | null };

const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;

type Setting<T> = { default: string; means: string; parse: (value: string) => T; secret?: boolean };

const bad = (expected: string) => {
  throw new ConfigError(expected);
};

const integer = (min: number, max: number) => (value: string) =>
  /^\d{1,9}$/.test(value) && Number(value) >= min && Number(value) <= max
    ? Number(value)
    : bad(`a whole number from ${min} to ${max}`);

const usd = (value: string) =>
  /^\d{1,6}(\.\d{1,6})?$/.test(value) ? Number(value) : bad("an amount in USD, as in 0.5");

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
    return bad("an http or https address without user, query or fragment, as in https://example.com/evals");
  const basePath = url.pathname.replace(/\/+$/, "");
  return { baseUrl: url.origin + basePath, basePath };
}

const allowSyntax =
  "hosts, host:port, addresses or CIDR ranges, separated by commas, as in docs.internal:8080,10.0.0.0/8";

const hostsSyntax =
  "host names, separated by commas, or *.example.com for all below one, as in api.acme.example,*.acme.dev";

/** `docs.internal`, `docs.internal:8080`, `127.0.0.1:4000`, `[::1]:80`, `10.0.0.0/8`, `fd00::/8`. */
function allowRule(text: string): AllowRule {
  const match =
    /^\[(?<v6>[0-9a-f:.]+)\](?::(?<p6>\d+))?$/i.exec(text) ??
    /^(?<host>[a-z0-9._-]+(?:\/\d{1,2})?)(?::(?<port>\d+))?$/i.exec(text) ??
    /^(?<host>[0-9a-f:.]*:[0-9a-f:.]*(?:\/\d{1,3})?)$/i.exec(text);
  const groups = match?.groups;
  if (!groups) return bad(allowSyntax);
  const host = (groups.v6 ?? groups.host ?? "").toLowerCase();
  const objection = objectionTo(host);
  if (objection) return bad(`${allowSyntax}; ${objection}`);
  const port = groups.p6 ?? groups.port;
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65535)) return bad("a port from 1 to 65535");
  return { host, port: port === undefined ? null : Number(port) };
}

/** What is wrong with a host, an address or a range of the right characters; null if nothing is. */
function objectionTo(text: string): string | null {
  const [host = "", bits] = text.split("/");
  const version = isIP(host);
  if (version === 0) {
    if (bits !== undefined) return `the range ${text} needs a whole address before its slash`;
    // A name whose last part is a number is read as an IPv4 address everywhere.
    return /:|(^|\.)(\d+|0x[0-9a-f]*)\.?$/.test(host) ? `${host} is no address` : null;
  }
  if (bits === undefined) return null;
  const length = Number(bits);
  if (length > (version === 4 ? 32 : 128)) return `the range ${text} is longer than its address`;
  const mapped = version === 6 ? ipaddr.IPv6.parse(host) : null;
  if (!mapped?.isIPv4MappedAddress()) return null;
  const plain = `${mapped.toIPv4Address()}/${Math.max(length - 96, 0)}`;
  return `${text} holds IPv4 addresses: write ${plain}`;
}

const settings = {
  EVALD_DATA_DIR: setting("./data", "folder that holds everything", (value) => value || bad("a folder")),
  EVALD_HOST: setting("127.0.0.1", "address to listen on", (value) => value || bad("an address, as in 127.0.0.1")),
  EVALD_PORT: setting("3000", "port to listen on; 0 takes a free one and prints it", integer(0, 65535)),
  EVALD_BASE_URL: setting(
    "",
    "address that people and programs use, path included; default: where it listens",
    baseUrl,
  ),
  EVALD_CONCURRENCY: setting("4", "runs at once", integer(1, 64)),
  EVALD_RUN_TIMEOUT_SECONDS: setting("600", "longest time of one run", integer(1, 86_400)),
  EVALD_IDLE_TIMEOUT_SECONDS: setting("300", "longest time in which an agent may do nothing", integer(1, 86_400)),
  EVALD_RUNS_PER_ORG: setting("64", "runs at once of one organisation, unless it has its own number", integer(1, 64)),
  EVALD_RUNS_A_DAY: setting(
    "0",
    "runs that one organisation may begin within 24 hours, unless it has its own number; more wait; 0: as many as it likes",
    integer(0, 1_000_000),
  ),
  EVALD_RUNS_PER_HOST: setting("4", "runs at once that load the same host", integer(1, 64)),
  EVALD_KEEP_SESSIONS_DAYS: setting(
    "90",
    "age at which the events of a session are dropped; its report stays; 0: never",
    integer(0, 36_500),
  ),
  EVALD_MAX_PAGES: setting("25", "pages that the explorer reads on its way to the goal", integer(1, 1000)),
  EVALD_MAX_REQUESTS: setting("400", "requests that an agent makes in one run", integer(1, 10_000)),
  EVALD_AGENT_MEMORY_MB: setting(
    "1024",
    "memory that the process of one agent, and each of its commands, may take, in MiB",
    integer(128, 65_536),
  ),
  EVALD_MAX_MODEL_CALLS: setting("60", "calls of its model that an agent may make in one run", integer(1, 100_000)),
  EVALD_MAX_TOKENS: setting("1000000", "tokens that the model may use in one run, in and out", integer(1, 999_999_999)),
  EVALD_MAX_COST_USD: setting(
    "2",
    "what the model may cost in one run, in USD; 0: as much as the other limits let it",
    usd,
  ),
  EVALD_MAX_TOOL_CALLS: setting(
    "200",
    "calls of tools that an agent with a model may make in one run",
    integer(1, 100_000),
  ),
  EVALD_MAX_UPLOAD_MB: setting("50", "what an agent with a model may send out in one run, in MiB", integer(1, 100_000)),
  EVALD_WORKSPACE_MB: setting("1024", "room for the files of one run, in MiB", integer(1, 1_000_000)),
  EVALD_ALLOW_PRIVATE: setting("", `private places that runs may reach: ${allowSyntax}`, (value) =>
    items(value).map(allowRule),
  ),
  EVALD_AGENT_MODEL: setting("", "model of agents that need one, as in anthropic/claude-opus-4-8", modelSetting),
  EVALD_JUDGE_MODEL: setting(
    "",
    "models that judge sessions, separated by commas, as in openai/gpt-5; the first of another family than the agent's does",
    modelsSetting,
  ),
  EVALD_MODEL_PRICES: setting(
    "",
    "prices of models that evald does not know, JSON or a file of it: USD for a million tokens",
    pricesSetting,
  ),
  EVALD_METHODOLOGY: setting(
    "",
    "weights of your own for the dimensions of a score: JSON with an id and the weights, or a file of it",
    weightsSetting,
  ),
  EVALD_SECRET_KEY: {
    ...setting("", "key that encrypts the model keys of organisations: 32 bytes as base64 or hex", secretSetting),
    secret: true,
  },
  EVALD_EGRESS_ALLOW: setting("", `hosts that commands of every run may reach: ${hostsSyntax}`, (value) =>
    items(value.toLowerCase()).map((item) => (/^(\*\.)?[a-z0-9_-][a-z0-9._-]*$/.test(item) ? item : bad(hostsSyntax))),
  ),
  ...peopleSettings,
  EVALD_DRAIN_SECONDS: setting("30", "time that a stop leaves to running work", integer(0, 3600)),
  EVALD_LOG_LEVEL: setting("info", `least level that is logged: ${logLevels.join(", ")}`, oneOf(logLevels)),
  EVALD_WELCOME: setting(
    "1",
    "1: a first start makes an example organisation and runs an example; 0: it does not",
    flag,
  ),
};

function setting<T>(fallback: string, means: string, parse: (value: string) => T): Setting<T> {
  return { default: fallback, means, parse };
}

/** Every setting with its default and meaning, in the order of the README's table. */
export const settingTable = Object.entries(settings).map(([name, { default: fallback, means }]) => ({
  name,
  default: fallback,
  means,
}));

export type Config = Readonly<{
  dataDir: string;
  host: string;
  port: number;
  /** null: the address that the service listens on. Never ends in a slash. */
  baseUrl: string | null;
  /** The path of `baseUrl`, before every route: empty, or as in `/evals`. */
  basePath: string;
  concurrency: number;
  runTimeoutMs: number;
  idleTimeoutMs: number;
  runsPerOrg: number;
  /** null: no limit. */
  runsADay: number | null;
  runsPerHost: number;
  /** null: for ever. */
  keepSessionsMs: number | null;
  maxPages: number;
  maxRequests: number;
  agentMemoryBytes: number;
  /** Of one run; `costUsd` null: no limit. */
  modelLimits: { calls: number; tokens: number; costUsd: number | null };
  maxToolCalls: number;
  maxBytesOut: number;
  workspaceBytes: number;
  allowPrivate: readonly AllowRule[];
  /** `provider/model`; null: none. */
  agentModel: string | null;
  /** Best first; empty: nobody judges. */
  judgeModels: readonly string[];
  modelPrices: Prices;
  /** null: those of evald. */
  methodology: OwnWeights | null;
  /** 32 bytes; null: organisations keep no model keys. */
  secretKey: Uint8Array | null;
  /** What the environment says about each provider of models. */
  modelPlaces: Readonly<Record<ModelProvider, ModelPlace>>;
  egressAllow: readonly string[];
  people: PeopleSettings;
  drainMs: number;
  logLevel: (typeof logLevels)[number];
  welcome: boolean;
}>;

/**
 * Reads the settings from an environment. Throws ConfigError on the first bad value and on an `EVALD_` name that is no setting.
 */
export function readConfig(env: Record<string, string | undefined>): Config {
  for (const name of Object.keys(env)) {
    if (!name.startsWith("EVALD_") || name in settings) continue;
    const near = nearest(name, Object.keys(settings));
    throw new ConfigError(`${name} is not a setting${near ? `; did you mean ${near}?` : ""}`);
  }
  const read = <T>(name: keyof typeof settings, { default: fallback, parse, secret }: Setting<T>): T => {
    const value = env[name] ?? fallback;
    try {
      return parse(value);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      throw new ConfigError(`${name} ${secret ? "" : `is ${JSON.stringify(value)}, but `}must be ${error.message}`);
    }
  };
  return Object.freeze({
    dataDir: read("EVALD_DATA_DIR", settings.EVALD_DATA_DIR),
    host: read("EVALD_HOST", settings.EVALD_HOST),
    port: read("EVALD_PORT", settings.EVALD_PORT),
    ...read("EVALD_BASE_URL", settings.EVALD_BASE_URL),
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
    allowPrivate: read("EVALD_ALLOW_PRIVATE", settings.EVALD_ALLOW_PRIVATE),
    agentModel: read("EVALD_AGENT_MODEL", settings.EVALD_AGENT_MODEL),
    judgeModels: read("EVALD_JUDGE_MODEL", settings.EVALD_JUDGE_MODEL),
    modelPrices: read("EVALD_MODEL_PRICES", settings.EVALD_MODEL_PRICES),
    methodology: read("EVALD_METHODOLOGY", settings.EVALD_METHODOLOGY),
    secretKey: read("EVALD_SECRET_KEY", settings.EVALD_SECRET_KEY),
    modelPlaces: readModelPlaces(env),
    egressAllow: read("EVALD_EGRESS_ALLOW", settings.EVALD_EGRESS_ALLOW),
    people: readPeopleSettings((name) => read(name, settings[name] as Setting<never>)),
    drainMs: read("EVALD_DRAIN_SECONDS", settings.EVALD_DRAIN_SECONDS) * 1000,
    logLevel: read("EVALD_LOG_LEVEL", settings.EVALD_LOG_LEVEL),
    welcome: read("EVALD_WELCOME", settings.EVALD_WELCOME),
  });
}

/** The known name that shares the most two-letter pieces with a mistyped one (Dice coefficient, at least 0.6), if any. */
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
