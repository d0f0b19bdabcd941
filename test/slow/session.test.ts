import { Database } from "bun:sqlite";
import { describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import type { Agent, AgentEvent } from "../../src/agents/agent.ts";
import { artifacts, sessionEvents } from "../../src/db/tables/runs.ts";
import { scriptedAgent, testApp } from "../support/app.ts";
import { until } from "../support/until.ts";

/** A finished run of an agent with these events, read through its report. */
async function sessionOf(events: AgentEvent[]) {
  let time = 1_790_000_000_000;
  const agent = scriptedAgent(async function* () {
    for (const event of events) {
      yield event;
      time += 10;
    }
  });
  const t = testApp({ agent, now: () => time });
  const body = { title: "A session", text: "See https://docs.test/", endGoal: "Seen" };
  const prompt = (await t.send("POST", "/api/v1/prompts", { body })).body;
  const { runId } = (
    await t.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: { "docs.test": "https://new.test/" } } })
  ).body;
  await t.runJobs();
  const run = (await t.send("GET", `/api/v1/runs/${runId}`)).body;
  const path = `/api/v1/reports/${run.report.slug}`;
  return { ...t, prompt, run, path, trace: async (query = "") => t.send("GET", `${path}/trace${query}`) };
}

const thought = (text: string): AgentEvent => ({ type: "thought", text, by: "rule" });
const end: AgentEvent = { type: "end", outcome: "not_judged", reason: "scripted" };
const result = (output: Record<string, unknown>): AgentEvent => ({
  type: "tool_result",
  id: "1",
  tool: "t",
  ok: true,
  output,
});

describe("the trace", () => {
  const script = [
    thought("zero"),
    result({ text: 'one "Quoted" line\nand more' }),
    thought("two"),
    thought("three 50%_"),
    end,
  ];

  test("contains the agent's events, in order and with times", async () => {
    const { trace } = await sessionOf(script);
    const { status, body } = await trace();
    const stamp = (seq: number) => ({
      seq,
      at: new Date(1_790_000_000_000 + seq * 10).toISOString(),
      tMs: seq * 10,
      source: "agent",
    });
    expect([status, body]).toEqual([
      200,
      {
        events: [
          { ...stamp(0), type: "thought", text: "zero", by: "rule" },
          {
            ...stamp(1),
            type: "tool_result",
            id: "1",
            tool: "t",
            ok: true,
            output: { text: 'one "Quoted" line\nand more' },
          },
          { ...stamp(2), type: "thought", text: "two", by: "rule" },
          { ...stamp(3), type: "thought", text: "three 50%_", by: "rule" },
          { ...stamp(4), type: "end", outcome: "not_judged", reason: "scripted" },
        ],
        total: 5,
        nextSeq: null,
        notice: null,
      },
    ]);
  });

  test("can be filtered by types and text, and paged by fromSeq", async () => {
    const { trace } = await sessionOf(script);
    const read = async (query: string) => {
      const { events, total, nextSeq } = (await trace(query)).body;
      return [events.map(({ seq }: { seq: number }) => seq), total, nextSeq];
    };
    expect(await read("?types=thought")).toEqual([[0, 2, 3], 3, null]);
    expect(await read("?types=end,tool_result")).toEqual([[1, 4], 2, null]);
    expect(await read("?types=message")).toEqual([[], 0, null]);
    expect(await read("?limit=2")).toEqual([[0, 1], 5, 2]);
    expect(await read("?limit=2&fromSeq=2")).toEqual([[2, 3], 5, 4]);
    expect(await read("?limit=2&fromSeq=4")).toEqual([[4], 5, null]);
    expect(await read("?limit=5")).toEqual([[0, 1, 2, 3, 4], 5, null]);
    expect(await read("?types=thought&limit=1&fromSeq=1")).toEqual([[2], 3, 3]);
    expect(await read("?fromSeq=1000000000")).toEqual([[], 5, null]);
    expect(await read("?search=TWO")).toEqual([[2], 1, null]);
    expect(await read(`?search=${encodeURIComponent('"quoted" line\nand')}`)).toEqual([[1], 1, null]);
    expect(await read("?search=50%25_")).toEqual([[3], 1, null]);
    expect(await read("?search=t_o")).toEqual([[], 0, null]);
  });

  const bounds: [query: string, detail: string][] = [
    ["limit=0", "Invalid limit: must be"],
    ["limit=501", "Invalid limit: must be"],
    ["limit=1.5", "Invalid limit: must be"],
    ["fromSeq=-1", "Invalid fromSeq: must be"],
    ["fromSeq=", "Invalid fromSeq: must be"],
    ["search=", "Invalid search: must be"],
    [`search=${"a".repeat(201)}`, "Invalid search: must be"],
    ["limit=1&limit=1", "Invalid limit: "],
    ["types=thought,rumour", 'Invalid types: "rumour" '],
  ];
  test("has pages of at most 1 MiB, in both directions", async () => {
    const { trace } = await sessionOf([...Array.from({ length: 99 }, () => thought("x".repeat(25_000))), end]);
    const seqsOf = async (query: string) => {
      const { text, events, nextSeq } = await trace(`?limit=500&${query}`).then(({ body }) => ({
        ...body,
        text: JSON.stringify(body),
      }));
      expect(text.length).toBeLessThan(1.1 * 1024 * 1024);
      return { seqs: events.map(({ seq }: { seq: number }) => seq) as number[], nextSeq };
    };
    const all = Array.from({ length: 100 }, (_, i) => i);
    const forwards: number[] = [];
    for (let from: number | null = 0; from !== null; ) {
      const { seqs, nextSeq } = await seqsOf(`fromSeq=${from}`);
      forwards.push(...seqs);
      from = nextSeq;
    }
    expect(forwards).toEqual(all);
    const backwards: number[] = [];
    for (let before = 100; before > 0; before = backwards[0] ?? 0)
      backwards.unshift(...(await seqsOf(`beforeSeq=${before}`)).seqs);
    expect(backwards).toEqual(all);
    expect((await seqsOf("search=xxx")).seqs.length).toBeLessThan(50);
  });

  test("rejects values out of range", async () => {
    const { trace } = await sessionOf([end]);
    for (const [query, detail] of bounds)
      expect(await trace(`?${query}`)).toMatchObject({
        status: 400,
        body: { error: "bad_request", detail: expect.stringContaining(detail) },
      });
    for (const query of ["limit=1", "limit=500", "fromSeq=0"]) expect((await trace(`?${query}`)).status).toBe(200);
  });
});

