// The queue beside a hand-written floor and two other queues on SQLite, all of them in files of their own, in one process.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { QueueManager } from "bunqueue/queue";
import { bun, defineQueue } from "plainjob";
import { closeDb, openDb, transaction } from "../../src/db/open.ts";
import type { OrgLimits } from "../../src/jobs/claim-order.ts";
import { claimJobs, enqueue, settleJob } from "../../src/jobs/queue.ts";
import { bareContext } from "../support/context.ts";
import { median } from "./load.ts";

const rounds = 9;
const roundMs = 500;
const newId = (atMs: number) => Bun.randomUUIDv7("hex", atMs);
const unlimited: OrgLimits = { atOnce: null, aDay: null };

function openQueue(dataDir: string) {
  const db = openDb(dataDir);
  const ctx = bareContext(db);
  return { db, ctx, commit: ctx.commit };
}

/** One job enqueued, claimed and settled, each step on the disk before the next. */
type Contestant = { cycle: () => unknown; close: () => void };

function evald(dataDir: string): Contestant {
  const { db, ctx, commit } = openQueue(dataDir);
  const limits = { org: () => ({ atOnce: 64, aDay: null }), host: 64 };
  return {
    async cycle() {
      const job = {
        pool: "runs",
        kind: "run",
        subject: Bun.randomUUIDv7(),
        orgId: "org",
        host: "docs.test",
        maxAttempts: 3,
      } as const;
      await commit((tx) => enqueue(ctx, tx, job));
      const [lease] = (
        await commit((tx) => claimJobs(ctx, tx, { pool: "runs", most: 1, owner: "bench", leaseMs: 30_000, limits }))
      ).leases;
      if (!lease || !(await commit((tx) => settleJob(ctx, tx, lease, { state: "done", reason: null, costUsd: 0 }))))
        throw new Error("no job");
    },
    close: () => closeDb(db),
  };
}

/** The least that can be durable: three statements on the same table, without limits, order among organizations, or history. */
function floor(dataDir: string): Contestant {
  const db = openDb(dataDir);
  const { $client } = db;
  const enqueue = $client.prepare(
    "insert into jobs (id, kind, subject, org_id, host, state, available_at, attempt, spent, max_attempts, faults, deaths, created_at) values (?, 'run', ?, 'org', 'docs.test', 'queued', 0, 0, 0, 3, 0, 0, ?)",
  );
  const claim = $client.prepare<{ id: string; attempt: number }, [string, number, number, number]>(
    "update jobs set state = 'running', attempt = attempt + 1, owner = ?, lease_until = ?, started_at = coalesce(started_at, ?) where id = (select id from jobs where state = 'queued' and org_id = 'org' and host = 'docs.test' and available_at <= ? order by available_at, id limit 1) returning id, attempt",
  );
  const settle = $client.prepare(
    "update jobs set state = 'done', lease_until = null, completed_at = ? where id = ? and attempt = ? and state = 'running'",
  );
  return {
    cycle() {
      const at = Date.now();
      enqueue.run(newId(at), Bun.randomUUIDv7(), at);
      const job = claim.get("bench", at + 30_000, at, at);
      if (!job || settle.run(Date.now(), job.id, job.attempt).changes === 0) throw new Error("no job");
    },
    close: () => closeDb(db),
  };
}

function plainjob(dataDir: string): Contestant {
  const db = new Database(join(dataDir, "plainjob.db"), { strict: true });
  const silent = { error() {}, warn() {}, info() {}, debug() {} };
  const queue = defineQueue({ connection: bun(db), logger: silent });
  // It sets NORMAL by itself.
  db.run("pragma synchronous = FULL");
  return {
    cycle() {
      queue.add("run", { subject: Bun.randomUUIDv7() });
      const job = queue.getAndMarkJobAsProcessing("run");
      if (!job) throw new Error("no job");
      queue.markJobAsDone(job.id);
    },
    close: () => queue.close(),
  };
}

function bunqueue(dataDir: string): Contestant {
  const queue = new QueueManager({ dataPath: join(dataDir, "bunqueue.db") });
  return {
    async cycle() {
      await queue.push("run", { name: "run", data: { subject: Bun.randomUUIDv7() }, durable: true });
      const { job, token } = await queue.pullWithLock("run", "bench");
      if (!job || token === null) throw new Error("no job");
      await queue.ack(job.id, undefined, token);
    },
    close: () => queue.shutdown(),
  };
}

