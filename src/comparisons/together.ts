import { differencesOf, differenceWords } from "../reports/differences.ts";
import type { Side } from "./sides.ts";
import { judgeSides } from "./verdict.ts";

/**
 * Whether sides can be compared and, for two sides, whether the later one is better. Used for reports, evaluations,
 * prompts and gates. `known`: differences that were found before; `level`: the p below which a change is significant.
 */
export function judgeTogether(sides: Side[], known: string[] = [], level?: number) {
  const [before, after] = sides;
  const isPair = before && after && sides.length === 2;
  const graded = sides.map(({ runs }) => runs.filter(({ report }) => report !== null));
  const differences = known.length > 0 || !isPair ? known : differencesOf(graded).map(differenceWords);
  return {
    comparability: { same: differences.length === 0, differences },
    judged: isPair ? judgeSides(before, after, differences, level) : null,
  };
}
