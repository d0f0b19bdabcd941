import { createHash } from "node:crypto";
import type { DimensionName, OwnWeights } from "../config/weights.ts";
import { badRequest } from "../errors.ts";
import type { Friction, Grade } from "./grade.ts";

/**
 * Every number that a score is made of. Changing one makes another methodology: give it a new id, so that
 * reports before and after are not taken for one series.
 */
export const table = {
  id: "2",
  weights: {
    "Goal achievement": 30,
    "Docs discoverability": 20,
    "Docs quality": 15,
    "Error recovery": 15,
    Efficiency: 10,
    Autonomy: 10,
  },
  notMetCap: 55,
  // A goal that is proven to be met by an agent with a model is worth this at least: no session that missed it ranks above.
  metFloor: 60,
  discoverability: {
    // An answer that is more clicks than `frictionAbove` from the start page is a friction. `fitShare`: what hangs on how well its section fits.
    way: { weight: 0.5, bestClicks: 2, worstClicks: 8, floor: 40, fitShare: 0.3, frictionAbove: 4 },
    // Of an agent with a model: the share of all its calls.
    missed: { weight: 0.2, guessFactor: 2, zeroAtShare: 0.5, zeroAtShareOfCalls: 1 },
    checks: { weight: 0.3 },
  },
  quality: {
    pages: { weight: 0.4 },
    links: { weight: 0.2 },
    samplesParse: { weight: 0.2 },
    // Every label counts in the number; a page that names the language of more than this share is no friction.
    samplesLabelled: { weight: 0.1, frictionUpTo: 0.9 },
    contract: { weight: 0.1 },
  },
  // `later`: it was tried again in vain before it worked.
  recovery: { fromMessage: 100, afterDocs: 60, later: 10, notAtAll: 0 },
  efficiency: {
    waste: { weight: 0.6, zeroAtShare: 0.8 },
    seconds: { weight: 0.3, best: 0.5, worst: 16 },
    money: { weight: 0.1, bestUsd: 0.1, worstUsd: 6.4 },
  },
  autonomy: { zeroAtInterruptions: 4 },
  grades: [
    ["A+", 97],
    ["A", 93],
    ["A-", 90],
    ["B+", 87],
    ["B", 83],
    ["B-", 80],
    ["C+", 77],
    ["C", 73],
    ["C-", 70],
    ["D+", 67],
    ["D", 63],
    ["D-", 60],
  ],
} as const;

/** What sessions are graded by: the numbers above, or the same with an operator's own weights. */
export type Methodology = Omit<typeof table, "id" | "weights"> & {
  id: string;
  weights: Readonly<Record<DimensionName, number>>;
};

const sha256 = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex");

/** The methodologies that can be graded by; the first is the one of new reports. */
export const listMethodologies = (own: OwnWeights | null): [Methodology, ...Methodology[]] =>
  own === null ? [table] : [{ ...table, ...own }, table];

/** Throws bad_request for an id that is none. */
export function getMethodology(own: OwnWeights | null, id: string): Methodology {
  const known = listMethodologies(own);
  const found = known.find((each) => each.id === id);
  if (found) return found;
  const ids = known.map((each) => each.id).join(" or ");
  throw badRequest(`Invalid methodology: ${JSON.stringify(id)} is unknown. Use ${ids}, or set EVALD_METHODOLOGY.`);
}

/** What a report was made by: its numbers and, where a model judged, what it was asked and which one it was. */
export function stampOf(
  methodology: Methodology,
  judge: { model: string; rubric: string } | null,
): Grade["methodology"] {
  const { id } = methodology;
  if (judge === null) return { id, hash: sha256(methodology), judge: null };
  return { id, hash: sha256([methodology, judge.rubric, judge.model]), judge: judge.model };
}

/** 0 is the worst. */
export const severityRank: Record<Friction["severity"], number> = { critical: 0, high: 1, medium: 2, low: 3 };

/** A page that takes longer is a friction of its own. */
export const slowPageMs = 3000;
export const maxFrictions = 50;

export function letterOf(score: number): string {
  return table.grades.find(([, least]) => score >= least)?.[0] ?? "F";
}

/** One decimal; the millionth keeps a tie from hanging on the last bit of a logarithm. */
export function round1(value: number): number {
  return Math.round(value * 10 + 1e-6) / 10;
}

export function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
