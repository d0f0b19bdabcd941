import type { ComponentChildren } from "preact";
import type { PromptLine } from "../../prompts/lists.ts";
import type { Latest } from "../../reports/latest.ts";
import { Sparkline } from "../charts.tsx";
import { outcomeWords, plain, titleOf } from "../words.ts";
import { GradeMark, Heads } from "./figures.tsx";

/** A prompt with what is known of its newest evaluations. */
export type Standing = { line: PromptLine; latest: Latest | null };

type Props = {
  base: string;
  prompts: Standing[];
  /** The further columns. */
  words?: string[];
  numbers: string[];
  cells: (prompt: Standing) => ComponentChildren;
};

/** Prompts with how they stand, a line each. */
export const ScoreTable = ({ base, prompts, words = [], numbers, cells }: Props) => (
  <table class="list scores">
    <Heads words={["Prompt", "Score", "Trend", "Change", ...words]} numbers={numbers} />
    <tbody>
      {prompts.map(({ line, latest }) => (
        <tr key={line.id}>
          <td class="title">
            <a class="plain" href={`${base}/prompts/${line.id}`}>
              {titleOf(line)}
            </a>
            {line.status !== "active" && <span class="pill">{line.status}</span>}
          </td>
          <td>
            <Score latest={latest} base={base} />
          </td>
          <td>
            <Trend latest={latest} title={titleOf(line)} />
          </td>
          <td>
            <Change latest={latest} base={base} />
          </td>
          {cells({ line, latest })}
        </tr>
      ))}
    </tbody>
  </table>
);

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
function Trend({ latest, title }: { latest: Latest | null; title: string }) {
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
