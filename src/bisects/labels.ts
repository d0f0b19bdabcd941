import { capitalize, count } from "../grading/text.ts";
import type { Bisect } from "./schema.ts";

export const statusLabels: Record<Bisect["status"], string> = {
  running: "Running",
  found: "Found",
  stopped: "Stopped",
};

/** Why a build was skipped. */
export const skipLabels: Record<NonNullable<Bisect["builds"][number]["skipped"]>, string> = {
  no_answer: "no answer",
  http_error: "HTTP error",
  runs_failed: "its runs failed",
};

const stopTexts: Record<NonNullable<Bisect["stopReason"]>, string> = {
  no_difference: "The good and the bad build don’t differ clearly, so there is no change to find.",
  undecided: "More runs would not make it certain.",
  not_measured: "The good or the bad build could not be measured.",
  budget: "The next runs would exceed the budget.",
  cancelled: "It was cancelled.",
  refused: "The next runs were refused: the prompt may be archived, or the monthly budget spent.",
};

const percent = (probability: number): string => `${Math.min(99, Math.floor(100 * probability))}%`;

/** A tried build in one line. */
export function labelOfBuild({ commit, scores, skipped }: Bisect["builds"][number]): string {
  if (skipped !== null) return `${commit}: skipped, ${skipLabels[skipped]}`;
  return `${commit}: ${scores.map((score) => score.toFixed(1)).join(", ") || "no score"}`;
}

/** What a bisect found, in a sentence or two. */
export function resultText({ status, stopReason, result, builds, commits }: Bisect): string {
  const runs = builds.reduce((sum, { scores }) => sum + scores.length, 0);
  const tried = builds.filter(({ skipped }) => skipped === null).length;
  const effort = `${count(runs, "run")} of ${count(tried, "build")} among ${count(commits.length, "commit")}.`;
  const suspects = result && suspectsText(result);
  if (status === "found" && suspects) return `${capitalize(suspects)}. ${effort}`;
  if (status === "running") return `Running. ${effort}`;
  const reason = stopReason === null ? "" : stopTexts[stopReason];
  return `${reason}${suspects ? ` Most probably, ${suspects}.` : ""} ${effort}`;
}

function suspectsText({ commits, probability }: NonNullable<Bisect["result"]>): string {
  const names = commits.join(", ") + (probability === 1 ? "" : ` (${percent(probability)} probable)`);
  return commits.length === 1
    ? `the change arose with ${names}`
    : `the change arose with one of ${names}; the builds between them can’t be run`;
}
