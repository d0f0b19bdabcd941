import { gateStatuses } from "../../db/tables/gates.ts";
import { falseAlarmsText } from "../../experiments/labels.ts";
import type { Experiment } from "../../experiments/schema.ts";
import type { GateFilter } from "../../gates/gates.ts";
import type { Gate } from "../../gates/schema.ts";
import { capitalize, count, signedPoints } from "../../grading/text.ts";
import { formatNumber, humanize } from "../../reports/labels.ts";
import { ComparedFriction } from "../components/compared-friction.tsx";
import { Fact, List, ScrollArea, TableHead, TimeFacts, toSorting } from "../components/figures.tsx";
import { Choice, Filter, type PromptName, promptChoices } from "../components/filter.tsx";
import { ExternalLink, Layout } from "../components/layout.tsx";
import { offsetLinks, Pager, toHref } from "../components/pager.tsx";
import { VerdictCard, withMinus } from "../components/verdict.tsx";
import { When } from "../components/when.tsx";
import { SidesWhyLink } from "../components/why-link.tsx";
import { may, type PageProps } from "../viewer.ts";

/** `runStatus`: the run status with the same color. */
const statusLooks: Record<Gate["status"], { label: string; runStatus: string; notice: string }> = {
  running: { label: "Running", runStatus: "running", notice: "notice" },
  passed: { label: "Passed", runStatus: "completed", notice: "notice good" },
  failed: { label: "Failed", runStatus: "failed", notice: "notice bad" },
  error: { label: "Inconclusive", runStatus: "superseded", notice: "notice" },
};

const gateTitle = ({ prompts: [first, ...others] }: Gate): string => {
  const title = first?.title ?? "Gate";
  return others.length === 0 ? title : `${title} and ${count(others.length, "other prompt")}`;
};

/** The status of a gate: a dot and a label, in the colors of the run status. */
const GateStatus = ({ status }: { status: Gate["status"] }) => (
  <span class={`status-mark run-${statusLooks[status].runStatus}`} data-status={status}>
    {statusLooks[status].label}
  </span>
);

type ListProps = PageProps & {
  gates: Gate[];
  total: number;
  query: GateFilter & { offset?: number | null };
  prompts: PromptName[];
  perPage: number;
  now: number;
};

const hasFilter = ({ promptId, status }: GateFilter) => promptId !== undefined || status !== undefined;

/** Gates of the organization, newest first. */
export function GatesPage(props: ListProps) {
  const { site, viewer, total, query, prompts, perPage } = props;
  const here = `${site.base}/gates`;
  const { promptId, status, sort } = query;
  const offset = query.offset ?? 0;
  const toPage = (offset: number) => toHref(here, { promptId, status, sort, offset });
  return (
    <Layout site={site} viewer={viewer} path="/gates" title="Gates">
      <div class="toolbar">
        <h1>Gates</h1>
        <span class="muted">{formatNumber(total)}</span>
        <a href={`${site.base}/bisects`}>Bisects</a>
      </div>
      {(hasFilter(query) || total > 0) && (
        <Filter action={here} part="gates" sort={sort}>
          <Choice name="promptId" label="Prompt" allLabel="All prompts" value={promptId}>
            {promptChoices(prompts)}
          </Choice>
          <Choice name="status" label="Status" allLabel="All statuses" value={status}>
            {gateStatuses.map((each) => [each, statusLooks[each].label])}
          </Choice>
        </Filter>
      )}
      <div id="gates">
        <GateList {...props} />
        <Pager links={offsetLinks({ offset, perPage, total, toPage })} />
      </div>
    </Layout>
  );
}

