import { capitalize } from "../../grading/text.ts";
import { describeFrequency } from "../../prompts/frequency.ts";
import type { ScheduledEvaluation } from "../../schedules/schema.ts";
import { outcomeLabels } from "../schedule-labels.ts";
import { formatZoned } from "./when.tsx";

/** A frequency in words, or its cron expression. */
export const Frequency = ({ frequency }: { frequency: string }) => {
  const words = describeFrequency(frequency);
  return /[*]/.test(words) ? <code>{words}</code> : capitalize(words);
};

type Props = { base: string; timeZone: string; evaluations: ScheduledEvaluation[] };

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

type OutcomeProps = { base: string } & Pick<ScheduledEvaluation, "outcome" | "evalRequestId">;

/** The outcome of a scheduled evaluation, which leads to its runs. */
export const OutcomeLink = ({ base, outcome, evalRequestId }: OutcomeProps) =>
  evalRequestId ? <a href={`${base}/evals/${evalRequestId}`}>{outcomeLabels[outcome]}</a> : outcomeLabels[outcome];
