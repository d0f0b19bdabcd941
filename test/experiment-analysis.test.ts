import { expect, test } from "bun:test";
import { analyzeExperiment, type ExperimentAnalysis } from "../src/experiments/analysis.ts";
import type { ArmRun } from "../src/experiments/contrast.ts";
import { aaRate, type NullBlock } from "../src/stats/aa-rate.ts";
import { powerOfErrors, threshold } from "../src/stats/power.ts";
import { normal, randomOf } from "./support/random.ts";
import { isThorough } from "./support/thorough.ts";

type Random = () => number;
type Agent = { effect?: number; chance?: number; useless?: boolean };
type Setup = { prompts: number; repeats: number; sd?: number; arms: Record<string, Agent>; isJudged?: boolean };

/**
 * Runs of simulated agents on prompts of different difficulty: noisy scores with a stated mean effect, a stated probability of success, and scores that
 * depend on success. Each block has a level of its own, as when a network is slow.
 */
function simulate(random: Random, { prompts, repeats, sd = 8, arms, isJudged = true }: Setup): ArmRun[] {
  const runs: ArmRun[] = [];
  for (let prompt = 0; prompt < prompts; prompt++)
    for (let block = 0; block < repeats; block++) {
      const level = 50 + 3 * (prompt % 5) + normal(random, 0, 3);
      for (const [arm, { effect = 0, chance = 0.5 }] of Object.entries(arms)) {
        const success = isJudged ? random() < chance : null;
        const score = normal(random, level + effect, sd) + (success ? 4 : 0) - (isJudged ? 4 * chance : 0);
        const costUsd = Math.exp(normal(random, 0, 0.4));
        const common = {
          promptId: `prompt ${prompt}`,
          block,
          arm,
          score,
          success,
          excluded: null,
          used: null,
          ...unlabeled,
        };
        runs.push({ ...common, costUsd, seconds: 60 * costUsd });
      }
    }
  return runs;
}

const unlabeled = { agent: "simulated", shouldTrigger: null, triggered: null };

const analyze = (runs: ArmRun[], isDeterministic = false): ExperimentAnalysis =>
  analyzeExperiment({ base: "base", arms: [...new Set(runs.map(({ arm }) => arm))], seed: 1, isDeterministic }, runs);

/** How often something holds, in simulations of each design. */
function rateOf(n: number, seed: number, holds: (random: Random) => boolean): number {
  const random = randomOf(seed);
  let hits = 0;
  for (let i = 0; i < n; i++) if (holds(random)) hits++;
  return hits / n;
}

const hasVerdict = ({ contrasts }: ExperimentAnalysis) =>
  contrasts.some(({ verdict }) => verdict === "better" || verdict === "worse");

// Four standard errors of a rate of 5 % in so many simulations.
const noise = (n: number) => 4 * Math.sqrt((0.05 * 0.95) / n);

test.each([
  { prompts: 3, repeats: 4, size: 10_000 },
  { prompts: 1, repeats: 10, size: 800 },
  { prompts: 7, repeats: 2, size: 800 },
  { prompts: 12, repeats: 1, size: 800 },
])(
  "of three arms without a change, any seems to have one in at most 5 %% of experiments: %o",
  (design) => {
    const n = isThorough ? design.size : 120;
    const arms = { base: {}, a: {}, b: {}, c: {} };
    const verdicts = { n: 0 };
    const alarms = rateOf(n, 7, (random) => {
      const analysis = analyze(simulate(random, { ...design, arms, sd: 12 }));
      if (hasVerdict(analysis)) verdicts.n++;
      return analysis.contrasts.some(({ overall: { score, success } }) =>
        [score, success].some((change) => (change?.adjustedP ?? 1) < 0.05),
      );
    });
    expect(verdicts.n / n).toBeLessThanOrEqual(alarms);
    expect(alarms).toBeLessThan(0.05 + (n === 10_000 ? 0 : noise(n)));
  },
  100_000,
);

test("effects that differ between prompts and cancel out are no verdict from six prompts on", () => {
  const n = isThorough ? 2_000 : 150;
  const alarms = rateOf(n, 9, (random) => {
    const runs = simulate(random, { prompts: 8, repeats: 5, sd: 2, arms: { base: {}, a: {} }, isJudged: false });
    const shifts = Array.from({ length: 8 }, () => normal(random, 0, 15));
    const shifted = runs.map((run) => ({
      ...run,
      score: run.score! + (run.arm === "a" ? shifts[Number(run.promptId.slice(7))]! : 0),
    }));
    return hasVerdict(analyze(shifted));
  });
  expect(alarms).toBeLessThan(0.05 + noise(n));
}, 100_000);

