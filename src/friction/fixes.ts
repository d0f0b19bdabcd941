import { and, desc, eq, inArray, sql } from "drizzle-orm";
import { toFailureReason } from "../agents/failure.ts";
import type { Context, OrgId } from "../context.ts";
import { statement } from "../db/prepared.ts";
import { exposures, fixes, frictionLifecycles, frictionPoints } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { evalRequests, runs } from "../db/tables/runs.ts";
import { hasReached } from "../grading/exposure.ts";
import { count } from "../grading/text.ts";
import { toIso } from "../schema.ts";
import { mean, welch } from "../stats/estimates.ts";
import { maxMissProbability, missProbability } from "../stats/lifecycle.ts";
import { rounded } from "../stats/repeats.ts";
import type { Fix, FixState } from "./fix-schema.ts";
import { previewOf } from "./lifecycle-rows.ts";

type FixRow = typeof fixes.$inferSelect;
type FixRun = ReturnType<typeof runsOfFix>[number];

/** The fixes of a prompt, newest first. */
const fixesOfPrompt = statement((db) =>
  db
    .select()
    .from(fixes)
    .where(and(eq(fixes.orgId, sql.placeholder("org")), eq(fixes.promptId, sql.placeholder("promptId"))))
    .orderBy(desc(fixes.id)),
);

/** The runs of an evaluation, each with its report, its friction points and what it reached. Archived reports are left out. */
function runsOfFix(ctx: Context, org: string, evalRequestId: string) {
  const rows = ctx.db
    .select({ run: runs, report: reports, exposure: exposures })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .leftJoin(exposures, eq(exposures.reportId, reports.id))
    .where(and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId)))
    .all()
    .filter(({ report }) => report?.status !== "archived");
  const ids = rows.flatMap(({ report }) => report?.id ?? []);
  const points = ctx.db.select().from(frictionPoints).where(inArray(frictionPoints.reportId, ids)).all();
  const byReport = Map.groupBy(points, ({ reportId }) => reportId);
  return rows.map((row) => ({ ...row, points: byReport.get(row.report?.id ?? "") ?? [] }));
}

/** A fix with the verdict of the runs before and after it. */
export function toFix(ctx: Context, row: FixRow): Fix {
  const [before, after] = [runsOfFix(ctx, row.orgId, row.beforeId), runsOfFix(ctx, row.orgId, row.afterId)];
  const scores = (side: FixRun[]) => side.flatMap(({ report }) => report?.score ?? []);
  const sideOf = (evalRequestId: string, side: FixRun[]) => ({
    evalRequestId,
    runs: side.length,
    met: side.filter((run) => hasHit(run, row.fingerprints)).length,
    score: scores(side).length === 0 ? null : Number(mean(scores(side)).toFixed(1)),
  });
  const isRepeated = Math.min(scores(before).length, scores(after).length) > 1;
  const { id, promptId, title, fingerprints, doneBy, note } = row;
  return {
    id,
    promptId,
    title,
    fingerprints,
    doneBy,
    createdAt: toIso(row.createdAt),
    note,
    ...verdictOf(ctx, row, before, after),
    before: sideOf(row.beforeId, before),
    after: sideOf(row.afterId, after),
    delta: isRepeated ? rounded(welch(scores(before), scores(after)), 1) : null,
  };
}

/** The fixes of a prompt, newest first. */
export const fixRowsOf = (ctx: Context, org: OrgId, promptId: string): FixRow[] =>
  fixesOfPrompt(ctx.db).all({ org, promptId });

/** For each recommended fix of a prompt, by its fingerprints: the verification since it was last marked done; null: it wasn't marked done. */
export function doneFixesOf(ctx: Context, org: OrgId, promptId: string, recommended: string[][]): FixState[] {
  const rows = fixRowsOf(ctx, org, promptId);
  return recommended.map((fingerprints) => {
    const row = rows.find((each) => each.fingerprints.some((one) => fingerprints.includes(one)));
    if (!row) return null;
    const { id, status, reason, createdAt, doneBy } = toFix(ctx, row);
    return { id, status, reason, createdAt, doneBy };
  });
}

type FixVerdict = { status: Fix["status"]; reason: string };

