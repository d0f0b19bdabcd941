import { percent } from "../../grading/words.ts";
import type { Report } from "../../reports/schema.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { agentWords, frictionNames, outcomeWords, timeWords, titleOf } from "../words.ts";
import { Bar, Fact, GradeMark } from "./figures.tsx";
import { Advice, FrictionList } from "./findings.tsx";
import { Goal } from "./goal.tsx";

type Props = { site: Site; viewer: Viewer; report: Report; notice: string | null };

/** A whole report for people: the grade first, then what to change, then the proof. `notice`: why its session cannot be read, if so. */
export function ReportPage({ site, viewer, report, notice }: Props) {
  const title = titleOf(report.task);
  const path = `/reports/${report.slug}`;
  const names = frictionNames(report);
  const session = notice === null ? `${site.base}${path}/session` : null;
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={path}
      title={`${report.grade ?? "No score"}: ${title}`}
      markdownPath={`${path}.md`}
      crumbs={[{ name: "Reports" }, { name: report.slug }]}
    >
      <article class="report">
        <Head report={report} title={title} />
        <p class="verdict">{report.verdict}</p>
        <Summary summary={report.summary} />
        <Goal report={report} session={session} />
        <Metrics metrics={report.metrics} />
        <Dimensions report={report} />
        <Advice report={report} names={names} />
        <FrictionList report={report} names={names} session={session} />
        <Making site={site} report={report} notice={notice} path={path} />
      </article>
    </Layout>
  );
}

function Head({ report, title }: { report: Report; title: string }) {
  const { score, grade, outcome, status, coverage, nullNotice, keyFinding } = report;
  return (
    <header class="head graded">
      <div class="score">
        <GradeMark grade={grade} big />
        <p>
          {score === null ? (
            "no score"
          ) : (
            <>
              <strong>{score}</strong> of 100
            </>
          )}
        </p>
      </div>
      <div>
        <p class="pills">
          <span class={`pill outcome-${outcome}`}>{outcomeWords[outcome]}</span>
          {status !== "published" && <span class="pill">{status}</span>}
          <span class="pill" title="Share of the weights that was measured">
            {percent(coverage)} measured
          </span>
        </p>
        <h1>{title}</h1>
        <p class="lead">{keyFinding}</p>
        {nullNotice && <p class="notice">{nullNotice}</p>}
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

function Metrics({ metrics }: { metrics: Report["metrics"] }) {
  const rows: [string, string | number, string][] = [
    ["Time", metrics.time, metrics.timeDetail],
    ["Errors", metrics.errors, metrics.errorsDetail],
    ["Tool calls", metrics.toolCalls, metrics.toolCallsDetail],
    ["Cost", metrics.cost, metrics.costDetail],
    ["Interruptions", metrics.interruptions, "Times that a person would have been needed."],
  ];
  return (
    <section>
      <h2 id="metrics">Metrics</h2>
      <table class="metrics">
        <tbody>
          {rows.map(([name, value, detail]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="value">{value}</td>
              <td class="detail">{detail}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Dimensions({ report: { dimensions, coverage } }: { report: Report }) {
  return (
    <section>
      <h2 id="dimensions">Dimensions</h2>
      {coverage < 1 && (
        <p class="muted">
          {percent(coverage)} of the weight was measured. What was not is left out: it counts neither as good nor as
          bad.
        </p>
      )}
      <div class="dimensions">
        {dimensions.map(({ name, weight, score, grade, desc }) => (
          <section key={name}>
            <h3>
              {name} <small>weight {weight}</small>
            </h3>
            <p class="measure">
              <Bar score={score} grade={grade} />
              <strong>{score}</strong>
              <GradeMark grade={grade} />
            </p>
            <p class="desc">{desc}</p>
          </section>
        ))}
      </div>
    </section>
  );
}

function Making({ site, report, notice, path }: Omit<Props, "viewer"> & { path: string }) {
  const { run, agent, methodology, task } = report;
  const replaced = Object.entries(run.urlMap);
  return (
    <section>
      <h2 id="about">How it was made</h2>
      <dl class="facts">
        <Fact name="Agent">{agentWords(agent)}</Fact>
        <Fact name="Started">{timeWords(run.startedAt ?? run.createdAt)}</Fact>
        <Fact name="Finished">{timeWords(run.completedAt ?? report.createdAt)}</Fact>
        <Fact name="Run">
          <a href={`${site.base}/runs/${run.runId}`}>{run.runId}</a>
        </Fact>
        <Fact name="Session">{notice ?? <a href={`${site.base}${path}/session`}>Every event, in order</a>}</Fact>
        <Fact name="As a text">
          <a href={`${site.base}${path}.md`}>Markdown</a>
        </Fact>
        <Fact name="Attempt">{run.attempt}</Fact>
        <Fact name="Method">
          <a href={`${site.base}/docs/scoring`}>{methodology.id}</a> <code>{methodology.hash.slice(0, 8)}</code>
          {methodology.judge && `, judged by ${methodology.judge}`}
        </Fact>
        {replaced.length > 0 && (
          <Fact name="Replaced hosts">{replaced.map(([from, to]) => `${from} → ${to}`).join(", ")}</Fact>
        )}
      </dl>
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
}
