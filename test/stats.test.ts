import { expect, test } from "bun:test";
import { join } from "node:path";
import { tQuantile } from "../src/stats/distributions.ts";
import { type Ends, endsTest } from "../src/stats/ends-test.ts";
import {
  meanInterval,
  median,
  pairedInterval,
  predictionInterval,
  standardDeviation,
  stratifiedWelch,
  welch,
  wilson,
} from "../src/stats/estimates.ts";
import {
  holm,
  pairedTest,
  permutationTest,
  type Stratum,
  signFlipTest,
  stratifiedPermutationTest,
} from "../src/stats/hypothesis-tests.ts";
import { gateSteps, powerOf, runsToShow, smallestChange, unitsToShow } from "../src/stats/power.ts";
import { fisherTest, shareDifference, stratifiedFisherTest } from "../src/stats/proportions.ts";
import { testBlocks } from "../src/stats/randomized-blocks.ts";
import { normal, randomOf } from "./support/random.ts";
import { isThorough } from "./support/thorough.ts";

const rounded = (value: number | null, digits = 2) => (value === null ? null : Number(value.toFixed(digits)));

// Table I of Newcombe, Statistics in Medicine 17 (1998) 857–872, has 81/263, 15/148, 0/20 and 1/29. The rest was computed by hand.
test.each([
  [81, 263, 0.2553, 0.3662],
  [15, 148, 0.0624, 0.1605],
  [0, 20, 0, 0.1611],
  [1, 29, 0.0061, 0.1718],
  [2, 3, 0.2077, 0.9385],
  [3, 3, 0.4385, 1],
  [4, 5, 0.3755, 0.9638],
  [5, 5, 0.5655, 1],
  [10, 10, 0.7225, 1],
  [20, 20, 0.8389, 1],
])("Wilson's interval of %d of %d equals the published one", (k, n, low, high) => {
  const interval = wilson(k, n);
  expect([rounded(interval.low, 4), rounded(interval.high, 4)]).toEqual([low, high]);
  expect(interval.value).toBe(k / n);
});

test.each([
  [1, 12.706],
  [2, 4.303],
  [4, 2.776],
  [9, 2.262],
  [19, 2.093],
  [30, 2.042],
  [120, 1.98],
])("the 97.5 %% point of t with %d degrees of freedom equals published tables", (freedom, t) => {
  expect(rounded(tQuantile(0.975, freedom), 3)).toBe(t);
});

test("the mean of scores has an interval from two runs on, within 0 to 100", () => {
  expect(meanInterval([80])).toEqual({ value: 80, low: null, high: null });
  // 4.303 × 5 / √3 = 12.42
  const three = meanInterval([70, 75, 80]);
  expect([three.value, rounded(three.low), rounded(three.high)]).toEqual([75, 62.58, 87.42]);
  expect(meanInterval([90, 100]).high).toBe(100);
  expect(meanInterval([50, 50])).toEqual({ value: 50, low: 50, high: 50 });
});

test("the interval of one more run is wider than the interval of the mean: 4.303 × 5 × √(4/3) = 24.84", () => {
  const { low, high } = predictionInterval([70, 75, 80]);
  expect([rounded(low), rounded(high)]).toEqual([50.16, 99.84]);
  expect(predictionInterval([80]).low).toBeNull();
});

test("Welch's interval equals the textbook example", () => {
  // Student's sleep data (Biometrika 6 (1908) 1–25), R: t.test(extra ~ group): −3.3654832 to 0.2054832 for group 1 minus group 2.
  const one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2];
  const two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
  const { value, low, high } = welch(one, two);
  expect([rounded(value, 4), rounded(low, 4), rounded(high, 4)]).toEqual([1.58, -0.2055, 3.3655]);
  // The same ten people took both drugs, as in Student's own analysis: 0.7001 to 2.4599.
  const paired = pairedInterval(one.map((value, i) => (two[i] as number) - value));
  expect([rounded(paired.low, 4), rounded(paired.high, 4)]).toEqual([0.7001, 2.4599]);
  expect(welch([1], [2, 3])).toEqual({ value: 1.5, low: null, high: null });
});

