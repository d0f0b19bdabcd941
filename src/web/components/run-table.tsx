import { outcomeLabels, scoreText } from "../../reports/labels.ts";
import type { RunLine } from "../../runs/lists.ts";
import type { Run } from "../../runs/schema.ts";
import { failureText, runDuration, statusLabels, triggerLabels } from "../run-labels.ts";
import { GradeMark, Heads } from "./figures.tsx";
import { When } from "./when.tsx";

/** Run status: a dot and a label. */
export const Status = ({ status }: { status: Run["status"] }) => (
  <span class={`status-mark run-${status}`}>{statusLabels[status]}</span>
);

/** Result of a run in a table cell. */
function Result({ run, base }: { run: RunLine; base: string }) {
  if (run.report)
    return (
      <a class="result" href={`${base}/reports/${run.report.slug}`}>
        <GradeMark grade={run.report.grade} />
        <span>{scoreText(run.report) ?? outcomeLabels[run.report.outcome]}</span>
      </a>
    );
  if (run.failureCause && run.status === "failed")
    return <span>{failureText(run.failureCause, run.failureDetail).title}</span>;
  return <span class="muted">–</span>;
}

type Props = { runs: RunLine[]; base: string; now: number; hasPrompt?: boolean };

/** Table of runs. `hasPrompt`: whether to show the prompt column. */
export const RunTable = ({ runs, base, now, hasPrompt = true }: Props) => (
  <div class="wide">
    <table class="list run-list">
      <Heads
        labels={["Status", ...(hasPrompt ? ["Prompt"] : []), "Result", "Agent", "Trigger"]}
        numbers={["Duration", "Requested"]}
      />
      <tbody>
        {runs.map((run) => (
          <tr key={run.runId}>
            <td>
              <a class="plain" href={`${base}/runs/${run.runId}`} aria-label={`Run, ${statusLabels[run.status]}`}>
                <Status status={run.status} />
              </a>
            </td>
            {hasPrompt && (
              <td class="title">
                <a class="plain" href={`${base}/prompts/${run.promptId}`}>
                  {run.title}
                </a>
              </td>
            )}
            <td>
              <Result run={run} base={base} />
            </td>
            <td class="soft">{run.model ?? run.agent}</td>
            <td class="soft">{triggerLabels[run.trigger]}</td>
            <td class="number soft">{runDuration(run, now)}</td>
            <td class="number soft">
              <When at={run.createdAt} now={now} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
