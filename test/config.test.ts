import { expect, test } from "bun:test";
import { readConfig, settingTable } from "../src/config.ts";

const weights = {
  "Goal achievement": 50,
  "Docs discoverability": 20,
  "Docs quality": 10,
  "Error recovery": 15,
  Efficiency: 0,
  Autonomy: 5,
};

test("without an environment every setting has its default", () => {
  expect(readConfig({ PATH: "/bin" })).toEqual({
    dataDir: "./data",
    host: "127.0.0.1",
    port: 3000,
    baseUrl: null,
    basePath: "",
    concurrency: 4,
    runTimeoutMs: 600_000,
    idleTimeoutMs: 300_000,
    runsPerOrg: 64,
    runsADay: null,
    runsPerHost: 4,
    keepSessionsMs: 90 * 24 * 3600_000,
    maxPages: 25,
    maxRequests: 400,
    agentMemoryBytes: 1024 ** 3,
    modelLimits: { calls: 60, tokens: 1_000_000, costUsd: 2 },
    maxToolCalls: 200,
    maxBytesOut: 50 * 1024 ** 2,
    workspaceBytes: 1024 ** 3,
    allowPrivate: [],
    agentModel: null,
    judgeModels: [],
    modelPrices: {},
    methodology: null,
    secretKey: null,
    modelPlaces: {
      anthropic: { key: null, baseUrl: "https://api.anthropic.com/v1" },
      openai: { key: null, baseUrl: "https://api.openai.com/v1" },
      google: { key: null, baseUrl: "https://generativelanguage.googleapis.com/v1beta" },
      "openai-compatible": { key: null, baseUrl: null },
    },
    egressAllow: [],
    people: { mayFound: false, mail: null, oidc: null },
    drainMs: 30_000,
    logLevel: "info",
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
      EVALD_MAX_PAGES: "10",
      EVALD_MAX_REQUESTS: "50",
      EVALD_AGENT_MEMORY_MB: "2048",
      EVALD_MAX_MODEL_CALLS: "5",
      EVALD_MAX_TOKENS: "9000",
      EVALD_MAX_COST_USD: "0",
      EVALD_MAX_TOOL_CALLS: "7",
      EVALD_MAX_UPLOAD_MB: "1",
      EVALD_WORKSPACE_MB: "3",
      EVALD_ALLOW_PRIVATE: "docs.internal, Docs.internal:8080,10.0.0.0/8,127.0.0.1:4000,[::1]:80,fd00::/8,::1",
      EVALD_AGENT_MODEL: "anthropic/claude-opus-4-8",
      EVALD_JUDGE_MODEL: "openai-compatible/meta/llama-4:free, openai/gpt-5",
      EVALD_MODEL_PRICES:
        '{"openai-compatible/llama3": {"in": 0.2, "out": 0.6}, "openai/x": {"in": 1, "out": 2, "cached": 0}}',
      EVALD_METHODOLOGY: JSON.stringify({ id: "acme-1", weights }),
      EVALD_SECRET_KEY: "07".repeat(32),
      ANTHROPIC_API_KEY: " sk-ant-1\n",
      ANTHROPIC_BASE_URL: "http://127.0.0.1:4000/",
      OPENAI_API_KEY: "",
      OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:11434/v1/",
      EVALD_EGRESS_ALLOW: "api.acme.example, *.Acme.dev",
      EVALD_PEOPLE_MAKE_ORGS: "1",
      EVALD_SMTP_URL: "smtps://me:secret@mail.example.com",
      EVALD_MAIL_FROM: "evald <evald@example.com>",
      EVALD_OIDC_ISSUER: "https://id.example.com/realms/acme/",
      EVALD_OIDC_CLIENT_ID: "evald",
      EVALD_OIDC_CLIENT_SECRET: "s3cret",
      EVALD_OIDC_NAME: "Acme ID",
      EVALD_OIDC_JOIN: "Acme.example=Acme Inc",
      EVALD_DRAIN_SECONDS: "0",
      EVALD_LOG_LEVEL: "debug",
      EVALD_WELCOME: "0",
    }),
  ).toEqual({
    dataDir: "/var/lib/evald",
    host: "0.0.0.0",
    port: 0,
    baseUrl: "https://example.com/evals",
    basePath: "/evals",
    concurrency: 8,
    runTimeoutMs: 60_000,
    idleTimeoutMs: 5_000,
    runsPerOrg: 2,
    runsADay: 100,
    runsPerHost: 1,
    keepSessionsMs: null,
    maxPages: 10,
    maxRequests: 50,
    agentMemoryBytes: 2 * 1024 ** 3,
    modelLimits: { calls: 5, tokens: 9000, costUsd: null },
    maxToolCalls: 7,
    maxBytesOut: 1024 ** 2,
    workspaceBytes: 3 * 1024 ** 2,
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
    methodology: { id: "acme-1", weights },
    secretKey: new Uint8Array(32).fill(7),
    modelPlaces: {
      anthropic: { key: "sk-ant-1", baseUrl: "http://127.0.0.1:4000/v1" },
      openai: { key: null, baseUrl: "https://api.openai.com/v1" },
      google: { key: null, baseUrl: "https://generativelanguage.googleapis.com/v1beta" },
      "openai-compatible": { key: null, baseUrl: "http://127.0.0.1:11434/v1" },
    },
    egressAllow: ["api.acme.example", "*.acme.dev"],
    people: {
      mayFound: true,
      mail: { url: "smtps://me:secret@mail.example.com", from: "evald <evald@example.com>" },
      oidc: {
        issuer: "https://id.example.com/realms/acme",
        clientId: "evald",
        clientSecret: "s3cret",
        name: "Acme ID",
        join: { domain: "acme.example", orgName: "Acme Inc" },
      },
    },
    drainMs: 0,
    logLevel: "debug",
    welcome: false,
  });
});

