// The queue and the group commit against models, over random histories. `TORTURE=20 bun test test/queue.test.ts` runs
// twenty times as many. A failing history is printed in its shortest form, with seed and path. Add it to `past`, which
// is tried first each time. (The history rather than the seed, because a seed produces another history as soon as a
// step is added.)
import { describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import fc from "fast-check";
import { createCommit } from "../src/db/commit.ts";
import { openDb, type Tx, transaction } from "../src/db/open.ts";
import { attempts, jobs } from "../src/db/tables/jobs.ts";
import type { OrgLimits } from "../src/jobs/claim-order.ts";
import type { Lease, Requeue } from "../src/jobs/queue.ts";
import { queueContext, queueOf } from "./support/queue.ts";
import { isThorough } from "./support/thorough.ts";

const numRuns = (isThorough ? 600 : 40) * Number(process.env.TORTURE ?? 1);
const dayMs = 24 * 3600_000;
const leaseMs = 30_000;

/** Numbers that select a lease or a job, counted from the newest. */
type Step =
  | { do: "enqueue"; org: string; host: string; maxAttempts: number; rank: number }
  | { do: "claim"; most: number; owner: string }
  | { do: "heartbeat"; lease: number }
  | { do: "settle"; lease: number; state: "done" | "failed"; costUsd: number | null }
  | {
      do: "putBack";
      lease: number;
      outcome: Requeue["outcome"];
      counter: Requeue["counter"];
      delayMs: number;
      costUsd: number;
    }
  | { do: "cancel"; job: number; costUsd: number }
  | { do: "takeBack"; which: "all" | "expired" }
  | { do: "limit"; org: string; atOnce: number | null; aDay: number | null }
  | { do: "limitHost"; host: number }
  | { do: "pass"; ms: number };

const org = fc.constantFrom("a", "b", "ü");
const lease = fc.oneof({ weight: 4, arbitrary: fc.nat(3) }, fc.nat(40));
const cost = fc.integer({ min: 0, max: 8 }).map((quarters) => quarters / 4);
const limit = (most: number) => fc.option(fc.integer({ min: 1, max: most }));
const step = <T extends Step["do"]>(name: T, rest: { [K in keyof Omit<Extract<Step, { do: T }>, "do">]: unknown }) =>
  fc.record({ do: fc.constant(name), ...rest } as never) as unknown as fc.Arbitrary<Step>;

const weighted: [number, fc.Arbitrary<Step>][] = [
  [
    8,
    step("enqueue", {
      org,
      host: fc.constantFrom("", "x.test", "y.test", "y.test:80"),
      maxAttempts: fc.integer({ min: 1, max: 3 }),
      rank: fc.nat(9),
    }),
  ],
  [8, step("claim", { most: fc.integer({ min: 1, max: 4 }), owner: fc.constantFrom("me", "you") })],
  [2, step("heartbeat", { lease })],
  [4, step("settle", { lease, state: fc.constantFrom("done", "failed"), costUsd: fc.option(cost) })],
  [
    4,
    step("putBack", {
      lease,
      outcome: fc.constantFrom("retried", "released", "lost"),
      counter: fc.constantFrom("spent", "faults", "crashes", null),
      delayMs: fc.constantFrom(0, 0.25, 5_000, 900_000),
      costUsd: cost,
    }),
  ],
  [1, step("cancel", { job: fc.nat(15), costUsd: cost })],
  [1, step("takeBack", { which: fc.constantFrom("all", "expired") })],
  [1, step("limit", { org, atOnce: limit(3), aDay: limit(4) })],
  [1, step("limitHost", { host: fc.integer({ min: 1, max: 3 }) })],
  [3, step("pass", { ms: fc.constantFrom(1, 5_000, leaseMs, 900_000, dayMs - 1, dayMs, -1, -leaseMs, -dayMs) })],
];
const histories = fc.array(fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary }))), {
  minLength: 1,
  maxLength: 60,
  size: "max",
});

