import type { Context } from "../context.ts";
import type { Db } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import { timeOfId } from "../db/rows.ts";
import { listPauses, type PauseRow } from "../runs/pauses.ts";
import { toIso } from "../schema.ts";
import type { Workers } from "../workers/workers.ts";
import type { QueueOverview, QueuePause } from "./schema.ts";

type JobCount = "waiting" | "delayed" | "paused" | "running" | "failing";
/** Unfinished jobs by state. `failing`: how many of them failed before. `oldest`: the ID of the oldest waiting job; null: none waits. */
type JobCounts = Record<JobCount, number> & { oldest: string | null };
/** The jobs of an organization or agent; `key` is its ID. */
type JobGroup = { key: string } & JobCounts;

/** Raw SQL, because it names the partial indexes of unfinished jobs. Otherwise SQLite may read all jobs of a kind. `available_at` 0 means now. */
const statements = perConnection(({ $client }: Db) => {
  const indexes = { queued: "jobs_claim", held: "jobs_held", running: "jobs_running" };
  const ofStates = Object.entries(indexes).map(
    ([state, index]) =>
      `select id, pool, kind, subject, org_id, available_at, spent, faults, deaths, '${state}' state from jobs indexed by ${index} where state = '${state}'`,
  );
  const unfinished = `(${ofStates.join(" union all ")})`;
  const counts = `
    sum(state = 'queued' and available_at <= ?1) waiting, sum(state = 'queued' and available_at > ?1) delayed,
    sum(state = 'held') paused, sum(state = 'running') running, sum(spent + faults + deaths > 0) failing,
    min(iif(state = 'queued' and available_at <= ?1, j.id, null)) oldest`;
  return {
    byOrg: $client.prepare<JobGroup, [now: number]>(
      `select org_id key, ${counts} from ${unfinished} j where pool = 'runs' and kind = 'run'
      and org_id not in (select org_id from deleted_orgs) group by org_id`,
    ),
    byAgent: $client.prepare<JobGroup, [now: number]>(
      `select r.agent key, ${counts} from ${unfinished} j cross join runs r on r.id = j.subject
      where pool = 'runs' and kind = 'run' group by r.agent`,
    ),
    deliveries: $client.prepare<JobCounts, [now: number]>(
      `select ${counts} from ${unfinished} j where pool = 'deliveries'`,
    ),
    orgs: $client.prepare<{ id: string; name: string }, []>(
      "select id, name from orgs where id not in (select org_id from deleted_orgs)",
    ),
  };
});

const noJobs: JobCounts = { waiting: 0, delayed: 0, paused: 0, running: 0, failing: 0, oldest: null };

/** SQL sums of no rows are null. */
const toCounts = ({ oldest, ...group }: JobCounts) => ({
  waiting: group.waiting ?? 0,
  delayed: group.delayed ?? 0,
  paused: group.paused ?? 0,
  running: group.running ?? 0,
  failing: group.failing ?? 0,
  oldestWaitingAt: toIso(oldest === null ? null : timeOfId(oldest)),
});

/** The number of unfinished jobs. */
const sizeOf = ({ waiting, delayed, paused, running }: JobCounts) => waiting + delayed + paused + running;

/** A pause as operators see it. */
export const toPause = (ctx: Context, { kind, subject, reason, pausedBy, createdAt }: PauseRow): QueuePause => ({
  kind,
  subject,
  reason,
  pausedBy,
  name: kind === "agent" ? subject : (namesOfOrgs(ctx).get(subject) ?? subject),
  pausedAt: toIso(createdAt),
});

const namesOfOrgs = ({ db }: Context): Map<string, string> =>
  new Map(
    statements(db)
      .orgs.all()
      .map(({ id, name }) => [id, name]),
  );

/** The queue of all organizations: counts by organization, agent and worker, and names. */
export function getQueueOverview(ctx: Context, workers: Workers): QueueOverview {
  const { byOrg, byAgent, deliveries } = statements(ctx.db);
  const now = ctx.now();
  const pauses = listPauses(ctx.db);
  const names = namesOfOrgs(ctx);
  const groupsOf = (kind: PauseRow["kind"], groups: JobGroup[]) => {
    const paused = new Set(pauses.filter((pause) => pause.kind === kind).map(({ subject }) => subject));
    const withoutJobs = [...paused].filter((subject) => groups.every(({ key }) => key !== subject));
    return [...groups, ...withoutJobs.map((key) => ({ key, ...noJobs }))]
      .sort((a, b) => sizeOf(b) - sizeOf(a))
      .map(({ key, ...counts }) => ({ key, group: { isPaused: paused.has(key), ...toCounts(counts) } }));
  };
  const orgGroups = byOrg.all(now);
  const sum = (name: JobCount) => orgGroups.reduce((total, group) => total + group[name], 0);
  const oldest = orgGroups.flatMap((group) => group.oldest ?? []).sort()[0] ?? null;
  const ofDeliveries = toCounts(deliveries.get(now) ?? noJobs);
  return {
    ...toCounts({
      waiting: sum("waiting"),
      delayed: sum("delayed"),
      paused: sum("paused"),
      running: sum("running"),
      failing: sum("failing"),
      oldest,
    }),
    organizations: groupsOf("organization", orgGroups).map(({ key, group }) => ({
      id: key,
      name: names.get(key) ?? key,
      ...group,
    })),
    agents: groupsOf("agent", byAgent.all(now)).map(({ key, group }) => ({ agent: key, ...group })),
    workers: (workers?.list() ?? []).map(({ name, state, slots, runIds }) => ({
      name,
      state,
      slots,
      sessions: runIds.length,
    })),
    deliveries: { waiting: ofDeliveries.waiting, delayed: ofDeliveries.delayed, running: ofDeliveries.running },
    pauses: pauses.map((pause) => toPause(ctx, pause)),
  };
}