test.each([
  { prompts: 1, repeats: 10 },
  { prompts: 3, repeats: 2 },
  { prompts: 5, repeats: 4 },
  { prompts: 8, repeats: 3 },
])(
  "95 %% intervals contain the true change in 93 to 97 %%: %o",
  ({ prompts, repeats }) => {
    const n = isThorough ? 2_000 : 160;
    const margin = isThorough ? 0 : noise(n);
    const effects = [
      { effect: 0, chance: 0.5 },
      { effect: 5, chance: 0.7 },
      { effect: 10, chance: 0.5 },
    ];
    for (const [i, { effect, chance }] of effects.entries()) {
      const covered = { score: 0, success: 0, cost: 0 };
      rateOf(n, 20 + i, (random) => {
        const arms = { base: {}, a: { effect, chance } };
        const { score, success, cost } = analyze(simulate(random, { prompts, repeats, arms })).contrasts[0]!.overall;
        if (score!.low! <= effect && effect <= score!.high!) covered.score++;
        if (success!.low! <= chance - 0.5 && chance - 0.5 <= success!.high!) covered.success++;
        if (cost!.low! <= 1 && 1 <= cost!.high!) covered.cost++;
        return true;
      });
      const rates = Object.entries(covered).map(([name, hits]) => ({ name, effect, rate: hits / n }));
      expect(rates.filter(({ rate }) => rate < 0.93 - margin || rate > 0.97 + margin)).toEqual([]);
    }
  },
  300_000,
);

test.each([
  { prompts: 1, repeats: 13, degreesOfFreedom: 12 },
  { prompts: 4, repeats: 4, degreesOfFreedom: 12 },
  { prompts: 10, repeats: 2, degreesOfFreedom: 9 },
])(
  "a change of 8 points is detected as often as planned: %o",
  ({ prompts, repeats, degreesOfFreedom }) => {
    const n = isThorough ? 5_000 : 200;
    const sd = 7;
    const planned = powerOfErrors(8 / (sd * Math.sqrt(2 / (prompts * repeats))), degreesOfFreedom);
    const arms = { base: {}, a: { effect: 8 } };
    const power = rateOf(n, 3, (random) => {
      const { score } = analyze(simulate(random, { prompts, repeats, sd, arms, isJudged: false })).contrasts[0]!
        .overall;
      return score!.p! < 0.05;
    });
    expect(Math.abs(power - planned)).toBeLessThan(isThorough ? 0.03 : 0.03 + noise(n));
  },
  100_000,
);

test("success is tested within prompts, and alone decides a verdict", () => {
  const arms = { base: { chance: 0.2 }, a: { chance: 0.95 } };
  const [contrast] = analyze(simulate(randomOf(5), { prompts: 4, repeats: 6, arms, sd: 30 })).contrasts;
  expect(contrast).toMatchObject({ verdict: "better", causes: ["success"], runsForVerdict: null });
  const { base, arm, difference } = contrast!.overall.success!;
  expect(difference).toBeCloseTo(arm.n / arm.of - base.n / base.of, 12);
  // With one prompt, it is Fisher's exact test: 5 of 5 against 0 of 5.
  const clear = [0, 1, 2, 3, 4].flatMap((block) => [run({ block, success: false }), run({ block, arm: "a" })]);
  expect(analyze(clear).contrasts[0]!.prompts[0]!.contrast.success).toMatchObject({
    base: { n: 0, of: 5 },
    arm: { n: 5, of: 5 },
    difference: 1,
    p: expect.closeTo(2 / 252, 12),
  });
});

/** A run that succeeded with a score of 60, unless stated otherwise. */
const run = (values: Partial<ArmRun>): ArmRun => ({
  ...{ promptId: "p", block: 0, arm: "base", score: 60, success: true },
  ...{ costUsd: 1, seconds: 10, excluded: null, used: null, ...unlabeled },
  ...values,
});

