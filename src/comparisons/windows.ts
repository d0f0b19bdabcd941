import { inArray } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { reports } from "../db/tables/reports.ts";
import { badRequest } from "../errors.ts";
import { type ComparedRun, runRowsOfEvals } from "../reports/run-rows.ts";
import { toIso } from "../schema.ts";
import { mean } from "../stats/estimates.ts";
import { type ChangeWindow, type LatestChange, toChange } from "./changes.ts";
import { compareEvals } from "./compare.ts";

/** IDs of the evaluations on both sides of a change. */
export type WindowIds = { before: string[]; after: string[] };

/**
 * The change of a prompt's score between two windows of evaluations, for the agent and model of the newest report in the later one. Throws
 * bad_request if there is no report on a side, or too little to compare.
 */
export function compareWindows(
  ctx: Context,
  org: OrgId,
  promptId: string,
  ids: WindowIds,
): { agent: string; model: string | null; change: LatestChange } {
  // The rows are newest first.
  const newest = runRowsOfEvals(ctx, org, ids.after).find((run) => run.promptId === promptId && run.reportId !== null);
  if (!newest) throw badRequest("Invalid head: this prompt has no report there.");
  const { agent, model } = newest;
  // A run without a report names the model that was requested.
  const keeps = (run: ComparedRun) =>
    run.promptId === promptId && run.agent === agent && (run.report === null || run.model === model);
  const comparison = compareEvals(ctx, org, { evalRequestIds: ids.before }, ids.after, { keeps });
  const { delta, score, reason } = comparison.evidence;
  if (comparison.verdict === null || delta === null || score === null)
    throw badRequest(`These evaluations can't be compared: ${reason}.`);
  const evaluationsOf = (evals: string[]) => listEvaluations(ctx, runRowsOfEvals(ctx, org, evals).filter(keeps));
  const change = toChange(comparison, evaluationsOf(ids.before), evaluationsOf(ids.after));
  if (change === null) throw badRequest("Invalid base: this prompt has no report there.");
  return { agent, model, change };
}

/** The evaluations of scored runs, oldest first. `runs`: newest first. */
function listEvaluations(ctx: Context, runs: ComparedRun[]): ChangeWindow["evaluations"] {
  const scoredRuns = runs.filter(({ report }) => report?.score != null);
  const reportIds = scoredRuns.flatMap(({ reportId }) => reportId ?? []);
  const reportsById = new Map(
    ctx.db
      .select({ id: reports.id, slug: reports.slug, at: reports.createdAt })
      .from(reports)
      .where(inArray(reports.id, reportIds))
      .all()
      .map(({ id, ...report }) => [id, report]),
  );
  const groups = [...Map.groupBy(scoredRuns, ({ evalRequestId }) => evalRequestId)];
  const evaluations = groups.flatMap(([evalRequestId, evalRuns]) => {
    const newest = reportsById.get(evalRuns[0]?.reportId ?? "");
    if (!newest) return [];
    const score = mean(evalRuns.map(({ report }) => report?.score ?? 0));
    return [{ evalRequestId, slug: newest.slug, score, runs: evalRuns.length, at: toIso(newest.at) }];
  });
  return evaluations.sort((a, b) => (a.evalRequestId < b.evalRequestId ? -1 : 1));
}
