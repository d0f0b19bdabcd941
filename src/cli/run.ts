import type { Command } from "commander";
import { AppError } from "../errors.ts";
import { notMeasured, titleOf } from "../reports/labels.ts";
import type { Run } from "../runs/schema.ts";
import { type Api, findPromptId, whatGoesOn } from "./api.ts";
import { addServiceOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { onInterruption } from "./interruption.ts";
import { addMinScore, checkMinScore, type MinScore } from "./min-score.ts";
import { addReportFormat, type ReportFormat, toReportText } from "./report-screen.ts";
import { exits, failureText, parsePair, print, say, sayError, toJson } from "./terminal.ts";

type RunOptions = ServiceAddress &
  MinScore &
  ReportFormat & {
    urlMap?: Record<string, string>;
    arg?: Record<string, string>;
    agent?: string;
    model?: string;
    supersede?: boolean;
    wait?: boolean;
    json?: boolean;
  };

/** Adds `run`: runs a prompt, and with `--wait` follows it to its report. */
export function addRun(program: Command, useApi: UseApi): void {
  const command = program
    .command("run <prompt>")
    .description("Run a prompt, by ID or title, and print the run ID to stdout; with --wait, print the report instead")
    .option("--url-map <host=url>", "Host to replace with a preview URL (repeatable)", parsePair)
    .option("--arg <name=value>", "Value of a template variable (repeatable)", parsePair)
    .option("--agent <id>", "Agent to use instead of the prompt's")
    .option("--model <id>", "Model to use instead of the prompt's")
    .option("--supersede", "End unfinished runs of this prompt whose --url-map replaces the same hosts")
    .option("--wait", "Wait for the report and print it");
  addServiceOptions(addMinScore(addReportFormat(command)))
    .option("--json", "Print the runs as JSON")
    .addHelpText(
      "after",
      '\n--min-score implies --wait.\n\nExit codes: 0 accepted or passed, 1 below --min-score, 2 usage error, 3 no verdict (the run failed, or the server could not be reached).\n\nExamples:\n  evald run "First query"\n  evald run "First query" --url-map docs.acme.example=https://preview-42.acme.example --min-score 80 --url https://evals.acme.example',
    )
    .action(async (prompt: string, options: RunOptions) => {
      process.exitCode = await runPrompt(useApi, prompt, options);
    });
}

async function runPrompt(useApi: UseApi, prompt: string, options: RunOptions): Promise<number> {
  const { url, org, urlMap = {}, arg: templateArgs, agent, model, supersede, json, minScore } = options;
  const waits = options.wait || minScore !== undefined;
  const work = async (api: Api): Promise<number> => {
    const promptId = await findPromptId(api, prompt);
    const response = await api.request("POST /prompts/{promptId}/run", {
      path: { promptId },
      body: { urlMap, templateArgs, agent, model, supersede },
      idempotencyKey: crypto.randomUUID(),
    });
    const runIds = response.runs?.map(({ runId }) => runId) ?? [response.runId];
    const runs: Run[] = [];
    for (const runId of runIds) {
      const run = await api.request("GET /runs/{runId}", { path: { runId } });
      say(`Run ${runId}: ${run.runUrl}`);
      runs.push(run);
    }
    if (waits) {
      const stopListening = onInterruption(() => whatGoesOn(api, "run", runIds), json);
      for (const [i, runId] of runIds.entries()) runs[i] = await waitForRun(api, runId);
      stopListening();
    }
    if (json) print(toJson({ runs }, 2));
    else for (const each of runs) print(waits ? await toText(api, each, options) : each.runId);
    return waits ? worstExitCode(runs.map((each) => exitCodeOf(each, options))) : exits.passed;
  };
  return await useApi({ url, org }, work, waits ? { execute: { allowUrls: Object.values(urlMap) } } : {});
}

/** Polls a run until it has ended, and says when its status changes. */
async function waitForRun(api: Api, runId: string): Promise<Run> {
  let previous = "";
  for (;;) {
    const run = await api.request("GET /runs/{runId}", { path: { runId } });
    const state = run.waitingFor ? `waiting for a ${run.waitingFor.what}` : run.status;
    if (state !== previous) say(`Run ${runId}: ${state}`);
    previous = state;
    if (run.completedAt !== null) return run;
    await Bun.sleep(500);
  }
}

/** The report as text. Of a server that has the API of runs but not of reports: what the run says about it. */
async function toText(api: Api, { runId, prompt, report }: Run, format: ReportFormat): Promise<string> {
  if (report === null) return runId;
  const whole = await api
    .request("GET /reports/{slug}", { path: { slug: report.slug } })
    .catch((error) => (error instanceof AppError && error.code === "not_found" ? null : Promise.reject(error)));
  if (whole) return toReportText(whole, format, { isStored: true, all: whole.url });
  const { score = null, grade = null } = report;
  const result = score === null ? notMeasured : `${score} of 100${grade === null ? "" : ` (${grade})`}`;
  return `# ${titleOf(prompt)}\n\n${result}\n\n${report.url}`;
}

function exitCodeOf({ runId, status, report, failure, failureReason }: Run, bar: MinScore): number {
  // Other servers with this API measure goals only.
  if (report !== null) return checkMinScore({ ...report, scope: report.scope ?? "goal" }, bar);
  // Older servers don’t have `failure`.
  sayError(`Run ${runId}: ${failure ? failureText(failure) : (failureReason ?? status)}`);
  return exits.error;
}

/** One run below the minimum decides, then one without a result. */
function worstExitCode(codes: number[]): number {
  return codes.find((code) => code === exits.failed) ?? codes.find((code) => code !== exits.passed) ?? exits.passed;
}
