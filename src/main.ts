import { isMainThread } from "node:worker_threads";
import { isVersionRequest, printVersion } from "./cli/version.ts";

const [command = "", ...rest] = process.argv.slice(2);
/** The processes that the service starts do not load its code. */
const ownCommands = new Map([
  ["__agent", agent],
  ["__bridge", bridge],
  ["__backup", backup],
]);
const run = isMainThread ? (ownCommands.get(command) ?? program) : thread;
const code = await run();
// `serve` resolves while the service keeps running, so only a failed command exits explicitly.
if (code !== 0) process.exit(code);

async function thread(): Promise<number> {
  const { runThread } = await import("./cli/thread.ts");
  await runThread();
  return 0;
}

/**
 * With the mode `wait`, the process is started before any run needs it. It loads the agents of a kind in advance, those with rules unless `model` is
 * given.
 */
async function agent(): Promise<number> {
  const { runAgent } = await import("./cli/agent.ts");
  const [mode, kind] = rest;
  if (mode !== "wait") return await runAgent({ early: null });
  return await runAgent({ early: kind === "model" ? "model" : "rules" });
}

/** Never touches process.stdout or process.stderr: Bun would make them non-blocking, and the command that shares them would lose output. */
async function bridge(): Promise<number> {
  const { runBridge } = await import("./agents/sandbox/bridge.ts");
  const [_separator, ...bridgeArguments] = rest;
  return await runBridge(bridgeArguments, process.env);
}

async function backup(): Promise<number> {
  const { runBackupProcess } = await import("./cli/backup-process.ts");
  return await runBackupProcess();
}

async function program(): Promise<number> {
  if (isVersionRequest(process.argv.slice(2))) {
    printVersion(process.argv.slice(2));
    return 0;
  }
  // Output that a full or closed stderr rejects is dropped; the work goes on.
  process.stderr.on("error", () => {});
  const { runProgram } = await import("./cli/program.ts");
  return await runProgram(process.argv.slice(2), process.env, { threadFile: Bun.main });
}
