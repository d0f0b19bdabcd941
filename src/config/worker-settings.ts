import { type SettingValues, setting, throwExpected } from "./setting.ts";

const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * Parses the URL of a Redis server; null if empty. Throws ConfigError for a server on the network without TLS and password, because its clients can
 * start agents on workers.
 */
function parseRedisUrl(value: string): string | null {
  if (value === "") return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !/^rediss?:$/.test(url.protocol) || url.hostname === "" || !/^(\/\d*)?$/.test(url.pathname))
    return throwExpected("a URL such as redis://127.0.0.1:6379 or rediss://:PASSWORD@redis.example.com:6379/0");
  if (url.protocol === "redis:" && url.password === "" && !loopback.test(url.hostname))
    return throwExpected(
      "a rediss:// URL or one with a password, because clients of this server can run agents on your workers",
    );
  return value;
}

/** Parses the URL at which workers reach the model gateway, and removes a trailing slash; null if empty. Throws ConfigError. */
function parseGatewayUrl(value: string): string | null {
  if (value === "") return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash)
    return throwExpected("an http or https URL such as https://evald.example.com/gateway");
  if (url.protocol === "http:" && !loopback.test(url.hostname))
    return throwExpected("an https:// URL, because the tokens of runs would be sent in clear text");
  return value.replace(/\/+$/, "");
}

/** The format of a label of a worker. */
export const workerLabel = /^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$/;

/** Parses labels separated by commas or spaces. Throws ConfigError. */
function parseLabels(value: string): string[] {
  const all = value.split(/[\s,]+/).filter((label) => label !== "");
  if (all.length > 20 || !all.every((label) => workerLabel.test(label)))
    return throwExpected(
      "at most 20 labels separated by commas, each of 1 to 50 letters, digits and . _ -, starting with a letter or digit",
    );
  return [...new Set(all)];
}

function parseSeconds(value: string): number {
  if (!/^\d{1,5}$/.test(value) || Number(value) > 86_400) return throwExpected("a whole number from 0 to 86400");
  return Number(value);
}

/** Settings that connect the service with its workers, followed by the settings of a worker itself, in the order of the documentation. */
export const workerSettings = {
  /** null: agents run on this machine. */
  redisUrl: setting(
    "EVALD_REDIS_URL",
    "",
    "Redis or Valkey server that connects the service with its workers; if set, agents run only on workers",
    parseRedisUrl,
    { isSecret: true },
  ),
  /** How long a run waits for a worker that meets its requirements. */
  waitMs: setting(
    "EVALD_WORKER_WAIT_SECONDS",
    "600",
    "How long a run waits for a worker that has its agent, sandbox and labels before it fails, in seconds; runs wait for busy workers without limit",
    (value) => parseSeconds(value) * 1000,
  ),
  /** The labels of this worker. */
  labels: setting(
    "EVALD_WORKER_LABELS",
    "",
    "For workers: labels that prompts can require, separated by commas, such as gpu,eu",
    parseLabels,
  ),
  gatewayUrl: setting(
    "EVALD_GATEWAY_URL",
    "",
    "For workers: URL of the service's model gateway, which is its public URL with /gateway",
    parseGatewayUrl,
  ),
};

/** How safe the connection to a Redis server is. */
export const describeRedisAccess = (redisUrl: string): { isLocal: boolean; hasTls: boolean; hasPassword: boolean } => {
  const { hostname, protocol, password } = new URL(redisUrl);
  return { isLocal: loopback.test(hostname), hasTls: protocol === "rediss:", hasPassword: password !== "" };
};

/** The password in the URL of a Redis server, which must be redacted. */
export const redisSecrets = ({ redisUrl }: SettingValues<typeof workerSettings>): string[] =>
  redisUrl === null ? [] : [new URL(redisUrl).password].filter(Boolean);
