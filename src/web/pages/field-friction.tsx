import { fieldStates } from "../../db/tables/field.ts";
import type { FieldFilter, FieldFriction, FieldFrictionDetail } from "../../field/schema.ts";
import { frictionCategories } from "../../grading/kinds.ts";
import { capitalize, oneLine } from "../../grading/text.ts";
import type { Paged } from "../../http/paging.ts";
import { formatNumber, humanize } from "../../reports/labels.ts";
import { httpUrl } from "../../schema.ts";
import { Fact, ScrollArea, TableHead } from "../components/figures.tsx";
import { Choice, Filter } from "../components/filter.tsx";
import { ButtonForm } from "../components/form-parts.tsx";
import { ExternalLink, Layout } from "../components/layout.tsx";
import { offsetLinks, Pager, toHref } from "../components/pager.tsx";
import { FirstAndLast, Time } from "../components/when.tsx";
import { may, type PageProps } from "../viewer.ts";
import { FrictionTabs, State } from "./friction.tsx";

export const fieldFrictionPerPage = 50;

type ListProps = PageProps & {
  friction: Paged<FieldFriction>;
  query: FieldFilter & { offset?: number };
};

/** Friction that agents in the field reported. */
export function FieldFrictionPage({ site, site: { base }, viewer, friction, query }: ListProps) {
  const here = `${base}/friction/field`;
  const { state, verified, category, offset = 0 } = query;
  const toPage = (offset: number) => toHref(here, { state, verified, category, offset });
  const isFiltered = [state, verified, category].some((each) => each !== undefined);
  return (
    <Layout site={site} viewer={viewer} path="/friction/field" title="Friction from the field">
      <div class="toolbar">
        <h1>Friction</h1>
        <span class="muted">{formatNumber(friction.total)}</span>
      </div>
      <FrictionTabs base={base} path="/friction/field" />
      {friction.total === 0 && !isFiltered ? (
        <div class="empty">
          <h2>No reports yet</h2>
          <p>Agents that use your product can report friction here. Nobody checks what they write.</p>
          <p>
            <a class="button main" href={`${base}/docs/field`}>
              Set up reports
            </a>
          </p>
        </div>
      ) : (
        <>
          <Filter action={here} part="field-list">
            <Choice name="verified" label="Verification" allLabel="All reports" value={verified}>
              {[
                ["false", "Unverified"],
                ["true", "Also hit by runs"],
              ]}
            </Choice>
            <Choice name="state" label="State" allLabel="All states" value={state}>
              {fieldStates.map((each) => [each, capitalize(each)])}
            </Choice>
            <Choice name="category" label="Category" allLabel="All categories" value={category}>
              {frictionCategories.map((each) => [each, capitalize(humanize(each))])}
            </Choice>
          </Filter>
          <div id="field-list">
            {friction.items.length === 0 ? (
              <p class="empty">
                No reports match these filters. <a href={here}>Clear filters</a>
              </p>
            ) : (
              <FieldTable base={base} items={friction.items} />
            )}
            <Pager links={offsetLinks({ offset, total: friction.total, perPage: fieldFrictionPerPage, toPage })} />
          </div>
        </>
      )}
    </Layout>
  );
}

const VerificationMark = ({ isVerified }: { isVerified: boolean }) => (
  <span class="pill">{isVerified ? "also hit by runs" : "unverified"}</span>
);

const FieldTable = ({ base, items }: { base: string; items: FieldFriction[] }) => (
  <ScrollArea label="Friction from the field">
    <table class="list stacked friction-table">
      <TableHead labels={["State", "Verification", "Issue"]} numbers={["Reports", "First / last reported"]} />
      <tbody>
        {items.map(({ id, state, isVerified, title, category, where, reports, firstReportedAt, lastReportedAt }) => (
          <tr key={id}>
            <td data-label="State">
              <State state={state} />
            </td>
            <td data-label="Verification">
              <VerificationMark isVerified={isVerified} />
            </td>
            <td class="what">
              <a href={`${base}/friction/field/${id}`}>{title}</a>
              <small>
                {humanize(category)}, {oneLine(where, 120)}
              </small>
            </td>
            <td class="number" data-label="Reports">
              {formatNumber(reports)}
            </td>
            <FirstAndLast first={firstReportedAt} last={lastReportedAt} />
          </tr>
        ))}
      </tbody>
    </table>
  </ScrollArea>
);

