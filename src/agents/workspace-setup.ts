import { chmodSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Artifact, SandboxResources } from "./agent.ts";
import type { AgentSession } from "./goal-checks.ts";
import { runHostsOf } from "./relay/run-hosts.ts";
import { type PreparedWorkspace, prepareWorkspace } from "./sandbox/prepare-workspace.ts";
import type { SandboxProxy } from "./sandbox/sandbox.ts";
import { copyWorkspace } from "./sandbox/workspace.ts";
import { type OpenDiff, openDiff } from "./sandbox/workspace-diff.ts";
import type { Task } from "./task.ts";

const diffName = "workspace.diff";
const baselineOf = ({ folder }: SandboxResources) => join(folder, "baseline");

/**
 * Fills the workspace as the prompt says, reports what it holds, and keeps a copy to compare with. Throws an AgentFailure that names the step
 * that failed. `contextFile`: where this agent reads instructions, beside AGENTS.md.
 */
export async function setUpWorkspace(
  { task, context, report }: AgentSession,
  sandbox: SandboxResources,
  { contextFile, skillsFolder }: { contextFile: string; skillsFolder: string },
): Promise<PreparedWorkspace | null> {
  const { workspace: setup, limits } = task;
  let prepared: PreparedWorkspace | null = null;
  if (setup) {
    prepared = await prepareWorkspace({
      setup,
      workspace: sandbox.workspace,
      archive: sandbox.archive === null ? null : readFileSync(sandbox.archive),
      skillsArchive: sandbox.skillsArchive === null ? null : readFileSync(sandbox.skillsArchive),
      skillsFolder,
      proxy: proxyOf(sandbox, task),
      contextFile,
      limits,
      signal: context.signal,
    });
    report({ type: "milestone", name: "workspace_prepared", detail: prepared });
  }
  mkdirSync(baselineOf(sandbox), { mode: 0o700 });
  // Without a setup the workspace is empty.
  if (setup) await copyWorkspace(sandbox.workspace, baselineOf(sandbox));
  // If the service runs as root, the user of the sandbox is another one and must be able to read the baseline. Nobody else can read it, because the
  // folder around it is closed.
  chmodSync(baselineOf(sandbox), 0o755);
  return prepared;
}

/** Network access of the setup: the hosts of the run and of the repository. */
function proxyOf({ setupEgress }: SandboxResources, task: Task): SandboxProxy | null {
  if (setupEgress === null) return null;
  const { repository } = task.workspace ?? {};
  const { names, routes } = runHostsOf({
    ...task,
    startUrls: [...task.startUrls, ...(repository ? [repository.url] : [])],
  });
  return { ...setupEgress, hosts: names, routes };
}

/** Prepares to compare the workspace with what it held when the agent started. */
export const openWorkspaceDiff = ({ task, context }: AgentSession, sandbox: SandboxResources): OpenDiff =>
  openDiff(sandbox.workspace, baselineOf(sandbox), task.limits, context.signal);

/** Reports how the agent changed its workspace, with the diff as an artifact, or nothing if it changed nothing. */
export async function reportWorkspaceDiff({ report }: AgentSession, { compare }: OpenDiff): Promise<void> {
  const diff = await compare();
  if ("problem" in diff) {
    // It may be impossible to compare what an agent left, for example a pipe that nothing writes to. This doesn't spoil its session.
    report({ type: "milestone", name: "workspace_changed", detail: { files: null, problem: diff.problem } });
    return;
  }
  const { files, text, isCut } = diff;
  if (files === 0) return;
  const data = Buffer.from(text);
  const artifact: Artifact = { name: diffName, bytes: data.length, data: data.toString("base64") };
  report({ type: "milestone", name: "workspace_changed", detail: { files, isCut }, artifact });
}
