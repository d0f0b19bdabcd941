import { createHash } from "node:crypto";
import type { CustomWeights, DimensionName } from "../config/weights.ts";
import { badRequest } from "../errors.ts";
import type { Friction, Grade } from "./grade.ts";

/** All numbers that determine a score. Changing one requires a new ID, because reports before and after aren't comparable. */
export const standardMethodology = {
  id: "3",
  weights: {
    "Goal achievement": 30,
    "Docs discoverability": 20,
    "Docs quality": 15,
    "Error recovery": 15,
    Efficiency: 10,
    Autonomy: 10,
  },
  notMetCap: 55,
  // The minimum score of a model agent's session that proved its goal: no session that missed it scores higher.
  metFloor: 60,
  discoverability: {
    // An answer that is more than `frictionAbove` clicks from the start page is a friction point.
    path: { weight: 0.6, bestClicks: 3, worstClicks: 8, floor: 40, frictionAbove: 4 },
    // A share of page requests; for agents with a model: of all their calls.
    missed: { weight: 0.2, guessFactor: 2, zeroAtShare: 1 },
    checks: { weight: 0.2 },
  },
  quality: {
    // Pages that the answer depends on count several times.
    pages: { weight: 0.4, neededFactor: 3 },
    links: { weight: 0.2 },
    samplesParse: { weight: 0.2 },
    // Each missing label lowers the score, but a page that labels more than this share of its samples is no friction.
    samplesLabelled: { weight: 0.1, frictionUpTo: 0.9 },
    contract: { weight: 0.1 },
  },
  // `later`: it failed again before it worked.
  recovery: { fromMessage: 100, afterDocs: 60, later: 10, notAtAll: 0 },
  efficiency: {
    waste: { weight: 0.6, zeroAtShare: 1 },
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

/** The methodology of a session: the numbers above, or the same with an operator's own weights. */
export type Methodology = Omit<typeof standardMethodology, "id" | "weights"> & {
  id: string;
  weights: Readonly<Record<DimensionName, number>>;
};

const sha256 = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex");

/** The available methodologies; new reports use the first. */
export const listMethodologies = (ownWeights: CustomWeights | null): [Methodology, ...Methodology[]] =>
  ownWeights === null ? [standardMethodology] : [{ ...standardMethodology, ...ownWeights }, standardMethodology];

/** Throws bad_request for an unknown ID. */
export function getMethodology(ownWeights: CustomWeights | null, id: string): Methodology {
  const methodologies = listMethodologies(ownWeights);
  const methodology = methodologies.find((each) => each.id === id);
  if (methodology) return methodology;
  const ids = methodologies.map((each) => each.id).join(" or ");
  throw badRequest(`Invalid methodology: ${JSON.stringify(id)} is unknown. Use ${ids}, or set EVALD_METHODOLOGY.`);
}

/** The methodology of a report: the numbers and, if it was judged, the rubric and the model. */
export function gradingMethodologyOf(
  methodology: Methodology,
  judge: { model: string; rubric: string } | null,
): Grade["methodology"] {
  const { id } = methodology;
  if (judge === null) return { id, hash: sha256(methodology), judge: null };
  return { id, hash: sha256([methodology, judge.rubric, judge.model]), judge: judge.model };
}

/** 0 is the worst. */
export const severityRank: Record<Friction["severity"], number> = { critical: 0, high: 1, medium: 2, low: 3 };

export const maxFrictions = 50;

/** The letter for a score from 0 to 100. */
export function gradeLetter(score: number): string {
  return standardMethodology.grades.find(([, least]) => score >= least)?.[0] ?? "F";
}

/** One decimal; adding a millionth keeps ties independent of the last bit of a logarithm. */
export function round1(value: number): number {
  return Math.round(value * 10 + 1e-6) / 10;
}

/** The value, or the bound that it is beyond. */
export function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