test("runs count for their arm whether or not they used its treatment, and those that used it are told apart", () => {
  const blocks = Array.from({ length: 10 }, (_, block) => block);
  const runs = blocks.flatMap((block) => [
    run({ block, score: 60 + block }),
    run({ block, arm: "a", score: 60 + block + (block < 5 ? 20 : 0), used: block < 5 }),
  ]);
  const { contrasts, arms } = analyze(runs);
  expect(contrasts[0]!.overall.score).toMatchObject({ delta: 10, n: 10, basis: "blocks" });
  expect(contrasts[0]!.usedOnly).toEqual({ delta: 20, low: 20, high: 20, n: 5 });
  expect(arms.map(({ used }) => used)).toEqual([null, { n: 5, of: 10 }]);
  expect(analyze(runs.map((each) => ({ ...each, used: null }))).contrasts[0]!.usedOnly).toBeNull();
});

test("contaminated and failed runs are excluded and counted, and too many prevent a verdict", () => {
  const runs = (excluded: ArmRun["excluded"], count: number, arm: string) =>
    simulate(randomOf(1), { prompts: 2, repeats: 10, arms: { base: {}, a: { effect: 30 } } }).map((each, i, all) =>
      all.slice(0, i).filter((before) => before.arm === arm).length < count && each.arm === arm
        ? { ...each, score: 1_000, success: true, excluded }
        : each,
    );
  const few = analyze(runs("contaminated", 4, "base"));
  expect(few.contrasts[0]).toMatchObject({ verdict: "better", contaminated: 4, failed: 0 });
  expect(few.contrasts[0]!.overall.score).toMatchObject({ n: 16, delta: expect.closeTo(30, -1) });
  expect(few.arms[0]).toMatchObject({ arm: "base", n: 16, failed: 0, contaminated: 4 });
  expect(few.arms[0]!.meanScore).toBeWithin(45, 65);
  for (const arm of ["base", "a"]) {
    const [many] = analyze(runs("contaminated", 5, arm)).contrasts;
    expect(many).toMatchObject({ verdict: "not_comparable", contaminated: 5 });
    const [failed] = analyze(runs("failed", 5, arm)).contrasts;
    expect(failed).toMatchObject({ verdict: "insufficient_data", failed: 5, contaminated: 0 });
  }
});

test("equal repeats of a deterministic agent are one exact run without a test", () => {
  const repeat = (arm: string, score: number, success: boolean | null) =>
    [0, 1, 2, 3, 4].map((block) => run({ block, arm, score, success }));
  const verdictOf = (score: number, success: boolean | null = null) =>
    analyze([...repeat("base", 60, success === null ? null : true), ...repeat("a", score, success)], true)
      .contrasts[0]!;
  const { overall, verdict, runsForVerdict } = verdictOf(50);
  expect([verdict, runsForVerdict]).toEqual(["worse", null]);
  expect(overall).toMatchObject({
    exact: true,
    score: { delta: -10, low: -10, high: -10, p: null, adjustedP: null, n: 1 },
    success: null,
  });
  expect([verdictOf(64.9).verdict, verdictOf(65).verdict]).toEqual(["not_distinguishable", "better"]);
  const failed = verdictOf(60, false);
  expect([failed.verdict, failed.causes]).toEqual(["worse", ["success"]]);
  expect(failed.overall.success).toMatchObject({
    base: { n: 1, of: 1 },
    arm: { n: 0, of: 1 },
    difference: -1,
    p: null,
  });
  // Better scores of fewer successes are no verdict.
  expect(verdictOf(90, false).verdict).toBe("not_distinguishable");
});

test("prompts that every arm passes or every arm fails are uninformative", () => {
  const results = { easy: [true, true], hard: [false, false], telling: [true, false], unknown: [null, null] };
  const runs = Object.entries(results).flatMap(([promptId, [base, arm]]) => [
    run({ promptId, success: base! }),
    run({ promptId, arm: "a", success: arm! }),
  ]);
  expect(analyze(runs).uninformative).toEqual(["easy", "hard"]);
});