test("Fisher's tests equal Fisher's own examples", () => {
  // The lady tasting tea, The Design of Experiments (1935) §5: three of each four cups right; 34/70.
  expect(fisherTest({ k: 3, n: 4 }, { k: 1, n: 4 })).toBeCloseTo(34 / 70, 12);
  // Convicted twins, identical and not, Sankhya 23 (1962): 0.0005367.
  expect(rounded(fisherTest({ k: 10, n: 13 }, { k: 2, n: 17 }), 7)).toBe(0.0005367);
  // Darwin's maize, eighths of an inch, The Design of Experiments §21: 863 of 32,768 ways are as far on one side.
  const maize = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48];
  expect(signFlipTest(maize)).toEqual({ p: (2 * 863) / 32_768, smallest: 2 / 32_768, splits: 32_768, seed: null });
});

test("Holm's correction equals the textbook example", () => {
  // These are 4 × .005, 3 × .01, 2 × .03, and the last is not below the one before.
  expect(holm([0.01, 0.04, 0.03, 0.005]).map((p) => rounded(p))).toEqual([0.03, 0.06, 0.06, 0.02]);
  expect(holm([0.6, 0.9])).toEqual([1, 1]);
  expect(holm([])).toEqual([]);
});

test.each([
  [3, 0.1],
  [4, 0.029],
  [5, 0.008],
])("%d runs against as many lower ones have the smallest possible p", (n, p) => {
  const low = Array.from({ length: n }, (_, i) => i);
  const test = permutationTest(
    low,
    low.map((value) => value + 50),
  );
  expect([rounded(test.p, 3), rounded(test.smallest, 3), test.seed]).toEqual([p, p, null]);
});

test.each([
  [5, 0.0625],
  [6, 0.03125],
])("%d prompts that all got worse have the smallest possible p", (n, p) => {
  expect(signFlipTest(Array.from({ length: n }, (_, i) => -1 - i))).toEqual({
    p,
    smallest: p,
    splits: 2 ** n,
    seed: null,
  });
});

// The runs per side that all pass, and how many of the same number must fail to be detected.
test.each([
  [4, 4],
  [5, 4],
  [6, 5],
  [8, 5],
  [10, 5],
])("Fisher's test of %d runs per side detects %d failures and no fewer", (n, failures) => {
  expect(fisherTest({ k: n, n }, { k: n - failures, n })).toBeLessThan(0.05);
  expect(fisherTest({ k: n, n }, { k: n - failures + 1, n })).toBeGreaterThan(0.05);
});

test("a permutation test handles ties, unequal sides, and random splits, with identical results", () => {
  expect(permutationTest([1, 1], [1, 1]).p).toBe(1);
  expect(permutationTest([0, 1], [5, 6, 7])).toEqual({ p: 0.1, smallest: 0.1, splits: 10, seed: null });
  const a = Array.from({ length: 12 }, (_, i) => 60 + i);
  const up = (by: number) => a.map((value) => value + by);
  const drawn = permutationTest(a, up(20));
  expect([drawn.seed, drawn.splits, drawn.p, drawn.smallest]).toEqual([1, 20_000, 1 / 20_001, 1 / 20_001]);
  expect(permutationTest(a, up(2))).toEqual(permutationTest(a, up(2)));
  // Up to 32 pairs, all sign assignments are counted: here, only 2 are as extreme. Above, 20,000 are drawn.
  const ones = (n: number) => Array.from({ length: n }, () => 1);
  expect(signFlipTest(ones(32))).toEqual({ p: 2 ** -31, smallest: 2 ** -31, splits: 2 ** 32, seed: null });
  expect(signFlipTest(ones(33), 7)).toEqual({ p: 1 / 20_001, smallest: 1 / 20_001, splits: 20_000, seed: 7 });
});