const past: Step[][] = [
  // Jobs that started before the clock was set back exceeded a daily limit.
  [
    { do: "limit", org: "a", atOnce: null, aDay: 1 },
    { do: "enqueue", org: "a", host: "", maxAttempts: 1, rank: 0 },
    { do: "enqueue", org: "a", host: "", maxAttempts: 1, rank: 1 },
    { do: "claim", most: 1, owner: "me" },
    { do: "pass", ms: -dayMs },
    { do: "claim", most: 1, owner: "me" },
  ],
  // A job that was started and requeued waited for a day because its organization had reached its limit.
  [
    { do: "limit", org: "a", atOnce: null, aDay: 1 },
    { do: "enqueue", org: "a", host: "", maxAttempts: 1, rank: 0 },
    { do: "claim", most: 1, owner: "me" },
    { do: "takeBack", which: "all" },
    { do: "claim", most: 1, owner: "me" },
  ],
  // A lease ends with its last millisecond.
  [
    { do: "enqueue", org: "a", host: "", maxAttempts: 1, rank: 0 },
    { do: "claim", most: 1, owner: "me" },
    { do: "pass", ms: leaseMs },
    { do: "takeBack", which: "expired" },
  ],
];

type Job = typeof jobs.$inferSelect;
type Attempt = typeof attempts.$inferSelect;

/** The specification of the queue in its simplest form: each claim looks at all jobs. */
function createModel(clock: { now: number }) {
  const all = new Map<string, Job>();
  const history: Attempt[] = [];
  const limits = { org: new Map<string, OrgLimits>(), host: 2 };
  const limitsOf = (name: string) => limits.org.get(name) ?? { atOnce: null, aDay: null };
  const running = () => [...all.values()].filter(({ state }) => state === "running");
  const busy = (name: string) => running().filter(({ orgId }) => orgId === name).length;
  /** Jobs that started within 24 hours. Starts in the future, from a fast clock, don't count. */
  const isOfToday = ({ startedAt: at }: Job) => at !== null && at > clock.now - dayMs && at <= clock.now;
  const begunToday = (name: string) => [...all.values()].filter((job) => job.orgId === name && isOfToday(job)).length;

  const isDue = (job: Job) => job.availableAt <= clock.now;
  function isWithinLimits(job: Job): boolean {
    const { orgId, host } = job;
    const { atOnce, aDay } = limitsOf(orgId);
    if (atOnce !== null && busy(orgId) >= atOnce) return false;
    if (host !== "" && running().filter((each) => each.host === host).length >= limits.host) return false;
    return isOfToday(job) || aDay === null || begunToday(orgId) < aDay;
  }
  const claimable = () => [...all.values()].filter((job) => job.state === "queued" && isWithinLimits(job));

  function held({ id, attempt }: Lease): Job | null {
    const job = all.get(id);
    return job?.state === "running" && job.attempt === attempt ? job : null;
  }
  /** Now, but not before its last attempt, even if the clock was set back since. */
  const endedAt = (job: Job) => Math.max(clock.now, job.attemptStartedAt ?? 0);
  function end(job: Job, outcome: Attempt["outcome"], reason: string | null, costUsd: number | null): void {
    const row = history.find(({ jobId, attempt }) => jobId === job.id && attempt === job.attempt) as Attempt;
    Object.assign(row, { outcome, reason, costUsd, completedAt: Math.max(clock.now, row.startedAt) });
  }

  return {
    all,
    history,
    limits,
    limitsOf,
    held,
    busy,
    running,
    enqueue: (job: Job) => all.set(job.id, job),
    claim(most: number, owner: string): { jobs: Job[]; nextDueAt: number | null } {
      for (const job of all.values()) if (job.state === "queued" && isDue(job)) job.availableAt = 0;
      const taken: Job[] = [];
      while (taken.length < most) {
        const [first] = claimable()
          .filter(isDue)
          .sort((x, y) => busy(x.orgId) - busy(y.orgId) || x.availableAt - y.availableAt || (x.id < y.id ? -1 : 1));
        if (!first)
          return {
            jobs: taken,
            nextDueAt: claimable().reduce<number | null>(
              (least, { availableAt }) => Math.min(least ?? availableAt, availableAt),
              null,
            ),
          };
        first.state = "running";
        first.attempt++;
        first.owner = owner;
        first.leaseUntil = clock.now + leaseMs;
        first.startedAt ??= clock.now;
        first.attemptStartedAt = clock.now;
        const none = { completedAt: null, outcome: null, reason: null, costUsd: null };
        history.push({ jobId: first.id, attempt: first.attempt, owner, startedAt: clock.now, ...none });
        taken.push(first);
      }
      return { jobs: taken, nextDueAt: null };
    },
    heartbeat(lease: Lease): boolean {
      const job = held(lease);
      if (job) job.leaseUntil = clock.now + leaseMs;
      return job !== null;
    },
    settle(lease: Lease, state: "done" | "failed", reason: string | null, costUsd: number | null): boolean {
      const job = held(lease);
      if (!job) return false;
      Object.assign(job, { state, lastError: reason, costUsd, leaseUntil: null, completedAt: endedAt(job) });
      end(job, state, reason, costUsd);
      return true;
    },
    putBack(lease: Lease, { outcome, counter, delayMs, reason, costUsd }: Requeue): boolean {
      const job = held(lease);
      if (!job) return false;
      const availableAt = delayMs === 0 ? 0 : clock.now + Math.ceil(delayMs);
      Object.assign(job, { state: "queued", lastError: reason, leaseUntil: null, attemptStartedAt: null, availableAt });
      if (counter) job[counter]++;
      end(job, outcome, reason, costUsd);
      return true;
    },
    cancel(id: string, reason: string, costUsd: number): boolean {
      const job = all.get(id);
      if (!job || job.completedAt !== null) return false;
      if (job.state === "running") {
        end(job, "cancelled", reason, costUsd);
        job.costUsd = costUsd;
      }
      Object.assign(job, { state: "cancelled", lastError: reason, leaseUntil: null, completedAt: endedAt(job) });
      return true;
    },
    orphans: (which: "all" | "expired") =>
      running().filter(({ leaseUntil }) => which === "all" || (leaseUntil as number) <= clock.now),
  };
}

