import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import { toPreset } from "../../src/agents/coding/preset.ts";
import type { AgentEntry } from "../../src/config/agent-entry.ts";
import { testApp } from "../support/app.ts";
import {
  buildExecutable,
  call,
  client,
  emptyFolder,
  filesIn,
  furnish,
  serve,
  startWorker,
  untilRun,
} from "../support/executable.ts";
import { startRedis } from "../support/redis.ts";
import { serveSite } from "../support/site.ts";

// Coding agents that work with the login of a person, and the hosts of their vendors.

beforeAll(buildExecutable, 300_000);
const program = join(import.meta.dir, "..", "support", "fake-agent.mjs");
const hourMs = 3600_000;
const accessToken = `login-${crypto.randomUUID()}`;
const refreshToken = `refresh-${crypto.randomUUID()}`;
const digest = new Bun.CryptoHasher("sha256").update(accessToken).digest("hex");
const emptyDigest = new Bun.CryptoHasher("sha256").update("").digest("hex");
const vendorRequests: (string | null)[] = [];
const vendor = serveSite({
  "/": (request) => {
    vendorRequests.push(request.headers.get("x-login"));
    return new Response(request.headers.has("x-login") ? "welcome" : "who?");
  },
});
const closings: (() => unknown)[] = [() => vendor.stop()];
afterAll(async () => {
  for (const close of closings.reverse()) await close();
});

const login: AgentEntry["login"] = {
  file: ".acme/auth.json",
  hosts: ["api.acme.test"],
  expiry: "expires",
  emptied: ["tokens.refresh_token"],
  env: { GATEWAY: null, TOKEN: null },
};
const file = (expires: number) =>
  JSON.stringify({ expires, tokens: { access_token: accessToken, refresh_token: refreshToken } });

/** An organization with an agent that takes a login. */
function openApp(mode: string, work: string, entry: Partial<AgentEntry> = {}) {
  const clock = { offsetMs: 0 };
  const preset = toPreset({
    ...{ id: "fake", command: program, args: [mode, "agent-logins", work] },
    ...{ stream: "claude", provider: "openai-compatible" },
    env: { GATEWAY: "{gateway}", TOKEN: "{token}" },
    ...entry,
  });
  const app = testApp({
    agents: { fake: createCodingAgent(preset, { path: process.env.PATH ?? "" }) },
    now: () => Date.now() + clock.offsetMs,
    env: {
      OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:1/v1",
      EVALD_AGENT_MODEL: "openai-compatible/fine",
      EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
      EVALD_ALLOW_PRIVATE: "127.0.0.1,127.0.0.2",
    },
  });
  const { send } = app;
  return {
    ...app,
    clock,
    setLogin: (expires: number) => send("PUT", "/api/v1/agent-logins/fake", { body: { file: file(expires) } }),
    createPrompt: (options: object = {}) =>
      send("POST", "/api/v1/prompts", {
        body: { text: "See https://docs.test/", agents: [{ agent: "fake", options }] },
      }),
    /** A run, with all that can be read of it, and the whole database. */
    async run(promptId: string) {
      const urlMap = { "api.acme.test": vendor.url };
      const { body: asked } = await send("POST", `/api/v1/prompts/${promptId}/run`, { body: { urlMap } });
      await app.runJobs();
      const path = `/api/v1/runs/${asked.runId}`;
      const { body: run } = await send("GET", path);
      const [events, output, trace, page, list, settings] = await Promise.all(
        [
          `${path}/events?attempt=1`,
          `${path}/output?attempt=1`,
          `/api/v1/reports/${run.report?.slug}/trace?limit=500`,
          `/runs/${asked.runId}`,
          "/api/v1/agent-logins",
          "/settings/models",
        ].map(async (each) => JSON.stringify((await send("GET", each)).body)),
      );
      const database = Buffer.from(app.db.$client.serialize()).toString("latin1");
      const all = { events, output, trace, page, list, settings, database, run: JSON.stringify(run) };
      return { run, trace: trace ?? "", events: events ?? "", all };
    },
  };
}

