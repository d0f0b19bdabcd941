import { chownSync, existsSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LimitHit, SandboxLimits } from "./bounds.ts";
import { cpuFolder, cpuWeights, enableCpuController, setCpuWeight } from "./cpu-groups.ts";
import { groupsBelow, killGroup, makeGroup, newName, prepareParents } from "./group-folders.ts";
import { readText } from "./kernel-files.ts";

type Cgroup = {
  /** A process that writes its ID to all of these joins the group, and so do its children. */
  procsFiles: string[];
  /** The limit that was reached, if any. */
  hit(): LimitHit | null;
  /** Memory of its processes in bytes, without files in memory. */
  memory(): number;
  /** Kills every process in the group. */
  kill(): void;
  /** Removes the group, and kills what is left in it. */
  remove(): Promise<void>;
};

/** A group that was delegated to a process, which creates further groups inside it. */
export type DelegatedCgroup = {
  /** A process that writes its ID to all of these joins the group. */
  procsFiles: string[];
  /** The folders in which the process creates groups. */
  folders: string[];
  /** Gives everything in the group less CPU time than the rest of the machine. Returns whether that is possible. */
  lowerPriority(): boolean;
  /** Removes the group and the groups in it, once their processes have ended. */
  remove(): Promise<void>;
};

/**
 * Creates a control group (version 2 or 1) for one sandbox, below the group of this process; null if that isn't possible. `extraBytes`: memory for
 * other uses than those that the limit is for.
 */
export function createCgroup(limits: SandboxLimits, extraBytes = 0): Cgroup | null {
  const name = newName();
  const { processes } = limits;
  const memoryBytes = limits.memoryBytes + extraBytes;
  // Files whose names end in `?` may be missing.
  const v2 = prepareParents("cgroup2", "").map((parent) => () => {
    enableControllers(parent);
    const bounds = { "memory.max": memoryBytes, "memory.swap.max?": 0, "pids.max": processes };
    return [makeGroup(join(parent, name), { ...bounds, "cpu.weight?": commandWeight })];
  });
  const v1 = () => {
    const [memory, pids] = [prepareParents("cgroup", "memory")[0], prepareParents("cgroup", "pids")[0]];
    if (!memory || !pids) return null;
    const bounds = { "memory.limit_in_bytes": memoryBytes, "memory.memsw.limit_in_bytes?": memoryBytes };
    return [makeGroup(join(memory, name), bounds), makeGroup(join(pids, name), { "pids.max": processes })];
  };
  const folders = firstSuccess([...v2, v1]);
  return folders && toCgroup([...new Set(folders)], limits);
}

/**
 * Creates a control group in which a process can create groups with `createCgroup`; null if that isn't possible. `uid`: the user of the process, if
 * it is another user. The process can't change anything outside of the group.
 */
export function createDelegatedCgroup(uid: number | null): DelegatedCgroup | null {
  const name = newName();
  const giveToUser = (path: string) => uid !== null && chownSync(path, uid, uid);
  const openToUser = (folder: string) => {
    giveToUser(folder);
    giveToUser(join(folder, "cgroup.procs"));
    return folder;
  };
  const v2 = prepareParents("cgroup2", "").map((parent) => () => {
    enableControllers(parent);
    const folder = openToUser(makeGroup(join(parent, name), {}));
    enableControllers(folder);
    // A group that contains other groups can't have processes, so the process joins a group inside it.
    return { folders: [folder], joined: [openToUser(makeGroup(join(folder, "agent"), {}))] };
  });
  const v1 = () => {
    const [memory, pids] = [prepareParents("cgroup", "memory")[0], prepareParents("cgroup", "pids")[0]];
    if (!memory || !pids) return null;
    const created = [...new Set([memory, pids])].map((parent) => openToUser(makeGroup(join(parent, name), {})));
    return { folders: created, joined: created };
  };
  const groups = firstSuccess([...v2, v1]);
  if (!groups) return null;
  const { folders, joined } = groups;
  const cpu = createCpuGroup(name);
  return {
    procsFiles: [...joined, ...cpu].map((folder) => join(folder, "cgroup.procs")),
    folders,
    lowerPriority: () =>
      [...folders, ...cpu].filter((folder) => setCpuWeight(folder, cpuWeights.sessionInProgress)).length > 0,
    remove: () => removeAll(() => [...folders.flatMap((folder) => [...groupsBelow(folder), folder]), ...cpu]),
  };
}

