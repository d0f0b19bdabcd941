import { capitalize } from "../../grading/text.ts";
import { describeFrequency } from "../../prompts/frequency.ts";
import type { ScheduledEvaluation } from "../../schedules/schema.ts";
import { outcomeLabels } from "../schedule-labels.ts";
import { formatZoned, When } from "./when.tsx";

/** A frequency in words, or its cron expression. */
export const Frequency = ({ frequency }: { frequency: string }) => {
  const words = describeFrequency(frequency);
  // Cron expressions that can't be put into words stay unchanged.
  return words.includes("*") ? <code>{words}</code> : capitalize(words);
};

type Props = { base: string; timeZone: string; evaluations: ScheduledEvaluation[] };

type NextTimesProps = { label: string; times: string[]; timeZone: string; now: number };

/** The times of the next evaluations. Each time also shows how far away it is. */
export const NextTimes = ({ label, times, timeZone, now }: NextTimesProps) => (
  <ol class="schedule-times" aria-label={label}>
    {times.map((at) => (
      <li key={at} class="to-come">
        <span>{formatZoned(Date.parse(at), timeZone)}</span>
        <span class="soft">
          <When at={at} now={now} />
        </span>
      </li>
    ))}
  </ol>
);

/** Scheduled evaluations with their outcomes. */
export const PastEvaluations = ({ base, timeZone, evaluations }: Props) => (
  <ol class="schedule-times">
    {evaluations.map(({ scheduledAt, outcome, evalRequestId, reason }) => (
      <li key={scheduledAt} class={`outcome-${outcome}`}>
        <span>{formatZoned(Date.parse(scheduledAt), timeZone)}</span>
        <span class="soft">
          <OutcomeLink {...{ base, outcome, evalRequestId }} />
          {reason && `: ${reason}`}
        </span>
      </li>
    ))}
  </ol>
);

type OutcomeProps = { base: string; outcome: ScheduledEvaluation["outcome"]; evalRequestId: string | null };

/** The outcome of a scheduled evaluation, linked to its runs. */
export const OutcomeLink = ({ base, outcome, evalRequestId }: OutcomeProps) =>
  evalRequestId ? <a href={`${base}/evals/${evalRequestId}`}>{outcomeLabels[outcome]}</a> : outcomeLabels[outcome];
