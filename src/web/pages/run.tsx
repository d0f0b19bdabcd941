import { count, oneLine } from "../../grading/text.ts";
import { withoutUrlMapTokens } from "../../net/mapping.ts";
import { agentLabel, notMeasured, outcomeLabels, scoreText } from "../../reports/labels.ts";
import { formatPosition, type getRunProgress } from "../../runs/follow.ts";
import type { DocsVariant } from "../../runs/lists.ts";
import type { RequestedTask } from "../../runs/runs.ts";
import type { Attempt, Run } from "../../runs/schema.ts";
import type { LimitUsage } from "../../runs/usage.ts";
import { Meter } from "../components/charts.tsx";
import { FailureNotice } from "../components/failure.tsx";
import { Fact, GradeMark } from "../components/figures.tsx";
import { ButtonForm, DangerButton } from "../components/form-parts.tsx";
import { ExternalLink, foreignText, Layout } from "../components/layout.tsx";
import { DocsMark, Status } from "../components/run-table.tsx";
import { TaskText } from "../components/task-text.tsx";
import { TimelineRows } from "../components/timeline.tsx";
import { Time, When } from "../components/when.tsx";
import { attemptLabels, runDuration, usageText, waitingLabels, waitingText } from "../run-labels.ts";
import { may, type PageProps, type Viewer } from "../viewer.ts";

type RunStateProps = PageProps & {
  title: string;
  docsVariant: DocsVariant;
  run: Run;
  limitUsage: LimitUsage[];
  attempts: Attempt[];
  now: number;
};
type Props = RunStateProps & {
  requested: RequestedTask;
  progress: ReturnType<typeof getRunProgress>;
  /** The attempt whose events are shown; undefined: the newest attempt, live. */
  shownAttempt: number | undefined;
};

/** A run with its state, its timeline and its prompt. It updates live until the run ends. */
export function RunPage({
  site,
  viewer,
  title,
  docsVariant,
  run,
  requested,
  limitUsage,
  attempts,
  progress,
  shownAttempt,
  now,
}: Props) {
  const { base } = site;
  const path = `/runs/${run.runId}`;
  const { events, position } = progress;
  const isOpen = run.completedAt === null && shownAttempt === undefined;
  const [first] = events;
  const live = isOpen
    ? {
        "hx-sse:connect": `${base}${path}/events?after=${formatPosition(position)}`,
        "hx-sse:close": "end",
        "hx-swap": "none",
      }
    : {};
  return (
    <Layout
      site={site}
      // A short run may have ended before its page is shown. Then the message that it was started is left out.
      viewer={run.completedAt !== null && viewer.toast?.code === "runStarted" ? withoutToast(viewer) : viewer}
      path={path}
      title={`Run: ${title}`}
      refreshSeconds={isOpen ? 5 : undefined}
      crumbs={[
        { name: "Runs", path: "/runs" },
        { name: oneLine(title, 60), path: `/prompts/${run.prompt.id}` },
        { name: "Run" },
      ]}
    >
      <div {...live}>
        <div id="run-state">
          <RunState {...{ site, viewer, title, docsVariant, run, limitUsage, attempts, now }} />
        </div>
        <section class="columns">
          <div>
            <h2 id="timeline-title">
              Timeline{shownAttempt !== undefined && ` of attempt ${shownAttempt}`}{" "}
              <small id="timeline-state">
                <TimelineState isOpen={isOpen} events={position.seq + 1} />
              </small>
            </h2>
            {isOpen && (
              <div id="follow">
                <label class="check follow">
                  <input type="checkbox" data-follow="#timeline" checked autocomplete="off" /> Follow newest event
                </label>
              </div>
            )}
            {isOpen && <p id="run-ended" class="visually-hidden" role="status" />}
            {first && first.seq > 0 && (
              <p class="muted">
                Latest {events.length} events.{" "}
                {run.report && shownAttempt === undefined && (
                  <a href={`${base}/reports/${run.report.slug}/session`}>View full session</a>
                )}
              </p>
            )}
            {!isOpen && events.length === 0 && (
              <p class="muted">
                {shownAttempt === undefined
                  ? "The run ended before the agent did anything."
                  : "The events of this attempt are not stored."}
              </p>
            )}
            <ol class="timeline" id="timeline" aria-labelledby="timeline-title">
              <TimelineRows events={events} />
            </ol>
          </div>
          <RunPrompt run={run} requested={requested} />
        </section>
      </div>
    </Layout>
  );
}

const withoutToast = ({ toast: _, ...viewer }: Viewer): Viewer => viewer;

/** Shown beside the title of the timeline: whether it is live, or the number of its events. */
export const TimelineState = ({ isOpen, events }: { isOpen: boolean; events: number }) => (
  <>{isOpen ? "live" : count(events, "event")}</>
);

