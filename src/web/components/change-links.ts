import type { ChangeWindow } from "../../comparisons/changes.ts";
import { findComparison, type LatestResults } from "../../comparisons/latest.ts";

/** Maximum evaluations on each side of a link, because the length of a URL is limited. They are the evaluations next to the change. */
const maxEvaluations = 50;

type Sides = { before: string[]; after: string[] };
type Windows = Sides & { agent: string; model: string | null };

/** The URL of a comparison between all runs of an agent before and after a change. The evaluations are given by ID, oldest first. */
export function toWindowsHref(base: string, { before, after, agent, model }: Windows): string {
  const sides = toSides({ before, after });
  return `${base}/compare?${new URLSearchParams({ ...sides, agent, ...(model !== null && { model }) })}`;
}

const toSides = ({ before, after }: Sides) => ({
  base: before.slice(-maxEvaluations).join(),
  head: after.slice(0, maxEvaluations).join(),
});

/**
 * The URL of the page that explains a change of a prompt's score between evaluations before and after it. Without evaluations, it explains the newest
 * change.
 */
export function toWhyHref(base: string, promptId: string, windows?: Sides): string {
  const query = windows && `?${new URLSearchParams(toSides(windows))}`;
  return `${base}/prompts/${promptId}/why${query ?? ""}`;
}

/** The URL of the comparison of an evaluation with earlier ones; null: there are none. */
export function toComparisonHref(base: string, latest: LatestResults | null, evalRequestId: string): string | null {
  const comparison = findComparison(latest, evalRequestId);
  if (latest === null || comparison === null) return null;
  return "change" in comparison
    ? toChangeHref(base, latest, comparison.change)
    : `${base}/compare?slugs=${comparison.slugs.join()}`;
}

/** The URL of the comparison of both windows of a change. */
export function toChangeHref(
  base: string,
  { agent, model }: { agent: string; model: string | null },
  change: { before: ChangeWindow; after: ChangeWindow },
): string {
  const ids = ({ evaluations }: ChangeWindow) => evaluations.map(({ evalRequestId }) => evalRequestId);
  return toWindowsHref(base, { agent, model, before: ids(change.before), after: ids(change.after) });
}
