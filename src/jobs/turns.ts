import type { Deps } from "../deps.ts";
import type { Limits } from "./queue.ts";

const dayMs = 24 * 3600_000;

/** A queued job that may be begun, when it is due. */
export type Turn = { id: string; org: string; host: string; availableAt: number };

const turn = "id, org_id org, host, available_at availableAt";

/**
 * Whose turn it is. The queue is looked at by lane (organisation and host), for of a lane only the oldest job can be next: one seek in the
 * index a lane, so that neither the length of the queue nor what is blocked in it matters.
 */
export function createTurns({ db: { $client } }: Pick<Deps, "db">) {
  // A comparison of all columns before the last one seeks to the end of a lane; `+` keeps it one on columns of the index.
  const oldestOfEach = $client.prepare<Turn, []>(`
    with recursive lane as (
      select * from (select ${turn} from jobs where state = 'queued' order by org_id, host, available_at, jobs.id limit 1)
      union all
      select jobs.id, jobs.org_id, jobs.host, jobs.available_at from lane cross join jobs on jobs.rowid = (
        select rowid from jobs
        where state = 'queued' and (org_id, host, available_at) > (+lane.org, +lane.host, ${Number.MAX_SAFE_INTEGER})
        order by org_id, host, available_at, jobs.id limit 1)
    ) select * from lane`);
  const oldestOf = $client.prepare<Turn, [org: string, host: string]>(
    `select ${turn} from jobs where state = 'queued' and org_id = ? and host = ? order by available_at, id limit 1`,
  );
  const running = $client.prepare<{ org: string; host: string }, []>(
    "select org_id org, host from jobs where state = 'running'",
  );
  // Runs alone: other work is done in as many jobs as it takes.
  // Not what is begun later than now: a clock that ran ahead and was set back would block the organisation for as long as it was ahead.
  const countBegun = $client.prepare<{ n: number }, [org: string, since: number, at: number]>(
    "select count(*) n from jobs where org_id = ? and first_begun_at > ? and first_begun_at <= ? and kind = 'run'",
  );
  // `+`: through the index of what was begun, for the queue may be long.
  const begunAndQueued = $client.prepare<Turn, [org: string, since: number, at: number]>(
    `select ${turn} from jobs where org_id = ? and first_begun_at > ? and first_begun_at <= ? and +state = 'queued'`,
  );

  /**
   * The queued jobs within the limits, each as the next one to be begun if all before it were: first what is due, of that what belongs to the
   * organisation that has the fewest running, then what has been due for longest. Asking for the next one means that the last one was begun.
   */
  return function* turns(at: number, limits: Limits): Generator<Turn, undefined> {
    const ofOrg = new Map<string, number>();
    const ofHost = new Map<string, number>();
    const busy = (org: string) => ofOrg.get(org) ?? 0;
    const begin = ({ org, host }: { org: string; host: string }) => {
      ofOrg.set(org, busy(org) + 1);
      ofHost.set(host, (ofHost.get(host) ?? 0) + 1);
    };
    for (const each of running.all()) begin(each);
    /** Organisations that may begin nothing new today. What they began and had to give back is counted already. */
    const spentDay = new Set<string>();
    let heads = oldestOfEach.all();
    for (let first = best(); first; first = best()) {
      const { org, host } = first;
      const { atOnce, aDay } = limits.org(org);
      if (atOnce !== null && busy(org) >= atOnce) heads = heads.filter((head) => head.org !== org);
      else if (host !== "" && (ofHost.get(host) ?? 0) >= limits.host)
        heads = heads.filter((head) => head.host !== host);
      else if (!spentDay.has(org) && aDay !== null && (countBegun.get(org, at - dayMs, at)?.n ?? 0) >= aDay) {
        spentDay.add(org);
        heads = [...heads.filter((head) => head.org !== org), ...begunAndQueued.all(org, at - dayMs, at)];
      } else {
        yield first;
        begin(first);
        heads.splice(heads.indexOf(first), 1, ...(spentDay.has(org) ? [] : oldestOf.all(org, host)));
      }
    }

    function best(): Turn | undefined {
      let first: Turn | undefined;
      for (const head of heads) if (!first || comesBefore(head, first)) first = head;
      return first;
    }

    function comesBefore(a: Turn, b: Turn): boolean {
      const dueA = a.availableAt <= at;
      if (dueA !== b.availableAt <= at) return dueA;
      if (dueA && busy(a.org) !== busy(b.org)) return busy(a.org) < busy(b.org);
      return a.availableAt === b.availableAt ? a.id < b.id : a.availableAt < b.availableAt;
    }
  };
}
