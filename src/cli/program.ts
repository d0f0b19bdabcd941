import { Command, CommanderError } from "commander";
import { version } from "../../package.json" with { type: "json" };
import { allAgents } from "../agents/all.ts";
import { type Config, readConfig } from "../config/config.ts";
import { diskFault } from "../db/fault.ts";
import { ConfigError } from "../errors.ts";
import { addAgents } from "./agents.ts";
import { addArchive } from "./archive.ts";
import { addBackup } from "./backup.ts";
import { addDoctor } from "./doctor.ts";
import { addEval } from "./eval.ts";
import { addExport } from "./export.ts";
import { addGate } from "./gate.ts";
import { addImport } from "./import.ts";
import { addKey } from "./key.ts";
import { addModel } from "./model.ts";
import { addOrg } from "./org.ts";
import { addPerson } from "./person.ts";
import { addPrompt } from "./prompt.ts";
import { addProvider } from "./provider.ts";
import { addRegrade } from "./regrade.ts";
import { addRestore } from "./restore.ts";
import { addServe, type ServeParts } from "./serve.ts";
import { sayError, toMessage } from "./terminal.ts";

/** Every command with its options. */
export function createProgram(env: Record<string, string | undefined>, parts: Partial<ServeParts> = {}): Command {
  const program = new Command("evald")
    .description("Measures how well AI agents can use a developer tool.")
    .version(version, "-V, --version", "Print the version")
    .option("--data <dir>", "Data directory (default: EVALD_DATA_DIR, else ./data)")
    .helpOption("-h, --help", "Show help")
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeOut: (text) => process.stdout.write(text), writeErr: (text) => process.stderr.write(text) })
    .exitOverride();
  const configOf = (): Config => {
    const { data } = program.opts<{ data?: string }>();
    // These two belong to clients such as evald gate and curl, not to the service.
    const { EVALD_URL: _, EVALD_KEY: __, ...settings } = env;
    return readConfig(data === undefined ? settings : { ...settings, EVALD_DATA_DIR: data });
  };
  const { agents = allAgents(env), ...rest } = parts;
  addServe(program, configOf, { agents, ...rest });
  addEval(program, configOf, agents);
  addGate(program, configOf, agents, env);
  addOrg(program, configOf);
  addKey(program, configOf);
  addPerson(program, configOf);
  addPrompt(program, configOf);
  addProvider(program, configOf);
  addArchive(program, configOf);
  addModel(program, configOf);
  addAgents(program, configOf, agents, env);
  addBackup(program, configOf);
  addRestore(program, configOf);
  addRegrade(program, configOf);
  addExport(program, configOf);
  addImport(program, configOf);
  addDoctor(program, configOf, env);
  for (const each of [program, ...program.commands])
    if (each.commands.length > 0) each.helpCommand("help [command]", "Show help for a command");
  return program;
}

/** Runs the command line and returns the exit code: 0, 1 for a failure, 2 for a usage error or an invalid setting. */
export async function runProgram(
  argv: string[],
  env: Record<string, string | undefined>,
  parts: Partial<ServeParts> = {},
): Promise<number> {
  try {
    const program = createProgram(env, parts);
    await program.parseAsync(argv, { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;

    const remedy = diskFault(error) === "full" ? ". Free some space in the data directory, or make it writable." : "";
    sayError(`${toMessage(error)}${remedy}`);
    return error instanceof ConfigError ? 2 : 1;
  }
}
