import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxResources, Workspace } from "../agent.ts";
import type { Task } from "../task.ts";
import { type CommandEnd, runCommand, stopReason } from "./command.ts";
import type { SandboxProxy } from "./sandbox.ts";
import { copyWorkspace, openWorkspace, pathOf } from "./workspace.ts";

const commandSeconds = 120;
const fileSeconds = 30;
/** Bytes of a file that are searched for the expected text. */
const maxFileBytes = 4 * 1024 * 1024;
const keptOutputChars = 4_000;

type CommandCheck = {
  command: string;
  exitCode?: number | undefined;
  contains?: string | undefined;
  env?: Record<string, string> | undefined;
};
type FileCheck = { file: string; contains?: string | undefined };

/** What a check found. `problem` is null if it passed; `output` is the evidence. */
type WorkspaceFinding = { problem: string | null; exitCode: number; output: string };

/** Runs success checks in the workspace of a run. */
export type WorkspaceChecker = Awaited<ReturnType<typeof openWorkspaceChecker>>;

/**
 * Runs checks on the workspace of a run, each in a new sandbox. With `isolated`, they work on a copy, so that nothing they write reaches the agent.
 * In this case, call it before the agent starts: the copy is made outside of a sandbox, and files that an agent left may be hostile.
 */
export async function openWorkspaceChecker(
  sandbox: Pick<SandboxResources, "workspace" | "folder">,
  { limits, workspace: setup }: Pick<Task, "limits" | "workspace">,
  { isolated, signal }: { isolated: boolean; signal: AbortSignal },
) {
  const copy = isolated ? await copyOf(sandbox, limits.workspaceBytes) : null;
  const workspace = copy ?? sandbox.workspace;
  return {
    /** `proxy` null: without network. */
    async checkCommand(
      { command, exitCode = 0, contains, env }: CommandCheck,
      proxy: SandboxProxy | null,
    ): Promise<WorkspaceFinding> {
      const end = await runCommand({
        argv: ["sh", "-c", 'mkdir -p "$HOME" && exec sh -c "$1"', "sh", command],
        env: { ...setup?.env, ...env },
        workspace,
        seconds: commandSeconds,
        ...(proxy && { sockets: { egress: proxy } }),
        limits,
        signal,
      });
      const output = `${end.stdout}${end.stderr}`;
      return {
        problem: stopReason(end, commandSeconds) ?? commandProblem(end, output, exitCode, contains),
        exitCode: end.exitCode,
        output: output.slice(-keptOutputChars).toWellFormed(),
      };
    },

    async checkFile({ file, contains }: FileCheck): Promise<WorkspaceFinding> {
      const end = await runCommand({
        argv: ["sh", "-c", readScript, "sh", join("/workspace", file)],
        workspace,
        seconds: fileSeconds,
        limits,
        signal,
      });
      return {
        problem: stopReason(end, fileSeconds) ?? fileProblem(end, contains),
        exitCode: end.exitCode,
        output: end.stdout.slice(0, keptOutputChars).toWellFormed(),
      };
    },

    close: async () => copy?.[Symbol.asyncDispose](),
  };
}

/** Reads a file of the workspace. A symbolic link must not make a file of the system look like one of the workspace. */
const readScript = `real=$(realpath -e -- "$1" 2>/dev/null) && [ -f "$real" ] || { echo "the file does not exist" >&2; exit 1; }
case $real in /workspace/*) ;; *) echo "the file is a link to a path outside the workspace" >&2; exit 1;; esac
head -c ${maxFileBytes} -- "$real"`;

function commandProblem(end: CommandEnd, output: string, exitCode: number, contains?: string): string | null {
  if (end.exitCode !== exitCode) return `exit code ${end.exitCode}, not ${exitCode}`;
  if (contains !== undefined && !output.includes(contains)) return "the output does not contain the expected text";
  return null;
}

function fileProblem({ exitCode, stdout, stderr }: CommandEnd, contains?: string): string | null {
  if (exitCode !== 0) return stderr.trim().slice(0, 200) || `exit code ${exitCode}`;
  return contains === undefined || stdout.includes(contains) ? null : "the file does not contain the expected text";
}

async function copyOf(
  { workspace, folder: parent }: Pick<SandboxResources, "workspace" | "folder">,
  bytes: number,
): Promise<Workspace & AsyncDisposable> {
  const folder = mkdtempSync(join(parent, "check-"));
  const { path, holder, [Symbol.asyncDispose]: close } = await openWorkspace(folder, bytes);
  const copy = { path, holder };
  await copyWorkspace(workspace, pathOf(copy));
  return {
    ...copy,
    async [Symbol.asyncDispose]() {
      await close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
