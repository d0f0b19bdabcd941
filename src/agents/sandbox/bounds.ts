import { statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { settlesWithin } from "../../deadline.ts";
import type { Workspace } from "../agent.ts";
import { namesIn, readText } from "./kernel-files.ts";
import { usageOf } from "./workspace.ts";

/** The limits of everything that runs in a sandbox. */
export type SandboxLimits = {
  /** For all processes together, including files under /tmp, /home and /dev/shm. */
  memoryBytes: number;
  /** Including threads. */
  processes: number;
  /** On disk, plus 1 KiB per file. */
  workspaceBytes: number;
};

/** A limit of the sandbox that was reached, in the format of a `limit` event. */
export type LimitHit = { limit: "memory" | "processes" | "workspace_bytes"; value: number; unit: string };

/** The size of a workspace is measured at most this often. */
const watchMs = 250;
/** With less free space than this, a disk counts as full, because the next write fails. */
const minFreeBytes = 1024 ** 2;
/** Share of its maximum size from which a workspace is nearly full. */
const nearShare = 0.8;

/** The processes below a process. */
function descendants(pid: number): string[] {
  const children = Map.groupBy(
    namesIn("/proc").filter((name) => /^\d+$/.test(name)),
    // After the program name, which may contain anything: state, then parent.
    (name) => /^\d+ \(.*\) \S (\d+)/s.exec(readText(`/proc/${name}/stat`))?.[1] ?? "",
  );
  const below = (parent: string): string[] => (children.get(parent) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(String(pid));
}

/**
 * Memory of a process and its descendants, including files in memory that they have mapped, read from /proc. Memory that several of them share counts
 * for each.
 */
function memoryBelow(pid: number): number {
  const counted = /^(?:RssAnon|RssShmem):\s+(\d+) kB/gm;
  const memoryOf = (id: string) =>
    [...readText(`/proc/${id}/status`).matchAll(counted)].reduce((sum, [, kib]) => sum + Number(kib) * 1024, 0);
  return descendants(pid).reduce((sum, child) => sum + memoryOf(child), 0);
}

/** How helper programs such as du are started. */
const tools = { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" }, stdin: "ignore" } as const;

/**
 * Size of a folder on disk, plus 1 KiB per file, because a million empty files also fill a disk. null: a subfolder
 * isn't readable by its owner.
 */
async function measure(folder: string): Promise<number | null> {
  const count = async (...flags: string[]) => {
    const du = Bun.spawn(["du", "-sx", ...flags, "--", folder], { ...tools, stdout: "pipe", stderr: "pipe" });
    const [output, errors] = await Promise.all([new Response(du.stdout).text(), new Response(du.stderr).text()]);
    return /Permission denied/.test(errors) ? Number.NaN : Number.parseInt(output, 10) || 0;
  };
  const bytes = (await count("-B1")) + 1024 * (await count("--inodes"));
  return Number.isNaN(bytes) ? null : bytes;
}

/** Measures a folder after making its subfolders readable. If a folder becomes unreadable again, the size is infinite. */
async function bytesBelow(folder: string): Promise<number> {
  const bytes = await measure(folder);
  if (bytes !== null) return bytes;
  const closed = [folder, "-xdev", "-type", "d", "!", "-perm", "-u=rx"];
  const open = Bun.spawn(["find", ...closed, "-exec", "chmod", "u+rx", "{}", ";"], {
    ...tools,
    stdout: "ignore",
    stderr: "ignore",
  });
  await open.exited;
  return (await measure(folder)) ?? Number.POSITIVE_INFINITY;
}

/** The unit of `blocks` in the status of a file, on any file system. */
const blockBytes = 512;

/** Size on disk of files that processes of a sandbox have open or mapped, but that no folder lists any more. */
function deletedBytes(pid: number, workspace: string): number {
  const device = statSync(workspace, { bigint: true, throwIfNoEntry: false })?.dev;
  const sizes = new Map<bigint, number>();
  const addDeleted = (path: string) => {
    try {
      const { dev, ino, nlink, blocks } = statSync(path, { bigint: true });
      if (dev === device && nlink === 0n) sizes.set(ino, Number(blocks) * blockBytes);
    } catch {
      // The process has closed the file.
    }
  };
  for (const each of descendants(pid))
    for (const folder of [`/proc/${each}/fd`, `/proc/${each}/map_files`])
      for (const name of namesIn(folder)) addDeleted(join(folder, name));
  return sizes.values().reduce((sum, bytes) => sum + bytes, 0);
}

/** The limit that a full workspace has reached. */
export const workspaceLimitOf = ({ workspaceBytes }: SandboxLimits): LimitHit => ({
  limit: "workspace_bytes",
  value: workspaceBytes,
  unit: "bytes",
});

/** Whether nothing more fits on the disk of a folder. */
function isDiskFull(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize < minFreeBytes;
  } catch {
    // A cancelled run has removed it.
    return false;
  }
}

/** What a watch has seen: whether a mounted workspace is full at the end, and whether the disk of any other workspace was full at any time. */
type Room = { isFull: boolean; wasDiskFull: boolean };

/** `groupMemory`: the memory of its control group in bytes; null: it has none. */
type WatchedSandbox = {
  workspace: Workspace | undefined;
  limits: SandboxLimits;
  groupMemory: (() => number) | null;
};

/** Enforces the limits that the kernel doesn't. Returns a function that stops it after a final check. */
export function watch(
  pid: number,
  { workspace, limits, groupMemory }: WatchedSandbox,
  { onHit, onNear = () => {} }: { onHit: (hit: LimitHit) => void; onNear?: (hit: LimitHit) => void },
): () => Promise<Room> {
  const { memoryBytes, workspaceBytes } = limits;
  let isStopped = false;
  let isNear = false;
  const seen: Room = { isFull: false, wasDiskFull: false };
  const isMounted = workspace !== undefined && workspace.holder !== null;
  // The control group also has room for the files of a mounted workspace, so the group alone doesn't limit the memory of the command.
  const checksMemory = isMounted || groupMemory === null;
  /** Bytes to count. A mounted workspace can't exceed its size, but it can hold too many files. */
  const bytesOf = async ({ path, holder }: Workspace) => {
    if (holder === null) {
      seen.wasDiskFull ||= isDiskFull(path);
      return (await bytesBelow(path)) + deletedBytes(pid, path);
    }
    const usage = usageOf({ path, holder });
    seen.isFull = usage.isFull;
    return Math.max(usage.bytes, 1024 * usage.files);
  };
  const check = async () => {
    if (checksMemory && (groupMemory?.() ?? memoryBelow(pid)) > memoryBytes)
      onHit({ limit: "memory", value: memoryBytes, unit: "bytes" });
    if (workspace === undefined) return;
    const bytes = await bytesOf(workspace);
    if (bytes > workspaceBytes) onHit(workspaceLimitOf(limits));
    else if (bytes >= nearShare * workspaceBytes && !isNear) {
      isNear = true;
      onNear(workspaceLimitOf(limits));
    }
  };
  const stopped = Promise.withResolvers<void>();
  const watching = (async () => {
    while (!isStopped) {
      const startedAt = performance.now();
      await check();
      // Measuring a large folder takes long, so larger folders are measured less often.
      await settlesWithin(stopped.promise, Math.max(watchMs, 5 * (performance.now() - startedAt)));
    }
  })();
  return async () => {
    isStopped = true;
    stopped.resolve();
    await watching;
    await check();
    return seen;
  };
}
