import { line } from "../../grading/words.ts";
import type { Follow } from "../../runs/follow.ts";
import { placeWords } from "../../runs/follow.ts";
import type { Asked } from "../../runs/runs.ts";
import type { Attempt, Run } from "../../runs/schema.ts";
import type { Used } from "../../runs/usage.ts";
import { Meter } from "../charts.tsx";
import { Layout, Outside } from "../layout.tsx";
import { endWords, failureWords, tookWords, usedWords } from "../runwords.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { When } from "../when.tsx";
import { agentWords, outcomeWords, timeWords } from "../words.ts";
import { Fact, GradeMark } from "./figures.tsx";
import { Status } from "./status.tsx";
import { TimelineRows } from "./timeline.tsx";

type State = { site: Site; viewer: Viewer; title: string; run: Run; used: Used[]; attempts: Attempt[]; now: number };
type Props = State & { asked: Asked; progress: ReturnType<Follow["getProgress"]> };

/** A run while it goes on and after: how it stands, what it does, what was asked of it. Events come by themselves until it has ended. */
export function RunPage({ site, viewer, title, run, asked, used, attempts, progress, now }: Props) {
  const { base } = site;
  const path = `/runs/${run.runId}`;
  const { events, place } = progress;
  const isOpen = run.completedAt === null;
  const [first] = events;
  const live = isOpen
    ? {
        "hx-sse:connect": `${base}${path}/events?after=${placeWords(place)}`,
        "hx-sse:close": "end",
        "hx-swap": "none",
      }
    : {};
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={path}
      title={`Run: ${title}`}
      refreshSeconds={isOpen ? 5 : undefined}
      crumbs={[
        { name: "Runs", path: "/runs" },
        { name: line(title, 60), path: `/prompts/${run.prompt.id}` },
        { name: run.runId.slice(-12) },
      ]}
    >
      <div {...live}>
        <div id="run-state">
          <RunState {...{ site, viewer, title, run, used, attempts, now }} />
        </div>
        <section class="columns">
          <div>
            <h2 id="timeline-title">
              Timeline <small>{isOpen ? "as it happens" : `${place.seq + 1} events`}</small>
            </h2>
            {first && first.seq > 0 && (
              <p class="muted">
                The newest {events.length} events.{" "}
                {run.report && <a href={`${base}/reports/${run.report.slug}/session`}>All of the session</a>}
              </p>
            )}
            <ol class="timeline" id="timeline" aria-labelledby="timeline-title">
              <TimelineRows events={events} />
            </ol>
          </div>
          <AskedOf run={run} asked={asked} />
        </section>
      </div>
    </Layout>
  );
}

/** What changes of a run while it goes on. */
export function RunState({ site: { base }, viewer, title, run, used, attempts, now }: State) {
  const isOpen = run.completedAt === null;
  const failure = run.status === "failed" && run.failureReason ? failureWords(run.failureReason) : null;
  return (
    <>
      <header class="toolbar">
        <h1>{title}</h1>
        <Status status={run.status} />
        <span class="end">
          {!may(viewer, "run") ? null : isOpen ? (
            <form method="post" action={`${base}/runs/${run.runId}/cancel`}>
              <button type="submit" class="bad">
                Cancel the run
              </button>
            </form>
          ) : (
            <form method="post" action={`${base}/runs/${run.runId}/rerun`}>
              <button type="submit">Run again</button>
            </form>
          )}
        </span>
      </header>
      {failure && (
        <div class="notice bad" role="alert">
          <strong>{failure.title}.</strong> {failure.detail}
          <p class="muted">{failure.remedy}</p>
        </div>
      )}
      {run.status === "superseded" && <p class="notice">{run.failureReason}</p>}
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
        <Fact name="Asked for">
          <When at={run.createdAt} now={now} />
        </Fact>
        <Fact name="Took">{tookWords(run, now)}</Fact>
        <Fact name="Evaluation">
          <a href={`${base}/evals/${run.evalRequestId}`}>Its runs together</a>
        </Fact>
      </dl>
      <ul class="limits" aria-label="Limits">
        {used.map((each) => (
          <li key={each.name}>
            <span>{each.name}</span>
            <span class="soft">{usedWords(each)}</span>
            <Meter share={each.most ? each.used / each.most : 0} label={`${each.name}: ${usedWords(each)}`} />
          </li>
        ))}
      </ul>
      {attempts.length > 1 && <Attempts attempts={attempts} />}
    </>
  );
}

const Attempts = ({ attempts }: { attempts: Attempt[] }) => (
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
);

const AskedOf = ({ run, asked: { task, urlMap } }: { run: Run; asked: Asked }) => (
  <aside aria-label="What was asked">
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
    {Object.keys(urlMap).length > 0 && (
      <>
        <h2>Replaced hosts</h2>
        <dl class="facts">
          {Object.entries(urlMap).map(([from, to]) => (
            <Fact key={from} name={from}>
              <Outside url={to} />
            </Fact>
          ))}
        </dl>
      </>
    )}
    <dl class="facts">
      <Fact name="Run">
        <code id="run-id">{run.runId}</code>
      </Fact>
    </dl>
  </aside>
);
