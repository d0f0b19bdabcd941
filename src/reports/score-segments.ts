import type { Report } from "./schema.ts";

/** A part of the 100 points of a score: points that were reached, points that a fix would recover, or points lost to another cause. */
export type ScoreSegment =
  | { kind: "score" | "other_fixes" | "dismissed" | "agent" | "network" | "unmeasured"; points: number }
  | { kind: "fix"; points: number; priority: number };

const round = (points: number) => Math.round(points * 10) / 10;

/** All 100 points as segments, in the order of a bar. Segments without points are left out. Empty if there is no score. */
export function scoreSegmentsOf({ score, lost, recommendations }: Report): ScoreSegment[] {
  if (score === null || lost === null) return [];
  const sumLostPoints = (fixes: typeof recommendations) =>
    fixes.reduce((sum, { lostPoints }) => sum + (lostPoints ?? 0), 0);
  const dismissed = recommendations.filter((each) => each.dismissed !== null);
  const segments: ScoreSegment[] = [
    { kind: "score", points: score },
    ...recommendations
      .filter((each) => each.dismissed === null)
      .map(({ priority, lostPoints }) => ({ kind: "fix" as const, points: lostPoints ?? 0, priority })),
    { kind: "other_fixes", points: round(lost.fixes - sumLostPoints(recommendations)) },
    { kind: "dismissed", points: round(sumLostPoints(dismissed)) },
    { kind: "agent", points: lost.agent },
    { kind: "network", points: lost.network },
    { kind: "unmeasured", points: lost.unmeasured },
  ];
  return segments.filter((each) => each.points > 0);
}

/** Labels of the segments other than fixes. */
export const segmentLabels: Record<Exclude<ScoreSegment["kind"], "fix">, string> = {
  score: "Score",
  other_fixes: "Other friction",
  dismissed: "Not a problem",
  agent: "Agent",
  network: "Network",
  unmeasured: "Unexplained",
};
