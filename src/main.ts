import { isMainThread } from "node:worker_threads";
import { isVersionRequest, printVersion } from "./cli/version.ts";

const [command, ...rest] = process.argv.slice(2);
// Agent processes and sandboxes do not load the code of the service.
const code = !isMainThread
  ? await thread()
  : command === "__agent"
    ? await agent()
    : command === "__bridge"
      ? await bridge()
      : command === "__backup"
        ? await backup()
        : await program();
// `serve` resolves while the service keeps running, so only a failed command exits explicitly.
if (code !== 0) process.exit(code);

async function thread(): Promise<number> {
  const { runThread } = await import("./cli/thread.ts");
  await runThread();
  return 0;
}

async function agent(): Promise<number> {
  const { runAgent } = await import("./cli/agent.ts");
  return await runAgent({ early: rest[0] === "wait" ? (rest[1] === "model" ? "model" : "rules") : null });
}

/** Never touches process.stdout or process.stderr: Bun would make them non-blocking, and the command that shares them would lose output. */
async function bridge(): Promise<number> {
  const { runBridge } = await import("./agents/sandbox/bridge.ts");
  return await runBridge(rest.slice(1), process.env);
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
