// Which of several agents is best, and which can't be told from it.
import { holm } from "../stats/hypothesis-tests.ts";
import { threshold } from "../stats/power.ts";
import type { Standing } from "./schema.ts";

const alpha = 0.05;

/** Two agents, by position. `delta`: how much higher the second agent scores. `p`: the p value of a test that both are equal. */
export type TestedPair = { agents: [first: number, second: number]; delta: number; p: number };

/**
 * The standing of each of `count` agents; null: the agent is in no pair. The leader is the agent that is ahead in most pairs. It is best if it is
 * ahead of every other agent significantly and by at least 5 points, with p values adjusted for all pairs. Otherwise, the agents that can't be told
 * from it are tied with it.
 */
export function standingsOf(count: number, pairs: TestedPair[]): (Standing | null)[] {
  const adjusted = holm(pairs.map(({ p }) => p));
  const wins = Array.from({ length: count }, () => 0);
  for (const { agents, delta } of pairs) {
    const [first, second] = agents;
    if (delta !== 0) wins[delta > 0 ? second : first]! += 1;
  }
  const testedAgents = new Set(pairs.flatMap(({ agents }) => agents));
  const [leader] = [...testedAgents].sort((a, b) => wins[b]! - wins[a]! || a - b);
  const standings: (Standing | null)[] = Array.from({ length: count }, () => null);
  if (leader === undefined) return standings;
  for (const [i, { agents, delta }] of pairs.entries()) {
    if (!agents.includes(leader)) continue;
    const [first, second] = agents;
    const [other, lead] = first === leader ? [second, -delta] : [first, delta];
    standings[other] = lead >= threshold && adjusted[i]! < alpha ? "behind" : "tied";
  }
  standings[leader] = standings.includes("tied") ? "tied" : "best";
  // These agents were compared with others, but not with the leader.
  for (const agent of testedAgents) standings[agent] ??= "not_comparable";
  return standings;
}
