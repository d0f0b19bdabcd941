import type { FrictionFilter, FrictionThing } from "../../friction/schema.ts";
import { frictionStates, severities } from "../../grading/kinds.ts";
import { line } from "../../grading/text.ts";
import type { Paged } from "../../http/paging.ts";
import { capitalize, formatNumber, formatTime, plain } from "../../reports/labels.ts";
import { Wide } from "../components/figures.tsx";
import { Choice, Filter, type PromptName, promptChoices } from "../components/filter.tsx";
import { Layout } from "../components/layout.tsx";
import { offsetLinks, Pager, toHref } from "../components/pager.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

export const frictionShown = 50;

type FrictionQuery = FrictionFilter & { offset?: number };

type Props = {
  site: Site;
  viewer: Viewer;
  found: Paged<FrictionThing>;
  query: FrictionQuery;
  prompts: PromptName[];
  providers: { id: string; name: string }[];
};

/** Total cost of a friction point over all runs with it. */
export function costText({ points, seconds, usd }: FrictionThing["cost"]): string {
  const parts = [
    points ? `${Number(points.toFixed(1))} points` : "",
    seconds ? `${Number(seconds.toFixed(1))} s` : "",
    usd ? `$${usd.toFixed(2)}` : "",
  ];
  return parts.filter(Boolean).join(", ") || "–";
}

/** Friction points of a prompt or of all prompts of a provider, each with its state. */
export function FrictionPage({ site, site: { base }, viewer, found, query, prompts, providers }: Props) {
  const here = `${base}/friction`;
  const { promptId, providerId, offset = 0 } = query;
  return (
    <Layout site={site} viewer={viewer} path="/friction" title="Friction">
      <div class="toolbar">
        <h1>Friction</h1>
        <span class="muted">{formatNumber(found.total)}</span>
      </div>
      {promptId === undefined && providerId === undefined ? (
        <Empty base={base} />
      ) : (
        <>
          <Filter action={here}>
            <Choice name="of" label="Prompt or provider" value={promptId ?? providerId}>
              {[
                ...promptChoices(prompts),
                ...providers.map(({ id, name }) => [id, `All prompts of ${line(name, 60)}`] as const),
              ]}
            </Choice>
            <Choice name="state" label="State" all="All states" value={query.state}>
              {frictionStates.map((each) => [each, capitalize(each)])}
            </Choice>
            <Choice name="severity" label="Severity" all="All severities" value={query.severity}>
              {severities.map((each) => [each, capitalize(each)])}
            </Choice>
          </Filter>
          {found.items.length === 0 ? (
            <p class="empty">
              No friction matches these filters. <a href={`${here}?${scopeOf(query)}`}>Clear filters</a>
            </p>
          ) : (
            <FrictionTable base={base} found={found} scope={scopeOf(query)} />
          )}
          <Pager
            links={offsetLinks(
              {
                ...{ offset, total: found.total, perPage: frictionShown },
                toPage: (to) => toHref(here, { ...query, offset: to }),
              },
              ["More severe", "Less severe"],
            )}
          />
        </>
      )}
    </Layout>
  );
}

/** The query string of the prompt or provider. */
export const scopeOf = ({ promptId, providerId }: { promptId?: string; providerId?: string }): string =>
  promptId === undefined ? `providerId=${providerId}` : `promptId=${promptId}`;

export const State = ({ state }: Pick<FrictionThing, "state">) => <span class={`pill state-${state}`}>{state}</span>;

const FrictionTable = ({ base, found, scope }: { base: string; found: Paged<FrictionThing>; scope: string }) => (
  <Wide label="Friction">
    <table class="list friction-table">
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Severity</th>
          <th scope="col">Issue</th>
          <th scope="col" class="number">
            Occurrences
          </th>
          <th scope="col" class="number">
            Cost
          </th>
          <th scope="col">First / last seen</th>
        </tr>
      </thead>
      <tbody>
        {found.items.map(
          ({
            fingerprint,
            state,
            severity,
            title,
            category,
            phase,
            seenIn,
            cost,
            firstSeenAt,
            lastSeenAt,
            isPreview,
          }) => (
            <tr key={fingerprint} class={`severity-${severity}`}>
              <td>
                <State state={state} />
              </td>
              <td>
                <span class="pill severity">{severity}</span>
              </td>
              <td class="what">
                <a href={`${base}/friction/${fingerprint}?${scope}`}>{line(title, 200)}</a>
                <small data-preview={isPreview}>
                  {plain(category)}, {phase}
                  {isPreview && ", preview only"}
                </small>
              </td>
              <td class="number">
                {seenIn.runs} of {seenIn.of}
              </td>
              <td class="number">{costText(cost)}</td>
              <td>
                {formatTime(firstSeenAt).slice(0, 10)}
                <small>{formatTime(lastSeenAt).slice(0, 10)}</small>
              </td>
            </tr>
          ),
        )}
      </tbody>
    </table>
  </Wide>
);

const Empty = ({ base }: { base: string }) => (
  <div class="empty">
    <h2>No friction yet</h2>
    <p>Friction appears here after your first run.</p>
    <p>
      <a class="button main" href={`${base}/prompts`}>
        View prompts
      </a>
    </p>
  </div>
);
