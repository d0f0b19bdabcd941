import { readdirSync, readFileSync } from "node:fs";

/** A file of a process in /proc; empty if the process is gone. */
export function processFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return "";
  }
}

/** The IDs of all processes on this machine. */
export const allProcesses = (): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** The other processes whose command line contains a text; its arguments end with `\0`. */
export const processesWith = (text: string): number[] =>
  allProcesses().filter((pid) => pid !== process.pid && processFile(pid, "cmdline").includes(text));

/** The processes that a process started. */
export const childrenOf = (pid: number): number[] =>
  processFile(pid, `task/${pid}/children`).trim().split(" ").filter(Boolean).map(Number);

/** All processes below a process. */
export const descendantsOf = (pid: number): number[] =>
  childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);

/** Whether a process is gone, or a zombie. */
export const isGone = (pid: number): boolean => !/^State:\s+[^ZX]/m.test(processFile(pid, "status"));

/** Whether the process of an agent was started ahead of a run. */
export const isWaiting = (pid: number): boolean => processFile(pid, "cmdline").includes("\0__agent\0wait\0");

/** A size in the status of a process, in bytes: `VmRSS`, the memory in use, or `VmHWM`, the most it used. */
export const memoryOf = (pid: number, name: "VmRSS" | "VmHWM"): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(processFile(pid, "status"))?.[1]) * 1024;

/** CPU time of a process and of its main thread, in hundredths of a second; NaN if it is gone. */
export function cpuOf(pid: number): { main: number; all: number } {
  const of = (name: string) => {
    const fields = processFile(pid, name)
      .replace(/^.*\) /s, "")
      .split(" ");
    return Number(fields[11]) + Number(fields[12]);
  };
  return { main: of(`task/${pid}/stat`), all: of("stat") };
}
