import { describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { Agent } from "../src/agents/agent.ts";
import { runs } from "../src/db/tables/runs.ts";
import { testApp } from "./support/app.ts";

const hourMs = 3600_000;

/** A service with a prompt, and a function to trigger it with an Idempotency-Key. */
async function setUp() {
  let time = 1_790_000_000_000;
  const t = testApp({ now: () => time });
  const newPrompt = async () =>
    (await t.send("POST", "/api/v1/prompts", { body: { text: "{{a}} and {{b}}" } })).body.id as string;
  const promptId = await newPrompt();
  const body = { urlMap: { "a.test": "https://b.test/" }, templateArgs: { a: "1", b: "2" } };
  const trigger = (
    key: string | null,
    changed: { promptId?: string; body?: unknown; headers?: Record<string, string> } = {},
  ) =>
    t.send("POST", `/api/v1/prompts/${changed.promptId ?? promptId}/run`, {
      body: changed.body ?? body,
      headers: { ...(key === null ? {} : { "idempotency-key": key }), ...changed.headers },
    });
  const count = async () => Number((await t.send("GET", "/api/v1/runs?limit=1")).headers.get("x-total-count"));
  return { ...t, promptId, newPrompt, body, trigger, count, pass: (ms: number) => (time += ms) };
}

describe("an Idempotency-Key", () => {
  test("makes the same request the same run, in any order of its JSON", async () => {
    const { trigger, count } = await setUp();
    const first = await trigger("build-1");
    const again = await trigger("build-1");
    const reordered = await trigger("build-1", {
      body: '{ "templateArgs": {"b": "2", "a": "1"}, "extra": 1, "urlMap": {"a.test": "https://b.test/"} }',
    });
    expect([first.status, again.status, reordered.status]).toEqual([200, 200, 200]);
    expect([again.body, reordered.body]).toEqual([first.body, first.body]);
    expect(await count()).toBe(1);
    expect((await trigger(null)).body.runId).not.toBe(first.body.runId);
    expect((await trigger("build-2")).body.runId).not.toBe(first.body.runId);
  });

  test("is rejected with another request", async () => {
    const { trigger, newPrompt, count } = await setUp();
    await trigger("build-1");
    const other = await newPrompt();
    const answers = [
      await trigger("build-1", { body: { urlMap: {}, templateArgs: { a: "1", b: "2" } } }),
      await trigger("build-1", { body: { urlMap: { "a.test": "https://b.test/" }, templateArgs: { a: "1", b: "3" } } }),
      await trigger("build-1", { promptId: other }),
    ];
    for (const { status, body } of answers)
      expect([status, body]).toEqual([
        409,
        {
          error: "conflict",
          detail: expect.stringContaining("Idempotency-Key"),
        },
      ]);
    expect(await count()).toBe(1);
  });

  test("expires after 24 hours", async () => {
    const { trigger, pass } = await setUp();
    const first = (await trigger("nightly")).body.runId;
    pass(24 * hourMs - 1);
    expect((await trigger("nightly")).body.runId).toBe(first);
    pass(1);
    const second = (await trigger("nightly")).body.runId;
    expect(second).not.toBe(first);
    expect((await trigger("nightly")).body.runId).toBe(second);
  });

  test("returns its run even if the prompt was archived or changed since", async () => {
    const { trigger, send, promptId } = await setUp();
    const first = await trigger("build-1");
    await send("PATCH", `/api/v1/prompts/${promptId}`, { body: { text: "{{c}}", status: "archived" } });
    expect((await trigger("build-1")).body).toEqual(first.body);
    expect((await trigger("build-2")).status).toBe(409);
  });

  test("is independent of the same key of another organization", async () => {
    const { trigger, send, b } = await setUp();
    const headers = { authorization: `Bearer ${b.key}` };
    const theirs = (await send("POST", "/api/v1/prompts", { body: { text: "x" }, headers })).body.id;
    await trigger("build-1");
    const own = await trigger("build-1", { promptId: theirs, body: { urlMap: {} }, headers });
    expect(own.status).toBe(200);
    expect((await send("GET", "/api/v1/runs", { headers })).body.length).toBe(1);
  });

  test("makes a hundred concurrent requests create one run", async () => {
    const { trigger, count } = await setUp();
    const answers = await Promise.all(Array.from({ length: 100 }, () => trigger("storm")));
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.runId}`)).size).toBe(1);
    expect(await count()).toBe(1);
  });

  test("has 1 to 255 visible characters", async () => {
    const { trigger, count } = await setUp();
    const bad = ["", "two words", "a".repeat(256), "caf\u00e9", "tab\tinside"];
    const statuses: number[] = [];
    for (const key of bad) statuses.push((await trigger(key)).status);
    expect(statuses).toEqual([400, 400, 400, 400, 400]);
    expect((await trigger("two words")).body.detail).toStartWith("Invalid idempotency-key: must be");
    expect(await count()).toBe(0);
    for (const key of ["a", "a".repeat(255), "~!@#"]) expect((await trigger(key)).status).toBe(200);
  });

  test("works with arguments of any name", async () => {
    const { trigger } = await setUp();
    const odd = { a: "1", b: "2", toString: "3", valueOf: "4", constructor: "5" };
    const body = { urlMap: { toString: "https://b.test/" }, templateArgs: odd };
    const first = await trigger("build-1", { body });
    expect([first.status, (await trigger("build-1", { body })).body]).toEqual([200, first.body]);
  });

  test("isn't used up by a rejected request", async () => {
    const { trigger } = await setUp();
    expect((await trigger("build-1", { body: { urlMap: {} } })).body.error).toBe("missing_template_vars");
    expect((await trigger("build-1")).status).toBe(200);
  });
});

describe("a urlMap", () => {
  /** The start URL of a run whose prompt has a URL on another port of a mapped host, or the error. */
  async function startsOf(urlMap: Record<string, string>): Promise<string | string[] | undefined> {
    const { send, db } = testApp();
    const text = "Read https://docs.test/a and http://docs.test:8080/b";
    const prompt = (await send("POST", "/api/v1/prompts", { body: { text } })).body;
    const { status, body } = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap } });
    if (status !== 200) return `${status} ${body.error}: ${body.detail}`;
    return db.select().from(runs).where(eq(runs.id, body.runId)).get()?.task.startUrls;
  }
  const to = "http://127.0.0.1:9/";

  test("makes the mapped host a start URL, however the key is written", async () => {
    const [a, b] = ["https://docs.test/a", "http://docs.test:8080/b"];
    expect(await startsOf({ "docs.test": to })).toEqual([a, b]);
    expect(await startsOf({ "DOCS.test:443": to })).toEqual([a, b]);
    expect(await startsOf({ "docs.test:8080": to })).toEqual([b, a]);
    expect(await startsOf({ "docs.test:80": to })).toEqual(["http://docs.test/", a, b]);
    expect(await startsOf({ "HTTPS://new.test:443/": to })).toEqual(["https://new.test/", a, b]);
    expect(await startsOf({ "127.1": to })).toEqual(["https://127.0.0.1/", a, b]);
    expect(await startsOf({ "bücher.test:8443": to })).toEqual(["https://xn--bcher-kva.test:8443/", a, b]);
  });

  test("can have keys of different precision for the same place", async () => {
    const keys = ["docs.test", "docs.test:8080", "https://docs.test/", "http://docs.test"];
    expect(await startsOf(Object.fromEntries(keys.map((key) => [key, to])))).toBeArray();
  });

  test.each([
    ["docs.test", "DOCS.test"],
    ["docs.test:443", "https://docs.test"],
    ["http://docs.test", "docs.test:80"],
    ["127.1", "127.0.0.1"],
    ["döcs.test", "xn--dcs-sna.test"],
  ])("can't have two keys for the same place: %s and %s", async (one, other) => {
    expect(await startsOf({ [one]: to, [other]: to })).toStartWith(
      `400 bad_request: Invalid urlMap: the keys "${one}" and "${other}" `,
    );
  });

  test.each([
    "1.2.3.999",
    "docs.test:65536",
    "a b",
    "docs.test?x",
    "[::1",
    "https://*",
    "user@docs.test",
    "docs.test//",
  ])("can't have an invalid key: %s", async (key) => {
    expect(await startsOf({ [key]: to })).toStartWith(`400 bad_request: Invalid urlMap: the key "${key}" `);
  });
});

test("a run is complete before and after it is executed", async () => {
  let time = 1_790_000_000_000;
  const t = testApp({ now: () => time });
  const prompt = (
    await t.send("POST", "/api/v1/prompts", { body: { title: "Über uns!", text: "Read https://docs.test/" } })
  ).body;
  const { runId } = (await t.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } })).body;
  const get = async () => (await t.send("GET", `/api/v1/runs/${runId}`)).body;
  const pending = await get();
  expect(pending).toEqual({
    runId,
    status: "pending",
    report: null,
    statusUrl: `http://localhost:3000/api/v1/runs/${runId}`,
    runUrl: `http://localhost:3000/runs/${runId}`,
    completedAt: null,
    createdAt: "2026-09-21T14:13:20.000Z",
    failure: null,
    failureReason: null,
    templateArgs: null,
    waitingFor: null,
    prompt: {
      id: prompt.id,
      title: "Über uns!",
      text: "Read https://docs.test/",
      endGoal: null,
      status: "active",
      templateVars: null,
      createdAt: "2026-09-21T14:13:20.000Z",
    },
    agent: { id: "explorer", version: null, model: null, contextDigest: null },
    evalRequestId: pending.evalRequestId,
    startedAt: null,
    attempt: 0,
  });
  time += 5000;
  await t.runJobs();
  const done = await get();
  expect(done).toEqual({
    ...pending,
    status: "completed",
    report: done.report,
    completedAt: "2026-09-21T14:13:25.000Z",
    agent: { id: "explorer", version: "test", model: null, contextDigest: null },
    startedAt: "2026-09-21T14:13:25.000Z",
    attempt: 1,
  });
  expect(done.report.slug).toMatch(/^uber-uns-[0-9a-f]{8}$/);
  expect(done.report.url).toBe(`http://localhost:3000/reports/${done.report.slug}`);
  expect(done.report.status).toBe("published");
});

