import { Command, CommanderError } from "commander";
import { version } from "../../package.json" with { type: "json" };
import { type Config, ConfigError, readConfig } from "../config.ts";
import { AppError } from "../errors.ts";
import { addServe } from "./serve.ts";

/** For people: stderr. What a program reads goes to stdout. */
export const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

/** Runs the command line and answers with the exit code: 0, 1 for a failure, 2 for a wrong call or a wrong setting. */
export async function runProgram(argv: string[], env: Record<string, string | undefined>): Promise<number> {
  const program = new Command("evald")
    .description("Measures how well AI agents get along with a developer tool.")
    .version(version, "-V, --version", "print the version")
    .option("--data <folder>", "folder that holds everything (default: EVALD_DATA_DIR, else ./data)")
    .showSuggestionAfterError()
    .configureOutput({ writeOut: (text) => process.stdout.write(text), writeErr: (text) => process.stderr.write(text) })
    .exitOverride();
  const configOf = (): Config => {
    const data = program.opts<{ data?: string }>().data;
    return readConfig(data === undefined ? env : { ...env, EVALD_DATA_DIR: data });
  };
  addServe(program, configOf);
  try {
    await program.parseAsync(argv, { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof ConfigError) {
      say(`evald: ${error.message}`);
      return 2;
    }
    say(`evald: ${error instanceof AppError ? error.detail : error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}
