import { and, count, desc, eq } from "drizzle-orm";
import { toFailureReason } from "../agents/failure.ts";
import type { Context, OrgId } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { regrades } from "../db/tables/reports.ts";
import { conflict, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { cancelJob, enqueue, type Lease } from "../jobs/queue.ts";
import { toIso } from "../schema.ts";
import { createForecast } from "./forecast.ts";
import { jobOf } from "./job.ts";
import { createRegradeCheck } from "./regrade-check.ts";
import type { RegradeRow as Row } from "./regrade-row.ts";
import type { Regrade, RegradeRequest } from "./schema.ts";

type Parts = {
  commit: Commit;
  costOf: (lease: Lease) => number | null;
};

export type Regrades = ReturnType<typeof createRegrades>;

/** Regrades of stored sessions: with another methodology, with another judge, or repeatedly with the same one. */
export function createRegrades(ctx: Context, { commit, costOf }: Parts) {
  const { db, now, baseUrl, signals } = ctx;
  const { toRow, checkAlone } = createRegradeCheck(ctx);
  const { plan, estimate, varianceOf } = createForecast(ctx);

  function getRow(org: OrgId, id: string): Row {
    const own = and(eq(regrades.orgId, org), eq(regrades.id, id.toLowerCase()));
    const row = db.select().from(regrades).where(own).get();
    if (!row) throw notFound(`No regrade has the ID ${id}.`);
    return row;
  }

  function toRegrade(row: Row, status: Regrade["status"] = row.status): Regrade {
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
      statusUrl: status === "planned" ? null : `${baseUrl()}/api/v1/regrades/${id}`,
      status,
      since: toIso(Math.max(0, since)),
      until: toIso(Math.max(0, until)),
      spentUsd: Number(spentUsd.toFixed(6)),
      estimatedUsd: completedAt === null ? estimate(orgId as OrgId, row, done) : 0,
      variance: varianceOf(row),
      failureReason: toFailureReason({ failureCause, failureDetail }),
      createdAt: toIso(createdAt),
      completedAt: toIso(completedAt),
    };
  }

  /** Accepts a regrade as part of a transaction; with `dryRun`, only returns what it would do. Throws bad_request, not_found, conflict. */
  function accept(tx: Tx, org: OrgId, input: RegradeRequest): Regrade {
    const row = toRow(org, input);
    if (input.dryRun) return toRegrade(plan(row), "planned");
    checkAlone(row);
    tx.insert(regrades).values(row).run();
    enqueue(ctx, tx, jobOf(row));
    return toRegrade(row);
  }

  return {
    accept,

    /** Accepts a regrade and resolves once it is on disk. Throws what `accept` throws. */
    async requestRegrade(org: OrgId, input: RegradeRequest): Promise<Regrade> {
      const accepted = await commit((tx) => accept(tx, org, input));
      signals.jobQueued.emit();
      return accepted;
    },

    /** Throws not_found. */
    getRegrade: (org: OrgId, id: string): Regrade => toRegrade(getRow(org, id)),

    /** Newest first. */
    listRegrades(org: OrgId, { limit, offset }: Page): Paged<Regrade> {
      const own = eq(regrades.orgId, org);
      const rows = db.select().from(regrades).where(own).orderBy(desc(regrades.id)).limit(limit).offset(offset).all();
      return {
        items: rows.map((row) => toRegrade(row)),
        total: db.select({ n: count() }).from(regrades).where(own).get()?.n ?? 0,
      };
    },

    /** Cancels an unfinished regrade; its results are kept. `by` names who cancelled it. Throws not_found, and conflict if it has ended. */
    async cancelRegrade(org: OrgId, id: string, by: string): Promise<Regrade> {
      await commit((tx) => {
        const row = getRow(org, id);
        if (row.completedAt !== null) throw conflict(`The regrade has already ended with status ${row.status}.`);
        const end = { status: "cancelled", failureCause: "cancelled", failureDetail: `by ${by}` } as const;
        const { kind, subject } = jobOf(row);
        const at = now();
        cancelJob(tx, { kind, subject, reason: `cancelled: by ${by}`, at }, costOf);
        tx.update(regrades)
          .set({ ...end, completedAt: at })
          .where(eq(regrades.id, row.id))
          .run();
      });
      signals.jobCancelled.emit();
      return toRegrade(getRow(org, id));
    },
  };
}