// These are exact values from the noncentral t: runs per side for changes of 3, 5, 8, 10 and 15 points, and the change
// that 3, 5 and 10 runs per side detect.
test.each([
  [4, [29, 12, 6, 4, 3], [12.3, 8.1, 5.3]],
  [6, [64, 24, 10, 7, 4], [18.4, 12.1, 7.9]],
  [8, [113, 42, 17, 12, 6], [24.6, 16.2, 10.6]],
  [10, [176, 64, 26, 17, 9], [30.7, 20.2, 13.2]],
])("the number of runs needed with a standard deviation of %d is exact", (sd, runs, changes) => {
  expect([3, 5, 8, 10, 15].map((delta) => runsToShow(delta, sd))).toEqual(runs);
  expect([3, 5, 10].map((n) => rounded(smallestChange(n, sd), 1))).toEqual(changes);
});

test("any change is detectable without spread, and a change that is too small for a thousand runs has no number", () => {
  expect([smallestChange(5, 0), runsToShow(5, 0), runsToShow(0.1, 10)]).toEqual([0, 2, null]);
});

test("the median and the standard deviation are exact", () => {
  expect([median([]), median([3]), median([4, 1, 3]), median([4, 1, 3, 2])]).toEqual([null, 3, 3, 2.5]);
  expect([standardDeviation([1]), standardDeviation([2, 4])]).toEqual([null, Math.SQRT2]);
});

type Cell = number & number[];
type Oracle = Record<string, Record<string, Cell>[]> & { looks: number[] };
const file = join(import.meta.dir, "oracle", "stats.json");
const oracle: Oracle = await Bun.file(file).json();

const strataIn = (cell: Cell | undefined) => cell as unknown as Stratum[];

const sharesIn = (cell: Cell | undefined) =>
  (cell as unknown as number[][]).map(([k = 0, n = 0, l = 0, m = 0]) => ({ a: { k, n }, b: { k: l, n: m } }));

/** Each of our numbers next to R's. */
const ours: Record<string, (row: Record<string, Cell>) => [number | null, number | undefined][]> = {
  welch: ({ a, b, level, low, high }) => {
    const interval = welch(a!, b!, level);
    return [
      [interval.low, low],
      [interval.high, high],
    ];
  },
  means: ({ x, sd, low, high }) => {
    const interval = meanInterval(x!);
    return [
      [standardDeviation(x!), sd],
      [interval.low, low],
      [interval.high, Math.min(100, high!)],
    ];
  },
  quantiles: ({ p, df, t }) => [[tQuantile(p!, df!), t]],
  wilson: ({ k, n, low, high }) => [
    [wilson(k!, n!).low, low],
    [wilson(k!, n!).high, high],
  ],
  fisher: ({ a, b, p }) => [[fisherTest({ k: a![0]!, n: a![1]! }, { k: b![0]!, n: b![1]! }), p]],
  // Wilcoxon's tests are the same tests on ranks.
  ranks: ({ a, b, p }) => {
    const all = [...a!, ...b!].sort((x, y) => x - y);
    const rank = (value: number) => all.indexOf(value) + 1;
    return [[permutationTest(a!.map(rank), b!.map(rank)).p, p]];
  },
  signed: ({ d, p }) => {
    const all = d!.map(Math.abs).sort((x, y) => x - y);
    return [[signFlipTest(d!.map((value) => Math.sign(value) * (all.indexOf(Math.abs(value)) + 1))).p, p]];
  },
  permutation: ({ a, b, p }) => [[permutationTest(a!, b!).p, p]],
  holm: (row) => holm(row.p!).map((p, i) => [p, row.holm![i]]),
  power: ({ n, delta, power }) => [[powerOf(n!, delta!, 1), power]],
  smallest: ({ n, delta }) => [[smallestChange(n!, 1), delta]],
  paired: ({ d, level, p, low, high }) => {
    const interval = pairedInterval(d!, level!);
    return [
      [pairedTest(d!), p],
      [interval.low, low],
      [interval.high, high],
    ];
  },
  stratified: ({ strata, p }) => [[stratifiedPermutationTest(strataIn(strata)).p, p]],
  stratifiedWelch: ({ strata, level, low, high }) => {
    const interval = stratifiedWelch(strataIn(strata), level!);
    return [
      [interval.low, low],
      [interval.high, high],
    ];
  },
  flips: ({ d, p }) => [[signFlipTest(d!).p, p]],
  blocks: ({ prompts, p, low, high }) => {
    const test = testBlocks(prompts as unknown as number[][], 0.05);
    return [
      [test.p, p],
      [test.delta.low, low],
      [test.delta.high, high],
    ];
  },
  plans: ({ change, sd, level, n }) => {
    const plan = (runs: number) => ({ error: sd! / Math.sqrt(runs), degreesOfFreedom: runs - 1 });
    return [[unitsToShow(change!, level!, 2, plan), n]];
  },
  exactStrata: ({ strata, p }) => [[stratifiedFisherTest(sharesIn(strata)).p, p]],
  shareIntervals: ({ strata, low, high }) => {
    const interval = shareDifference(sharesIn(strata));
    return [
      [interval.low, low],
      [interval.high, high],
    ];
  },
  endings: ({ sides, fell, rose, adjusted }) => {
    const strata = (sides as unknown as number[][]).map((counts) => {
      const ends = (from: number): Ends => {
        const [n = 0, met = 0, unfinished = 0] = counts.slice(from);
        return { n, met, unfinished };
      };
      return { a: ends(0), b: ends(3) };
    });
    const test = endsTest(strata, true);
    return [
      [test.fewerSuccessesP, fell],
      [test.moreUnfinishedP, rose],
      [test.adjustedP, adjusted],
    ];
  },
};

