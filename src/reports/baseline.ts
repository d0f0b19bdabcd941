import { eq, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { statement } from "../db/prepared.ts";
import { prompts } from "../db/tables/prompts.ts";
import type { Scope } from "../grading/grade.ts";
import { toIso } from "../schema.ts";
import { mean, median, predictionInterval } from "../stats/estimates.ts";
import { metricNames, round, rounded } from "../stats/repeats.ts";
import { type ComparedRun, listComparedRunsOfEvals, listScoredRuns, type PublishedRun } from "./compared-runs.ts";
import { argsKey, type Comparand, comparedScope, differencesOf, differenceWords } from "./differences.ts";

import type { Report, ReportBaseline } from "./schema.ts";

/** Number of published runs in the rolling window. */
export const windowRuns = 10;

export type Baseline = { kind: "pinned" | "window"; evalRequestId: string | null; runs: ComparedRun[] };

/**
 * A prompt with its template arguments, agent and model. `methodology` null: not run yet, so that methodology, agent version and context
 * are those of the newest run.
 */
export type Variant = Pick<
  Comparand,
  "promptId" | "agent" | "agentVersion" | "model" | "contextDigest" | "templateArgs"
> & {
  methodology: { hash: string } | null;
  /** null: that of the newest run. */
  scope: Scope | null;
};

const pinnedBaseline = statement((db) =>
  db
    .select({ id: prompts.baselineRequestId })
    .from(prompts)
    .where(eq(prompts.id, sql.placeholder("promptId"))),
);

/**
 * The baseline of a prompt: the evaluation that a person pinned, or else the last ten comparable published runs before the run `before`.
 * Never a single run, and never runs of the evaluation `exceptEvalRequestId`. null if there are fewer than `minRuns`.
 */
export function findBaseline(
  ctx: Context,
  org: OrgId,
  variant: Variant,
  before: string,
  exceptEvalRequestId: string,
  minRuns = 2,
): Baseline | null {
  const pinned = pinnedBaseline(ctx.db).get({ promptId: variant.promptId })?.id ?? null;
  if (pinned !== null && pinned !== exceptEvalRequestId) {
    const scored = listComparedRunsOfEvals(ctx, org, [pinned]).filter(({ report }) => report?.score != null);
    const ofAgent = scored.filter(({ agent, model }) => agent === variant.agent && model === variant.model);
    const runs = ofAgent.length > 0 ? ofAgent : scored;
    return runs.length < minRuns ? null : { kind: "pinned", evalRequestId: pinned, runs };
  }
  const matches = (run: PublishedRun) => run.evalRequestId !== exceptEvalRequestId && isAlike(run, variant);
  const newest = listScoredRuns(ctx, org, variant.promptId, { limit: windowRuns, matches, before });
  const [last] = newest;
  const runs = newest.filter(
    (run) =>
      run.methodology?.hash === last?.methodology?.hash &&
      run.scope === last?.scope &&
      run.agentVersion === last?.agentVersion &&
      run.contextDigest === last?.contextDigest,
  );
  return runs.length < minRuns ? null : { kind: "window", evalRequestId: null, runs };
}

/** The difference between a report and its baseline; null without a score or a baseline. */
export function findReportBaseline(ctx: Context, org: OrgId, report: Omit<Report, "baseline">): ReportBaseline | null {
  if (report.score === null) return null;
  const baseline = findBaseline(ctx, org, comparandOf(report), report.run.runId, report.run.evalRequestId);
  return baseline && toReportBaseline(report, report.score, baseline);
}

/** Whether a run has the same variant and methodology. */
export const isAlike = (run: PublishedRun, variant: Omit<Variant, "promptId">): boolean =>
  run.agent === variant.agent &&
  run.model === variant.model &&
  (variant.agentVersion ?? run.agentVersion) === run.agentVersion &&
  (variant.methodology === null || variant.contextDigest === run.contextDigest) &&
  argsKey(run.templateArgs) === argsKey(variant.templateArgs) &&
  (variant.methodology ?? run.methodology).hash === run.methodology.hash &&
  (variant.scope ?? scopeOf(run)) === scopeOf(run);

const scopeOf = ({ scope, methodology: { judge } }: PublishedRun): Scope => comparedScope({ scope, judge });

function toReportBaseline(
  report: Omit<Report, "baseline">,
  score: number,
  { kind, evalRequestId, runs }: Baseline,
): ReportBaseline {
  const times = runs.map(({ at }) => at);
  const head = { kind, evalRequestId, n: runs.length, from: toIso(Math.min(...times)), to: toIso(Math.max(...times)) };
  // Why the pinned baseline isn't comparable. The rolling window always is.
  const differences = differencesOf([runs, [comparandOf(report)]]).map(differenceWords);
  if (differences.length > 0) return { ...head, differences, score: null, dimensions: [], metrics: [] };
  const { value, low, high } = rounded(predictionInterval(runs.flatMap((run) => run.report?.score ?? [])), 1);
  return {
    ...head,
    differences,
    score: {
      mean: value,
      change: round(score - value, 1),
      low: low ?? value,
      high: high ?? value,
      isUsual: score >= (low ?? value) && score <= (high ?? value),
    },
    dimensions: report.dimensions.flatMap(({ name, score }) => {
      const before = runs.flatMap(({ dimensions }) => dimensions.find((each) => each.name === name)?.score ?? []);
      return before.length === 0
        ? []
        : [{ name, mean: round(mean(before), 1), change: round(score - mean(before), 1) }];
    }),
    metrics: metricNames.flatMap((name) => {
      const before = median(runs.flatMap(({ metrics }) => metrics?.[name] ?? []));
      const value = report.metrics[name] ?? null;
      return before === null || value === null
        ? []
        : [{ name, median: round(before, 4), change: round(value - before, 4) }];
    }),
  };
}

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