/** A secret as it could be stored. */
const spellings = (secret: string) => [
  secret,
  Buffer.from(secret).toString("base64").replace(/=+$/, ""),
  Buffer.from(secret).toString("hex"),
];

/** Where the tokens of the login are found. */
const leaksIn = (texts: Record<string, string | undefined>) =>
  Object.entries(texts).flatMap(([name, text]) =>
    [accessToken, refreshToken].flatMap((token) =>
      spellings(token)
        .filter((each) => text?.includes(each))
        .map(() => name),
    ),
  );

const answerOf = (trace: string) => JSON.parse(JSON.parse(trace).events.at(-1).reason);

test("an agent reads its login, and no token of it is stored or returned", async () => {
  const app = openApp("login", "", { login });
  expect((await app.setLogin(Date.now() + hourMs)).body).toMatchObject({ agent: "fake", state: "usable" });
  const { body: prompt } = await app.createPrompt({ login: true });
  const { run, trace, all } = await app.run(prompt.id);
  expect(run.failureReason).toBeNull();
  const answer = answerOf(trace);
  expect(answer).toEqual({ digest, refresh_token: "", canChange: false, vendor: "welcome", hasGateway: false });
  expect(vendorRequests).toEqual([accessToken]);
  // A mapped host is one that the run tests, so it is part of the session.
  expect(JSON.parse(trace).events).toContainEqual(expect.objectContaining({ type: "http", status: 200 }));
  expect(run.report.metrics).toMatchObject({ costUsd: null });
  expect(leaksIn(all)).toEqual([]);
  expect(all.trace).toContain("c1");
  await app.service.stop(0);
}, 60_000);

test("a login that the agent must be able to change is a copy of its own", async () => {
  const app = openApp("login", "", { login: { ...login, file: ".acme/auth.json", copied: true } });
  await app.setLogin(Date.now() + hourMs);
  const { body: prompt } = await app.createPrompt({ login: true });
  for (const _ of [1, 2]) expect(answerOf((await app.run(prompt.id)).trace)).toMatchObject({ digest, canChange: true });
  await app.service.stop(0);
}, 60_000);

test("a run that does not use the login does not see it", async () => {
  const app = openApp("login", "", { login });
  await app.setLogin(Date.now() + hourMs);
  const { body: prompt } = await app.createPrompt();
  const { trace } = await app.run(prompt.id);
  expect(answerOf(trace)).toMatchObject({ digest: emptyDigest, hasGateway: true });
  await app.service.stop(0);
}, 60_000);

test("an expired or removed login fails the run before the agent starts, and a rejected one afterwards", async () => {
  const app = openApp("login", "rejected", { login });
  expect((await app.createPrompt({ login: true })).body.detail).toContain("agents.0.options.login");
  await app.setLogin(Date.now() + hourMs);
  const { body: prompt } = await app.createPrompt({ login: true });
  const failures = [];
  for (const change of [
    () => {},
    () => {
      app.clock.offsetMs = 2 * hourMs;
    },
    () => app.send("DELETE", "/api/v1/agent-logins/fake"),
  ]) {
    await change();
    const { run, events, all } = await app.run(prompt.id);
    failures.push([
      run.failure.cause,
      run.failure.code,
      events.includes('name\\":\\"started'),
      events.includes("login_needed"),
    ]);
    expect(leaksIn(all)).toEqual([]);
  }
  expect(failures).toEqual([
    ["credentials", "agent_login_needed", true, true],
    ["credentials", "agent_login_needed", false, true],
    ["credentials", "agent_login_needed", false, true],
  ]);
  await app.service.stop(0);
}, 60_000);

test("an agent reaches the hosts of its vendor and no blocked ones, and neither is part of the session", async () => {
  const own = Bun.serve({ hostname: "127.0.0.2", port: 0, fetch: () => new Response("welcome") });
  const urls = [
    `http://127.0.0.2:${own.port}/`,
    "https://needed.test/",
    "https://blocked.test/",
    "https://other.test/",
  ];
  const app = openApp("requests", JSON.stringify(urls), {
    hosts: ["127.0.0.2", "needed.test"],
    blockedHosts: ["blocked.test"],
  });
  const { body: prompt } = await app.createPrompt();
  const { trace } = await app.run(prompt.id);
  // An allowed host that does not exist is no refusal.
  expect(answerOf(trace)).toEqual(["200 000", "000 502", "000 403", "000 403"]);
  const events: { type: string; url: string; error?: { kind: string } }[] = JSON.parse(trace).events;
  expect(events.filter(({ type }) => type === "http").map(({ url }) => URL.parse(url)?.hostname)).toEqual([
    "other.test",
  ]);
  await own.stop(true);
  await app.service.stop(0);
}, 60_000);

