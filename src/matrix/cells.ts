// The runs of each agent on each prompt, and their results.
import type { FailedRun, ScoreDay } from "../reports/score-days.ts";
import { mean, medianInterval, pairedInterval, welch } from "../stats/estimates.ts";
import { holm, pairedTest, welchTest } from "../stats/hypothesis-tests.ts";
import { minRuns } from "../stats/power.ts";
import { rounded, roundP } from "../stats/repeats.ts";
import { pointsOf } from "../trends/points.ts";
import type { Cell, MatrixAgent, MatrixPair } from "./schema.ts";
import { standingsOf, type TestedPair } from "./standings.ts";

/** An agent with its model; empty: it has none. */
type AgentModel = { agent: string; model: string };

/**
 * The runs of an agent on a prompt with its newest version, context, methodology and scope. `day`: all runs with a report, merged into one day; null:
 * there are none.
 */
type CellRuns = { day: ScoreDay | null; failed: FailedRun[] };

const variantOf = ({ version, contextDigest, methodology, scope }: ScoreDay) =>
  [version, contextDigest, methodology.hash, scope].join(" ");

/** What a score measures. Scores of different measures are neither compared nor combined. null: there is no score. */
const measureOf = ({ day }: CellRuns): string | null =>
  day && day.scores.length > 0 ? `${day.scope} ${day.methodology.hash}` : null;

const scoresOf = (cell: CellRuns | null | undefined): number[] => cell?.day?.scores ?? [];

/** Agents in alphabetical order. A failed run names the model that was requested, so for an agent with reports it adds no model. */
export function agentsOf(days: ScoreDay[], failed: FailedRun[]): AgentModel[] {
  const scoredAgents = new Set(days.map(({ agent }) => agent));
  const runs = [...days, ...failed.filter(({ agent }) => !scoredAgents.has(agent))];
  const agentsByName = new Map(runs.map(({ agent, model }) => [`${agent} ${model}`, { agent, model }]));
  return [...agentsByName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, agent]) => agent);
}

/** The runs of each agent on one prompt; null: none. */
export function cellRunsOf(agents: AgentModel[], days: ScoreDay[], failed: FailedRun[]): (CellRuns | null)[] {
  const cells = agents.map(({ agent, model }): CellRuns => {
    const daysOfAgent = days.filter((day) => day.agent === agent && day.model === model);
    const [newest] = daysOfAgent.toSorted((a, b) => b.lastAt - a.lastAt);
    const sameVariant = newest ? daysOfAgent.filter((day) => variantOf(day) === variantOf(newest)) : [];
    return { day: mergeDays(sameVariant), failed: [] };
  });
  for (const run of failed) {
    const sameModel = agents.findIndex(({ agent, model }) => run.agent === agent && run.model === model);
    const sameAgent = agents.findIndex(({ agent }) => run.agent === agent);
    // The model that was requested may have no reports.
    const cell = cells[sameModel < 0 ? sameAgent : sameModel];
    // Failures before the first day of this version say nothing about it.
    if (cell && run.at >= (cell.day?.day ?? 0)) cell.failed.push(run);
  }
  return cells.map((cell) => (cell.day === null && cell.failed.length === 0 ? null : cell));
}

/** The days of one variant, oldest first, as one; null: there is none. */
function mergeDays(days: ScoreDay[]): ScoreDay | null {
  const [first] = days;
  if (!first) return null;
  const sumOf = (name: "succeeded" | "judged") => days.reduce((sum, day) => sum + day[name], 0);
  return {
    ...first,
    scores: days.flatMap(({ scores }) => scores),
    seconds: days.flatMap(({ seconds }) => seconds),
    costsUsd: days.flatMap(({ costsUsd }) => costsUsd),
    succeeded: sumOf("succeeded"),
    judged: sumOf("judged"),
  };
}

/** The results of one prompt, in the order of the agents. */
export function toCells(runs: (CellRuns | null)[]): (Cell | null)[] {
  const measures = runs.map((cell) => cell && measureOf(cell));
  const pairs = pairsOf([...runs.keys()]).flatMap(([a, b]): TestedPair[] => {
    const [first, second] = [scoresOf(runs[a]), scoresOf(runs[b])];
    if (measures[a] !== measures[b] || Math.min(first.length, second.length) < minRuns) return [];
    return [{ agents: [a, b], delta: mean(second) - mean(first), p: welchTest(first, second) }];
  });
  const standings = standingsOf(runs.length, pairs);
  return runs.map((cell, i) => {
    if (cell === null) return null;
    const { day } = cell;
    return {
      ...toResults([cell]),
      scope: day?.scope ?? null,
      standing: standings[i] ?? untestedStanding(measures, i),
      agentVersion: day?.version || null,
      methodology: day?.methodology.hash ?? null,
    };
  });
}

