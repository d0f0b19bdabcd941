import { appendFileSync, writeFileSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import type { Agent } from "../agents/agent.ts";
import type { Config } from "../config.ts";
import { AppError, badRequest, ConfigError, errorStatus } from "../errors.ts";
import type { Gate, GateRequest } from "../gates/schema.ts";
import { gateJunit, gateMarkdown } from "../web/gatesummary.ts";
import { openLocal, openRemote } from "./door.ts";
import { print, say, score, wholeNumber } from "./terminal.ts";

type GateOptions = {
  prompt: string;
  urlMap?: Record<string, string>;
  arg?: Record<string, string>;
  runs?: number;
  adaptive?: boolean;
  minScore?: number;
  budgetUsd?: number;
  url?: string;
  org?: string;
  json?: boolean;
  markdown?: string;
  junit?: string;
};

/** Passed, failed, a wrong call or setting, and no answer: the runs could not be made, or the service not be reached. */
const exits = { passed: 0, failed: 1, wrongCall: 2, error: 3 } as const;

const pair = (value: string, all: Record<string, string> = {}) => {
  const at = value.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be NAME=VALUE.");
  return { ...all, [value.slice(0, at)]: value.slice(at + 1) };
};

function dollars(value: string): number {
  if (!/^\d{1,6}(\.\d+)?$/.test(value) || Number(value) === 0)
    throw new InvalidArgumentError("It must be a number of dollars above 0.");
  return Number(value);
}

/** Adds `gate`: whether a change made something worse, for a build to wait for. */
export function addGate(
  program: Command,
  configOf: () => Config,
  agents: Record<string, Agent>,
  env: Record<string, string | undefined>,
): void {
  program
    .command("gate")
    .description("run a prompt on a preview and on what is live, and fail if the preview is worse")
    .requiredOption("--prompt <id or title>", "the prompt to run")
    .option("--url-map <host=url>", "where the preview is; may be repeated. Without: against the baseline", pair)
    .option("--arg <name=value>", "a value for a variable of the prompt; may be repeated", pair)
    .option("--runs <n>", "runs a side (default 5; at most 12 with --adaptive)", wholeNumber(1, 50))
    .option("--adaptive", "look at 3, 5, 8 and 12 runs a side, and stop when the verdict is plain")
    .option("--min-score <n>", "fail too if the mean score is below", score)
    .option("--budget-usd <n>", "begin no runs that would cost more in all", dollars)
    .option(
      "--url <url>",
      "the service to ask, with the API key in EVALD_KEY (default: EVALD_URL, else the data folder)",
    )
    .option("--org <name>", "organisation, in the data folder")
    .option("--json", "print the gate as JSON instead of Markdown")
    .option("--markdown <file>", "write the Markdown to a file too")
    .option("--junit <file>", "write JUnit XML to a file too")
    .addHelpText(
      "after",
      '\nExit codes: 0 not worse, 1 worse or below --min-score, 2 a wrong call, 3 it cannot be told (runs that could not be made, no service).\n\nExamples:\n  evald gate --prompt "First query" --url-map docs.acme.example=https://preview-42.acme.example\n  evald gate --prompt "First query" --adaptive --budget-usd 5 --markdown summary.md --url https://evals.acme.example',
    )
    .action(async (options: GateOptions) => {
      process.exitCode = await gate(configOf, agents, env, options).catch((error) => {
        // Whatever else goes wrong says nothing about the head.
        if (error instanceof ConfigError) throw error;
        const isCall = error instanceof AppError && errorStatus[error.code] < 429;
        say(`evald: ${error instanceof AppError ? error.detail : error instanceof Error ? error.message : error}`);
        return isCall ? exits.wrongCall : exits.error;
      });
    });
}

async function gate(
  configOf: () => Config,
  agents: Record<string, Agent>,
  env: Record<string, string | undefined>,
  options: GateOptions,
): Promise<number> {
  const { prompt, urlMap = {}, arg, runs, adaptive, minScore, budgetUsd, org, json, markdown, junit } = options;
  for (const file of [markdown, junit]) if (file !== undefined) checkWritable(file);
  const config = configOf();
  const url = options.url ?? env.EVALD_URL;
  if (url && org) throw badRequest("--org is for the data folder; over REST the API key says whose prompt it is");
  const door = url
    ? openRemote(url, env.EVALD_KEY)
    : await openLocal(config, agents, { org, places: Object.values(urlMap) });
  try {
    const request: Omit<GateRequest, "promptId"> = { urlMap, templateArgs: arg, runs, adaptive, minScore, budgetUsd };
    const decided = await follow(
      await door.request({ ...request, promptId: promptOf(await door.prompts(), prompt) }),
      door.get,
    );
    print(json ? JSON.stringify(decided, null, 2) : gateMarkdown(decided).trimEnd());
    if (markdown !== undefined) writeFileSync(markdown, gateMarkdown(decided));
    if (junit !== undefined) writeFileSync(junit, gateJunit(decided));
    say(`gate ${decided.status}: ${decided.reason}`);
    return decided.status === "running" ? exits.error : exits[decided.status];
  } finally {
    await door.close();
  }
}

/** Before runs are paid for. Leaves what stands in it. Throws bad_request. */
function checkWritable(file: string): void {
  try {
    appendFileSync(file, "");
  } catch (error) {
    throw badRequest(
      `${file} cannot be written (${error instanceof Error ? error.message : error}); name another file`,
    );
  }
}

/** The id of the prompt that somebody names by its id or its title. */
function promptOf(prompts: { id: string; title: string | null }[], name: string): string {
  const found = prompts.filter(({ id, title }) => id === name.toLowerCase() || title === name);
  if (found.length > 1)
    throw badRequest(
      `--prompt: ${found.length} prompts have the title ${JSON.stringify(name)}; name one by its id: ${found.map(({ id }) => id).join(", ")}`,
    );
  const [only] = found;
  if (!only)
    throw badRequest(`--prompt: no prompt has the id or title ${JSON.stringify(name)}; evald prompt list shows them`);
  return only.id;
}

/** Waits for the end of a gate and tells how far it is. */
async function follow(asked: Gate, get: (id: string) => Promise<Gate>): Promise<Gate> {
  for (const warning of asked.warnings) say(`warning: ${warning}`);
  say(`gate ${asked.id}`);
  let told = "";
  for (let gate = asked; ; gate = await get(asked.id)) {
    const line = `${gate.progress.ended} of ${gate.progress.of} runs have ended`;
    if (line !== told) say(line);
    told = line;
    if (gate.status !== "running") return gate;
    await Bun.sleep(500);
  }
}
