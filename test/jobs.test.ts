import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq, sql } from "drizzle-orm";
import pino from "pino";
import { type Agent, AgentFailure } from "../src/agents/agent.ts";
import { createChildAgent } from "../src/agents/child.ts";
import { startProcess } from "../src/agents/process.ts";
import { openDb, transaction } from "../src/db/open.ts";
import { attempts, jobs } from "../src/db/tables/jobs.ts";
import { reports } from "../src/db/tables/reports.ts";
import { runs } from "../src/db/tables/runs.ts";
import type { Limits } from "../src/jobs/claim-order.ts";
import { JobFailure, type JobHandler } from "../src/jobs/handler.ts";
import type { Lease, Requeue } from "../src/jobs/queue.ts";
import { settleFailure } from "../src/jobs/settlement.ts";
import { getRun } from "../src/runs/runs.ts";
import { createService } from "../src/service.ts";
import { instantAgent, scriptedAgent, testApp } from "./support/app.ts";
import { countUnfinishedJobs, queueContext, queueOf } from "./support/queue.ts";

const folder = mkdtempSync(join(tmpdir(), "evald-jobs-"));
afterAll(() => rmSync(folder, { recursive: true }));

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Yields until the condition holds. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

const end = { type: "end", outcome: "not_judged", reason: "scripted" } as const;

