import type { Latest } from "../../comparisons/latest.ts";
import { percent } from "../../grading/text.ts";
import { fixBrief } from "../../reports/fix-brief.ts";
import { frictionLabels, titleOf } from "../../reports/labels.ts";
import type { PagesVisited } from "../../reports/pages-visited.ts";
import type { Grading, Report } from "../../reports/schema.ts";
import type { EvalResult } from "../../stats/repeats.ts";
import { Change } from "../components/baseline.tsx";
import { Bar, Fold, GradeMark, toEventHref, Wide } from "../components/figures.tsx";
import { FrictionList } from "../components/findings.tsx";
import { Fixes, type Verification } from "../components/fixes.tsx";
import { Goal } from "../components/goal.tsx";
import { Gradings } from "../components/gradings.tsx";
import { Layout } from "../components/layout.tsx";
import { VisitedPages } from "../components/pages-visited.tsx";
import { ReportHead } from "../components/report-head.tsx";
import { Properties, ReportActions, type Side } from "../components/report-properties.tsx";
import { RunContext } from "../components/run-context.tsx";
import { ScoreBar } from "../components/score-bar.tsx";
import { Parts } from "../components/score-curve.tsx";
import { Time, useTime } from "../components/when.tsx";
import { Wordings } from "../components/wordings.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

/** `viewer`: absent on a shared page. `path`: path of the page, without the base. */
type Props = {
  site: Site;
  viewer?: Viewer;
  path: string;
  report: Report;
  /** Combined results of its evaluation. */
  result: EvalResult | null;
  /** The prompt's latest evaluations. */
  latest: Latest | null;
  visited: PagesVisited;
  side: Side;
  /** Set on a shared page. */
  shared?: { orgName: string; expiresAt: string };
  /** Empty on a shared page. */
  gradings?: Grading[];
  verifications?: ReadonlyMap<string, Verification> | null;
};

/** A report: what to fix and what it would gain first, then everything behind it. */
export function ReportPage(props: Props) {
  const { site, viewer, path, report, visited, side, shared, gradings = [], verifications = null } = props;
  const title = titleOf(report.task);
  const names = frictionLabels(report);
  const { session } = side;
  const toTime = useTime();
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={path}
      title={`${report.grade ?? "No score"}: ${title}`}
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
        {shared && (
          <p class="notice shared">
            Shared by {shared.orgName}. This link expires on <Time at={shared.expiresAt} />.
          </p>
        )}
        <ReportActions {...{ site, report, viewer, side }} />
        <ReportHead {...props} />
        <ScoreBar report={report} />
        <Fixes
          {...{ report, names, session, verifications }}
          path={site.base + path}
          mayDismiss={may(viewer, "write")}
        />
        <div class="columns">
          {(report.judge !== null || visited.steps.length > 0) && (
            <section>
              <h2 id={report.judge ? "goal" : undefined}>How the agent did</h2>
              <Goal report={report} session={session} />
              <PathTaken visited={visited} session={session} />
            </section>
          )}
          <Dimensions report={report} />
        </div>
        <FrictionList report={report} names={names} session={session} isOwn={viewer !== undefined} site={site} />
        <Fold id="metrics" title="Metrics">
          <Metrics report={report} />
        </Fold>
        <VisitedPages visited={visited} session={session} />
        <Wordings wordings={report.wordings} />
        <Fold id="summary" title="Summary">
          {report.verdict !== report.keyFinding && <p class="verdict">{report.verdict}</p>}
          <Summary summary={report.summary} />
        </Fold>
        <Fold id="task" title="Task and end goal">
          <Task task={report.task} />
        </Fold>
        <RunContext context={report.context} />
        <Fold id="method" title="Run, method and formats">
          <Properties {...{ site, report, viewer, side }} />
          {viewer && <Gradings gradings={gradings} path={site.base + path} mayPin={may(viewer, "publish")} />}
        </Fold>
        <pre id="fix-brief" hidden>
          {fixBrief(report, { isStored: viewer !== undefined })}
        </pre>
      </article>
    </Layout>
  );
}

const maxShown = 8;

/** The pages that the agent opened, in one line. */
function PathTaken({ visited: { steps }, session }: { visited: PagesVisited; session: string | null }) {
  if (steps.length === 0) return null;
  return (
    <p class="path-taken">
      {steps.slice(0, maxShown).map(({ seq, title, url, kind, status, provenance }, i) => {
        const name = title ?? URL.parse(url)?.pathname ?? url;
        const text = `${name}${kind === "missed" ? ` ${status ?? "no response"}` : ""}${provenance === "guessed" ? " (guessed)" : ""}`;
        return (
          <span key={seq} class={`step-${kind}`}>
            {i > 0 && " → "}
            {session === null ? text : <a href={toEventHref(session, seq)}>{text}</a>}
          </span>
        );
      })}
      {steps.length > maxShown && (
        <>
          {" "}
          → <a href="#pages-visited">{steps.length - maxShown} more</a>
        </>
      )}
    </p>
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

function Metrics({ report: { metrics, baseline } }: { report: Report }) {
  const rows: [string, keyof Report["metrics"], string | number, string, (value: number) => string][] = [
    ["Time", "timeSeconds", metrics.time, metrics.timeDetail, (value) => `${Number(value.toFixed(1))} s`],
    ["Errors", "errors", metrics.errors, metrics.errorsDetail, String],
    ["Tool calls", "toolCalls", metrics.toolCalls, metrics.toolCallsDetail, String],
    ["Cost", "costUsd", metrics.cost, metrics.costDetail, (value) => `$${value.toFixed(2)}`],
    ["Interruptions", "interruptions", metrics.interruptions, "How often a person would have had to step in.", String],
  ];
  return (
    <Wide label="Metrics">
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
    </Wide>
  );
}

function Dimensions({ report: { dimensions, coverage, baseline } }: { report: Report }) {
  const changeOf = (name: string) => baseline?.dimensions.find((each) => each.name === name)?.change ?? null;
  return (
    <section>
      <h2 id="dimensions">Score by dimension</h2>
      {coverage < 1 && <p class="muted">Based on {percent(coverage)} of the scoring weight.</p>}
      <div class="dimensions">
        {dimensions.map(({ name, weight, score, grade, parts, unmeasured }) => (
          <details key={name}>
            <summary>
              <h3>
                {name}{" "}
                <small>
                  weight {weight}
                  <DimensionChange change={changeOf(name)} />
                </small>
              </h3>
              <span class="measure">
                <Bar score={score} grade={grade} />
                <strong>{score}</strong>
                <GradeMark grade={grade} />
              </span>
            </summary>
            <Parts parts={parts} unmeasured={unmeasured} />
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

const Task = ({ task }: { task: Report["task"] }) => (
  <>
    <h3>Task</h3>
    <p class="task">{task.text}</p>
    {task.endGoal && (
      <>
        <h3>End goal</h3>
        <p class="task">{task.endGoal}</p>
      </>
    )}
  </>
);
