import { count, dollars, duration, oneLine, percent } from "../../grading/text.ts";
import type { Cell, Matrix, MatrixAgent, Standing } from "../../matrix/schema.ts";
import { outcomeLabels, scopeHints, scoreText } from "../../reports/labels.ts";
import { noModel } from "../../runs/run-conditions.ts";
import { minRuns, threshold } from "../../stats/power.ts";
import { NoRuns } from "../components/empty.tsx";
import { List, ScrollArea } from "../components/figures.tsx";
import { Choice, Filter, PeriodFields } from "../components/filter.tsx";
import { foreignText, Layout } from "../components/layout.tsx";
import { offsetLinks, Pager, toHref } from "../components/pager.tsx";
import { withMinus } from "../components/verdict.tsx";
import { Day } from "../components/when.tsx";
import type { PageProps } from "../viewer.ts";

type MatrixQuery = { tag?: string; promptId?: string; evalRequestId?: string; since?: string; until?: string };
type Props = PageProps & { matrix: Matrix; query: MatrixQuery; tags: string[]; offset: number; perPage: number };

const standingLabels: Record<Standing, string | null> = {
  best: "Best",
  tied: "Tied",
  behind: null,
  too_few_runs: "Too few runs",
  not_comparable: "Not comparable",
};
const standingHints: Record<Standing, string | undefined> = {
  best: `Significantly better than every other agent, by at least ${threshold} points`,
  tied: "No agent can be told from the leading one",
  behind: undefined,
  too_few_runs: `At least ${minRuns} scored runs are needed to compare agents`,
  not_comparable: "The score measures something else, or another methodology graded it",
};

/** The results of agents on prompts, side by side. */
export function MatrixPage({ site, site: { base }, viewer, matrix, query, tags, offset, perPage }: Props) {
  const here = `${base}/matrix`;
  const { agents, total, since, until, unfinished } = matrix;
  const { evalRequestId, promptId } = query;
  const toExport = (format: string) => toHref(`${here}/export`, { ...query, format });
  const toPage = (at: number) => toHref(here, { ...query, offset: at });
  return (
    <Layout
      {...{ site, viewer }}
      path="/matrix"
      title="Agents side by side"
      crumbs={[{ name: "Prompts", path: "/prompts" }, { name: "Agents side by side" }]}
    >
      <div class="toolbar">
        <h1>Agents side by side</h1>
        <a href={toExport("csv")}>CSV</a>
        <a href={toExport("json")}>JSON</a>
      </div>
      {evalRequestId === undefined && (
        <Filter action={here} part="matrix">
          {promptId === undefined ? (
            <Choice name="tag" label="Tag" allLabel="All prompts" value={query.tag}>
              {tags.map((tag) => [tag, `Tag ${tag}`])}
            </Choice>
          ) : (
            <input type="hidden" name="promptId" value={promptId} />
          )}
          <PeriodFields since={query.since} until={query.until} />
        </Filter>
      )}
      <div id="matrix">
        {agents.length === 0 ? (
          <NoRuns base={base} heading="No runs in this period">
            Run prompts with two or more agents to see them side by side.
          </NoRuns>
        ) : (
          <>
            <p class="muted">
              {evalRequestId !== undefined ? (
                <>
                  Runs of <a href={`${base}/evals/${evalRequestId}`}>one evaluation</a>
                  {unfinished > 0 && `, of which ${unfinished} have not finished`}.
                </>
              ) : (
                <>
                  Runs on live docs from {since && <Day at={since} />} to {until && <Day at={until} />}, with the newest
                  version of each agent.
                </>
              )}{" "}
              Ranges are 95% confidence intervals. Agents are tied unless one leads by {threshold} points or more and
              the difference is significant.
            </p>
            <MatrixTable {...{ base, matrix, evalRequestId }} />
            <Pager links={offsetLinks({ offset, perPage, total, toPage })} />
            <Pairs matrix={matrix} />
          </>
        )}
      </div>
    </Layout>
  );
}

type TableProps = { base: string; matrix: Matrix; evalRequestId: string | undefined };