/** Why the score of the agent at `index` was not tested. null: the agent has no score, or no other agent has one. */
function untestedStanding(measures: (string | null)[], index: number): Cell["standing"] {
  const measure = measures[index] ?? null;
  const others = measures.filter((other, i) => other !== null && i !== index);
  if (measure === null || others.length === 0) return null;
  return others.includes(measure) ? "too_few_runs" : "not_comparable";
}

function toResults(runs: CellRuns[]) {
  const days = runs.flatMap(({ day }) => day ?? []);
  const failed = runs.flatMap((cell) => cell.failed);
  // All runs get the same time, so there is one point.
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

/** The results of each agent over prompts, and the agents compared prompt by prompt. `rows`: the runs of each prompt. `cells`: its results. */
export function summarizeAgents(
  agents: AgentModel[],
  rows: (CellRuns | null)[][],
  cells: (Cell | null)[][],
): { agents: MatrixAgent[]; pairs: MatrixPair[] } {
  const columns = agents.map((_, i) => rows.map((row) => row[i] ?? null));
  const pairs = pairsOf([...agents.keys()]).flatMap(([a, b]) => comparePrompts(a, b, columns[a]!, columns[b]!));
  const standings = standingsOf(agents.length, pairs);
  const adjusted = holm(pairs.map(({ p }) => p));
  const mainMeasures = mainMeasuresOf(columns);
  return {
    agents: agents.map(({ agent, model }, i) => {
      const ofPrompts = columns[i]!.flatMap((runs, row) =>
        runs === null ? [] : [{ runs, cell: cells[row]?.[i] ?? null, measure: measureOf(runs) }],
      );
      // Prompts without any score count too: runs that timed out didn't reach the goal.
      const counted = ofPrompts.filter(({ measure }) => measure === null || measure === mainMeasures[i]);
      const prompts = counted.filter(({ measure }) => measure !== null).length;
      const otherPrompts = ofPrompts.length - counted.length;
      const countedRuns = counted.map(({ runs }) => runs);
      const countedCells = counted.flatMap(({ cell }) => cell ?? []);
      const results = toSummary(countedRuns, countedCells);
      const standing = standings[i] ?? untestedStanding(mainMeasures, i);
      return { agent, model: model || null, prompts, otherPrompts, results: { ...results, standing } };
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

/**
 * What most scores of each agent measure. If there are several such measures, what most scores of all agents measure decides. null: there is no
 * score.
 */
function mainMeasuresOf(columns: (CellRuns | null)[][]): (string | null)[] {
  const measuresOfAgents = columns.map((column) => column.flatMap((cell) => (cell && measureOf(cell)) ?? []));
  const countIn = (measures: string[], measure: string) => measures.filter((each) => each === measure).length;
  const countInAll = (measure: string) => countIn(measuresOfAgents.flat(), measure);
  return measuresOfAgents.map((measures) => {
    const countOf = (measure: string) => countIn(measures, measure);
    const sorted = [...new Set(measures)].sort((a, b) => countOf(b) - countOf(a) || countInAll(b) - countInAll(a));
    return sorted[0] ?? null;
  });
}

/** One agent over prompts: the mean or median of the results of the prompts. Each prompt counts equally. A single median keeps its interval. */
function toSummary(runs: CellRuns[], cells: Cell[]): Omit<Cell, "standing"> {
  const versions = [...new Set(runs.flatMap(({ day }) => day?.version ?? []))];
  const scored = runs.find((cell) => measureOf(cell) !== null)?.day;
  const medianOf = (name: "seconds" | "costUsd", digits: number) => {
    const medians = cells.flatMap((cell) => cell[name] ?? []);
    const [median] = medians;
    if (median && medians.length === 1) return median;
    const values = medians.map(({ value }) => value);
    return toMedian(values, digits);
  };
  return {
    ...toResults(runs),
    seconds: medianOf("seconds", 1),
    costUsd: medianOf("costUsd", 4),
    scope: scored?.scope ?? null,
    methodology: scored?.methodology.hash ?? null,
    agentVersion: versions.length === 1 ? versions[0] || null : null,
  };
}

/** Compares two agents on the prompts on which both have comparable scores. Empty: there is no such prompt, or only one with too few runs. */
function comparePrompts(a: number, b: number, left: (CellRuns | null)[], right: (CellRuns | null)[]) {
  const both = left.flatMap((cell, i) => {
    const other = right[i];
    const measure = cell && measureOf(cell);
    if (!cell || !other || measure === null || measure !== measureOf(other)) return [];
    return [{ before: scoresOf(cell), after: scoresOf(other) }];
  });
  const [first] = both;
  if (!first) return [];
  const isSingle = both.length === 1;
  if (isSingle && Math.min(first.before.length, first.after.length) < minRuns) return [];
  const differences = both.map(({ before, after }) => mean(after) - mean(before));
  const p = isSingle ? welchTest(first.before, first.after) : pairedTest(differences);
  const interval = isSingle ? welch(first.before, first.after) : pairedInterval(differences);
  return [{ agents: [a, b] as [number, number], prompts: both.length, delta: mean(differences), interval, p }];
}
