import type { Report } from "./schema.ts";

/** Who owns a part of 100 points: the score itself, a fix, or a cause that no fix removes. */
export type Owner =
  | { kind: "score" | "other_fixes" | "dismissed" | "agent" | "network" | "unmeasured"; points: number }
  | { kind: "fix"; points: number; priority: number };

const round = (points: number) => Math.round(points * 10) / 10;

/** The owners of all 100 points, in the order of a bar, without those that own none. Empty without a score. */
export function ownersOf({ score, lost, recommendations }: Report): Owner[] {
  if (score === null || lost === null) return [];
  const sumLostPoints = (fixes: typeof recommendations) =>
    fixes.reduce((sum, { lostPoints }) => sum + (lostPoints ?? 0), 0);
  const dismissed = recommendations.filter((each) => each.dismissed !== null);
  const owners: Owner[] = [
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
  return owners.filter((each) => each.points > 0);
}

/** Labels of the owners other than fixes. */
export const ownerLabels: Record<Exclude<Owner["kind"], "fix">, string> = {
  score: "Score",
  other_fixes: "Other friction",
  dismissed: "Not a problem",
  agent: "Agent",
  network: "Network",
  unmeasured: "Unexplained",
};