const leaseOf = ({ id, kind, subject, attempt, spent, maxAttempts, faults, crashes }: Job): Lease => ({
  id,
  kind,
  subject,
  attempt,
  spent,
  maxAttempts,
  faults,
  crashes,
});
const byId = <T extends { id: string }>(rows: T[]) => rows.sort((a, b) => (a.id < b.id ? -1 : 1));
const byAttempt = (rows: Attempt[]) =>
  rows.sort((a, b) => (a.jobId < b.jobId ? -1 : a.jobId > b.jobId ? 1 : a.attempt - b.attempt));

describe("the queue equals its model over any history", () => {
  const db = openDb(":memory:");
  const client = db.$client;

  /** Plays a history on the queue and its model, and compares all results and rows after each step. */
  function play(history: Step[]): void {
    client.run("delete from earlier_attempts");
    client.run("delete from jobs");
    const clock = { now: 1_790_000_000_000 };
    let made = 0;
    let nextId = "";
    const queue = queueOf(queueContext(db, { now: () => clock.now, newId: () => nextId }));
    const model = createModel(clock);
    const limits = { org: model.limitsOf, host: model.limits.host };
    /** All leases so far, newest first; most have expired. */
    const leases: Lease[] = [];
    const ids: string[] = [];
    const holders = () => leases.filter((each) => queue.holds(each)).map(({ id }) => id);

    function take(each: Step): void {
      if (each.do === "enqueue") {
        // IDs of a clock that was set back sort before older ones.
        nextId = `job-${each.rank}-${String(++made).padStart(3, "0")}`;
        ids.unshift(nextId);
        const job = {
          kind: "run",
          subject: `of ${nextId}`,
          orgId: each.org,
          host: each.host,
          maxAttempts: each.maxAttempts,
        };
        const zero = { availableAt: 0, attempt: 0, spent: 0, faults: 0, crashes: 0 };
        const start = { owner: null, leaseUntil: null, startedAt: null, attemptStartedAt: null };
        const none = { ...start, lastError: null, completedAt: null, costUsd: null };
        model.enqueue({ id: nextId, pool: "runs", ...job, ...zero, ...none, state: "queued", createdAt: clock.now });
        transaction(db, (tx) => queue.enqueue(tx, job));
      } else if (each.do === "claim") {
        const over = (name: string) => model.busy(name) - (model.limitsOf(name).atOnce ?? Number.POSITIVE_INFINITY);
        const before = new Map(["a", "b", "ü"].map((name) => [name, over(name)]));
        const expected = model.claim(each.most, each.owner);
        const { leases: taken, nextDueAt } = transaction(db, (tx) =>
          queue.claim(tx, each.most, each.owner, leaseMs, limits),
        );
        expect(taken).toEqual(expected.jobs.map(leaseOf));
        expect(nextDueAt).toBe(expected.nextDueAt);
        leases.unshift(...taken);
        // A lowered limit is exceeded by running jobs, never by a claim.
        for (const [name, was] of before) if (over(name) > 0) expect(over(name)).toBe(was);
      } else if (each.do === "pass") clock.now += each.ms;
      else if (each.do === "limit") model.limits.org.set(each.org, { atOnce: each.atOnce, aDay: each.aDay });
      else if (each.do === "limitHost") limits.host = model.limits.host = each.host;
      else if (each.do === "takeBack") {
        const orphans = queue.listOrphans(each.which);
        expect(byId(orphans)).toEqual(byId(model.orphans(each.which).map(leaseOf)));
        const how = { outcome: "lost", counter: "crashes", delayMs: 0, reason: "gone", costUsd: 0.5 } as const;
        for (const orphan of orphans) {
          model.putBack(orphan, how);
          expect(transaction(db, (tx) => queue.putBack(tx, orphan, how))).toBe(true);
        }
      } else if (each.do === "cancel") {
        const id = ids[each.job % ids.length] ?? "none";
        const done = transaction(db, (tx) => queue.cancel(tx, "run", `of ${id}`, "enough", () => each.costUsd));
        expect(done).toBe(model.cancel(id, "enough", each.costUsd));
      } else {
        const lease = leases[each.lease % leases.length];
        if (!lease) return;
        const [real, expected] = transaction(db, (tx) => {
          if (each.do === "heartbeat") return [queue.heartbeat(tx, lease, leaseMs), model.heartbeat(lease)];
          if (each.do === "putBack") {
            const how = { ...each, reason: `back after ${each.delayMs}` };
            return [queue.putBack(tx, lease, how), model.putBack(lease, how)];
          }
          const reason = each.state === "failed" ? "it broke" : null;
          return [
            queue.settle(tx, lease, each.state, reason, each.costUsd),
            model.settle(lease, each.state, reason, each.costUsd),
          ];
        });
        expect(real).toBe(expected);
      }
    }

    for (const each of history) {
      take(each);
      expect(byId(db.select().from(jobs).all())).toEqual(byId([...model.all.values()]));
      expect(byAttempt(db.select().from(attempts).all())).toEqual(byAttempt([...model.history]));
      // One holder per running job; one history row per start, ended unless it runs.
      expect(holders().sort()).toEqual(
        model
          .running()
          .map(({ id }) => id)
          .sort(),
      );
      const open = model.history.filter(({ outcome }) => outcome === null).map(({ jobId }) => jobId);
      expect(open.sort()).toEqual(
        model
          .running()
          .map(({ id }) => id)
          .sort(),
      );
      expect(model.history.length).toBe([...model.all.values()].reduce((sum, { attempt }) => sum + attempt, 0));
      expect(queue.countUnfinished()).toBe(
        [...model.all.values()].filter(({ completedAt }) => completedAt === null).length,
      );
    }

    // No starvation: without limits, all remaining jobs finish.
    model.limits.org.clear();
    limits.host = model.limits.host = 99;
    clock.now = Math.max(clock.now, ...[...model.all.values()].map(({ availableAt }) => availableAt));
    take({ do: "takeBack", which: "all" });
    while (queue.countUnfinished() > 0) {
      take({ do: "claim", most: 4, owner: "me" });
      expect(holders().length).toBeGreaterThan(0);
      while (holders().length > 0)
        take({ do: "settle", lease: leases.findIndex((each) => queue.holds(each)), state: "done", costUsd: 0.25 });
    }
    // The cost is the sum over all attempts.
    const spent = client.query<{ usd: number }, []>("select coalesce(sum(cost_usd), 0) usd from attempts").get();
    expect(spent?.usd).toBe(model.history.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0));
  }

  test("in states, counters, order, limits, history and cost", () => {
    fc.assert(fc.property(histories, play), { numRuns, examples: past.map((history) => [history]) });
  }, 120_000);
});

