import type { Workspace } from "../agent.ts";
import type { TaskLimits } from "../task.ts";
import { type CommandEnd, runCommand, stopReason } from "./command.ts";

const seconds = 20;
/** Longer diffs are cut. */
const maxBytes = 256 * 1024;
/** Directories of tools. Their files are not the agent's own work. */
const skipped = [".git", ".home", "node_modules", ".venv", "venv", "__pycache__", "target", ".cache"];

/** The changes of an agent to its workspace as a unified diff; `isCut` if it was longer. */
type WorkspaceDiff = { files: number; text: string; isCut: boolean };

/**
 * A comparison that is ready to begin. It is opened in advance, because opening its sandbox takes ten times as long as comparing. Call either
 * `compare` or `cancel`.
 */
export type OpenDiff = { compare(): Promise<WorkspaceDiff | { problem: string }>; cancel(): void };

/** Opens the sandbox in which a workspace is compared with its baseline, because names and links in a workspace may be hostile. */
export function openDiff(workspace: Workspace, baseline: string, limits: TaskLimits, signal: AbortSignal): OpenDiff {
  const exclude = skipped.map((name) => `--exclude=${name}`);
  const input = Promise.withResolvers<string>();
  const ended = runCommand({
    argv: [
      ...["sh", "-c", 'read -r line && cd /run && diff -ruN --no-dereference "$@" baseline /workspace', "sh"],
      ...exclude,
    ],
    stdin: input.promise,
    workspace,
    binds: [{ from: baseline, to: "/run/baseline" }],
    seconds,
    limits,
    returnsEarly: true,
    signal,
  });
  // The caller of `compare` gets the error.
  ended.catch(() => {});
  return {
    async compare() {
      input.resolve("compare\n");
      return toWorkspaceDiff(await ended);
    },
    cancel: () => input.resolve(""),
  };
}

function toWorkspaceDiff(end: CommandEnd): WorkspaceDiff | { problem: string } {
  const problem = stopReason(end, seconds) ?? (end.exitCode > 1 ? end.stderr.trim().slice(-300) : null);
  if (problem !== null) return { problem };
  const lines = end.stdout.split("\n");
  // The command line above each file. The paths of the file follow below it. For symbolic links and binary files, diff prints a single line.
  const isCommand = (line: string) => line.startsWith("diff -ruN ");
  const files = lines.filter((line) => isCommand(line) || /^(Binary files|Symbolic links|File) /.test(line)).length;
  const bytes = Buffer.from(lines.filter((line) => !isCommand(line)).join("\n"));
  return { files, text: bytes.subarray(0, maxBytes).toString(), isCut: bytes.length > maxBytes };
}
