import type { Comparison } from "../../comparisons/compare.ts";
import type { ReportsComparison } from "../../comparisons/side-by-side.ts";
import { timeOfId } from "../../db/rows.ts";
import { count, oneLine, withSign } from "../../grading/text.ts";
import { agentLabel, humanize, metricLabels, outcomeLabels, scoreText } from "../../reports/labels.ts";
import type { DocsVariant } from "../../runs/lists.ts";
import { toIso } from "../../schema.ts";
import { ComparedFriction } from "../components/compared-friction.tsx";
import { GradeMark, List, ScrollArea } from "../components/figures.tsx";
import { Layout } from "../components/layout.tsx";
import { DocsMark } from "../components/run-table.tsx";
import { VerdictCard } from "../components/verdict.tsx";
import { Time } from "../components/when.tsx";
import { SidesWhyLink, WhyLink } from "../components/why-link.tsx";
import type { PageProps } from "../viewer.ts";

type Column = { slug: string; title: string; variant: DocsVariant };
/** `isAcrossAgents`: whether the viewer asked to compare different agents. */
type Props = PageProps & {
  comparison: ReportsComparison;
  titles: string[];
  /** The common prompt of all reports; undefined: they have different prompts. */
  promptId: string | undefined;
  docsVariants: DocsVariant[];
  isAcrossAgents: boolean;
};

/** One value for each report. `isCost`: whether lower is better. */
type MetricRow = { name: string; values: (number | null)[]; isCost: boolean; format: (value: number) => string };

const agentKey = (agent: ReportsComparison["reports"][number]["agent"]) =>
  `${agentLabel(agent)} ${agent.contextDigest}`;

const formatPoints = (value: number) => value.toFixed(1);

const valueFormats: Record<string, (value: number) => string> = {
  timeSeconds: (value) => `${value} s`,
  costUsd: (value) => `$${value.toFixed(2)}`,
};

/** The change from the first report to the last; null if either has no value. */
function changeOf({ values }: MetricRow): number | null {
  const [first, last] = [values[0] ?? null, values.at(-1) ?? null];
  // Rounded, because 0.3 − 0.1 isn't exactly 0.2.
  return first === null || last === null ? null : Number((last - first).toFixed(4));
}

/**
 * How much worse the last report is than the first, relative to the larger of both values, or to 1 if both are smaller; null if either has no value.
 */
function lossOf(row: MetricRow): number | null {
  const change = changeOf(row);
  if (change === null) return null;
  const largest = Math.max(1, Math.abs(row.values[0] ?? 0), Math.abs(row.values.at(-1) ?? 0));
  return (row.isCost ? change : -change) / largest;
}

const worstFirst = (rows: MetricRow[]) => rows.toSorted((a, b) => (lossOf(b) ?? -1) - (lossOf(a) ?? -1));

/** 2 to 10 reports side by side. */
export function ComparePage({ site, viewer, comparison, titles, promptId, docsVariants, isAcrossAgents }: Props) {
  const { reports, friction, comparability } = comparison;
  const columns = reports.map(({ slug }, i) => ({ slug, title: titles[i] ?? slug, variant: docsVariants[i] ?? null }));
  const differences = (
    <div id="differences">
      <p>
        {isAcrossAgents ? "Comparing reports with these differences:" : "These reports aren’t directly comparable:"}
      </p>
      <ul>
        {/* The differences name prompts by ID. Here, the titles are shown. */}
        {comparability.differences.map((each) => (
          <li key={each}>{each.startsWith("prompt: ") ? `prompt: ${[...new Set(titles)].join(" vs. ")}` : each}</li>
        ))}
      </ul>
    </div>
  );
  return (
    <Layout
      {...{ site, viewer }}
      path="/compare"
      title="Report comparison"
      crumbs={[{ name: "Reports", path: "/reports" }, { name: "Comparison" }]}
    >
      <h1>Comparison of {reports.length} reports</h1>
      <VerdictCard
        verdict={comparison.verdict}
        evidence={comparison.evidence}
        reason={!comparability.same && !isAcrossAgents && differences}
      />
      {comparability.same && (
        <WhyLink
          base={site.base}
          promptId={promptId}
          delta={comparison.evidence.delta}
          before={comparison.evidence.sides.slice(0, 1).map(({ evalRequestId }) => evalRequestId)}
          after={comparison.evidence.sides.slice(1, 2).map(({ evalRequestId }) => evalRequestId)}
        />
      )}
      {!comparability.same && isAcrossAgents && <div class="notice">{differences}</div>}
      {(isAcrossAgents || new Set(reports.map(({ agent }) => agentKey(agent))).size > 1) && (
        <form method="get" action={`${site.base}/compare`} class="toolbar">
          <input type="hidden" name="slugs" value={reports.map(({ slug }) => slug).join(",")} />
          <label class="check">
            <input type="checkbox" name="acrossAgents" value="1" checked={isAcrossAgents} /> Compare across agents,
            versions and models
          </label>
          <button type="submit">Update</button>
        </form>
      )}
      <MetricTable {...{ base: site.base, comparison, columns }} />
      <Friction base={site.base} friction={friction} columns={columns} />
    </Layout>
  );
}

type TableProps = { base: string; comparison: ReportsComparison; columns: Column[] };

