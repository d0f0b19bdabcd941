import { type Command, Option } from "commander";
import { badRequest } from "../errors.ts";
import { readPackageFile } from "../lazy-packages.ts";
import { filterJson } from "./terminal.ts";

/** The option `--jq`. */
export const jqOption = (): Option =>
  new Option("--jq <expression>", "Print what a jq expression makes of the JSON, as jq -r does").conflicts(["csv"]);

const hasJson = (command: Command): boolean => command.options.some(({ long }) => long === "--json");

/** Adds `--jq` to all commands that have `--json`. */
export function addJq(program: Command): void {
  for (const command of program.commands) {
    addJq(command);
    if (hasJson(command)) command.addOption(jqOption());
  }
}

/** Applies the `--jq` expression of a command to its JSON output. Throws bad_request for an invalid expression, before the command does anything. */
export async function useJq(command: Command): Promise<void> {
  const { jq: expression } = command.opts<{ jq?: string }>();
  if (expression === undefined) return;
  if (hasJson(command)) command.setOptionValue("json", true);
  filterJson(await createFilter(expression));
}

/** Exit code of jq for an expression that it can't compile. */
const compileErrorCode = 3;

/**
 * Creates a function that applies a jq expression to JSON. Throws bad_request for an invalid expression. The function throws if the expression fails
 * for the JSON.
 */
async function createFilter(expression: string): Promise<(json: string) => string> {
  const { loadJq } = await import("jq-wasm");
  const jq = await loadJq({ wasmBinary: readPackageFile("jq-wasm/jq.wasm") });
  const run = (json: string, code: string) => {
    const { stdout, stderr, exitCode } = jq.raw(json, code, ["-r"]);
    const problem = stderr.replace(/^jq: error:? ?(\(at [^)]*\): ?)?/, "").replace(/\njq: \d+ compile errors?\s*$/, "");
    return { stdout, exitCode, problem: problem.trim() };
  };
  const { exitCode } = run("null", `empty | (\n${expression}\n)`);
  // Runs the expression alone, so that positions in the error message refer to the expression.
  if (exitCode === compileErrorCode) throw badRequest(`Invalid --jq: ${run("null", expression).problem}`);
  return (json) => {
    // The package trims the output, so a dot is printed before and after it.
    const { stdout, exitCode, problem } = run(json, `".", (\n${expression}\n), "."`);
    if (exitCode !== 0) throw badRequest(`--jq failed: ${problem}`);
    return stdout.slice(".\n".length, -"\n.".length);
  };
}
