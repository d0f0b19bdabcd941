import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { LimitHit, SandboxLimits } from "./bounds.ts";

export type Cgroup = {
  /** A process that writes its ID to all of these joins the group, and so do its children. */
  procsFiles: string[];
  /** The limit that was reached, if any. */
  hit(): LimitHit | null;
  /** Kills every process in the group. */
  kill(): void;
  /** Removes the group, and kills what is left in it. */
  remove(): Promise<void>;
};

/** A group that was delegated to a process, which creates groups of its own in it. */
export type DelegatedCgroup = {
  /** A process that writes its ID to all of these joins the group. */
  procsFiles: string[];
  /** The folders in which the process creates groups. */
  folders: string[];
  /** Gives everything in the group less CPU time than the rest of the machine. Returns whether that is possible. */
  lowerPriority(): boolean;
  /** Removes the group and those in it, once their processes have ended. */
  remove(): Promise<void>;
};

/**
 * A group of another namespace counts as left behind only if it is older: it is empty for a moment after it was created. Folders are
 * searched for such groups no more often than this.
 */
const minAgeMs = 60_000;

/** About as much as with niceness 19, in version 2 and 1: of 100 and 1,024. */
const lowWeights = { "cpu.weight": 1, "cpu.shares": 10 };

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};

/**
 * Creates a control group (version 2 or 1) for one sandbox below the one of this process; null if that isn't possible. `extraBytes` of
 * memory are for other uses than the limit is about.
 */
export function createCgroup(limits: SandboxLimits, extraBytes = 0): Cgroup | null {
  const name = newName();
  const { processes } = limits;
  const memoryBytes = limits.memoryBytes + extraBytes;
  const v2 = prepareParents("cgroup2", "").map((parent) => () => {
    enableControllers(parent);
    const bounds = { "memory.max": memoryBytes, "memory.swap.max?": 0, "pids.max": processes };
    return [makeGroup(join(parent, name), { ...bounds, "cpu.weight?": lowWeights["cpu.weight"] })];
  });
  const v1 = () => {
    const [memory, pids] = [prepareParents("cgroup", "memory")[0], prepareParents("cgroup", "pids")[0]];
    if (!memory || !pids) return [];
    const bounds = { "memory.limit_in_bytes": memoryBytes, "memory.memsw.limit_in_bytes?": memoryBytes };
    return [makeGroup(join(memory, name), bounds), makeGroup(join(pids, name), { "pids.max": processes })];
  };
  const folders = firstSuccess([...v2, v1]);
  return folders && toCgroup([...new Set(folders)], limits);
}

/**
 * Creates a control group in which a process may create groups with `createCgroup`, also one of another user (`uid`); null if that isn't
 * possible. The process can change nothing outside of it.
 */
export function createDelegatedCgroup(uid: number | null): DelegatedCgroup | null {
  const name = newName();
  const giveToUser = (path: string) => uid !== null && chownSync(path, uid, uid);
  const openToUser = (folder: string) => {
    giveToUser(folder);
    giveToUser(join(folder, "cgroup.procs"));
    return folder;
  };
  // In version 2, a group that contains others has no processes of its own.
  const v2 = prepareParents("cgroup2", "").map((parent) => () => {
    enableControllers(parent);
    const folder = openToUser(makeGroup(join(parent, name), {}));
    enableControllers(folder);
    return [folder, openToUser(makeGroup(join(folder, leafName), {}))];
  });
  const v1 = () => {
    const parentFolders = ["memory", "pids"].map((controller) => prepareParents("cgroup", controller)[0]);
    return parentFolders.some((folder) => folder === undefined)
      ? []
      : [...new Set(parentFolders)].map((folder) => openToUser(makeGroup(join(folder as string, name), {})));
  };
  const folders = firstSuccess([...v2, v1]);
  if (!folders) return null;
  const isLeafGroup = (folder: string) => folder.endsWith(`/${leafName}`);
  const joined = folders.some(isLeafGroup) ? folders.filter(isLeafGroup) : folders;
  const delegated = folders.filter((folder) => !isLeafGroup(folder));
  const cpu = cpuGroup(name);
  return {
    procsFiles: [...joined, ...cpu].map((folder) => join(folder, "cgroup.procs")),
    folders: delegated,
    lowerPriority: () => [...delegated, ...cpu].filter(lowerWeight).length > 0,
    remove: () => removeAll([...delegated.flatMap((folder) => [...childrenOf(folder), folder]), ...cpu]),
  };
}

/**
 * In version 1, a group for CPU time, which its processes can't change; none if that isn't possible. Without it, Linux divides CPU time
 * between sessions (sched_autogroup), and every sandbox that the process starts is one more.
 */
function cpuGroup(name: string): string[] {
  try {
    const [cpu] = prepareParents("cgroup", "cpu");
    return cpu === undefined ? [] : [makeGroup(join(cpu, name), {})];
  } catch {
    return [];
  }
}

function lowerWeight(folder: string): boolean {
  return Object.entries(lowWeights).some(([file, weight]) => {
    try {
      writeFileSync(join(folder, file), String(weight), { flag: "r+" });
      return true;
    } catch {
      // Not of this version, or the group is removed already.
      return false;
    }
  });
}

