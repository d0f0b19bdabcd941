import type { Command } from "commander";
import type { Agent } from "../agents/agent.ts";
import { listPresets } from "../agents/all.ts";
import { findInstalled } from "../agents/coding/program.ts";
import type { Config } from "../config/config.ts";
import { AppError, badRequest } from "../errors.ts";
import { initAgent } from "./agent-init.ts";
import { print, say, table, toJson } from "./terminal.ts";
import { tryAgent } from "./trial.ts";
import { explain } from "./trial-diagnosis.ts";

type Env = Record<string, string | undefined>;

/** Adds `agent list`, `agent init` and `agent try`. */
export function addAgents(program: Command, configOf: () => Config, agents: Record<string, Agent>, env: Env): void {
  const command = program.command("agent").description("List, add and try coding agents");
  command
    .command("list")
    .description("List coding agents with their versions and paths")
    .option("--json", "Print the list as JSON")
    .addHelpText("after", "\nExample:\n  evald agent list")
    .action(({ json }: { json?: boolean }) => {
      configOf();
      const all = listPresets(env).map((preset) => findInstalled(preset, env.PATH ?? ""));
      const rows = all.map((each) =>
        each.isHere ? [each.id, each.version, each.isTried ? "yes" : "no", each.path] : [each.id, "", "", each.detail],
      );
      print(json ? toJson(all) : table([["ID", "VERSION", "TESTED", "PATH"], ...rows]));
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
    .addHelpText("after", "\nExample:\n  evald agent try codex")
    .action(async (id: string, { model, json }: { model?: string; json?: boolean }) => {
      const config = configOf();
      const preset = listPresets(env).find((each) => each.id === id);
      const agent = agents[id];
      if (!preset || !agent) {
        const ids = listPresets(env).map((each) => each.id);
        throw badRequest(`No coding agent has the ID ${id}. Use one of ${ids.join(", ")}.`);
      }
      const installedAgent = findInstalled(preset, env.PATH ?? "");
      if (!installedAgent.isHere) throw new AppError("conflict", `${installedAgent.name}: ${installedAgent.detail}.`);
      say(
        `${installedAgent.name} ${installedAgent.version}${installedAgent.isTried ? "" : " (not tested with this version of evald)"}, ${installedAgent.path}`,
      );
      const { steps, problems, events, failureReason } = await tryAgent(config, { id, agent, preset, model });
      if (failureReason !== null) say(`The session failed: ${failureReason}`);
      for (const { name, detail } of steps)
        say(`${detail === null ? "missing" : "ok     "}  ${name}${detail ? `: ${detail}` : ""}`);
      const missing = steps.flatMap(({ diagnosis }) => diagnosis ?? []);
      const sentences = new Set([...problems, ...missing].map((diagnosis) => explain(diagnosis, preset)));
      if (missing.length > 0) for (const sentence of sentences) say(`-> ${sentence}`);
      print(json ? toJson(events) : events.map(({ type, what }) => `${type}  ${what}`).join("\n"));
      if (failureReason !== null || steps.some(({ detail }) => detail === null)) process.exitCode = 1;
    });
}