/** One row for each prompt and one column for each agent. The first row is for all prompts together. */
function MatrixTable({ base, matrix: { agents, prompts, total }, evalRequestId }: TableProps) {
  const toRunsHref = (promptId: string, agent: MatrixAgent | undefined) =>
    evalRequestId === undefined
      ? toHref(`${base}/runs`, { promptId, agent: agent?.agent, model: agent?.model ?? noModel })
      : `${base}/evals/${evalRequestId}`;
  return (
    <ScrollArea label="Agents side by side">
      <table class="list stacked matrix">
        <thead>
          <tr>
            <th scope="col">Prompt</th>
            {agents.map(({ agent, model }) => (
              <th key={`${agent} ${model}`} scope="col">
                {agent}
                {model !== null && <small>{model}</small>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <tr class="summary">
            <th scope="row">
              All prompts <small>{count(total, "prompt")}, each counts equally</small>
            </th>
            {agents.map((each) => (
              <td key={nameOf(each)} data-label={nameOf(each)} data-standing={each.results.standing}>
                <Results results={each.results} />
                <CountedPrompts {...each} total={total} />
              </td>
            ))}
          </tr>
          {prompts.map(({ promptId, title, cells }) => (
            <tr key={promptId}>
              <th scope="row" {...foreignText}>
                <a class="plain" href={`${base}/prompts/${promptId}`}>
                  {oneLine(title, 80)}
                </a>
              </th>
              {cells.map((cell, i) => (
                <td key={i} data-label={nameOf(agents[i])} data-standing={cell?.standing}>
                  {cell === null ? (
                    <span class="soft">No runs</span>
                  ) : (
                    <Results results={cell} runsHref={toRunsHref(promptId, agents[i])} />
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollArea>
  );
}

/** The number of prompts in the summary of an agent. */
const CountedPrompts = ({ prompts, otherPrompts, total }: MatrixAgent & { total: number }) => (
  <small>
    {prompts} of {count(total, "prompt")}
    {otherPrompts > 0 && `; ${otherPrompts} with another scope or methodology not counted`}
  </small>
);

/** The results of a cell, or of an agent over all prompts. `runsHref`: the URL of the runs. */
function Results({ results, runsHref }: { results: Cell; runsHref?: string }) {
  const { n, infraFailures, score, scope, standing, successRate, seconds, costUsd } = results;
  const runs = `${count(n, "scored run")}${infraFailures > 0 ? `, ${infraFailures} failed` : ""}`;
  const label = standing && standingLabels[standing];
  return (
    <>
      <strong title={scope ? scopeHints[scope] : undefined}>
        {score && scope ? scoreText({ score: score.mean, scope }) : "No score"}
      </strong>
      {label && (
        <>
          {" "}
          <span class="pill" title={standing ? standingHints[standing] : undefined}>
            {label}
          </span>
        </>
      )}
      <small>{rangeText(score, (value) => value.toFixed(1))}</small>
      <small>
        {successRate
          ? `Goal reached ${percent(successRate.value)} of ${successRate.of} ${rangeText(successRate, percent) ?? ""}`
          : outcomeLabels.not_judged}
      </small>
      {seconds && (
        <small>
          Median time {duration(seconds.value)} {rangeText(seconds, duration)}
        </small>
      )}
      <small>
        {costUsd ? `Median agent cost ${dollars(costUsd.value)} ${rangeText(costUsd, dollars) ?? ""}` : "Cost unknown"}
      </small>
      <small>{runsHref === undefined ? runs : <a href={runsHref}>{runs}</a>}</small>
    </>
  );
}

/** "(72.1 to 81.0)"; null if there is no interval, or if both ends look the same. */
function rangeText(
  interval: { low: number | null; high: number | null } | null,
  format: (value: number) => string,
): string | null {
  const { low, high } = interval ?? { low: null, high: null };
  if (low === null || high === null) return null;
  const [lowText, highText] = [format(low), format(high)];
  return lowText === highText ? null : `(${lowText} to ${highText})`;
}

const Pairs = ({ matrix: { pairs, agents } }: { matrix: Matrix }) =>
  pairs.length === 0 ? null : (
    <details class="fold">
      <summary>
        <h2>
          Pairs of agents <small>{pairs.length}</small>
        </h2>
      </summary>
      <p class="muted">Compared prompt by prompt, on the prompts with comparable scores of both.</p>
      <List label="Pairs of agents" labels={["Agents"]} numbers={["Prompts", "Difference (95% CI)", "p, adjusted"]}>
        {pairs.map(({ agents: [first = 0, second = 0], prompts, delta, pHolm }) => (
          <tr key={`${first} ${second}`}>
            <td>
              {nameOf(agents[second])} against {nameOf(agents[first])}
            </td>
            <td class="number">{prompts}</td>
            <td class="number">
              {withMinus(delta.value.toFixed(1))}{" "}
              <small>{withMinus(rangeText(delta, (n) => n.toFixed(1)) ?? "")}</small>
            </td>
            <td class="number">{pHolm}</td>
          </tr>
        ))}
      </List>
    </details>
  );

const nameOf = (agent: MatrixAgent | undefined) => [agent?.agent, agent?.model].filter(Boolean).join(" ");
