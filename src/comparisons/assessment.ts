import { type Difference, describeDifference, differencesOf, isAgentDifference } from "../reports/differences.ts";
import type { Side } from "./sides.ts";
import { decideVerdict } from "./verdict.ts";

/** How sides are compared. */
export type ComparisonOptions = {
  /** Compare sides with different agents, versions, models or contexts. Default: these are not comparable. */
  acrossAgents?: boolean;
  /** The p value below which a change is significant. */
  level?: number;
};

/**
 * Whether sides can be compared and, for two sides, whether the later one is better. Used for reports, evaluations, prompts and gates.
 * `reportDifferences`: the differences between the compared reports. If there are none, the differences between all graded runs of the sides count.
 */
export function assessSides(
  sides: Side[],
  { acrossAgents = false, level, reportDifferences = [] }: ComparisonOptions & { reportDifferences?: Difference[] },
) {
  const [before, after] = sides;
  const isPair = before && after && sides.length === 2;
  const gradedRuns = sides.map(({ runs }) => runs.filter(({ report }) => report !== null));
  const allDifferences = reportDifferences.length > 0 || !isPair ? reportDifferences : differencesOf(gradedRuns);
  const differences = allDifferences.map(describeDifference);
  const blocking = allDifferences.filter((each) => !(acrossAgents && isAgentDifference(each))).map(describeDifference);
  return {
    comparability: { same: differences.length === 0, differences },
    assessment: isPair ? decideVerdict(before, after, blocking, level) : null,
  };
}