/** The text for screen readers when a run has ended. */
export const RunEnd = ({ run: { status, failure, report } }: { run: Run }) => (
  <>
    {status === "completed"
      ? `The run has ended. ${report === null ? notMeasured : scoreText(report)}.`
      : `The run has ended: ${failure?.title ?? status}.`}
  </>
);

/** The part of the page that updates while the run is in progress. */
export function RunState({
  site: { base },
  viewer,
  title,
  docsVariant,
  run,
  limitUsage,
  attempts,
  now,
}: RunStateProps) {
  const isOpen = run.completedAt === null;
  const { failure } = run;
  // If there is a failure, its notice already has this button.
  const isRepeatable = !isOpen && (failure === null || run.status === "superseded");
  return (
    <>
      <header class="toolbar">
        <h1 {...foreignText}>{title}</h1>
        <Status status={run.status} waitingFor={run.waitingFor} />
        <DocsMark variant={docsVariant} />
        <span class="end">
          {may(viewer, "run") && isOpen && (
            <DangerButton action={`${base}/runs/${run.runId}/cancel`}>Cancel run</DangerButton>
          )}
          {may(viewer, "run") && isRepeatable && (
            <ButtonForm action={`${base}/runs/${run.runId}/rerun`}>Run again</ButtonForm>
          )}
          {may(viewer, "delete") && <DangerButton action={`${base}/runs/${run.runId}/delete`}>Delete</DangerButton>}
        </span>
      </header>
      {run.waitingFor && (
        <p class="notice" role="status" data-waiting={run.waitingFor.what}>
          <strong>{waitingLabels[run.waitingFor.what]}.</strong> {waitingText(run.waitingFor)}
          {run.waitingFor.failsAt && (
            <>
              {" "}
              The run fails if none connects by <Time at={run.waitingFor.failsAt} />.
            </>
          )}
        </p>
      )}
      {failure && (
        <FailureNotice {...{ base, viewer, failure }} runId={run.status === "superseded" ? null : run.runId} />
      )}
      {run.report && (
        <a class="report-link" href={`${base}/reports/${run.report.slug}`}>
          {run.report.grade !== null && <GradeMark grade={run.report.grade} />}
          <span>
            <strong>{run.report.keyFinding}</strong>
            <small>
              {run.report.passedBar
                ? `Succeeded with a score of at least ${run.report.passedBar.minScore} · Goal not tested`
                : outcomeLabels[run.report.outcome]}{" "}
              · {scoreText(run.report)} · View report
            </small>
          </span>
        </a>
      )}
      <dl class="facts">
        <Fact name="Agent">{agentLabel(run.agent)}</Fact>
        <Fact name="Requested">
          <When at={run.createdAt} now={now} />
        </Fact>
        <Fact name="Duration">{runDuration(run, now)}</Fact>
        <Fact name="Evaluation">
          <a href={`${base}/evals/${run.evalRequestId}`}>View all runs</a>
        </Fact>
      </dl>
      <ul class="limits" aria-label="Limits">
        {limitUsage.map((each) => (
          <li key={each.name}>
            <span>{each.name}</span>
            <span class="soft">{usageText(each)}</span>
            <Meter share={each.limit ? each.used / each.limit : 0} label={`${each.name}: ${usageText(each)}`} />
          </li>
        ))}
      </ul>
      {(attempts.length > 1 || attempts.some(({ hasOutput }) => hasOutput)) && (
        <Attempts path={`${base}/runs/${run.runId}`} attempts={attempts} />
      )}
    </>
  );
}

/** A link to download what the coding agent printed in an attempt. `path`: the path of the run. */
export const OutputLink = ({ path, attempt }: { path: string; attempt: number }) => (
  <a href={`${path}/output?attempt=${attempt}`} download aria-label={`Output of the agent in attempt ${attempt}`}>
    Output of the agent
  </a>
);

const Attempts = ({ path, attempts }: { path: string; attempts: Attempt[] }) => (
  <>
    <h2>Attempts</h2>
    <table class="metrics">
      <tbody>
        {attempts.map(({ attempt, startedAt, outcome, reason, hasOutput }) => (
          <tr key={attempt} data-outcome={outcome ?? "running"}>
            <th scope="row">
              <a href={`${path}?attempt=${attempt}`}>{attempt}</a>
            </th>
            <td class="value">
              <Time at={startedAt} />
            </td>
            <td class="detail">
              {outcome === null ? "running" : attemptLabels[outcome]}
              {reason && `: ${reason}`}
              {hasOutput && (
                <>
                  {" "}
                  <OutputLink path={path} attempt={attempt} />
                </>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </>
);

const RunPrompt = ({ run, requested: { task, urlMap } }: { run: Run; requested: RequestedTask }) => (
  <aside aria-label="Prompt">
    <TaskText task={task} />
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
          {Object.entries(withoutUrlMapTokens(urlMap)).map(([from, to]) => (
            <Fact key={from} name={from}>
              <ExternalLink url={to} />
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
