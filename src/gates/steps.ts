import { alpha, type Verdict } from "../comparisons/evidence.ts";
import { gateSteps } from "../stats/power.ts";

/** The settings that decide how many runs a gate makes per side. */
type GateSettings = { runs: number; adaptive: boolean; budgetUsd: number | null };

/** The progress of a gate: `done` runs per side, `spentUsd` on both (null: unknown). */
type Progress = GateSettings & {
  done: number;
  spentUsd: number | null;
  verdict: Verdict | null;
};

/** Initial runs per side. With a budget it is one, because the cost of a run is unknown. */
export function firstStep({ runs, adaptive, budgetUsd }: GateSettings): number {
  if (budgetUsd !== null) return Math.min(runs, 1);
  return adaptive ? Math.min(runs, gateSteps[0].runs) : runs;
}

/** The p value below which a change is significant with this many runs per side: lower in an adaptive gate, which tests several times. */
export const levelAt = (done: number, adaptive: boolean): number =>
  adaptive ? (gateSteps.find(({ runs }) => runs >= done) ?? gateSteps[3]).level : alpha;

const clearVerdicts: (Verdict | null)[] = ["regressed", "improved", "no_change"];
/** Whether a verdict decides a gate, so that no further runs are needed. */
export const isClear = (verdict: Verdict | null): boolean => clearVerdicts.includes(verdict);

/** The next number of runs per side, or why no more runs are made. `stop` null: all runs have been made. */
export function nextStep(progress: Progress): number | { stop: string | null } {
  const { runs, adaptive, budgetUsd, done, spentUsd, verdict } = progress;
  if (done >= runs) return { stop: null };
  const isTested = adaptive && gateSteps.some((step) => step.runs === done);
  if (isTested && isClear(verdict)) return { stop: `clear after ${done} runs per side` };
  const target = adaptive ? Math.min(runs, gateSteps.find((step) => step.runs > done)?.runs ?? runs) : runs;
  if (budgetUsd === null) return target;
  if (spentUsd === null) return { stop: "the cost of the runs is unknown, so the budget cannot be enforced" };
  // Free runs never exceed a budget.
  const affordable = spentUsd === 0 ? target : done + Math.floor(((budgetUsd - spentUsd) / spentUsd) * done);
  if (affordable > done && (!adaptive || affordable >= target)) return Math.min(target, affordable);
  return {
    stop: `${done} runs per side cost $${spentUsd.toFixed(2)}, and more would exceed the budget of $${budgetUsd}`,
  };
}