/**
 * In version 1, creates a group for CPU time that its processes can't change; none if that isn't possible. Otherwise Linux would divide CPU time by
 * sessions of the kernel (sched_autogroup). Every sandbox calls `setsid` and so creates such a session, so an agent would get more CPU time with each
 * sandbox that it starts.
 */
function createCpuGroup(name: string): string[] {
  try {
    const parent = cpuFolder();
    return parent === null ? [] : [makeGroup(join(parent, name), {})];
  } catch {
    return [];
  }
}

/**
 * Makes sure that processes can join a group without delay in the next few milliseconds. The first join in a while takes about 10 ms, until the
 * kernel has stopped all other threads that start or end processes (RCU). Here, another thread waits for that: it joins the group in which this
 * process already is.
 */
export async function prepareToJoinGroups(): Promise<void> {
  try {
    const [folder] = [...prepareParents("cgroup", "memory"), ...prepareParents("cgroup2", "")];
    if (folder !== undefined) await writeFile(join(folder, "cgroup.procs"), "0");
  } catch {
    // Where this process can't create groups, it can't join this one either.
  }
}

/** In version 2, the CPU weight of a command. The process that runs the command has 100, so it can go on beside a busy command. */
const commandWeight = 1;

/** Lets the groups in a folder limit memory and processes, and divide CPU time if possible. */
function enableControllers(folder: string): void {
  const path = join(folder, "cgroup.subtree_control");
  if (!/\bmemory\b.*\bpids\b/.test(readText(path))) writeFileSync(path, "+memory +pids", { flag: "r+" });
  if (!/\bcpu\b/.test(readText(path))) enableCpuController(folder);
}

/** What the first successful attempt creates; null if all return null or throw. */
function firstSuccess<T>(attempts: (() => T | null)[]): T | null {
  for (const attempt of attempts) {
    try {
      const created = attempt();
      if (created !== null) return created;
    } catch {
      // Not writable: try the next kind.
    }
  }
  return null;
}

/** Maximum number of attempts. With the pauses between them, they take about a second. */
const maxRemovals = 52;
const maxPauseMs = 25;

/** Removes groups, and kills what is left in them. The groups are listed again at each attempt, because what is left may create more. */
async function removeAll(listFolders: () => string[]): Promise<void> {
  for (let failures = 0; failures < maxRemovals; failures++) {
    // Usually, the last process is gone within milliseconds. A report waits for this.
    if (failures > 0) await Bun.sleep(Math.min(maxPauseMs, failures));
    try {
      const folders = listFolders();
      // If bubblewrap was killed while it started, the process that it had just started may have survived.
      for (const folder of folders) killGroup(folder);
      for (const folder of folders.filter((path) => existsSync(path))) rmdirSync(folder);
      return;
    } catch {
      // A process is still exiting.
    }
  }
}

function toCgroup(folders: string[], { memoryBytes, processes }: SandboxLimits): Cgroup {
  /** Whether a file counts at least one event of a kind. */
  const hasEvent = (pattern: RegExp, ...files: string[]) =>
    folders.some((folder) => files.some((file) => Number(pattern.exec(readText(join(folder, file)))?.[1] ?? 0) > 0));
  return {
    procsFiles: folders.map((folder) => join(folder, "cgroup.procs")),
    hit() {
      if (hasEvent(/^oom_kill (\d+)/m, "memory.events", "memory.oom_control"))
        return { limit: "memory", value: memoryBytes, unit: "bytes" };
      return hasEvent(/^max (\d+)/m, "pids.events")
        ? { limit: "processes", value: processes, unit: "processes" }
        : null;
    },
    // `anon` of version 2, `total_rss` of version 1.
    memory: () =>
      Math.max(
        ...folders.map((folder) =>
          Number(/^(?:anon|total_rss) (\d+)$/m.exec(readText(join(folder, "memory.stat")))?.[1] ?? 0),
        ),
      ),
    kill: () => folders.forEach(killGroup),
    remove: () => removeAll(() => folders),
  };
}
