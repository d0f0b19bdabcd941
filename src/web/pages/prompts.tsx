import { capitalize } from "../../grading/text.ts";
import type { PromptFilter } from "../../prompts/lists.ts";
import { formatNumber } from "../../reports/labels.ts";
import { toSorting } from "../components/figures.tsx";
import { Choice, Filter } from "../components/filter.tsx";
import { Layout } from "../components/layout.tsx";
import { type ListRange, offsetLinks, Pager, toHref } from "../components/pager.tsx";
import { type PromptScore, ScoreTable } from "../components/score.tsx";
import { type BulkAction, BulkActions } from "../components/selection.tsx";
import { When } from "../components/when.tsx";
import { may, type PageProps, type Viewer } from "../viewer.ts";

type Props = PageProps &
  ListRange & {
    filter: PromptFilter & { sort?: string };
    /** The tags to filter by. */
    tags: string[];
    prompts: PromptScore[];
    now: number;
  };

/** The prompts of the organization, newest first. */
export function PromptsPage({ site, viewer, filter, tags, prompts, total, offset, perPage, now }: Props) {
  const here = `${site.base}/prompts`;
  const { search, status, tag, sort } = filter;
  const actions: BulkAction[] = [
    ...(may(viewer, "run") ? [{ label: "Run", path: "/prompts/selected/run", isForm: true }] : []),
    ...(may(viewer, "archive") ? [{ label: "Archive", path: "/prompts/selected/archive", isForm: true }] : []),
  ];
  const isFiltered = Boolean(search || status || tag);
  const toPage = (at: number) => toHref(here, { ...filter, offset: at });
  return (
    <Layout site={site} viewer={viewer} path="/prompts" title="Prompts">
      <header class="toolbar">
        <h1>Prompts</h1>
        <span class="muted">{formatNumber(total)}</span>
        <a href={`${site.base}/schedules`}>Schedules</a>
        {may(viewer, "write") && (
          <span class="end">
            <a class="button" href={`${here}/propose`}>
              Propose from docs
            </a>
            <a class="button main" href={`${here}/new`}>
              New prompt
            </a>
          </span>
        )}
      </header>
      {(isFiltered || total > 0) && (
        <Filter action={here} part="prompts" trigger="change, input delay:250ms" sort={sort}>
          <input
            type="search"
            name="search"
            value={search}
            maxLength={200}
            aria-label="Search titles and tasks"
            placeholder="Search titles and tasks"
          />
          <Choice name="status" label="Status" allLabel="Active and paused" value={status}>
            {["active", "paused", "archived", "all"].map((each) => [each, capitalize(each)])}
          </Choice>
          {tags.length > 0 && (
            <Choice name="tag" label="Tag" allLabel="All tags" value={tag}>
              {tags.map((each) => [each, each])}
            </Choice>
          )}
        </Filter>
      )}
      <form id="prompts" method="get" action={here}>
        {prompts.length > 0 && actions.length > 0 && (
          <BulkActions base={site.base} viewer={viewer} actions={actions} hint="Select prompts" />
        )}
        {prompts.length > 0 ? (
          <ScoreTable
            isSelectable={actions.length > 0}
            base={site.base}
            prompts={prompts}
            sorting={toSorting(here, filter, "-created")}
            columns={["Schedule"]}
            numbers={[{ label: "Next run", sort: "next", largestFirst: false }]}
            cells={({ prompt: { frequency, nextEvaluationAt } }) => (
              <>
                <td class="soft">{capitalize(frequency ?? "manual")}</td>
                <td class="number soft">{nextEvaluationAt ? <When at={nextEvaluationAt} now={now} /> : "–"}</td>
              </>
            )}
          />
        ) : (
          <NoPrompts {...{ here, viewer }} isFiltered={isFiltered || offset > 0} />
        )}
        {total > 0 && (
          <p>
            <a href={toHref(`${site.base}/matrix`, { tag })}>Compare agents side by side</a>
            {" · "}
            <a href={`${site.base}/suites`}>Compare products with a suite</a>
            {tag && may(viewer, "write") && (
              <>
                {" · "}
                <a href={`${here}/schedule?tag=${encodeURIComponent(tag)}`}>Schedule all prompts with this tag</a>
              </>
            )}
          </p>
        )}
        <Pager links={offsetLinks({ offset, perPage, total, toPage })} />
      </form>
    </Layout>
  );
}

const NoPrompts = ({ here, viewer, isFiltered }: { here: string; viewer: Viewer; isFiltered: boolean }) =>
  isFiltered ? (
    <p class="empty">
      No prompts match these filters. <a href={here}>Clear filters</a>
    </p>
  ) : (
    <div class="empty">
      <h2>No prompts yet</h2>
      <p>
        A prompt is a task with an end goal: something a developer would ask an agent to do with your tool. Run it
        manually, over the API or on a schedule.
      </p>
      {may(viewer, "write") && (
        <p>
          <a class="button main" href={`${here}/new`}>
            Create your first prompt
          </a>{" "}
          or <a href={`${here}/propose`}>have some proposed from your docs</a>
        </p>
      )}
    </div>
  );
