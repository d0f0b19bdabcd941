import { Value } from "@sinclair/typebox/value";
import { type Command, InvalidArgumentError, Option } from "commander";
import { Limits, limitNames } from "../config/limits.ts";
import { catchUpPolicies, overlapPolicies, type PromptAgent, type SuccessBar } from "../db/tables/prompts.ts";
import { badRequest } from "../errors.ts";
import { AgentOptions } from "../prompts/agent-schema.ts";
import type { DeclaredCheck } from "../prompts/check-schema.ts";
import { untestedScopes } from "../prompts/schema.ts";
import { invalidInput } from "../schema.ts";
import { readJsonFile, readTextFile } from "./files.ts";
import { repeatable, wholeNumber } from "./terminal.ts";

/** The options for the fields of a prompt. */
export type FieldOptions = {
  text?: string;
  title?: string;
  goal?: string;
  wording?: string[];
  provider?: string;
  startUrl?: string[];
  agent?: PromptAgent[];
  model?: string;
  frequency?: string;
  catchUp?: (typeof catchUpPolicies)[number];
  catchUpHours?: number;
  overlap?: (typeof overlapPolicies)[number];
  runs?: number;
  limit?: Limits;
  tag?: string[];
  workerLabel?: string[];
  successBar?: SuccessBar;
  supersede?: boolean;
  resultsPage?: boolean;
  checks?: DeclaredCheck[];
};

/** Adds the options for the fields of a prompt. */
export const addFields = (command: Command): Command =>
  command
    .option("--title <title>", "Title shown in lists and reports")
    .option("--goal <goal>", "What must be true when the agent is done")
    .option(
      "--wording <text>",
      "Another wording of the goal (repeatable). The explorer compares what each wording finds",
      repeatable,
    )
    .option("--provider <id>", "ID of the provider under test; list IDs with evald provider list")
    .option("--start-url <url>", "Start URL (repeatable)", repeatable)
    .option("--tag <tag>", "Tag to group prompts by (repeatable)", repeatable)
    .option("--worker-label <label>", "Label that workers must have to run it (repeatable)", repeatable)
    .option(
      "--agent <id[=model][,option=value]>",
      "Agent, such as codex, codex=openai/gpt-5 or codex=openai/gpt-5,effort=high; list coding agents with evald agent list. Repeat it to evaluate several",
      parseAgent,
    )
    .option("--model <id>", "Model of the agent, such as openai/gpt-5; for several agents, use --agent ID=MODEL")
    .option(
      "--frequency <when>",
      "Schedule: hourly, daily, weekly, monthly, 'daily at 06:30', 'weekdays at 06:30', 'monday at 06:30' or a cron expression",
    )
    .addOption(new Option("--catch-up <policy>", "What becomes of a missed evaluation").choices(catchUpPolicies))
    .option("--catch-up-hours <n>", "How late it may run, with --catch-up window", wholeNumber(1, 8784))
    .addOption(
      new Option("--overlap <policy>", "What becomes of an evaluation while the previous one runs").choices(
        overlapPolicies,
      ),
    )
    .option("--runs <n>", "Runs per evaluation", wholeNumber(1, 50))
    .option("--limit <name=number>", `Run limit (repeatable): ${limitNames.join(", ")}`, parseLimit)
    .option(
      "--success-bar <scope=score>",
      `Score with which a run succeeds whose goal was not tested: ${untestedScopes.join(" or ")}, such as docs_only=80`,
      parseSuccessBar,
    )
    .option("--checks <file>", "File with a JSON list of success checks, which replaces the previous one", readChecks)
    .option("--supersede", "Let a run over the API supersede unfinished runs of the same preview")
    .option("--no-supersede", "Let it supersede them only on request (default)")
    .option("--results-page", "List the prompt on the public results page of the organization")
    .option("--no-results-page", "Don't list it there (default)");

/** The fields of a prompt that options set. Throws bad_request. */
export const toFields = (options: FieldOptions) => ({
  title: options.title,
  endGoal: options.goal,
  wordings: options.wording,
  targetProviderId: options.provider,
  additionalUrls: options.startUrl?.map((url) => ({ url })),
  ...toAgentFields(options.agent, options.model),
  frequency: options.frequency,
  catchUp: options.catchUp,
  catchUpHours: options.catchUpHours,
  overlap: options.overlap,
  runsPerEval: options.runs,
  limits: options.limit,
  tags: options.tag,
  workerLabels: options.workerLabel,
  successBar: options.successBar,
  supersedesByDefault: options.supersede,
  isOnResultsPage: options.resultsPage,
  declaredChecks: options.checks,
});