test.each([
  ["EVALD_DATA_DIR", "", "a folder"],
  ["EVALD_HOST", "", "an address, as in 127.0.0.1"],
  ["EVALD_PORT", "65536", "a whole number from 0 to 65535"],
  ["EVALD_PORT", "-1", "a whole number from 0 to 65535"],
  ["EVALD_PORT", "80.5", "a whole number from 0 to 65535"],
  [
    "EVALD_BASE_URL",
    "example.com",
    "an http or https address without user, query or fragment, as in https://example.com/evals",
  ],
  [
    "EVALD_BASE_URL",
    "https://x@example.com",
    "an http or https address without user, query or fragment, as in https://example.com/evals",
  ],
  [
    "EVALD_BASE_URL",
    "https://:word@example.com",
    "an http or https address without user, query or fragment, as in https://example.com/evals",
  ],
  ["EVALD_CONCURRENCY", "0", "a whole number from 1 to 64"],
  [
    "EVALD_ALLOW_PRIVATE",
    "http://10.0.0.1",
    "hosts, host:port, addresses or CIDR ranges, separated by commas, as in docs.internal:8080,10.0.0.0/8",
  ],
  [
    "EVALD_ALLOW_PRIVATE",
    "10.0.0.0/33",
    "hosts, host:port, addresses or CIDR ranges, separated by commas, as in docs.internal:8080,10.0.0.0/8",
  ],
  ...[
    ["::ffff:10.0.0.0/104", "::ffff:10.0.0.0/104 holds IPv4 addresses: write 10.0.0.0/8"],
    ["10.0.0/8", "the range 10.0.0/8 needs a whole address before its slash"],
    ["docs.internal/8", "the range docs.internal/8 needs a whole address before its slash"],
    ["127.0.0.1, 999.9.9.9", "999.9.9.9 is no address"],
    ["10.0.0:80", "10.0.0 is no address"],
    ["2130706433", "2130706433 is no address"],
    ["0x7f.1", "0x7f.1 is no address"],
    ["0177.0.0.1", "0177.0.0.1 is no address"],
    ["1::2::3", "1::2::3 is no address"],
    ["[::1::]:80", "::1:: is no address"],
    ["fd00::/129", "the range fd00::/129 is longer than its address"],
  ].map(([value = "", objection]): [string, string, string] => [
    "EVALD_ALLOW_PRIVATE",
    value,
    `hosts, host:port, addresses or CIDR ranges, separated by commas, as in docs.internal:8080,10.0.0.0/8; ${objection}`,
  ]),
  ["EVALD_ALLOW_PRIVATE", "10.0.0.1:0", "a port from 1 to 65535"],
  ...["https://acme.dev", "acme.dev:443", "*", "a.*.dev"].map((value): [string, string, string] => [
    "EVALD_EGRESS_ALLOW",
    value,
    "host names, separated by commas, or *.example.com for all below one, as in api.acme.example,*.acme.dev",
  ]),
  ["EVALD_LOG_LEVEL", "loud", "one of silent, fatal, error, warn, info, debug, trace"],
  ["EVALD_WELCOME", "yes", "0 or 1"],
])("%s=%s is refused with what would be right", (name, value, expected) => {
  expect(() => readConfig({ [name]: value })).toThrow(`${name} is ${JSON.stringify(value)}, but must be ${expected}`);
});

