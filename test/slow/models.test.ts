import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { getModel, listModelSecrets, listModels, removeModelKey, setModelKey } from "../../src/models/models.ts";
import { testApp } from "../support/app.ts";
import { buildExecutable, call, emptyFolder, executable } from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";

const secretKey = Buffer.alloc(32, 7).toString("base64");
const envKey = "sk-ant-from-the-environment";
const orgKey = "sk-ant-of-the-organization";

describe("an organization's keys", () => {
  const env = { EVALD_SECRET_KEY: secretKey, ANTHROPIC_API_KEY: envKey };

  test("take precedence over the environment's, and can be removed", () => {
    const { service, a, b } = testApp({ env });
    const { ctx } = service;
    expect(getModel(ctx, a.org, "anthropic/claude-opus-4-8")).toEqual({
      id: "anthropic/claude-opus-4-8",
      provider: "anthropic",
      name: "claude-opus-4-8",
      baseUrl: "https://api.anthropic.com/v1",
      key: envKey,
      prices: {},
      allow: null,
    });
    setModelKey(ctx, a.org, "anthropic", `${orgKey}\n`, "https://proxy.example.com");
    expect(getModel(ctx, a.org, "anthropic/claude-opus-4-8")).toMatchObject({
      baseUrl: "https://proxy.example.com/v1",
      key: orgKey,
      allow: [],
    });
    // The other organization has neither its key nor its URL.
    expect(getModel(ctx, b.org, "anthropic/claude-opus-4-8")).toMatchObject({
      baseUrl: "https://api.anthropic.com/v1",
      key: envKey,
    });
    expect([listModelSecrets(ctx, a.org), listModelSecrets(ctx, b.org)]).toEqual([[orgKey, envKey], [envKey]]);
    removeModelKey(ctx, a.org, "anthropic");
    expect(getModel(ctx, a.org, "anthropic/x").key).toBe(envKey);
    expect(() => removeModelKey(ctx, a.org, "anthropic")).toThrow("has no API key for anthropic");
  });

  test("are listed with their source and last characters, and never whole", () => {
    const { service, a } = testApp({ env: { ...env, OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:11434/v1" } });
    setModelKey(service.ctx, a.org, "openai", "sk-proj-0123456789abcd");
    expect(listModels(service.ctx, a.org)).toEqual([
      { provider: "anthropic", source: "environment", key: "…ment", baseUrl: "https://api.anthropic.com/v1" },
      { provider: "openai", source: "organization", key: "…abcd", baseUrl: "https://api.openai.com/v1" },
      { provider: "google", source: "none", key: "", baseUrl: "https://generativelanguage.googleapis.com/v1beta" },
      { provider: "openai-compatible", source: "environment", key: "no key", baseUrl: "http://127.0.0.1:11434/v1" },
    ]);
  });

  test("are encrypted in the database, and can be decrypted only with the same secret, in the same place", () => {
    const { service, a, b, db } = testApp({ env });
    setModelKey(service.ctx, a.org, "anthropic", orgKey);
    setModelKey(service.ctx, a.org, "openai", orgKey);
    const sealed = () =>
      db.$client.query<{ sealed: Uint8Array }, []>("select sealed from model_keys order by provider").all();
    const [first, second] = sealed().map((row) => Buffer.from(row.sealed));
    expect(first?.includes(orgKey)).toBe(false);
    expect(Buffer.from(db.$client.serialize()).includes(orgKey)).toBe(false);
    expect(first?.equals(second as Buffer)).toBe(false);

    const read = () => getModel(service.ctx, a.org, "openai/x").key;
    expect(read()).toBe(orgKey);
    const bend = Buffer.from(second as Buffer);
    bend[20] = (bend[20] as number) ^ 1;
    for (const other of [first, bend]) {
      db.$client.run("update model_keys set sealed = ? where provider = 'openai'", [other as Buffer]);
      expect(read).toThrow(/different EVALD_SECRET_KEY/);
    }
    db.$client.run("update model_keys set org_id = ? where provider = 'anthropic'", [b.org]);
    expect(() => getModel(service.ctx, b.org, "anthropic/x")).toThrow(/different EVALD_SECRET_KEY/);
    expect(listModelSecrets(service.ctx, b.org)).toEqual([envKey]);
  });

  test.each([
    ["anthropic", orgKey, undefined, {}, /^bad_request: .*EVALD_SECRET_KEY/],
    ["anthropic", " \n", undefined, env, /^bad_request: Invalid key: /],
    ["anthropic", "two lines\nof it", undefined, env, /^bad_request: Invalid key: /],
    ["openai-compatible", "x", undefined, env, /openai-compatible .*--base-url/],
    ["openai", "x", "file:///etc/passwd", env, /^bad_request: Invalid base URL: /],
    ["openai", "x", "https://user:word@example.com/v1", env, /^bad_request: Invalid base URL: /],
  ] as const)("can't be invalid or have an invalid URL: %s", (provider, key, baseUrl, settings, message) => {
    const { service, a } = testApp({ env: settings });
    expect(() => setModelKey(service.ctx, a.org, provider, key, baseUrl)).toThrow(message);
    expect(listModels(service.ctx, a.org).filter(({ source }) => source === "organization")).toEqual([]);
  });

  test.each([
    ["claude", /Invalid model "claude"/],
    ["mistral/large", /Invalid model "mistral\/large"/],
    ["google/../../files", /Invalid model "google/],
    ["openai/gpt-5", /openai\/gpt-5.* OPENAI_API_KEY /],
    ["openai-compatible/llama3", / OPENAI_COMPATIBLE_BASE_URL /],
  ])("are needed: %s can't be called, and the error says what to do", (id, message) => {
    const { service, a } = testApp({ env });
    expect(() => getModel(service.ctx, a.org, id)).toThrow(message);
  });
});

test("the log contains no key of the environment", async () => {
  const script = `
    import { createLog } from ${JSON.stringify(join(import.meta.dir, "../../src/log.ts"))};
    createLog({ logLevel: "info", logFormat: "json" }, ["${envKey}"]).error({ err: new Error("refused ${envKey}") }, "${envKey}");
  `;
  const child = Bun.spawn([process.execPath, "-e", script], { stderr: "pipe" });
  const said = await new Response(child.stderr).text();
  expect(said).toContain("refused [redacted]");
  expect(said).not.toContain(envKey);
});

describe("evald model", () => {
  let fake: ReturnType<typeof serveFakeModel>;
  beforeAll(async () => {
    await buildExecutable();
    const opus = {
      turns: [{ model: "claude-opus-4-8", text: "Yes.", usage: { input: 1000, cached: 400, output: 100 } }],
    };
    const unpaid = { turns: [{ fail: { status: 402, message: "no credits" } }] };
    fake = serveFakeModel({ key: orgKey, scenarios: { opus, unpaid } });
  }, 300_000);
  afterAll(() => fake.stop());

  const withKey = async (
    args: string[],
    { cwd, env, stdin }: { cwd: string; env: Record<string, string>; stdin: string },
  ) => {
    const child = Bun.spawn([executable, ...args], {
      cwd,
      env,
      stdin: new Blob([stdin]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, stdout, stderr };
  };

  test("sets a key from stdin, lists, tests and removes it, and never prints it", async () => {
    const cwd = emptyFolder();
    const env = {
      EVALD_SECRET_KEY: secretKey,
      EVALD_MODEL_PRICES: '{"openai/text": {"in": 10, "out": 100, "cached": 1}}',
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
    };
    await call(["org", "create", "Acme"], { cwd });
    let said = "";
    for (const [provider, baseUrl] of Object.entries(fake.baseUrls)) {
      const set = await withKey(["model", "set-key", provider, "--base-url", baseUrl], {
        cwd,
        env,
        stdin: `${orgKey}\n`,
      });
      expect([set.code, set.stdout, set.stderr]).toEqual([
        0,
        `${provider}\n`,
        expect.stringContaining(`${provider} (…tion)`),
      ]);
      const tried = await call(["model", "test", `${provider}/text`, "--json"], { cwd, env });
      expect([tried.code, tried.stderr]).toEqual([
        0,
        expect.stringMatching(/^text answered after \d+ ms: 100 tokens in, 20 out, /),
      ]);
      expect(JSON.parse(tried.stdout)).toMatchObject({
        model: "text",
        costUsd: provider === "openai" ? 0.00264 : null,
      });
      said += set.stderr + tried.stdout + tried.stderr;
    }
    const priced = await call(["model", "test", "anthropic/opus"], { cwd, env });
    expect(priced.stderr).toMatch(/^claude-opus-4-8 answered after \d+ ms: 1000 tokens in, 100 out, \$0\.005700\.\n$/);
    const list = await call(["model", "list"], { cwd, env });
    expect(list.stdout).toMatch(/^PROVIDER +SOURCE +KEY +BASE URL\nanthropic +organization +…tion +http:/);
    const refused = await call(["model", "test", "openai/unauthorized"], { cwd, env });
    expect([refused.code, refused.stdout]).toEqual([2, ""]);
    expect(refused.stderr).toMatch(
      /^error: .*openai .*\(401\): invalid key; .*OPENAI_API_KEY.* evald model set-key openai/,
    );
    // The call is like an agent's: it has a tool, and for OpenAI it uses the newer protocol.
    const [first] = fake.requests.filter(({ path }) => path === "/v1/responses");
    expect(first?.body).toMatchObject({ model: "text", tools: [{ type: "function" }], stream: true });
    const refusals = {
      "openai/nosuch": ["openai", "404", "the model nosuch does not exist", fake.baseUrls.openai],
      "openai-compatible/garbage": ["openai-compatible", fake.baseUrls.openai],
      "openai-compatible/half": ["openai-compatible", "sent an incomplete response"],
      "openai-compatible/unpaid": ["openai-compatible", "402", "no credits"],
    };
    for (const [model, facts] of Object.entries(refusals)) {
      const { code, stdout, stderr } = await call(["model", "test", model], { cwd, env });
      expect([2, 3]).toContain(code);
      expect([stdout, stderr.startsWith("error: ")]).toEqual(["", true]);
      for (const fact of facts) expect(stderr).toContain(fact);
    }
    expect((await call(["model", "test", "google/uncounted"], { cwd, env })).stderr).toMatch(
      /^uncounted answered after \d+ ms\. .*token usage/,
    );
    const gone = await call(["model", "remove-key", "openai"], { cwd, env });
    expect([gone.code, gone.stdout]).toEqual([0, "openai\n"]);
    const after = await call(["model", "test", "openai/text"], { cwd, env });
    expect([after.code, after.stderr]).toEqual([2, expect.stringMatching(/openai\/text.* OPENAI_API_KEY/)]);
    expect(said + list.stdout + refused.stderr).not.toContain(orgKey);
  });
});