type ChosenOptions = NonNullable<PromptAgent["options"]>;

const agentForm = "ID[=MODEL][,OPTION=VALUE], such as codex=openai/gpt-5,effort=high";

/** Parses `codex=openai/gpt-5,effort=high` and adds it to the agents of earlier options. */
function parseAgent(text: string, previous: PromptAgent[] = []): PromptAgent[] {
  const [choice = "", ...pairs] = text.split(",");
  const [agent = "", ...model] = choice.split("=");
  if (agent === "") throw new InvalidArgumentError(`Must be ${agentForm}.`);
  const options = pairs.reduce<ChosenOptions>((before, pair) => addAgentOption(before, pair), {});
  return [...previous, { agent, model: model.join("=") || null, ...(pairs.length > 0 && { options }) }];
}

/** Adds an agent option: `effort=high`, `webSearch=true`, `systemPrompt=@instructions.md`, `args=--verbose` (repeatable) or `env.NAME=value`. */
function addAgentOption(before: ChosenOptions, pair: string): ChosenOptions {
  const [, name = "", variable, text = ""] = /^(\w+)(?:\.(\w+))?=(.*)$/s.exec(pair) ?? [];
  const needsVariable = name === "env";
  const hasVariable = variable !== undefined;
  if (!(name in AgentOptions.properties) || needsVariable !== hasVariable)
    throw new InvalidArgumentError(
      `"${pair}" is not an option of an agent. Must be ${agentForm}. Options: ${optionForms.join(", ")}.`,
    );
  const value = text.startsWith("@") ? readTextFile(text.slice(1)).trim() : text;
  const options = { ...before, ...toAgentOption(before, name, variable, value) };
  const error = Value.Errors(AgentOptions, options).First();
  if (error) throw new InvalidArgumentError(`${name} ${invalidInput(error, "option").problem}.`);
  return options;
}

const optionForms = Object.keys(AgentOptions.properties).map((name) => (name === "env" ? "env.NAME" : name));

function toAgentOption(
  { args = [], env = {} }: ChosenOptions,
  name: string,
  variable: string | undefined,
  value: string,
) {
  if (variable !== undefined) return { env: { ...env, [variable]: value } };
  if (name === "args") return { args: [...args, value] };
  if (["webSearch", "login"].includes(name) && ["true", "false"].includes(value)) return { [name]: value === "true" };
  return { [name]: value };
}

/** The service checks the items. */
function readChecks(path: string): DeclaredCheck[] {
  const checks = readJsonFile(path);
  if (Array.isArray(checks)) return checks;
  throw new InvalidArgumentError(`${path} must be a JSON list, such as [{"url": "https://api.example.com/health"}].`);
}

function toAgentFields(agents: PromptAgent[] = [], model: string | undefined) {
  const [first] = agents;
  if (agents.length > 1 && model !== undefined)
    throw badRequest("--model applies to one agent. With several, use --agent ID=MODEL.");
  if (agents.length > 1) return { agents };
  if (first?.options) return { agents: [{ ...first, model: model ?? first.model }] };
  return { agent: first?.agent, model: model ?? first?.model };
}

/** Parses `docs_only=80`. */
function parseSuccessBar(text: string): SuccessBar {
  const [, name = "", score = ""] = /^(\w+)=(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  const scope = untestedScopes.find((each) => each === name);
  if (!scope || Number(score) > 100)
    throw new InvalidArgumentError(`Must be SCOPE=SCORE, such as docs_only=80. Scopes: ${untestedScopes.join(", ")}.`);
  return { scope, minScore: Number(score) };
}

/** Parses `toolCalls=80` and adds it to the limits of earlier options. */
function parseLimit(text: string, previous: Limits = {}): Limits {
  const [, name = "", number = ""] = /^(\w+)=(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (!limitNames.some((limitName) => limitName === name))
    throw new InvalidArgumentError(`Must be NAME=NUMBER, such as toolCalls=80. Limits: ${limitNames.join(", ")}.`);
  const limits = { ...previous, [name]: Number(number) };
  const error = Value.Errors(Limits, limits).First();
  if (error) throw new InvalidArgumentError(`${name} ${invalidInput(error, "limit").problem}.`);
  return limits;
}
