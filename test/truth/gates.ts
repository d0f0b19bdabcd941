import { decideVerdict, type Side } from "../../src/comparisons/verdict.ts";
import { decide } from "../../src/gates/decision.ts";
import type { Gate } from "../../src/gates/schema.ts";
import { firstStep, levelAt, nextStep } from "../../src/gates/steps.ts";
import { gateSteps, powerOf } from "../../src/stats/power.ts";
import { resultOf, type SideRun } from "../../src/stats/repeats.ts";
import { normal, randomOf } from "../support/random.ts";

/** How a gate is made: `runs` per side, prompt and set of template arguments. */
type Design = { name: string; prompts: number; args: number; runs: number; adaptive?: true };
/** Runs of one side. `points`: the mean score of runs that reach the goal. `success`, `timeouts`: probabilities. */
type World = { points: number; success: number; timeouts: number };
type Ends = Record<Exclude<Gate["status"], "running">, number>;

/** Standard deviation of the scores of runs that reach the goal. */
const sd = 6;
const missedPoints = 48;
const missedCap = 55;

export const designs: Design[] = [
  { name: "one prompt, 5 runs", prompts: 1, args: 1, runs: 5 },
  { name: "one prompt, 12 runs", prompts: 1, args: 1, runs: 12 },
  { name: "one prompt, adaptive", prompts: 1, args: 1, runs: 12, adaptive: true },
  { name: "two prompts", prompts: 2, args: 1, runs: 5 },
  { name: "five prompts", prompts: 5, args: 1, runs: 3 },
  { name: "eight prompts", prompts: 8, args: 1, runs: 3 },
  { name: "two prompts, adaptive", prompts: 2, args: 1, runs: 12, adaptive: true },
  { name: "one prompt, four template arguments", prompts: 1, args: 4, runs: 3 },
  { name: "two prompts, four template arguments", prompts: 2, args: 4, runs: 3 },
];

/** A run whose score depends on whether it reaches the goal, as in real reports. */
function runOf(random: () => number, { points, success, timeouts }: World, prompt: string, pairKey: string): SideRun {
  const isLost = random() < timeouts;
  const isMet = random() < success;
  const drawn = isMet
    ? Math.min(100, normal(random, points, sd))
    : Math.min(missedCap, normal(random, missedPoints, sd));
  const outcome = isMet ? "succeeded" : "goal_not_met";
  return {
    failureCause: isLost ? "timeout" : null,
    report: isLost ? null : { outcome, score: drawn, seconds: null, costUsd: null },
    ...{ prompt, pairKey, isDeterministic: false, provenShare: null, dimensions: [], metrics: null },
  };
}

/** Runs a gate to its end, with the steps and the decision of real gates. `change`: added to the head's points, by prompt. */
function endGate(
  random: () => number,
  { prompts, args, runs, adaptive = undefined }: Design,
  base: World,
  head: World,
  change: number[] = [],
): keyof Ends {
  const steps = { runs, adaptive: adaptive ?? false, budgetUsd: null };
  const [before, after]: [Side, Side] = [
    { name: "base", unfinished: 0, runs: [] },
    { name: "head", unfinished: 0, runs: [] },
  ];
  let made = 0;
  for (let done = firstStep(steps); ; ) {
    for (; made < done; made++)
      for (let p = 0; p < prompts; p++)
        for (let a = 0; a < args; a++) {
          // Prompts differ in how hard they are.
          const level = { points: -3 * p };
          const worldOf = (world: World, more = 0) => ({ ...world, points: world.points + level.points + more });
          before.runs.push(runOf(random, worldOf(base), `p${p}`, `p${p} ${a}`));
          after.runs.push(runOf(random, worldOf(head, change[p]), `p${p}`, `p${p} ${a}`));
        }
    const { verdict, evidence } = decideVerdict(before, after, [], levelAt(done, steps.adaptive));
    const sideOf = ({ runs }: Side) => ({ evalRequestIds: [], promptIds: [], runs: runs.length });
    const lostOf = ({ runs }: Side) => ({ n: runs.filter(({ failureCause }) => failureCause).length, reason: null });
    const decision = decide({
      ...{ agent: "llm", scopes: ["goal"], scope: "goal", minScore: null, done: after.runs.length },
      head: resultOf(after.runs, 0),
      lost: { head: lostOf(after), base: lostOf(before) },
      comparison: {
        ...{ base: sideOf(before), head: sideOf(after), verdict, evidence },
        comparability: { same: true, differences: [] },
        friction: { shared: [], gone: [], new: [] },
      },
    });
    const next = nextStep({ ...steps, done, spentUsd: null, verdict });
    const isHopeless = decision.hasTooFewUsableRuns && done >= Math.min(gateSteps[0].runs, runs);
    if (typeof next !== "number" || isHopeless) return decision.status;
    done = next;
  }
}