test.each([
  [
    "EVALD_AGENT_MODEL",
    "claude",
    /^EVALD_AGENT_MODEL is "claude", but must be a provider and a model, as in anthropic\//,
  ],
  ["EVALD_JUDGE_MODEL", "google/../files", /^EVALD_JUDGE_MODEL is "google\/\.\.\/files", but must be a provider and/],
  ["EVALD_MODEL_PRICES", '{"openai/x": {"in": "1", "out": 2}}', /openai\/x needs a number of at least 0 for in$/],
  ["EVALD_MODEL_PRICES", "/nowhere/prices.json", /ENOENT/],
  ["EVALD_METHODOLOGY", "/nowhere/weights.json", /ENOENT/],
  ["EVALD_METHODOLOGY", "null", /ENOENT/],
  ["EVALD_METHODOLOGY", JSON.stringify({ id: "1", weights }), /the id must match \[a-z\]/],
  ["EVALD_METHODOLOGY", JSON.stringify({ id: "a", weights, curves: {} }), /"curves" is not known$/],
  ["EVALD_METHODOLOGY", JSON.stringify({ id: "a", weights: { ...weights, Speed: 1 } }), /"Speed" is not known$/],
  [
    "EVALD_METHODOLOGY",
    JSON.stringify({ id: "a", weights: { ...weights, Autonomy: 5.5 } }),
    /"Autonomy" needs a whole/,
  ],
  [
    "EVALD_METHODOLOGY",
    JSON.stringify({ id: "a", weights: { ...weights, Autonomy: 6 } }),
    /the weights are 101 in all$/,
  ],
  ["EVALD_METHODOLOGY", '{"id": "a"}', /"Goal achievement" needs a whole number from 0 to 100$/],
  [
    "EVALD_SECRET_KEY",
    "tooshort",
    /^EVALD_SECRET_KEY must be 32 bytes as base64 or hex; openssl rand -base64 32 makes/,
  ],
  ["OPENAI_API_KEY", "two words", /^OPENAI_API_KEY must be a key: one line of ASCII characters without blanks$/],
  ["OPENAI_BASE_URL", "localhost:1", /^OPENAI_BASE_URL must be an http or https address/],
])("%s=%s is refused, and no secret is quoted", (name, value, message) => {
  expect(() => readConfig({ [name]: value })).toThrow(message);
});

test("a name that is no setting is refused, with the one that was meant", () => {
  expect(() => readConfig({ EVALD_PROT: "80" })).toThrow("EVALD_PROT is not a setting; did you mean EVALD_PORT?");
  expect(() => readConfig({ EVALD_XYZ: "" })).toThrow(/^EVALD_XYZ is not a setting$/);
});

test("the README lists every setting with its default", async () => {
  const readme = await Bun.file(`${import.meta.dir}/../README.md`).text();
  const missing = settingTable.filter(
    ({ name, default: value }) => !readme.includes(`| \`${name}\` | ${value === "" ? "none" : `\`${value}\``} |`),
  );
  expect(missing).toEqual([]);
});