function GateList({ site: { base }, gates, query, now }: ListProps) {
  const here = `${base}/gates`;
  if (gates.length === 0 && hasFilter(query))
    return (
      <p class="empty">
        No gates match these filters. <a href={here}>Clear filters</a>
      </p>
    );
  if (gates.length === 0)
    return (
      <div class="empty">
        <h2>No gates yet</h2>
        <p>
          A gate compares a preview with your live docs in CI and fails if agents do worse on it.{" "}
          <a href={`${base}/docs/gates`}>Set up a gate</a>
        </p>
      </div>
    );
  return (
    <ScrollArea label="Gates">
      <table class="list run-list">
        <TableHead
          labels={["Status", "Prompts", "Reason"]}
          numbers={[
            { label: "Change", sort: "change", largestFirst: false },
            { label: "Created", sort: "created" },
          ]}
          sorting={toSorting(here, query, "-created")}
        />
        <tbody>
          {gates.map((gate) => (
            <tr key={gate.id} data-status={gate.status}>
              <td>
                <GateStatus status={gate.status} />
              </td>
              <td class="title">
                <a class="plain" href={`${here}/${gate.id}`}>
                  {gateTitle(gate)}
                </a>
              </td>
              <td class="soft">{shortReason(gate)}</td>
              <td class="number">{deltaText(gate)}</td>
              <td class="number soft">
                <When at={gate.createdAt} now={now} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollArea>
  );
}

/** Why a gate reached its decision, in short: the cause, or otherwise the result of the comparison. */
function shortReason(gate: Gate): string {
  const { verdict, evidence } = gate.comparison ?? {};
  const evidenceText = evidence && `${verdict ? humanize(verdict) : "no verdict"}: ${evidence.reason}`;
  return withMinus(capitalize(gate.cause ?? evidenceText ?? ""));
}

function deltaText({ comparison }: Gate): string {
  const delta = comparison?.evidence.delta ?? null;
  return delta === null ? "–" : signedPoints(delta.value);
}

/** `selfComparison`: the newest comparison of the gate's first prompt with itself; null: there is none. */
type Props = PageProps & { gate: Gate; selfComparison: Experiment | null; now: number };

/** A gate: its verdict, both sides, and the friction that is new or resolved. */
export function GatePage({ site, site: { base }, viewer, gate, selfComparison, now }: Props) {
  const { status, cause, progress, comparison, spentUsd, minScore, urlMap, warnings, head } = gate;
  return (
    <Layout
      {...{ site, viewer }}
      path={`/gates/${gate.id}`}
      title={`Gate: ${gateTitle(gate)}`}
      refreshSeconds={status === "running" ? 10 : undefined}
      crumbs={[{ name: "Gates", path: "/gates" }, { name: gateTitle(gate) }]}
    >
      <header class="toolbar">
        <h1>{gateTitle(gate)}</h1>
        <GateStatus status={status} />
      </header>
      {(cause !== null || status === "running") && (
        <p class={statusLooks[status].notice}>
          {cause === null ? `${progress.ended} of ${progress.of} runs finished.` : `${capitalize(cause)}.`}
        </p>
      )}
      {warnings.map((warning) => (
        <p key={warning} class="notice">
          {warning}
        </p>
      ))}
      {comparison && (
        <VerdictCard verdict={comparison.verdict} evidence={comparison.evidence} names={["Base", "Head"]} />
      )}
      {comparison && <SidesWhyLink comparison={comparison} base={base} />}
      {comparison && <ComparedFriction comparison={comparison} base={base} />}
      <Trust {...{ base, gate, selfComparison }} mayRun={may(viewer, "run")} />
      <h2>Prompts</h2>
      <List label="Prompts" labels={["Prompt", "Base", "Head"]}>
        {gate.prompts.map(({ id, title, headRequestId, baseRequestId }) => (
          <tr key={id}>
            <th scope="row">
              <a href={`${base}/prompts/${id}`}>{title ?? "Untitled prompt"}</a>
            </th>
            <td>
              {baseRequestId === null ? "Baseline" : <a href={`${base}/evals/${baseRequestId}`}>Base evaluation</a>}
            </td>
            <td>
              <a href={`${base}/evals/${headRequestId}`}>Head evaluation</a>
            </td>
          </tr>
        ))}
      </List>
      <h2>Details</h2>
      <dl class="facts">
        <TimeFacts createdAt={gate.createdAt} completedAt={gate.completedAt} now={now} />
        <Fact name="Runs">
          {progress.ended} of {progress.of} finished
        </Fact>
        {comparison === null && <Fact name="Score">{head.score === null ? "–" : head.score.mean}</Fact>}
        {minScore !== null && <Fact name="Minimum score">{minScore}</Fact>}
        <Fact name="Cost">{spentUsd === null ? "Unknown" : `$${spentUsd.toFixed(2)}`}</Fact>
        {Object.entries(urlMap).map(([from, to]) => (
          <Fact key={from} name={from}>
            <ExternalLink url={to} />
          </Fact>
        ))}
      </dl>
    </Layout>
  );
}

type TrustProps = { gate: Props["gate"]; selfComparison: Props["selfComparison"]; base: string; mayRun: boolean };

/** How often a gate of its first prompt fails without a real change, if that was measured. */
const Trust = ({ base, gate: { prompts }, selfComparison, mayRun }: TrustProps) => {
  const text = selfComparison && falseAlarmsText(selfComparison);
  if (!text && !mayRun) return null;
  return (
    <>
      <h2>Trust</h2>
      {text ? (
        <p>
          {text} <a href={`${base}/experiments/${selfComparison?.id}`}>See the comparison</a>
        </p>
      ) : (
        <p class="muted">
          It is not known how often such a gate fails without a reason.{" "}
          <a href={`${base}/experiments/new?prompt=${prompts[0]?.id}&itself=1`}>Compare the base with itself</a>
        </p>
      )}
    </>
  );
};
