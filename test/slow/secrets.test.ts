import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pino from "pino";
import type { ModelProvider } from "../../src/config/model-settings.ts";
import { setModelKey } from "../../src/models/models.ts";
import { emptyFolder } from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { call, finish, modelKey, modelRuns } from "../support/model-runs.ts";

const canary = () => crypto.randomUUID().replaceAll("-", "");
const base64 = (text: string) => Buffer.from(text).toString("base64");

/** Secrets that the service knows, which are found in every encoding. */
const operators = {
  ANTHROPIC_API_KEY: `sk-ant-api03-${canary()}`,
  OPENAI_API_KEY: `sk-proj-${canary()}`,
  GOOGLE_GENERATIVE_AI_API_KEY: `AIzaSy${canary()}`,
};
const own = { anthropic: `sk-ant-own-${canary()}`, openai: `sk-own-${canary()}+/=` };
const known = [...Object.values(operators), ...Object.values(own), modelKey];
const spellings = (secret: string) => [
  secret,
  base64(secret),
  base64(`user:${secret}`),
  Buffer.from(secret).toString("hex"),
  encodeURIComponent(secret),
];

/** Secrets of others, which are recognized by their format, each with the part that must not be found. */
const cloudSecret = base64(canary()).slice(0, 40);
const keyId = `AKIA${canary().toUpperCase().slice(0, 16)}`;
const ownKey = `evals_${canary()}0Abc`;
const bearer = `token-${canary()}`;
const basic = base64(`someone:${canary()}`);
const pem = [1, 2, 3].map(() => base64(canary() + canary()).slice(0, 64));
const jwt = [base64('{"alg":"HS256","typ":"JWT"}'), base64(`{"sub":"${canary()}"}`), canary()]
  .map((each) => each.replace(/=+$/, ""))
  .join(".");
const password = `hunter-${canary()}`;
const looks: Record<string, { text: string; found: string[] }> = {
  "a key of this service": { text: ownKey, found: [ownKey] },
  "a bearer header": { text: `Authorization: Bearer ${bearer}`, found: [bearer] },
  "basic authentication": { text: `Proxy-Authorization: Basic ${basic}`, found: [basic] },
  "a private key": {
    text: `-----BEGIN RSA PRIVATE KEY-----\n${pem.join("\n")}\n-----END RSA PRIVATE KEY-----`,
    found: pem,
  },
  "a cloud's key": {
    text: `AWS_ACCESS_KEY_ID=${keyId}\naws_secret_access_key = ${cloudSecret}`,
    found: [keyId, cloudSecret],
  },
  "a JWT": { text: `session=${jwt}; path=/`, found: [jwt.slice(-30), jwt.split(".")[1] as string] },
  "a password in an address": { text: `postgres://admin:${password}@db.internal:5432/x`, found: [password] },
};
const planted = [...known.flatMap(spellings), ...Object.values(looks).map(({ text }) => text)].join("\n");

let fake: ReturnType<typeof serveFakeModel>;
beforeAll(() => {
  const done = finish("goal_not_met", planted);
  fake = serveFakeModel({
    scenarios: {
      leaks: {
        turns: [
          { reasoning: planted, text: planted, ...call("fetch_page", { url: "https://notes.test/leaks.md" }) },
          call("write_file", { path: "said.txt", text: planted }),
          call("run_command", { command: "cat said.txt; sleep 1.5; cat said.txt >&2; exit 3" }),
          call("http_request", { url: "https://notes.test/broken", headers: { Authorization: `Bearer ${bearer}` } }),
          call("report_friction", {
            title: planted,
            severity: "low",
            quote: planted,
            url: `https://notes.test/${modelKey}`,
          }),
          call("no_such_tool", { text: planted }),
          done,
        ],
      },
      fails: { turns: [{ fail: { status: 500, message: planted, headers: { "retry-after-ms": "1" } } }] },
      refuses: { turns: [{ fail: { status: 401, message: planted } }] },
      hides: { turns: [call("fetch_page", { url: "https://notes.test/leaks.md" }), done] },
    },
  });
});
afterAll(() => fake.stop());

test.each(["leaks", "fails", "refuses", "hides"])(
  "12 kinds of secrets in a page, a command, a model and an error (%s) are not stored, logged or returned",
  async (name) => {
    const dataDir = emptyFolder();
    const log: string[] = [];
    const tokens: string[] = [];
    const tellTokens = () => tokens.flatMap(spellings).join("\n");
    const EVALD_SECRET_KEY = base64(canary());
    const { app, runs } = await modelRuns(fake).runsOf(name, {
      dataDir,
      tokens,
      env: { ...operators, EVALD_SECRET_KEY },
      log: pino({ level: "trace" }, { write: (line: string) => void log.push(line) }),
      pages: {
        // The run's own tokens are included, as if the agent had found them.
        "/leaks.md": () =>
          new Response(`# Leaks\n\n${planted}\n\n${tellTokens()}`, { headers: { "content-type": "text/markdown" } }),
        "/broken": () => Response.json({ error: `${planted}\n${tellTokens()}` }, { status: 500 }),
      },
      before: ({ service, a }) => {
        for (const [provider, secret] of Object.entries(own))
          setModelKey(service.ctx, a.org, provider as ModelProvider, secret);
      },
    });
    const [run] = runs;
    expect(run.status).toBe(name === "leaks" || name === "hides" ? "completed" : "failed");
    const get = async (path: string) => (await app.send("GET", path)).body;
    const slug = run.report?.slug;
    const answers = [run, await get(`/api/v1/runs/${run.runId}/attempts`)];
    if (slug) answers.push(await get(`/api/v1/reports/${slug}`), await get(`/api/v1/reports/${slug}/trace?limit=500`));
    const stored = readdirSync(dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name: file }) => readFileSync(join(parentPath, file), "latin1"));
    const everything = [JSON.stringify(answers), ...stored, ...log].join("\n");
    expect(everything).toContain("[redacted]");
    expect(tokens).toHaveLength(name === "fails" ? 10 : 2);
    const sought = [
      ...[...known, ...tokens, EVALD_SECRET_KEY].flatMap(spellings),
      ...Object.values(looks).flatMap(({ found }) => found),
    ];
    expect(sought.filter((secret) => everything.includes(secret))).toEqual([]);
  },
  300_000,
);