const deeds = [
  "answers",
  "throws",
  "breaks a rule of the table",
  "nests",
  "catches what a nested one throws",
  "is async",
  "asks for another",
  "cannot be committed",
  "loses the transaction",
  "loses the transaction unawares",
] as const;
type Work = { rows: number; deed: (typeof deeds)[number] };

const work = fc.record<Work>({
  rows: fc.integer({ min: 1, max: 3 }),
  // The last three end the whole batch; more of them would leave little else to see.
  deed: fc.oneof(
    { weight: 30, arbitrary: fc.constantFrom(...deeds.slice(0, -3)) },
    { weight: 1, arbitrary: fc.constantFrom(...deeds.slice(-3)) },
  ),
});
const batches = fc.array(fc.array(work, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 6 });

const pastBatches: Work[][][] = [
  // Work after a lost transaction was stored outside of any transaction.
  [
    [
      { rows: 1, deed: "loses the transaction" },
      { rows: 1, deed: "answers" },
    ],
  ],
];

describe("exactly the acknowledged work is stored", () => {
  const db = openDb(":memory:");
  const client = db.$client;
  client.run("create table parents (id text primary key) strict");
  client.run(
    "create table rows (id text primary key, parent text references parents deferrable initially deferred) strict",
  );
  // A full or failing disk makes SQLite end the whole transaction by itself; so does this.
  client.run(
    "create trigger lost before insert on rows when new.id like '%lost' begin select raise(rollback, 'lost'); end",
  );

  async function play(all: Work[][]): Promise<void> {
    client.run("delete from rows");
    const commit = createCommit(db);
    const expected: string[] = [];
    let made = 0;

    function ask({ rows, deed }: Work, isDoomed: boolean): Promise<void> {
      const id = `work-${String(++made).padStart(3, "0")}`;
      const insert = (tx: Tx, name: string, parent: string | null = null) =>
        tx.run(sql`insert into rows values (${name}, ${parent})`);
      const own = Array.from({ length: rows }, (_, i) => `${id}-${i}`);
      let later: Promise<void> | undefined;
      const answer = commit<unknown>((tx) => {
        for (const name of own) insert(tx, name);
        if (deed === "throws") throw new Error(id);
        if (deed === "breaks a rule of the table") insert(tx, own[0] as string);
        if (deed === "nests") transaction(db, (inner) => insert(inner, `${id}-nested`));
        if (deed === "catches what a nested one throws")
          try {
            tx.transaction((inner) => {
              insert(inner, `${id}-nested`);
              throw new Error("nested");
            });
          } catch {}
        if (deed === "is async") return Promise.resolve(id);
        if (deed === "asks for another") later = ask({ rows: 1, deed: "answers" }, false);
        if (deed === "cannot be committed") insert(tx, `${id}-orphan`, "nobody");
        if (deed === "loses the transaction") insert(tx, `${id}-lost`);
        if (deed === "loses the transaction unawares")
          try {
            insert(tx, `${id}-lost`);
          } catch {}
        return id;
      });
      const isRefused = deed === "throws" || deed === "breaks a rule of the table" || deed === "is async";
      if (!isDoomed && !isRefused) expected.push(...own, ...(deed === "nests" ? [`${id}-nested`] : []));
      return answer.then(
        async (value) => {
          expect([isDoomed || isRefused, value]).toEqual([false, id]);
          await later;
        },
        async (error) => {
          expect([id, isDoomed || isRefused]).toEqual([id, true]);
          expect(error).toBeInstanceOf(Error);
          if (deed === "throws" && !isDoomed) expect(error.message).toBe(id);
          await later;
        },
      );
    }

    for (const batch of all) {
      const isDoomed = batch.some(({ deed }) => deeds.indexOf(deed) >= deeds.length - 3);
      await Promise.all(batch.map((each) => ask(each, isDoomed)));
      expect(client.inTransaction).toBe(false);
      const stored = client.query<{ id: string }, []>("select id from rows order by id").all();
      expect(stored.map(({ id }) => id)).toEqual(expected.sort());
    }
  }

  test("for batches of work that succeeds, throws and nests, and of transactions that fail", async () => {
    await fc.assert(fc.asyncProperty(batches, play), { numRuns, examples: pastBatches.map((all) => [all]) });
  }, 120_000);
});
