import { rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeGroup, newName, prepareParents, read } from "./group-folders.ts";

/**
 * Weights of control groups below the same one: Linux divides CPU time in proportion to them. In the unit of version 1 (`cpu.shares`), where any
 * other group, or session of processes without one, has 1,024. The service is short of nothing; sessions share the rest.
 */
export const cpuWeights = { service: 8192, session: 1024, sessionInProgress: 512 };

/** In version 2, 100 is what 1,024 is in version 1, and the maximum is 10,000. */
const toVersion2 = (weight: number) => Math.min(10_000, Math.max(1, Math.round((weight * 100) / 1024)));

/** The group that contains the service's own and those of its sessions, and the number of sessions; null: there is none. */
let common: { folder: string; sessions: number } | null = null;

/** Sets the CPU weight of a group. Returns whether that is possible. */
export function setCpuWeight(folder: string, weight: number): boolean {
  const values = { "cpu.shares": weight, "cpu.weight": toVersion2(weight) };
  return Object.entries(values).some(([file, value]) => {
    try {
      writeFileSync(join(folder, file), String(value), { flag: "r+" });
      return true;
    } catch {
      // Not of this version, or the group is removed already.
      return false;
    }
  });
}

/** Lets the groups in a folder of version 2 divide CPU time, if possible. */
export function enableCpuController(folder: string): void {
  try {
    writeFileSync(join(folder, "cgroup.subtree_control"), "+cpu", { flag: "r+" });
  } catch {
    // Not delegated to this process.
  }
}

/**
 * Puts this process in a control group beside those of its sessions, where that is possible. Within their common group, the service comes
 * before its sessions. To the rest of the machine, they are as many programs as there are sessions, and the service. Call it once.
 */
export async function joinServiceGroup(): Promise<void> {
  try {
    const [cpu] = prepareParents("cgroup", "cpu");
    if (cpu === undefined) await joinVersion2();
    else await moveInto(cpu);
  } catch {
    // Not allowed here: sessions get a lower priority instead.
  }
}

/** With a parent, the group of this process already has one that contains those of the sessions, such as its systemd unit. */
async function joinVersion2(): Promise<void> {
  const [own, parent] = prepareParents("cgroup2", "");
  if (own === undefined) return;
  if (parent === undefined) {
    enableCpuController(own);
    await moveInto(own);
  } else {
    enableCpuController(parent);
    setCpuWeight(own, cpuWeights.service);
  }
}

/** Creates the common group in a folder, and moves this process into a group in it until it exits. */
async function moveInto(origin: string): Promise<void> {
  const folder = makeGroup(join(origin, newName()), {});
  enableCpuController(folder);
  const own = makeGroup(join(folder, "service"), {});
  setCpuWeight(own, cpuWeights.service);
  // The kernel takes 7 to 20 ms, in which another thread waits for it.
  await writeFile(join(own, "cgroup.procs"), String(process.pid));
  common = { folder, sessions: 0 };
  process.on("exit", () => {
    try {
      writeFileSync(join(origin, "cgroup.procs"), String(process.pid));
      for (const each of [own, folder]) rmdirSync(each);
    } catch {
      // A process of a session is still exiting. The next service removes it.
    }
  });
}

/** Whether the CPU time of sessions is divided by control groups here. */
export function canGroupSessions(): boolean {
  try {
    const folder = cpuFolder();
    if (folder !== null) {
      rmdirSync(makeGroup(join(folder, newName()), {}));
      return true;
    }
    const parent = prepareParents("cgroup2", "").at(-1);
    if (parent === undefined) return false;
    enableCpuController(parent);
    return /\bcpu\b/.test(read(join(parent, "cgroup.subtree_control")));
  } catch {
    return false;
  }
}

/** Where the groups for the CPU time of sessions are created in version 1; null if that isn't possible. */
export const cpuFolder = (): string | null => common?.folder ?? prepareParents("cgroup", "cpu")[0] ?? null;

/** Adds a session to what the common group stands for. Returns a function that ends it. */
export function beginSession(): () => void {
  addSessions(1);
  return () => addSessions(-1);
}

function addSessions(count: number): void {
  if (common === null) return;
  common.sessions += count;
  setCpuWeight(common.folder, cpuWeights.session * (1 + common.sessions));
}
