import { describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { Agent } from "../../src/agents/agent.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import { jobs } from "../../src/db/tables/jobs.ts";
import { runs, sessionEvents } from "../../src/db/tables/runs.ts";
import { scriptedAgent, testApp } from "../support/app.ts";
import { countUnfinishedJobs } from "../support/queue.ts";

const end = { type: "end", outcome: "not_judged", reason: "scripted" } as const;
const usage = (costUsd: number | null) =>
  ({ type: "usage", model: "acme/m1", inputTokens: 10, outputTokens: 5, costUsd }) as const;
const turn = () => new Promise((resolve) => setImmediate(resolve));
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

/** An agent whose sessions run until released; `stopped` counts those that were aborted. */
function patientAgent() {
  const seen = { begun: 0, stopped: 0 };
  const open: (() => void)[] = [];
  const agent = scriptedAgent(async function* (signal) {
    seen.begun++;
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => {
      seen.stopped++;
      resolve();
    });
    yield usage(0.25);
    // This is a full batch, so that the cost is stored.
    for (let i = 0; i < 100; i++) yield { type: "thought", text: "hm", by: "rule" };
    open.push(resolve);
    await promise;
    yield end;
  });
  return { agent, seen, letGo: () => open.splice(0).forEach((go) => void go()) };
}

async function setUp(agent?: Agent, env: Record<string, string> = {}) {
  const app = testApp({ agent, env });
  const { send } = app;
  const promptAt = async (host: string) =>
    (await send("POST", "/api/v1/prompts", { body: { text: `See https://${host}/` } })).body.id as string;
  const promptId = await promptAt("docs.test");
  return {
    ...app,
    promptId,
    promptAt,
    run: async (body: Record<string, unknown> = {}, id = promptId, headers: Record<string, string> = {}) =>
      (await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {}, ...body }, headers })).body
        .runId as string,
    get: async (id: string) => (await send("GET", `/api/v1/runs/${id}`)).body,
    attempts: async (id: string) => (await send("GET", `/api/v1/runs/${id}/attempts`)).body,
  };
}

const cancelled = 'cancelled: by the API key "test"';

describe("cancelling", () => {
  test("prevents a pending run from starting", async () => {
    const { send, run, get, attempts, runJobs, db } = await setUp();
    const [doomed, other] = [await run(), await run()];
    const { status, body } = await send("POST", `/api/v1/runs/${doomed}/cancel`);
    expect([status, body]).toEqual([200, await get(doomed)]);
    expect(body).toMatchObject({
      status: "failed",
      failureReason: cancelled,
      report: null,
      startedAt: null,
      attempt: 0,
    });
    expect(body.completedAt).not.toBeNull();
    const columns = { failureCause: runs.failureCause, failureDetail: runs.failureDetail };
    const stored = db.select(columns).from(runs).where(eq(runs.id, doomed)).get();
    expect(stored).toEqual({ failureCause: "cancelled", failureDetail: cancelled.slice("cancelled: ".length) });
    await runJobs();
    expect([await get(doomed), (await get(other)).status]).toEqual([body, "completed"]);
    expect(await attempts(doomed)).toEqual([]);
  });

  test("ends an active run immediately: its session stops, its result is discarded, its cost is kept", async () => {
    const { agent, seen, letGo } = patientAgent();
    const { send, run, get, attempts, service, db } = await setUp(agent);
    const runId = await run();
    await service.runner.start();
    await until(() => seen.begun === 1 && db.select().from(sessionEvents).all().length > 0);
    const { body } = await send("POST", `/api/v1/runs/${runId}/cancel`);
    expect(body).toMatchObject({ status: "failed", failureReason: cancelled });
    // The response comes after the session was aborted, without waiting for the next check of the database.
    expect(seen.stopped).toBe(1);
    const kept = db.select().from(sessionEvents).all().length;
    letGo();
    await service.runner.stop(60_000);
    expect(await get(runId)).toEqual(body);
    expect(db.select().from(sessionEvents).all().length).toBe(kept);
    expect(await attempts(runId)).toEqual([
      {
        attempt: 1,
        startedAt: expect.any(String),
        completedAt: body.completedAt,
        outcome: "cancelled",
        reason: cancelled,
        costUsd: 0.25,
        hasOutput: false,
      },
    ]);
  });

  test("by another process stops the run at its next check", async () => {
    const { agent, seen } = patientAgent();
    const { run, service, db } = await setUp(agent);
    const runId = await run();
    await service.runner.start();
    await until(() => seen.begun === 1);
    db.update(jobs).set({ state: "cancelled", leaseUntil: null, completedAt: 1 }).where(eq(jobs.subject, runId)).run();
    await until(() => seen.stopped === 1);
    await service.runner.stop(0);
  });

  test("leaves an ended run unchanged, and can't find a run of another organization", async () => {
    const { send, run, get, runJobs, b } = await setUp();
    const runId = await run();
    await runJobs();
    const done = await get(runId);
    expect(await send("POST", `/api/v1/runs/${runId}/cancel`)).toMatchObject({
      status: 409,
      body: { error: "conflict", detail: expect.stringContaining("completed") },
    });
    expect(await get(runId)).toEqual(done);
    const headers = { authorization: `Bearer ${b.key}` };
    for (const path of ["cancel", "rerun"])
      expect((await send("POST", `/api/v1/runs/${runId}/${path}`, { headers })).status).toBe(404);
    expect((await send("GET", `/api/v1/runs/${runId}/attempts`, { headers })).status).toBe(404);
  });
});

