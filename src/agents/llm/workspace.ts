import { z } from "zod";
import type { Workspace } from "../agent.ts";
import { shorten } from "../event-size.ts";
import type { Relay } from "../relay/relay.ts";
import { runCommand, stopReason } from "../sandbox/command.ts";
import type { Task } from "../task.ts";
import { createLiveOutput } from "./live-output.ts";
import { defineTool, type ToolCall, type ToolResult } from "./tool.ts";

const outputChars = 12_000;
const errorChars = 6_000;
const fileChars = 20_000;
/** A character has at most 4 bytes in UTF-8. */
const fileBytes = 4 * fileChars;
const defaultSeconds = 120;
const maxSeconds = 240;

/** `script` is for sh, with `argument` as its `$1`. */
type SandboxCommand = {
  script: string;
  argument: string;
  stdin?: string;
  seconds?: number;
  hasNetwork?: boolean;
  isStreamed?: boolean;
};
/** `stopCause`: why it was stopped; null: it was not. */
type CommandResult = { exitCode: number; stdout: string; stderr: string; stopCause: string | null };

const workspaceFolder = /^\/workspace(?=\/|$)/;

/** A path below /workspace; null if it is invalid or leads out of it. */
function toWorkspacePath(path: string): string | null {
  const isElsewhere = path.startsWith("/") && !workspaceFolder.test(path);
  if (isElsewhere || path.length > 4096 || path.includes("\0")) return null;
  const parts: string[] = [];
  for (const part of path.replace(workspaceFolder, "").split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return null;
    } else if (part !== "" && part !== ".") parts.push(part);
  }
  return ["/workspace", ...parts].join("/");
}

/** A script that first sets `$real` to the place that the path `$1` leads to. It rejects symbolic links that lead out of the workspace. */
const withPathCheck = (script: string) => `real=$(realpath -m -- "$1") || exit 1
case $real in /workspace|/workspace/*) ;; *) echo "a symbolic link points outside /workspace" >&2; exit 9;; esac
${script}`;

/** Linux rejects arguments of 128 KiB or more, and arguments with a null byte. */
const maxCommandBytes = 120_000;

function objectionToCommand(command: string): string | null {
  if (command.includes("\0")) return "the command must not contain NUL characters";
  const bytes = Buffer.byteLength(command);
  if (bytes <= maxCommandBytes) return null;
  return `the command has ${bytes} bytes, more than the limit of ${maxCommandBytes}; put it in a file with write_file and run that`;
}

const toPathError = (path: string): ToolResult => {
  const short = path.slice(0, 200);
  return { ok: false, output: { path: short, message: `${short} is not a path in /workspace` } };
};

/** Where the commands of a run are executed. */
type Execution = {
  workspace: Workspace;
  openRelay: () => Promise<Relay>;
  task: Task;
  /** Whether the model was told that the workspace is nearly full. */
  isNearlyFull: boolean;
};

