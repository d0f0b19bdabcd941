import type { Comparison } from "../reports/compare.ts";
import { type EvalResult, isBroken } from "../reports/repeats.ts";
import type { Gate } from "./schema.ts";

/** `done`: runs of the head that have ended. */
type Facts = { head: EvalResult; done: number; comparison: Comparison | null; minScore: number | null };

/** What a gate comes to: it fails where the head has regressed or is below the bar, and nothing else fails it. */
export function decide({ head, done, comparison, minScore }: Facts): { status: Gate["status"]; reason: string } {
  const [base] = comparison?.evidence.sides ?? [];
  if (isBroken(head.infraFailures, done) || (base && isBroken(base.infraFailures, comparison?.base.runs ?? 0)))
    return { status: "error", reason: "over 20 % of the runs of one side could not be made; see their failureReason" };
  if (head.score === null)
    return { status: "error", reason: "no run of the head has a score; see their failureReason" };
  const told = comparison ? `${comparison.verdict ?? "no verdict"}: ${comparison.evidence.reason}` : "there is no base";
  if (comparison?.verdict === "regressed") return { status: "failed", reason: told };
  const { mean } = head.score;
  if (minScore !== null && mean < minScore)
    return { status: "failed", reason: `the mean score ${mean} is below ${minScore}; ${told}` };
  const bar = minScore === null ? "" : `the mean score ${mean} is not below ${minScore}; `;
  return { status: "passed", reason: bar + told };
}