/** The score, the dimensions and the metrics of each report. */
function MetricTable({ base, comparison: { reports, dimensions, metrics }, columns }: TableProps) {
  const scores: MetricRow = {
    name: "Score",
    values: reports.map(({ score }) => score),
    isCost: false,
    format: formatPoints,
  };
  const dimensionRows = dimensions.map(
    ({ name, scores }): MetricRow => ({ name, values: scores, isCost: false, format: formatPoints }),
  );
  const metricRows = metrics
    .filter(({ values }) => values.some((value) => value !== null))
    .map(({ name, values }): MetricRow => {
      const format = valueFormats[name] ?? String;
      return { name: metricLabels[name] ?? name, values, isCost: true, format };
    });
  return (
    <ScrollArea label="Side-by-side metrics">
      <table class="list compared">
        <thead>
          <tr>
            <th scope="col">Metric</th>
            {reports.map(({ slug, agent, score, scope, grade, outcome, createdAt }, i) => (
              <th scope="col" key={slug}>
                <GradeMark grade={grade} />
                <a href={`${base}/reports/${slug}`}>{columns[i]?.title}</a>{" "}
                <DocsMark variant={columns[i]?.variant ?? null} />
                <small>
                  <Time at={createdAt} />
                </small>
                <small>{outcomeLabels[outcome]}</small>
                <small>{agentLabel(agent)}</small>
                {scope !== "goal" && <small>{scoreText({ score, scope })}</small>}
              </th>
            ))}
            <th scope="col" class="number">
              Change
            </th>
          </tr>
        </thead>
        <tbody>
          <NumberRow row={scores} />
          {dimensionRows.map((row) => (
            <NumberRow key={row.name} row={row} />
          ))}
        </tbody>
        <tbody>
          {worstFirst(metricRows).map((row) => (
            <NumberRow key={row.name} row={row} />
          ))}
        </tbody>
      </table>
    </ScrollArea>
  );
}

/** Compares all runs of evaluations before a change with all runs after it. */
export const CompareSidesPage = ({ site, viewer, comparison }: PageProps & { comparison: Comparison }) => (
  <Layout {...{ site, viewer }} path="/compare" title="Comparison" crumbs={[{ name: "Comparison" }]}>
    <h1>
      Comparison of {count(comparison.base.runs, "run")} with {count(comparison.head.runs, "run")}
    </h1>
    <VerdictCard verdict={comparison.verdict} evidence={comparison.evidence} />
    <SidesWhyLink base={site.base} comparison={comparison} />
    <ComparedFriction comparison={comparison} base={site.base} />
    <h2>Evaluations</h2>
    <List label="Evaluations" labels={["Before", "After"]}>
      <tr>
        {[comparison.base, comparison.head].map(({ evalRequestIds }, i) => (
          <td key={i}>
            <ul class="brief">
              {evalRequestIds.map((id) => (
                <li key={id}>
                  <a href={`${site.base}/evals/${id}`}>
                    <Time at={toIso(timeOfId(id))} />
                  </a>
                </li>
              ))}
            </ul>
          </td>
        ))}
      </tr>
    </List>
  </Layout>
);

function NumberRow({ row }: { row: MetricRow }) {
  const change = changeOf(row);
  const isBetter = change !== null && (row.isCost ? change < 0 : change > 0);
  return (
    <tr>
      <th scope="row">{row.name}</th>
      {row.values.map((value, i) => (
        <td key={i} class="number">
          {value === null ? "–" : row.format(value)}
        </td>
      ))}
      <td class={change ? `number ${isBetter ? "better" : "worse"}` : "number"}>
        {change === null ? "–" : withSign(change, (value) => row.format(Number(value.toFixed(2))))}
      </td>
    </tr>
  );
}

/** `slugs`: the slugs of the reports with this friction point; undefined: all reports have it. */
type Point = ReportsComparison["friction"]["shared"][number] & { slugs?: string[] };

type FrictionProps = { base: string; friction: ReportsComparison["friction"]; columns: Column[] };

function Friction({ base, friction, columns }: FrictionProps) {
  const [first, last] = [columns[0]?.slug ?? "", columns.at(-1)?.slug ?? ""];
  const notShared: Point[] = friction.only;
  const inFirst = ({ slugs = [] }: Point) => slugs.includes(first);
  const inLast = ({ slugs = [] }: Point) => slugs.includes(last);
  const groups: [group: string, name: string, points: Point[]][] = [
    ["new", "New in the latest report", notShared.filter((point) => inLast(point) && !inFirst(point))],
    ["resolved", "Resolved in the latest report", notShared.filter((point) => inFirst(point) && !inLast(point))],
    ["some", "In some reports", notShared.filter((point) => inFirst(point) === inLast(point))],
    ["all", "In all reports", friction.shared],
  ];
  return (
    <section>
      <h2 id="friction">
        Friction <small>{friction.total}</small>
      </h2>
      {friction.total === 0 && <p class="muted">No friction in any of these reports.</p>}
      {groups.map(
        ([group, name, points]) =>
          points.length > 0 && (
            <ScrollArea key={group} label={name}>
              <table class="list compared">
                <thead>
                  <tr>
                    <th scope="col" data-group={group} data-count={points.length}>
                      {name} <small>{points.length}</small>
                    </th>
                    {columns.map(({ slug }, i) => (
                      <th scope="col" key={slug} class="number">
                        <a href={`${base}/reports/${slug}#friction`} aria-label={`Report ${i + 1}: ${slug}`}>
                          {i + 1}
                        </a>
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {points.map((point) => (
                    <tr key={point.fingerprint} class={`severity-${point.severity}`}>
                      <th scope="row">
                        {oneLine(point.title, 160)} <span class="pill severity">{point.severity}</span>
                        <small>{humanize(point.category)}</small>
                      </th>
                      {columns.map(({ slug }) => (
                        <td key={slug} class="number">
                          {point.slugs === undefined || point.slugs.includes(slug) ? "Yes" : "–"}
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </ScrollArea>
          ),
      )}
    </section>
  );
}