test("a prompt with review creates drafts, which can be found by their filter", async () => {
  const t = testApp();
  const { id } = (
    await t.send("POST", "/api/v1/prompts", { body: { text: "https://docs.test/", reviewBeforePublishing: true } })
  ).body;
  const { runId } = (await t.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } })).body;
  await t.runJobs();
  const listed = await t.send("GET", `/api/v1/runs?reportStatus=draft&promptId=${id}`);
  expect(
    listed.body.map((run: { runId: string; report: { status: string } }) => [run.runId, run.report.status]),
  ).toEqual([[runId, "draft"]]);
  expect(listed.headers.get("x-total-count")).toBe("1");
  expect((await t.send("GET", "/api/v1/runs?reportStatus=published")).body).toEqual([]);
});

describe("the agent of a run", () => {
  const other = (providers?: "openai"[], missing?: string): Agent => ({
    describe: () => ({ id: "other", version: "7", model: null, kind: "model", providers }),
    preflight: () => (missing === undefined ? [] : [{ what: "Other", isMet: false, detail: missing }]),
    async *run() {
      yield { type: "tool_call", id: "t1", tool: "look", input: {} };
      yield { type: "tool_result", id: "t1", tool: "look", ok: true, output: {} };
      yield { type: "end", outcome: "not_judged", reason: "scripted" };
    },
  });
  const env = { OPENAI_API_KEY: "sk-0123456789abcdef", ANTHROPIC_API_KEY: "sk-0123456789abcdef" };
  const agents = { other: other(["openai"]), gone: other(undefined, "install it with: npm install -g gone") };

  test("is the prompt's unless the request sets another, and a retry keeps it", async () => {
    const { send, runJobs } = testApp({ agents, env });
    const { body: prompt } = await send("POST", "/api/v1/prompts", {
      body: { text: "See https://docs.test/", agent: "explorer" },
    });
    const run = async (path: string, body: object) => (await send("POST", path, { body })).body;
    const asked = { urlMap: {}, agent: "other", model: "openai/gpt-5" };
    const { runId } = await run(`/api/v1/prompts/${prompt.id}/run`, asked);
    const own = await run(`/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    const again = await run(`/api/v1/runs/${runId}/rerun`, {});
    await runJobs();
    const agentsOf = async (ids: string[]) =>
      await Promise.all(ids.map(async (id) => (await send("GET", `/api/v1/runs/${id}`)).body.agent));
    const chosen = { id: "other", version: "7", model: "openai/gpt-5", contextDigest: null };
    expect(await agentsOf([runId, own.runId, again.runId])).toEqual([
      chosen,
      { id: "explorer", version: "test", model: null, contextDigest: null },
      chosen,
    ]);
  });

  test.each([
    [{ agent: "nobody" }, /"nobody" is not available/],
    [{ agent: "gone", model: "openai/gpt-5" }, /npm install -g gone/],
    [{ agent: "other", model: "anthropic/claude-opus-4-8" }, /cannot use anthropic.*openai/],
    [{ agent: "explorer", model: "openai/gpt-5" }, /does not use a model/],
    [{ agent: "other" }, /needs a model/],
  ])("can't be %j", async (body, detail) => {
    const { send } = testApp({ agents, env });
    const { body: prompt } = await send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } });
    const answer = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {}, ...body } });
    expect([answer.status, answer.body.error]).toEqual([400, "bad_request"]);
    expect(answer.body.detail).toMatch(detail);
  });

  test("is listed with the reason if it isn't available", async () => {
    const { send } = testApp({ agents });
    const { status, body } = await send("GET", "/api/v1/agents");
    expect([status, body]).toEqual([
      200,
      [
        {
          id: "explorer",
          version: "test",
          hasModel: false,
          providers: null,
          firstRequestTokens: null,
          lacks: [],
          options: {},
          objection: null,
        },
        {
          id: "other",
          version: "7",
          hasModel: true,
          providers: ["openai"],
          firstRequestTokens: null,
          lacks: [],
          options: {},
          objection: null,
        },
        {
          id: "gone",
          version: null,
          hasModel: true,
          providers: null,
          firstRequestTokens: null,
          lacks: [],
          options: {},
          objection: "Other: install it with: npm install -g gone",
        },
      ],
    ]);
  });
});