test("a worker gives a login to the agent that it is for, and keeps and logs nothing of it", async () => {
  const redis = await startRedis();
  closings.push(redis.kill);
  const entryOf = (id: string, work: string) => ({
    ...{ id, command: program, args: ["login", "worker-logins", work], stream: "claude" },
    ...{ provider: "openai-compatible", env: { GATEWAY: "{gateway}", TOKEN: "{token}" }, login },
  });
  const EVALD_AGENTS = JSON.stringify([entryOf("fake", ""), entryOf("expired", "rejected")]);
  const cwd = emptyFolder();
  const { key } = await furnish(cwd);
  const service = await serve({
    cwd,
    env: {
      EVALD_AGENTS,
      EVALD_REDIS_URL: redis.url,
      OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:1/v1",
      OPENAI_COMPATIBLE_API_KEY: "none",
      EVALD_AGENT_MODEL: "openai-compatible/fine",
      EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
    },
  });
  closings.push(() => service.signal("SIGKILL"));
  const EVALD_GATEWAY_URL = `${service.url}/gateway`;
  const worker = startWorker({ EVALD_AGENTS, EVALD_REDIS_URL: redis.url, EVALD_GATEWAY_URL });
  closings.push(() => worker.child.kill("SIGKILL"));
  const ask = client(service.url, key);
  for (const agent of ["fake", "expired"])
    await ask("PUT", `/api/v1/agent-logins/${agent}`, { file: file(Date.now() + hourMs) });
  const results = [];
  for (const [agent, options] of [
    ["fake", { login: true }],
    ["expired", { login: true }],
    ["fake", {}],
  ] as const) {
    const { body: prompt } = await ask("POST", "/api/v1/prompts", {
      text: "See https://docs.test/",
      agents: [{ agent, options }],
    });
    const urlMap = { "api.acme.test": vendor.url };
    const { body } = await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap });
    const run = await untilRun(ask, body.runId, "completed", "failed");
    const path = `/api/v1/runs/${run.runId}`;
    const { body: trace } = await ask("GET", `/api/v1/reports/${run.report?.slug}/trace?limit=500`);
    const [events, output] = await Promise.all(
      ["events", "output"].map(async (name) => {
        const response = await fetch(`${service.url}${path}/${name}?attempt=1`, {
          headers: { authorization: `Bearer ${key}` },
        });
        return await response.text();
      }),
    );
    expect(leaksIn({ events, output, run: JSON.stringify(run), trace: JSON.stringify(trace) })).toEqual([]);
    const answer = run.report && JSON.parse(trace.events.at(-1).reason);
    expect(events).toContain("tool_call");
    results.push({ code: run.failure?.code ?? null, answer });
  }
  const answer = { digest, refresh_token: "", canChange: false, vendor: "welcome", hasGateway: false };
  expect(results).toEqual([
    { code: null, answer },
    { code: "agent_login_needed", answer: null },
    { code: null, answer: { digest: emptyDigest, canChange: false, vendor: "who?", hasGateway: true } },
  ]);
  const exported = join(cwd, "acme.jsonl");
  expect((await call(["export", exported], { cwd })).code).toBe(0);
  const left = { redis: filesIn(redis.folder), tmp: filesIn(worker.folder) };
  worker.child.kill();
  await worker.child.exited;
  await service.stop();
  const kept = { files: filesIn(cwd), log: service.stderr(), workerLog: await worker.log };
  expect(leaksIn({ ...left, ...kept })).toEqual([]);
  // They were searched in what a session leaves.
  expect(Object.values({ ...left, ...kept }).filter((text) => text.includes(digest)).length).toBeGreaterThan(0);
}, 60_000);
