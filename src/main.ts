import { runProgram } from "./cli/program.ts";

// A person at a terminal reads what is said; a log collector reads everything.
const env = process.stderr.isTTY ? { EVALD_LOG_LEVEL: "warn", ...process.env } : process.env;
// What a full or closed stderr does not take is lost; the work goes on.
process.stderr.on("error", () => {});
const code = await runProgram(process.argv.slice(2), env);
// `serve` answers while the service goes on: only a failure or a command that is done ends the process.
if (code !== 0) process.exit(code);
