import { type Static, Type } from "@sinclair/typebox";
import { Nullable } from "../schema.ts";
import { type Ends, endsTest } from "../stats/ends-test.ts";
import { stratifiedFisherTest } from "../stats/proportions.ts";
import { goalResultOf, pWords, roundP, type SideRun } from "../stats/repeats.ts";
import type { Pair } from "./samples.ts";

const Share = Type.Object({ k: Type.Integer(), n: Type.Integer() });
const ComparedShares = Type.Object({
  before: Share,
  after: Share,
  p: Type.Number({ description: "One-sided p that results got worse, from Fisher's exact test within each prompt" }),
});

/** How the runs of both sides ended, and whether more of them ended without success. */
export const EndsEvidence = Type.Object(
  {
    success: Nullable(
      Type.Object(ComparedShares.properties, {
        description:
          "Runs that reached the goal; a part that the judge left unclear counts as not reached. Null: goal not tested",
      }),
    ),
    unfinished: Type.Object(ComparedShares.properties, {
      description: "Runs that timed out, used up their budget or crashed",
    }),
    p: Type.Number({
      description: "The smaller p, adjusted for two tests; a regression if below half the level",
    }),
  },
  { title: "EndsEvidence" },
);
export type EndsEvidence = Static<typeof EndsEvidence>;

/**
 * Tests how the runs of each pair ended; null if a side has no valid run. The `p` values are exact. `successP`: the two-sided p value of the
 * hypothesis that both sides reached the goal equally often; null: the goal was not tested.
 */
export function testEnds(pairs: Pair[]): { ends: EndsEvidence; successP: number | null } | null {
  const strata = pairs.map(({ before, after }) => ({ a: endsOf(before), b: endsOf(after) }));
  const total = (side: "a" | "b", what: keyof Ends) => strata.reduce((sum, each) => sum + each[side][what], 0);
  if (total("a", "n") === 0 || total("b", "n") === 0) return null;
  const isJudged =
    pairs.some(({ before }) => before.some(isGoalKnown)) && pairs.some(({ after }) => after.some(isGoalKnown));
  const toComparedShares = (what: "met" | "unfinished", p: number) => ({
    before: { k: total("a", what), n: total("a", "n") },
    after: { k: total("b", what), n: total("b", "n") },
    p,
  });
  const { fewerSuccessesP, moreUnfinishedP, adjustedP } = endsTest(strata, isJudged);
  const success = fewerSuccessesP === null ? null : toComparedShares("met", fewerSuccessesP);
  return {
    ends: { success, unfinished: toComparedShares("unfinished", moreUnfinishedP), p: adjustedP },
    successP: success && twoSidedPOf(strata),
  };
}

/** Whether the goal of a run was tested, even if the judge left it unclear. */
const isGoalKnown = (run: SideRun): boolean => {
  const end = goalResultOf(run);
  return end === "met" || end === "missed" || (end === "unclear" && run.provenShare !== null);
};

function endsOf(runs: SideRun[]): Ends {
  const ends = runs.map(goalResultOf).filter((end) => end !== null);
  const count = (value: string) => ends.filter((end) => end === value).length;
  return { n: ends.length, met: count("met"), unfinished: count("unfinished") };
}

/** The two-sided p value of the hypothesis that both sides reached the goal equally often. */
const twoSidedPOf = (strata: { a: Ends; b: Ends }[]): number =>
  stratifiedFisherTest(strata.map(({ a, b }) => ({ a: { k: a.met, n: a.n }, b: { k: b.met, n: b.n } }))).p;

/**
 * The reasons for a regression other than the scores. Their level is halved, because the other half goes to scores that fell, in the two-sided test.
 */
export function worseEnds({ success, unfinished, p }: EndsEvidence, level: number): ("success" | "unfinished")[] {
  if (p >= level / 2) return [];
  return [
    ...(success && success.p < level / 2 ? (["success"] as const) : []),
    ...(unfinished.p < level / 2 ? (["unfinished"] as const) : []),
  ];
}

/** For example `the goal was reached in 1 of 5 runs, 5 of 5 before, one-sided p = 0.024`. */
export function describeEnds({ success, unfinished }: EndsEvidence, causes: string[]): string[] {
  const share = ({ k, n }: { k: number; n: number }) => `${k} of ${n}`;
  const reasons: string[] = [];
  if (success && causes.includes("success"))
    reasons.push(
      `the goal was reached in ${share(success.after)} runs, ${share(success.before)} before, one-sided ${pWords(success.p)}`,
    );
  if (causes.includes("unfinished"))
    reasons.push(
      `${share(unfinished.after)} runs timed out, used up their budget or crashed, ${share(unfinished.before)} before, one-sided ${pWords(unfinished.p)}`,
    );
  return reasons;
}

/** The evidence with its probabilities as reports show them. */
export const roundedEnds = (ends: EndsEvidence): EndsEvidence => ({
  success: ends.success && { ...ends.success, p: roundP(ends.success.p) },
  unfinished: { ...ends.unfinished, p: roundP(ends.unfinished.p) },
  p: roundP(ends.p),
});
