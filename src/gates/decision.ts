import { isRuleBased } from "../agents/agent.ts";
import type { Comparison } from "../comparisons/compare.ts";
import type { Scope } from "../grading/grade.ts";
import { severities } from "../grading/kinds.ts";
import { humanize } from "../reports/labels.ts";
import { threshold } from "../stats/power.ts";
import { type EvalResult, isInconclusive } from "../stats/repeats.ts";
import type { Gate } from "./schema.ts";

/** The number of a side's runs that ended without a report, and their most common cause. */
type LostRuns = { n: number; reason: string | null };
/** `done`: finished runs of the head. `scopes`: the scopes of the head's scores. */
type GateFacts = {
  agent: string;
  head: EvalResult;
  scopes: Scope[];
  done: number;
  comparison: Comparison | null;
  minScore: number | null;
  scope: Scope;
  lost: Record<"head" | "base", LostRuns>;
};
/**
 * `cause`: the part of the reason that the comparison doesn't tell; null: there is none. `hasTooFewUsableRuns`: more runs
 * would not help.
 */
type Decision = {
  status: Exclude<Gate["status"], "running">;
  reason: string;
  cause: string | null;
  hasTooFewUsableRuns?: true;
};

/**
 * The result of a gate. It fails only if the head regressed or is below the minimum score. It passes only if a
 * regression could have been detected: if too many runs failed, or there are too few, the result is an error.
 */
export function decide(facts: GateFacts): Decision {
  const { head, comparison, minScore, scope } = facts;
  const [base] = comparison?.evidence.sides ?? [];
  const because = (side: "head" | "base") => (facts.lost[side].reason === null ? "" : `: ${facts.lost[side].reason}`);
  const toReason = (cause: string) => ({ reason: cause, cause });
  // That there is no comparison is a part of the cause, since no comparison tells it.
  const withComparison = (...causes: string[]) => {
    const ownCauses = comparison ? causes : [...causes, "there is no base"];
    const result = comparison ? [`${humanize(comparison.verdict ?? "no_verdict")}: ${comparison.evidence.reason}`] : [];
    return { reason: [...ownCauses, ...result].join("; "), cause: ownCauses.join("; ") || null };
  };
  const failForLostRuns = (cause: string): Decision => ({
    status: "error",
    ...toReason(cause),
    hasTooFewUsableRuns: true,
  });
  const failForSide = (side: "head" | "base") =>
    failForLostRuns(`more than 20% of the runs of the ${side} failed${because(side)}`);
  if (isInconclusive(head.infraFailures, facts.done)) return failForSide("head");
  if (base && isInconclusive(base.infraFailures, comparison?.base.runs ?? 0)) return failForSide("base");
  if (comparison?.verdict === "regressed") return { status: "failed", ...withComparison() };
  if (isInconclusive(facts.lost.head.n, facts.done))
    // More runs can show that they are significantly more than on the base.
    return {
      status: "error",
      ...toReason(`more than 20% of the runs of the head ended without a report${because("head")}`),
    };
  if (head.score === null) return failForLostRuns(`the head is not measured${because("head")}`);
  const newFriction = isRuleBased(facts.agent) ? describeNewFriction(comparison) : null;
  if (newFriction) return { status: "failed", ...withComparison(newFriction) };
  const { mean } = head.score;
  const other = facts.scopes.find((each) => each !== scope);
  if (minScore !== null && other !== undefined)
    return {
      status: "error",
      ...withComparison(
        `the minimum score applies to ${scopeTexts[scope]}, but the runs of the head have ${scopeTexts[other]}; to accept those, set the scope to ${other}`,
      ),
    };
  if (minScore !== null && mean < minScore)
    return { status: "failed", ...withComparison(`the mean score ${mean} is below the minimum of ${minScore}`) };
  if (comparison && isSplit(comparison))
    return { status: "error", ...withComparison("only some of the prompts got worse; compare them one by one") };
  if (minScore === null && comparison && inconclusive.includes(comparison.verdict))
    return { status: "error", ...withComparison() };
  if (minScore === null) return { status: "passed", ...withComparison() };
  return { status: "passed", ...withComparison(`the mean score ${mean} meets the minimum of ${minScore}`) };
}

/** What a score of each scope tells. */
const scopeTexts: Record<Scope, string> = {
  goal: "scores with a tested goal",
  conduct_only: "scores of the agent’s conduct only",
  docs_only: "scores of the docs only",
};

const inconclusive: Comparison["verdict"][] = [null, "not_comparable", "insufficient_data"];

/** Whether runs became significantly worse within their prompts, although the total over all prompts can't show it. */
const isSplit = ({ evidence: { delta, p, withinP, level } }: Comparison): boolean =>
  delta !== null && p !== null && withinP !== null && p >= level && withinP < level && delta.value <= -threshold;

/** New friction on the path to the goal, of medium severity or higher, that a rule-based agent found on the head; null: none. */
function describeNewFriction(comparison: Comparison | null): string | null {
  const minSeverity = severities.indexOf("medium");
  const points =
    comparison?.friction.new.filter(({ severity, onPath }) => onPath && severities.indexOf(severity) <= minSeverity) ??
    [];
  const [first] = points;
  if (!first) return null;
  const rest = points.length === 1 ? "" : ` and ${points.length - 1} more`;
  return `new on the head: ${first.severity}: ${first.title}${rest}`;
}
