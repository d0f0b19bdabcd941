import { appendFileSync, writeFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { badRequest } from "../errors.ts";
import { gateJunit, gateMarkdown, statusLabels } from "../gates/summary.ts";
import type { Scope } from "../grading/grade.ts";
import { scopes } from "../grading/kinds.ts";
import { type Api, findPromptId, toInterruptionFailure } from "./api.ts";
import { addServiceOptions, type UseApi } from "./connection.ts";
import { runExperiment } from "./experiment.ts";
import { checkFileName, toWriteError } from "./files.ts";
import { onInterruption } from "./interruption.ts";
import { addSiteOptions, type SiteOptions, uploadSite } from "./site-folder.ts";
import { exits, parseDollars, parsePair, parseScore, print, say, toJson, waitForEnd, wholeNumber } from "./terminal.ts";

type GateOptions = SiteOptions & {
  head?: string;
  base?: string;
  urlMap?: Record<string, string>;
  arg?: Record<string, string>;
  runs?: number;
  adaptive?: boolean;
  minScore?: number;
  scope?: Scope;
  aa?: boolean;
  everyWeeks?: number;
  tag?: string;
  budgetUsd?: number;
  url?: string;
  org?: string;
  json?: boolean;
  markdown?: string;
  junit?: string;
};

/** Adds `gate`: checks in CI whether a change made results worse. */
export function addGate(program: Command, useApi: UseApi): void {
  const command = program
    .command("gate")
    .description("Run prompts against a preview and the live docs, and fail if the preview is worse")
    .argument("[prompts...]", "IDs or titles of the prompts to run; several prompts share one verdict")
    .option("--tag <tag>", "Run all prompts with this tag instead")
    .option(
      "--url-map <host=url>",
      "Host to replace with a preview URL (repeatable); without it, compare the live docs with the baseline",
      parsePair,
    )
    .option("--head <folder>", "Folder with built docs to run against, in place of a preview")
    .option("--base <folder>", "Folder with built docs to compare with, in place of the live docs")
    .option("--arg <name=value>", "Value of a template variable (repeatable)", parsePair)
    .option(
      "--runs <n>",
      "Runs per prompt and side (default: 5; with --adaptive at most 12; always 1 for the explorer)",
      wholeNumber(1, 50),
    )
    .option("--adaptive", "Evaluate after 3, 5, 8 and 12 runs per side, and stop as soon as the verdict is clear")
    .option("--min-score <n>", "Also fail if the mean score is lower", parseScore)
    .addOption(
      new Option("--scope <scope>", "Scope of the score that --min-score applies to (default: goal)").choices(scopes),
    )
    .option("--budget-usd <n>", "Maximum total cost; runs that would exceed it are not started", parseDollars)
    .option("--aa", "Compare the base with itself instead, to learn how often a gate fails without a reason")
    .option("--every-weeks <n>", "Repeat --aa after so many weeks", wholeNumber(1, 52))
    .option("--json", "Print the result as JSON instead of Markdown")
    .option("--markdown <file>", "Also write the Markdown to a file")
    .option("--junit <file>", "Also write JUnit XML to a file");
  addServiceOptions(addSiteOptions(command))
    .addHelpText(
      "after",
      '\nExit codes: 0 passed, 1 worse or below --min-score, 2 usage error, 3 inconclusive (runs failed, too few runs, or the server could not be reached).\n\nExamples:\n  evald gate "First query" --url-map docs.acme.example=https://preview-42.acme.example\n  evald gate "First query" "Error codes" --adaptive --budget-usd 5 --markdown summary.md --url https://evals.acme.example\n  evald gate "First query" --head ./build --at https://docs.acme.example/\n  evald gate --tag quickstart --url-map docs.acme.example=https://preview-42.acme.example\n  evald gate "First query" --aa --every-weeks 4',
    )
    .action(async (prompts: string[], options: GateOptions) => {
      if (options.aa) return await compareWithItself(useApi, prompts, options);
      process.exitCode = await runGate(useApi, { ...options, prompts });
    });
}

/** Runs on each side of a comparison of the base with itself. They are enough for 8 gates of 5 runs. */
const selfComparisonRuns = 40;

/** Compares the base with itself, as `evald experiment run --itself` does. */
async function compareWithItself(useApi: UseApi, prompts: string[], options: GateOptions): Promise<void> {
  const {
    tag,
    runs = selfComparisonRuns,
    budgetUsd,
    everyWeeks,
    json,
    url,
    org,
    urlMap,
    head,
    base,
    adaptive,
    minScore,
  } = options;
  if ([urlMap, head, base, adaptive, minScore].some((each) => each !== undefined))
    throw badRequest("--aa compares the base with itself. Leave out the options of a head and of the verdict.");
  await runExperiment(useApi, prompts, { itself: true, tag, runs, budgetUsd, everyWeeks, json, url, org });
}

async function runGate(useApi: UseApi, options: GateOptions & { prompts: string[] }): Promise<number> {
  const { prompts, tag, urlMap = {}, arg: templateArgs, url, org, json, markdown, junit } = options;
  const { runs, adaptive, minScore, scope, budgetUsd, head, base } = options;
  if (base !== undefined && head === undefined)
    throw badRequest("--base is compared with --head. Pass the folder with the changed docs as --head.");
  if ((prompts.length === 0) === (tag === undefined)) throw badRequest("Name the prompts to run, or pass --tag.");
  for (const file of [markdown, junit]) if (file !== undefined) checkWritable(file);
  const work = async (api: Api): Promise<number> => {
    const promptIds: string[] = [];
    for (const name of prompts) promptIds.push(await findPromptId(api, name));
    const selection = tag === undefined ? { promptIds: [...new Set(promptIds)] } : { tag };
    const sites = head === undefined ? {} : await uploadSite(api, head, options);
    const baseSites = base === undefined ? {} : await uploadSite(api, base, options);
    const body = { ...selection, urlMap, sites, baseSites, templateArgs, runs, adaptive, minScore, scope, budgetUsd };
    const requestedGate = await api.request("POST /gates", { body, idempotencyKey: crypto.randomUUID() });
    const stopListening = onInterruption(() => toInterruptionFailure(api, "gate", [requestedGate.id]), {
      json,
      cancel: () => api.request("POST /gates/{gateId}/cancel", { path: { gateId: requestedGate.id } }),
    });
    for (const warning of requestedGate.warnings) say(`Warning: ${warning}`);
    say(`Gate ${requestedGate.id}`);
    const gate = await waitForEnd(requestedGate, () =>
      api.request("GET /gates/{gateId}", { path: { gateId: requestedGate.id } }),
    );
    stopListening();
    print(json ? toJson(gate, 2) : gateMarkdown(gate).trimEnd());
    if (markdown !== undefined) writeFileSync(markdown, gateMarkdown(gate));
    if (junit !== undefined) writeFileSync(junit, gateJunit(gate));
    say(`Gate ${statusLabels[gate.status]}: ${gate.reason}`);
    return gate.status === "running" ? exits.error : exits[gate.status];
  };
  return await useApi({ url, org }, work, { execute: { allowUrls: Object.values(urlMap) } });
}

/** Checks that a file can be written, before any run costs money. Keeps the content of the file. Throws bad_request. */
function checkWritable(file: string): void {
  checkFileName(file);
  try {
    appendFileSync(file, "");
  } catch (error) {
    throw toWriteError(error, file);
  }
}
