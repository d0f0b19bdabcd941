import { rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeGroup, newName, prepareParents } from "./group-folders.ts";
import { readText } from "./kernel-files.ts";

/**
 * CPU weights of control groups. Linux divides CPU time between the groups in a parent in proportion to their weights. The values are `cpu.shares` of
 * version 1, where all other groups have 1,024. Each kernel session (`setsid`) of processes without a group also has 1,024. The service has the
 * highest weight, because it uses little.
 */
export const cpuWeights = { service: 8192, session: 1024, sessionInProgress: 512 };

/** 100 in version 2 corresponds to 1,024 in version 1. The maximum in version 2 is 10,000. */
const toVersion2 = (weight: number) => Math.min(10_000, Math.max(1, Math.round((weight * 100) / 1024)));

/** In version 1, the group that contains the groups of all sessions, and the number of sessions; null: there is no such group. */
let sessionsGroup: { folder: string; sessions: number } | null = null;

/** Sets the CPU weight of a group. Returns whether that is possible. */
export function setCpuWeight(folder: string, weight: number): boolean {
  const values = { "cpu.shares": weight, "cpu.weight": toVersion2(weight) };
  return Object.entries(values).some(([file, value]) => {
    try {
      writeFileSync(join(folder, file), String(value), { flag: "r+" });
      return true;
    } catch {
      // The file is of the other version, or the group has been removed already.
      return false;
    }
  });
}

/** Lets the groups in a folder of version 2 divide CPU time, if possible. */
export function enableCpuController(folder: string): void {
  try {
    writeFileSync(join(folder, "cgroup.subtree_control"), "+cpu", { flag: "r+" });
  } catch {
    // The controller is not delegated to this process.
  }
}

/** Puts this process in a control group of its own, beside the groups of its sessions, where that is possible. Call it once. */
export async function joinServiceGroup(): Promise<void> {
  try {
    const [cpu] = prepareParents("cgroup", "cpu");
    if (cpu === undefined) await joinVersion2();
    else await joinVersion1(cpu);
  } catch {
    // Not allowed here: sessions get a lower priority instead.
  }
}

/**
 * In version 1, all sessions share a group beside the group of the service. If it were above the service's group, the service would have to wait
 * whenever its sessions have used up their share of the machine.
 */
async function joinVersion1(parent: string): Promise<void> {
  const folder = makeGroup(join(parent, newName()), {});
  await moveInto(parent);
  sessionsGroup = { folder, sessions: 0 };
  process.on("exit", () => remove(folder));
}

/**
 * In version 2, the groups of sessions are created beside the group of this process, in the same parent, such as the systemd unit
 * (DelegateSubgroup=). The root group has no parent, so a process in it moves into a new group.
 */
async function joinVersion2(): Promise<void> {
  const [own, parent] = prepareParents("cgroup2", "");
  if (own === undefined) return;
  enableCpuController(parent ?? own);
  if (parent === undefined) await moveInto(own);
  else setCpuWeight(own, cpuWeights.service);
}

/** Moves this process into a new group in a folder until it exits. */
async function moveInto(parent: string): Promise<void> {
  const own = makeGroup(join(parent, newName()), {});
  setCpuWeight(own, cpuWeights.service);
  // The kernel takes 7 to 20 ms. Another thread waits for it.
  await writeFile(join(own, "cgroup.procs"), String(process.pid));
  process.on("exit", () => remove(own, parent));
}

/** Removes a group. If a new group is given, this process first moves into it. */
function remove(folder: string, newGroup?: string): void {
  try {
    if (newGroup !== undefined) writeFileSync(join(newGroup, "cgroup.procs"), String(process.pid));
    rmdirSync(folder);
  } catch {
    // A process in it is still exiting. The next service removes it.
  }
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
    return /\bcpu\b/.test(readText(join(parent, "cgroup.subtree_control")));
  } catch {
    return false;
  }
}

/** Where the groups for the CPU time of sessions are created in version 1; null if that isn't possible. */
export const cpuFolder = (): string | null => sessionsGroup?.folder ?? prepareParents("cgroup", "cpu")[0] ?? null;

/** Gives the common group of sessions as much CPU time as one more program of this machine gets. Returns a function that undoes this. */
export function beginSession(): () => void {
  addSessions(1);
  return () => addSessions(-1);
}

function addSessions(count: number): void {
  if (sessionsGroup === null) return;
  sessionsGroup.sessions += count;
  setCpuWeight(sessionsGroup.folder, cpuWeights.session * Math.max(1, sessionsGroup.sessions));
}
