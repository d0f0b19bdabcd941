import type { Command } from "commander";
import { toPrintable } from "../log.ts";
import { notMeasured, titleOf } from "../reports/labels.ts";
import type { Run, RunResponse } from "../runs/schema.ts";
import { type Api, isConflict, isNotFound, toInterruptionFailure } from "./api.ts";
import { onInterruption } from "./interruption.ts";
import { addMinScore, checkMinScore, type MinScore } from "./min-score.ts";
import { addReportFormat, type ReportFormat, toReportText } from "./report-screen.ts";
import { exits, failureText, print, printStyled, say, sayError, sayProgress, toJson } from "./terminal.ts";

const waitingTexts: Record<NonNullable<Run["waitingFor"]>["what"], string> = {
  worker: "waiting for a worker",
  slot: "waiting for a slot",
  budget: "waiting for a budget",
  paused_organization: "waiting, because an operator has paused the organization",
  paused_agent: "waiting, because an operator has paused the agent",
};

/** How to print the runs that a command requested. */
export type RunResult = MinScore & ReportFormat & { wait?: boolean; json?: boolean };

/** Adds the options of a command that requests runs. */
export const addRunResult = (command: Command): Command =>
  addMinScore(addReportFormat(command))
    .option("--wait", "Wait for the report and print it")
    .option("--json", "Print the runs as JSON");

export const runResultHelp =
  "\n--min-score implies --wait.\n\nExit codes: 0 accepted or passed, 1 below --min-score, 2 usage error, 3 no verdict (the run failed, or the server could not be reached), 130 interrupted.";

/** Whether a command waits for the report of its run. */
export const waitsForReport = ({ wait, minScore }: RunResult): boolean => wait === true || minScore !== undefined;

/** Prints requested runs, or waits for their reports and prints the reports. Returns the exit code. */
export async function finishRuns(api: Api, response: RunResponse, result: RunResult): Promise<number> {
  const { json } = result;
  const waits = waitsForReport(result);
  const runIds = response.runs?.map(({ runId }) => runId) ?? [response.runId];
  const runs: Run[] = [];
  for (const runId of runIds) {
    const run = await api.request("GET /runs/{runId}", { path: { runId } });
    say(`Run ${runId}: ${run.runUrl}`);
    runs.push(run);
  }
  if (waits) {
    const stopListening = onInterruption(() => toInterruptionFailure(api, "run", runIds), {
      json,
      cancel: () => cancelRuns(api, runIds),
    });
    for (const [i, runId] of runIds.entries()) runs[i] = await waitForRun(api, runId);
    stopListening();
  }
  if (json) print(toJson({ runs }, 2));
  else for (const each of runs) printStyled(waits ? await toText(api, each, result) : each.runId);
  return waits ? worstExitCode(runs.map((each) => exitCodeOf(each, result))) : exits.passed;
}

/** Cancels the runs that have not ended. */
async function cancelRuns(api: Api, runIds: string[]): Promise<void> {
  for (const runId of runIds)
    await api.request("POST /runs/{runId}/cancel", { path: { runId } }).catch((error) => {
      if (!isConflict(error)) throw error;
    });
}

/** Polls a run until it has ended, and prints each change of its status. */
async function waitForRun(api: Api, runId: string): Promise<Run> {
  let previous = "";
  for (;;) {
    const run = await api.request("GET /runs/{runId}", { path: { runId } });
    const state = run.waitingFor ? waitingTexts[run.waitingFor.what] : run.status;
    if (state !== previous) sayProgress(`Run ${runId}: ${state}`);
    previous = state;
    if (run.completedAt !== null) return run;
    await Bun.sleep(500);
  }
}

/** The report as text. A server that has the API of runs but not of reports has only a summary in the run, so that summary is used instead. */
async function toText(api: Api, { runId, prompt, report }: Run, format: ReportFormat): Promise<string> {
  if (report === null) return runId;
  try {
    const fullReport = await api.request("GET /reports/{slug}", { path: { slug: report.slug } });
    return toReportText(fullReport, format, { isStored: true, fullReportHint: fullReport.url });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  const { score = null, grade = null } = report;
  const result = score === null ? notMeasured : `${score} of 100${grade === null ? "" : ` (${grade})`}`;
  return toPrintable(`# ${titleOf(prompt)}\n\n${result}\n\n${report.url}`);
}

function exitCodeOf({ runId, status, report, failure, failureReason }: Run, minScore: MinScore): number {
  // Other servers with this API measure goals only.
  if (report !== null) return checkMinScore({ ...report, scope: report.scope ?? "goal" }, minScore);
  // Older servers don’t have `failure`.
  sayError(`Run ${runId}: ${failure ? failureText(failure) : (failureReason ?? status)}`);
  return exits.error;
}

/** The exit code for several runs. A run below the minimum score decides first, then a run without a result. */
function worstExitCode(codes: number[]): number {
  return codes.find((code) => code === exits.failed) ?? codes.find((code) => code !== exits.passed) ?? exits.passed;
}