test("too few runs are insufficient, and the runs for a verdict are those of the noncentral t", () => {
  /** Half of the blocks change by `spread`, the others by as much in the other direction, and so do prompts by `shift`. */
  const runs = (repeats: number, spread: number, prompts = 1, shift = 0) =>
    Array.from({ length: prompts * repeats }, (_, i) => {
      const [promptId, block] = [`${i % prompts}`, Math.floor(i / prompts)];
      const score = 60 + (block % 2 ? spread : -spread) + (i % 2 ? shift : -shift);
      return [run({ promptId, block, success: null }), run({ promptId, block, arm: "a", success: null, score })];
    }).flat();
  // Five sign flips have no p below 1 / 16.
  const [tooFew] = analyze(runs(5, 8)).contrasts;
  expect([tooFew!.verdict, tooFew!.overall.score!.adjustedP]).toEqual(["insufficient_data", 1]);
  // Six have 1 / 32: enough for one test, and success that never differs is none, but not for two arms.
  const six = runs(6, 0).map((each) => ({ ...each, success: true, score: each.score! + (each.arm === "a" ? 10 : 0) }));
  expect(analyze(six).contrasts[0]).toMatchObject({ verdict: "better", overall: { score: { adjustedP: 1 / 32 } } });
  const three = [...six, ...six.filter(({ arm }) => arm === "a").map((each) => ({ ...each, arm: "b" }))];
  expect(analyze(three).contrasts.map(({ verdict }) => verdict)).toEqual(["insufficient_data", "insufficient_data"]);
  const [contrast] = analyze(runs(12, 8)).contrasts;
  // R: power.t.test(delta = 5, sd = 8 * sqrt(12 / 11), power = 0.8, type = "paired", strict = TRUE)$n = 23.99
  expect(contrast).toMatchObject({ verdict: "not_distinguishable", runsForVerdict: 24, withinThreshold: false });
  expect(analyze(runs(12, 2)).contrasts[0]).toMatchObject({ withinThreshold: true, runsForVerdict: null });
  // Three prompts: the smallest n with a power of 0.8 by R's pt with noncentrality 5 / (sd / sqrt(3 n)) and 3 (n - 1) degrees of freedom.
  expect(analyze(runs(12, 16, 3)).contrasts[0]).toMatchObject({ runsForVerdict: 30, promptsForVerdict: null });
  // Prompts that disagree need more prompts. R: power.t.test(delta = 5, sd = 10 * sqrt(8 / 7), power = 0.8, type = "paired", strict = TRUE)$n = 37.85
  expect(analyze(runs(12, 8, 8, 10)).contrasts[0]).toMatchObject({ runsForVerdict: null, promptsForVerdict: 38 });
});

test("every number is finite or null, whatever is missing", () => {
  const random = randomOf(11);
  const pick = <T>(...values: T[]) => values[Math.floor(random() * values.length)] as T;
  const isSound = (value: unknown): boolean =>
    typeof value === "number"
      ? Number.isFinite(value)
      : value === null || typeof value !== "object" || Object.values(value).every(isSound);
  for (let i = 0; i < (isThorough ? 5_000 : 300); i++) {
    const runs = Array.from({ length: Math.floor(random() * 40) }, () =>
      run({
        ...{ promptId: pick("p", "q", "r", "s", "t", "u", "v"), block: pick(0, 1, 2), arm: pick("base", "a", "b") },
        ...{ score: pick(null, 0, 60, 60, 100), success: pick(null, true, false) },
        ...{ costUsd: pick(null, 0, 1e-9, 2), seconds: pick(null, 0, 5), used: pick(null, true, false) },
        excluded: pick("contaminated", "failed", ...Array.from({ length: 12 }, () => null)),
      }),
    );
    const analysis = analyzeExperiment(
      { base: "base", arms: ["base", "a", "b"], seed: i, isDeterministic: pick(true, false) },
      runs,
    );
    expect(isSound(analysis)).toBe(true);
    expect(analysis.contrasts.map(({ arm }) => arm)).toEqual(["a", "b"]);
  }
}, 60_000);

test.if(isThorough)("five arms, twenty prompts and five repeats take less than 100 ms", () => {
  const runs = simulate(randomOf(1), {
    prompts: 20,
    repeats: 5,
    arms: { base: {}, a: {}, b: {}, c: {}, d: {} },
  });
  const times = Array.from({ length: 5 }, () => {
    const from = performance.now();
    analyze(runs);
    return performance.now() - from;
  });
  expect(Math.min(...times)).toBeLessThan(100);
});

/** Gates of something against itself. `sideSd`: how much a whole side of a gate moves, such as by the mood of a grader. */
function simulateNull(random: Random, gates: number, runs: number, sd: number, sideSd: number): NullBlock[] {
  const side = () => {
    const level = normal(random, 70, sideSd);
    return Array.from({ length: runs }, () => normal(random, level, sd));
  };
  return Array.from({ length: gates }, () => ({ a: side(), b: side() }));
}

