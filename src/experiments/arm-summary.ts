import { type Estimate, wilson } from "../stats/estimates.ts";
import { blockInterval } from "../stats/randomized-blocks.ts";
import { type ArmRun, isValid, type RunCount, shareOf } from "./contrast.ts";

/**
 * The runs of an arm. `n`: the number of runs that are not excluded. `meanScore`: the mean of the prompts' means, with its 95 % interval.
 * `successes`: how many of `judged` runs succeeded, with Wilson's 95 % interval. `used`: how many runs used the treatment, of the runs for which it
 * is known.
 */
export type ArmSummary = {
  arm: string;
  n: number;
  failed: number;
  contaminated: number;
  meanScore: number | null;
  interval: Interval | null;
  successes: number;
  judged: number;
  successInterval: Interval | null;
  used: RunCount | null;
};
type Interval = { low: number; high: number };

/** The figures of an arm by itself. */
export function summarizeArm(arm: string, runs: ArmRun[]): ArmSummary {
  const valid = runs.filter(isValid);
  const scoresByPrompt = [...Map.groupBy(valid, ({ promptId }) => promptId).values()]
    .map((runsOfPrompt) => runsOfPrompt.flatMap(({ score }) => score ?? []))
    .filter((scores) => scores.length > 0);
  const score = scoresByPrompt.length === 0 ? null : blockInterval(scoresByPrompt);
  const { k, n } = shareOf(valid);
  const uses = valid.flatMap(({ used }) => used ?? []);
  return {
    arm,
    n: valid.length,
    failed: countExcluded(runs, "failed"),
    contaminated: countExcluded(runs, "contaminated"),
    meanScore: score?.value ?? null,
    interval: score && toInterval(score, 100),
    successes: k,
    judged: n,
    successInterval: n === 0 ? null : toInterval(wilson(k, n), 1),
    used: uses.length === 0 ? null : { n: uses.filter(Boolean).length, of: uses.length },
  };
}

const toInterval = ({ low, high }: Estimate, max: number): Interval | null =>
  low === null || high === null ? null : { low: Math.max(0, low), high: Math.min(max, high) };

/** How many runs are excluded for a reason. */
export const countExcluded = (runs: ArmRun[], reason: ArmRun["excluded"]): number =>
  runs.filter(({ excluded }) => excluded === reason).length;