describe("superseding", () => {
  const preview = (n: number) => ({ urlMap: { "docs.test": `https://preview-${n}.test` } });

  test("ends the unfinished runs of the same prompt with the same keys, and no others", async () => {
    const { agent, seen, letGo } = patientAgent();
    const { run, get, promptAt, service } = await setUp(agent, { EVALD_CONCURRENCY: "1" });
    const elsewhere = await promptAt("other.test");
    const running = await run(preview(1));
    await service.runner.start();
    await until(() => seen.begun === 1);
    const waiting = await run(preview(2));
    const plain = await run();
    const others = await run(preview(1), elsewhere);
    const newest = await run({ ...preview(3), supersede: true });
    const status = async (id: string) => (await get(id)).status;
    expect([await status(running), await status(waiting)]).toEqual(["superseded", "superseded"]);
    expect((await get(running)).failureReason).toBe(`superseded: by run ${newest}`);
    expect(seen.stopped).toBe(1);
    const left = [plain, others, newest];
    while (countUnfinishedJobs(service.ctx, "runs") > 0) {
      letGo();
      await turn();
    }
    await service.runner.stop(0);
    expect(await Promise.all(left.map(status))).toEqual(["completed", "completed", "completed"]);
    expect([await status(running), await status(waiting)]).toEqual(["superseded", "superseded"]);
  });

  test.each([
    ["https://Docs.test/", true],
    ["http://docs.test", true],
    ["docs.test:443", true],
    ["docs.test:8443", false],
    ["api.docs.test", false],
  ])("compares hosts, however a key is written: %s", async (key, isSame) => {
    const { run, get } = await setUp();
    const earlier = await run(preview(1));
    await run({ urlMap: { [key]: "https://preview-2.test" }, supersede: true });
    expect((await get(earlier)).status).toBe(isSame ? "superseded" : "pending");
  });

  test("doesn't end the request's own run if it is repeated with its Idempotency-Key", async () => {
    const { run, get } = await setUp();
    const key = { "idempotency-key": "commit-1" };
    const body = { ...preview(1), supersede: true };
    const first = await run(body, undefined, key);
    expect(await run(body, undefined, key)).toBe(first);
    expect((await get(first)).status).toBe("pending");
  });
});

