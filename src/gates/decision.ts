import { isRuleBased } from "../agents/agent.ts";
import type { Comparison } from "../comparisons/compare.ts";
import type { Scope } from "../grading/grade.ts";
import { severities } from "../grading/kinds.ts";
import { humanize } from "../reports/labels.ts";
import { threshold } from "../stats/power.ts";
import { type EvalResult, isInconclusive } from "../stats/repeats.ts";
import type { Gate } from "./schema.ts";

/** The number of a side's runs that ended without a report, for whatever reason, and their most common cause. */
type LostRuns = { n: number; reason: string | null };
/** `done`: finished runs of the head. `scopes`: the scopes of the head's scores. `scope`: the scope of the scores to which the minimum applies. */
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
/** `cause`: the part of the reason that is not in the comparison; null: there is none. `hasTooFewUsableRuns`: more runs would not help. */
type Decision = {
  status: Exclude<Gate["status"], "running">;
  reason: string;
  cause: string | null;
  hasTooFewUsableRuns?: true;
};

/**
 * The result of a gate. It fails only if the head regressed, is below the minimum score, or has new friction that a rule-based agent found. It passes
 * only if a regression could have been detected. If too many runs failed or there are too few runs, the result is an error.
 */
export function decide(facts: GateFacts): Decision {
  const { head, comparison, minScore, scope, lost, done } = facts;
  const [base] = comparison?.evidence.sides ?? [];
  const end = (status: Decision["status"], ...causes: string[]) => withComparison(status, comparison, causes);
  const tooFewUsableRuns = (words: string, losses: LostRuns): Decision => ({
    ...lossError(words, losses),
    hasTooFewUsableRuns: true,
  });
  if (isInconclusive(head.infraFailures, done))
    return tooFewUsableRuns("more than 20% of the runs of the head failed", lost.head);
  if (base && isInconclusive(base.infraFailures, comparison?.base.runs ?? 0))
    return tooFewUsableRuns("more than 20% of the runs of the base failed", lost.base);
  if (comparison?.verdict === "regressed") return end("failed");
  if (isInconclusive(lost.head.n, done))
    // More runs would help here: they can show that the head loses significantly more runs than the base.
    return lossError("more than 20% of the runs of the head ended without a report", lost.head);
  if (head.score === null) return tooFewUsableRuns("the head is not measured", lost.head);
  const newFriction = isRuleBased(facts.agent) ? describeNewFriction(comparison) : null;
  if (newFriction) return end("failed", newFriction);
  const { mean } = head.score;
  const other = facts.scopes.find((each) => each !== scope);
  if (minScore !== null && other !== undefined)
    return end(
      "error",
      `the minimum score applies to ${scopeTexts[scope]}, but the runs of the head have ${scopeTexts[other]}; to accept those, set the scope to ${other}`,
    );
  if (minScore !== null && mean < minScore)
    return end("failed", `the mean score ${mean} is below the minimum of ${minScore}`);
  if (comparison && isSplit(comparison))
    return end("error", "only some of the prompts got worse; compare them one by one");
  if (minScore !== null) return end("passed", `the mean score ${mean} meets the minimum of ${minScore}`);
  return end(comparison && inconclusive.includes(comparison.verdict) ? "error" : "passed");
}

/** An error because of runs without a report. */
function lossError(words: string, { reason }: LostRuns): Decision {
  const cause = reason === null ? words : `${words}: ${reason}`;
  return { status: "error", reason: cause, cause };
}

/** A decision whose reason is the comparison, and in addition `causes`. */
function withComparison(status: Decision["status"], comparison: Comparison | null, causes: string[]): Decision {
  // If there is no comparison, only the cause can say so.
  const ownCauses = comparison ? causes : [...causes, "there is no base"];
  const result = comparison ? [`${humanize(comparison.verdict ?? "no_verdict")}: ${comparison.evidence.reason}`] : [];
  return { status, reason: [...ownCauses, ...result].join("; "), cause: ownCauses.join("; ") || null };
}

/** What a score of each scope tells. */
const scopeTexts: Record<Scope, string> = {
  goal: "scores with a tested goal",
  conduct_only: "scores of the agent’s conduct only",
  docs_only: "scores of the docs only",
};

const inconclusive: Comparison["verdict"][] = [null, "not_comparable", "insufficient_data"];

/** Whether runs became significantly worse within their prompts, although the result over all prompts isn't significant. */
const isSplit = ({ evidence: { delta, p, withinP, level } }: Comparison): boolean =>
  delta !== null && p !== null && withinP !== null && p >= level && withinP < level && delta.value <= -threshold;

/** New friction that a rule-based agent found on the head, on the path to the goal and of medium severity or higher; null: none. */
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
