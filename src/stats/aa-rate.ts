// What A/A tests show about a gate. Such a test compares something with itself. Pure functions, each with its source.
import { lnChoose, solve } from "./distributions.ts";
import { type Estimate, mean, pooledVariance, welch, wilson } from "./estimates.ts";
import { permutationTest } from "./hypothesis-tests.ts";
import { isClearChange, minRuns, powerOfErrors, threshold } from "./power.ts";

/** The scores of both sides in one block, although nothing differed between them: same prompt, same agent, same docs. */
export type NullBlock = { a: number[]; b: number[] };

/** The gate to check: `runs` per side, 4 or more, and the `level` below which p is significant. */
export type GateDesign = { runs: number; level: number };

/** How often a gate finds a change where there is none. */
export type AaRate = {
  gates: number;
  /** Gates that found a clear change of the scores, better or worse. A gate fails only for a change that is worse. */
  alarms: number;
  /** The share of alarms with Wilson's 95 % interval; null: there are no gates. */
  rate: Estimate | null;
  /** The probability of at least this many alarms if the rate were the level. Below 0.05, this gate can't be relied on. */
  excessP: number | null;
  /** The standard deviation of the runs of one side, in points; null: unknown. */
  sd: number | null;
  /** The smallest change in points that the next gate shows in 4 of 5 cases; null: unknown. */
  smallestChange: number | null;
};

/**
 * The rate of false alarms of a gate, from blocks in which something was compared with itself. Blocks are combined in their order until both sides
 * have the runs of one gate. Each gate is decided once, in the way in which gates decide on scores: by `permutationTest`, `welch` and
 * `isClearChange`.
 *
 * Splitting the same runs again at random would add nothing. Runs that are exchanged at random differ only by chance, so the rate would always be the
 * level, whatever makes the sides differ. That is why the interval counts gates. With 10 to 60 gates, Wilson's interval contains the true rate in
 * 95 % of cases on average, and the exact interval of Clopper and Pearson in 98 %: L. D. Brown, T. T. Cai and A. DasGupta, Statistical Science 16 (2001)
 * 101–133.
 */
export function aaRate(blocks: NullBlock[], { runs: runsOfGate, level }: GateDesign): AaRate {
  const runs = Math.max(minRuns, runsOfGate);
  const gates = toGates(blocks, runs);
  const alarms = gates.filter(({ a, b }) => isClearChange(welch(a, b, level), permutationTest(a, b).p, level)).length;
  // A block with one run per side has no spread of its own, but a gate of several such blocks has one.
  const within =
    pooledVariance(blocks.flatMap(({ a, b }) => [a, b])) ?? pooledVariance(gates.flatMap(({ a, b }) => [a, b]));
  return {
    gates: gates.length,
    alarms,
    rate: gates.length === 0 ? null : wilson(alarms, gates.length),
    excessP: gates.length === 0 ? null : upperTail(alarms, gates.length, level),
    sd: within === null ? null : Math.sqrt(within),
    smallestChange: within === null ? null : changeToShow(gates, within, { runs, level }),
  };
}

/** The gates that can be made of blocks, in the order of the blocks. Remaining runs are not used. */
function toGates(blocks: NullBlock[], runs: number): NullBlock[] {
  const gates: NullBlock[] = [];
  let gate: NullBlock = { a: [], b: [] };
  for (const { a, b } of blocks) {
    gate = { a: [...gate.a, ...a], b: [...gate.b, ...b] };
    if (Math.min(gate.a.length, gate.b.length) < runs) continue;
    gates.push({ a: gate.a.slice(0, runs), b: gate.b.slice(0, runs) });
    gate = { a: [], b: [] };
  }
  return gates;
}

/** The probability of at least k of n events with probability p: binomial. */
function upperTail(k: number, n: number, p: number): number {
  let sum = 0;
  for (let i = k; i <= n; i++) sum += Math.exp(lnChoose(n, i) + i * Math.log(p) + (n - i) * Math.log1p(-p));
  return Math.min(1, sum);
}

/**
 * The change that the next gate shows in 4 of 5 cases. It is computed with the noncentral t, and is at least so large that 4 of 5 observed changes
 * reach the threshold. `within`: the variance of runs of one side. The sides may differ by more than their runs explain. This spread is added to the
 * change.
 */
function changeToShow(gates: NullBlock[], within: number, { runs, level }: GateDesign): number {
  // The 80 % quantile of the normal distribution.
  const z = 0.8416212335729143;
  const changeInErrors = solve((size) => powerOfErrors(size, 2 * runs - 2, level) - 0.8, 40);
  const error = Math.sqrt((2 * within) / runs);
  const squares = gates.map(({ a, b }) => (mean(b) - mean(a)) ** 2);
  const observedError = squares.length === 0 ? 0 : Math.sqrt(mean(squares));
  const totalError = Math.max(error, observedError);
  return Math.max(changeInErrors * error + z * (totalError - error), threshold + z * totalError);
}
