import { count } from "../../grading/text.ts";
import type { PromptItem } from "../../prompts/lists.ts";
import { titleOf } from "../../reports/labels.ts";
import type { Schedule, ScheduledEvaluation, ScheduleException, ScheduleState } from "../../schedules/schema.ts";
import { Fact, List } from "../components/figures.tsx";
import { ButtonForm, Notices } from "../components/form-parts.tsx";
import { foreignText, Layout } from "../components/layout.tsx";
import { type ListRange, offsetLinks, Pager, toHref } from "../components/pager.tsx";
import { Frequency, NextTimes, OutcomeLink, PastEvaluations } from "../components/schedule.tsx";
import { formatZoned, When } from "../components/when.tsx";
import { catchUpLabels, overlapLabels } from "../schedule-labels.ts";
import { may, type PageProps } from "../viewer.ts";

type Props = PageProps &
  ListRange & {
    state: ScheduleState;
    /** The prompts with the next scheduled runs. */
    next: PromptItem[];
    exceptions: ScheduleException[];
    now: number;
    successMessage?: string;
  };

/** All schedules of the organization: the next runs, and the runs that did not start on time. */
export function SchedulesPage({ state, next, exceptions, now, successMessage, ...props }: Props) {
  const { site, viewer, total, offset, perPage } = props;
  const here = `${site.base}/schedules`;
  const { timeZone } = viewer;
  return (
    <Layout
      {...{ site, viewer }}
      path="/schedules"
      title="Schedules"
      crumbs={[{ name: "Prompts", path: "/prompts" }, { name: "Schedules" }]}
    >
      <header class="toolbar">
        <h1>Schedules</h1>
        <span class="muted">{state.schedules}</span>
        {may(viewer, "write") && (
          <span class="end">
            <ButtonForm action={`${here}/${state.pausedAt === null ? "pause" : "resume"}`}>
              {state.pausedAt === null ? "Pause all" : "Resume all"}
            </ButtonForm>
          </span>
        )}
      </header>
      <Notices successMessage={successMessage} />
      {state.pausedAt !== null && (
        <p class="notice" role="status">
          All schedules are paused since <When at={state.pausedAt} now={now} />. What is due in the meantime doesn’t
          run.
        </p>
      )}
      <h2>Next</h2>
      {next.length === 0 ? (
        <p class="muted">Nothing is scheduled.</p>
      ) : (
        <List label="Next" isStacked labels={["Prompt", "Schedule"]} numbers={["Next run"]}>
          {next.map(({ id, frequency, nextEvaluationAt, ...prompt }) => (
            <tr key={id}>
              <th scope="row">
                <a href={`${site.base}/prompts/${id}/schedule`} {...foreignText}>
                  {titleOf(prompt)}
                </a>
              </th>
              <td data-label="Schedule">{frequency && <Frequency frequency={frequency} />}</td>
              <td class="number" data-label="Next run">
                {nextEvaluationAt && formatZoned(Date.parse(nextEvaluationAt), timeZone)}
              </td>
            </tr>
          ))}
        </List>
      )}
      <h2>Missed, skipped and late</h2>
      {exceptions.length === 0 ? (
        <p class="muted">All scheduled evaluations ran on time.</p>
      ) : (
        <List label="Missed, skipped and late" isStacked labels={["Prompt", "Scheduled for", "Outcome", "Reason"]}>
          {exceptions.map(({ prompt, scheduledAt, reason, ...evaluation }) => (
            <tr key={`${prompt.id} ${scheduledAt}`}>
              <th scope="row">
                <a href={`${site.base}/prompts/${prompt.id}/schedule`} {...foreignText}>
                  {prompt.title}
                </a>
              </th>
              <td data-label="Scheduled for">{formatZoned(Date.parse(scheduledAt), timeZone)}</td>
              <td data-label="Outcome">
                <OutcomeLink base={site.base} {...evaluation} />
              </td>
              <td data-label="Reason">{reason}</td>
            </tr>
          ))}
        </List>
      )}
      <Pager links={offsetLinks({ offset, perPage, total, toPage: (at) => toHref(here, { offset: at }) })} />
    </Layout>
  );
}

type ScheduleProps = PageProps &
  ListRange & { title: string; schedule: Schedule; evaluations: ScheduledEvaluation[]; now: number };

/** The schedule of a prompt: its policies, its next times, and the outcome of earlier evaluations. */
export function SchedulePage({ title, schedule, evaluations, now, ...props }: ScheduleProps) {
  const { site, viewer, total, offset, perPage } = props;
  const { promptId, frequency, timeZone, pausedBy, nextTimes, catchUp, catchUpHours, overlap } = schedule;
  const prompt = `${site.base}/prompts/${promptId}`;
  const labelOf = (labels: readonly (readonly [string, string])[], value: string) =>
    labels.find(([each]) => each === value)?.[1] ?? value;
  return (
    <Layout
      {...{ site, viewer }}
      path={`/prompts/${promptId}/schedule`}
      title={`Schedule · ${title}`}
      crumbs={[
        { name: "Prompts", path: "/prompts" },
        { name: title, path: `/prompts/${promptId}` },
        { name: "Schedule" },
      ]}
    >
      <header class="toolbar">
        <h1>Schedule</h1>
        {may(viewer, "write") && (
          <span class="end">
            <a class="button" href={`${prompt}/edit#frequency`}>
              Edit schedule
            </a>
          </span>
        )}
      </header>
      {frequency === null ? (
        <p class="muted">The prompt has no schedule: it only runs manually.</p>
      ) : (
        <dl class="facts">
          <Fact name="Frequency">
            <Frequency frequency={frequency} />, {timeZone}
          </Fact>
          <Fact name="If the service misses an evaluation">
            {catchUpHours === null
              ? labelOf(catchUpLabels, catchUp)
              : `Run the latest one within ${count(catchUpHours, "hour")}`}
          </Fact>
          <Fact name="If the previous evaluation is still running">{labelOf(overlapLabels, overlap)}</Fact>
        </dl>
      )}
      {pausedBy !== null && (
        <p class="notice" role="status">
          {pausedBy === "organization" ? (
            <>
              All schedules are paused. <a href={`${site.base}/schedules`}>Open schedules</a>
            </>
          ) : (
            "The prompt is paused or archived."
          )}
        </p>
      )}
      {nextTimes.length > 0 && (
        <>
          <h2>Next {nextTimes.length} times</h2>
          <NextTimes label="Next times" times={nextTimes} {...{ timeZone, now }} />
        </>
      )}
      {evaluations.length > 0 && <h2>Past times</h2>}
      <PastEvaluations {...{ base: site.base, timeZone, evaluations }} />
      <Pager
        links={offsetLinks({ offset, perPage, total, toPage: (at) => toHref(`${prompt}/schedule`, { offset: at }) })}
      />
    </Layout>
  );
}