describe("a job", () => {
  const nothing = { atOnce: null, aDay: null };
  function openQueue({ ofOrg = () => nothing, host = 99 }: { ofOrg?: Limits["org"]; host?: number } = {}) {
    let time = 1_000_000;
    let ids = 0;
    const db = openDb(":memory:");
    const ctx = queueContext(db, { now: () => time, newId: () => `job-${++ids}` });
    const queue = queueOf(ctx);
    const job = { kind: "run", orgId: "o", host: "h", maxAttempts: 3 };
    const claimAll = (most: number) =>
      transaction(db, (tx) => queue.claim(tx, most, "me", 30_000, { org: ofOrg, host }));
    return {
      db,
      ctx,
      queue,
      time: () => time,
      pass: (ms: number) => (time += ms),
      enqueue: (...subjects: (string | { subject: string; orgId?: string; host?: string })[]) =>
        transaction(db, (tx) => {
          for (const each of subjects)
            queue.enqueue(tx, { ...job, ...(typeof each === "string" ? { subject: each } : each) });
        }),
      claimAll,
      claim: () => claimAll(1).leases[0] ?? null,
      putBack: (lease: Lease, how: Partial<Requeue>) =>
        transaction(db, (tx) =>
          queue.putBack(tx, lease, {
            outcome: "retried",
            counter: "spent",
            delayMs: 0,
            reason: "r",
            costUsd: 0,
            ...how,
          }),
        ),
      get: (id: string) => db.select().from(jobs).where(eq(jobs.id, id)).get(),
      history: (id: string) => db.select().from(attempts).where(eq(attempts.jobId, id)).all(),
    };
  }
  test("faults that follow each other fail it only after minutes", () => {
    const { db, ctx, pass, enqueue, claim, get, time } = openQueue();
    enqueue("a");
    const handler = { costOf: () => 0, onRequeue() {}, onFailure() {} } as unknown as JobHandler;
    const settlement = { ctx, handlers: { run: handler } };
    const random = spyOn(Math, "random").mockReturnValue(0);
    const failure = new JobFailure({ cause: "infrastructure", detail: "lost" }, "fault");
    const delays: number[] = [];
    for (let lease = claim(); lease; lease = claim()) {
      const held = lease;
      transaction(db, (tx) => settleFailure(settlement, tx, held, failure));
      if (get("job-1")?.state === "failed") break;
      const delay = (get("job-1")?.availableAt ?? 0) - time();
      delays.push(delay);
      pass(delay);
    }
    random.mockRestore();
    expect(get("job-1")).toMatchObject({ state: "failed", attempt: 5 });
    // The first one is soon over, if it was a single one.
    expect(delays).toEqual([1_000, 15_000, 30_000, 60_000]);
  });

  const queued = {
    id: "job-1",
    pool: "runs" as const,
    kind: "run",
    subject: "a",
    orgId: "o",
    host: "h",
    state: "queued" as const,
    availableAt: 0,
    attempt: 0,
    spent: 0,
    maxAttempts: 3,
    faults: 0,
    crashes: 0,
    owner: null,
    leaseUntil: null,
    lastError: null,
    createdAt: 1_000_000,
    startedAt: null,
    attemptStartedAt: null,
    completedAt: null,
    costUsd: null,
  };
  const begun = { ...queued, attempt: 1, owner: "me", startedAt: 1_000_000 };
  const running = { ...begun, state: "running" as const, attemptStartedAt: 1_000_000, leaseUntil: 1_030_000 };
  const first = { jobId: "job-1", attempt: 1, owner: "me", startedAt: 1_000_000 };

  test("is queued, claimed in order and settled, and its history has the cost", () => {
    const { db, queue, enqueue, claim, claimAll, get, pass, history } = openQueue();
    enqueue("a", "b");
    expect(get("job-1")).toEqual(queued);
    const lease = claim() as Lease;
    const { id, kind, subject, attempt, spent, maxAttempts, faults, crashes } = running;
    expect(lease).toEqual({ id, kind, subject, attempt, spent, maxAttempts, faults, crashes });
    expect(claim()?.subject).toBe("b");
    expect(claimAll(1)).toEqual({ leases: [], nextDueAt: null });
    expect(get("job-1")).toEqual(running);
    pass(10_000);
    expect([queue.holds(lease), transaction(db, (tx) => queue.heartbeat(tx, lease, 30_000))]).toEqual([true, true]);
    expect(get("job-1")).toEqual({ ...running, leaseUntil: 1_040_000 });
    expect(history("job-1")).toEqual([{ ...first, outcome: null, completedAt: null, reason: null, costUsd: null }]);
    expect(transaction(db, (tx) => queue.settle(tx, lease, "done", null, 0.25))).toBe(true);
    const done = { state: "done" as const, leaseUntil: null, completedAt: 1_010_000, costUsd: 0.25 };
    expect(get("job-1")).toEqual({ ...running, ...done });
    expect(history("job-1")).toEqual([
      { ...first, outcome: "done", completedAt: 1_010_000, reason: null, costUsd: 0.25 },
    ]);
    expect(queue.countUnfinished()).toBe(1);
  });

  test("is the only one of its kind for a subject", () => {
    const { enqueue } = openQueue();
    enqueue("a");
    expect(() => enqueue("a")).toThrow();
  });

  test("waits for its delay when it is requeued, and increases its counter", () => {
    const { enqueue, claim, claimAll, putBack, get, pass, history } = openQueue();
    enqueue("a");
    // Jitter produces fractions of a millisecond, which an integer column rejects.
    expect(putBack(claim() as Lease, { delayMs: 4999.3, reason: "busy", costUsd: 0.5 })).toBe(true);
    expect(get("job-1")).toEqual({ ...begun, spent: 1, availableAt: 1_005_000, lastError: "busy" });
    pass(4999);
    expect(claimAll(1)).toEqual({ leases: [], nextDueAt: 1_005_000 });
    pass(1);
    expect(claim()).toMatchObject({ attempt: 2, spent: 1, faults: 0, crashes: 0 });
    for (const [counter, counted] of [
      ["faults", { spent: 1, faults: 1, crashes: 0 }],
      ["crashes", { spent: 1, faults: 1, crashes: 1 }],
      [null, { spent: 1, faults: 1, crashes: 1 }],
    ] as const) {
      const { attempt } = get("job-1") ?? { attempt: 0 };
      expect(putBack({ ...queued, attempt }, { counter, outcome: "released" })).toBe(true);
      expect(get("job-1")).toMatchObject({ state: "queued", availableAt: 0, ...counted });
      expect(claim()).toMatchObject({ attempt: attempt + 1, ...counted });
    }
    expect(history("job-1").map(({ outcome, costUsd, reason }) => [outcome, costUsd, reason])).toEqual([
      ["retried", 0.5, "busy"],
      ["released", 0, "r"],
      ["released", 0, "r"],
      ["released", 0, "r"],
      [null, null, null],
    ]);
  });

  test("that was delayed comes before newer ones once it is due", () => {
    const { enqueue, claim, putBack, pass } = openQueue();
    enqueue("a");
    putBack(claim() as Lease, { delayMs: 5000 });
    enqueue("b", "c");
    expect(claim()?.subject).toBe("b");
    pass(5000);
    expect([claim()?.subject, claim()?.subject]).toEqual(["a", "c"]);
  });

  test("is an orphan if its lease has expired, and at startup if it was running", () => {
    const { queue, enqueue, claim, pass } = openQueue();
    const orphans = (which: "all" | "expired") => queue.listOrphans(which).map(({ subject }) => subject);
    enqueue("a", "b", "c");
    claim();
    pass(29_999);
    claim();
    expect([orphans("expired"), orphans("all")]).toEqual([[], ["a", "b"]]);
    pass(1);
    expect([orphans("expired"), orphans("all")]).toEqual([["a"], ["a", "b"]]);
  });

  test("is not changed by writes of an old attempt", () => {
    const { db, queue, enqueue, claim, putBack, get, history } = openQueue();
    enqueue("a");
    const old = claim() as Lease;
    putBack(old, { outcome: "lost", counter: "crashes" });
    const writes = () => [
      queue.holds(old),
      transaction(db, (tx) => queue.heartbeat(tx, old, 30_000)),
      putBack(old, { reason: "late" }),
      transaction(db, (tx) => queue.settle(tx, old, "done", null, 1)),
      transaction(db, (tx) => queue.settle(tx, old, "failed", "late", 1)),
    ];
    const look = () => [get("job-1"), history("job-1")];
    const before = look();
    expect([writes(), look()]).toEqual([Array(5).fill(false), before]);
    claim();
    const taken = look();
    expect([writes(), look()]).toEqual([Array(5).fill(false), taken]);
    expect(taken[0]).toMatchObject({ state: "running", attempt: 2 });
  });

  test("is cancelled once, while it waits and while it runs", () => {
    const { db, queue, enqueue, claim, get, history } = openQueue();
    const cancel = (subject: string) => transaction(db, (tx) => queue.cancel(tx, "run", subject, "enough", () => 0.75));
    enqueue("a", "b");
    const lease = claim() as Lease;
    expect([cancel("a"), cancel("b"), cancel("a"), cancel("none")]).toEqual([true, true, false, false]);
    const cancelled = { state: "cancelled" as const, leaseUntil: null, lastError: "enough", completedAt: 1_000_000 };
    expect([get("job-1"), get("job-2")]).toEqual([
      { ...running, ...cancelled, costUsd: 0.75 },
      { ...queued, ...cancelled, id: "job-2", subject: "b" },
    ]);
    expect(history("job-1")).toEqual([
      { ...first, outcome: "cancelled", completedAt: 1_000_000, reason: "enough", costUsd: 0.75 },
    ]);
    expect([history("job-2"), claim(), queue.holds(lease)]).toEqual([[], null, false]);
  });

  test("waits for the concurrency limits of its organization and host, without blocking others", () => {
    const { enqueue, claimAll, putBack } = openQueue({
      ofOrg: (org) => (org === "small" ? { atOnce: 1, aDay: null } : nothing),
      host: 2,
    });
    const job = (orgId: string, host: string, n: number) => ({ subject: `${orgId} ${host} ${n}`, orgId, host });
    enqueue(job("small", "x", 1), job("small", "x", 2), job("small", "y", 1));
    enqueue(job("big", "x", 1), job("big", "x", 2), job("big", "z", 1));
    const { leases } = claimAll(10);
    expect(leases.map(({ subject }) => subject)).toEqual(["small x 1", "big x 1", "big z 1"]);
    expect(claimAll(10).leases).toEqual([]);
    // Free slots for the host and the organization.
    putBack(leases[0] as Lease, { delayMs: 1000 });
    expect(claimAll(10).leases.map(({ subject }) => subject)).toEqual(["small x 2"]);
  });

  test("without a known URL has no host, and doesn't wait for others without one", () => {
    const { enqueue, claimAll } = openQueue({ host: 1 });
    enqueue({ subject: "a", host: "" }, { subject: "b", host: "" }, { subject: "c" }, { subject: "d" });
    expect(claimAll(10).leases.map(({ subject }) => subject)).toEqual(["a", "b", "c"]);
  });

  test("of the organization with the fewest running jobs comes first, however many another has queued", () => {
    const { enqueue, claimAll } = openQueue();
    enqueue(...Array.from({ length: 5 }, (_, n) => ({ subject: `many ${n}`, orgId: "many" })));
    enqueue({ subject: "few 0", orgId: "few" }, { subject: "few 1", orgId: "few" });
    const { leases } = claimAll(5);
    expect(leases.map(({ subject }) => subject)).toEqual(["many 0", "few 0", "many 1", "few 1", "many 2"]);
  });

  test("waits for the daily limit, but is counted once and doesn't wait when it is retried", () => {
    const { enqueue, claimAll, claim, putBack, pass } = openQueue({ ofOrg: () => ({ atOnce: null, aDay: 2 }) });
    enqueue("a", "b", "c");
    const { leases } = claimAll(10);
    expect(leases.map(({ subject }) => subject)).toEqual(["a", "b"]);
    putBack(leases[0] as Lease, { outcome: "released", counter: null });
    expect(claimAll(10).leases.map(({ subject }) => subject)).toEqual(["a"]);
    pass(24 * 3600_000 - 1);
    expect(claim()).toBeNull();
    pass(1);
    expect(claimAll(10).leases.map(({ subject }) => subject)).toEqual(["c"]);
  });

  test("counts for the daily limit after a fast clock was set back", () => {
    const { enqueue, claimAll, pass } = openQueue({ ofOrg: () => ({ atOnce: null, aDay: 1 }) });
    enqueue("a", "b", "c");
    pass(30 * 24 * 3600_000);
    expect(claimAll(10).leases.map(({ subject }) => subject)).toEqual(["a"]);
    pass(-30 * 24 * 3600_000);
    expect(claimAll(10).leases.map(({ subject }) => subject)).toEqual(["b"]);
    expect(claimAll(10).leases).toEqual([]);
  });
});