/** The tools for commands and files. Each call runs a command in its own sandbox on the workspace. */
export function workspaceTools(workspace: Workspace, openRelay: () => Promise<Relay>, task: Task) {
  const execution: Execution = { workspace, openRelay, task, isNearlyFull: false };
  return {
    run_command: defineTool({
      description: `Run a command with sh in /workspace. Returns its exit code and output. Commands are stopped after ${defaultSeconds} seconds unless you set a longer timeout (at most ${maxSeconds}).`,
      input: z.object({ command: z.string(), seconds: z.number().int().min(1).max(maxSeconds).optional() }),
      async run({ command, seconds = defaultSeconds }, call): Promise<ToolResult> {
        const objection = objectionToCommand(command);
        if (objection !== null) return { ok: false, output: { message: objection } };
        const script = 'mkdir -p "$HOME" && exec sh -c "$1"';
        const options = { seconds, hasNetwork: true, isStreamed: true };
        const result = await runInSandbox(execution, { script, argument: command, ...options }, call);
        const { exitCode, stdout, stderr } = result;
        const output = { exitCode, stdout: shorten(stdout, outputChars), stderr: shorten(stderr, errorChars) };
        const message = problemOfCommand(result);
        return message === null ? { ok: true, output } : { ok: false, output: { message, ...output } };
      },
    }),
    read_file: defineTool({
      description: "Read a text file in /workspace.",
      input: z.object({ path: z.string() }),
      async run({ path }, call): Promise<ToolResult> {
        const script = `[ -f "$real" ] || { echo "no such file" >&2; exit 1; }; head -c ${fileBytes} -- "$real"`;
        return runOnPath(execution, { path, script }, call, (stdout) => ({ text: shorten(stdout, fileChars) }));
      },
    }),
    write_file: defineTool({
      description: "Write a text file in /workspace, creating its directories.",
      input: z.object({ path: z.string(), text: z.string() }),
      async run({ path, text }, call): Promise<ToolResult> {
        const script = 'mkdir -p -- "$(dirname -- "$real")" && cat > "$real"';
        return runOnPath(execution, { path, script, stdin: text }, call, () => ({ bytes: Buffer.byteLength(text) }));
      },
    }),
    list_files: defineTool({
      description: "List the files in a directory of /workspace recursively, with their sizes.",
      input: z.object({ path: z.string().default("/workspace") }),
      async run({ path }, call): Promise<ToolResult> {
        const script = `find "$real" -mindepth 1 \\( -name node_modules -o -name .git -o -path /workspace/.home \\) -prune -o -printf '%P %s %y\\n' | head -500`;
        const toOutput = (stdout: string) => ({ files: stdout.trim().split("\n").filter(Boolean) });
        return runOnPath(execution, { path, script }, call, toOutput);
      },
    }),
  };
}

/** Runs a script on a path in the workspace, which it gets as `$real`. `toOutput`: turns what the script printed into the tool's output. */
async function runOnPath(
  execution: Execution,
  { path, script, stdin = "" }: { path: string; script: string; stdin?: string },
  call: ToolCall,
  toOutput: (stdout: string) => Record<string, unknown>,
): Promise<ToolResult> {
  const argument = toWorkspacePath(path);
  if (argument === null) return toPathError(path);
  const { exitCode, stdout, stderr, stopCause } = await runInSandbox(
    execution,
    { script: withPathCheck(script), argument, stdin },
    call,
  );
  if (stopCause === null && exitCode === 0) return { ok: true, output: { path, ...toOutput(stdout) } };
  const message = stopCause ?? (lastLine(stderr) || `exit code ${exitCode}`);
  return { ok: false, output: { path, message } };
}

/** Why a command of the model failed, with the last line that it printed; null if it didn't. */
function problemOfCommand({ exitCode, stdout, stderr, stopCause }: CommandResult): string | null {
  if (stopCause === null && exitCode === 0) return null;
  return [stopCause ?? `exit code ${exitCode}`, lastLine(stderr || stdout)].filter(Boolean).join(": ");
}

const lastLine = (text: string) => text.trim().split("\n").at(-1)?.slice(0, 300) ?? "";

async function runInSandbox(
  execution: Execution,
  { script, argument, stdin = "", seconds = 30, hasNetwork = false, isStreamed = false }: SandboxCommand,
  { id, signal, report }: ToolCall,
): Promise<CommandResult> {
  const { limits, workspace: setup } = execution.task;
  const onText = (text: string) => report({ type: "message", text, id });
  const live = isStreamed ? { stdout: createLiveOutput(onText), stderr: createLiveOutput(onText) } : null;
  try {
    const result = await runCommand({
      argv: ["sh", "-c", script, "sh", argument],
      stdin,
      workspace: execution.workspace,
      env: setup?.env ?? {},
      seconds,
      sockets: hasNetwork ? { egress: (await execution.openRelay()).toProxy(id) } : {},
      limits,
      onOutput: (bytes, stream) => live?.[stream].push(bytes),
      onNear(limit) {
        if (!execution.isNearlyFull) report({ type: "limit", ...limit, near: true });
        execution.isNearlyFull = true;
      },
      signal,
    });
    if (result.limit) report({ type: "limit", ...result.limit });
    const { exitCode, stdout, stderr } = result;
    return { exitCode, stdout, stderr, stopCause: stopReason(result, seconds) };
  } finally {
    live?.stdout.stop();
    live?.stderr.stop();
  }
}
