import { and, count, desc, eq, isNotNull, isNull } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { endedAt } from "../db/rows.ts";
import { type CalibrationFigures, calibrationRuns, calibrations } from "../db/tables/calibrations.ts";
import { runs } from "../db/tables/runs.ts";
import { conflict, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { toFigures } from "../reports/calibration.ts";
import { cancelRuns } from "../runs/endings.ts";
import { toIso } from "../schema.ts";
import { type CalibrationRow, costOf, ofCalibration } from "./figures.ts";
import type { Calibration } from "./schema.ts";

function getCalibrationRow({ db }: Context, org: OrgId, id: string): CalibrationRow {
  const row = db
    .select()
    .from(calibrations)
    .where(and(eq(calibrations.orgId, org), eq(calibrations.id, id.toLowerCase())))
    .get();
  if (!row) throw notFound(`No calibration has the ID ${id}.`);
  return row;
}

/** Newest first. */
export function listCalibrations(ctx: Context, org: OrgId, { limit, offset }: Page): Paged<Calibration> {
  const where = eq(calibrations.orgId, org);
  const rows = ctx.db
    .select()
    .from(calibrations)
    .where(where)
    .orderBy(desc(calibrations.id))
    .limit(limit)
    .offset(offset)
    .all();
  const total = ctx.db.select({ n: count() }).from(calibrations).where(where).get()?.n ?? 0;
  return { items: rows.map((row) => toCalibration(ctx, row)), total };
}

/** A row as it is sent. */
export function toCalibration(ctx: Context, row: CalibrationRow): Calibration {
  const { id, source, promptId, agent, model, methodology, sites, budgetUsd, everyDays, nextAt } = row;
  const { status, stopReason, figures, worse, createdAt, completedAt, spentUsd } = row;
  const request = { source, promptId, agent, model, methodology, sites, budgetUsd, everyDays };
  return {
    id,
    pageUrl: `${ctx.baseUrl()}/calibration#${id}`,
    ...request,
    nextAt: toIso(nextAt),
    status,
    stopReason,
    endedRuns: countEnded(ctx, row),
    figures: toFigures(row),
    evidence: figures ? evidenceOf(figures) : [],
    worse: (worse ?? []).map(({ figure }) => figure),
    spentUsd: spentUsd ?? costOf(ctx, row),
    createdAt: toIso(createdAt),
    completedAt: toIso(completedAt),
  };
}

const evidenceOf = ({ missed, invented, differing }: CalibrationFigures): Calibration["evidence"] => [
  ...missed.map(({ kind, url, runId }) => ({ figure: "found" as const, what: `${kind}: ${url}`, runId })),
  ...invented.map(({ title, runId }) => ({ figure: "falseFindings" as const, what: title, runId })),
  ...differing.map(({ runId, otherId }) => ({ figure: "falseAlarms" as const, what: otherId, runId })),
];

const countEnded = ({ db }: Context, row: CalibrationRow): number =>
  db
    .select({ n: count(runs.completedAt) })
    .from(calibrationRuns)
    .innerJoin(runs, eq(runs.id, calibrationRuns.runId))
    .where(ofCalibration(row))
    .get()?.n ?? 0;

/**
 * Cancels the repetition and the unfinished runs of a calibration, which then gets no figures. `requester` is named in the failure reason of the
 * runs. Throws not_found, and conflict if the calibration has ended and is not repeated.
 */
export async function cancelCalibration(ctx: Context, org: OrgId, id: string, requester: string): Promise<Calibration> {
  const row = getCalibrationRow(ctx, org, id);
  if (row.status !== "running" && row.nextAt === null)
    throw conflict("The calibration has already ended, and is not repeated.");
  const unfinished = ctx.db
    .select({ id: runs.id })
    .from(calibrationRuns)
    .innerJoin(runs, eq(runs.id, calibrationRuns.runId))
    .where(and(ofCalibration(row), isNull(runs.completedAt)))
    .all();
  await ctx.commit((tx) => {
    const ofRow = and(eq(calibrations.orgId, org), eq(calibrations.id, row.id));
    const completedAt = endedAt(ctx.now(), calibrations.createdAt);
    const end = { status: "stopped", stopReason: "cancelled", completedAt, spentUsd: costOf(ctx, row) } as const;
    tx.update(calibrations).set({ nextAt: null }).where(ofRow).run();
    tx.update(calibrations)
      .set(end)
      .where(and(ofRow, eq(calibrations.status, "running")))
      .run();
    recordAudit(ctx, org, "calibration.cancelled", { id: row.id, name: row.agent });
  });
  const ids = unfinished.map((run) => run.id);
  await cancelRuns(ctx, org, ids, requester);
  return toCalibration(ctx, getCalibrationRow(ctx, org, row.id));
}

/** The newest calibration of each agent and model that is significantly worse than the one before. */
export function listWorse({ db }: Context, org: OrgId): CalibrationRow[] {
  const ended = db
    .select()
    .from(calibrations)
    .where(and(eq(calibrations.orgId, org), isNotNull(calibrations.worse)))
    .orderBy(desc(calibrations.id))
    .limit(maxSearched)
    .all();
  const keyOf = ({ source, promptId, agent, model }: CalibrationRow) =>
    JSON.stringify([source, source === "docs" ? promptId : null, agent, model]);
  const newest = new Map(ended.toReversed().map((row) => [keyOf(row), row]));
  return [...newest.values()].filter(({ worse }) => (worse ?? []).length > 0);
}

/** How many calibrations are searched for the newest one of each agent. */
const maxSearched = 100;