/** A service with a scripted agent, and a prompt to run. */
async function setUp(
  agent: Agent,
  options: { env?: Record<string, string>; dataDir?: string; now?: () => number } = {},
) {
  const t = testApp({ agent, ...options });
  const { id } = (await t.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  return {
    ...t,
    trigger: async (): Promise<string> =>
      (await t.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } })).body.runId,
    get: async (runId: string) => (await t.send("GET", `/api/v1/runs/${runId}`)).body,
    jobOf: (runId: string) => t.db.select().from(jobs).where(eq(jobs.subject, runId)).get(),
  };
}

describe("the runner", () => {
  test("runs as many jobs concurrently as allowed, and finishes all", async () => {
    const gates: (() => void)[] = [];
    let running = 0;
    let most = 0;
    const agent = scriptedAgent(async function* () {
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => gates.push(resolve));
      running--;
      yield end;
    });
    const { trigger, service, send } = await setUp(agent, { env: { EVALD_CONCURRENCY: "3" } });
    for (let i = 0; i < 10; i++) await trigger();
    await service.runner.start();
    await until(() => gates.length === 3);
    for (let i = 0; i < 20; i++) await turn();
    expect([running, gates.length]).toEqual([3, 3]);
    while (countUnfinishedJobs(service.ctx, "runs") > 0) {
      gates.shift()?.();
      await turn();
    }
    await service.runner.stop(0);
    expect(most).toBe(3);
    const { body } = await send("GET", "/api/v1/runs");
    expect(body.map(({ status }: { status: string }) => status)).toEqual(Array(10).fill("completed"));
  });

  test("completes a run together with its report, or not at all", async () => {
    const agent = scriptedAgent(async function* () {
      yield end;
    });
    const { trigger, service, get, db, jobOf } = await setUp(agent);
    const runId = await trigger();
    db.run(sql`create temp trigger broken after insert on reports begin select raise(abort, 'broken'); end`);
    await service.runner.start();
    const seen = new Set<string>();
    const look = () => {
      const status = db.select({ status: runs.status }).from(runs).where(eq(runs.id, runId)).get()?.status;
      seen.add(`${status} ${db.select().from(reports).all().length}`);
    };
    await until(() => {
      look();
      return jobOf(runId)?.attempt === 2;
    });
    db.run(sql`drop trigger broken`);
    await until(() => {
      look();
      return jobOf(runId)?.state === "done";
    });
    look();
    await service.runner.stop(0);
    expect([...seen].sort()).toEqual(["completed 1", "pending 0", "running 0"].filter((each) => seen.has(each)));
    const { status, report } = await get(runId);
    expect([status, report.outcome]).toEqual(["completed", "not_judged"]);
  });

  const failures: [name: string, error: () => Error, begun: number, reason: string][] = [
    [
      "a crash is tried three times",
      () => new TypeError("x is not a function"),
      3,
      "agent_crashed: x is not a function",
    ],
    [
      "a temporary fault is tried five times",
      () => new AgentFailure("model_server_error", "the model is overloaded", { retryable: true }),
      5,
      "infrastructure: the model is overloaded",
    ],
    [
      "a permanent fault is tried once",
      () => new AgentFailure("model_key_refused", "the model refused the key"),
      1,
      "credentials: the model refused the key",
    ],
    [
      "a used-up budget is tried once",
      () => new AgentFailure("session_too_large", "$2 are spent"),
      1,
      "budget: $2 are spent",
    ],
  ];
  test.each(failures)("retries by the cause: %s", async (_, error, begins, reason) => {
    let begun = 0;
    const agent = scriptedAgent(async function* () {
      begun++;
      yield { type: "thought", text: "here it comes", by: "rule" };
      throw error();
    });
    const { trigger, runJobs, get, jobOf } = await setUp(agent);
    const runId = await trigger();
    await runJobs();
    expect(await get(runId)).toMatchObject({
      status: "failed",
      report: null,
      failureReason: reason,
      completedAt: expect.any(String),
      attempt: begins,
    });
    expect([begun, jobOf(runId)]).toEqual([begins, expect.objectContaining({ state: "failed", lastError: reason })]);
  });

  test("keeps no trace of a failure if the second attempt succeeds", async () => {
    let begun = 0;
    const agent = scriptedAgent(async function* () {
      yield { type: "thought", text: `attempt ${++begun}`, by: "rule" };
      if (begun === 1) throw new Error("once");
      yield end;
    });
    const { trigger, runJobs, get, send } = await setUp(agent);
    const runId = await trigger();
    await runJobs();
    const run = await get(runId);
    expect(run).toMatchObject({ status: "completed", failureReason: null, attempt: 2 });
    const { events } = (await send("GET", `/api/v1/reports/${run.report.slug}/trace`)).body;
    expect(events.map(({ text }: { text?: string }) => text)).toEqual(["attempt 2", undefined]);
  });

  test.each([
    [60_000, 60_000],
    [86_400_000, 3600_000],
  ])("respects Retry-After up to an hour: %d ms become %d ms", async (retryAfterMs, waited) => {
    let time = 1_790_000_000_000;
    let begun = 0;
    const agent = scriptedAgent(async function* () {
      if (++begun === 1)
        throw new AgentFailure("model_server_error", "too many requests", { retryable: true, retryAfterMs });
      yield end;
    });
    const { trigger, service, jobOf, get } = await setUp(agent, { now: () => time });
    const runId = await trigger();
    await service.runner.start();
    await until(() => jobOf(runId)?.lastError !== null);
    expect(jobOf(runId)).toMatchObject({ state: "queued", availableAt: time + waited, attempt: 1 });
    time += waited - 1;
    service.runner.wake();
    for (let i = 0; i < 20; i++) await turn();
    expect(begun).toBe(1);
    time += 1;
    service.runner.wake();
    await until(() => jobOf(runId)?.state === "done");
    await service.runner.stop(0);
    expect([begun, (await get(runId)).status]).toEqual([2, "completed"]);
  });

  test("respects a Retry-After from an agent's process", async () => {
    const time = 1_790_000_000_000;
    const line = { type: "failure", code: "model_server_error", detail: "busy", retryable: true, retryAfterMs: 90_000 };
    const agent = createChildAgent(instantAgent, {
      startAgentProcess: () => startProcess(["sh", "-c", `echo '${JSON.stringify(line)}'`], {}),
    });
    const { trigger, service, jobOf } = await setUp(agent, { now: () => time });
    const runId = await trigger();
    await service.runner.start();
    await until(() => jobOf(runId)?.lastError !== null);
    await service.runner.stop(0);
    expect(jobOf(runId)).toMatchObject({ availableAt: time + 90_000, lastError: "infrastructure: busy" });
  });

  test("waits at least a second between attempts", async () => {
    const time = 1_790_000_000_000;
    const broken = scriptedAgent(async function* () {
      yield { type: "thought", text: "here it comes", by: "rule" };
      throw new AgentFailure("model_server_error", "busy", { retryable: true });
    });
    const { trigger, db, jobOf, service: own } = await setUp(broken);
    const { config, baseUrl } = own.ctx;
    const log = pino({ level: "silent" });
    const service = createService({ db, config, log, agents: { explorer: broken }, baseUrl, now: () => time });
    const runId = await trigger();
    const random = spyOn(Math, "random").mockReturnValue(0);
    await service.runner.start();
    await until(() => jobOf(runId)?.lastError !== null);
    random.mockRestore();
    await service.runner.stop(0);
    expect(jobOf(runId)).toMatchObject({ state: "queued", availableAt: time + 1_000 });
  });

  test("doesn't delay jobs longer when the clock is set back", async () => {
    const start = 1_790_000_000_000;
    let time = start;
    let begun = 0;
    const agent = scriptedAgent(async function* () {
      if (++begun === 1)
        throw new AgentFailure("model_server_error", "too many requests", { retryable: true, retryAfterMs: 600_000 });
      yield end;
    });
    const { trigger, service, jobOf, get } = await setUp(agent, { now: () => time });
    const runId = await trigger();
    await service.runner.start();
    await until(() => jobOf(runId)?.lastError !== null);
    time -= 3600_000;
    service.runner.wake();
    await until(() => jobOf(runId)?.availableAt !== start + 600_000);
    const left = (jobOf(runId)?.availableAt ?? 0) - time;
    expect([left > 540_000, left <= 600_000]).toEqual([true, true]);
    time += left - 1;
    service.runner.wake();
    for (let i = 0; i < 20; i++) await turn();
    expect(begun).toBe(1);
    time += 1;
    service.runner.wake();
    await until(() => jobOf(runId)?.state === "done");
    await service.runner.stop(0);
    expect([begun, (await get(runId)).status]).toEqual([2, "completed"]);
  });

  test("requeues work on a stop without using its attempt, and runs it again on the next start", async () => {
    let begun = 0;
    const agent = scriptedAgent(async function* (signal) {
      yield { type: "thought", text: `begun ${++begun}`, by: "rule" };
      // This is a full batch, so that part of the interrupted attempt is stored.
      for (let i = 0; i < 100; i++) yield { type: "thought", text: "filler", by: "rule" };
      if (begun === 1) await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      yield end;
    });
    const { trigger, service, jobOf, runJobs, get, send } = await setUp(agent);
    const runId = await trigger();
    await service.runner.start();
    await until(() => begun === 1);
    for (let i = 0; i < 5; i++) await turn();
    expect((await send("GET", "/readyz")).status).toBe(200);
    const stopped = service.runner.stop(0);
    expect((await send("GET", "/readyz")).body).toEqual({
      status: "not ready",
      detail: "the job runner is not taking jobs: draining",
    });
    await stopped;
    expect(jobOf(runId)).toMatchObject({ state: "queued", spent: 0, faults: 0, crashes: 0, availableAt: 0 });
    await runJobs();
    const run = await get(runId);
    expect([begun, run.status, run.attempt]).toEqual([2, "completed", 2]);
    expect((await send("GET", `/api/v1/runs/${runId}/attempts`)).body.at(-1).attempt).toBe(2);
    const trace = (await send("GET", `/api/v1/reports/${run.report.slug}/trace?search=begun`)).body;
    expect([trace.total, trace.events[0].text]).toEqual([1, "begun 2"]);
  });

  test("waits on a stop for work that is nearly done, and claims nothing more", async () => {
    let finish = () => {};
    const agent = scriptedAgent(async function* () {
      await new Promise<void>((resolve) => (finish = resolve));
      yield end;
    });
    const { trigger, service, jobOf } = await setUp(agent, { env: { EVALD_CONCURRENCY: "1" } });
    const [first, second] = [await trigger(), await trigger()];
    await service.runner.start();
    await until(() => jobOf(first)?.state === "running");
    const stopped = service.runner.stop(60_000);
    finish();
    await stopped;
    expect([jobOf(first)?.state, jobOf(second)?.state]).toEqual(["done", "queued"]);
  });

  test("takes over jobs of the last process, whose late results don't count", async () => {
    let finish = () => {};
    const slow = scriptedAgent(async function* () {
      await new Promise<void>((resolve) => (finish = resolve));
      yield { type: "end", outcome: "excluded", reason: "late" };
    });
    const before = await setUp(slow, { dataDir: folder });
    const runId = await before.trigger();
    await before.service.runner.start();
    await until(() => before.jobOf(runId)?.state === "running");

    let finishNew = () => {};
    const quick = scriptedAgent(async function* () {
      await new Promise<void>((resolve) => (finishNew = resolve));
      yield end;
    });
    const db = openDb(folder);
    const { config, baseUrl } = before.service.ctx;
    const after = createService({ db, config, log: pino({ level: "silent" }), agents: { explorer: quick }, baseUrl });
    await after.runner.start();
    await until(() => before.jobOf(runId)?.attempt === 2);
    const held = getRun(after.ctx, before.a.org, runId);
    expect([held.status, held.attempt]).toEqual(["running", 2]);

    finish();
    await before.service.runner.stop(60_000);
    expect(getRun(after.ctx, before.a.org, runId)).toEqual(held);
    expect(db.select().from(reports).all()).toEqual([]);

    finishNew();
    await until(() => countUnfinishedJobs(after.ctx, "runs") === 0);
    await after.runner.stop(0);
    const run = getRun(after.ctx, before.a.org, runId);
    expect([run.status, run.attempt, run.report?.outcome]).toEqual(["completed", 2, "not_judged"]);
    expect(db.select().from(reports).all().length).toBe(1);
  });

  test("fails a run that crashes the service twenty times", async () => {
    const agent = scriptedAgent(async function* () {
      yield end;
    });
    const { trigger, db, runJobs, get } = await setUp(agent);
    const runId = await trigger();
    db.update(jobs).set({ state: "running", attempt: 20, crashes: 19, leaseUntil: 0 }).run();
    await runJobs();
    expect(await get(runId)).toMatchObject({
      status: "failed",
      failure: { code: "service_crashed", cause: "infrastructure" },
      failureReason: "infrastructure: the service crashed 20 times during this job",
    });
  });

  test("retries within a minute a run whose attempts were often lost", async () => {
    const agent = scriptedAgent(async function* () {
      yield end;
    });
    const { trigger, jobOf, db, service } = await setUp(agent);
    const runId = await trigger();
    db.update(jobs)
      .set({ state: "running", attempt: 15, crashes: 14, attemptStartedAt: 0, leaseUntil: 0, owner: "me" })
      .run();
    const waits = { backoffMs: () => 900_000, now: () => 1 };
    const { runner } = createService({ ...service.ctx, agents: { explorer: agent }, ...waits });
    await runner.start();
    await runner.stop(0);
    expect(jobOf(runId)).toMatchObject({ state: "queued", crashes: 15, availableAt: 60_001 });
  });

  test("blames the service, not the agent, if the database can't store the session", async () => {
    const agent = scriptedAgent(async function* () {
      // The same event ID occurs twice, so the database rejects the row.
      yield { type: "tool_call", id: "1", tool: "x".repeat(10), input: {} };
      for (let i = 0; i < 100; i++) yield { type: "nonsense" } as never;
      yield end;
    });
    const { trigger, runJobs, get } = await setUp(agent);
    const runId = await trigger();
    await runJobs();
    expect(await get(runId)).toMatchObject({
      status: "failed",
      failure: { code: "session_not_stored", cause: "infrastructure" },
    });
  });

  test.each([
    [
      "its report cannot be stored",
      "internal_error",
      "before insert on reports begin select raise(abort, 'broken')",
      5,
    ],
    [
      "its session cannot be graded",
      "grading_failed",
      "after insert on session_events begin update session_events set data = '{' where rowid = new.rowid",
      1,
    ],
  ])("fails a run if %s", async (_, code, broken, attempts) => {
    const agent = scriptedAgent(async function* () {
      yield end;
    });
    const { trigger, db, runJobs, get } = await setUp(agent);
    const runId = await trigger();
    db.$client.run(`create temp trigger broken ${broken}; end`);
    await runJobs();
    expect(await get(runId)).toMatchObject({ status: "failed", attempt: attempts, failure: { code, subject: null } });
  });
});

test("readiness follows the runner and the database", async () => {
  const { service, send, db } = testApp();
  const ready = async () => {
    const { status, body } = await send("GET", "/readyz", { headers: { authorization: "" } });
    return [status, body.detail ?? body.status];
  };
  expect(await ready()).toEqual([503, "the job runner is not taking jobs: idle"]);
  await service.runner.start();
  expect(await ready()).toEqual([200, "ready"]);
  db.$client.run("pragma query_only = on");
  expect(await ready()).toEqual([503, expect.stringContaining("the database is not writable")]);
  db.$client.run("pragma query_only = off");
  await service.runner.stop(0);
  expect(await ready()).toEqual([503, "the job runner is not taking jobs: draining"]);
});
