// Which of several agents is best, and which can't be told from it.
import { holm } from "../stats/hypothesis-tests.ts";
import { threshold } from "../stats/power.ts";
import type { Standing } from "./schema.ts";

const alpha = 0.05;

/** Two of the compared, by position. `delta`: how much higher the second scores. `p`: of a test that they are equal. */
export type TestedPair = { agents: [first: number, second: number]; delta: number; p: number };

/**
 * The standing of each of the compared; null: it is in no pair. The leader is ahead in most pairs. It is best if it is ahead of all others by
 * at least 5 points and significantly so, with p values adjusted for all pairs; otherwise those that can't be told from it are tied with it.
 */
export function standingsOf(count: number, pairs: TestedPair[]): (Standing | null)[] {
  const adjusted = holm(pairs.map(({ p }) => p));
  const wins = Array.from({ length: count }, () => 0);
  for (const { agents, delta } of pairs) wins[agents[delta > 0 ? 1 : 0]]! += delta === 0 ? 0 : 1;
  const paired = new Set(pairs.flatMap(({ agents }) => agents));
  const leader = [...paired].sort((a, b) => wins[b]! - wins[a]! || a - b)[0];
  const standings: (Standing | null)[] = Array.from({ length: count }, () => null);
  if (leader === undefined) return standings;
  for (const [i, { agents, delta }] of pairs.entries()) {
    if (!agents.includes(leader)) continue;
    const other = agents[0] === leader ? agents[1] : agents[0];
    const lead = agents[0] === leader ? -delta : delta;
    standings[other] = lead >= threshold && adjusted[i]! < alpha ? "behind" : "tied";
  }
  standings[leader] = standings.includes("tied") ? "tied" : "best";
  // Compared with others, but not with the leader.
  for (const i of paired) standings[i] ??= "not_comparable";
  return standings;
}
