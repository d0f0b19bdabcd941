import type { Db } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import type { jobPools } from "../db/tables/jobs.ts";

const dayMs = 24 * 3600_000;

/** How many jobs of an organization may run at once, and how many it may start within 24 hours. null: unlimited. */
export type OrgLimits = { atOnce: number | null; aDay: number | null };
/** Limits that a claim respects. `host`: how many jobs may run against one host at once. */
export type Limits = { org: (orgId: string) => OrgLimits; host: number };

/** A queued job that may be claimed once it is due. `host`: empty if it requests none. */
type Candidate = { id: string; org: string; host: string; availableAt: number };

const columns = "id, org_id org, host, available_at availableAt";

/** Condition for a requeued job whose time has come. */
const isDueAgain = "state = 'queued' and available_at > 0 and available_at <= ?";

export type Pool = (typeof jobPools)[number];
type QueueRow = Candidate | { id: null; org: string; host: string } | { id: null; org: null };

const statements = perConnection((db: Db) => ({
  runs: prepareFor(db, "runs"),
  deliveries: prepareFor(db, "deliveries"),
}));

function prepareFor({ $client }: Db, pool: Pool) {
  const isQueued = `pool = '${pool}' and state = 'queued'`;
  // The oldest job of each lane; then running jobs, as rows without an ID; and, if a requeued job is due, one row without an organization.
  // One statement reads all of them, because a second one would take as long again.
  // The next lane begins after the last possible due time of this one. With `+`, SQLite seeks there by all columns of the index, not only the first.
  const overview = $client.prepare<QueueRow, [at: number]>(`
    with recursive lane as (
      select * from (select ${columns} from jobs where ${isQueued} order by org_id, host, available_at, jobs.id limit 1)
      union all
      select jobs.id, jobs.org_id, jobs.host, jobs.available_at from lane cross join jobs on jobs.rowid = (
        select rowid from jobs
        where ${isQueued} and (org_id, host, available_at) > (+lane.org, +lane.host, ${Number.MAX_SAFE_INTEGER})
        order by org_id, host, available_at, jobs.id limit 1)
    )
    select * from lane
    union all select null, org_id, host, null from jobs where pool = '${pool}' and state = 'running'
    union all select null, null, null, null where exists (select 1 from jobs where ${isDueAgain})`);
  const markDue = $client.prepare<never, [at: number]>(`update jobs set available_at = 0 where ${isDueAgain}`);
  const oldestOf = $client.prepare<Candidate, [org: string, host: string]>(
    `select ${columns} from jobs where ${isQueued} and org_id = ? and host = ? order by available_at, id limit 1`,
  );
  // Only runs count towards the limit.
  // Starts in the future are ignored: after a fast clock is corrected, they would block the organization.
  const countStarted = $client.prepare<{ n: number }, [org: string, since: number, at: number]>(
    "select count(*) n from jobs where org_id = ? and started_at > ? and started_at <= ? and kind = 'run'",
  );
  // `+` makes SQLite use the index on started_at, since the queue may be long.
  const startedAndQueued = $client.prepare<Candidate, [org: string, since: number, at: number]>(
    `select ${columns} from jobs where org_id = ? and started_at > ? and started_at <= ? and pool = '${pool}' and +state = 'queued'`,
  );

  return { overview, markDue, oldestOf, countStarted, startedAndQueued };
}

/**
 * Yields the queued jobs of a pool within the limits, in the order in which to start them. Due jobs come first, then jobs of the organization with
 * the fewest running jobs, then the oldest. Pulling the next job means that the previous one was started. The queue is read by lane (organization and
 * host), because only the oldest job of a lane can be next. That takes one index lookup per lane, no matter how long the queue is and how much of it
 * is blocked.
 */
export function* candidates(db: Db, pool: Pool, at: number, limits: Limits): Generator<Candidate, undefined> {
  const { overview, markDue, oldestOf, countStarted, startedAndQueued } = statements(db)[pool];
  const runningByOrg = new Map<string, number>();
  const runningByHost = new Map<string, number>();
  const runningOf = (org: string) => runningByOrg.get(org) ?? 0;
  const countRunning = ({ org, host }: { org: string; host: string }) => {
    runningByOrg.set(org, runningOf(org) + 1);
    runningByHost.set(host, (runningByHost.get(host) ?? 0) + 1);
  };
  let rows = overview.all(at);
  // A job that is due again is ordered by age; otherwise newer jobs could starve it.
  if (rows.at(-1)?.org === null) {
    markDue.run(at);
    rows = overview.all(at);
  }
  let oldest: Candidate[] = [];
  for (const row of rows) {
    if (row.id !== null) oldest.push(row);
    else if (row.org !== null) countRunning(row);
  }
  /** Organizations at their daily limit. Their requeued jobs may still run, because these have been counted already. */
  const atDailyLimit = new Set<string>();
  for (let next = nextJob(); next; next = nextJob()) {
    const { org, host } = next;
    const { atOnce, aDay } = limits.org(org);
    if (atOnce !== null && runningOf(org) >= atOnce) oldest = oldest.filter((job) => job.org !== org);
    else if (host !== "" && (runningByHost.get(host) ?? 0) >= limits.host)
      oldest = oldest.filter((job) => job.host !== host);
    else if (!atDailyLimit.has(org) && aDay !== null && (countStarted.get(org, at - dayMs, at)?.n ?? 0) >= aDay) {
      atDailyLimit.add(org);
      oldest = [...oldest.filter((job) => job.org !== org), ...startedAndQueued.all(org, at - dayMs, at)];
    } else {
      yield next;
      countRunning(next);
      oldest.splice(oldest.indexOf(next), 1, ...(atDailyLimit.has(org) ? [] : oldestOf.all(org, host)));
    }
  }

  function nextJob(): Candidate | undefined {
    let first: Candidate | undefined;
    for (const job of oldest) if (!first || comesBefore(job, first)) first = job;
    return first;
  }

  function comesBefore(a: Candidate, b: Candidate): boolean {
    const dueA = a.availableAt <= at;
    if (dueA !== b.availableAt <= at) return dueA;
    if (dueA && runningOf(a.org) !== runningOf(b.org)) return runningOf(a.org) < runningOf(b.org);
    return a.availableAt === b.availableAt ? a.id < b.id : a.availableAt < b.availableAt;
  }
}
