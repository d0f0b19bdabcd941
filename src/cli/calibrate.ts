import type { Command } from "commander";
import {
  calibrationTitle,
  estimateText,
  evidenceLabels,
  resultText,
  statusLabels,
  worseLabels,
} from "../calibration/labels.ts";
import { type Calibration, type CalibrationRequest, maxSites, runsPerSite } from "../calibration/schema.ts";
import { AppError } from "../errors.ts";
import { type Api, findPromptId, toInterruptionFailure } from "./api.ts";
import { addServiceOptions, type ServiceAddress, type UseApi, withExecution } from "./connection.ts";
import { onInterruption } from "./interruption.ts";
import { exits, parseDollars, print, say, sayRest, table, toJson, waitForEnd, wholeNumber } from "./terminal.ts";

type Options = ServiceAddress & {
  agent?: string;
  model?: string;
  prompt?: string;
  n?: number;
  budgetUsd?: number;
  every?: number;
  estimate?: boolean;
  history?: boolean;
  stop?: string;
  json?: boolean;
};

/** Adds `calibrate`. */
export function addCalibrate(program: Command, useApi: UseApi): void {
  const command = program
    .command("calibrate")
    .description("Plant known defects, and measure how many of them an agent finds")
    .option("--agent <id>", "Agent to measure (default: that of a new prompt)")
    .option("--model <id>", "Model of the agent")
    .option("--prompt <prompt>", "Plant into the docs of this prompt, by title or ID, in place of sites of evald's own")
    .option(
      "--n <n>",
      "Sites, each with 3 runs and up to 4 defects (default: 12 for the explorer, otherwise 3)",
      wholeNumber(1, maxSites),
    )
    .option("--budget-usd <n>", "Maximum total cost, required for an agent with a model", parseDollars)
    .option("--every <days>", "Repeat it after so many days, such as 7", wholeNumber(1, 365))
    .option("--estimate", "Only print what it would cost")
    .option("--history", "Only print earlier calibrations, newest first")
    .option("--stop <id>", "Cancel a calibration and its repetition")
    .option("--json", "Print the result as JSON");
  addServiceOptions(command)
    .addHelpText(
      "after",
      '\nEach report says what the newest calibration of its agent, model and methodology measured.\n\nExamples:\n  evald calibrate\n  evald calibrate --agent explorer --n 20 --every 7\n  evald calibrate --model openai/gpt-5-mini --n 3 --budget-usd 5\n  evald calibrate --prompt "Upload a file"\n  evald calibrate --history',
    )
    .action((options: Options) => calibrate(useApi, options));
}

async function calibrate(useApi: UseApi, options: Options): Promise<void> {
  const { url, org, history, stop, json } = options;
  if (history) return await useApi({ url, org }, (api) => printHistory(api, json));
  if (stop !== undefined)
    return await useApi({ url, org }, async (api) => {
      const path = { calibrationId: stop };
      const stopped = await api.request("POST /calibrations/{calibrationId}/cancel", { path });
      say("Stopped the calibration and its repetition.");
      print(json ? toJson(stopped) : stopped.id);
    });
  await useApi({ url, org }, (api) => runCalibration(api, options), withExecution);
}

async function runCalibration(api: Api, options: Options): Promise<void> {
  const { agent, model, prompt, n: sites, budgetUsd, every: everyDays, estimate, json } = options;
  const promptId = prompt === undefined ? undefined : await findPromptId(api, prompt);
  const body: CalibrationRequest = { promptId, agent, model, sites, budgetUsd, everyDays };
  const plan = await api.request("POST /calibrations", { body: { ...body, dryRun: true } });
  if (estimate) return print(json ? toJson(plan.estimate) : estimateText(plan));
  say(estimateText(plan));
  const requested = await api.request("POST /calibrations", { body });
  say(`Calibration ${requested.pageUrl}`);
  const path = { calibrationId: requested.id };
  const stopListening = onInterruption(() => toInterruptionFailure(api, "calibration", [requested.id]), {
    json,
    cancel: () => api.request("POST /calibrations/{calibrationId}/cancel", { path }),
  });
  const ended = await waitForFigures(api, requested);
  stopListening();
  print(json ? toJson(ended, 2) : endText(ended));
  if (ended.figures === null) process.exitCode = exits.error;
}

/** Waits until a calibration has ended. Throws not_found if it was deleted in the meantime. */
async function waitForFigures(api: Api, { id }: Calibration): Promise<Calibration> {
  const read = async () => {
    const { items } = await api.list("GET /calibrations", { query: { limit: 100 } });
    const calibration = items.find((each) => each.id === id);
    if (!calibration) throw new AppError("not_found", `The calibration ${id} was deleted.`);
    return { ...calibration, progress: { ended: calibration.endedRuns, of: runsPerSite * calibration.sites } };
  };
  return await waitForEnd(await read(), read);
}

/** The figures, and the friction that grading missed and invented. */
function endText(calibration: Calibration): string {
  return [
    `${calibrationTitle(calibration)}: ${resultText(calibration)}`,
    ...calibration.worse.map((figure) => `Significantly worse than before: it ${worseLabels[figure]}.`),
    ...calibration.evidence.map(({ figure, what, runId }) => `${evidenceLabels[figure]}: ${what} (run ${runId})`),
  ].join("\n");
}

async function printHistory(api: Api, json: boolean | undefined): Promise<void> {
  const calibrations = await api.list("GET /calibrations", { query: { limit: 100 } });
  const rows = calibrations.items.map((each) => [
    each.id,
    statusLabels[each.status],
    each.createdAt.slice(0, 10),
    calibrationTitle(each),
    resultText(each),
  ]);
  print(json ? toJson(calibrations.items) : table([["ID", "STATUS", "DATE", "AGENT", "RESULT"], ...rows]));
  sayRest(calibrations);
}