type Props = PageProps & { friction: FieldFrictionDetail };

/** One friction point from the field, with its newest reports. */
export function FieldFrictionDetailPage({ site, site: { base }, viewer, friction }: Props) {
  const { id, title, category, where, state, isVerified, reports, latest } = friction;
  const path = `/friction/field/${id}`;
  return (
    <Layout
      {...{ site, viewer, path }}
      title={`Friction: ${oneLine(title, 100)}`}
      crumbs={[{ name: "Friction from the field", path: "/friction/field" }, { name: oneLine(title, 60) }]}
    >
      <header class="head">
        <p class="pills">
          <State state={state} />
          <VerificationMark isVerified={isVerified} />
          <span class="pill">{humanize(category)}</span>
        </p>
        <h1>{title}</h1>
        <p class="lead">Reported by agents in the field. Nobody has checked these texts.</p>
      </header>
      <dl class="facts">
        <Fact name="Where">{httpUrl(where) ? <ExternalLink url={where} /> : where}</Fact>
        <Fact name="Reports">{formatNumber(reports)}</Fact>
        <Fact name="First reported">
          <Time at={friction.firstReportedAt} />
        </Fact>
        <Fact name="Last reported">
          <Time at={friction.lastReportedAt} />
        </Fact>
        {friction.friction.length > 0 && (
          <Fact name="Friction in runs">
            {friction.friction.map((fingerprint) => (
              <a key={fingerprint} href={`${base}/friction/${fingerprint}`}>
                {fingerprint}
              </a>
            ))}
          </Fact>
        )}
        {friction.changedAt && (
          <Fact name={friction.state === "open" ? "Reopened" : "Closed"}>
            <Time at={friction.changedAt} /> by {friction.changedBy}
          </Fact>
        )}
        {friction.reason && <Fact name="Reason">{friction.reason}</Fact>}
      </dl>
      {may(viewer, "write") && <StateForms path={base + path} state={state} />}
      <section>
        <h2>{reports > latest.length ? `Newest ${latest.length} reports` : "Reports"}</h2>
        {latest.map(({ id, tried, happened, agent, createdAt }) => (
          <article key={id} class="field-report">
            <p class="muted">
              <Time at={createdAt} />
              {agent && `, ${agent}`}
            </p>
            <h3>Tried</h3>
            <p class="as-written">{tried}</p>
            <h3>Happened</h3>
            <p class="as-written">{happened}</p>
          </article>
        ))}
      </section>
    </Layout>
  );
}

const StateForms = ({ path, state }: { path: string; state: FieldFriction["state"] }) => (
  <div class="acts">
    {state === "resolved" || state === "dismissed" ? (
      <ButtonForm action={`${path}/state`} name="state" value="open">
        Reopen
      </ButtonForm>
    ) : (
      <>
        <ButtonForm action={`${path}/state`} class="main" name="state" value="resolved">
          Mark resolved
        </ButtonForm>
        <details class="act">
          <summary>Not a problem</summary>
          <form method="post" action={`${path}/state`}>
            <input type="hidden" name="state" value="dismissed" />
            <label>
              Reason
              <textarea name="reason" rows={2} maxLength={2000} required />
            </label>
            <p class="hint">Hides it from the list, with later reports of the same. You can undo this.</p>
            <button type="submit">Dismiss</button>
          </form>
        </details>
      </>
    )}
  </div>
);