test("a rerun is a new run with the same parameters", async () => {
  const { send, promptAt, run, get, runJobs } = await setUp();
  const id = await promptAt("{{host}}.test");
  const given = { urlMap: { "docs.test": "https://preview.test" }, templateArgs: { host: "docs" } };
  const first = await run(given, id);
  await runJobs();
  const { status, body } = await send("POST", `/api/v1/runs/${first}/rerun`);
  expect([status, body.runId === first]).toEqual([200, false]);
  await runJobs();
  const again = await get(body.runId);
  expect(again).toMatchObject({ status: "completed", templateArgs: given.templateArgs });
  const report = (await send("GET", `/api/v1/reports/${again.report.slug}`)).body;
  expect(report.run.urlMap).toEqual(given.urlMap);
  await send("PATCH", `/api/v1/prompts/${id}`, { body: { status: "archived" } });
  expect((await send("POST", `/api/v1/runs/${first}/rerun`)).status).toBe(409);
});

test("a rerun that is repeated with one Idempotency-Key creates one run, and the key of another request is rejected", async () => {
  const { send, run } = await setUp();
  const key = { "idempotency-key": "once" };
  const [first, other] = [await run({}, undefined, key), await run()];
  const rerun = (id: string, value: string) =>
    send("POST", `/api/v1/runs/${id}/rerun`, { headers: { "idempotency-key": value } });
  const { body } = await rerun(first, "again");
  expect([first, other]).not.toContain(body.runId);
  expect((await rerun(first.toUpperCase(), "again")).body).toEqual(body);
  expect((await send("GET", "/api/v1/runs")).headers.get("x-total-count")).toBe("3");
  expect([(await rerun(other, "again")).status, (await rerun(first, "once")).status]).toEqual([409, 409]);
  expect((await rerun(first, "two words")).status).toBe(400);
});

describe("an attempt", () => {
  test("that is lost keeps its cost, with the reason for its end", async () => {
    let begun = 0;
    const agent = scriptedAgent(async function* () {
      yield usage(++begun === 2 ? null : begun / 4);
      if (begun < 3) throw new Error(`crash ${begun}`);
      yield end;
    });
    const { send, run, get, attempts, runJobs } = await setUp(agent);
    const runId = await run();
    await runJobs();
    expect(await get(runId)).toMatchObject({ status: "completed", attempt: 3 });
    const ends = (await attempts(runId)).map((each: Record<string, unknown>) => [
      each.attempt,
      each.outcome,
      each.reason,
      each.costUsd,
    ]);
    // An unknown price makes the sum unknown, never too small.
    expect(ends).toEqual([
      [1, "retried", "agent_crashed: crash 1", 0.25],
      [2, "retried", "agent_crashed: crash 2", null],
      [3, "done", null, 0.75],
    ]);
    const page = (await send("GET", `/runs/${runId}`)).body;
    expect(page).toMatch(/data-outcome="retried">.*agent_crashed: crash 1/);
  });

  test("keeps the cost from right before the service stops", async () => {
    let waits = false;
    const agent = scriptedAgent(async function* (signal) {
      yield usage(0.25);
      waits = true;
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      yield end;
    });
    const { run, attempts, service } = await setUp(agent);
    const runId = await run();
    await service.runner.start();
    await until(() => waits);
    await service.runner.stop(0);
    expect(await attempts(runId)).toMatchObject([{ outcome: "released", costUsd: 0.25 }]);
  });

  test("is stopped if its agent is idle, and not if it is active", async () => {
    const env = { EVALD_IDLE_TIMEOUT_SECONDS: "3" };
    const silent = scriptedAgent(async function* (signal) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield end;
    });
    const busy = scriptedAgent(async function* () {
      const until = performance.now() + 4500;
      while (performance.now() < until) {
        yield { type: "thought", text: "still here", by: "rule" };
        await Bun.sleep(50);
      }
      yield end;
    });
    const results = [silent, busy].map(async (agent) => {
      const { run, get, runJobs } = await setUp(agent, env);
      const runId = await run();
      await runJobs();
      const { status, failure, failureReason } = await get(runId);
      return [status, failure?.code, failureReason];
    });
    expect(await Promise.all(results)).toEqual([
      ["failed", "server_idle_limit", "timeout: the agent was idle for 3 seconds and was stopped"],
      ["completed", undefined, null],
    ]);
  });
});

