import { mkdtempSync, realpathSync, statfsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentContext, AgentFailure, type SandboxResources, type Workspace } from "../agent.ts";
import type { Task } from "../task.ts";

/** A workspace in memory is opened only if this many times its size is free. */
const reserveFactor = 2;

/** Whether this process has found that it can enter where a workspace is mounted. */
let canEnter = false;

type OpenWorkspace = Workspace & AsyncDisposable & { problem: string | null };

/** The folder of all workspaces of a service. */
export const workspacesIn = (dataDir: string): string => join(dataDir, "workspaces");

/** The path of a workspace for processes that are not in its namespace, such as this one. */
export const pathOf = ({ path, holder }: Workspace): string => (holder === null ? path : `/proc/${holder}/root${path}`);

/** The command that runs another command where the workspace is mounted at its path. */
export function enterCommand({ holder }: Workspace): string[] {
  if (holder === null) return [];
  // An ordinary user gets the right to enter from the holder's user namespace, which the command enters first.
  const namespaces = process.getuid?.() === 0 ? ["--mount"] : ["--user", "--preserve-credentials", "--mount"];
  return ["nsenter", "--target", String(holder), ...namespaces, "--"];
}

/**
 * Mounts a file system of at most this many bytes at a folder, in memory and in a separate mount namespace. A process holds it until it is disposed
 * or this process ends. If that isn't possible, the workspace is the folder on disk, and `problem` says why.
 */
export async function openWorkspace(folder: string, bytes: number): Promise<OpenWorkspace> {
  const path = realpathSync(folder);
  const onDisk = (problem: string): OpenWorkspace => ({
    path,
    holder: null,
    problem,
    [Symbol.asyncDispose]: async () => {},
  });
  // A container or a systemd unit may have less memory than the machine.
  const free = Math.min(process.availableMemory(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  if (free < reserveFactor * bytes) {
    const mib = (size: number) => `${Math.floor(size / 1024 ** 2)} MiB`;
    return onDisk(`${mib(free)} of memory are free, less than ${reserveFactor} times its size of ${mib(bytes)}`);
  }
  const [bwrap, nsenter] = [Bun.which("bwrap"), Bun.which("nsenter")];
  if (!bwrap || !nsenter) return onDisk(`${bwrap ? "nsenter" : "bubblewrap"} is not installed`);
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  const userOptions = uid === 0 ? [] : ["--unshare-user", "--uid", `${uid}`, "--gid", `${gid}`];
  const mountOptions = ["--dev-bind", "/", "/", "--size", `${bytes}`, "--perms", "0700", "--tmpfs", path];
  // It ends when this process ends, because its input is closed then.
  const holderCommand = ["sh", "-c", "echo $$; exec cat >/dev/null"];
  const child = Bun.spawn([bwrap, ...userOptions, ...mountOptions, "--die-with-parent", "--", ...holderCommand], {
    cwd: "/",
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const { value } = await child.stdout.getReader().read();
  const holder = Number(Buffer.from(value ?? []).toString());
  const close = async () => {
    child.kill("SIGKILL");
    await child.exited;
  };
  if (!(holder > 0)) {
    await close();
    return onDisk(await firstLine(child.stderr));
  }
  if (!canEnter) {
    const probe = Bun.spawn([...enterCommand({ path, holder }), "true"], {
      cwd: "/",
      stdio: ["ignore", "ignore", "pipe"],
    });
    if ((await probe.exited) !== 0) {
      await close();
      return onDisk(await firstLine(probe.stderr));
    }
    canEnter = true;
  }
  return { path, holder, problem: null, [Symbol.asyncDispose]: close };
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const [line = ""] = (await new Response(stream).text()).trim().split("\n");
  return line || "the namespace could not be created";
}

/** Why a workspace of this size can't be a file system of its own on this machine; null if it can. */
export async function testWorkspace(bytes: number): Promise<string | null> {
  const folder = mkdtempSync(join(tmpdir(), "evald-workspace-"));
  try {
    await using workspace = await openWorkspace(folder, bytes);
    return workspace.problem;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A run's context with its workspace mounted, until it is disposed. `sandbox`: the run's sandbox for commands; null: it has none. */
type MountedWorkspace = AsyncDisposable & { context: AgentContext; sandbox: SandboxResources | null };

/** Mounts the workspace of a run in memory, until the result is disposed. Without a sandbox, nothing is mounted. */
export async function mountWorkspace({ limits }: Task, context: AgentContext): Promise<MountedWorkspace> {
  const { resources } = context;
  if (!resources || !("workspace" in resources.sandbox))
    return { context, sandbox: null, [Symbol.asyncDispose]: async () => {} };
  const workspace = await openWorkspace(resources.sandbox.workspace.path, limits.workspaceBytes);
  const sandbox = { ...resources.sandbox, workspace };
  return {
    context: { ...context, resources: { ...resources, sandbox } },
    sandbox,
    [Symbol.asyncDispose]: workspace[Symbol.asyncDispose],
  };
}

/** Bytes in use, the number of files, and whether no more bytes fit. Only for a mounted workspace. All zero after the workspace was closed. */
export function usageOf(workspace: Workspace): { bytes: number; files: number; isFull: boolean } {
  try {
    const { blocks, bavail, bsize, files, ffree } = statfsSync(pathOf(workspace));
    return { bytes: (blocks - bavail) * bsize, files: files - ffree, isFull: bavail === 0 };
  } catch {
    // A cancelled run closes its workspace before its last process has exited.
    return { bytes: 0, files: 0, isFull: false };
  }
}

/**
 * Copies a workspace with its owners and modes, because the sandboxes of a service that runs as root belong to another user. Do it before an agent
 * starts: the copy is made outside of a sandbox, and files that an agent left may be hostile. Throws an AgentFailure.
 */
export async function copyWorkspace(workspace: Workspace, to: string): Promise<void> {
  const copy = Bun.spawn(["cp", "-a", "--", `${pathOf(workspace)}/.`, to], { stdio: ["ignore", "ignore", "pipe"] });
  const [code, reason] = await Promise.all([copy.exited, new Response(copy.stderr).text()]);
  if (code !== 0)
    throw new AgentFailure("workspace_failed", `the workspace could not be copied: ${reason.trim().slice(-500)}`, {
      retryable: true,
    });
}