/** In version 2, the group in a delegated group that contains its first process. */
const leafName = "agent";

const newName = () => `evald-${process.pid}-${crypto.randomUUID().slice(0, 8)}-${pidNamespace()}`;

/** Lets the groups in a folder limit memory and processes. */
function enableControllers(folder: string): void {
  const path = join(folder, "cgroup.subtree_control");
  if (!/\bmemory\b.*\bpids\b/.test(read(path))) writeFileSync(path, "+memory +pids", { flag: "r+" });
}

/** The folders that the first successful attempt creates; null if all fail. */
function firstSuccess(attempts: (() => string[])[]): string[] | null {
  for (const attempt of attempts) {
    try {
      const folders = attempt();
      if (folders.length > 0) return folders;
    } catch {
      // Not writable: try the next kind.
    }
  }
  return null;
}

/** Read once: reading them waits for every sandbox that is just mounting its own. */
let mounts: string[][] | undefined;

/**
 * The folders in which groups can be created: the one of this process in a controller's hierarchy and, for version 2, its parent, because
 * groups with children may not contain processes. Removes groups that were left behind there.
 */
function prepareParents(type: "cgroup" | "cgroup2", controller: string): string[] {
  mounts ??= read("/proc/mounts")
    .split("\n")
    .map((line) => line.split(" "));
  const mount = mounts.find(
    ([, , kind, options = ""]) => kind === type && (controller === "" || options.split(",").includes(controller)),
  );
  const ownEntry = read("/proc/self/cgroup")
    .split("\n")
    .map((line) => line.split(":"))
    .find(([, names = ""]) => (controller === "" ? names === "" : names.split(",").includes(controller)));
  const at = mount?.[1];
  if (!at || !ownEntry) return [];
  const inside = join(at, ownEntry.slice(2).join(":"));
  // In a container, the path may be the host's, which isn't visible here.
  const folder = existsSync(inside) ? inside : at;
  const above = type === "cgroup2" && folder !== at ? [dirname(folder)] : [];
  const folders = [folder, ...above];
  for (const place of folders) removeLeftovers(place);
  return folders;
}

/** Process IDs mean something in their own namespace only. */
const pidNamespace = () => /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";

/** When each folder was last searched, in ms of this process. */
const sweptAt = new Map<string, number>();

/** Removes groups left behind by a killed service or agent. */
function removeLeftovers(folder: string): void {
  const now = performance.now();
  if (now - (sweptAt.get(folder) ?? Number.NEGATIVE_INFINITY) < minAgeMs || !existsSync(folder)) return;
  sweptAt.set(folder, now);
  for (const name of readdirSync(folder)) {
    const [, pid, namespace] = /^evald-(\d+)-[0-9a-f]{8}-(\d+)$/.exec(name) ?? [];
    if (pid === undefined) continue;
    const path = join(folder, name);
    try {
      if (namespace === pidNamespace()) {
        if (existsSync(`/proc/${pid}`)) continue;
        for (const each of [path, ...childrenOf(path)]) killGroup(each);
        for (const child of childrenOf(path)) rmdirSync(child);
      } else if (performance.timeOrigin + performance.now() - statSync(path).mtimeMs < minAgeMs) continue;
      // Fails if a process is in it.
      rmdirSync(path);
    } catch {
      // A process is still exiting, or the group belongs to another user.
    }
  }
}

/** The groups in a group. */
const childrenOf = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true }).flatMap((each) =>
        each.isDirectory() ? join(folder, each.name) : [],
      )
    : [];

/** Removes groups and kills what is left in them. */
async function removeAll(folders: string[]): Promise<void> {
  for (let left = 40; left > 0; left--) {
    try {
      // If bubblewrap was killed while it started, the process that it had just started may have survived.
      for (const folder of folders) killGroup(folder);
      for (const folder of folders.filter((path) => existsSync(path))) rmdirSync(folder);
      return;
    } catch {
      await Bun.sleep(25);
    }
  }
}

/** Kills the processes of a group. Returns before they have exited. */
function killGroup(folder: string): void {
  const pids = read(join(folder, "cgroup.procs")).split("\n").map(Number);
  // 0 is a process of another namespace.
  for (const pid of pids.filter((each) => each > 0)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Already exited.
    }
  }
}

/** Creates a group and writes its settings. Those whose names end in `?` may be missing on the machine. */
function makeGroup(folder: string, bounds: Record<string, number>): string {
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

function toCgroup(folders: string[], { memoryBytes, processes }: SandboxLimits): Cgroup {
  /** Whether a file counts at least one event of a kind. */
  const hasEvent = (pattern: RegExp, ...files: string[]) =>
    folders.some((folder) => files.some((file) => Number(pattern.exec(read(join(folder, file)))?.[1] ?? 0) > 0));
  return {
    procsFiles: folders.map((folder) => join(folder, "cgroup.procs")),
    hit() {
      if (hasEvent(/^oom_kill (\d+)/m, "memory.events", "memory.oom_control"))
        return { limit: "memory", value: memoryBytes, unit: "bytes" };
      return hasEvent(/^max (\d+)/m, "pids.events")
        ? { limit: "processes", value: processes, unit: "processes" }
        : null;
    },
    kill: () => folders.forEach(killGroup),
    remove: () => removeAll(folders),
  };
}
