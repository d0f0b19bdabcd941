import { Database } from "bun:sqlite";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { call, client, emptyFolder, instant, serve } from "./executable.ts";
import { randomOf } from "./random.ts";
import { until } from "./until.ts";

/** How often the service is killed under load; other repetitions scale with it. `bun run torture` is the long form. */
const kills = Number(process.env.TORTURE ?? 15);
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

/** The scaled number of repetitions for a default of `n`. */
export const times = (n: number): number => Math.max(1, Math.round((n * kills) / 100));

/** Reproducible random numbers from 0 to 1, by SEED. */
export function createRandom(): () => number {
  console.log(`SEED=${seed}`);
  return randomOf(seed);
}

const started: { signal(name: "SIGKILL"): void }[] = [];

/** Ends processes that a failed test left running, or frozen. */
export function endAll(): void {
  for (const service of started.splice(0)) service.signal("SIGKILL");
}

type Member = { key: string; prompts: string[] };
export type World = Awaited<ReturnType<typeof createWorld>>;

/** Creates a data folder with two organizations, each with a key and a prompt for each text, on the command line. */
export async function createWorld(...texts: string[]) {
  const cwd = emptyFolder();
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await call(args, { cwd, file: instant });
    if (code !== 0) throw new Error(stderr);
    return stdout.trim();
  };
  const members: Member[] = [];
  for (const org of ["Acme", "Globex"]) {
    await run("org", "create", org);
    const key = await run("key", "create", "--org", org, "--name", "load");
    const prompts: string[] = [];
    for (const text of texts)
      prompts.push(await run("prompt", "create", "--org", org, "--text", text, "--start-url", "https://docs.test/"));
    members.push({ key, prompts });
  }

  /** No connection stays open, because otherwise the next start would need no recovery. */
  function open<T>(options: { readonly: true } | { readwrite: true }, work: (db: Database) => T): T {
    const db = new Database(join(cwd, "data", "evald.db"), options);
    try {
      return work(db);
    } finally {
      db.close();
    }
  }

  const count = (sql: string, ...values: (string | number)[]): number =>
    open({ readonly: true }, (db) => {
      db.run("pragma busy_timeout = 5000");
      return Object.values(db.query<Record<string, number>, (string | number)[]>(sql).get(...values) ?? {})[0] ?? 0;
    });

  return {
    cwd,
    members,
    first: members[0] as Member,
    /** One number from the database. */
    count,
    /** The first column of a query. */
    list: (sql: string): string[] =>
      open({ readonly: true }, (db) => {
        db.run("pragma busy_timeout = 5000");
        return db.query(sql).values().flat() as string[];
      }),
    /** Whether the database accepts writes. */
    isWritable: (): boolean =>
      open({ readwrite: true }, (db) => {
        try {
          db.run("pragma busy_timeout = 200");
          db.run("begin immediate");
          db.run("rollback");
          return true;
        } catch {
          return false;
        }
      }),
    /** Starts the service with capacity for many concurrent runs. */
    async start(env: Record<string, string> = {}) {
      const room = { EVALD_CONCURRENCY: "32", EVALD_RUNS_PER_HOST: "64", EVALD_LOG_LEVEL: "warn" };
      const service = await serve({ cwd, file: instant, env: { ...room, ...env } });
      started.push(service);
      return service;
    },
    finished: (ms = 170_000) =>
      until("every run has ended", () => count("select count(*) = 0 from runs where completed_at is null"), ms),
  };
}

/** Another folder with the same database, for a second process with its own data lock. */
export function shareDatabase({ cwd }: World): string {
  const other = emptyFolder();
  mkdirSync(join(other, "data"));
  symlinkSync(join(cwd, "data", "evald.db"), join(other, "data", "evald.db"));
  return other;
}

type Request = Member & { prompt: string; idempotencyKey?: string };

