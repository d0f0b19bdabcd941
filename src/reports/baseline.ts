import { eq, sql } from "drizzle-orm";
import { prompts } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { mean, median, predictionInterval } from "../grading/stats.ts";
import { round, rounded } from "./repeats.ts";
import { argsKey, createRunRows, methodologyWords, type RunRow, type Seen } from "./runrows.ts";
import type { Report, ReportBaseline } from "./schema.ts";
import { metricNames } from "./verdict.ts";

/** Published runs that the rolling window takes. */
export const windowRuns = 10;

export type Baseline = { kind: "pinned" | "window"; evalRequestId: string | null; runs: RunRow[] };

/** What must be the same for two runs to be compared. */
export type Comparable = {
  promptId: string;
  agent: string;
  model: string | null;
  templateArgs: Record<string, string> | null;
  /** null: that of the newest run. */
  methodologyHash: string | null;
};

/** What runs of a prompt are held against: the evaluation that a person has pinned, else the last ten comparable published runs. Never one run. */
export function createBaselines({ db }: Pick<Deps, "db">) {
  const rows = createRunRows({ db });
  const pinnedOf = db
    .select({ id: prompts.baselineRequestId })
    .from(prompts)
    .where(eq(prompts.id, sql.placeholder("id")))
    .prepare();

  /** Of runs older than `before`. null where there are fewer than two. */
  function findBaseline(org: OrgId, of: Comparable, before: string, exceptEvalRequestId: string): Baseline | null {
    const pinned = pinnedOf.get({ id: of.promptId })?.id ?? null;
    if (pinned !== null && pinned !== exceptEvalRequestId) {
      const scored = rows.ofEvals(org, [pinned]).filter(({ report }) => report?.score != null);
      return scored.length < 2 ? null : { kind: "pinned", evalRequestId: pinned, runs: scored };
    }
    const isOther = (run: Seen) => run.evalRequestId !== exceptEvalRequestId && isAlike(run, of);
    const newest = rows.published(org, of.promptId, windowRuns, isOther, before);
    const found = newest.filter(({ methodologyHash }) => methodologyHash === newest[0]?.methodologyHash);
    return found.length < 2 ? null : { kind: "window", evalRequestId: null, runs: found };
  }

  return {
    rows,
    findBaseline,

    /** How far a report is from its baseline; null without a score, or without a baseline. */
    ofReport(org: OrgId, report: Omit<Report, "baseline">): ReportBaseline | null {
      if (report.score === null) return null;
      const of = {
        promptId: report.prompt.id,
        agent: report.agent.id,
        model: report.agent.model,
        templateArgs: report.run.templateArgs,
        methodologyHash: report.methodology.hash,
      };
      const baseline = findBaseline(org, of, report.run.runId, report.run.evalRequestId);
      return baseline && toReportBaseline(report, report.score, baseline);
    },
  };
}

/** Whether a run is of the same cell and methodology. */
export const isAlike = (run: Seen, of: Omit<Comparable, "promptId">): boolean =>
  run.agent === of.agent &&
  run.model === of.model &&
  argsKey(run.templateArgs) === argsKey(of.templateArgs) &&
  (of.methodologyHash ?? run.methodology.hash) === run.methodology.hash;

function toReportBaseline(
  report: Omit<Report, "baseline">,
  score: number,
  { kind, evalRequestId, runs }: Baseline,
): ReportBaseline {
  const times = runs.map(({ at }) => at);
  const iso = (at: number) => new Date(at).toISOString();
  const head = { kind, evalRequestId, n: runs.length, from: iso(Math.min(...times)), to: iso(Math.max(...times)) };
  const differences = differencesTo(report, runs);
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
      const middle = median(runs.flatMap(({ metrics }) => metrics?.[name] ?? []));
      const now = report.metrics[name] ?? null;
      return middle === null || now === null
        ? []
        : [{ name, median: round(middle, 4), change: round(now - middle, 4) }];
    }),
  };
}

/** Why the baseline that a person pinned is not comparable. That of the window always is. */
function differencesTo({ agent, methodology, run }: Omit<Report, "baseline">, runs: RunRow[]): string[] {
  const aspects: [string, string, (row: RunRow) => string][] = [
    ["agent", agent.id, (row) => row.agent],
    ["model", agent.model ?? "none", (row) => row.model ?? "none"],
    ["methodology", methodologyWords(methodology), (row) => row.methodology ?? "none"],
    ["templateArgs", argsKey(run.templateArgs), (row) => argsKey(row.templateArgs)],
  ];
  return aspects.flatMap(([name, now, of]) => {
    const before = [...new Set(runs.map(of))].filter((value) => value !== now);
    return before.length === 0 ? [] : [`${name}: ${before.join(", ")} in the baseline against ${now}`];
  });
}
