import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

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

export type Cgroup = {
  /** A process that writes its ID to all of these joins the group, and so do its children. */
  entrances: string[];
  /** The limit that was reached, if any. */
  hit(): LimitHit | null;
  /** Removes the group after its last process has exited. */
  remove(): Promise<void>;
};

const watchMs = 250;
const nearShare = 0.8;

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};

const namesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/**
 * Creates a control group (version 2 or 1) for one sandbox below the one of this process; null if that isn't possible.
 */
export function createCgroup(limits: SandboxLimits): Cgroup | null {
  const name = `evald-${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
  const { memoryBytes, processes } = limits;
  const v2 = parents("cgroup2", "").map((parent) => () => {
    if (!/\bmemory\b.*\bpids\b/.test(read(join(parent, "cgroup.subtree_control"))))
      writeFileSync(join(parent, "cgroup.subtree_control"), "+memory +pids", { flag: "r+" });
    return [make(join(parent, name), { "memory.max": memoryBytes, "memory.swap.max?": 0, "pids.max": processes })];
  });
  const v1 = () => {
    const [memory, pids] = [parents("cgroup", "memory")[0], parents("cgroup", "pids")[0]];
    if (!memory || !pids) return [];
    const bounds = { "memory.limit_in_bytes": memoryBytes, "memory.memsw.limit_in_bytes?": memoryBytes };
    return [make(join(memory, name), bounds), make(join(pids, name), { "pids.max": processes })];
  };
  for (const attempt of [...v2, v1]) {
    try {
      const folders = attempt();
      if (folders.length > 0) return toCgroup([...new Set(folders)], limits);
    } catch {
      // Not writable: try the next kind.
    }
  }
  return null;
}

/**
 * The folder of this process in a controller's hierarchy and, for version 2, its parent, because groups with children
 * may not contain processes.
 */
function parents(type: "cgroup" | "cgroup2", controller: string): string[] {
  const mount = read("/proc/mounts")
    .split("\n")
    .map((line) => line.split(" "))
    .find(
      ([, , kind, options = ""]) => kind === type && (controller === "" || options.split(",").includes(controller)),
    );
  const own = read("/proc/self/cgroup")
    .split("\n")
    .map((line) => line.split(":"))
    .find(([, names = ""]) => (controller === "" ? names === "" : names.split(",").includes(controller)));
  const at = mount?.[1];
  if (!at || !own) return [];
  const inside = join(at, own.slice(2).join(":"));
  // In a container, the path may be the host's, which isn't visible here.
  const folder = existsSync(inside) ? inside : at;
  const above = type === "cgroup2" && folder !== at ? [dirname(folder)] : [];
  const found = [folder, ...above];
  for (const place of found) sweep(place);
  return found;
}

/** Groups left behind by a killed service are empty by now. */
function sweep(folder: string): void {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder).filter((entry) => /^evald-\d+-[0-9a-f]{8}$/.test(entry))) {
    if (existsSync(`/proc/${name.split("-")[1]}`)) continue;
    try {
      rmdirSync(join(folder, name));
    } catch {
      // Still in use, or owned by another user.
    }
  }
}

/** Names that end in `?` are optional. */
function make(folder: string, bounds: Record<string, number>): string {
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
  const count = (pattern: RegExp, ...files: string[]) =>
    folders.some((folder) => files.some((file) => Number(pattern.exec(read(join(folder, file)))?.[1] ?? 0) > 0));
  return {
    entrances: folders.map((folder) => join(folder, "cgroup.procs")),
    hit() {
      if (count(/^oom_kill (\d+)/m, "memory.events", "memory.oom_control"))
        return { limit: "memory", value: memoryBytes, unit: "bytes" };
      return count(/^max (\d+)/m, "pids.events") ? { limit: "processes", value: processes, unit: "processes" } : null;
    },
    async remove() {
      for (let left = 40; left > 0; left--) {
        try {
          for (const folder of folders.filter((path) => existsSync(path))) rmdirSync(folder);
          return;
        } catch {
          await Bun.sleep(25);
        }
      }
    },
  };
}

/** The processes below a process. */
function descendants(pid: number): string[] {
  const children = Map.groupBy(
    readdirSync("/proc").filter((name) => /^\d+$/.test(name)),
    // After the program name, which may contain anything: state, then parent.
    (name) => /^\d+ \(.*\) \S (\d+)/s.exec(read(`/proc/${name}/stat`))?.[1] ?? "",
  );
  const below = (parent: string): string[] => (children.get(parent) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(String(pid));
}

/** Memory of a process and its descendants, read from /proc, for machines without control groups. */
function memoryBelow(pid: number): number {
  const held = (of: string) =>
    [...read(`/proc/${of}/status`).matchAll(/^(?:RssAnon|RssShmem):\s+(\d+) kB/gm)].reduce(
      (sum, [, kib]) => sum + Number(kib) * 1024,
      0,
    );
  return descendants(pid).reduce((sum, child) => sum + held(child), 0);
}

const tools = { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" }, stdin: "ignore" } as const;

/**
 * Size of a folder on disk, plus 1 KiB per file, because a million empty files also fill a disk. null: a subfolder
 * isn't readable by its owner.
 */
async function measure(folder: string): Promise<number | null> {
  const count = async (...flags: string[]) => {
    const du = Bun.spawn(["du", "-sx", ...flags, "--", folder], { ...tools, stdout: "pipe", stderr: "pipe" });
    const [said, complaints] = await Promise.all([new Response(du.stdout).text(), new Response(du.stderr).text()]);
    return /Permission denied/.test(complaints) ? Number.NaN : Number.parseInt(said, 10) || 0;
  };
  const bytes = (await count("-B1")) + 1024 * (await count("--inodes"));
  return Number.isNaN(bytes) ? null : bytes;
}

/** The same after making folders readable; a folder that is made unreadable again at once counts as infinite. */
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

/** Size on disk of files that processes of a sandbox have open or mapped, but that no folder lists any more. */
function deletedBytes(pid: number, workspace: string): number {
  const device = statSync(workspace, { bigint: true, throwIfNoEntry: false })?.dev;
  const sizes = new Map<bigint, number>();
  const note = (path: string) => {
    try {
      const { dev, ino, nlink, blocks } = statSync(path, { bigint: true });
      if (dev === device && nlink === 0n) sizes.set(ino, Number(blocks) * 512);
    } catch {
      // Closed since.
    }
  };
  for (const each of descendants(pid))
    for (const folder of [`/proc/${each}/fd`, `/proc/${each}/map_files`])
      for (const name of namesIn(folder)) note(join(folder, name));
  return sizes.values().reduce((sum, bytes) => sum + bytes, 0);
}

/** Enforces the limits that the kernel doesn't. Returns a function that stops it after a final check. */
export function watch(
  pid: number,
  workspace: string | undefined,
  { memoryBytes, workspaceBytes }: SandboxLimits,
  memoryToo: boolean,
  { onHit, onNear = () => {} }: { onHit: (hit: LimitHit) => void; onNear?: (hit: LimitHit) => void },
): () => Promise<void> {
  let over = false;
  let isNear = false;
  const look = async () => {
    if (memoryToo && memoryBelow(pid) > memoryBytes) onHit({ limit: "memory", value: memoryBytes, unit: "bytes" });
    if (workspace === undefined) return;
    const bytes = (await bytesBelow(workspace)) + deletedBytes(pid, workspace);
    const room: LimitHit = { limit: "workspace_bytes", value: workspaceBytes, unit: "bytes" };
    if (bytes > workspaceBytes) onHit(room);
    else if (bytes >= nearShare * workspaceBytes && !isNear) {
      isNear = true;
      onNear(room);
    }
  };
  const stopped = Promise.withResolvers<void>();
  const watching = (async () => {
    while (!over) {
      const startedAt = performance.now();
      await look();
      // Measuring a large folder takes long, so it is done less often.
      const pause = Bun.sleep(Math.max(watchMs, 5 * (performance.now() - startedAt)));
      await Promise.race([pause, stopped.promise]);
    }
  })();
  return async () => {
    over = true;
    stopped.resolve();
    await watching;
    await look();
  };
}
