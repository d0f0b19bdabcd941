import type { LatestResults } from "../../comparisons/latest.ts";
import { count, oneLine } from "../../grading/text.ts";
import type { FailedRuns } from "../../inbox/failed-runs.ts";
import type { Prompt } from "../../prompts/schema.ts";
import { titleOf } from "../../reports/labels.ts";
import type { RunListItem } from "../../runs/lists.ts";
import type { ScheduledEvaluation } from "../../schedules/schema.ts";
import { ScoreChart } from "../components/charts.tsx";
import { FailureNotice } from "../components/failure.tsx";
import { TableHead } from "../components/figures.tsx";
import { ButtonForm, DangerButton } from "../components/form-parts.tsx";
import { ExternalLink, foreignText, Layout } from "../components/layout.tsx";
import { PromptSettings, type PromptSettingsProps } from "../components/prompt-settings.tsx";
import { RunForm, type RunFormProps } from "../components/run-form.tsx";
import { RunTable } from "../components/run-table.tsx";
import { Frequency, NextTimes, PastEvaluations } from "../components/schedule.tsx";
import { LatestChange, Score } from "../components/score.tsx";
import { TaskText } from "../components/task-text.tsx";
import { Day, Time, useTime } from "../components/when.tsx";
import { may, type PageProps, type Viewer } from "../viewer.ts";

type Props = PageProps &
  PromptSettingsProps & {
    latest: LatestResults | null;
    runs: RunListItem[];
    runCount: number;
    /** The agents whose last runs all failed. */
    failedRuns: FailedRuns[];
    scheduledEvaluations: ScheduledEvaluation[];
    timeZone: string;
    now: number;
    runForm: Omit<RunFormProps, "site" | "prompt">;
  };

/** A prompt with its scores, runs, schedule and settings, and the form to run it. */
export function PromptPage(props: Props) {
  const { site, viewer, prompt, latest, runs, runCount, failedRuns, now, runForm } = props;
  const { base } = site;
  const title = titleOf(prompt);
  const here = `/prompts/${prompt.id}`;
  return (
    <Layout
      {...{ site, viewer }}
      path={here}
      title={title}
      crumbs={[{ name: "Prompts", path: "/prompts" }, { name: oneLine(title, 60) }]}
    >
      <header class="toolbar">
        <h1 {...foreignText}>{title}</h1>
        {prompt.status !== "active" && <span class="pill">{prompt.status}</span>}
        <Actions base={base} prompt={prompt} viewer={viewer} />
      </header>
      <div class="columns">
        <div>
          {failedRuns.map((failed) => (
            <AllFailed key={failed.agent} {...{ base, viewer }} runs={failed} />
          ))}
          <ScoreHistory latest={latest} base={site.base} promptId={prompt.id} />
          {prompt.warnings.map((warning) => (
            <p key={warning} class="notice">
              {warning}
            </p>
          ))}
          <TaskText task={prompt} />
          {prompt.basis && <Basis base={base} basis={prompt.basis} />}
          {prompt.wordings && (
            <>
              <h2>Other wordings</h2>
              <ul>
                {prompt.wordings.map((wording) => (
                  <li key={wording}>{wording}</li>
                ))}
              </ul>
            </>
          )}
          <h2>
            Runs <small>{runCount.toLocaleString("en")}</small>
          </h2>
          {runs.length === 0 ? (
            <p class="muted">No runs yet. Run it now or add a schedule.</p>
          ) : (
            <>
              <RunTable runs={runs} base={base} now={now} hasPrompt={false} />
              <p class="hint">
                <a href={`${base}/runs?promptId=${prompt.id}`}>All runs</a> ·{" "}
                <a href={`${base}/reports?promptId=${prompt.id}`}>All reports</a> ·{" "}
                <a href={`${base}/trends?promptId=${prompt.id}`}>Trends</a> ·{" "}
                <a href={`${base}/gates?promptId=${prompt.id}`}>Gates</a>
                {may(viewer, "run") && (
                  <>
                    {" "}
                    · <a href={`${base}/experiments/new?prompt=${prompt.id}`}>New experiment</a>
                  </>
                )}
              </p>
            </>
          )}
        </div>
        <div>
          {may(viewer, "run") && <RunForm {...{ site, prompt, ...runForm }} />}
          <ScheduleSection {...props} />
          <PromptSettings {...props} />
        </div>
      </div>
    </Layout>
  );
}

/** Says that all runs with an agent have failed since the last report, why they failed, and what to do. */
const AllFailed = ({ base, viewer, runs }: { base: string; viewer: Viewer; runs: FailedRuns }) => (
  <FailureNotice
    {...{ base, viewer, failure: runs.failure }}
    id={`remedy-${runs.agent}`}
    runId={runs.runId}
    lead={
      <span data-failed={runs.failed} data-of={runs.of}>
        {runs.of === 1 ? "The last run" : `${runs.failed} of ${runs.of} runs`} with {runs.agent} failed since{" "}
        <Day at={runs.since} />.{" "}
      </span>
    }
  >
    <a href={`${base}/runs/${runs.runId}`}>Open newest run</a>
  </FailureNotice>
);

