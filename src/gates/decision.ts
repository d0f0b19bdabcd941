import type { Comparison } from "../reports/compare.ts";
import { type EvalResult, isBroken } from "../reports/repeats.ts";
import type { Gate } from "./schema.ts";

/** `done`: runs of the head that have ended. `lost`: why most runs of a side that failed did; null: none did. */
type Facts = {
  head: EvalResult;
  done: number;
  comparison: Comparison | null;
  minScore: number | null;
  lost: Record<"head" | "base", string | null>;
};

/** What a gate comes to: it fails where the head has regressed or is below the bar, and nothing else fails it. */
export function decide({ head, done, comparison, minScore, lost }: Facts): { status: Gate["status"]; reason: string } {
  const [base] = comparison?.evidence.sides ?? [];
  const because = (side: "head" | "base") => (lost[side] === null ? "" : `: ${lost[side]}`);
  const broken = isBroken(head.infraFailures, done)
    ? "head"
    : base && isBroken(base.infraFailures, comparison?.base.runs ?? 0)
      ? "base"
      : null;
  if (broken)
    return { status: "error", reason: `over 20 % of the runs of the ${broken} could not be made${because(broken)}` };
  if (head.score === null) return { status: "error", reason: `no run of the head has a score${because("head")}` };
  const told = comparison ? `${comparison.verdict ?? "no verdict"}: ${comparison.evidence.reason}` : "there is no base";
  if (comparison?.verdict === "regressed") return { status: "failed", reason: told };
  const { mean } = head.score;
  if (minScore !== null && mean < minScore)
    return { status: "failed", reason: `the mean score ${mean} is below ${minScore}; ${told}` };
  const bar = minScore === null ? "" : `the mean score ${mean} is not below ${minScore}; `;
  return { status: "passed", reason: bar + told };
}
