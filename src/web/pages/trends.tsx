import { duration, line, percent } from "../../grading/text.ts";
import { methodologyWords } from "../../reports/differences.ts";
import type { Trends } from "../../trends/trends.ts";
import { figureHeads, Heads, Wide } from "../components/figures.tsx";
import { Choice, Filter, type PromptName, promptChoices } from "../components/filter.tsx";
import { Layout } from "../components/layout.tsx";
import { dayOf, TrendChart } from "../components/trend-chart.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

type TrendsQuery = { promptId?: string; agent?: string; interval?: string; since?: string; until?: string };

type Props = {
  site: Site;
  viewer: Viewer;
  trends: Trends;
  query: TrendsQuery;
  prompts: PromptName[];
  agents: string[];
};

const intervalLabels = { day: "By day", week: "By week", month: "By month" } as const;
const evalIntervalLabels = { ...intervalLabels, eval: "By evaluation" } as const;

/** Scores over time of one prompt or of all prompts, with the changes that may explain them. */
export function TrendsPage({ site, site: { base }, viewer, trends, query, prompts, agents }: Props) {
  const { points, others, changes, agent, model, methodology, nextUntil } = trends;
  const here = `${base}/trends`;
  const scored = points.filter(({ score }) => score !== null);
  const prompt = prompts.find(({ id }) => id === query.promptId);
  const what = prompt ? line(prompt.title ?? prompt.id, 80) : "all prompts";
  return (
    <Layout site={site} viewer={viewer} path="/trends" title="Trends">
      <div class="toolbar">
        <h1>Trends</h1>
      </div>
      {prompts.length > 0 && (
        <Filter action={here}>
          <Choice name="promptId" label="Prompt" all="All prompts" value={query.promptId}>
            {promptChoices(prompts)}
          </Choice>
          <Choice name="agent" label="Agent" all="Latest agent" value={query.agent}>
            {agents.map((each) => [each, each])}
          </Choice>
          <Choice name="interval" label="Interval" value={query.interval ?? "week"}>
            {Object.entries(query.promptId === undefined ? intervalLabels : evalIntervalLabels)}
          </Choice>
          <label class="inline">
            From <input type="date" name="since" value={query.since?.slice(0, 10)} />
          </label>
          <label class="inline">
            To <input type="date" name="until" value={query.until?.slice(0, 10)} />
          </label>
        </Filter>
      )}
      {scored.length === 0 ? (
        <div class="empty">
          <h2>No data yet</h2>
          <p>Run a prompt, or schedule one, to see its score over time.</p>
          <p>
            <a class="button main" href={`${base}/prompts`}>
              View prompts
            </a>
          </p>
        </div>
      ) : (
        <>
          <p class="muted">
            Mean score of {what} with {[agent, model].filter(Boolean).join(" ")}
            {methodology && `, methodology ${methodologyWords(methodology)}`}. The band is the 95% confidence interval.
            {others.length > 0 && " Dashed lines were graded with another methodology."}
          </p>
          <TrendChart points={points} others={others} changes={changes} label={labelOf(what, scored)} />
          <Changes changes={changes} />
          <Points points={points} />
          {others.map(({ methodology, points }) => (
            <section key={methodology.hash} data-methodology={methodology.hash}>
              <h2>Methodology {methodologyWords(methodology)}</h2>
              <Points points={points} />
            </section>
          ))}
        </>
      )}
      {nextUntil && (
        <p>
          <a class="button" href={`${here}?${new URLSearchParams({ ...given(query), until: nextUntil })}`}>
            Earlier
          </a>
        </p>
      )}
    </Layout>
  );
}

const given = (query: TrendsQuery): Record<string, string> =>
  Object.fromEntries(Object.entries(query).filter(([name, value]) => value !== undefined && name !== "since"));

function labelOf(what: string, scored: Trends["points"]): string {
  const [first, last] = [scored[0], scored.at(-1)];
  return `Mean score of ${what}: ${first?.score?.mean} on ${dayOf(first?.from ?? "")}, ${last?.score?.mean} on ${dayOf(last?.from ?? "")}. The table below lists all values.`;
}

const Changes = ({ changes }: { changes: Trends["changes"] }) =>
  changes.length === 0 ? null : (
    <section>
      <h2 id="changes">Changes</h2>
      <ol class="changes">
        {changes.map((change) => (
          <li key={`${change.at} ${change.what}`}>
            <strong>
              {dayOf(change.at)}: {change.what}
            </strong>{" "}
            {change.from} → {change.to}
            {change.delta && (
              <>
                {" "}
                by {change.delta.value} points
                {change.delta.low !== null && ` (95% CI ${change.delta.low} to ${change.delta.high})`}
              </>
            )}
            {change.canary === "moved" && "; the canary changed too, so the model drifted"}
            {change.canary === "stayed" && "; the canary did not change, so check the docs"}
            {change.note && <small> {change.note}</small>}
          </li>
        ))}
      </ol>
    </section>
  );

const Points = ({ points }: { points: Trends["points"] }) => (
  <Wide label="Chart data">
    <table class="list">
      <caption class="unseen">Chart data</caption>
      <Heads labels={["From"]} numbers={["Runs", ...figureHeads, "Failed"]} />
      <tbody>
        {points.toReversed().map(({ from, n, score, successRate, medianSeconds, medianCostUsd, infraFailures }) => (
          <tr key={from}>
            <th scope="row" class="when">
              {dayOf(from)}
            </th>
            <td class="number">{n}</td>
            <td class="number">
              {score === null ? "–" : score.mean}
              {score !== null && score.low !== null && <small> {`${score.low} to ${score.high}`}</small>}
            </td>
            <td class="number">{successRate ? `${percent(successRate.value)} of ${successRate.of}` : "Not judged"}</td>
            <td class="number">{medianSeconds === null ? "–" : duration(medianSeconds)}</td>
            <td class="number">{medianCostUsd === null ? "–" : `$${medianCostUsd.toFixed(2)}`}</td>
            <td class="number">{infraFailures}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Wide>
);