test("a report is complete", async () => {
  const { send, path, run, prompt } = await sessionOf([thought("nothing"), end]);
  const { status, body } = await send("GET", path);
  // Only clients of runs depend on the bar.
  const { passedBar: _, ...report } = run.report;
  expect([status, body]).toEqual([
    200,
    {
      ...report,
      lost: null,
      baseline: null,
      calibration: null,
      context: null,
      product: { host: "docs.test", name: null },
      notChecked: [],
      wordings: null,
      createdAt: "2026-09-21T14:13:20.020Z",
      run: {
        runId: run.runId,
        statusUrl: run.statusUrl,
        runUrl: run.runUrl,
        evalRequestId: run.evalRequestId,
        attempt: 1,
        urlMap: { "docs.test": "https://new.test/" },
        templateArgs: null,
        createdAt: "2026-09-21T14:13:20.000Z",
        startedAt: "2026-09-21T14:13:20.000Z",
        completedAt: "2026-09-21T14:13:20.020Z",
      },
      task: {
        title: prompt.title,
        text: prompt.text,
        endGoal: prompt.endGoal,
        startUrls: ["https://docs.test/"],
      },
      prompt: {
        id: prompt.id,
        title: "A session",
        text: "See https://docs.test/",
        endGoal: "Seen",
        status: "active",
        templateVars: null,
        createdAt: "2026-09-21T14:13:20.000Z",
      },
      agent: { id: "explorer", version: "test", model: null, contextDigest: null },
      judge: null,
      frictionPoints: body.frictionPoints,
      recommendations: body.recommendations,
    },
  ]);
});