async function rate({ cycle }: Contestant, callers: number): Promise<number> {
  const begun = performance.now();
  let cycles = 0;
  const caller = async () => {
    while (performance.now() - begun < roundMs) {
      await cycle();
      cycles++;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return (cycles / (performance.now() - begun)) * 1000;
}

/** Milliseconds of a durable claim out of `queued` jobs in so many lanes, which lie behind those of a blocked organization if there is one. */
async function claims(dataDir: string, queued: number, lanes: number, isBlocked: boolean) {
  const { db, ctx, commit } = openQueue(dataDir);
  const limits = { org: (id: string) => (id === "blocked" ? { atOnce: 1, aDay: null } : unlimited), host: 64 };
  const enqueueMany = (count: number, orgOf: (i: number) => string) =>
    transaction(db, (tx) => {
      for (let i = 0; i < count; i++) {
        const host = `docs-${i % lanes}.test`;
        enqueue(ctx, tx, {
          pool: "runs",
          kind: "run",
          subject: Bun.randomUUIDv7(),
          orgId: orgOf(i),
          host,
          maxAttempts: 3,
        });
      }
    });
  if (isBlocked) {
    enqueueMany(queued, () => "blocked");
    transaction(db, (tx) => claimJobs(ctx, tx, { pool: "runs", most: 1, owner: "bench", leaseMs: 3_600_000, limits }));
    enqueueMany(500, () => "open");
  } else enqueueMany(queued, (i) => `org-${i % Math.ceil(lanes / 10)}`);
  const times: number[] = [];
  for (let i = 0; i < 400; i++) {
    const begun = performance.now();
    const [lease] = (
      await commit((tx) => claimJobs(ctx, tx, { pool: "runs", most: 1, owner: "bench", leaseMs: 30_000, limits }))
    ).leases;
    times.push(performance.now() - begun);
    if (!lease) throw new Error("no job");
    await commit((tx) => settleJob(ctx, tx, lease, { state: "done", reason: null, costUsd: 0 }));
  }
  closeDb(db);
  times.sort((a, b) => a - b);
  return { p50: median(times), p99: times[Math.floor(times.length * 0.99)] as number };
}

/** What the acknowledgement of each contestant survives, by its source. */
type Row = (what: string, ours: string, floor: string, ratio: string, aim: string) => void;

/** Adds the rows of the queue. The rounds of all contestants take turns, so that a machine that gets slower or faster does so for each. */
export async function benchJobs(row: Row, folder: () => string): Promise<void> {
  const turns: [Contestant, callers: number][] = [
    [evald(folder()), 1],
    [floor(folder()), 1],
    [plainjob(folder()), 1],
    [bunqueue(folder()), 1],
    [evald(folder()), 32],
  ];
  const rates = turns.map(() => [] as number[]);
  for (let round = -1; round < rounds; round++)
    for (const [i, [contestant, callers]] of turns.entries()) {
      const result = await rate(contestant, callers);
      if (round >= 0) rates[i]?.push(result);
    }
  for (const [{ close }] of turns) close();
  const [one, base, plainRate, otherRate, many] = rates.map(median) as [number, number, number, number, number];
  const perSecond = (each: number) => `${Math.round(each)}/s`;
  const percent = (a: number, b: number) => `${Math.round((a / b) * 100)}%`;
  row("Job cycle (enqueue, claim, settle), 1 client", perSecond(one), perSecond(base), percent(one, base), "≥ 85%");
  row("Job cycle, 32 clients (floor: 1 client)", perSecond(many), perSecond(base), percent(many, base), "≥ 200%");
  row(
    "Job cycle, 1 client (floor: plainjob at FULL ¹)",
    perSecond(one),
    perSecond(plainRate),
    percent(one, plainRate),
    "",
  );
  row(
    "Job cycle, 1 client (floor: bunqueue, durable ²)",
    perSecond(one),
    perSecond(otherRate),
    percent(one, otherRate),
    "",
  );

  const kinds: [name: string, lanes: number, isBlocked: boolean][] = [
    ["one lane", 1, false],
    ["100 lanes", 100, false],
    ["behind a blocked organization", 1, true],
  ];
  for (const [name, lanes, isBlocked] of kinds) {
    const few = await claims(folder(), 10_000, lanes, isBlocked);
    const lots = await claims(folder(), 100_000, lanes, isBlocked);
    const ms = ({ p50, p99 }: typeof few) => `p50 ${p50.toFixed(2)}, p99 ${p99.toFixed(2)} ms`;
    row(
      `Claim 1 of 100,000 queued jobs, ${name} (floor: 1 of 10,000)`,
      ms(lots),
      ms(few),
      `${(lots.p50 / few.p50).toFixed(2)} ×`,
      "≤ 1.2 ×",
    );
  }
}
