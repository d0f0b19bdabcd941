import { readText } from "./kernel-files.ts";

/**
 * Kills a process and those below it. The first is stopped meanwhile, so that it starts no more. Killing only the first isn't enough: what it
 * has just started doesn't die with it yet.
 */
export function killTree(pid: number): void {
  const descendantsOf = (parent: number): number[] =>
    childrenOf(parent).flatMap((child) => [child, ...descendantsOf(child)]);
  signal(pid, "SIGSTOP");
  const descendants = descendantsOf(pid);
  for (const each of [pid, ...descendants]) signal(each, "SIGKILL");
}

/** The processes that a process has started and that run; none if it has exited. */
export const childrenOf = (pid: number): number[] =>
  readText(`/proc/${pid}/task/${pid}/children`).trim().split(" ").filter(Boolean).map(Number);

/** Sends a signal to the process that is this many levels below another one, following the first child of each. */
export function signalBelow(pid: number, depth: number, name: NodeJS.Signals): void {
  let current = pid;
  for (let i = 0; i < depth; i++) current = childrenOf(current)[0] ?? 0;
  // Otherwise it has exited, or has not started yet.
  if (current > 0) signal(current, name);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Already exited.
  }
}