describe("a stored event", () => {
  const stored = async (event: AgentEvent) => {
    const { trace, db, run } = await sessionOf([event, end]);
    const row = db.select().from(sessionEvents).where(eq(sessionEvents.runId, run.runId)).all()[0];
    return { event: (await trace()).body.events[0], bytes: Buffer.byteLength(JSON.stringify(row?.data)) };
  };
  const cap = 32 * 1024;

  test("has at most 32 KiB, and beyond that the longest texts are cut, and the cut is recorded", async () => {
    const fields = { id: "1", tool: "t", ok: true };
    const overhead = JSON.stringify({ ...fields, output: { text: "" } }).length;
    const whole = await stored(result({ text: "a".repeat(cap - overhead) }));
    expect([whole.bytes, whole.event.cutBytes, whole.event.output.text.length]).toEqual([
      cap,
      undefined,
      cap - overhead,
    ]);

    const cut = await stored(result({ text: "a".repeat(cap - overhead + 1), short: "kept" }));
    expect(cut.event).toMatchObject({ ...fields, output: { text: `${"a".repeat(8192)}…`, short: "kept" } });
    // 8192 letters of the text are left, and a mark of three bytes.
    expect(cut.event.cutBytes).toBe(cap - overhead + 1 - 8195);
    expect(cut.bytes).toBeLessThanOrEqual(cap);
  });

  test("contains no split characters", async () => {
    const { event } = await stored(result({ text: `a${"𝕏".repeat(10_000)}` }));
    expect(event.output.text).toBe(`a${"𝕏".repeat(4095)}\ufffd…`);
  });

  test("fits even if it has many texts and multi-byte characters", async () => {
    const many = await stored(result({ list: Array.from({ length: 100 }, () => "é".repeat(5000)) }));
    expect(many.bytes).toBeLessThanOrEqual(cap);
    expect(many.event.output.list.length).toBe(100);
    expect(many.event.cutBytes).toBeGreaterThan(900_000);
  });

  test("keeps the first items of a long list, and its fields", async () => {
    const items = Array.from({ length: 4000 }, (_, i) => ({ name: `item ${i}` }));
    const { event, bytes } = await stored(result({ items }));
    expect(bytes).toBeLessThanOrEqual(cap);
    expect(event).toMatchObject({ id: "1", tool: "t", ok: true, output: { items: items.slice(0, 512) } });
    expect(event.cutBytes).toBeGreaterThan(70_000 - cap);
  });

  test("contains no key or credential", async () => {
    const key = `evals_${"aB3".repeat(12)}`;
    const { event } = await stored(
      result({
        text: `curl -H "Authorization: Bearer sk-live-12345678" -d ${key} and basic dXNlcjpwYXNz`,
        headers: { authorization: "Token abc", Cookie: ["a=1", "b=2"], "set-cookie": "c=3", accept: "text/html" },
        nested: [{ deep: { value: `x${key}y` } }],
      }),
    );
    expect(event.output).toEqual({
      text: 'curl -H "Authorization: Bearer [redacted]" -d evals_[redacted] and basic [redacted]',
      headers: {
        authorization: "[redacted]",
        Cookie: ["[redacted]", "[redacted]"],
        "set-cookie": "[redacted]",
        accept: "text/html",
      },
      nested: [{ deep: { value: "xevals_[redacted]y" } }],
    });
  });
});

