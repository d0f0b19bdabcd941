import { frictionStates, severities } from "../../grading/kinds.ts";
import { line } from "../../grading/words.ts";
import type { Paged } from "../../paging.ts";
import type { FrictionFilter, FrictionThing } from "../../reports/frictionschema.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { numberWords, plain, timeWords } from "../words.ts";
import { Choice, Filter, type PromptName, promptChoices } from "./choice.tsx";
import { Wide } from "./figures.tsx";

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

/** What a friction has cost over all runs that met it. */
export function costWords({ points, seconds, usd }: FrictionThing["cost"]): string {
  const parts = [
    points ? `${Number(points.toFixed(1))} points` : "",
    seconds ? `${Number(seconds.toFixed(1))} s` : "",
    usd ? `$${usd.toFixed(2)}` : "",
  ];
  return parts.filter(Boolean).join(", ") || "–";
}

/** Everything that stood in the way of a prompt, or of a provider's prompts, each thing once, with its life. */
export function FrictionPage({ site, site: { base }, viewer, found, query, prompts, providers }: Props) {
  const here = `${base}/friction`;
  const { promptId, providerId, offset = 0 } = query;
  return (
    <Layout site={site} viewer={viewer} path="/friction" title="Friction">
      <div class="toolbar">
        <h1>Friction</h1>
        <span class="muted">{numberWords(found.total)}</span>
      </div>
      {promptId === undefined && providerId === undefined ? (
        <Empty base={base} />
      ) : (
        <>
          <Filter action={here}>
            <Choice name="of" label="Prompt or provider" value={promptId ?? providerId}>
              {[
                ...promptChoices(prompts),
                ...providers.map(({ id, name }) => [id, `All of ${line(name, 60)}`] as const),
              ]}
            </Choice>
            <Choice name="state" label="State" all="Any state" value={query.state}>
              {frictionStates.map((each) => [each, each])}
            </Choice>
            <Choice name="severity" label="Severity" all="Any severity" value={query.severity}>
              {severities.map((each) => [each, each])}
            </Choice>
          </Filter>
          {found.items.length === 0 ? (
            <p class="empty">
              Nothing that matches stands in the way, in any published report.{" "}
              <a href={`${here}?${scopeOf(query)}`}>Show any state and severity</a>
            </p>
          ) : (
            <Things base={base} found={found} scope={scopeOf(query)} />
          )}
          <nav class="pager" aria-label="Pages">
            <span />
            <span class="end">
              {offset > 0 && (
                <a
                  class="button"
                  rel="prev"
                  href={toHref(here, { ...query, offset: Math.max(0, offset - frictionShown) })}
                >
                  Worse
                </a>
              )}
              {offset + frictionShown < found.total && (
                <a class="button" rel="next" href={toHref(here, { ...query, offset: offset + frictionShown })}>
                  Less bad
                </a>
              )}
            </span>
          </nav>
        </>
      )}
    </Layout>
  );
}

/** The query that names the same prompt or provider. */
export const scopeOf = ({ promptId, providerId }: { promptId?: string; providerId?: string }): string =>
  promptId === undefined ? `providerId=${providerId}` : `promptId=${promptId}`;

function toHref(here: string, query: FrictionQuery): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== 0) params.set(name, String(value));
  return `${here}?${params}`;
}

export const State = ({ state }: Pick<FrictionThing, "state">) => <span class={`pill state-${state}`}>{state}</span>;

const Things = ({ base, found, scope }: { base: string; found: Paged<FrictionThing>; scope: string }) => (
  <Wide label="Friction">
    <table class="list things">
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Severity</th>
          <th scope="col">What stood in the way</th>
          <th scope="col" class="number">
            Met in
          </th>
          <th scope="col" class="number">
            Cost
          </th>
          <th scope="col">First and last</th>
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
                <small>
                  {plain(category)}, {phase}
                  {isPreview && ", on a preview only"}
                </small>
              </td>
              <td class="number">
                {seenIn.runs} of {seenIn.of}
              </td>
              <td class="number">{costWords(cost)}</td>
              <td>
                {timeWords(firstSeenAt).slice(0, 10)}
                <small>{timeWords(lastSeenAt).slice(0, 10)}</small>
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
    <h2>No prompt yet</h2>
    <p>
      What stands in agents’ way is found by runs of a prompt. Over many runs each thing has a life: new, open, fixed,
      back.
    </p>
    <p>
      <a class="button main" href={`${base}/prompts`}>
        Go to the prompts
      </a>
    </p>
  </div>
);
