import { capitalize, duration, oneLine } from "../../grading/text.ts";
import { describeMethodology } from "../../reports/differences.ts";
import { titleOf } from "../../reports/labels.ts";
import { pWords } from "../../stats/repeats.ts";
import type { Trends } from "../../trends/trends.ts";
import { toWindowsHref } from "../components/change-links.ts";
import { NoRuns } from "../components/empty.tsx";
import { goalReachedText, ScrollArea, summaryColumns, TableHead } from "../components/figures.tsx";
import { Choice, Filter, PeriodFields, type PromptName, promptChoices } from "../components/filter.tsx";
import { Layout } from "../components/layout.tsx";
import { toHref } from "../components/pager.tsx";
import { seriesLabel, TrendChart } from "../components/trend-chart.tsx";
import { withMinus } from "../components/verdict.tsx";
import { Day, useDay } from "../components/when.tsx";
import type { PageProps } from "../viewer.ts";

type TrendsQuery = {
  tag?: string;
  promptId?: string;
  agent?: string;
  interval?: string;
  since?: string;
  until?: string;
};

type Props = PageProps & {
  trends: Trends;
  /** By the time of the change. */
  sides: Map<string, ChangeSides>;
  query: TrendsQuery;
  prompts: PromptName[];
  tags: string[];
  agents: string[];
};

const intervalLabels = { day: "By day", week: "By week", month: "By month" } as const;
const evalIntervalLabels = { ...intervalLabels, eval: "By evaluation" } as const;

/** Scores over time of one prompt or of all prompts, with changes that may explain them. */
export function TrendsPage({ site, site: { base }, viewer, trends, sides, query, prompts, tags, agents }: Props) {
  const { points, others, changes, agent, agentVersion, model, methodology, nextUntil } = trends;
  const here = `${base}/trends`;
  const dayOf = useDay();
  const scoredPoints = points.filter(({ score }) => score !== null);
  const prompt = prompts.find(({ id }) => id === query.promptId);
  const promptsText = query.tag ? `prompts tagged ${query.tag}` : "all prompts";
  const subject = prompt ? oneLine(titleOf(prompt), 80) : promptsText;
  return (
    <Layout site={site} viewer={viewer} path="/trends" title="Trends">
      <div class="toolbar">
        <h1>Trends</h1>
        <a href={toHref(`${base}/matrix`, { tag: query.tag, promptId: query.promptId })}>Agents side by side</a>
      </div>
      {prompts.length > 0 && (
        <Filter action={here} part="trends">
          <Choice name="of" label="Prompt or tag" allLabel="All prompts" value={query.promptId ?? query.tag}>
            {[...tags.map((tag) => [tag, `Tag ${tag}`] as const), ...promptChoices(prompts)]}
          </Choice>
          <Choice name="agent" label="Agent" allLabel="Most used agent" value={query.agent}>
            {agents.map((each) => [each, each])}
          </Choice>
          <Choice name="interval" label="Interval" value={query.interval ?? "week"}>
            {Object.entries(query.promptId === undefined ? intervalLabels : evalIntervalLabels)}
          </Choice>
          <PeriodFields since={query.since} until={query.until} />
        </Filter>
      )}
      <div id="trends">
        {scoredPoints.length === 0 ? (
          <NoRuns base={base} heading="No data yet">
            Run a prompt, or schedule one, to see its score over time.
          </NoRuns>
        ) : (
          <>
            <p class="muted">
              Mean score, {[agent, agentVersion].filter(Boolean).join(" ")}
              {model !== null && ` with ${model}`}. Band: 95% confidence.
              {others.length > 0 && " Dashed: not comparable."}
            </p>
            <details class="hint">
              <summary>Details</summary>
              <p>
                Scores of {subject}
                {methodology && `, methodology ${describeMethodology(methodology)}`}.{" "}
                {query.interval === "eval" ? "Times are" : "Days begin at midnight"} in {viewer.timeZone}.
                {others.length > 0 && " Dashed lines are other versions, contexts or methodologies."}
              </p>
            </details>
            <TrendChart trends={trends} label={chartLabel(subject, scoredPoints, dayOf)} />
            <Changes base={base} changes={changes} sides={sides} />
            <Points points={points} />
            {others.map((each) => (
              <section
                key={seriesLabel(each)}
                data-methodology={each.methodology.hash}
                data-version={each.agentVersion}
              >
                <h2>{capitalize(seriesLabel(each))}</h2>
                <Points points={each.points} />
              </section>
            ))}
          </>
        )}
        {nextUntil && (
          <p>
            <a class="button" href={`${here}?${new URLSearchParams({ ...earlierPageQuery(query), until: nextUntil })}`}>
              Earlier
            </a>
          </p>
        )}
      </div>
    </Layout>
  );
}

