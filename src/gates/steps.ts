import type { Verdict } from "../comparisons/evidence.ts";
import { looks } from "../stats/power.ts";

/** A gate as far as it has come: `done` runs a side, `spentUsd` on both (null: not known). */
export type Progress = {
  runs: number;
  adaptive: boolean;
  budgetUsd: number | null;
  done: number;
  spentUsd: number | null;
  verdict: Verdict | null;
};

/** Runs a side with which a gate begins: one where a budget is to be kept, for nobody knows what a run costs. */
export const firstStep = ({ runs, adaptive, budgetUsd }: Pick<Progress, "runs" | "adaptive" | "budgetUsd">): number =>
  Math.min(runs, budgetUsd !== null ? 1 : adaptive ? looks[0].runs : runs);

/** The p below which a change counts at so many runs a side. */
export const levelAt = (done: number, adaptive: boolean): number | undefined =>
  adaptive ? (looks.find(({ runs }) => runs >= done) ?? looks[3]).level : undefined;

const plain: (Verdict | null)[] = ["regressed", "improved", "no_change"];

/** How many runs a side there should be next, or why there should be no more. */
export function nextStep({ runs, adaptive, budgetUsd, done, spentUsd, verdict }: Progress): number | { stop: string } {
  if (done >= runs) return { stop: "" };
  const isLook = adaptive && looks.some((look) => look.runs === done);
  if (isLook && plain.includes(verdict)) return { stop: `clear after ${done} runs per side` };
  const wanted = adaptive ? Math.min(runs, looks.find((look) => look.runs > done)?.runs ?? runs) : runs;
  if (budgetUsd === null) return wanted;
  if (spentUsd === null) return { stop: "the cost of the runs is unknown, so the budget cannot be enforced" };
  // Free runs are never too dear.
  const affordable = spentUsd === 0 ? wanted : done + Math.floor(((budgetUsd - spentUsd) / spentUsd) * done);
  if (affordable > done && (!adaptive || affordable >= wanted)) return Math.min(wanted, affordable);
  return {
    stop: `${done} runs per side cost $${spentUsd.toFixed(2)}, and more would exceed the budget of $${budgetUsd}`,
  };
}
