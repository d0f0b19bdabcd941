import { cached, lnChoose } from "./distributions.ts";

/**
 * How the runs of one side ended in one stratum. `n`: the valid runs. `met`: how many of them reached the goal. `unfinished`: how many didn't finish.
 */
export type Ends = { n: number; met: number; unfinished: number };

/**
 * Two one-sided p values: that side `b` reached the goal less often, and that it finished less often. `adjustedP`: the smaller of the two, corrected
 * for making two tests.
 */
type EndsTest = { fewerSuccessesP: number | null; moreUnfinishedP: number; adjustedP: number };

/**
 * Whether side `b` reached the goal less often, or finished less often, than chance allows. The test is exact and one-sided, over all ways to
 * exchange runs within each stratum. With one stratum, each p equals Fisher's one-sided test. The correction is exact, because it uses the joint
 * distribution of both: P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993) §2.3. `isJudged` false: the goal wasn't tested, so
 * only finishing counts.
 */
export function endsTest(strata: { a: Ends; b: Ends }[], isJudged: boolean): EndsTest {
  // A key stands for two numbers of runs on side b: how many met the goal and how many are unfinished. They are two digits in this base.
  const base = 1 + strata.reduce((sum, { a, b }) => sum + a.n + b.n, 0);
  const metOf = (key: number) => Math.floor(key / base);
  const unfinishedOf = (key: number) => key % base;
  // The probability of each key over all strata. The keys of strata can be added, because the numbers in them can.
  let chances = new Map<number, number>([[0, 1]]);
  for (const stratum of strata) {
    const draws = drawsOf(stratum, base);
    const next = new Map<number, number>();
    for (const [key, chance] of chances)
      for (const [keyOfDraw, chanceOfDraw] of draws) {
        const sum = key + keyOfDraw;
        next.set(sum, (next.get(sum) ?? 0) + chance * chanceOfDraw);
      }
    chances = next;
  }
  const sumWhere = (holds: (key: number) => boolean) => {
    let sum = 0;
    for (const [key, chance] of chances) if (holds(key)) sum += chance;
    return Math.min(1, sum);
  };
  const chanceOfMetUpTo = cached((met: number) => (isJudged ? sumWhere((key) => metOf(key) <= met) : 1));
  const chanceOfUnfinishedFrom = cached((unfinished: number) => sumWhere((key) => unfinishedOf(key) >= unfinished));
  const smallerPOf = (key: number) => Math.min(chanceOfMetUpTo(metOf(key)), chanceOfUnfinishedFrom(unfinishedOf(key)));
  const met = strata.reduce((sum, { b }) => sum + b.met, 0);
  const unfinished = strata.reduce((sum, { b }) => sum + b.unfinished, 0);
  // Equal probabilities may differ in their last bits.
  const observed = smallerPOf(met * base + unfinished) * (1 + 1e-9);
  return {
    fewerSuccessesP: isJudged ? chanceOfMetUpTo(met) : null,
    moreUnfinishedP: chanceOfUnfinishedFrom(unfinished),
    adjustedP: sumWhere((key) => smallerPOf(key) <= observed),
  };
}

/** The keys that a stratum can have, each with its probability: multivariate hypergeometric. */
function drawsOf({ a, b }: { a: Ends; b: Ends }, base: number): [key: number, chance: number][] {
  const [met, unfinished, n] = [a.met + b.met, a.unfinished + b.unfinished, a.n + b.n];
  const rest = n - met - unfinished;
  const draws: [key: number, chance: number][] = [];
  for (let metInB = 0; metInB <= Math.min(met, b.n); metInB++) {
    const left = b.n - metInB;
    for (let unfinishedInB = Math.max(0, left - rest); unfinishedInB <= Math.min(unfinished, left); unfinishedInB++) {
      const lnWays = lnChoose(met, metInB) + lnChoose(unfinished, unfinishedInB) + lnChoose(rest, left - unfinishedInB);
      draws.push([metInB * base + unfinishedInB, Math.exp(lnWays - lnChoose(n, b.n))]);
    }
  }
  return draws;
}
