import type { Latest } from "../../reports/latest.ts";
import { Sparkline } from "../charts.tsx";
import { outcomeWords, plain } from "../words.ts";
import { GradeMark } from "./figures.tsx";

/** The newest score of a prompt, with its report. */
export const Score = ({ latest, base }: { latest: Latest | null; base: string }) =>
  latest === null ? (
    <span class="muted">No report</span>
  ) : (
    <a class="result" href={`${base}/reports/${latest.slug}`}>
      <GradeMark grade={latest.grade} />
      <span>{latest.score === null ? outcomeWords[latest.outcome] : latest.score.toFixed(1)}</span>
    </a>
  );

/** The scores of its evaluations as a small line; nothing for fewer than two. */
export function Trend({ latest, title }: { latest: Latest | null; title: string }) {
  if (latest === null || latest.points.length < 2) return null;
  const scores = latest.points.map(({ score }) => score);
  return (
    <Sparkline
      scores={scores}
      label={`Scores of ${title}, oldest first: ${scores.map((score) => score.toFixed(0)).join(", ")}`}
    />
  );
}

/** What became of the score since the evaluation before, as far as that can be told. */
export function Change({ latest, base }: { latest: Latest | null; base: string }) {
  const change = latest?.change ?? null;
  if (change === null) return <span class="muted">–</span>;
  const { verdict, delta } = change;
  const slugs = latest?.points.slice(-2).map(({ slug }) => slug) ?? [];
  return (
    <a
      class={`change change-${verdict}`}
      href={`${base}/compare?slugs=${slugs.join()}`}
      title="Of the newest evaluation against the one before"
    >
      {delta > 0 ? "+" : ""}
      {delta.toFixed(1)} {plain(verdict)}
    </a>
  );
}
