import { eq, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { statement } from "../db/prepared.ts";
import { prompts } from "../db/tables/prompts.ts";
import type { Scope } from "../grading/grade.ts";
import { toIso } from "../schema.ts";
import { mean, median, predictionInterval } from "../stats/estimates.ts";
import { metricNames, round, rounded } from "../stats/repeats.ts";
import { argsKey, type Comparand, comparedScope, describeDifference, differencesOf } from "./differences.ts";
import { type ComparedRun, type PublishedRun, publishedRunRows, runRowsOfEvals } from "./run-rows.ts";
import type { Report, ReportBaseline } from "./schema.ts";

/** The number of published runs in the rolling window. */
export const windowRuns = 10;

type Baseline = { kind: "pinned" | "window"; evalRequestId: string | null; runs: ComparedRun[] };

/**
 * The properties that a run must share with the runs of its baseline. Before the run has started, it is unknown how it will be measured. Then
 * `agentVersion`, `methodology` and `scope` are null, and `contextDigest` is undefined.
 */
type Variant = Omit<Comparand, "contextDigest" | "methodology"> & {
  /** null: the workspace is empty. undefined: not known yet. */
  contextDigest: string | null | undefined;
  methodology: { hash: string } | null;
};

const pinnedBaselineOf = statement((db) =>
  db
    .select({ id: prompts.baselineRequestId })
    .from(prompts)
    .where(eq(prompts.id, sql.placeholder("id"))),
);

/** `before`: only runs that are older than the run with this ID. `minRuns`: the minimum number of runs in a baseline; default 2. */
type BaselineOptions = { before: string; exceptEvalRequestId: string; minRuns?: number };

/**
 * The runs to compare a new run with: the runs of the pinned evaluation, or otherwise the newest published runs of the same variant. null: there are
 * not enough runs.
 */
export function findBaseline(
  ctx: Context,
  org: OrgId,
  variant: Variant,
  { before, exceptEvalRequestId, minRuns = 2 }: BaselineOptions,
): Baseline | null {
  const pinnedRequestId = pinnedBaselineOf(ctx.db).get({ id: variant.promptId })?.id ?? null;
  const isPinned = pinnedRequestId !== null && pinnedRequestId !== exceptEvalRequestId;
  const baseline: Baseline = isPinned
    ? { kind: "pinned", evalRequestId: pinnedRequestId, runs: listPinnedRuns(ctx, org, variant, pinnedRequestId) }
    : { kind: "window", evalRequestId: null, runs: listWindowRuns(ctx, org, variant, { before, exceptEvalRequestId }) };
  return baseline.runs.length < minRuns ? null : baseline;
}

/** The scored runs of an evaluation with this agent and model. If there are none, all scored runs of the evaluation. */
function listPinnedRuns(ctx: Context, org: OrgId, { agent, model }: Variant, evalRequestId: string): ComparedRun[] {
  const scoredRuns = runRowsOfEvals(ctx, org, [evalRequestId]).filter(({ report }) => report?.score != null);
  const sameAgentRuns = scoredRuns.filter((run) => run.agent === agent && run.model === model);
  return sameAgentRuns.length > 0 ? sameAgentRuns : scoredRuns;
}

/** The newest runs of the variant. Where the variant leaves a property open, all of them have the same value as the newest run. */
function listWindowRuns(
  ctx: Context,
  org: OrgId,
  variant: Variant,
  { before, exceptEvalRequestId }: BaselineOptions,
): ComparedRun[] {
  const matches = (run: PublishedRun) => run.evalRequestId !== exceptEvalRequestId && isSameVariant(run, variant);
  const runs = publishedRunRows(ctx, org, variant.promptId, windowRuns, { matches, before });
  return runs.filter((run) => conditionsOf(run) === conditionsOf(runs[0]));
}

/** The conditions under which a run was measured, as a text to compare. */
const conditionsOf = (run: ComparedRun | undefined) =>
  JSON.stringify([run?.methodology?.hash, run?.scope, run?.agentVersion, run?.contextDigest]);

/** The difference between a report and its baseline; null if the report has no score or no baseline. */
export function baselineOfReport(ctx: Context, org: OrgId, report: Omit<Report, "baseline">): ReportBaseline | null {
  if (report.score === null) return null;
  const { runId, evalRequestId } = report.run;
  const baseline = findBaseline(ctx, org, comparandOf(report), { before: runId, exceptEvalRequestId: evalRequestId });
  return baseline && toReportBaseline(report, report.score, baseline);
}

/** Whether a run belongs to a variant. Properties that the variant leaves open may differ. */
export function isSameVariant(run: PublishedRun, variant: Omit<Variant, "promptId">): boolean {
  const { agentVersion, methodology, contextDigest, scope } = variant;
  const isSameAgent = run.agent === variant.agent && run.model === variant.model;
  const isSameVersion = agentVersion === null || agentVersion === run.agentVersion;
  const isSameMethodology = methodology === null || methodology.hash === run.methodology.hash;
  const isSameContext = contextDigest === undefined || contextDigest === run.contextDigest;
  const isSameScope = scope === null || scope === scopeOf(run);
  const hasSameArgs = () => argsKey(run.templateArgs) === argsKey(variant.templateArgs);
  return isSameAgent && isSameVersion && isSameMethodology && isSameContext && isSameScope && hasSameArgs();
}

const scopeOf = ({ scope, methodology: { judge } }: PublishedRun): Scope => comparedScope({ scope, judge });

function toReportBaseline(
  report: Omit<Report, "baseline">,
  score: number,
  { kind, evalRequestId, runs }: Baseline,
): ReportBaseline {
  const times = runs.map(({ at }) => at);
  const description = {
    kind,
    evalRequestId,
    n: runs.length,
    from: toIso(Math.min(...times)),
    to: toIso(Math.max(...times)),
  };
  // The reasons why the pinned baseline isn't comparable. The rolling window always is.
  const differences = differencesOf([runs, [comparandOf(report)]]).map(describeDifference);
  if (differences.length > 0) return { ...description, differences, score: null, dimensions: [], metrics: [] };
  const { value, low, high } = rounded(predictionInterval(runs.flatMap((run) => run.report?.score ?? [])), 1);
  // A single run has no interval.
  const usual = { low: low ?? value, high: high ?? value };
  return {
    ...description,
    differences,
    score: {
      mean: value,
      change: round(score - value, 1),
      ...usual,
      isUsual: score >= usual.low && score <= usual.high,
    },
    dimensions: report.dimensions.flatMap(({ name, score }) => {
      const scoresBefore = runs.flatMap(({ dimensions }) => dimensions.find((each) => each.name === name)?.score ?? []);
      if (scoresBefore.length === 0) return [];
      const meanBefore = mean(scoresBefore);
      return [{ name, mean: round(meanBefore, 1), change: round(score - meanBefore, 1) }];
    }),
    metrics: metricNames.flatMap((name) => {
      const medianBefore = median(runs.flatMap(({ metrics }) => metrics?.[name] ?? []));
      const current = report.metrics[name] ?? null;
      if (medianBefore === null || current === null) return [];
      return [{ name, median: round(medianBefore, 4), change: round(current - medianBefore, 4) }];
    }),
  };
}

/** The properties of a report that another report must share, so that their scores are comparable. */
export const comparandOf = ({ prompt, agent, methodology, scope, run }: Omit<Report, "baseline">): Comparand => ({
  promptId: prompt.id,
  agent: agent.id,
  agentVersion: agent.version,
  contextDigest: agent.contextDigest,
  model: agent.model,
  templateArgs: run.templateArgs,
  methodology,
  scope: comparedScope({ scope, judge: methodology.judge }),
});
