// What a full or closed stderr does not take is lost; the work goes on.
process.stderr.on("error", () => {});
const [command] = process.argv.slice(2);
// The inside of an agent's process, which knows nothing of the service: not even its code is loaded.
const code = command === "__agent" ? await agent() : await program();
// `serve` answers while the service goes on: only a failure or a command that is done ends the process.
if (code !== 0) process.exit(code);

async function agent(): Promise<number> {
  const { runAgent } = await import("./cli/agent.ts");
  return await runAgent();
}

async function program(): Promise<number> {
  const { runProgram } = await import("./cli/program.ts");
  // A person at a terminal reads what is said; a log collector reads everything.
  const env = process.stderr.isTTY ? { EVALD_LOG_LEVEL: "warn", ...process.env } : process.env;
  return await runProgram(process.argv.slice(2), env);
}
