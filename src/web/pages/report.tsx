import type { LatestResults } from "../../comparisons/latest.ts";
import { capitalize, percent } from "../../grading/text.ts";
import { fixBrief } from "../../reports/fix-brief.ts";
import {
  contextRows,
  describeNotChecked,
  describeServedSite,
  describeSpread,
  frictionLabels,
  goalPartLabels,
  scoreText,
  titleOf,
} from "../../reports/labels.ts";
import type { PagesVisited } from "../../reports/pages-visited.ts";
import type { Grading, Report } from "../../reports/schema.ts";
import type { EvalResult } from "../../stats/repeats.ts";
import { Change } from "../components/baseline.tsx";
import { Bar, EvidenceLinks, Fold, GradeMark, List, ScrollArea } from "../components/figures.tsx";
import { FrictionList } from "../components/findings.tsx";
import { Fixes, type Verification } from "../components/fixes.tsx";
import { Gradings } from "../components/gradings.tsx";
import { ExternalLink, foreignText, Layout } from "../components/layout.tsx";
import { PathTaken, VisitedPages } from "../components/pages-visited.tsx";
import { ReportHead } from "../components/report-head.tsx";
import { Properties, ReportActions, type ReportExtras } from "../components/report-properties.tsx";
import { ScoreBar } from "../components/score-bar.tsx";
import { DimensionParts } from "../components/score-curve.tsx";
import { TaskText } from "../components/task-text.tsx";
import { Day, Time, useTime } from "../components/when.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

/** `viewer`: undefined on a shared page. `path`: path of the page, without the base path. */
type Props = {
  site: Site;
  viewer?: Viewer;
  path: string;
  report: Report;
  /** The combined results of the report's evaluation. */
  result: EvalResult | null;
  /** The prompt's latest evaluations. */
  latest: LatestResults | null;
  pagesVisited: PagesVisited;
  extras: ReportExtras;
  /** Set on a shared page. */
  share?: { orgName: string; expiresAt: string };
  /** Empty on a shared page. */
  gradings?: Grading[];
  verifications?: ReadonlyMap<string, Verification> | null;
};

/** A report. It shows first what to fix and how many points that would gain, and then the details. */
export function ReportPage(props: Props) {
  const { site, viewer, path, report, pagesVisited, extras, share, gradings = [], verifications = null } = props;
  const title = titleOf(report.task);
  const labels = frictionLabels(report);
  const { session } = extras;
  const toTime = useTime();
  return (
    <Layout
      {...{ site, viewer }}
      publisher={share?.orgName}
      path={path}
      title={`${report.grade ?? scoreText(report)}: ${title}`}
      markdownPath={viewer && `${path}.md`}
      crumbs={
        viewer && [
          { name: "Reports", path: "/reports" },
          { name: title, path: `/prompts/${report.prompt.id}` },
          { name: toTime(report.createdAt) },
        ]
      }
    >
      <article class="report">
        {share && (
          <p class="notice shared">
            Shared by <span {...foreignText}>{share.orgName}</span>. Run on <Day at={report.createdAt} />. This link
            works until <Time at={share.expiresAt} />.
          </p>
        )}
        {viewer && (
          <p class="on-paper">
            <span {...foreignText}>{viewer.orgName}</span> · <Day at={report.createdAt} />
          </p>
        )}
        <ReportActions {...{ site, report, viewer, extras }} />
        <ReportHead {...props} />
        <ScoreBar report={report} />
        <Fixes
          {...{ report, labels, session, verifications }}
          base={site.base}
          path={site.base + path}
          mayDismiss={may(viewer, "write")}
        />
        <div class="columns">
          {(report.judge !== null || pagesVisited.steps.length > 0) && (
            <section>
              <h2 id={report.judge ? "goal" : undefined}>How the agent did</h2>
              <Goal report={report} session={session} />
              <PathTaken pagesVisited={pagesVisited} session={session} />
            </section>
          )}
          <Dimensions report={report} />
        </div>
        <FrictionList report={report} labels={labels} session={session} hasHistory={viewer !== undefined} site={site} />
        <Fold id="metrics" title="Metrics">
          <Metrics report={report} />
        </Fold>
        <VisitedPages pagesVisited={pagesVisited} session={session} />
        <Wordings report={report} />
        <Fold id="summary" title="Summary">
          {report.verdict !== report.keyFinding && <p class="verdict">{report.verdict}</p>}
          <Summary summary={report.summary} />
        </Fold>
        <Fold id="task" title="Task and end goal">
          <TaskText task={report.task} heading="h3" />
        </Fold>
        <RunContext report={report} />
        <Fold id="method" title="Run, method and formats">
          <Properties {...{ site, report, viewer, extras }} />
          {viewer && <Gradings gradings={gradings} path={site.base + path} mayPin={may(viewer, "publish")} />}
        </Fold>
        <pre id="fix-brief" hidden>
          {fixBrief(report, { hasAccess: viewer !== undefined })}
        </pre>
      </article>
    </Layout>
  );
}

const Summary = ({ summary }: { summary: Report["summary"] }) => (
  <div class="pair">
    <section>
      <h3 class="good">What worked</h3>
      <p>{summary.whatWorked}</p>
    </section>
    <section>
      <h3 class="bad">What didn’t</h3>
      <p>{summary.whatDidnt}</p>
    </section>
  </div>
);

type MetricRow = [
  name: string,
  field: keyof Report["metrics"],
  value: string | number,
  detail: string,
  format: (value: number) => string,
];

