import { readText } from "./kernel-files.ts";

/**
 * Kills a process and all processes below it. The first process is stopped meanwhile, so that it can't start more. It isn't enough to kill the first
 * process, because a process that it has just started doesn't die with it yet.
 */
export function killTree(pid: number): void {
  const descendantsOf = (parent: number): number[] =>
    childrenOf(parent).flatMap((child) => [child, ...descendantsOf(child)]);
  signal(pid, "SIGSTOP");
  const descendants = descendantsOf(pid);
  for (const each of [pid, ...descendants]) signal(each, "SIGKILL");
}

/** The running processes that a process has started; empty if it has exited. */
export const childrenOf = (pid: number): number[] =>
  readText(`/proc/${pid}/task/${pid}/children`).trim().split(" ").filter(Boolean).map(Number);

/** Sends a signal to the process this many levels below another process, following the first child at each level. */
export function signalBelow(pid: number, depth: number, name: NodeJS.Signals): void {
  let current = pid;
  for (let i = 0; i < depth; i++) current = childrenOf(current)[0] ?? 0;
  // If there is none, the process has exited or hasn't started yet.
  if (current > 0) signal(current, name);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Already exited.
  }
}
