import { recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import type { Db } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import { firstIdOf } from "../db/rows.ts";
import { AppError, notFound } from "../errors.ts";
import { turnOfOrg } from "../http/turns.ts";
import { replayDelivery } from "../notifications/deliveries.ts";
import { type EvalSource, requestRerun } from "../runs/requests.ts";
import { toIso } from "../schema.ts";
import type { FailureGroup, GroupRetry } from "./schema.ts";

/** Failures count for this long. */
const recentMs = 7 * 24 * 3600_000;
/** How many of the newest failures are grouped: this many runs, and this many deliveries. */
const maxFailures = 10_000;
/** How many runs or deliveries one request retries. */
const maxRetried = 100;

type Failure = {
  kind: "run" | "delivery";
  id: string;
  orgId: string;
  orgName: string;
  cause: string;
  code: string | null;
  at: number;
  destinationId: string | null;
};

/** Followed by the ID of a failed run, this is the idempotency key of its retry. */
const retryPrefix = "retry-";

const statements = perConnection(({ $client }: Db) => ({
  runs: $client.prepare<Failure, [since: string, limit: number]>(
    `select 'run' kind, r.id, r.org_id orgId, o.name orgName, r.failure_cause cause, r.failure_code code, r.completed_at at,
      null destinationId
    from runs r indexed by runs_failed_newest join orgs o on o.id = r.org_id
    where r.status = 'failed' and r.id >= ? and r.failure_cause != 'cancelled'
      and r.prompt_id not in (select prompt_id from deleted_prompts) and not exists (
      select 1 from runs retry where retry.org_id = r.org_id and retry.idempotency_key = '${retryPrefix}' || r.id)
    order by r.id desc limit ?`,
  ),
  deliveries: $client.prepare<Failure, [since: string, limit: number]>(
    `select 'delivery' kind, d.id, d.org_id orgId, o.name orgName, d.failure cause, d.completed_at at, d.destination_id destinationId,
      (select cast(t.status as text) from delivery_tries t where t.delivery_id = d.id order by t.attempt desc limit 1) code
    from deliveries d indexed by deliveries_failed join orgs o on o.id = d.org_id
    join notifications n on n.id = d.notification_id
    where d.status = 'failed' and d.id >= ? and d.failure != 'deleted' and d.org_id not in (select org_id from deleted_orgs)
      and (n.prompt_id is null or n.prompt_id not in (select prompt_id from deleted_prompts)) and not exists (
      select 1 from deliveries other where other.org_id = d.org_id and other.notification_id = d.notification_id
        and other.destination_id = d.destination_id and (other.status != 'failed' or other.id > d.id))
    order by d.id desc limit ?`,
  ),
}));

const listFailures = (ctx: Context): Failure[] => {
  const since = firstIdOf(ctx.now() - recentMs);
  const { runs, deliveries } = statements(ctx.db);
  return [...runs.all(since, maxFailures), ...deliveries.all(since, maxFailures)];
};

const groupIdOf = ({ kind, cause, code }: Failure) => [kind, cause, code ?? "none"].join("-");

/** What failed in the last week and was not retried, in all organizations. Grouped by cause, with the largest group first. */
export function listFailureGroups(ctx: Context): FailureGroup[] {
  return [...Map.groupBy(listFailures(ctx), groupIdOf)]
    .flatMap(([id, failures]): FailureGroup[] => {
      const [first] = failures;
      if (!first) return [];
      const times = failures.map(({ at }) => at);
      return [
        {
          id,
          kind: first.kind,
          cause: first.cause,
          code: first.code,
          failed: failures.length,
          organizations: [...new Set(failures.map(({ orgName }) => orgName))].sort(),
          oldestAt: toIso(Math.min(...times)),
          newestAt: toIso(Math.max(...times)),
        },
      ];
    })
    .sort((a, b) => b.failed - a.failed);
}

/** Retries the oldest failures of a group, at most 100. `by`: who requests the runs. Throws not_found. */
export async function retryGroup(ctx: Context, id: string, by: EvalSource): Promise<GroupRetry> {
  const failures = listFailures(ctx)
    .filter((failure) => groupIdOf(failure) === id)
    .reverse();
  if (failures.length === 0) throw notFound(`No group of failures has the ID ${JSON.stringify(id)}.`);
  let retried = 0;
  const batch = failures.slice(0, maxRetried);
  for (const failure of batch) {
    const org = failure.orgId as OrgId;
    try {
      if (failure.kind === "run")
        await requestRerun(ctx, org, failure.id, { ...by, idempotencyKey: retryPrefix + failure.id });
      else replayDelivery(ctx, org, failure.destinationId ?? "", failure.id);
      retried++;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
    }
    // This way, requests are answered between the retries.
    await turnOfOrg(ctx, org);
  }
  recordAudit(ctx, null, "queue.retried", { id, name: `${retried} of ${failures.length}` });
  return { retried, refused: batch.length - retried, left: failures.length - batch.length };
}