test("a session is written in batches of a hundred, and the rest at the end", async () => {
  const counts: [said: number, stored: number][] = [];
  let stored = () => 0;
  const agent = scriptedAgent(async function* () {
    for (let said = 1; said <= 250; said++) {
      yield thought(`${said}`);
      if (said % 50 === 49 || said % 50 === 0) counts.push([said, stored()]);
    }
    yield end;
  });
  const t = testApp({ agent });
  stored = () => t.db.select().from(sessionEvents).all().length;
  const { id } = (await t.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  await t.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
  await t.runJobs();
  expect(counts).toEqual([
    [49, 0],
    [50, 0],
    [99, 0],
    [100, 100],
    [149, 100],
    [150, 100],
    [199, 100],
    [200, 200],
    [249, 200],
    [250, 200],
  ]);
  expect(stored()).toBe(251);
});

const dayMs = 24 * 3600_000;

/** The smallest valid image, followed by this many bytes. */
const picture = (bytes: number) => {
  const data = Buffer.alloc(bytes);
  data.write("RIFF....WEBP", "latin1");
  return data;
};
const shot = (name: string, data: Buffer): AgentEvent => ({
  ...(result({}) as Extract<AgentEvent, { type: "tool_result" }>),
  artifact: { name, bytes: 1, data: data.toString("base64") },
});

describe("screenshots", () => {
  test("are stored apart from the events that name them, and missing ones are reported", async () => {
    const kib = 1024;
    const many = Array.from({ length: 20 }, (_, i) => shot(`screenshot-${i + 10}.webp`, picture(20)));
    const { trace, path, send, a, b, app, baseUrl, db } = await sessionOf([
      shot("screenshot-1.webp", picture(512 * kib)),
      shot("screenshot-1.webp", picture(20)),
      shot("screenshot-2.webp", picture(512 * kib + 1)),
      shot("screenshot-3.webp", Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")),
      shot("../evald.webp", picture(20)),
      shot("screenshot-4.svg", picture(20)),
      ...many,
      end,
    ]);
    const events: { artifact?: { name: string; bytes: number; missing?: string; data?: string } }[] = (
      await trace("?limit=500")
    ).body.events;
    const told = events.flatMap(({ artifact }) => artifact ?? []);
    expect(told.slice(0, 6)).toEqual([
      { name: "screenshot-1.webp", bytes: 512 * kib },
      { name: "screenshot-1.webp", bytes: 20, missing: "duplicate name" },
      { name: "screenshot-2.webp", bytes: 512 * kib + 1, missing: "larger than 512 KiB" },
      { name: "screenshot-3.webp", bytes: 59, missing: "neither a WebP image, a diff nor output" },
      { name: "../evald.webp", bytes: 20, missing: "neither a WebP image, a diff nor output" },
      { name: "screenshot-4.svg", bytes: 20, missing: "neither a WebP image, a diff nor output" },
    ]);
    expect(told.slice(6).map(({ missing }) => missing ?? null)).toEqual([
      ...Array(19).fill(null),
      "the run already has 20 screenshots",
    ]);
    expect(JSON.stringify(events)).not.toContain('"data"');
    // The page shows the stored ones with their events.
    const shown = await send("GET", `/reports/${path.split("/").at(-1)}/session?limit=500`, {
      headers: { accept: "text/html" },
    });
    const images = [...String(shown.body).matchAll(/<img src="[^"]*\/artifacts\/(screenshot-\d+\.webp)"/g)];
    expect(images.map(([, name]) => name)).toEqual(told.flatMap(({ name, missing }) => (missing ? [] : [name])));
    const get = (key: string, name: string) =>
      app.handle(
        new Request(`${baseUrl}${path}/artifacts/${name}`, { headers: key ? { authorization: `Bearer ${key}` } : {} }),
      );
    const first = await get(a.key, "screenshot-1.webp");
    expect([first.status, (await first.arrayBuffer()).byteLength]).toEqual([200, 512 * kib]);
    const statuses = [
      await get(b.key, "screenshot-1.webp"),
      await get("", "screenshot-1.webp"),
      await get(a.key, "screenshot-2.webp"),
      await get(a.key, "..%2Fevald.webp"),
    ].map(({ status }) => status);
    expect(statuses).toEqual([404, 401, 404, 404]);
    // This happens after restoring a backup, or a crash during deletion.
    db.run("delete from artifacts where name = 'screenshot-1.webp'");
    expect((await trace()).body.events[0].artifact.missing).toBe("no longer stored");
    expect((await send("GET", `${path}/artifacts/screenshot-1.webp`)).body).toMatchObject({
      error: "not_found",
      detail: expect.stringContaining("session events"),
    });
  });

  test("are deleted with the events of their session", async () => {
    let time = 1_790_000_000_000;
    const agent = scriptedAgent(async function* () {
      yield shot("screenshot-1.webp", picture(20));
      yield end;
    });
    const t = testApp({ agent, now: () => time, env: { EVALD_KEEP_SESSIONS_DAYS: "30" } });
    const { id } = (await t.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
    await t.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
    await t.runJobs();
    const stored = () => t.db.select().from(artifacts).all().length;
    time += 30 * dayMs;
    await t.service.upkeep.runOnce();
    expect(stored()).toBe(1);
    time += 1;
    await t.service.upkeep.runOnce();
    expect(stored()).toBe(0);
  });
});

test("sessions older than the setting are deleted unless their run is active; trace and pages say so, and the report stays", async () => {
  let time = 1_790_000_000_000;
  const gate = Promise.withResolvers<void>();
  const agent = scriptedAgent(async function* () {
    for (let i = 0; i < 450; i++) yield thought(`${i}`);
    yield { type: "http", method: "GET", url: "https://docs.test/gone", status: 404, ms: 1, bytes: 0 } as AgentEvent;
    yield end;
  });
  const slow = scriptedAgent(async function* () {
    for (let i = 0; i < 150; i++) yield thought(`${i}`);
    await gate.promise;
    yield end;
  });
  let next: Agent = agent;
  const chosen = scriptedAgent((signal) => next.run({} as never, { signal } as never));
  const t = testApp({ agent: chosen, now: () => time, env: { EVALD_KEEP_SESSIONS_DAYS: "30" } });
  const { id } = (await t.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  const trigger = async () => (await t.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } })).body.runId;
  const get = async (runId: string) => (await t.send("GET", `/api/v1/runs/${runId}`)).body;
  const stored = (runId: string) =>
    t.db.select().from(sessionEvents).where(eq(sessionEvents.runId, runId)).all().length;
  const { upkeep, runner } = t.service;

  const old = await trigger();
  await t.runJobs();
  const { slug } = (await get(old)).report;
  const report = (await t.send("GET", `/api/v1/reports/${slug}`)).body;
  next = slow;
  const open = await trigger();
  await runner.start();
  await until("a batch is stored", () => stored(open) >= 100);
  time += 30 * dayMs;
  next = agent;
  const young = await trigger();
  await until("the young run has ended", async () => (await get(young)).completedAt);
  await upkeep.runOnce();
  // A session whose age equals the setting is not older.
  expect([stored(old), stored(young)]).toEqual([452, 452]);
  time += 1;
  await upkeep.runOnce();
  expect([stored(old), stored(young)]).toEqual([0, 452]);
  expect(stored(open)).toBeGreaterThan(0);

  const { notice, ...rest } = (await t.send("GET", `/api/v1/reports/${slug}/trace`)).body;
  expect(rest).toEqual({ events: [], total: 0, nextSeq: null });
  expect(notice).toContain("EVALD_KEEP_SESSIONS_DAYS");
  expect((await t.send("GET", `/api/v1/reports/${slug}`)).body).toEqual(report);
  const page = async (path: string) => (await t.send("GET", path, { headers: { accept: "text/html" } })).body;
  const session = `/reports/${slug}/session`;
  expect(await page(session)).toContain(notice);
  expect(await page(session)).not.toContain("No event matches");
  expect(await page(`/reports/${slug}`)).toContain(notice);
  expect(await page(`/reports/${slug}`)).not.toContain(session);
  const kept = (await get(young)).report.slug;
  expect(await page(`/reports/${kept}`)).toContain(`/reports/${kept}/session`);
  expect(await page(`/reports/${kept}/session`)).not.toContain(notice);

  gate.resolve();
  await until("the open run has ended", async () => (await get(open)).completedAt);
  expect(stored(open)).toBe(151);
  await runner.stop(0);
  // It was requested long ago, but has just ended.
  time += 30 * dayMs;
  await upkeep.runOnce();
  expect(stored(open)).toBe(151);
  time += 1;
  await upkeep.runOnce();
  expect(stored(open)).toBe(0);
});

test("a long WAL is truncated once no reader needs it, and nobody waits for that", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "evald-wal-"));
  const { db, service } = testApp({ dataDir });
  const walBytes = () => statSync(join(dataDir, "evald.db-wal")).size;
  db.$client.run("create table long (bytes blob)");
  const reader = new Database(join(dataDir, "evald.db"), { readonly: true });
  reader.run("begin");
  reader.query("select * from orgs").all();
  db.$client.run("insert into long values (zeroblob(66 * 1024 * 1024))");
  const long = walBytes();
  expect(long).toBeGreaterThan(64 * 1024 * 1024);
  const run = spyOn(db.$client, "run");
  const waitsMs: number[] = [];
  run.mockImplementation((sql) => {
    const { timeout } = db.$client.query<{ timeout: number }, []>("pragma busy_timeout").get() ?? { timeout: -1 };
    if (sql.includes("wal_checkpoint")) waitsMs.push(timeout);
    return Database.prototype.run.call(db.$client, sql);
  });
  await service.upkeep.runOnce();
  run.mockRestore();
  expect(waitsMs).toEqual([10]);
  expect(walBytes()).toBeGreaterThanOrEqual(long);
  reader.run("commit");
  reader.close();
  await service.upkeep.runOnce();
  expect(walBytes()).toBe(0);
  expect(db.$client.query("pragma busy_timeout").get()).toEqual({ timeout: 5000 });
  db.$client.close();
  rmSync(dataDir, { recursive: true });
});