test.each(Object.entries(ours))("%s equals R, to 1e-9", (name, compare) => {
  const pairs = (oracle[name] ?? []).flatMap(compare);
  expect(pairs.length).toBeGreaterThan(0);
  expect(pairs.filter(([mine, theirs]) => !(Math.abs(mine! - theirs!) < 1e-9))).toEqual([]);
});

test("the levels of interim evaluations equal the spending function, slightly lower", () => {
  expect(gateSteps.map(({ runs }) => runs)).toEqual([3, 5, 8, 12]);
  // 5 against 5 may spend what 3 against 3 can't, because no p is that small there.
  const [first, ...levels] = gateSteps.map(({ level }) => level);
  expect([first, permutationTest([1, 2, 3], [4, 5, 6]).smallest]).toEqual([levels[0]!, 0.1]);
  levels.forEach((level, i) => {
    expect(oracle.looks[i]! - level).toBeWithin(0, 1e-5);
  });
});

test.if(isThorough && Bun.which("Rscript") !== null)(
  "the file with R's values is what its script generates",
  async () => {
    const made: Oracle = await Bun.$`Rscript ${join(import.meta.dir, "oracle", "stats.R")}`.json();
    const numbers = (value: unknown): number[] =>
      typeof value === "number" ? [value] : Object.values(value as object).flatMap(numbers);
    const [now, before] = [numbers(made), numbers(oracle)];
    expect(now.length).toBe(before.length);
    // Another version of R may differ in the last printed digit.
    expect(now.filter((value, i) => Math.abs(value - before[i]!) > 1e-11 * Math.max(1, Math.abs(value)))).toEqual([]);
  },
);

// Power of the permutation test compared with the t test, at sizes for which the tables above promise 4 of 5.
test.each([
  [6, 8, 4],
  [7, 10, 6],
  ...(isThorough
    ? [
        [10, 8, 6],
        [12, 5, 4],
      ]
    : []),
] as [number, number, number][])(
  "%d runs per side detect %d points at a standard deviation of %d as often as promised",
  (n, delta, sd) => {
    const random = randomOf(n);
    const side = (centre: number) => Array.from({ length: n }, () => normal(random, centre, sd));
    const rounds = n > 9 ? 1500 : 4000;
    let seen = 0;
    for (let i = 0; i < rounds; i++) if (permutationTest(side(70), side(70 + delta)).p < 0.05) seen++;
    expect(Math.abs(seen / rounds - powerOf(n, delta, sd))).toBeLessThan(0.03);
  },
  60_000,
);