/** Requests runs and records the responses. A run is accepted once the body of its 200 was read completely. */
export function createLoad({ members }: World, random: () => number) {
  const accepted = new Map<string, Member & { at: number }>();
  const byKey = new Map<string, string>();
  const cutOff: Request[] = [];
  const refused: string[] = [];
  let sent = 0;
  let again = 0;
  const pick = <T>(items: T[]): T => items[Math.floor(random() * items.length)] as T;

  /** A new request, one whose response was cut off, or sometimes one that got a response. */
  function next(): Request {
    const cut = cutOff.pop();
    if (cut) return cut;
    const member = pick(members);
    sent++;
    const idempotencyKey = random() < 0.3 ? `load-${sent}` : undefined;
    return { ...member, prompt: pick(member.prompts), idempotencyKey };
  }

  async function send(url: string, request: Request): Promise<void> {
    const { key, prompt, idempotencyKey } = request;
    let status: number;
    let body: { runId: string };
    try {
      const response = await fetch(`${url}/api/v1/prompts/${prompt}/run`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
        },
        body: '{"urlMap": {}}',
      });
      status = response.status;
      body = await response.json();
    } catch (error) {
      if (idempotencyKey !== undefined) cutOff.push(request);
      throw error;
    }
    if (status !== 200) {
      refused.push(`${status} ${JSON.stringify(body)}`);
      return;
    }
    const earlier = idempotencyKey === undefined ? undefined : byKey.get(idempotencyKey);
    if (earlier !== undefined && earlier !== body.runId) refused.push(`${idempotencyKey} made a second run`);
    if (!accepted.has(body.runId)) accepted.set(body.runId, { ...request, at: performance.now() });
    if (idempotencyKey === undefined) return;
    byKey.set(idempotencyKey, body.runId);
    if (earlier === undefined && random() < 0.1) {
      again++;
      await send(url, request);
    }
  }

  async function connection(url: string, pauseMs: number, stopped: () => boolean): Promise<void> {
    try {
      while (!stopped()) {
        await send(url, next());
        if (pauseMs > 0) await Bun.sleep(pauseMs);
      }
    } catch {
      // The service went away.
    }
  }

  return {
    accepted,
    refused,
    /** Requests that were repeated after a response. */
    again: () => again,
    cutOff: () => cutOff.length,
    /**
     * Sends requests over several connections until `stop` is called or the service goes away; `ended` resolves when
     * none is in progress.
     */
    run(url: string, connections: number, pauseMs = 0) {
      let stopped = false;
      const all = Array.from({ length: connections }, () => connection(url, pauseMs, () => stopped));
      const ended = Promise.all(all).then(() => {});
      return {
        ended,
        stop(): Promise<void> {
          stopped = true;
          return ended;
        },
      };
    },
    /** Requests many runs at the same time. */
    burst: (url: string, n: number) => Promise.all(Array.from({ length: n }, () => send(url, next()))),
    /** Repeats every request whose response was cut off. */
    async settle(url: string): Promise<void> {
      for (let request = cutOff.pop(); request; request = cutOff.pop()) await send(url, request);
    },
    /** Accepted runs that the lists of their organizations don't show as completed. */
    async missing(url: string): Promise<string[]> {
      const completed = new Set<string>();
      for (const { key } of members)
        for (let offset = 0; ; offset += 1000) {
          const { body } = await client(url, key)("GET", `/api/v1/runs?limit=1000&offset=${offset}`);
          for (const { runId, status, report } of body) if (status === "completed" && report) completed.add(runId);
          if (body.length < 1000) break;
        }
      return [...accepted.keys()].filter((id) => !completed.has(id));
    },
  };
}

/** Rows that violate the guarantees. Each entry describes what is wrong with some rows of an idle database. */
const breaches = {
  "runs without an end": "select id from runs where completed_at is null",
  "jobs without an end": "select id from jobs where state in ('queued', 'running')",
  "completed runs without a report":
    "select id from runs where status = 'completed' and id not in (select run_id from reports)",
  "reports of runs that are not completed":
    "select id from reports where run_id not in (select id from runs where status = 'completed')",
  "runs with two reports": "select run_id from reports group by run_id having count(*) > 1",
  "reports of an attempt that is not the last":
    "select r.id from reports r join jobs j on j.subject = r.run_id where r.attempt != j.attempt",
  "reports of a session that is not whole": `select r.id from reports r where not exists
    (select 1 from session_events e where e.run_id = r.run_id and e.attempt = r.attempt and e.type = 'end')`,
  "jobs whose run ended otherwise": `select j.id from jobs j join runs r on r.id = j.subject
    where (j.state = 'done') != (r.status = 'completed')`,
  "attempts without an end": "select job_id from attempts where outcome is null",
  "jobs with a gap in their history":
    "select id from jobs left join (select job_id, count(*) n from attempts group by job_id) on job_id = id where attempt != coalesce(n, 0)",
  "jobs that were done twice": "select job_id from attempts where outcome = 'done' group by job_id having count(*) > 1",
  "keys that made two runs":
    "select idempotency_key from runs where idempotency_key is not null group by 1 having count(*) > 1",
  "wrong counts of runs": `select prompt_id, sum(n) from (
      select prompt_id, 'any' status, 1 n from runs union all
      select prompt_id, status, 1 from reports union all
      select prompt_id, report_status, -count from run_counts
    ) group by prompt_id, status having sum(n) != 0`,
  "broken references": "pragma foreign_key_check",
  "a damaged file": "select * from pragma_integrity_check where integrity_check != 'ok'",
};

/** The number of rows that violate each guarantee of an idle database; empty if none do. */
export function findBreaches({ cwd }: World): Record<string, number> {
  const db = new Database(join(cwd, "data", "evald.db"));
  try {
    const found = Object.entries(breaches).map(([what, sql]) => [what, db.query(sql).all().length] as const);
    return Object.fromEntries(found.filter(([, n]) => n > 0));
  } finally {
    db.close();
  }
}