describe("while the disk is full", () => {
  /** A disk that becomes full and has room again. */
  const disk = ({ db }: ReturnType<typeof testApp>) => ({
    fill: () => db.$client.run("pragma max_page_count = 1"),
    empty: () => db.$client.run("pragma max_page_count = 1000000"),
  });

  async function fullDuring(script: (disk: { fill: () => void; empty: () => void }) => AsyncIterable<AgentEvent>) {
    const t: ReturnType<typeof testApp> = testApp({ agent: scriptedAgent(() => script(disk(t))) });
    const { id } = (await t.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
    const { runId } = (await t.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } })).body;
    await t.service.runner.start();
    const run = async () => (await t.send("GET", `/api/v1/runs/${runId}`)).body;
    const attempts = async () => (await t.send("GET", `/api/v1/runs/${runId}/attempts`)).body;
    return { ...t, ...disk(t), run, attempts, stop: () => t.service.runner.stop(0) };
  }

  test("a session waits in memory, and is stored complete and in order when there is room", async () => {
    let refusedAll = false;
    const { run, attempts, send, stop, empty } = await fullDuring(async function* ({ fill }) {
      for (let i = 0; i < 100; i++) yield thought(`${i}`);
      fill();
      for (let i = 100; i < 950; i++) yield thought("x".repeat(4000));
      yield end;
      refusedAll = true;
    });
    await until("the session waits", () => refusedAll);
    expect((await run()).status).toBe("running");
    const refused = await send("POST", "/api/v1/prompts", { body: { text: "y".repeat(10_000) } });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
    empty();
    await until("the run has ended", async () => (await run()).completedAt);
    const { status, attempt, report } = await run();
    expect([status, attempt, (await attempts()).length]).toEqual(["completed", 1, 1]);
    const { events, total } = (await send("GET", `/api/v1/reports/${report.slug}/trace?fromSeq=940&limit=20`)).body;
    expect([total, events.map(({ seq }: { seq: number }) => seq)]).toEqual([
      951,
      Array.from({ length: 11 }, (_, i) => 940 + i),
    ]);
    await stop();
  });

  test.each([
    ["20,000 events", 20_101, "short"],
    ["32 MiB", 1_200, "x".repeat(30_000)],
  ])("an attempt with more than %s in memory ends as a fault that doesn't count", async (_, most, text) => {
    let tries = 0;
    let said = 0;
    const { run, attempts, stop, empty } = await fullDuring(async function* ({ fill }) {
      if (++tries === 1) fill();
      for (let i = 0; i < most && (tries === 1 || i < 10); i++) {
        said++;
        yield thought(text);
      }
      yield end;
    });
    await until("too much was said", () => said >= most - 100);
    empty();
    await until("the run has ended", async () => (await run()).completedAt);
    const { status, attempt } = await run();
    expect([status, attempt]).toEqual(["completed", 2]);
    expect(
      (await attempts()).map(({ outcome, reason }: { outcome: string; reason: string }) => [outcome, reason]),
    ).toEqual([
      ["retried", expect.stringContaining("infrastructure: the session could not be stored")],
      ["done", null],
    ]);
    await stop();
  });

  test("a run fails if its sessions found no room five times", async () => {
    let said = 0;
    const { run, stop, empty } = await fullDuring(async function* ({ fill }) {
      fill();
      for (let i = 0; i < 1_200; i++) {
        said++;
        yield thought("x".repeat(30_000));
      }
      yield end;
    });
    for (let attempt = 1; attempt <= 5; attempt++) {
      await until(`attempt ${attempt} said too much`, () => said >= attempt * 1_100);
      empty();
      await until(`attempt ${attempt} is settled`, async () => {
        const { status, attempt: newest, completedAt } = await run();
        return completedAt || newest > attempt || status === "pending";
      });
    }
    await until("the run has ended", async () => (await run()).completedAt);
    expect(await run()).toMatchObject({ status: "failed", failure: { code: "disk_full", cause: "infrastructure" } });
    await stop();
  });
});
