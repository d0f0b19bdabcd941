const [command, ...rest] = process.argv.slice(2);
// The insides of an agent's process and of a sandbox, which know nothing of the service: not even its code is loaded.
const code = command === "__agent" ? await agent() : command === "__bridge" ? await bridge() : await program();
// `serve` answers while the service goes on: only a failure or a command that is done ends the process.
if (code !== 0) process.exit(code);

async function agent(): Promise<number> {
  process.stderr.on("error", () => {});
  const { runAgent } = await import("./cli/agent.ts");
  return await runAgent();
}

/** Never touches process.stdout or process.stderr: Bun would stop them from blocking, and the command that shares them would lose output. */
async function bridge(): Promise<number> {
  const { runBridge } = await import("./agents/sandbox/bridge.ts");
  return await runBridge(rest.slice(1), process.env);
}

async function program(): Promise<number> {
  // What a full or closed stderr does not take is lost; the work goes on.
  process.stderr.on("error", () => {});
  const { runProgram } = await import("./cli/program.ts");
  // A person at a terminal reads what is said; a log collector reads everything.
  const env = process.stderr.isTTY ? { EVALD_LOG_LEVEL: "warn", ...process.env } : process.env;
  return await runProgram(process.argv.slice(2), env);
}
