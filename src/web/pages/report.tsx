import { percent } from "../../grading/text.ts";
import { frictionLabels, outcomeLabels, scopeLabels, titleOf } from "../../reports/labels.ts";
import type { PagesVisited } from "../../reports/pages-visited.ts";
import type { Grading, Report } from "../../reports/schema.ts";
import type { EvalResult } from "../../stats/repeats.ts";
import { BaselineSummary, Change } from "../components/baseline.tsx";
import { Bar, GradeMark } from "../components/figures.tsx";
import { Advice, FrictionList } from "../components/findings.tsx";
import { Goal } from "../components/goal.tsx";
import { Gradings } from "../components/gradings.tsx";
import { Layout } from "../components/layout.tsx";
import { VisitedPages } from "../components/pages-visited.tsx";
import { Properties, ReportActions, type Side } from "../components/report-properties.tsx";
import { Parts } from "../components/score-curve.tsx";
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
  visited: PagesVisited;
  side: Side;
  /** Empty on a shared page. */
  gradings?: Grading[];
};

/** A report: grade, summary, dimensions, recommended fixes and evidence. */
export function ReportPage({ site, viewer, path, report, result, visited, side, gradings = [] }: Props) {
  const title = titleOf(report.task);
  const names = frictionLabels(report);
  const { session } = side;
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={path}
      title={`${report.grade ?? "No score"}: ${title}`}
      markdownPath={viewer && `${path}.md`}
      crumbs={viewer && [{ name: "Reports", path: "/reports" }, { name: report.slug }]}
    >
      <article class="report">
        <Head report={report} result={result} title={title} />
        <ReportActions {...{ site, report, viewer, side }} />
        <div class="findings">
          {report.verdict !== report.keyFinding && <p class="verdict">{report.verdict}</p>}
          <Summary summary={report.summary} />
          <Dimensions report={report} />
          <Metrics report={report} />
          <Advice report={report} names={names} path={site.base + path} mayAct={may(viewer, "run")} />
          <FrictionList report={report} names={names} session={session} isOwn={viewer !== undefined} site={site} />
          <Goal report={report} session={session} />
          {viewer && <Gradings gradings={gradings} path={site.base + path} mayPin={may(viewer, "publish")} />}
          <VisitedPages visited={visited} session={session} />
          <Task task={report.task} />
        </div>
        <Properties {...{ site, report, viewer, side }} />
      </article>
    </Layout>
  );
}

function Head({ report, result, title }: Pick<Props, "report" | "result"> & { title: string }) {
  const { score, scope, grade, outcome, status, coverage, nullNotice, keyFinding } = report;
  return (
    <header class="head graded">
      <div class="score">
        <GradeMark grade={grade} big />
        <p>
          {score === null ? (
            "No score"
          ) : (
            <>
              {scope !== "goal" && `${scopeLabels[scope]} `}
              <strong>{score}</strong> of 100
            </>
          )}
        </p>
      </div>
      <div>
        <p class="pills">
          <span class={`pill outcome-${outcome}`}>{outcomeLabels[outcome]}</span>
          {status !== "published" && <span class="pill">{status}</span>}
          <span class="pill" title="Share of the scoring weight that was measured">
            {scope === "goal" ? "" : "Goal not tested · "}
            {percent(coverage)} measured
          </span>
        </p>
        <h1>{title}</h1>
        <p class="lead">{keyFinding}</p>
        {score !== null && <BaselineSummary report={report} result={result} />}
        {nullNotice && nullNotice !== keyFinding && <p class="notice">{nullNotice}</p>}
      </div>
    </header>
  );
}

const Summary = ({ summary }: { summary: Report["summary"] }) => (
  <div class="pair">
    <section>
      <h2 class="good">What worked</h2>
      <p>{summary.whatWorked}</p>
    </section>
    <section>
      <h2 class="bad">What didn’t</h2>
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
    <section>
      <h2 id="metrics">Metrics</h2>
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
    </section>
  );
}

function Dimensions({ report: { dimensions, coverage, baseline } }: { report: Report }) {
  const changeOf = (name: string) => baseline?.dimensions.find((each) => each.name === name)?.change ?? null;
  return (
    <section>
      <h2 id="dimensions">Dimensions</h2>
      {coverage < 1 && (
        <p class="muted">
          Based on {percent(coverage)} of the scoring weight. Dimensions that couldn’t be measured don’t affect the
          score.
        </p>
      )}
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
  <section>
    <h2 id="task">Prompt</h2>
    <h3>Task</h3>
    <p class="task">{task.text}</p>
    {task.endGoal && (
      <>
        <h3>End goal</h3>
        <p class="task">{task.endGoal}</p>
      </>
    )}
  </section>
);