test("the interval of the rate of false alarms contains the true rate in 93 to 97 % of designs", () => {
  const random = randomOf(17);
  const designs = isThorough ? 2_000 : 60;
  const kinds = [
    { runs: 5, sd: 8, sideSd: 0 },
    { runs: 4, sd: 6, sideSd: 3 },
    { runs: 5, sd: 6, sideSd: 6 },
    { runs: 6, sd: 5, sideSd: 10 },
  ].map((kind) => {
    const many = simulateNull(random, isThorough ? 40_000 : 2_000, kind.runs, kind.sd, kind.sideSd);
    return { ...kind, truth: aaRate(many, { runs: kind.runs, level: 0.05 }).rate!.value };
  });
  let covered = 0;
  for (let i = 0; i < designs; i++) {
    const { runs, sd, sideSd, truth } = kinds[i % kinds.length]!;
    const gates = 10 + Math.floor(random() * 40);
    const { rate } = aaRate(simulateNull(random, gates, runs, sd, sideSd), { runs, level: 0.05 });
    if (rate!.low! <= truth && truth <= rate!.high!) covered++;
  }
  expect(Math.abs(covered / designs - 0.95)).toBeLessThan(isThorough ? 0.02 : 0.1);
  // Without anything that moves a side, the gate keeps its promise.
  expect(kinds[0]!.truth).toBeLessThan(0.05 + (isThorough ? 0 : 0.02));
}, 100_000);

test("a noisy grader is seen within 20 gates, and a good one is not suspected", () => {
  const n = isThorough ? 200 : 60;
  const isSuspected = (sideSd: number) => (random: Random) =>
    aaRate(simulateNull(random, 20, 5, 6, sideSd), { runs: 5, level: 0.05 }).excessP! < 0.05;
  expect(rateOf(n, 1, isSuspected(8))).toBeGreaterThan(0.95);
  expect(rateOf(n, 2, isSuspected(0))).toBeLessThan(0.05 + noise(n));
  // A grader that varies from run to run raises no false alarms, but 20 blocks of one run per side show what it hides.
  const hides = (sd: number) => (random: Random) =>
    aaRate(simulateNull(random, 20, 1, sd, 0), { runs: 5, level: 0.05 }).smallestChange! > 20;
  expect(rateOf(n, 3, hides(16))).toBeGreaterThan(0.95);
  expect(rateOf(n, 4, hides(6))).toBeLessThan(0.05);
}, 60_000);

test.each([
  { runs: 5, sd: 8, sideSd: 0, level: 0.05 },
  { runs: 8, sd: 8, sideSd: 0, level: 0.01973 },
  { runs: 8, sd: 2, sideSd: 0, level: 0.05 },
  { runs: 6, sd: 6, sideSd: 3, level: 0.05 },
])(
  "the next gate shows the smallest change in 4 of 5 cases: %o",
  ({ runs, sd, sideSd, level }) => {
    const random = randomOf(23);
    const { smallestChange } = aaRate(simulateNull(random, 400, runs, sd, sideSd), { runs, level });
    const gates = simulateNull(random, isThorough ? 4_000 : 600, runs, sd, sideSd).map(({ a, b }) => ({
      a,
      b: b.map((score) => score + smallestChange!),
    }));
    const { rate } = aaRate(gates, { runs, level });
    expect(Math.abs(rate!.value - 0.8)).toBeLessThan(isThorough ? 0.03 : 0.08);
  },
  60_000,
);

test("runs of single blocks are combined to gates, and nothing is claimed from too few", () => {
  const blocks = Array.from({ length: 23 }, (_, i): NullBlock => ({ a: [60 + (i % 3)], b: [60 + (i % 4)] }));
  expect(aaRate(blocks, { runs: 5, level: 0.05 })).toMatchObject({ gates: 4, alarms: 0, rate: { value: 0, low: 0 } });
  expect(aaRate(blocks.slice(0, 4), { runs: 5, level: 0.05 })).toEqual({
    ...{ gates: 0, alarms: 0, rate: null, excessP: null, sd: null, smallestChange: null },
  });
  const moved = { a: [60, 61, 62, 63, 64], b: [80, 81, 82, 83, 84] };
  const stayed = { a: moved.a, b: moved.a };
  const gates = Array.from({ length: 20 }, (_, i) => (i < 3 ? moved : stayed));
  // R: pbinom(2, 20, 0.05, lower.tail = FALSE)
  const suspicious = { gates: 20, alarms: 3, excessP: expect.closeTo(0.0754837, 6) };
  expect(aaRate(gates, { runs: 5, level: 0.05 })).toMatchObject(suspicious);
  const equal = aaRate([{ a: [60, 60, 60, 60], b: [60, 60, 60, 60] }], { runs: 4, level: 0.05 });
  expect([equal.sd, equal.smallestChange, equal.excessP]).toEqual([0, threshold, 1]);
});
