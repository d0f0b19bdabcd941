import { runStatuses, triggers } from "../../db/tables/runs.ts";
import { oneLine } from "../../grading/text.ts";
import type { PromptItem } from "../../prompts/lists.ts";
import { formatNumber, titleOf } from "../../reports/labels.ts";
import type { RunListItem, RunSort } from "../../runs/lists.ts";
import { noModel, type RunFilter } from "../../runs/run-conditions.ts";
import { NoRuns } from "../components/empty.tsx";
import { toSorting } from "../components/figures.tsx";
import { Choice, Filter } from "../components/filter.tsx";
import { Layout } from "../components/layout.tsx";
import { Pager, toHref } from "../components/pager.tsx";
import { RunTable } from "../components/run-table.tsx";
import { type BulkAction, BulkActions } from "../components/selection.tsx";
import { statusLabels, triggerLabels } from "../run-labels.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

type RunsPartProps = {
  site: Site;
  filter: RunFilter & { sort?: RunSort };
  before: string | undefined;
  items: RunListItem[];
  next: string | null;
  now: number;
};

type Props = RunsPartProps & { viewer: Viewer; prompts: PromptItem[]; agents: string[]; total: number };

/** The runs of the organization, newest first. The first page updates live. */
export function RunsPage(props: Props) {
  const { site, viewer, filter, prompts, agents, total, before, items } = props;
  const here = `${site.base}/runs`;
  const live =
    before === undefined
      ? { "hx-sse:connect": toHref(`${here}/live`, { ...filter, org: viewer.org }), "hx-swap": "innerMorph" }
      : {};
  return (
    <Layout
      {...{ site, viewer }}
      path="/runs"
      title="Runs"
      refreshSeconds={items.some(({ completedAt }) => completedAt === null) ? 5 : undefined}
    >
      <header class="toolbar">
        <h1>Runs</h1>
        <span class="muted">{formatNumber(total)}</span>
      </header>
      {prompts.length > 0 && (
        <Filter action={here} part="runs" sort={filter.sort}>
          <Choice name="promptId" label="Prompt" allLabel="All prompts" value={filter.promptId}>
            {prompts.map((prompt) => [prompt.id, oneLine(titleOf(prompt), 60)])}
          </Choice>
          <Choice name="status" label="Status" allLabel="All statuses" value={filter.status}>
            {runStatuses.map((status) => [status, statusLabels[status]])}
          </Choice>
          <Choice name="agent" label="Agent" allLabel="All agents" value={filter.agent}>
            {agents.map((agent) => [agent, agent])}
          </Choice>
          {filter.model !== undefined && (
            <Choice name="model" label="Model" allLabel="All models" value={filter.model}>
              {[[filter.model, filter.model === noModel ? "No model" : filter.model]]}
            </Choice>
          )}
          <Choice name="trigger" label="Trigger" allLabel="All triggers" value={filter.trigger}>
            {triggers.map((trigger) => [trigger, triggerLabels[trigger]])}
          </Choice>
        </Filter>
      )}
      <form method="get" action={`${site.base}/compare`}>
        {items.length > 0 && (
          <BulkActions
            base={site.base}
            viewer={viewer}
            actions={actionsOf(viewer)}
            hint="Select 2 to 10 with a report to compare"
          />
        )}
        <div id="runs" {...live}>
          <RunsPart {...props} />
        </div>
      </form>
    </Layout>
  );
}

const actionsOf = (viewer: Viewer): BulkAction[] => [
  { label: "Compare", path: "/compare", min: 2, max: 10 },
  { label: "Export", path: "/runs/selected/export" },
  ...(may(viewer, "run") ? [{ label: "Run again", path: "/runs/selected/rerun", isForm: true }] : []),
];

/** The part of the page that updates live. */
export function RunsPart({ site, filter, before, items, next, now }: RunsPartProps) {
  const here = `${site.base}/runs`;
  const { sort, ...conditions } = filter;
  const isFiltered = Object.values(conditions).some(Boolean);
  if (items.length === 0)
    return isFiltered || before ? (
      <p class="empty">
        No runs match these filters. <a href={here}>Clear filters</a>
      </p>
    ) : (
      <NoRuns base={site.base} heading="No runs yet">
        A run sends an agent to do the task of a prompt and produces a report. Open a prompt and choose Run now, or add
        a schedule.
      </NoRuns>
    );
  return (
    <>
      <RunTable
        runs={items}
        base={site.base}
        now={now}
        isSelectable
        isGrouped={sort === undefined || sort === "created"}
        sorting={toSorting(here, filter, "-created")}
      />
      <Pager
        links={[
          before !== undefined && {
            rel: "prev",
            href: toHref(here, filter),
            text: sort === undefined ? "Newest" : "First",
          },
          next !== null && {
            rel: "next",
            href: toHref(here, { ...filter, before: next }),
            text: sort === undefined ? "Older" : "Next",
          },
        ]}
      />
    </>
  );
}
