import { ruleOf } from "../../agents/failure.ts";
import { count } from "../../grading/text.ts";
import { scoreText } from "../../reports/labels.ts";
import type { DocsVariant, RunListItem } from "../../runs/lists.ts";
import type { Run } from "../../runs/schema.ts";
import { runDuration, statusLabels, triggerLabels, waitingLabels } from "../run-labels.ts";
import { GradeMark, type Sorting, TableHead } from "./figures.tsx";
import { foreignText } from "./layout.tsx";
import { SelectRow } from "./selection.tsx";
import { When } from "./when.tsx";

type StatusProps = { status: Run["status"]; waitingFor?: { what: NonNullable<Run["waitingFor"]>["what"] } | null };

const statusLabel = ({ status, waitingFor }: StatusProps): string =>
  waitingFor ? waitingLabels[waitingFor.what] : statusLabels[status];

/** Run status: a dot and a label. */
export const Status = ({ status, waitingFor }: StatusProps) => (
  <span class={`status-mark run-${waitingFor ? "pending" : status}`} data-waiting={waitingFor?.what}>
    {statusLabel({ status, waitingFor })}
  </span>
);

/** Marks a run that didn't read the unchanged live docs, or something that belongs to such a run. */
export const DocsMark = ({ variant }: { variant: DocsVariant }) =>
  variant && (
    <span
      class="pill"
      data-preview={variant === "preview" || undefined}
      data-edited={variant === "edited" || undefined}
    >
      {variant === "edited" ? "Edited docs" : "Preview"}
    </span>
  );

/** Result of a run in a table cell. */
function Result({ run, base }: { run: RunListItem; base: string }) {
  if (run.report)
    return (
      <a class="result" href={`${base}/reports/${run.report.slug}`}>
        <GradeMark grade={run.report.grade} />
        <span>{scoreText(run.report)}</span>
      </a>
    );
  if (run.failureCode && run.status === "failed")
    return <span data-code={run.failureCode}>{ruleOf(run.failureCode).title}</span>;
  return <span class="muted">–</span>;
}

type Props = {
  runs: RunListItem[];
  base: string;
  now: number;
  /** Whether to show the prompt column. */
  hasPrompt?: boolean;
  sorting?: Sorting;
  /** Whether to show the runs of an evaluation under its heading. */
  isGrouped?: boolean;
  isSelectable?: boolean;
};

/** Table of runs. */
export function RunTable({
  runs,
  base,
  now,
  hasPrompt = true,
  sorting,
  isGrouped = false,
  isSelectable = false,
}: Props) {
  const labels = [
    ...(isSelectable ? ["Select"] : []),
    "Status",
    ...(hasPrompt ? ["Prompt"] : []),
    "Result",
    "Agent",
    "Trigger",
  ];
  const numbers = [
    { label: "Duration", sort: "duration" },
    { label: "Requested", sort: "created" },
  ];
  return (
    <div class="scroll-area">
      <table class="list run-list">
        <TableHead labels={labels} numbers={numbers} sorting={sorting} />
        {(isGrouped ? groupByEvaluation(runs) : [runs]).map((group) => {
          const [first] = group;
          return (
            <tbody key={first?.runId}>
              {isGrouped && first && first.runsOfEval > 1 && (
                <EvalRow run={first} shownCount={group.length} base={base} span={labels.length + numbers.length} />
              )}
              {group.map((run) => (
                <RunRow key={run.runId} {...{ run, base, now, hasPrompt, isSelectable }} />
              ))}
            </tbody>
          );
        })}
      </table>
    </div>
  );
}

/** Groups runs by evaluation. Each group is at the place of its first run. Evaluations of a gate run at the same time, so their runs are mixed. */
const groupByEvaluation = (runs: RunListItem[]): RunListItem[][] => [
  ...Map.groupBy(runs, ({ evalRequestId }) => evalRequestId).values(),
];

type EvalRowProps = { run: RunListItem; shownCount: number; base: string; span: number };

/** Heading for the runs of one evaluation. `shownCount`: how many of these runs are in this list. `span`: the number of columns. */
const EvalRow = ({ run, shownCount, base, span }: EvalRowProps) => (
  <tr class="group" data-eval={run.evalRequestId}>
    <th scope="rowgroup" colSpan={span}>
      <a href={`${base}/evals/${run.evalRequestId}`}>Evaluation of {run.title}</a>{" "}
      <small>
        {shownCount === run.runsOfEval
          ? count(run.runsOfEval, "run")
          : `${shownCount} of ${count(run.runsOfEval, "run")}`}
      </small>
    </th>
  </tr>
);

type RowProps = { run: RunListItem; base: string; now: number; hasPrompt: boolean; isSelectable: boolean };

const RunRow = ({ run, base, now, hasPrompt, isSelectable }: RowProps) => (
  <tr>
    {isSelectable && (
      <td>
        <SelectRow name={run.runId} label={`run of ${run.title}`} />
      </td>
    )}
    <td>
      <a class="plain" href={`${base}/runs/${run.runId}`} aria-label={`Run, ${statusLabel(run)}`}>
        <Status status={run.status} waitingFor={run.waitingFor} />
      </a>{" "}
      <DocsMark variant={run.docsVariant} />
    </td>
    {hasPrompt && (
      <td class="title" {...foreignText}>
        <a class="plain" href={`${base}/prompts/${run.promptId}`}>
          {run.title}
        </a>
      </td>
    )}
    <td>
      <Result run={run} base={base} />
    </td>
    <td class="soft">{[run.agent, run.agentVersion, run.model].filter(Boolean).join(" ")}</td>
    <td class="soft">{triggerLabels[run.trigger]}</td>
    <td class="number soft">{runDuration(run, now)}</td>
    <td class="number soft">
      <When at={run.createdAt} now={now} />
    </td>
  </tr>
);