/** Whether a fix helped. The first rule that applies decides. */
function verdictOf(ctx: Context, row: FixRow, before: FixRun[], after: FixRun[]): FixVerdict {
  const unfinished = after.filter(({ run }) => run.completedAt === null).length;
  if (unfinished > 0)
    return { status: "running", reason: `${unfinished} of ${count(after.length, "run")} still in progress` };
  const reportedRuns = after.filter(({ report }) => report !== null);
  const failureReason = after.map(({ run }) => toFailureReason(run)).find((reason) => reason !== null);
  if (reportedRuns.length === 0)
    return { status: "undecided", reason: `no run succeeded${failureReason ? `: ${failureReason}` : ""}` };
  const conditionsOfSide = (side: FixRun[]) =>
    [...new Set(side.flatMap(({ run, report }) => conditionsOf(run, report)))].sort().join(", ");
  const [conditionsBefore, conditionsNow] = [conditionsOfSide(before), conditionsOfSide(reportedRuns)];
  if (conditionsBefore !== conditionsNow)
    return {
      status: "undecided",
      reason: `the conditions of the runs differ: ${conditionsBefore || "none"} before, ${conditionsNow} now`,
    };
  const hits = reportedRuns.filter((run) => hasHit(run, row.fingerprints));
  if (hits.length > 0)
    return { status: "did_not_help", reason: `${hits.length} of ${reportedRuns.length} runs hit it again` };
  for (const fingerprint of row.fingerprints) {
    const doubt = findDoubt(fingerprint, before, reportedRuns);
    if (doubt !== null) return { status: "undecided", reason: doubt };
  }
  const reason = `${reportedRuns.length} runs reached its page without hitting it`;
  return reopenedBy(ctx, row, reportedRuns) ?? { status: "verified", reason };
}

/** If runs after a fix didn't hit a friction point, why that doesn't prove that it is fixed; null: it does. */
function findDoubt(fingerprint: string, before: FixRun[], after: FixRun[]): string | null {
  const point = before.flatMap(({ points }) => points).find((each) => each.fingerprint === fingerprint);
  const countReached = (side: FixRun[]) =>
    side.filter(({ exposure }) => exposure && point?.preconditions && hasReached(exposure, point.preconditions)).length;
  const hits = before.filter((run) => hasHit(run, [fingerprint]));
  const others = before.filter((run) => !hasHit(run, [fingerprint]));
  const sightings = {
    met: hits.length,
    of: hits.length + countReached(others),
    missed: countReached(after),
    byModel: before.some(({ exposure }) => exposure?.byRules === false),
  };
  const title = JSON.stringify(point?.title ?? fingerprint);
  if (sightings.missed === 0) return `none of ${after.length} runs reached its page: ${title}`;
  if (missProbability(sightings) < maxMissProbability) return null;
  return `${sightings.missed} runs reached its page without hitting it, which may be chance, since only ${sightings.met} of ${sightings.of} hit it before: ${title}`;
}

/** `reopened` if a later run hit a friction point of the fix again; null if none did. */
function reopenedBy(ctx: Context, row: FixRow, after: FixRun[]): FixVerdict | null {
  const { orgId, promptId, fingerprints, afterId } = row;
  const verification = ctx.db.select().from(evalRequests).where(eq(evalRequests.id, afterId)).get();
  const laterHit = ctx.db
    .select({ lastSeenAt: frictionLifecycles.lastSeenAt, slug: reports.slug })
    .from(frictionLifecycles)
    .innerJoin(reports, eq(reports.id, frictionLifecycles.reportId))
    .where(
      and(
        eq(frictionLifecycles.orgId, orgId),
        eq(frictionLifecycles.promptId, promptId),
        eq(frictionLifecycles.preview, after[0] ? previewOf(after[0].run) : ""),
        inArray(frictionLifecycles.fingerprint, fingerprints),
      ),
    )
    .all()
    .find(({ lastSeenAt }) => verification && lastSeenAt >= verification.createdAt);
  if (!laterHit) return null;
  return { status: "reopened", reason: `hit again at ${toIso(laterHit.lastSeenAt)} in ${laterHit.slug}` };
}

const hasHit = ({ points }: FixRun, fingerprints: string[]) =>
  points.some(({ fingerprint }) => fingerprints.includes(fingerprint));

/** The conditions of a run. Evaluations with different ones aren't comparable. */
const conditionsOf = ({ agent, model }: FixRun["run"], report: FixRun["report"]): string[] =>
  report === null ? [] : [`${agent}${model ? ` ${model}` : ""}, methodology ${report.methodology.hash.slice(0, 8)}`];