const usual: World = { points: 84, success: 0.7, timeouts: 0.1 };

/** The results of gates without a change of the head. `ownSd` is the standard deviation of each prompt's chance change. */
export function measureFalseFails(design: Design, count: number, ownSd = 0): Ends {
  const random = randomOf(1 + designs.indexOf(design));
  const ends: Ends = { passed: 0, failed: 0, error: 0 };
  for (let i = 0; i < count; i++) {
    const change = Array.from({ length: design.prompts }, () => normal(random, 0, ownSd));
    ends[endGate(random, design, usual, usual, change)]++;
  }
  return ends;
}

const sure: World = { points: 84, success: 1, timeouts: 0 };
/** Changes for the worse that a gate should detect. */
export const changes: { name: string; points?: number; base: World; head: World }[] = [
  ...[5, 10, 15, 20].map((points) => ({
    name: `${points} points fewer`,
    points,
    base: { ...sure, points: 75 },
    head: { ...sure, points: 75 - points },
  })),
  { name: "success 100% → 20%", base: sure, head: { ...sure, success: 0.2 } },
  { name: "success 90% → 40%", base: { ...sure, success: 0.9 }, head: { ...sure, success: 0.4 } },
  { name: "timeouts 0% → 60%", base: sure, head: { ...sure, timeouts: 0.6 } },
];

/** The results of gates with a worse head. */
export function measurePower(design: Design, { base, head }: (typeof changes)[number], count: number): Ends {
  const random = randomOf(7);
  const ends: Ends = { passed: 0, failed: 0, error: 0 };
  for (let i = 0; i < count; i++) ends[endGate(random, design, base, head)]++;
  return ends;
}

const percent = (share: number) => `${(100 * share).toFixed(1)}%`;

/** Prints the false failures of `count` gates over all designs, and the power of each. */
export function printGates(count: number): void {
  const each = Math.ceil(count / designs.length);
  console.log(`Gates without a change, ${each} of each:`);
  for (const design of designs) {
    const { failed, error } = measureFalseFails(design, each, design.args > 1 && design.prompts > 1 ? sd : 0);
    console.log(`  ${design.name}: ${percent(failed / each)} failed, ${percent(error / each)} inconclusive`);
  }
  const tried = Math.ceil(each / 10);
  console.log(`Gates whose head is worse, ${tried} of each (in parentheses: power of the two-sided t test):`);
  for (const change of changes) {
    console.log(`  ${change.name}`);
    for (const design of designs) {
      const { points } = change;
      const isPlain = points !== undefined && design.prompts * design.args === 1 && !design.adaptive;
      const exact = isPlain ? ` (${percent(powerOf(design.runs, points, sd))})` : "";
      const { failed, error } = measurePower(design, change, tried);
      console.log(
        `    ${design.name}: ${percent(failed / tried)} failed${exact}, ${percent(error / tried)} inconclusive`,
      );
    }
  }
}
