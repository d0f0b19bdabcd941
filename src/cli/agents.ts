import type { Command } from "commander";
import type { Agent } from "../agents/agent.ts";
import { listPresets } from "../agents/all.ts";
import type { Preset } from "../agents/coding/preset.ts";
import { findInstalled } from "../agents/coding/program.ts";
import type { Config } from "../config/config.ts";
import { AppError, badRequest } from "../errors.ts";
import { initAgent } from "./agent-init.ts";
import { readTextFile } from "./files.ts";
import { addLogins } from "./logins.ts";
import { print, say, table, toJson } from "./terminal.ts";
import { describeEvent, summarizeEvent, tryAgent } from "./trial.ts";
import { explain } from "./trial-diagnosis.ts";

type Env = Record<string, string | undefined>;

/**
 * Adds `agent list`, `agent init`, `agent try`, `agent replay`, and the commands for logins. Each command first calls `configOf`, so that invalid
 * settings are reported.
 */
export function addAgents(program: Command, configOf: () => Config, agents: Record<string, Agent>, env: Env): void {
  const command = program.command("agent").description("List, add and try coding agents");
  command
    .command("list")
    .description("List coding agents with their versions and paths")
    .option("--json", "Print the list as JSON")
    .addHelpText("after", "\nExample:\n  evald agent list")
    .action(({ json }: { json?: boolean }) => {
      configOf();
      const list = listPresets(env).map((preset) => findInstalled(preset, env.PATH ?? ""));
      const rows = list.map((each) => {
        if (!each.isInstalled) return [each.id, "", "", each.detail];
        return [each.id, each.version, each.isTested ? "yes" : "no", each.path];
      });
      print(json ? toJson(list) : table([["ID", "VERSION", "TESTED", "PATH"], ...rows]));
    });
  command
    .command("init <id>")
    .description("Write a file with the entry of a new coding agent, filled in as far as its program shows")
    .option("--command <program>", "Program on PATH, or its absolute path; default: the ID")
    .option("--from <agent>", "Copy the entry of a built-in agent")
    .addHelpText("after", "\nExample:\n  evald agent init acme --command acme-cli")
    .action((id: string, options: { command?: string; from?: string }) => {
      configOf();
      const file = initAgent(id, { ...options, path: env.PATH ?? "" });
      say("Wrote the entry. Next, adapt it and try it:");
      say(`  export EVALD_AGENTS=${file}\n  evald agent try ${id}`);
      print(file);
    });
  command
    .command("try <id>")
    .description("Run a coding agent with a scripted model and show which events it reports; costs nothing")
    .option("--model <name>", "Name of the model, without its provider")
    .option("--json", "Print the events as JSON")
    .option("--save <file>", "Write what the agent prints to a file, for evald agent replay")
    .addHelpText("after", "\nExample:\n  evald agent try codex")
    .action((id: string, options: TryOptions) =>
      tryAndPrint(configOf(), getPreset(env, id), agents[id] as Agent, env, options),
    );
  command
    .command("replay <file>")
    .description("Turn the output of a coding agent into events again, to test how evald reads it")
    .option("--agent <id>", "The agent that wrote it; default: as the file says")
    .option("--json", "Print the events as JSON, one per line")
    .addHelpText("after", "\nExample:\n  evald agent try codex --save codex.jsonl\n  evald agent replay codex.jsonl")
    .action(async (file: string, options: ReplayOptions) => {
      configOf();
      await replayFile(file, env, options);
    });
  addLogins(command, configOf);
}

type TryOptions = { model?: string; json?: boolean; save?: string };

/** Runs an agent once. Prints the steps that its events show, what to change if a step is missing, and the events. */
async function tryAndPrint(
  config: Config,
  preset: Preset,
  agent: Agent,
  env: Env,
  { model, json, save }: TryOptions,
): Promise<void> {
  const installation = findInstalled(preset, env.PATH ?? "");
  if (!installation.isInstalled) throw new AppError("conflict", `${installation.name}: ${installation.detail}.`);
  const note = installation.isTested ? "" : " (not tested with this version of evald)";
  say(`${installation.name} ${installation.version}${note}, ${installation.path}`);
  const trial = await tryAgent(config, { id: preset.id, agent, preset, model });
  const { steps, problems, events, failureReason, output } = trial;
  if (save !== undefined && output !== null) await Bun.write(save, output);
  if (failureReason !== null) say(`The session failed: ${failureReason}`);
  for (const { name, detail } of steps) {
    const result = detail === null ? "missing" : "ok     ";
    say(`${result}  ${name}${detail ? `: ${detail}` : ""}`);
  }
  const missing = steps.flatMap(({ diagnosis }) => diagnosis ?? []);
  // If every step worked, the problems need no change.
  const diagnoses = missing.length > 0 ? [...problems, ...missing] : [];
  for (const sentence of new Set(diagnoses.map((each) => explain(each, preset)))) say(`-> ${sentence}`);
  print(json ? toJson(events.map(summarizeEvent)) : events.map(describeEvent).join("\n"));
  if (failureReason !== null || steps.some(({ detail }) => detail === null)) process.exitCode = 1;
}

type ReplayOptions = { agent?: string; json?: boolean };

/** Prints the events of an output that was saved. */
async function replayFile(file: string, env: Env, { agent, json }: ReplayOptions): Promise<void> {
  const { readHeader, replayOutput } = await import("../agents/coding/replay.ts");
  const output = readTextFile(file);
  const id = agent ?? readHeader(output)?.agent;
  if (id === undefined) throw badRequest(`${file} does not say which agent wrote it. Name it with --agent.`);
  const replay = replayOutput(output, getPreset(env, id));
  for (const event of replay.events) print(json ? toJson(event) : describeEvent(event));
  const answer = replay.answer === null ? "" : `, ${replay.answer.slice(0, 200)}`;
  say(`Ending: ${replay.ending ?? "not reported"}${answer}`);
  if (replay.unreadableLines > 0) say(`Lines that are not JSON: ${replay.unreadableLines}`);
  if (replay.unknownKinds.length > 0) say(`Unknown kinds of lines: ${replay.unknownKinds.join(", ")}`);
}

/** Throws bad_request. */
function getPreset(env: Env, id: string): Preset {
  const all = listPresets(env);
  const preset = all.find((each) => each.id === id);
  if (preset) return preset;
  throw badRequest(`No coding agent has the ID ${id}. Use one of ${all.map((each) => each.id).join(", ")}.`);
}
