import type { Command } from "commander";
import { findPromptId } from "./api.ts";
import { addServiceOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { addRunResult, finishRuns, type RunResult, runResultHelp, waitsForReport } from "./run-result.ts";
import { addSiteOptions, type SiteOptions, uploadSite } from "./site-folder.ts";
import { parsePair } from "./terminal.ts";

type PromptRun = ServiceAddress &
  SiteOptions &
  RunResult & {
    docs?: string;
    urlMap?: Record<string, string>;
    arg?: Record<string, string>;
    agent?: string;
    model?: string;
    supersede?: boolean;
  };

/** Adds `run`, which runs a prompt. With `--wait`, it waits for the report. */
export function addRun(program: Command, useApi: UseApi): void {
  const command = program
    .command("run <prompt>")
    .description("Run a prompt, by ID or title, and print the run ID to stdout; with --wait, print the report instead")
    .option("--url-map <host=url>", "Host to replace with a preview URL (repeatable)", parsePair)
    .option("--docs <folder>", "Folder with built docs to run against, in place of the live docs")
    .option("--arg <name=value>", "Value of a template variable (repeatable)", parsePair)
    .option("--agent <id>", "Agent to use instead of the prompt's")
    .option("--model <id>", "Model to use instead of the prompt's")
    .option("--supersede", "End unfinished runs of this prompt whose --url-map replaces the same hosts");
  addServiceOptions(addRunResult(addSiteOptions(command)))
    .addHelpText(
      "after",
      `${runResultHelp}\n\nExamples:\n  evald run "First query"\n  evald run "First query" --url-map docs.acme.example=https://preview-42.acme.example --min-score 80 --url https://evals.acme.example`,
    )
    .action(async (prompt: string, options: PromptRun) => {
      process.exitCode = await runPrompt(useApi, prompt, options);
    });
}

async function runPrompt(useApi: UseApi, prompt: string, options: PromptRun): Promise<number> {
  const { docs, url, org, urlMap = {}, arg: templateArgs, agent, model, supersede } = options;
  const execution = waitsForReport(options) ? { execute: { allowUrls: Object.values(urlMap) } } : {};
  return await useApi(
    { url, org },
    async (api) => {
      const promptId = await findPromptId(api, prompt);
      const sites = docs === undefined ? {} : await uploadSite(api, docs, options);
      const response = await api.request("POST /prompts/{promptId}/run", {
        path: { promptId },
        body: { urlMap, sites, templateArgs, agent, model, supersede },
        idempotencyKey: crypto.randomUUID(),
      });
      return await finishRuns(api, response, options);
    },
    execution,
  );
}
