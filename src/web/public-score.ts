import type { LatestResults } from "../comparisons/latest.ts";
import type { Scope } from "../grading/grade.ts";
import { gradeLetter } from "../grading/methodology.ts";

/** An older result says little about the current docs. */
export const staleDays = 30;
const staleMs = staleDays * 24 * 3600_000;

/** The score of a prompt as strangers see it: the mean of its newest evaluation. */
export type PublicScore = {
  /** null: there is none, and `outcome` says why. */
  score: number | null;
  /** Only if the goal was tested. */
  grade: string | null;
  scope: Scope;
  outcome: LatestResults["outcome"];
  runs: number;
  /** Of the report that it is about: `2026-11-21`. */
  day: string;
  isStale: boolean;
  /** From a single run of an agent whose runs differ. */
  isSingle: boolean;
};

/** `isDeterministic`: runs of its agent don't differ. `timeZone`: the organization's, for the day. */
type Circumstances = { isDeterministic: boolean; now: number; timeZone: string };

/** The latest results of a prompt as its public score. */
export function toPublicScore(latest: LatestResults, { isDeterministic, now, timeZone }: Circumstances): PublicScore {
  // If the newest report has no score, the last point is of an earlier evaluation.
  const point = latest.score === null ? undefined : latest.points.at(-1);
  const reportedAt = point?.at ?? latest.at;
  const { scope, outcome } = latest;
  const common = {
    scope,
    outcome,
    day: Temporal.Instant.from(reportedAt).toZonedDateTimeISO(timeZone).toPlainDate().toString(),
    isStale: now - Date.parse(reportedAt) > staleMs,
  };
  if (!point) return { ...common, score: null, grade: null, runs: 0, isSingle: false };
  const score = Math.round(point.score * 10) / 10;
  const grade = scope === "goal" ? gradeLetter(score) : null;
  return { ...common, score, grade, runs: point.runs, isSingle: point.runs === 1 && !isDeterministic };
}