/** The query of the page with earlier data. It has no `since`, because that would exclude the earlier data. */
const earlierPageQuery = (query: TrendsQuery): Record<string, string> =>
  Object.fromEntries(Object.entries(query).filter(([name, value]) => value !== undefined && name !== "since"));

function chartLabel(subject: string, points: Trends["points"], dayOf: (iso: string) => string): string {
  const [first, last] = [points[0], points.at(-1)];
  return `Mean score of ${subject}: ${first?.score?.mean} on ${dayOf(first?.from ?? "")}, ${last?.score?.mean} on ${dayOf(last?.from ?? "")}. The table below lists all values.`;
}

/**
 * The evaluations before and after a change, and the friction that only one side hit. `explainedPromptId`: the prompt whose page
 * explains the change; null: no page does.
 */
export type ChangeSides = {
  windows: Parameters<typeof toWindowsHref>[1];
  explainedPromptId: string | null;
  gone: string[];
  added: string[];
};

const ChangeCauses = ({ base, side }: { base: string; side: ChangeSides | undefined }) =>
  side === undefined ? null : (
    <ul class="causes">
      {side.added.map((title) => (
        <li key={title} data-friction="new">
          New friction: {title}
        </li>
      ))}
      {side.gone.map((title) => (
        <li key={title} data-friction="gone">
          Resolved friction: {title}
        </li>
      ))}
      <li>
        {side.explainedPromptId !== null && (
          <>
            <a href={`${base}/prompts/${side.explainedPromptId}/why`}>See why</a> ·{" "}
          </>
        )}
        <a href={toWindowsHref(base, side.windows)}>Compare before and after</a>
      </li>
    </ul>
  );

type Change = Trends["changes"][number];

/** "fell from 82 to 74 (−8)" for a score. "1.2 → 1.3" for any other value. */
function describeChange({ from, to, delta }: Change): string {
  if (delta === null) return `${from} → ${to}`;
  const points = withMinus(`${delta.value > 0 ? "+" : ""}${delta.value}`);
  return `${delta.value < 0 ? "fell" : "rose"} from ${from} to ${to} (${points})`;
}

/** The confidence interval, if there is one, and the probability that chance alone explains the change. */
const describeCertainty = (delta: Change["delta"], p: number): string =>
  delta === null || delta.low === delta.high
    ? pWords(p)
    : withMinus(`95% CI ${delta.low} to ${delta.high}, ${pWords(p)}`);

type ChangesProps = { base: string; changes: Trends["changes"]; sides: Map<string, ChangeSides> };

const Changes = ({ base, changes, sides }: ChangesProps) =>
  changes.length === 0 ? null : (
    <section>
      <h2 id="changes">Changes</h2>
      <ol class="changes">
        {changes.map((change) => (
          <li key={`${change.at} ${change.what}`}>
            <strong>
              <Day at={change.at} />: {change.what}
            </strong>{" "}
            {describeChange(change)}
            {change.canary === "moved" && "; the canary changed too, so the model drifted"}
            {change.canary === "stayed" && "; the canary did not change, so check the docs"}
            {change.delta === null && change.note && <small> {change.note}</small>}
            {change.p !== null && <small class="soft"> {describeCertainty(change.delta, change.p)}</small>}
            {change.verdict?.startsWith("soft") && (
              <>
                {" "}
                <span class="pill">small or uncertain</span>
              </>
            )}
            <ChangeCauses base={base} side={sides.get(change.at)} />
          </li>
        ))}
      </ol>
    </section>
  );

const Points = ({ points }: { points: Trends["points"] }) => (
  <ScrollArea label="Chart data">
    <table class="list stacked">
      <caption class="visually-hidden">Chart data</caption>
      <TableHead labels={["From"]} numbers={["Runs", ...summaryColumns, "Failed"]} />
      <tbody>
        {points.toReversed().map(({ from, n, score, successRate, medianSeconds, medianCostUsd, infraFailures }) => (
          <tr key={from}>
            <th scope="row" class="when">
              <Day at={from} />
            </th>
            <td class="number" data-label="Runs">
              {n}
            </td>
            <td class="number" data-label={summaryColumns[0]}>
              {score === null ? "–" : score.mean}
              {score !== null && score.low !== null && <small> {`${score.low} to ${score.high}`}</small>}
            </td>
            <td class="number" data-label={summaryColumns[1]}>
              {goalReachedText(successRate)}
            </td>
            <td class="number" data-label={summaryColumns[2]}>
              {medianSeconds === null ? "–" : duration(medianSeconds)}
            </td>
            <td class="number" data-label={summaryColumns[3]}>
              {medianCostUsd === null ? "–" : `$${medianCostUsd.toFixed(2)}`}
            </td>
            <td class="number" data-label="Failed">
              {infraFailures}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </ScrollArea>
);
