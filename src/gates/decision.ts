import { isRuleBased } from "../agents/agent.ts";
import type { Comparison } from "../comparisons/compare.ts";
import { threshold } from "../comparisons/evidence.ts";
import type { Scope } from "../grading/grade.ts";
import { severities } from "../grading/kinds.ts";
import { type EvalResult, isBroken } from "../stats/repeats.ts";
import type { Gate } from "./schema.ts";

/** How many runs of a side ended without a report, and why most of them did. */
type Lost = { n: number; reason: string | null };
/** `done`: runs of the head that have ended. `scopes`: what the scores of the head are of. */
type Facts = {
  agent: string;
  head: EvalResult;
  scopes: Scope[];
  done: number;
  comparison: Comparison | null;
  minScore: number | null;
  scope: Scope;
  lost: Record<"head" | "base", Lost>;
};
/** `isLost`: there are too few runs to go by, and more of them would not help. */
type Decision = { status: Exclude<Gate["status"], "running">; reason: string; isLost?: true };

/**
 * What a gate comes to. It fails where the head has regressed or is below the bar, and nothing else fails it. It passes only where that could
 * have been seen: where too many runs were lost, or too few were made to tell, it is an error.
 */
export function decide(facts: Facts): Decision {
  const { head, comparison, minScore, scope } = facts;
  const [base] = comparison?.evidence.sides ?? [];
  const because = (side: "head" | "base") => (facts.lost[side].reason === null ? "" : `: ${facts.lost[side].reason}`);
  const lost = (reason: string): Decision => ({ status: "error", reason, isLost: true });
  const broken = isBroken(head.infraFailures, facts.done)
    ? "head"
    : base && isBroken(base.infraFailures, comparison?.base.runs ?? 0)
      ? "base"
      : null;
  if (broken) return lost(`more than 20% of the runs of the ${broken} failed${because(broken)}`);
  const told = comparison ? `${comparison.verdict ?? "no verdict"}: ${comparison.evidence.reason}` : "there is no base";
  if (comparison?.verdict === "regressed") return { status: "failed", reason: told };
  if (isBroken(facts.lost.head.n, facts.done))
    return lost(`more than 20% of the runs of the head ended without a report${because("head")}`);
  if (head.score === null) return lost(`the head has no scored run${because("head")}`);
  const found = isRuleBased(facts.agent) ? newFindings(comparison) : null;
  if (found) return { status: "failed", reason: `${found}; ${told}` };
  const { mean } = head.score;
  const other = facts.scopes.find((each) => each !== scope);
  if (minScore !== null && other !== undefined)
    return {
      status: "error",
      reason: `minScore applies to scores of scope ${scope}, but the head has scores of scope ${other}; set scope to accept them; ${told}`,
    };
  if (minScore !== null && mean < minScore)
    return { status: "failed", reason: `the mean score ${mean} is below the minimum of ${minScore}; ${told}` };
  if (comparison && isSplit(comparison))
    return { status: "error", reason: `only some of the prompts got worse; compare them one by one; ${told}` };
  if (minScore === null && comparison && tellsNothing.includes(comparison.verdict))
    return { status: "error", reason: told };
  const bar = minScore === null ? "" : `the mean score ${mean} meets the minimum of ${minScore}; `;
  return { status: "passed", reason: bar + told };
}

const tellsNothing: Comparison["verdict"][] = [null, "not_comparable", "insufficient_data"];

/** Whether the runs fell within their prompts by more than chance, though the prompts taken together cannot show it. */
const isSplit = ({ evidence: { delta, p, withinP, level } }: Comparison): boolean =>
  delta !== null && p !== null && withinP !== null && p >= level && withinP < level && delta.value <= -threshold;

/** What an agent by rules met on the head and not on the base, of medium severity or higher; null: nothing. */
function newFindings(comparison: Comparison | null): string | null {
  const least = severities.indexOf("medium");
  const found = comparison?.friction.new.filter(({ severity }) => severities.indexOf(severity) <= least) ?? [];
  const [first] = found;
  if (!first) return null;
  const rest = found.length === 1 ? "" : ` and ${found.length - 1} more`;
  return `new on the head: ${first.severity}: ${first.title}${rest}`;
}
