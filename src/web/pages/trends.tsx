import { duration, line, percent } from "../../grading/words.ts";
import { methodologyWords } from "../../reports/runrows.ts";
import type { Trends } from "../../reports/trends.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { Choice, Filter, type PromptName, promptChoices } from "./choice.tsx";
import { figureHeads, Heads, Wide } from "./figures.tsx";
import { dayOf, TrendChart } from "./trendchart.tsx";

type TrendsQuery = { promptId?: string; agent?: string; interval?: string; since?: string; until?: string };

type Props = {
  site: Site;
  viewer: Viewer;
  trends: Trends;
  query: TrendsQuery;
  prompts: PromptName[];
  agents: string[];
};

const intervalWords = { day: "by day", week: "by week", month: "by month" } as const;
const evalWords = { ...intervalWords, eval: "by evaluation" } as const;

/** How scores went over time, of one prompt or of all, and what moved them. */
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
          <Choice name="agent" label="Agent" all="The agent that ran last" value={query.agent}>
            {agents.map((each) => [each, each])}
          </Choice>
          <Choice name="interval" label="Interval" value={query.interval ?? "week"}>
            {Object.entries(query.promptId === undefined ? intervalWords : evalWords)}
          </Choice>
          <label class="inline">
            from <input type="date" name="since" value={query.since?.slice(0, 10)} />
          </label>
          <label class="inline">
            to <input type="date" name="until" value={query.until?.slice(0, 10)} />
          </label>
        </Filter>
      )}
      {scored.length === 0 ? (
        <div class="empty">
          <h2>Nothing to draw yet</h2>
          <p>A line needs runs with a score in this time. A prompt with a frequency makes them by itself.</p>
          <p>
            <a class="button main" href={`${base}/prompts`}>
              Go to the prompts
            </a>
          </p>
        </div>
      ) : (
        <>
          <p class="muted">
            Of {what}, by {[agent, model].filter(Boolean).join(" ")}
            {methodology && `, methodology ${methodologyWords(methodology)}`}. The band is the 95 % interval of the
            mean.
            {others.length > 0 && " Dashed: graded by another methodology, which is no part of the line."}
          </p>
          <TrendChart points={points} others={others} changes={changes} label={labelOf(what, scored)} />
          <Changes changes={changes} />
          <Points points={points} />
          {others.map(({ methodology, points }) => (
            <section key={methodology.hash}>
              <h2>By methodology {methodologyWords(methodology)}</h2>
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
  return `Mean scores of ${what}: ${first?.score?.mean} from ${dayOf(first?.from ?? "")}, ${last?.score?.mean} from ${dayOf(last?.from ?? "")}; every value stands in the table below`;
}

const Changes = ({ changes }: { changes: Trends["changes"] }) =>
  changes.length === 0 ? null : (
    <section>
      <h2 id="changes">What moved it</h2>
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
                {change.delta.low !== null && ` (95 % from ${change.delta.low} to ${change.delta.high})`}
              </>
            )}
            {change.canary === "moved" && "; the canary moved too: the model drifted"}
            {change.canary === "stayed" && "; the canary stayed: look at the docs"}
            {change.note && <small> {change.note}</small>}
          </li>
        ))}
      </ol>
    </section>
  );

const Points = ({ points }: { points: Trends["points"] }) => (
  <Wide label="Every value">
    <table class="list">
      <caption class="unseen">Every value of the chart</caption>
      <Heads words={["From"]} numbers={["Runs", ...figureHeads, "Not made"]} />
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
            <td class="number">{successRate ? `${percent(successRate.value)} of ${successRate.of}` : "not judged"}</td>
            <td class="number">{medianSeconds === null ? "–" : duration(medianSeconds)}</td>
            <td class="number">{medianCostUsd === null ? "–" : `$${medianCostUsd.toFixed(2)}`}</td>
            <td class="number">{infraFailures}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Wide>
);
