import { and, count, desc, eq } from "drizzle-orm";
import { toFailureReason } from "../agents/failure.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { regrades } from "../db/tables/reports.ts";
import { conflict, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { cancelJob, enqueue } from "../jobs/queue.ts";
import { toIso } from "../schema.ts";
import { estimateRegrade, judgeVarianceOf, planRegrade } from "./forecast.ts";
import { costOfRegradeAttempt, jobOf } from "./job.ts";
import { checkNoOtherRegrade, toRegradeRow } from "./regrade-check.ts";
import type { RegradeRow as Row } from "./regrade-row.ts";
import type { Regrade, RegradeRequest } from "./schema.ts";

/** Accepts a regrade as part of a transaction; with `dryRun`, only returns what it would do. Throws bad_request, not_found, conflict. */
function acceptRegrade(ctx: Context, tx: Tx, org: OrgId, input: RegradeRequest): Regrade {
  const row = toRegradeRow(ctx, org, input);
  if (input.dryRun) return toRegrade(ctx, planRegrade(ctx, row), "planned");
  checkNoOtherRegrade(ctx, row);
  tx.insert(regrades).values(row).run();
  enqueue(ctx, tx, jobOf(row));
  return toRegrade(ctx, row);
}

/** Accepts a regrade and resolves once it is on disk. Throws what `acceptRegrade` throws. */
export async function requestRegrade(ctx: Context, org: OrgId, input: RegradeRequest): Promise<Regrade> {
  const accepted = await ctx.commit((tx) => acceptRegrade(ctx, tx, org, input));
  ctx.signals.jobQueued.emit();
  return accepted;
}

/** Throws not_found. */
export const getRegrade = (ctx: Context, org: OrgId, id: string): Regrade => toRegrade(ctx, getRow(ctx, org, id));

/** Newest first. */
export function listRegrades(ctx: Context, org: OrgId, { limit, offset }: Page): Paged<Regrade> {
  const own = eq(regrades.orgId, org);
  const rows = ctx.db.select().from(regrades).where(own).orderBy(desc(regrades.id)).limit(limit).offset(offset).all();
  return {
    items: rows.map((row) => toRegrade(ctx, row)),
    total: ctx.db.select({ n: count() }).from(regrades).where(own).get()?.n ?? 0,
  };
}

/** Cancels an unfinished regrade; its results are kept. `by` names who cancelled it. Throws not_found, and conflict if it has ended. */
export async function cancelRegrade(ctx: Context, org: OrgId, id: string, by: string): Promise<Regrade> {
  await ctx.commit((tx) => {
    const row = getRow(ctx, org, id);
    if (row.completedAt !== null) throw conflict(`The regrade has already ended with status ${row.status}.`);
    const end = { status: "cancelled", failureCause: "cancelled", failureDetail: `by ${by}` } as const;
    const { kind, subject } = jobOf(row);
    const cancelled = { kind, subject, reason: `cancelled: by ${by}`, at: ctx.now() };
    cancelJob(tx, cancelled, (lease) => costOfRegradeAttempt(ctx, lease));
    tx.update(regrades)
      .set({ ...end, completedAt: ctx.now() })
      .where(eq(regrades.id, row.id))
      .run();
  });
  ctx.signals.jobCancelled.emit();
  return toRegrade(ctx, getRow(ctx, org, id));
}

function getRow(ctx: Context, org: OrgId, id: string): Row {
  const own = and(eq(regrades.orgId, org), eq(regrades.id, id.toLowerCase()));
  const row = ctx.db.select().from(regrades).where(own).get();
  if (!row) throw notFound(`No regrade has the ID ${id}.`);
  return row;
}

function toRegrade(ctx: Context, row: Row, status: Regrade["status"] = row.status): Regrade {
  const {
    id,
    orgId,
    batch: _,
    cursor: __,
    hash: ___,
    failureCause,
    failureDetail,
    since,
    until,
    createdAt,
    completedAt,
    spentUsd,
    ...rest
  } = row;
  const done = row.unchanged + row.withoutEvents + (status === "planned" ? 0 : row.graded + row.failed);
  return {
    ...rest,
    regradeId: status === "planned" ? null : id,
    statusUrl: status === "planned" ? null : `${ctx.baseUrl()}/api/v1/regrades/${id}`,
    status,
    since: toIso(Math.max(0, since)),
    until: toIso(Math.max(0, until)),
    spentUsd: Number(spentUsd.toFixed(6)),
    estimatedUsd: completedAt === null ? estimateRegrade(ctx, orgId as OrgId, row, done) : 0,
    variance: judgeVarianceOf(ctx, row),
    failureReason: toFailureReason({ failureCause, failureDetail }),
    createdAt: toIso(createdAt),
    completedAt: toIso(completedAt),
  };
}
