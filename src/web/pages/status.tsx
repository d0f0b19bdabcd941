import type { RunLine } from "../../runs/lists.ts";
import type { Run } from "../../runs/schema.ts";
import { failureWords, statusWords, tookWords, triggerWords } from "../runwords.ts";
import { When } from "../when.tsx";
import { outcomeWords } from "../words.ts";
import { GradeMark, Heads } from "./figures.tsx";

/** How a run stands: a dot and a word. */
export const Status = ({ status }: { status: Run["status"] }) => (
  <span class={`status-mark run-${status}`}>{statusWords[status]}</span>
);

/** What a run came to, in a cell of a list. */
function Result({ run, base }: { run: RunLine; base: string }) {
  if (run.report)
    return (
      <a class="result" href={`${base}/reports/${run.report.slug}`}>
        <GradeMark grade={run.report.grade} />
        <span>{run.report.score?.toFixed(1) ?? outcomeWords[run.report.outcome]}</span>
      </a>
    );
  if (run.failureReason && run.status === "failed") return <span>{failureWords(run.failureReason).title}</span>;
  return <span class="muted">–</span>;
}

type Props = { runs: RunLine[]; base: string; now: number; hasPrompt?: boolean };

/** Runs as a table. `hasPrompt`: whether each says what prompt it is of. */
export const RunTable = ({ runs, base, now, hasPrompt = true }: Props) => (
  <div class="wide">
    <table class="list run-list">
      <Heads
        words={["Status", ...(hasPrompt ? ["Prompt"] : []), "Result", "Agent", "By"]}
        numbers={["Took", "Asked for"]}
      />
      <tbody>
        {runs.map((run) => (
          <tr key={run.runId}>
            <td>
              <a class="plain" href={`${base}/runs/${run.runId}`} aria-label={`Run, ${statusWords[run.status]}`}>
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
            <td class="soft">{triggerWords[run.trigger]}</td>
            <td class="number soft">{tookWords(run, now)}</td>
            <td class="number soft">
              <When at={run.createdAt} now={now} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
