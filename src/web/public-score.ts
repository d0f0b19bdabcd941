import type { LatestResults } from "../comparisons/latest.ts";
import type { Scope } from "../grading/grade.ts";
import { gradeLetter } from "../grading/methodology.ts";

/** After this many days, a result says little about the current docs. */
export const staleDays = 30;
const staleMs = staleDays * 24 * 3600_000;

/** The score of a prompt as the public sees it: the mean of its newest evaluation. */
export type PublicScore = {
  /** null: there is no score, and `outcome` says why. */
  score: number | null;
  /** Only set if the goal was tested. */
  grade: string | null;
  scope: Scope;
  outcome: LatestResults["outcome"];
  runs: number;
  /** The day of the report that the score is from: `2026-11-21`. */
  day: string;
  isStale: boolean;
  /** Whether the score is from a single run of an agent whose runs may differ. */
  isSingle: boolean;
};

/** `isDeterministic`: whether all runs of the agent have the same result. `timeZone`: the organization's time zone, for the day. */
type Circumstances = { isDeterministic: boolean; now: number; timeZone: string };

/** Turns the latest results of a prompt into its public score. */
export function toPublicScore(latest: LatestResults, { isDeterministic, now, timeZone }: Circumstances): PublicScore {
  // If the newest report has no score, the last point belongs to an earlier evaluation.
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