function Metrics({ report: { metrics, baseline } }: { report: Report }) {
  const rows: MetricRow[] = [
    ["Time", "timeSeconds", metrics.time, metrics.timeDetail, (value) => `${Number(value.toFixed(1))} s`],
    ["Errors", "errors", metrics.errors, metrics.errorsDetail, String],
    ["Tool calls", "toolCalls", metrics.toolCalls, metrics.toolCallsDetail, String],
    ["Agent cost", "costUsd", metrics.cost, metrics.costDetail, (value) => `$${value.toFixed(2)}`],
    ["Interruptions", "interruptions", metrics.interruptions, "How often a person would have had to step in.", String],
  ];
  return (
    <ScrollArea label="Metrics">
      <table class="metrics">
        <tbody>
          {rows.map(([name, field, value, detail, format]) => {
            const before = baseline?.metrics.find((each) => each.name === field);
            return (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="value">{value}</td>
                {baseline && baseline.metrics.length > 0 && (
                  <td class="change">
                    {before && <Change change={before.change} isCost format={format} />}
                    {before && <small>vs. {format(before.median)}</small>}
                  </td>
                )}
                <td class="detail">{detail}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </ScrollArea>
  );
}

function Dimensions({ report }: { report: Report }) {
  const { dimensions, coverage, baseline } = report;
  const notChecked = describeNotChecked(report);
  const changeOf = (name: string) => baseline?.dimensions.find((each) => each.name === name)?.change ?? null;
  return (
    <section>
      <h2 id="dimensions">Score by dimension</h2>
      {coverage < 1 && <p class="muted">Based on {percent(coverage)} of the scoring weight.</p>}
      {notChecked && <p class="muted">{notChecked}</p>}
      <div class="dimensions">
        {dimensions.map((dimension) => (
          <details key={dimension.name}>
            <summary>
              <h3>
                {dimension.name}{" "}
                <small>
                  weight {dimension.weight}
                  <DimensionChange change={changeOf(dimension.name)} />
                </small>
              </h3>
              <span class="measure">
                <Bar score={dimension.score} grade={dimension.grade} />
                <strong>{dimension.score}</strong>
                <GradeMark grade={dimension.grade} />
              </span>
            </summary>
            <DimensionParts dimension={dimension} />
          </details>
        ))}
      </div>
    </section>
  );
}

const DimensionChange = ({ change }: { change: number | null }) =>
  change === null ? null : (
    <>
      , <Change change={change} /> vs. baseline
    </>
  );

/** The parts of the end goal, with the evidence that the judge found. `session`: URL of the session page; null if the events cannot be read. */
function Goal({ report: { judge }, session }: { report: Report; session: string | null }) {
  if (judge === null) return null;
  return (
    <>
      <ol class="goal-parts">
        {judge.parts.map(({ text, met, events, quote, why }, i) => (
          <li key={text} id={`G${i + 1}`} class={`met-${met}`}>
            <details>
              <summary>
                <span class="name">G{i + 1}</span> {text} <strong>{goalPartLabels[met]}</strong>
              </summary>
              {why && <p>{why}</p>}
              {quote && <blockquote {...foreignText}>{quote}</blockquote>}
            </details>
            {events.length > 0 && <EvidenceLinks events={events} session={session} />}
          </li>
        ))}
      </ol>
      {judge.dropped.length > 0 && (
        <details>
          <summary>
            {judge.dropped.length === 1
              ? "1 statement of the judge was ignored because nothing in the session proves it"
              : `${judge.dropped.length} statements of the judge were ignored because nothing in the session proves them`}
          </summary>
          <ul>
            {judge.dropped.map((claim) => (
              <li key={claim}>{claim}</li>
            ))}
          </ul>
        </details>
      )}
      {judge.notice && <p class="notice">{judge.notice}</p>}
    </>
  );
}

/** What each wording of the goal finds in the docs. */
function Wordings({ report: { wordings } }: { report: Report }) {
  if (wordings === null) return null;
  return (
    <Fold id="wordings" title="Wordings of the goal" count={wordings.results.length}>
      <p class="muted">{describeSpread(wordings)}</p>
      <List
        label="Wordings of the goal"
        labels={["Wording", "Answer", { label: "Match", isNumber: true }, "Nearest page"]}
      >
        {wordings.results.map(({ text, state, fit, url }) => (
          <tr key={text}>
            <td>{text}</td>
            <td>{state}</td>
            <td class="number">{percent(fit)}</td>
            <td>{url && <ExternalLink url={url} />}</td>
          </tr>
        ))}
      </List>
    </Fold>
  );
}

/** What the agent received in addition to the task. */
function RunContext({ report: { context } }: { report: Report }) {
  if (context === null) return null;
  const rows = contextRows(context);
  const receivedItems = rows.length + context.env.length;
  const total = receivedItems + context.sites.length;
  if (total === 0) return null;
  return (
    <Fold id="context" title="Context" count={total}>
      {context.sites.map((site) => (
        <p key={site.at}>{describeServedSite(site)}</p>
      ))}
      {receivedItems > 0 && <p class="muted">What the agent received in addition to the task, and what it used.</p>}
      {rows.length > 0 && (
        <List label="Context" labels={["Type", "Name", "Received by the model", "Used"]}>
          {rows.map(({ kind, name, received, uses }) => (
            <tr key={`${kind} ${name}`}>
              <td>{kind}</td>
              <td>{name}</td>
              <td>{capitalize(received)}</td>
              <td>{capitalize(uses)}</td>
            </tr>
          ))}
        </List>
      )}
      {context.env.length > 0 && <p>Environment variables: {context.env.join(", ")}</p>}
    </Fold>
  );
}
