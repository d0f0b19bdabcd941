import type { FrictionFilter, FrictionSummary } from "../../friction/schema.ts";
import { frictionStates, severities } from "../../grading/kinds.ts";
import { capitalize, oneLine } from "../../grading/text.ts";
import type { Paged } from "../../http/paging.ts";
import { formatNumber, humanize } from "../../reports/labels.ts";
import { NoRuns } from "../components/empty.tsx";
import { ScrollArea, type Sorting, TableHead, toSorting } from "../components/figures.tsx";
import { Choice, Filter, type PromptName, promptChoices } from "../components/filter.tsx";
import { Layout } from "../components/layout.tsx";
import { offsetLinks, Pager, toHref } from "../components/pager.tsx";
import { FirstAndLast } from "../components/when.tsx";
import type { PageProps } from "../viewer.ts";

export const frictionPerPage = 50;

type FrictionQuery = FrictionFilter & { sort?: string; offset?: number };

type Props = PageProps & {
  friction: Paged<FrictionSummary>;
  query: FrictionQuery;
  prompts: PromptName[];
  providers: { id: string; name: string }[];
  agents: string[];
};

/** The mean cost of a friction point in a run that hits it. */
export function costText({ points, seconds, usd }: FrictionSummary["cost"], seenIn: FrictionSummary["seenIn"]): string {
  const perRun = (total: number) => total / Math.max(1, seenIn.runs);
  const parts = [
    points ? `${Number(perRun(points).toFixed(1))} points` : "",
    seconds ? `${Number(perRun(seconds).toFixed(1))} s` : "",
    usd ? `$${perRun(usd).toFixed(2)}` : "",
  ];
  return parts.filter(Boolean).join(", ") || "–";
}

/** Friction points of a prompt, or of all prompts of a provider. Each is shown with its state. */
export function FrictionPage({ site, site: { base }, viewer, friction, query, prompts, providers, agents }: Props) {
  const here = `${base}/friction`;
  const { promptId, providerId, state, severity, agent, sort, offset = 0 } = query;
  const linkQuery = { promptId, providerId, state, severity, agent, sort };
  const toPage = (offset: number) => toHref(here, { ...linkQuery, offset });
  return (
    <Layout site={site} viewer={viewer} path="/friction" title="Friction">
      <div class="toolbar">
        <h1>Friction</h1>
        <span class="muted">{formatNumber(friction.total)}</span>
      </div>
      <FrictionTabs base={base} path="/friction" />
      {prompts.length === 0 ? (
        <NoRuns base={base} heading="No friction yet">
          Friction appears here after your first run.
        </NoRuns>
      ) : (
        <>
          <Filter action={here} part="friction-list" sort={query.sort}>
            <Choice name="of" label="Prompt or provider" allLabel="All prompts" value={promptId ?? providerId}>
              {[
                ...promptChoices(prompts),
                ...providers.map(({ id, name }) => [id, `All prompts of ${oneLine(name, 60)}`] as const),
              ]}
            </Choice>
            <Choice name="state" label="State" allLabel="All states" value={query.state}>
              {frictionStates.map((each) => [each, capitalize(each)])}
            </Choice>
            <Choice name="severity" label="Severity" allLabel="All severities" value={query.severity}>
              {severities.map((each) => [each, capitalize(each)])}
            </Choice>
            <Choice name="agent" label="Agent" allLabel="All agents" value={agent}>
              {agents.map((each) => [each, each])}
            </Choice>
          </Filter>
          <div id="friction-list">
            {friction.items.length === 0 ? (
              <p class="empty">
                No friction matches these filters. <a href={`${here}?${toScopeQuery(query)}`}>Clear filters</a>
              </p>
            ) : (
              <FrictionTable
                base={base}
                friction={friction}
                scope={toScopeQuery(query)}
                sorting={toSorting(here, linkQuery, "-severity")}
              />
            )}
            <Pager
              links={offsetLinks(
                { offset, total: friction.total, perPage: frictionPerPage, toPage },
                sort === undefined ? ["More severe", "Less severe"] : ["Previous", "Next"],
              )}
            />
          </div>
        </>
      )}
    </Layout>
  );
}

const tabs = [
  ["From runs", "/friction"],
  ["From the field", "/friction/field"],
] as const;

/** Links between the pages about friction. `path`: the path of the current page. */
export const FrictionTabs = ({ base, path }: { base: string; path: (typeof tabs)[number][1] }) => (
  <nav class="tabs" aria-label="Friction">
    {tabs.map(([name, each]) => (
      <a key={each} href={base + each} aria-current={each === path ? "page" : undefined}>
        {name}
      </a>
    ))}
  </nav>
);

/** The query string that selects the prompt or provider. */
export function toScopeQuery({ promptId, providerId }: { promptId?: string; providerId?: string }): string {
  if (promptId !== undefined) return `promptId=${promptId}`;
  return providerId === undefined ? "" : `providerId=${providerId}`;
}

/** The state of a friction point, in the color of the state. */
export const State = ({ state }: { state: string }) => <span class={`pill state-${state}`}>{state}</span>;

type TableProps = { base: string; friction: Paged<FrictionSummary>; scope: string; sorting: Sorting };

const FrictionTable = ({ base, friction, scope, sorting }: TableProps) => (
  <ScrollArea label="Friction">
    <table class="list stacked friction-table">
      <TableHead
        labels={["State", { label: "Severity", sort: "severity", largestFirst: true }, "Issue"]}
        numbers={[
          { label: "Occurrences", sort: "runs" },
          { label: "Cost per run", sort: "cost" },
          { label: "First / last seen", sort: "seen" },
        ]}
        sorting={sorting}
      />
      <tbody>
        {friction.items.map(
          ({
            fingerprint,
            state,
            severity,
            title,
            category,
            phase,
            seenIn,
            isPreview,
            promptIds,
            agents,
            ...point
          }) => (
            <tr key={fingerprint} class={`severity-${severity}`}>
              <td data-label="State">
                <State state={state} />
              </td>
              <td data-label="Severity">
                <span class="pill severity">{severity}</span>
              </td>
              <td class="what">
                <a href={`${base}/friction/${fingerprint}?${scope || `promptId=${promptIds[0]}`}`}>
                  {oneLine(title, 200)}
                </a>
                <small data-preview={isPreview}>
                  {humanize(category)}, {phase}
                  {agents.length > 0 && `, ${agents.join(", ")}`}
                  {isPreview && ", preview only"}
                </small>
              </td>
              <td class="number" data-label="Occurrences">
                {seenIn.runs} of {seenIn.of}
              </td>
              <td class="number" data-label="Cost per run">
                {costText(point.cost, seenIn)}
              </td>
              <FirstAndLast first={point.firstSeenAt} last={point.lastSeenAt} />
            </tr>
          ),
        )}
      </tbody>
    </table>
  </ScrollArea>
);
