import { existsSync, mkdirSync, readdirSync, readlinkSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readText } from "./kernel-files.ts";

/**
 * A group of another namespace counts as left behind only if it is older than this, because every new group is empty for a moment. Folders are
 * searched for such groups no more often than this.
 */
const minAgeMs = 60_000;

/** A name by which a later process knows whose group it is. */
export const newName = () => `evald-${process.pid}-${crypto.randomUUID().slice(0, 8)}-${pidNamespace()}`;

/**
 * The lines of /proc/mounts: device, mount point, type, options. They are read only once, because reading waits for every sandbox that is mounting
 * its file systems.
 */
let mounts: string[][] | undefined;

/**
 * The folders in which groups can be created: the group of this process in a controller's hierarchy and, for version 2, its parent, because groups
 * with children can't contain processes. Removes groups that were left behind there.
 */
export function prepareParents(type: "cgroup" | "cgroup2", controller: string): string[] {
  mounts ??= readText("/proc/mounts")
    .split("\n")
    .map((line) => line.split(" "));
  const mount = mounts.find(
    ([, , kind, options = ""]) => kind === type && (controller === "" || options.split(",").includes(controller)),
  );
  // Lines such as `4:memory:/user.slice`; of version 2, `0::/user.slice`.
  const ownEntry = readText("/proc/self/cgroup")
    .split("\n")
    .map((line) => line.split(":"))
    .find(([, names = ""]) => (controller === "" ? names === "" : names.split(",").includes(controller)));
  const mountPoint = mount?.[1];
  if (!mountPoint || !ownEntry) return [];
  const ownFolder = join(mountPoint, ownEntry.slice(2).join(":"));
  // In a container, the path may be the host's, which isn't visible here.
  const folder = existsSync(ownFolder) ? ownFolder : mountPoint;
  const folders = type === "cgroup2" && folder !== mountPoint ? [folder, dirname(folder)] : [folder];
  for (const each of folders) removeLeftovers(each);
  return folders;
}

/** A process ID is only valid in its own namespace. */
const pidNamespace = () => /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";

/** When each folder was last searched, in ms of this process. */
const searchedAt = new Map<string, number>();

/** Removes groups left behind by a killed service or agent. */
function removeLeftovers(folder: string): void {
  const now = performance.now();
  const ageMs = now - (searchedAt.get(folder) ?? Number.NEGATIVE_INFINITY);
  if (ageMs < minAgeMs || !existsSync(folder)) return;
  searchedAt.set(folder, now);
  for (const name of readdirSync(folder)) {
    const [, pid, namespace] = /^evald-(\d+)-[0-9a-f]{8}-(\d+)$/.exec(name) ?? [];
    if (pid === undefined) continue;
    const path = join(folder, name);
    try {
      if (namespace === pidNamespace()) {
        if (existsSync(`/proc/${pid}`)) continue;
        for (const each of [path, ...groupsBelow(path)]) killGroup(each);
      } else if (performance.timeOrigin + performance.now() - statSync(path).mtimeMs < minAgeMs) continue;
      // Fails if a process is in it.
      for (const each of [...groupsBelow(path), path]) rmdirSync(each);
    } catch {
      // A process is still exiting, or the group belongs to another user.
    }
  }
}

/** All groups inside a group, the innermost first. */
export function groupsBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder, { withFileTypes: true }).filter((each) => each.isDirectory());
  return names.map(({ name }) => join(folder, name)).flatMap((path) => [...groupsBelow(path), path]);
}

/** Kills the processes of a group. Returns before they have exited. */
export function killGroup(folder: string): void {
  const pids = readText(join(folder, "cgroup.procs")).split("\n").map(Number);
  // 0 is a process of another namespace.
  for (const pid of pids.filter((each) => each > 0)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Already exited.
    }
  }
}

/** Creates a group and writes its settings. Settings whose names end in `?` may be missing on the machine. */
export function makeGroup(folder: string, bounds: Record<string, number>): string {
  mkdirSync(folder);
  try {
    for (const [key, value] of Object.entries(bounds)) {
      const file = join(folder, key.replace("?", ""));
      if (existsSync(file) || !key.endsWith("?")) writeFileSync(file, String(value), { flag: "r+" });
    }
    return folder;
  } catch (error) {
    rmdirSync(folder);
    throw error;
  }
}
