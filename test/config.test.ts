import { describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../src/config/config.ts";
import { withSecretFiles } from "../src/config/secret-files.ts";
import { ConfigError } from "../src/errors.ts";

const weights = {
  "Goal achievement": 50,
  "Docs discoverability": 20,
  "Docs quality": 10,
  "Error recovery": 15,
  Efficiency: 0,
  Autonomy: 5,
};

const aider = {
  ...{ id: "aider", command: "aider", args: ["--model", "{model}"], env: { OPENAI_API_KEY: "{token}" } },
  ...({ stream: "none", provider: "openai" } as const),
};

test("every setting has its default if the environment is empty", () => {
  expect(readConfig({ PATH: "/bin" })).toEqual({
    dataDir: "./data",
    host: "127.0.0.1",
    port: 3000,
    baseUrl: null,
    basePath: "",
    trustsProxy: false,
    concurrency: 4,
    runTimeoutMs: 1_800_000,
    idleTimeoutMs: 300_000,
    runsPerOrg: 64,
    runsADay: null,
    runsPerHost: 4,
    keepSessionsMs: 90 * 24 * 3_600_000,
    keepAuditLogMs: 400 * 24 * 3_600_000,
    maxPages: 25,
    maxRequests: 400,
    agentMemoryBytes: 1024 ** 3,
    modelLimits: { calls: 200, tokens: 5_000_000, costUsd: 2 },
    maxToolCalls: 200,
    maxBytesOut: 50 * 1024 ** 2,
    workspaceBytes: 1024 ** 3,
    corsOrigins: [],
    allowPrivate: [],
    agentModel: null,
    judgeModels: [],
    modelPrices: {},
    customAgents: [],
    methodology: null,
    secretKey: null,
    modelEndpoints: {
      anthropic: { key: null, baseUrl: "https://api.anthropic.com/v1" },
      openai: { key: null, baseUrl: "https://api.openai.com/v1" },
      google: { key: null, baseUrl: "https://generativelanguage.googleapis.com/v1beta" },
      "openai-compatible": { key: null, baseUrl: null },
    },
    egressAllow: [],
    workers: { redisUrl: null, waitMs: 600_000, labels: [], gatewayUrl: null },
    people: { canCreateOrgs: false, mail: null, oidc: null },
    telemetry: { metrics: null, otlp: null, latestReleaseUrl: null },
    backups: null,
    drainMs: 30_000,
    logLevel: "info",
    logFormat: "auto",
    welcome: true,
  });
});

test("every setting is read", () => {
  expect(
    readConfig({
      EVALD_DATA_DIR: "/var/lib/evald",
      EVALD_HOST: "0.0.0.0",
      EVALD_PORT: "0",
      EVALD_BASE_URL: "https://example.com/evals/",
      EVALD_CONCURRENCY: "8",
      EVALD_RUN_TIMEOUT_SECONDS: "60",
      EVALD_IDLE_TIMEOUT_SECONDS: "5",
      EVALD_RUNS_PER_ORG: "2",
      EVALD_RUNS_A_DAY: "100",
      EVALD_RUNS_PER_HOST: "1",
      EVALD_KEEP_SESSIONS_DAYS: "0",
      EVALD_KEEP_AUDIT_LOG_DAYS: "0",
      EVALD_MAX_PAGES: "10",
      EVALD_MAX_REQUESTS: "50",
      EVALD_AGENT_MEMORY_MB: "2048",
      EVALD_MAX_MODEL_CALLS: "5",
      EVALD_MAX_TOKENS: "9000",
      EVALD_MAX_COST_USD: "0",
      EVALD_MAX_TOOL_CALLS: "7",
      EVALD_MAX_UPLOAD_MB: "1",
      EVALD_WORKSPACE_MB: "3",
      EVALD_CORS_ORIGINS: "https://app.acme.example/, http://localhost:5173",
      EVALD_ALLOW_PRIVATE: "docs.internal, Docs.internal:8080,10.0.0.0/8,127.0.0.1:4000,[::1]:80,fd00::/8,::1",
      EVALD_AGENT_MODEL: "anthropic/claude-opus-4-8",
      EVALD_JUDGE_MODEL: "openai-compatible/meta/llama-4:free, openai/gpt-5",
      EVALD_MODEL_PRICES:
        '{"openai-compatible/llama3": {"in": 0.2, "out": 0.6}, "openai/x": {"in": 1, "out": 2, "cached": 0}}',
      EVALD_AGENTS: JSON.stringify([aider]),
      EVALD_METHODOLOGY: JSON.stringify({ id: "acme-1", weights }),
      EVALD_SECRET_KEY: "07".repeat(32),
      ANTHROPIC_API_KEY: " sk-ant-1\n",
      ANTHROPIC_BASE_URL: "http://127.0.0.1:4000/",
      OPENAI_API_KEY: "",
      OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:11434/v1/",
      EVALD_REDIS_URL: "redis://:secret@redis.example:6379/2",
      EVALD_WORKER_WAIT_SECONDS: "0",
      EVALD_WORKER_LABELS: "gpu, eu,gpu",
      EVALD_GATEWAY_URL: "https://evald.example/gateway/",
      EVALD_EGRESS_ALLOW: "api.acme.example, *.Acme.dev",
      EVALD_PEOPLE_MAKE_ORGS: "1",
      EVALD_SMTP_URL: "smtps://me:secret@mail.example.com",
      EVALD_MAIL_FROM: "evald <evald@example.com>",
      EVALD_OIDC_ISSUER: "https://id.example.com/realms/acme/",
      EVALD_OIDC_CLIENT_ID: "evald",
      EVALD_OIDC_CLIENT_SECRET: "s3cret",
      EVALD_OIDC_NAME: "Acme ID",
      EVALD_OIDC_JOIN: "Acme.example=Acme Inc",
      EVALD_METRICS_ADDRESS: "[::1]:9464",
      EVALD_OTLP_URL: "https://otel.example.com/v1/traces",
      EVALD_OTLP_HEADERS: "Authorization=Bearer a=b, x-team=docs",
      EVALD_OTLP_CONTENT: "1",
      EVALD_LATEST_RELEASE_URL: "https://releases.example.com/latest.json",
      EVALD_BACKUP_TO: "s3://backups/evald/",
      EVALD_BACKUP_SCHEDULE: "2:05",
      EVALD_BACKUP_KEEP_DAILY: "3",
      EVALD_BACKUP_KEEP_WEEKLY: "0",
      AWS_ACCESS_KEY_ID: "AKIA1",
      AWS_SECRET_ACCESS_KEY: "s3cret",
      AWS_REGION: "eu-central-1",
      AWS_ENDPOINT_URL: "https://s3.example.com",
      EVALD_DRAIN_SECONDS: "0",
      EVALD_TRUST_PROXY: "1",
      EVALD_LOG_LEVEL: "debug",
      EVALD_LOG_FORMAT: "json",
      EVALD_WELCOME: "0",
    }),
  ).toEqual({
    dataDir: "/var/lib/evald",
    host: "0.0.0.0",
    port: 0,
    baseUrl: "https://example.com/evals",
    basePath: "/evals",
    trustsProxy: true,
    concurrency: 8,
    runTimeoutMs: 60_000,
    idleTimeoutMs: 5_000,
    runsPerOrg: 2,
    runsADay: 100,
    runsPerHost: 1,
    keepSessionsMs: null,
    keepAuditLogMs: null,
    maxPages: 10,
    maxRequests: 50,
    agentMemoryBytes: 2 * 1024 ** 3,
    modelLimits: { calls: 5, tokens: 9000, costUsd: null },
    maxToolCalls: 7,
    maxBytesOut: 1024 ** 2,
    workspaceBytes: 3 * 1024 ** 2,
    corsOrigins: ["https://app.acme.example", "http://localhost:5173"],
    allowPrivate: [
      { host: "docs.internal", port: null },
      { host: "docs.internal", port: 8080 },
      { host: "10.0.0.0/8", port: null },
      { host: "127.0.0.1", port: 4000 },
      { host: "::1", port: 80 },
      { host: "fd00::/8", port: null },
      { host: "::1", port: null },
    ],
    agentModel: "anthropic/claude-opus-4-8",
    judgeModels: ["openai-compatible/meta/llama-4:free", "openai/gpt-5"],
    modelPrices: {
      "openai-compatible/llama3": { in: 0.2, out: 0.6, cached: 0.2 },
      "openai/x": { in: 1, out: 2, cached: 0 },
    },
    customAgents: [aider],
    methodology: { id: "acme-1", weights },
    secretKey: new Uint8Array(32).fill(7),
    modelEndpoints: {
      anthropic: { key: "sk-ant-1", baseUrl: "http://127.0.0.1:4000/v1" },
      openai: { key: null, baseUrl: "https://api.openai.com/v1" },
      google: { key: null, baseUrl: "https://generativelanguage.googleapis.com/v1beta" },
      "openai-compatible": { key: null, baseUrl: "http://127.0.0.1:11434/v1" },
    },
    egressAllow: ["api.acme.example", "*.acme.dev"],
    workers: {
      redisUrl: "redis://:secret@redis.example:6379/2",
      waitMs: 0,
      labels: ["gpu", "eu"],
      gatewayUrl: "https://evald.example/gateway",
    },
    people: {
      canCreateOrgs: true,
      mail: { url: "smtps://me:secret@mail.example.com", from: "evald <evald@example.com>" },
      oidc: {
        issuer: "https://id.example.com/realms/acme",
        clientId: "evald",
        clientSecret: "s3cret",
        name: "Acme ID",
        join: { domain: "acme.example", org: { name: "Acme Inc" } },
      },
    },
    telemetry: {
      metrics: { host: "[::1]", port: 9464 },
      otlp: {
        url: "https://otel.example.com/v1/traces",
        headers: { authorization: "Bearer a=b", "x-team": "docs" },
        withContent: true,
      },
      latestReleaseUrl: "https://releases.example.com/latest.json",
    },
    backups: {
      to: {
        ...{ kind: "store", bucket: "backups", prefix: "evald/", endpoint: "https://s3.example.com" },
        ...{ region: "eu-central-1", accessKeyId: "AKIA1", secretAccessKey: "s3cret", sessionToken: null },
      },
      ...{ schedule: "5 2 * * *", keepDaily: 3, keepWeekly: 0 },
    },
    drainMs: 0,
    logLevel: "debug",
    logFormat: "json",
    welcome: false,
  });
});

test.each([
  ["EVALD_DATA_DIR", ""],
  ["EVALD_HOST", ""],
  ["EVALD_PORT", "65536"],
  ["EVALD_PORT", "-1"],
  ["EVALD_PORT", "80.5"],
  ["EVALD_BASE_URL", "example.com"],
  ["EVALD_BASE_URL", "https://x@example.com"],
  ["EVALD_BASE_URL", "https://:word@example.com"],
  ["EVALD_CONCURRENCY", "0"],
  ["EVALD_CORS_ORIGINS", "*"],
  ["EVALD_CORS_ORIGINS", "https://app.acme.example/path"],
  ["EVALD_CORS_ORIGINS", "https://*.acme.example"],
  ["EVALD_CORS_ORIGINS", "https://app.acme.example, http://localhost:5173, https://docs.*.example"],
  ["EVALD_ALLOW_PRIVATE", "http://10.0.0.1"],
  ["EVALD_ALLOW_PRIVATE", "10.0.0.0/33"],
  ["EVALD_ALLOW_PRIVATE", "10.0.0/8"],
  ["EVALD_ALLOW_PRIVATE", "docs.internal/8"],
  ["EVALD_ALLOW_PRIVATE", "10.0.0.1:0"],
  ["EVALD_ALLOW_PRIVATE", "fd00::/129"],
  ["EVALD_EGRESS_ALLOW", "https://acme.dev"],
  ["EVALD_EGRESS_ALLOW", "acme.dev:443"],
  ["EVALD_EGRESS_ALLOW", "*"],
  ["EVALD_GATEWAY_URL", "http://evald.example/gateway"],
  ["EVALD_GATEWAY_URL", "https://evald.example/gateway?a=1"],
  ["EVALD_EGRESS_ALLOW", "a.*.dev"],
  ["EVALD_LOG_LEVEL", "loud"],
  ["EVALD_LOG_FORMAT", "xml"],
  ["EVALD_WELCOME", "yes"],
  ["EVALD_AGENT_MODEL", "claude"],
  ["EVALD_JUDGE_MODEL", "google/../files"],
  ["EVALD_BACKUP_TO", "s3://"],
  ["EVALD_BACKUP_SCHEDULE", "daily"],
  ["EVALD_BACKUP_SCHEDULE", "24:00"],
  ["EVALD_BACKUP_SCHEDULE", "0 0 30 2 *"],
  ["EVALD_BACKUP_KEEP_DAILY", "0"],
])("%s=%s is rejected, and the message quotes the value", (name, value) => {
  expect(() => readConfig({ [name]: value })).toThrow(ConfigError);
  expect(() => readConfig({ [name]: value })).toThrow(`Invalid ${name} ${JSON.stringify(value)}: must be `);
});

test.each([
  // Clients of an open Redis server can start agents on workers.
  "redis://redis.example:6379",
  "redis://user@10.0.0.1",
  "http://127.0.0.1:6379",
  "redis://127.0.0.1/evald",
])("EVALD_REDIS_URL=%s is rejected", (url) => {
  expect(() => readConfig({ EVALD_REDIS_URL: url })).toThrow("Invalid EVALD_REDIS_URL: must be ");
});

test.each([
  "redis://127.0.0.1:6379",
  "redis://localhost",
  "redis://[::1]:6379/1",
  "redis://:word@10.0.0.1",
  "rediss://redis.example",
])("EVALD_REDIS_URL=%s is accepted", (url) => {
  expect(readConfig({ EVALD_REDIS_URL: url }).workers.redisUrl).toBe(url);
});

test.each([
  ["EVALD_ALLOW_PRIVATE", "::ffff:10.0.0.0/104", "10.0.0.0/8"],
  ["EVALD_ALLOW_PRIVATE", "127.0.0.1, 999.9.9.9", "999.9.9.9"],
  ["EVALD_ALLOW_PRIVATE", "true", "true"],
  ["EVALD_ALLOW_PRIVATE", "Yes", "yes"],
  ["EVALD_ALLOW_PRIVATE", "1", "1 "],
  ["EVALD_ALLOW_PRIVATE", "127.0.0.1,,docs.internal", "empty"],
  ["EVALD_ALLOW_PRIVATE", "127.0.0.1, ", "empty"],
  ["EVALD_EGRESS_ALLOW", "true", "true"],
  ["EVALD_ALLOW_PRIVATE", "10.0.0:80", "10.0.0 "],
  ["EVALD_ALLOW_PRIVATE", "2130706433", "2130706433 "],
  ["EVALD_ALLOW_PRIVATE", "0x7f.1", "0x7f.1 "],
  ["EVALD_ALLOW_PRIVATE", "0177.0.0.1", "0177.0.0.1 "],
  ["EVALD_ALLOW_PRIVATE", "1::2::3", "1::2::3 "],
  ["EVALD_ALLOW_PRIVATE", "[::1::]:80", "::1:: "],
  ["EVALD_MODEL_PRICES", '{"openai/x": {"in": "1", "out": 2}}', "openai/x"],
  ["EVALD_MODEL_PRICES", "/nowhere/prices.json", "ENOENT"],
  ["EVALD_AGENTS", "/nowhere/agents.json", "ENOENT"],
  ["EVALD_AGENTS", JSON.stringify([{ ...aider, provider: "nobody" }]), "0.provider"],
  ["EVALD_AGENTS", JSON.stringify([{ ...aider, cwd: "/" }]), "0.cwd"],
  ["EVALD_AGENTS", JSON.stringify([{ ...aider, id: "A!" }]), "0.id must be 1 to 63"],
  ["EVALD_AGENTS", JSON.stringify([{ ...aider, env: { "1x": "y" } }]), "0.env.1x"],
  ["EVALD_AGENTS", JSON.stringify([aider, aider]), "used twice"],
  ["EVALD_METHODOLOGY", "/nowhere/weights.json", "ENOENT"],
  ["EVALD_METHODOLOGY", "null", "ENOENT"],
  ["EVALD_METHODOLOGY", JSON.stringify({ id: "1", weights }), "[a-z]"],
  ["EVALD_METHODOLOGY", JSON.stringify({ id: "a", weights, curves: {} }), '"curves"'],
  ["EVALD_METHODOLOGY", JSON.stringify({ id: "a", weights: { ...weights, Speed: 1 } }), '"Speed"'],
  ["EVALD_METHODOLOGY", JSON.stringify({ id: "a", weights: { ...weights, Autonomy: 5.5 } }), '"Autonomy"'],
  ["EVALD_METHODOLOGY", JSON.stringify({ id: "a", weights: { ...weights, Autonomy: 6 } }), "101"],
  ["EVALD_METHODOLOGY", '{"id": "a"}', '"Goal achievement"'],
])("%s=%s is rejected, and the message names the invalid part", (name, value, part) => {
  const [, reason = ""] = refusal({ [name]: value }).split(JSON.stringify(value));
  expect(reason).toContain(part);
});

test.each([
  ["EVALD_SECRET_KEY", "tooshort"],
  ["OPENAI_API_KEY", "two words"],
  ["OPENAI_BASE_URL", "localhost:1"],
])("%s=%s is rejected, and its value is not quoted", (name, value) => {
  const message = refusal({ [name]: value });
  expect(message).toStartWith(`Invalid ${name}: must be `);
  expect(message).not.toContain(value);
});

test("backups to a store need its credentials", () => {
  expect(refusal({ EVALD_BACKUP_TO: "s3://backups", AWS_ACCESS_KEY_ID: "a" })).toContain("AWS_SECRET_ACCESS_KEY");
});

test("an unknown setting is rejected with a suggestion", () => {
  expect(refusal({ EVALD_PROT: "80" })).toBe("EVALD_PROT is not a setting. Did you mean EVALD_PORT?");
  expect(refusal({ EVALD_XYZ: "" })).toBe("EVALD_XYZ is not a setting.");
});

function refusal(env: Record<string, string>): string {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error("the settings were accepted");
}

describe("secrets in files", () => {
  const folder = mkdtempSync(join(tmpdir(), "evald-test-"));
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const key = Buffer.alloc(32, 7).toString("base64");

  test("are read from NAME_FILE and from the credentials of systemd", () => {
    const redis = "rediss://evald-worker-a:pass@redis.example.com:6379";
    write("EVALD_REDIS_URL", `${redis}\n`);
    write("ANTHROPIC_API_KEY", "sk-of-a-credential");
    const env = withSecretFiles({
      EVALD_SECRET_KEY_FILE: write("key", `${key}\n`),
      AWS_SECRET_ACCESS_KEY_FILE: write("store", "s3cret\n"),
      ANTHROPIC_API_KEY: "sk-set",
      CREDENTIALS_DIRECTORY: folder,
    });
    const { secretKey, workers, modelEndpoints } = readConfig(env);
    expect([Buffer.from(secretKey ?? []).toString("base64"), workers.redisUrl]).toEqual([key, redis]);
    expect([env.AWS_SECRET_ACCESS_KEY, modelEndpoints.anthropic.key]).toEqual(["s3cret", "sk-set"]);
  });

  test("must be readable, unambiguous and secrets", () => {
    const refuse = (env: Record<string, string>) => () => readConfig(withSecretFiles(env));
    expect(refuse({ EVALD_SECRET_KEY_FILE: "/nowhere/key" })).toThrow("EVALD_SECRET_KEY_FILE");
    expect(refuse({ EVALD_SECRET_KEY: key, EVALD_SECRET_KEY_FILE: write("key", key) })).toThrow("not both");
    expect(refuse({ EVALD_PORT_FILE: write("port", "80") })).toThrow("EVALD_PORT_FILE is not a setting");
  });
});
