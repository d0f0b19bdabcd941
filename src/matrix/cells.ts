// The runs of each agent on each prompt, and their results.
import type { FailedRun, ScoreDay } from "../reports/score-days.ts";
import { mean, medianInterval, pairedInterval, welch } from "../stats/estimates.ts";
import { holm, pairedTest, welchTest } from "../stats/hypothesis-tests.ts";
import { minRuns } from "../stats/power.ts";
import { rounded, roundP } from "../stats/repeats.ts";
import { pointsOf } from "../trends/points.ts";
import type { Cell, MatrixAgent, MatrixPair } from "./schema.ts";
import { standingsOf, type TestedPair } from "./standings.ts";

/** An agent with its model; an empty one means none. */
type AgentModel = { agent: string; model: string };

/** The runs of an agent on a prompt with its newest version, context, methodology and scope, as one day; none, if all failed. */
type CellRuns = { days: ScoreDay[]; failed: FailedRun[] };

const variantOf = ({ version, contextDigest, methodology, scope }: ScoreDay) =>
  [version, contextDigest, methodology.hash, scope].join(" ");

/** What a score measures; scores of different measures are neither compared nor combined. null: there is no score. */
function measureOf({ days }: CellRuns): string | null {
  const [day] = days;
  return day && scoresOf(days).length > 0 ? `${day.scope} ${day.methodology.hash}` : null;
}

const scoresOf = (days: ScoreDay[]) => days.flatMap(({ scores }) => scores);

