import { inArray } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { reports } from "../db/tables/reports.ts";
import { badRequest } from "../errors.ts";
import { type RunRow, runRowsOfEvals } from "../reports/run-rows.ts";
import { toIso } from "../schema.ts";
import { mean } from "../stats/estimates.ts";
import { compareEvals } from "./compare.ts";
import type { ChangeWindow, LatestChange } from "./latest.ts";

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
  const rowsOf = (evalRequestIds: string[]) =>
    runRowsOfEvals(ctx, org, evalRequestIds).filter((run) => run.promptId === promptId);
  const newest = rowsOf(ids.after).find(({ reportId }) => reportId !== null);
  if (!newest) throw badRequest("Invalid head: this prompt has no report there.");
  const { agent, model } = newest;
  const keeps = (run: RunRow) =>
    run.promptId === promptId && run.agent === agent && (run.report === null || run.model === model);
  const { verdict, evidence } = compareEvals(ctx, org, { evalRequestIds: ids.before }, ids.after, { keeps });
  const { delta, score, reason } = evidence;
  if (verdict === null || delta === null || score === null)
    throw badRequest(`These evaluations can't be compared: ${reason}.`);
  const before = windowOf(ctx, rowsOf(ids.before).filter(keeps), score.before);
  const after = windowOf(ctx, rowsOf(ids.after).filter(keeps), score.after);
  const [last, first] = [before.evaluations.at(-1), after.evaluations[0]];
  if (!last || !first) throw badRequest("Invalid base: this prompt has no report there.");
  const change = {
    verdict,
    delta: delta.value,
    low: delta.low,
    high: delta.high,
    at: first.at,
    slugs: [last.slug, first.slug] as [string, string],
    before,
    after,
  };
  return { agent, model, change };
}

/** The evaluations of scored runs, oldest first. */
function windowOf(ctx: Context, runs: RunRow[], windowMean: number): ChangeWindow {
  const scored = runs.filter(({ report }) => report?.score != null);
  const reportIds = scored.flatMap(({ reportId }) => reportId ?? []);
  const slugs = new Map(
    ctx.db
      .select({ id: reports.id, slug: reports.slug, at: reports.createdAt })
      .from(reports)
      .where(inArray(reports.id, reportIds))
      .all()
      .map(({ id, ...report }) => [id, report]),
  );
  const evaluations = [...Map.groupBy(scored, ({ evalRequestId }) => evalRequestId)].flatMap(([evalRequestId, all]) => {
    const newest = slugs.get(all[0]?.reportId ?? "");
    if (!newest) return [];
    const score = mean(all.map(({ report }) => report?.score ?? 0));
    return [{ evalRequestId, slug: newest.slug, score, runs: all.length, at: toIso(newest.at) }];
  });
  return { mean: windowMean, evaluations: evaluations.sort((a, b) => (a.evalRequestId < b.evalRequestId ? -1 : 1)) };
}
