// Whether agents use a skill or an MCP server when they should, and leave it alone when they shouldn't. Pure functions.
import { type Cluster, clusteredWilson } from "../stats/clusters.ts";
import type { Estimate } from "../stats/estimates.ts";

/** A run of a labeled prompt. `triggered`: whether it used the skill or server; null: unknown, or the run had neither. */
export type LabeledRun = {
  promptId: string;
  arm: string;
  agent: string;
  excluded: "contaminated" | "failed" | null;
  shouldTrigger: boolean | null;
  triggered: boolean | null;
};

/**
 * The runs of an agent in an arm, by label and use. `precision`: the share of runs with use that should have it. `recall`: the share of runs that
 * should have use and have it. `f1`: the harmonic mean of both. null: no run counts, or no prompt of the other label was run. `wrong`: prompts with
 * at least one wrong run, and how many of their runs used it.
 */
export type Triggering = {
  arm: string;
  agent: string;
  truePositives: number;
  falsePositives: number;
  falseNegatives: number;
  trueNegatives: number;
  precision: Estimate | null;
  recall: Estimate | null;
  f1: Estimate | null;
  wrong: { promptId: string; shouldTrigger: boolean; triggered: number; of: number }[];
};

/** How well each agent in each arm tells the labeled prompts apart, in the order of the arms. Runs count if they aren't excluded and their use is known. */
export function analyzeTriggering(arms: string[], runs: LabeledRun[]): Triggering[] {
  const counted = runs.filter(
    ({ excluded, shouldTrigger, triggered }) => excluded === null && shouldTrigger !== null && triggered !== null,
  );
  return arms.flatMap((arm) => {
    const runsOfArm = counted.filter((run) => run.arm === arm);
    const byAgent = [...Map.groupBy(runsOfArm, ({ agent }) => agent)].sort(([a], [b]) => a.localeCompare(b));
    return byAgent.map(([, runsOfAgent]) => triggeringOf(runsOfAgent));
  });
}

type Counts = { truePositives: number; falsePositives: number; falseNegatives: number; trueNegatives: number };

function triggeringOf(runs: LabeledRun[]): Triggering {
  const { arm, agent } = runs[0]!;
  const prompts = [...Map.groupBy(runs, ({ promptId }) => promptId).values()].map(countsOf);
  const sharesOf = (read: (counts: Counts) => Cluster): Estimate | null => clusteredWilson(prompts.map(read));
  const hasNegatives = runs.some(({ shouldTrigger }) => !shouldTrigger);
  const precision = sharesOf(({ truePositives: k, falsePositives }) => ({ k, n: k + falsePositives }));
  // The share of right uses that `toF1` turns into F1.
  const overlap = sharesOf(({ truePositives: k, falsePositives, falseNegatives }) => ({
    k,
    n: k + falsePositives + falseNegatives,
  }));
  return {
    arm,
    agent,
    ...countsOf(runs),
    precision: hasNegatives ? precision : null,
    recall: sharesOf(({ truePositives: k, falseNegatives }) => ({ k, n: k + falseNegatives })),
    f1: hasNegatives && overlap ? toF1(overlap) : null,
    wrong: listWrong(runs),
  };
}

function countsOf(runs: LabeledRun[]): Counts {
  const count = (label: boolean, use: boolean) =>
    runs.filter(({ shouldTrigger, triggered }) => shouldTrigger === label && triggered === use).length;
  return {
    truePositives: count(true, true),
    falsePositives: count(false, true),
    falseNegatives: count(true, false),
    trueNegatives: count(false, false),
  };
}

/**
 * F1 with its interval, computed from J, the share of right uses among the runs that used it or should have. F1 = 2J / (1 + J) rises with J. D. J.
 * Hand, P. Christen and N. Kirielle, Machine Learning 110 (2021) 451–456.
 */
function toF1({ value, low, high }: Estimate): Estimate {
  const f1 = (share: number | null) => (share === null ? null : (2 * share) / (1 + share));
  return { value: f1(value)!, low: f1(low), high: f1(high) };
}

function listWrong(runs: LabeledRun[]): Triggering["wrong"] {
  const byPrompt = [...Map.groupBy(runs, ({ promptId }) => promptId)].sort(([a], [b]) => a.localeCompare(b));
  return byPrompt.flatMap(([promptId, runsOfPrompt]) => {
    const shouldTrigger = runsOfPrompt[0]?.shouldTrigger === true;
    const triggered = runsOfPrompt.filter((run) => run.triggered).length;
    const of = runsOfPrompt.length;
    return triggered === (shouldTrigger ? of : 0) ? [] : [{ promptId, shouldTrigger, triggered, of }];
  });
}
