import type { Asked } from "../../runs/runs.ts";
import type { Attempt, Run } from "../../runs/schema.ts";
import { Layout, Outside } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { agentWords, outcomeWords, timeWords, titleOf } from "../words.ts";
import { Fact, GradeMark } from "./figures.tsx";

const statusWords: Record<Run["status"], string> = {
  pending: "Waiting for its turn",
  running: "Under way",
  completed: "Completed",
  failed: "Failed: no evaluation was made",
  superseded: "Superseded by a newer run",
};

const endWords: Record<NonNullable<Attempt["ended"]>, string> = {
  done: "made the report",
  failed: "failed",
  retried: "to be tried again",
  released: "given back when the service stopped",
  lost: "lost with its process",
  cancelled: "called off",
};

type Props = { site: Site; viewer: Viewer; run: Run; asked: Asked; attempts: Attempt[] };

/** A run while it goes on and after, with what was asked of it and how it was tried. */
export function RunPage({ site, viewer, run, asked: { task, urlMap }, attempts }: Props) {
  const { base } = site;
  const title = titleOf(task);
  const unfinished = run.completedAt === null;
  const mapped = Object.entries(urlMap);
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={`/runs/${run.runId}`}
      title={`Run: ${title}`}
      refreshSeconds={unfinished ? 2 : undefined}
      crumbs={[{ name: "Runs" }, { name: run.runId }]}
    >
      <header class="head">
        <p class={`pill run-${run.status}`}>{statusWords[run.status]}</p>
        <h1>{title}</h1>
        {unfinished && <p class="muted">This page loads itself again every two seconds until the run is finished.</p>}
        {run.failureReason && <p class="notice bad">{run.failureReason}</p>}
      </header>

      {run.report && (
        <a class="report-link" href={`${base}/reports/${run.report.slug}`}>
          <GradeMark grade={run.report.grade} />
          <span>
            <strong>{run.report.keyFinding}</strong>
            <small>
              {outcomeWords[run.report.outcome]} ·{" "}
              {run.report.score === null ? "no score" : `${run.report.score} of 100`} · Read the report
            </small>
          </span>
        </a>
      )}

      <dl class="facts">
        <Fact name="Agent">{agentWords(run.agent)}</Fact>
        <Fact name="Asked for">{timeWords(run.createdAt)}</Fact>
        <Fact name="Started">{run.startedAt ? timeWords(run.startedAt) : "not yet"}</Fact>
        <Fact name="Finished">{run.completedAt ? timeWords(run.completedAt) : "not yet"}</Fact>
        <Fact name="Prompt">
          <code>{run.prompt.id}</code>
        </Fact>
      </dl>

      <h2>Task</h2>
      <p class="task">{task.text}</p>
      {task.endGoal && (
        <>
          <h2>End goal</h2>
          <p class="task">{task.endGoal}</p>
        </>
      )}
      {run.templateArgs && Object.keys(run.templateArgs).length > 0 && (
        <>
          <h2>Variables</h2>
          <dl class="facts">
            {Object.entries(run.templateArgs).map(([name, value]) => (
              <Fact key={name} name={name}>
                {value}
              </Fact>
            ))}
          </dl>
        </>
      )}
      {mapped.length > 0 && (
        <>
          <h2>Replaced hosts</h2>
          <dl class="facts">
            {mapped.map(([from, to]) => (
              <Fact key={from} name={from}>
                <Outside url={to} />
              </Fact>
            ))}
          </dl>
        </>
      )}
      {attempts.length > 1 && (
        <>
          <h2>Attempts</h2>
          <table class="metrics">
            <tbody>
              {attempts.map(({ attempt, begunAt, ended, reason }) => (
                <tr key={attempt}>
                  <th scope="row">{attempt}</th>
                  <td class="value">{timeWords(begunAt)}</td>
                  <td class="detail">
                    {ended === null ? "under way" : endWords[ended]}
                    {reason && `: ${reason}`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </Layout>
  );
}
