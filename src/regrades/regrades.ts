import { and, count, desc, eq } from "drizzle-orm";
import { toFailureReason } from "../agents/failure.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { regrades } from "../db/tables/reports.ts";
import { conflict, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { cancelJob, enqueue } from "../jobs/queue.ts";
import { toIso } from "../schema.ts";
import { estimateRegrade, judgeVarianceOf, planRegrade } from "./forecast.ts";
import { costOfRegradeAttempt } from "./judge-budget.ts";
import { checkNoOverlap, toRegradeRow } from "./regrade-check.ts";
import { type RegradeRow, regradeJobOf } from "./regrade-row.ts";
import type { Regrade, RegradeRequest } from "./schema.ts";

// A regrade grades stored sessions again: with another methodology, with another judge, or repeatedly with the same one.

/** Accepts a regrade within a transaction. With `dryRun`, it only returns what the regrade would do. Throws bad_request, not_found, conflict. */
function acceptRegrade(ctx: Context, tx: Tx, org: OrgId, input: RegradeRequest): Regrade {
  const row = toRegradeRow(ctx, org, input);
  if (input.dryRun) return toRegrade(ctx, planRegrade(ctx, row), "planned");
  checkNoOverlap(ctx, row);
  tx.insert(regrades).values(row).run();
  const { methodology, judge, repeats } = row;
  recordAudit(ctx, org, "regrade.requested", { id: row.id }, changesOf({}, { methodology, judge, repeats }));
  enqueue(ctx, tx, regradeJobOf(row));
  return toRegrade(ctx, row);
}

/** Accepts a regrade and resolves once it is on disk. Throws what `acceptRegrade` throws. */
export async function requestRegrade(ctx: Context, org: OrgId, input: RegradeRequest): Promise<Regrade> {
  const accepted = await ctx.commit((tx) => acceptRegrade(ctx, tx, org, input));
  ctx.signals.jobQueued.emit();
  return accepted;
}

/** Throws not_found. */
export const getRegrade = (ctx: Context, org: OrgId, id: string): Regrade =>
  toRegrade(ctx, getRegradeOfOrg(ctx, org, id));

/** Newest first. */
export function listRegrades(ctx: Context, org: OrgId, { limit, offset }: Page): Paged<Regrade> {
  const { db } = ctx;
  const whereOfOrg = eq(regrades.orgId, org);
  const rows = db
    .select()
    .from(regrades)
    .where(whereOfOrg)
    .orderBy(desc(regrades.id))
    .limit(limit)
    .offset(offset)
    .all();
  return {
    items: rows.map((row) => toRegrade(ctx, row)),
    total: db.select({ n: count() }).from(regrades).where(whereOfOrg).get()?.n ?? 0,
  };
}

/**
 * Cancels an unfinished regrade; its results are kept. `requester` is named in its failure reason. Throws not_found, and conflict if it has
 * ended.
 */
export async function cancelRegrade(ctx: Context, org: OrgId, id: string, requester: string): Promise<Regrade> {
  await ctx.commit((tx) => {
    const row = getRegradeOfOrg(ctx, org, id);
    if (row.completedAt !== null) throw conflict(`The regrade has already ended with status ${row.status}.`);
    const { kind, subject } = regradeJobOf(row);
    const at = ctx.now();
    const failure = { failureCause: "cancelled", failureDetail: `by ${requester}` } as const;
    cancelJob(tx, { kind, subject, reason: `cancelled: by ${requester}`, at }, (lease) =>
      costOfRegradeAttempt(ctx, lease),
    );
    tx.update(regrades)
      .set({ status: "cancelled", ...failure, completedAt: at })
      .where(eq(regrades.id, row.id))
      .run();
    recordAudit(ctx, org, "regrade.cancelled", { id: row.id });
  });
  ctx.signals.jobCancelled.emit();
  return getRegrade(ctx, org, id);
}

function getRegradeOfOrg({ db }: Context, org: OrgId, id: string): RegradeRow {
  const where = and(eq(regrades.orgId, org), eq(regrades.id, id.toLowerCase()));
  const row = db.select().from(regrades).where(where).get();
  if (!row) throw notFound(`No regrade has the ID ${id}.`);
  return row;
}

function toRegrade(ctx: Context, row: RegradeRow, status: Regrade["status"] = row.status): Regrade {
  const { id, orgId, promptId, methodology, judge, repeats, maxUsd, failureCause, failureDetail } = row;
  const { total, graded, unchanged, withoutEvents, failed, unpriced, createdAt, completedAt } = row;
  const isPlanned = status === "planned";
  // A plan counts the sessions that are still to be judged as graded.
  const processed = unchanged + withoutEvents + (isPlanned ? 0 : graded + failed);
  const request = { promptId, methodology, judge, repeats, maxUsd };
  const counts = { total, graded, unchanged, withoutEvents, failed, unpriced };
  return {
    regradeId: isPlanned ? null : id,
    statusUrl: isPlanned ? null : `${ctx.baseUrl()}/api/v1/regrades/${id}`,
    status,
    ...request,
    // No report is older than the epoch.
    since: toIso(Math.max(0, row.since)),
    until: toIso(Math.max(0, row.until)),
    ...counts,
    spentUsd: Number(row.spentUsd.toFixed(6)),
    estimatedUsd: completedAt === null ? estimateRegrade(ctx, orgId as OrgId, row, processed) : 0,
    variance: judgeVarianceOf(ctx, row),
    failureReason: toFailureReason({ failureCause, failureDetail }),
    createdAt: toIso(createdAt),
    completedAt: toIso(completedAt),
  };
}
