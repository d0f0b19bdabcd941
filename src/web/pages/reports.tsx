import { outcomes } from "../../agents/agent.ts";
import { reportStatuses } from "../../db/tables/reports.ts";
import { capitalize, oneLine } from "../../grading/text.ts";
import type { Paged } from "../../http/paging.ts";
import { agentLabel, formatNumber, humanize, outcomeLabels, scoreText } from "../../reports/labels.ts";
import type { ReportSort } from "../../reports/lists.ts";
import type { ReportSummary } from "../../reports/schema.ts";
import type { DocsVariant } from "../../runs/lists.ts";
import { NoRuns } from "../components/empty.tsx";
import { GradeMark, TableHead, toSorting } from "../components/figures.tsx";
import { Choice, Filter, type PromptName, promptChoices } from "../components/filter.tsx";
import { foreignText, Layout } from "../components/layout.tsx";
import { offsetLinks, Pager, toHref } from "../components/pager.tsx";
import { DocsMark } from "../components/run-table.tsx";
import { type BulkAction, BulkActions, SelectRow } from "../components/selection.tsx";
import { When } from "../components/when.tsx";
import { may, type PageProps, type Viewer } from "../viewer.ts";

export const gradeLetters = ["A", "B", "C", "D", "F"] as const;

/** Filters of the list. */
type ReportsQuery = {
  promptId?: string;
  status?: ReportSummary["status"];
  outcome?: ReportSummary["outcome"];
  agent?: string;
  /** The highest and the lowest grade to show. */
  best?: (typeof gradeLetters)[number];
  worst?: (typeof gradeLetters)[number];
  sort?: ReportSort;
  offset?: number;
};

export const reportsPerPage = 50;

type Props = PageProps & {
  reports: Paged<ReportSummary>;
  /** By the ID of the run. */
  docsVariants: Map<string, DocsVariant>;
  query: ReportsQuery;
  prompts: PromptName[];
  agents: string[];
  now: number;
};

/** Reports of the organization, newest first, with a form to compare them. */
export function ReportsPage({
  site: { base },
  site,
  viewer,
  reports: { items, total },
  docsVariants,
  query,
  prompts,
  agents,
  now,
}: Props) {
  const here = `${base}/reports`;
  const toPage = (offset: number) => toHref(here, { ...query, offset });
  const { offset = 0 } = query;
  const isFiltered = Object.entries(query).some(
    ([name, value]) => name !== "offset" && name !== "sort" && value !== undefined,
  );
  return (
    <Layout site={site} viewer={viewer} path="/reports" title="Reports">
      <div class="toolbar">
        <h1>Reports</h1>
        <span class="muted">{formatNumber(total)}</span>
      </div>
      {(isFiltered || total > 0) && (
        <Filter action={here} part="reports" sort={query.sort}>
          <Choice name="promptId" label="Prompt" allLabel="All prompts" value={query.promptId}>
            {promptChoices(prompts)}
          </Choice>
          <Choice name="status" label="Status" allLabel="All statuses" value={query.status}>
            {reportStatuses.map((each) => [each, capitalize(each)])}
          </Choice>
          <Choice name="outcome" label="Outcome" allLabel="All outcomes" value={query.outcome}>
            {outcomes.map((each) => [each, outcomeLabels[each]])}
          </Choice>
          <Choice name="agent" label="Agent" allLabel="All agents" value={query.agent}>
            {agents.map((each) => [each, each])}
          </Choice>
          <Choice name="worst" label="Minimum grade" allLabel="Min grade" value={query.worst}>
            {gradeLetters.slice(0, -1).map((each) => [each, `${each} or better`])}
          </Choice>
          <Choice name="best" label="Maximum grade" allLabel="Max grade" value={query.best}>
            {gradeLetters.slice(1).map((each) => [each, `${each} or worse`])}
          </Choice>
        </Filter>
      )}
      <div id="reports">
        {items.length === 0 ? (
          <Empty base={base} isFiltered={isFiltered} />
        ) : (
          <form method="get" action={`${base}/compare`}>
            <BulkActions base={base} viewer={viewer} actions={actionsOf(viewer)} hint="Select 2 to 10 to compare" />
            <table class="list reports run-list">
              <TableHead
                labels={[
                  "Select",
                  "Grade",
                  { label: "Score", sort: "score", isNumber: true },
                  "Report",
                  "Outcome",
                  "Agent",
                ]}
                numbers={[{ label: "Created", sort: "created" }]}
                sorting={toSorting(here, query, "-created")}
              />
              <tbody>
                {items.map((report) => (
                  <ReportRow
                    key={report.slug}
                    variant={docsVariants.get(report.runId) ?? null}
                    {...{ report, base, now }}
                  />
                ))}
              </tbody>
            </table>
            <Pager
              range={`${formatNumber(offset + 1)}–${formatNumber(Math.min(total, offset + reportsPerPage))} of ${formatNumber(total)}`}
              links={offsetLinks({ offset, total, perPage: reportsPerPage, toPage })}
            />
          </form>
        )}
      </div>
    </Layout>
  );
}

const actionsOf = (viewer: Viewer): BulkAction[] => [
  { label: "Compare", path: "/compare", min: 2, max: 10 },
  { label: "Export", path: "/reports/selected/export" },
  ...(may(viewer, "run") ? [{ label: "Run again", path: "/reports/selected/rerun", isForm: true }] : []),
  ...(may(viewer, "publish") ? [{ label: "Archive", path: "/reports/selected/archive", isForm: true }] : []),
];

type RowProps = { report: ReportSummary; variant: DocsVariant; base: string; now: number };

const ReportRow = ({ report, variant, base, now }: RowProps) => {
  const { slug, grade, prompt, keyFinding, outcome, status, agent, createdAt } = report;
  const title = oneLine(prompt.title ?? slug, 120);
  return (
    <tr>
      <td>
        <SelectRow name={slug} label={slug} />
      </td>
      <td>
        <GradeMark grade={grade} />
      </td>
      <td class="number">{scoreText(report)}</td>
      <td class="title what" {...foreignText}>
        <a class="plain" href={`${base}/reports/${slug}`}>
          {title}
        </a>
        <small>{oneLine(keyFinding, 160)}</small>
      </td>
      <td class="soft">
        {outcomeLabels[outcome]}
        {status !== "published" && <small> {humanize(status)}</small>}
        {variant && (
          <>
            {" "}
            <DocsMark variant={variant} />
          </>
        )}
      </td>
      <td class="soft">{agentLabel(agent)}</td>
      <td class="number soft">
        <When at={createdAt} now={now} />
      </td>
    </tr>
  );
};

const Empty = ({ base, isFiltered }: { base: string; isFiltered: boolean }) =>
  isFiltered ? (
    <div class="empty">
      <p>
        No reports match these filters. <a href={`${base}/reports`}>Clear filters</a>
      </p>
    </div>
  ) : (
    <NoRuns base={base} heading="No reports yet">
      Reports appear here when runs complete. Create a prompt and run it.
    </NoRuns>
  );
