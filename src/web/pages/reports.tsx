import { outcomes } from "../../agents/agent.ts";
import { reportStatuses } from "../../db/tables.ts";
import { line } from "../../grading/words.ts";
import type { Paged } from "../../paging.ts";
import type { ReportSummary } from "../../reports/schema.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { When } from "../when.tsx";
import { agentWords, numberWords, outcomeWords, plain } from "../words.ts";
import { Choice, Filter, type PromptName, promptChoices } from "./choice.tsx";
import { GradeMark } from "./figures.tsx";

export const letters = ["A", "B", "C", "D", "F"] as const;

/** What the list is asked for; blank fields are left out. */
type ReportsQuery = {
  promptId?: string;
  status?: ReportSummary["status"];
  outcome?: ReportSummary["outcome"];
  agent?: string;
  /** The best and the worst grade that is shown. */
  best?: (typeof letters)[number];
  worst?: (typeof letters)[number];
  offset?: number;
};

export const reportsShown = 50;

type Props = {
  site: Site;
  viewer: Viewer;
  found: Paged<ReportSummary>;
  query: ReportsQuery;
  prompts: PromptName[];
  agents: string[];
  now: number;
};

/** Every report of the organisation, newest first, to be read or compared. */
export function ReportsPage({
  site: { base },
  site,
  viewer,
  found: { items, total },
  query,
  prompts,
  agents,
  now,
}: Props) {
  const here = `${base}/reports`;
  const isFiltered = Object.entries(query).some(([name, value]) => name !== "offset" && value !== undefined);
  return (
    <Layout site={site} viewer={viewer} path="/reports" title="Reports">
      <div class="toolbar">
        <h1>Reports</h1>
        <span class="muted">{numberWords(total)}</span>
      </div>
      {(isFiltered || total > 0) && (
        <Filter action={here} all={isFiltered && "Show all reports"}>
          <Choice name="promptId" label="Prompt" all="Any prompt" value={query.promptId}>
            {promptChoices(prompts)}
          </Choice>
          <Choice name="status" label="Status" all="Any status" value={query.status}>
            {reportStatuses.map((each) => [each, each])}
          </Choice>
          <Choice name="outcome" label="Outcome" all="Any outcome" value={query.outcome}>
            {outcomes.map((each) => [each, outcomeWords[each].toLowerCase()])}
          </Choice>
          <Choice name="agent" label="Agent" all="Any agent" value={query.agent}>
            {agents.map((each) => [each, each])}
          </Choice>
          <Choice name="worst" label="Worst grade" all="Any grade" value={query.worst}>
            {letters.slice(0, -1).map((each) => [each, `${each} or better`])}
          </Choice>
          <Choice name="best" label="Best grade" all="Up to any grade" value={query.best}>
            {letters.slice(1).map((each) => [each, `${each} or worse`])}
          </Choice>
        </Filter>
      )}
      {items.length === 0 ? (
        <Empty base={base} isFiltered={isFiltered} />
      ) : (
        <form method="get" action={`${base}/compare`} class="picking">
          <table class="list reports run-list">
            <thead>
              <tr>
                <th scope="col">
                  <span class="unseen">Compare</span>
                </th>
                <th scope="col">Grade</th>
                <th scope="col" class="number">
                  Score
                </th>
                <th scope="col">Report</th>
                <th scope="col">Outcome</th>
                <th scope="col">Agent</th>
                <th scope="col" class="number">
                  Made
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((report) => (
                <ReportRow key={report.slug} report={report} base={base} now={now} />
              ))}
            </tbody>
          </table>
          <div class="pager">
            <span>
              <button type="submit">Compare the chosen</button>
              <small class="muted"> 2 to 10</small>
            </span>
            <Pages here={here} query={query} total={total} />
          </div>
        </form>
      )}
    </Layout>
  );
}

const ReportRow = ({ report, base, now }: { report: ReportSummary; base: string; now: number }) => {
  const { slug, score, grade, prompt, keyFinding, outcome, status, agent, createdAt } = report;
  const title = line(prompt.title ?? slug, 120);
  return (
    <tr>
      <td>
        <input type="checkbox" name={slug} value="1" aria-label={`Compare ${slug}`} />
      </td>
      <td>
        <GradeMark grade={grade} />
      </td>
      <td class="number">{score?.toFixed(1) ?? "–"}</td>
      <td class="title what">
        <a class="plain" href={`${base}/reports/${slug}`}>
          {title}
        </a>
        <small>{line(keyFinding, 160)}</small>
      </td>
      <td class="soft">
        {outcomeWords[outcome]}
        {status !== "published" && <small> {plain(status)}</small>}
      </td>
      <td class="soft">{agentWords(agent)}</td>
      <td class="number soft">
        <When at={createdAt} now={now} />
      </td>
    </tr>
  );
};

const Empty = ({ base, isFiltered }: { base: string; isFiltered: boolean }) => (
  <div class="empty">
    {isFiltered ? (
      <p>
        No report matches. <a href={`${base}/reports`}>Show all reports</a>
      </p>
    ) : (
      <>
        <h2>No report yet</h2>
        <p>A report is made when a run is completed: write down a task as a prompt, and run it.</p>
        <p>
          <a class="button main" href={`${base}/prompts`}>
            Go to the prompts
          </a>
        </p>
      </>
    )}
  </div>
);

function Pages({ here, query, total }: { here: string; query: ReportsQuery; total: number }) {
  const offset = query.offset ?? 0;
  const toHref = (to: number) => {
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...query, offset: to === 0 ? undefined : to }))
      if (value !== undefined) params.set(name, String(value));
    return params.size === 0 ? here : `${here}?${params}`;
  };
  return (
    <nav class="end" aria-label="Pages">
      <span class="muted">
        {numberWords(offset + 1)} to {numberWords(Math.min(total, offset + reportsShown))} of {numberWords(total)}
      </span>
      {offset > 0 && (
        <a class="button" rel="prev" href={toHref(Math.max(0, offset - reportsShown))}>
          Newer
        </a>
      )}
      {offset + reportsShown < total && (
        <a class="button" rel="next" href={toHref(offset + reportsShown)}>
          Older
        </a>
      )}
    </nav>
  );
}