/** The source text in the docs that the prompt was proposed from, and whether that text has changed. */
const Basis = ({ base, basis }: { base: string; basis: NonNullable<Prompt["basis"]> }) => (
  <section class="basis" aria-labelledby="basis" data-changed={basis.changedAt !== null}>
    <h2 id="basis">Proposed from</h2>
    {basis.changedAt !== null && (
      <p class="notice">
        The page no longer has this text, as <a href={`${base}/runs/${basis.changedInRunId}`}>a run</a> on{" "}
        <Day at={basis.changedAt} /> found. Check that the task still fits.
      </p>
    )}
    {basis.repeatsDocs && (
      <p class="notice">
        The end goal is in the docs’ own words, so an agent that only reads finds it too easily. Trends of docs scores
        leave it out until you edit it.
      </p>
    )}
    <blockquote {...foreignText}>{basis.quote}</blockquote>
    <p class="soft">
      <ExternalLink url={basis.url} />, line {basis.line}
    </p>
  </section>
);

type ActionsProps = { base: string; prompt: Prompt; viewer: Viewer };

const Actions = ({ base, prompt: { id, status }, viewer }: ActionsProps) => (
  <span class="end">
    {may(viewer, "write") && (
      <>
        <a class="button" href={`${base}/prompts/${id}/edit`}>
          Edit
        </a>
        <a class="button" href={`${base}/prompts/new?from=${id}`}>
          Duplicate
        </a>
        {status !== "archived" && (
          <ButtonForm
            action={`${base}/prompts/${id}/status`}
            name="status"
            value={status === "active" ? "paused" : "active"}
          >
            {status === "active" ? "Pause" : "Resume"}
          </ButtonForm>
        )}
      </>
    )}
    {may(viewer, "archive") && (
      <form method="post" action={`${base}/prompts/${id}/archive`}>
        {status === "archived" ? (
          <button type="submit" name="back" value="1">
            Unarchive
          </button>
        ) : (
          <button type="submit" class="bad">
            Archive
          </button>
        )}
      </form>
    )}
    {may(viewer, "delete") && <DangerButton action={`${base}/prompts/${id}/delete`}>Delete</DangerButton>}
  </span>
);

/** The latest score, and the scores over time. */
function ScoreHistory({ latest, base, promptId }: { latest: LatestResults | null; base: string; promptId: string }) {
  const toTime = useTime();
  if (latest === null) return null;
  const { points } = latest;
  return (
    <section aria-labelledby="score">
      <h2 id="score">Score over time</h2>
      <p class="newest">
        <Score latest={latest} base={base} />{" "}
        {latest.change && <LatestChange latest={latest} base={base} promptId={promptId} />}
      </p>
      {points.length > 1 && (
        <>
          <ScoreChart
            label={`Mean scores of the last ${points.length} evaluations, oldest first. The table below lists them.`}
            points={points.map(({ score, at, runs }) => ({
              score,
              name: `${score.toFixed(1)}, ${count(runs, "run")}, ${toTime(at)}`,
              day: toTime(at).slice(0, 10),
            }))}
          />
          <details>
            <summary>Show as table</summary>
            <table class="list">
              <TableHead labels={["Evaluation"]} numbers={["Runs", "Mean score"]} />
              <tbody>
                {points.toReversed().map(({ evalRequestId, score, runs, at }) => (
                  <tr key={evalRequestId}>
                    <td>
                      <a href={`${base}/evals/${evalRequestId}`}>
                        <Time at={at} />
                      </a>
                    </td>
                    <td class="number">{runs}</td>
                    <td class="number">{score.toFixed(1)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </details>
        </>
      )}
    </section>
  );
}

const whyUnscheduled = ({ status }: Prompt): string =>
  status === "active" ? "all schedules are paused" : `not scheduled while ${status}`;

const ScheduleSection = ({ site: { base }, viewer, prompt, scheduledEvaluations, timeZone, now }: Props) => (
  <section aria-labelledby="schedule">
    <h2 id="schedule">Schedule</h2>
    {prompt.frequency === null ? (
      <p class="muted">
        Manual. {may(viewer, "write") && <a href={`${base}/prompts/${prompt.id}/edit#frequency`}>Add schedule</a>}
      </p>
    ) : (
      <p>
        <Frequency frequency={prompt.frequency} />{" "}
        <span class="muted">({prompt.nextRunsAt === null ? whyUnscheduled(prompt) : timeZone})</span>{" "}
        <a href={`${base}/prompts/${prompt.id}/schedule`}>Next 20 times</a>
      </p>
    )}
    {prompt.nextRunsAt && <NextTimes label="Next runs" times={prompt.nextRunsAt} {...{ timeZone, now }} />}
    {scheduledEvaluations.length > 0 && <h3>Recent scheduled runs</h3>}
    <PastEvaluations {...{ base, timeZone }} evaluations={scheduledEvaluations} />
  </section>
);