test("a timeout ends a run, whether or not the agent reacts to the signal", async () => {
  const deaf = scriptedAgent(async function* () {
    await new Promise(() => {});
    yield end;
  });
  const heeding = scriptedAgent(async function* (signal) {
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    yield end;
  });
  const endings = [deaf, heeding].map(async (agent) => {
    const { send, runJobs } = testApp({ agent, env: { EVALD_RUN_TIMEOUT_SECONDS: "1" } });
    const prompt = (await send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
    const { runId } = (await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } })).body;
    await runJobs();
    const { status, attempt, failureReason } = (await send("GET", `/api/v1/runs/${runId}`)).body;
    return { status, attempt, failureReason };
  });
  const failed = {
    status: "failed",
    attempt: 1,
    failureReason: "timeout: the run took longer than 1 second and was stopped",
  };
  expect(await Promise.all(endings)).toEqual([failed, failed]);
}, 300_000);

describe("a limit applies to", () => {
  async function most(env: Record<string, string>, ask: (t: Awaited<ReturnType<typeof setUp>>) => Promise<unknown>) {
    let running = 0;
    let highest = 0;
    const agent = scriptedAgent(async function* () {
      highest = Math.max(highest, ++running);
      for (let i = 0; i < 10; i++) await turn();
      running--;
      yield end;
    });
    const t = await setUp(agent, { EVALD_CONCURRENCY: "8", ...env });
    await ask(t);
    await t.runJobs();
    return highest;
  }
  const times = async (n: number, work: () => Promise<unknown>) => {
    for (let i = 0; i < n; i++) await work();
  };

  test("concurrent runs per organization, from the configuration or its own setting", async () => {
    expect(await most({ EVALD_RUNS_PER_ORG: "3" }, ({ run }) => times(12, run))).toBe(3);
    const own = await most({ EVALD_RUNS_PER_ORG: "3" }, async ({ run, service, a }) => {
      updateOrg(service.ctx, a.org, { maxRunsAtOnce: 2 });
      await times(12, run);
    });
    expect(own).toBe(2);
  });

  test("concurrent runs per host, after the urlMap", async () => {
    expect(await most({ EVALD_RUNS_PER_HOST: "2" }, ({ run }) => times(12, run))).toBe(2);
    const mapped = { urlMap: { "docs.test": "https://preview.test" } };
    const both = await most({ EVALD_RUNS_PER_HOST: "2" }, ({ run }) =>
      times(6, async () => [await run(), await run(mapped)]),
    );
    expect(both).toBe(4);
  });

  test("runs that an organization starts within 24 hours, and the rest wait", async () => {
    const { run, get, service } = await setUp(undefined, { EVALD_RUNS_A_DAY: "2" });
    const ids = [await run(), await run(), await run()];
    await service.runner.start();
    await until(() => countUnfinishedJobs(service.ctx, "runs") === 1);
    for (let i = 0; i < 20; i++) await turn();
    await service.runner.stop(0);
    expect((await Promise.all(ids.map(get))).map(({ status }) => status)).toEqual([
      "completed",
      "completed",
      "pending",
    ]);
  });
});

test("a process that stopped responding is detected although the service is never idle", async () => {
  const { run, get, service, db } = await setUp();
  const lost = await run();
  const held = { state: "running", owner: "another", attempt: 1, attemptStartedAt: 1, leaseUntil: 1 } as const;
  db.update(jobs).set(held).where(eq(jobs.subject, lost)).run();
  // The start requeues everything, so the holder stops responding only later.
  const asked = setInterval(() => void run(), 1);
  db.update(jobs).set({ state: "queued", leaseUntil: null, availableAt: Number.MAX_SAFE_INTEGER }).run();
  await service.runner.start();
  db.update(jobs).set(held).where(eq(jobs.subject, lost)).run();
  await until(() => db.select().from(jobs).where(eq(jobs.subject, lost)).get()?.state === "done");
  clearInterval(asked);
  await service.runner.stop(60_000);
  expect(await get(lost)).toMatchObject({ status: "completed", attempt: 2 });
});
