import { Command, CommanderError } from "commander";
import { version } from "../../package.json" with { type: "json" };
import { allAgents } from "../agents/all.ts";
import { type Config, readConfig } from "../config.ts";
import { diskFault } from "../db/fault.ts";
import { AppError, ConfigError } from "../errors.ts";
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
import { say } from "./terminal.ts";

/** Runs the command line and answers with the exit code: 0, 1 for a failure, 2 for a wrong call or a wrong setting. */
export async function runProgram(
  argv: string[],
  env: Record<string, string | undefined>,
  parts: Partial<ServeParts> = {},
): Promise<number> {
  const program = new Command("evald")
    .description("Measures how well AI agents get along with a developer tool.")
    .version(version, "-V, --version", "print the version")
    .option("--data <folder>", "folder that holds everything (default: EVALD_DATA_DIR, else ./data)")
    .showSuggestionAfterError()
    .configureOutput({ writeOut: (text) => process.stdout.write(text), writeErr: (text) => process.stderr.write(text) })
    .exitOverride();
  const configOf = (): Config => {
    const { data } = program.opts<{ data?: string }>();
    // The docs keep the address and the key for curl under these names; they are no settings.
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
  addModel(program, configOf);
  addBackup(program, configOf);
  addRestore(program, configOf);
  addRegrade(program, configOf);
  addExport(program, configOf);
  addImport(program, configOf);
  addDoctor(program, configOf, env);
  try {
    await program.parseAsync(argv, { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const message = error instanceof AppError ? error.detail : error instanceof Error ? error.message : String(error);
    const remedy = diskFault(error) === "full" ? "; make room in the data folder, or make it writable" : "";
    say(`evald: ${message}${remedy}`);
    return error instanceof ConfigError ? 2 : 1;
  }
}
