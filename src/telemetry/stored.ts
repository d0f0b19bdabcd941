import type { Db } from "../db/open.ts";

type Waiting = { pool: string; queued: number; delayed: number; oldest: string | null };
type Running = { pool: string; running: number };
type Spending = { usd: number | null; calls: number | null };

/** Milliseconds of an interval of the spending table. */
const intervalMs = 15 * 60_000;

/** Creation time of a UUIDv7, in epoch milliseconds. */
const timeOf = (id: string): number => Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);

/** Returns a function that reads what the database knows about all organizations: unfinished jobs, and spending since this call. All by indexes. */
export function countStored({ $client }: Db, now: () => number) {
  // IDs of jobs are in order of creation.
  const waiting = $client.prepare<Waiting, []>(
    `select pool, sum(available_at = 0) queued, sum(available_at > 0) delayed, min(iif(available_at = 0, id, null)) oldest
    from jobs where state = 'queued' group by pool`,
  );
  const running = $client.prepare<Running, []>(
    "select pool, count(*) running from jobs where state = 'running' group by pool",
  );
  const spending = $client.prepare<Spending, [from: number]>(
    `select sum(s.usd) usd, sum(s.unpriced_calls) calls from orgs o
    cross join spending s on s.org_id = o.id and s."from" >= ?`,
  );
  const from = Math.floor(now() / intervalMs) * intervalMs;
  const read = () => {
    const { usd, calls } = spending.get(from) ?? {};
    return { usd: usd ?? 0, calls: calls ?? 0 };
  };
  const before = read();
  return () => {
    const { usd, calls } = read();
    return {
      waiting: waiting
        .all()
        .map(({ oldest, ...rest }) => ({ ...rest, oldestAt: oldest === null ? null : timeOf(oldest) })),
      running: running.all(),
      usd: Math.max(0, usd - before.usd),
      calls: Math.max(0, calls - before.calls),
    };
  };
}
