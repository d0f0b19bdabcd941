import { AgentFailure, type Workspace } from "../agent.ts";
import type { MilestoneDetail } from "../milestones.ts";
import type { TaskLimits, WorkspaceSetup } from "../task.ts";
import { type Command, type CommandEnd, runCommand, stopReason } from "./command.ts";
import type { SandboxProxy } from "./sandbox.ts";
import { readSkills, type Skill, skillsCommand } from "./skills.ts";

const unpackSeconds = 60;
const cloneSeconds = 120;
const setupSeconds = 300;
const keptOutputChars = 4_000;

type PreparationOptions = {
  setup: WorkspaceSetup;
  /** Directory that is mounted at /workspace; empty. */
  workspace: Workspace;
  /** The content of `setup.archive`. */
  archive: Uint8Array | null;
  /** The content of `setup.skills.archive`. */
  skillsArchive: Uint8Array | null;
  /** Path in the workspace from which the agent reads skills. */
  skillsFolder: string;
  /** Name of a file to which AGENTS.md is copied, for agents that read a file with another name. */
  contextFile: string;
  /** Network access of Git and the setup command. */
  proxy: SandboxProxy | null;
  limits: TaskLimits;
  signal: AbortSignal;
};

/** What a workspace held when the agent started. */
export type PreparedWorkspace = MilestoneDetail<"workspace_prepared">;

/**
 * Fills a workspace before the agent starts: files of an archive or a Git repository, AGENTS.md, the setup command, then skills. Everything runs in
 * sandboxes. Throws an AgentFailure that names the step that failed and its last line of output.
 */
export async function prepareWorkspace(options: PreparationOptions): Promise<PreparedWorkspace> {
  const { setup, workspace, archive, skillsArchive, skillsFolder, proxy, contextFile, limits, signal } = options;
  const sockets = proxy ? { egress: proxy } : {};
  const { repository, env = {} } = setup;

  async function step(name: string, command: Omit<Command, "signal">): Promise<CommandEnd> {
    const end = await runCommand({ workspace, limits, signal, ...command });
    const problem = stopReason(end, command.seconds) ?? describeExit(end);
    if (problem !== null) throw new AgentFailure("workspace_setup_failed", `${name} failed: ${problem}`);
    return end;
  }

  if (archive) await step("unpacking the archive", { argv: unpack, stdin: archive, seconds: unpackSeconds });
  let commit = "";
  if (repository) {
    const { url, ref } = repository;
    const end = await step(`checking out ${ref} of ${url}`, {
      argv: ["sh", "-c", checkOut, "sh", url, ref],
      seconds: cloneSeconds,
      sockets,
    });
    commit = end.stdout.trim();
  }
  const { instructions } = setup;
  if (instructions !== undefined)
    await step("writing AGENTS.md", {
      argv: ["sh", "-c", writeInstructions, "sh", contextFile],
      stdin: instructions,
      seconds: unpackSeconds,
    });
  let setupEnd: CommandEnd | null = null;
  if (setup.setup !== undefined)
    setupEnd = await step("the setup command", {
      argv: ["sh", "-c", 'mkdir -p "$HOME" && exec sh -c "$1"', "sh", setup.setup],
      env,
      seconds: setupSeconds,
      sockets,
    });
  let skills: Skill[] = [];
  if (setup.skills) {
    const { stdout } = await step("copying the skills (workspace.skills)", {
      argv: skillsCommand(setup.skills.folder ?? "", skillsFolder),
      ...(skillsArchive && { stdin: skillsArchive }),
      seconds: unpackSeconds,
    });
    skills = readSkills(stdout);
  }
  const { mcpServers = {} } = setup;
  return {
    skills,
    mcpServers: Object.entries(mcpServers).map(([name, { url = null, command = null, args = [] }]) => ({
      name,
      url,
      command: command && [command, ...args].join(" "),
    })),
    archive: setup.archive ?? null,
    repository: repository ? { ...repository, commit } : null,
    setup: setupEnd && {
      command: setup.setup ?? "",
      exitCode: setupEnd.exitCode,
      output: `${setupEnd.stdout}${setupEnd.stderr}`.slice(-keptOutputChars).toWellFormed(),
    },
    instructionChars: instructions?.length ?? 0,
    env: Object.keys(env),
  };
}

/** Why a command failed, if it exited by itself; null: it succeeded. */
function describeExit({ exitCode, stderr, stdout }: CommandEnd): string | null {
  if (exitCode === 0) return null;
  const lastLine = (stderr || stdout).trim().split("\n").at(-1)?.slice(0, 300) ?? "";
  return `exit code ${exitCode}${lastLine && `: ${lastLine}`}`;
}

const unpack = ["tar", "-xzf", "-", "-C", "/workspace", "--no-same-owner", "--no-same-permissions"];

/** Writes stdin to AGENTS.md, and copies it to the file in its argument. */
const writeInstructions =
  'cat > AGENTS.md && { [ "$1" = AGENTS.md ] || { mkdir -p "$(dirname "$1")" && cp AGENTS.md "$1"; }; }';

/** Gets one commit, by its branch, tag or ID. Git must not ask for a password. */
const checkOut = `command -v git >/dev/null || { echo "Git is not installed" >&2; exit 127; }
export GIT_TERMINAL_PROMPT=0
git init -q . && git fetch -q --depth 1 -- "$1" "$2" && git checkout -q --detach FETCH_HEAD && git rev-parse HEAD`;
