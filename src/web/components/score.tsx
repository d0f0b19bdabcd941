import { type ComponentChildren, Fragment } from "preact";
import { isClear } from "../../comparisons/changes.ts";
import type { LatestResults } from "../../comparisons/latest.ts";
import { signedPoints } from "../../grading/text.ts";
import type { PromptItem } from "../../prompts/lists.ts";
import { humanize, scopeHints, scoreText, titleOf } from "../../reports/labels.ts";
import { threshold } from "../../stats/power.ts";
import { toChangeHref } from "./change-links.ts";
import { Sparkline } from "./charts.tsx";
import { type Column, GradeMark, type Sorting, TableHead } from "./figures.tsx";
import { foreignText } from "./layout.tsx";
import { SelectRow } from "./selection.tsx";
import { Day } from "./when.tsx";

/** A prompt with its latest evaluations. */
export type PromptScore = { prompt: PromptItem; latest: LatestResults | null };

type Props = {
  base: string;
  prompts: PromptScore[];
  /** Additional columns. */
  columns?: string[];
  /** Right-aligned columns at the end, such as numbers and buttons. */
  numbers: Column[];
  sorting?: Sorting;
  isSelectable?: boolean;
  /** Returns the cells of a prompt for `columns` and `numbers`. */
  cells: (prompt: PromptScore) => ComponentChildren;
};

const scoreColumns = [
  { label: "Prompt", sort: "title" },
  { label: "Score", sort: "score", largestFirst: true },
  "Trend",
  { label: "Change", sort: "change" },
];

/** Table of prompts with score, trend and change. */
export const ScoreTable = ({ base, prompts, columns = [], numbers, sorting, isSelectable = false, cells }: Props) => (
  <table class="list scores">
    <TableHead
      labels={[...(isSelectable ? ["Select"] : []), ...scoreColumns, ...columns]}
      numbers={numbers}
      sorting={sorting}
    />
    <tbody>
      {prompts.map(({ prompt, latest }) => (
        <tr key={prompt.id}>
          {isSelectable && (
            <td>
              <SelectRow name={prompt.id} label={titleOf(prompt)} />
            </td>
          )}
          <td class="title" {...foreignText}>
            <a class="plain" href={`${base}/prompts/${prompt.id}`}>
              {titleOf(prompt)}
            </a>
            {prompt.status !== "active" && <span class="pill">{prompt.status}</span>}{" "}
            <Tags tags={prompt.tags} base={base} />
          </td>
          <td>
            <Score latest={latest} base={base} />
          </td>
          <td>
            <Sparkline scores={(latest?.points ?? []).map(({ score }) => score)} subject={titleOf(prompt)} />
          </td>
          <td>
            <LatestChange latest={latest} base={base} promptId={prompt.id} />
          </td>
          {cells({ prompt, latest })}
        </tr>
      ))}
    </tbody>
  </table>
);

/** The tags of a prompt. Each links to the prompts with this tag. */
export const Tags = ({ tags, base }: { tags: string[]; base: string }) => (
  <>
    {tags.map((tag) => (
      <Fragment key={tag}>
        <a class="pill" href={`${base}/prompts?tag=${encodeURIComponent(tag)}`}>
          {tag}
        </a>{" "}
      </Fragment>
    ))}
  </>
);

/** The latest score of a prompt, linked to the report. */
export const Score = ({ latest, base }: { latest: LatestResults | null; base: string }) =>
  latest === null ? (
    <span class="muted">No reports</span>
  ) : (
    <a class="result" href={`${base}/reports/${latest.slug}`} title={scopeHints[latest.scope]}>
      <GradeMark grade={latest.grade} />
      <span>{scoreText(latest)}</span>
    </a>
  );

/** The word for a change. Only a change that is large and certain enough is called a regression or an improvement. */
function verdictText({ verdict, delta }: NonNullable<LatestResults["change"]>): string {
  if (verdict !== "soft_regression" && verdict !== "soft_improvement") return humanize(verdict);
  return Math.abs(delta) < threshold ? "small change" : "possible change";
}

type ChangeProps = { latest: LatestResults | null; base: string; promptId: string };

/** The newest change of a prompt. A significant change links to its explanation. Any other change links to the comparison of both sides. */
export function LatestChange({ latest, base, promptId }: ChangeProps) {
  const change = latest?.change ?? null;
  if (latest === null || change === null) return <span class="muted">–</span>;
  const { verdict, delta, at } = change;
  const isSignificant = isClear(change);
  return (
    <a
      class={`change change-${verdict}`}
      href={isSignificant ? `${base}/prompts/${promptId}/why` : toChangeHref(base, latest, change)}
    >
      {signedPoints(delta)} {verdictText(change)}
      {isSignificant && (
        <span class="soft">
          {" "}
          <Day at={at} />
        </span>
      )}
    </a>
  );
}