/** Agents in alphabetical order. A failed run names the model that was requested, so it belongs to its agent if there is only one. */
export function agentsOf(days: ScoreDay[], failed: FailedRun[]): AgentModel[] {
  const scoredAgents = new Set(days.map(({ agent }) => agent));
  const all = [...days, ...failed.filter(({ agent }) => !scoredAgents.has(agent))];
  const byKey = new Map(all.map(({ agent, model }) => [`${agent} ${model}`, { agent, model }]));
  return [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}

/** The runs of each agent on one prompt; null: none. */
export function cellRunsOf(agents: AgentModel[], days: ScoreDay[], failed: FailedRun[]): (CellRuns | null)[] {
  const cells = agents.map(({ agent, model }): CellRuns => {
    const own = days.filter((day) => day.agent === agent && day.model === model);
    const [newest] = own.toSorted((a, b) => b.lastAt - a.lastAt);
    const sameVariant = newest ? own.filter((day) => variantOf(day) === variantOf(newest)) : [];
    return { days: mergeDays(sameVariant), failed: [] };
  });
  for (const run of failed) {
    const exact = agents.findIndex(({ agent, model }) => run.agent === agent && run.model === model);
    const sameAgent = agents.findIndex(({ agent }) => run.agent === agent);
    const cell = cells[exact < 0 ? sameAgent : exact];
    // Failures of an earlier version say nothing about this one.
    if (cell && run.at >= (cell.days[0]?.day ?? 0)) cell.failed.push(run);
  }
  return cells.map((cell) => (cell.days.length + cell.failed.length === 0 ? null : cell));
}

/** The days of one variant, oldest first, as one. */
function mergeDays(days: ScoreDay[]): ScoreDay[] {
  const [first] = days;
  if (!first) return [];
  const sumOf = (name: "succeeded" | "judged") => days.reduce((sum, day) => sum + day[name], 0);
  return [
    {
      ...first,
      scores: scoresOf(days),
      seconds: days.flatMap(({ seconds }) => seconds),
      costsUsd: days.flatMap(({ costsUsd }) => costsUsd),
      succeeded: sumOf("succeeded"),
      judged: sumOf("judged"),
    },
  ];
}

/** The results of one prompt, in the order of the agents. */
export function toCells(runs: (CellRuns | null)[]): (Cell | null)[] {
  const measures = runs.map((cell) => cell && measureOf(cell));
  const scoredCells = runs.map((cell, i) => ({ i, scores: scoresOf(cell?.days ?? []), measure: measures[i] }));
  const pairs = pairsOf(scoredCells).flatMap(([a, b]): TestedPair[] =>
    a.measure === b.measure && Math.min(a.scores.length, b.scores.length) >= minRuns
      ? [{ agents: [a.i, b.i], delta: mean(b.scores) - mean(a.scores), p: welchTest(a.scores, b.scores) }]
      : [],
  );
  const standings = standingsOf(runs.length, pairs);
  return runs.map((cell, i) => {
    if (cell === null) return null;
    const [day] = cell.days;
    return {
      ...toResults(cell),
      scope: day?.scope ?? null,
      standing: standings[i] ?? untestedStanding(measures, i),
      agentVersion: day?.version || null,
      methodology: day?.methodology.hash ?? null,
    };
  });
}

/** Why the score of one of several was not tested; null: there is no score, or no other one. */
function untestedStanding(measures: (string | null)[], own: number): Cell["standing"] {
  const others = measures.filter((measure, i) => measure !== null && i !== own);
  if (measures[own] === null || others.length === 0) return null;
  return others.includes(measures[own]!) ? "too_few_runs" : "not_comparable";
}

function toResults({ days, failed }: CellRuns) {
  const [point] = pointsOf(() => 0, days, failed);
  const { n = 0, infraFailures = 0, score = null, successRate = null } = point ?? {};
  const values = (name: "seconds" | "costsUsd") => days.flatMap((day) => day[name]);
  return {
    n,
    infraFailures,
    score,
    successRate,
    seconds: toMedian(values("seconds"), 1),
    costUsd: toMedian(values("costsUsd"), 4),
  };
}

function toMedian(values: number[], digits: number): Cell["seconds"] {
  const estimate = medianInterval(values);
  return estimate && rounded(estimate, digits);
}

function pairsOf<T>(items: T[]): [T, T][] {
  return items.flatMap((a, i) => items.slice(i + 1).map((b): [T, T] => [a, b]));
}

/** The results of each agent over prompts, of which `rows` has the runs and `cells` the results, and the agents compared prompt by prompt. */
export function summarizeAgents(
  agents: AgentModel[],
  rows: (CellRuns | null)[][],
  cells: (Cell | null)[][],
): { agents: MatrixAgent[]; pairs: MatrixPair[] } {
  const columns = agents.map((_, i) => rows.map((row) => row[i] ?? null));
  const pairs = pairsOf([...agents.keys()]).flatMap(([a, b]) => comparePrompts(a, b, columns[a]!, columns[b]!));
  const standings = standingsOf(agents.length, pairs);
  const adjusted = holm(pairs.map(({ p }) => p));
  const mains = mainMeasures(columns);
  return {
    agents: agents.map(({ agent, model }, i) => {
      const measures = columns[i]!.map((cell) => cell && measureOf(cell));
      const scored = measures.filter((measure) => measure !== null);
      const prompts = scored.filter((measure) => measure === mains[i]).length;
      // Prompts without any score count too: runs that timed out didn't reach the goal.
      const isCounted = (at: number) => measures[at] === null || measures[at] === mains[i];
      const counted = columns[i]!.filter((cell, at) => cell !== null && isCounted(at));
      const results = toSummary(
        counted.filter((cell) => cell !== null),
        cells.flatMap((row, at) => (isCounted(at) ? (row[i] ?? []) : [])),
      );
      const standing = standings[i] ?? untestedStanding(mains, i);
      return {
        agent,
        model: model || null,
        prompts,
        otherPrompts: scored.length - prompts,
        results: { ...results, standing },
      };
    }),
    pairs: pairs.map(({ agents, prompts, interval, p }, i) => ({
      agents,
      prompts,
      delta: rounded(interval, 1),
      p: roundP(p),
      pHolm: roundP(adjusted[i] as number),
    })),
  };
}

/** What most scores of each agent measure; of several, what most scores of all agents measure. null: there is no score. */
function mainMeasures(columns: (CellRuns | null)[][]): (string | null)[] {
  const counts = columns.map((column) => {
    const measures = column.flatMap((cell) => (cell && measureOf(cell)) ?? []);
    return new Map([...Map.groupBy(measures, String)].map(([measure, all]) => [measure, all.length]));
  });
  const countOfAll = (measure: string) => counts.reduce((n, own) => n + (own.get(measure) ?? 0), 0);
  return counts.map((own) => {
    const sorted = [...own].sort(([a, m], [b, n]) => n - m || countOfAll(b) - countOfAll(a));
    return sorted[0]?.[0] ?? null;
  });
}

/** One agent over prompts: the mean or median of the results of each, in which each prompt counts equally. */
function toSummary(runs: CellRuns[], cells: Cell[]): Omit<Cell, "standing"> {
  const days = runs.flatMap((cell) => cell.days);
  const versions = [...new Set(days.map(({ version }) => version))];
  const scored = runs.find((cell) => measureOf(cell) !== null)?.days[0];
  const medianOf = (name: "seconds" | "costUsd", digits: number) => {
    const values = cells.flatMap((cell) => cell[name] ?? []);
    const medians = values.map(({ value }) => value);
    return values.length === 1 ? (values[0] ?? null) : toMedian(medians, digits);
  };
  return {
    ...toResults({ days, failed: runs.flatMap((cell) => cell.failed) }),
    seconds: medianOf("seconds", 1),
    costUsd: medianOf("costUsd", 4),
    scope: scored?.scope ?? null,
    methodology: scored?.methodology.hash ?? null,
    agentVersion: versions.length === 1 ? versions[0] || null : null,
  };
}

/** Two agents compared on the prompts that both have comparable scores of. None: there is no such prompt, or a single one with too few runs. */
function comparePrompts(a: number, b: number, left: (CellRuns | null)[], right: (CellRuns | null)[]) {
  const both = left.flatMap((cell, i) => {
    const other = right[i];
    const measure = cell && measureOf(cell);
    if (!cell || !other || measure === null || measure !== measureOf(other)) return [];
    return [{ before: scoresOf(cell.days), after: scoresOf(other.days) }];
  });
  const [only] = both;
  if (!only || (both.length === 1 && Math.min(only.before.length, only.after.length) < minRuns)) return [];
  const differences = both.map(({ before, after }) => mean(after) - mean(before));
  const p = both.length === 1 ? welchTest(only.before, only.after) : pairedTest(differences);
  const interval = both.length === 1 ? welch(only.before, only.after) : pairedInterval(differences);
  return [{ agents: [a, b] as [number, number], prompts: both.length, delta: mean(differences), interval, p }];
}
