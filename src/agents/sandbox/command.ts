import { AgentFailure, runInfrastructureStep, type Workspace } from "../agent.ts";
import type { LimitHit, SandboxLimits } from "./bounds.ts";
import { runSandboxed, type SandboxRun } from "./sandbox.ts";

/** Bytes of each output stream kept in memory; the middle of longer output is dropped. */
const keptBytes = 4 * 1024 * 1024;

/** Why a session ends if the machine has no room for its workspace. */
export const diskFull = "the disk of the workspace is full";

/** One command to run in a sandbox of its own. */
export type Command = {
  argv: string[];
  /** Directory mounted at /workspace; a temporary one in memory if undefined. */
  workspace?: Workspace;
  /** Its input; a promise if that is known only later. */
  stdin?: string | Uint8Array | Promise<string>;
  /** Further environment variables. */
  env?: Record<string, string>;
  /** Further files of the machine, read-only inside. */
  binds?: SandboxRun["binds"];
  /** The command is killed after this time. */
  seconds: number;
  sockets?: SandboxRun["sockets"];
  limits?: Partial<SandboxLimits>;
  /** Called with each chunk of stdout and stderr. */
  onOutput?: (bytes: Uint8Array, stream: "stdout" | "stderr") => void;
  /** Called once when the workspace is nearly full. */
  onNear?: SandboxRun["onNear"];
  /** Whether to return as soon as the command has exited, even if something of its sandbox is left. */
  returnsEarly?: true;
  signal: AbortSignal;
};

/** How a command ended, and what it printed. */
export type CommandEnd = {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** The limit that ended the command. */
  limit: LimitHit | null;
  timedOut: boolean;
};

/**
 * Runs one command in a sandbox of its own until it exits, reaches a limit or times out. Throws the signal's reason, and an AgentFailure if the
 * sandbox could not start or the command failed because the disk is full.
 */
export async function runCommand(command: Command): Promise<CommandEnd> {
  const { argv, stdin = "", env, seconds, onOutput, returnsEarly, ...run } = command;
  const start = () => runSandboxed({ argv, env: { HOME: "/workspace/.home", ...env }, ...run });
  const sandboxed = await runInfrastructureStep("workspace_failed", "a command could not be started", start);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    sandboxed.kill();
  }, seconds * 1000);
  try {
    const outputs = Promise.all(
      (["stdout", "stderr"] as const).map((name) => gather(sandboxed[name], (bytes) => onOutput?.(bytes, name))),
    );
    try {
      sandboxed.stdin.write(await stdin);
      await sandboxed.stdin.end();
    } catch {
      // The command doesn't have to read its input.
    }
    const { exitCode, limit, hasRun, wasDiskFull } = await (returnsEarly ? sandboxed.exited : sandboxed.ended);
    const [stdout = "", stderr = ""] = await outputs;
    run.signal.throwIfAborted();
    if (!hasRun && !limit && !timedOut)
      throw new AgentFailure("workspace_failed", `a command could not be started: ${stderr.trim().slice(-300)}`, {
        retryable: true,
      });
    if (wasDiskFull && exitCode !== 0 && !limit) throw new AgentFailure("disk_full", diskFull, { retryable: true });
    return { exitCode, stdout, stderr, limit, timedOut };
  } finally {
    clearTimeout(timer);
  }
}

/** Why a command did not end by itself; null if it did. */
export function stopReason({ limit, timedOut }: CommandEnd, seconds: number): string | null {
  if (limit) return `the limit of ${limit.value} ${limit.unit} (${limit.limit}) was reached`;
  return timedOut ? `stopped after ${seconds} seconds` : null;
}

async function gather(stream: ReadableStream<Uint8Array>, onBytes: (bytes: Uint8Array) => void): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const bytes of stream) {
    chunks.push(bytes);
    onBytes(bytes);
    size += bytes.length;
    // Keeps the first chunk and the last ones.
    while (size > keptBytes && chunks.length > 2) size -= chunks.splice(1, 1)[0]!.length;
  }
  return Buffer.concat(chunks).toString();
}
