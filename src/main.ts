import { runProgram } from "./cli/program.ts";

const code = await runProgram(process.argv.slice(2), process.env);
// `serve` answers while the service goes on: only a failure or a command that is done ends the process.
if (code !== 0) process.exit(code);
