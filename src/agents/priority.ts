import { existsSync, openSync, writeFileSync } from "node:fs";
import { constants, setPriority } from "node:os";

const { PRIORITY_BELOW_NORMAL } = constants.priority;

/** The niceness of a session's processes among those that start with it, such as the service in a control group of its own. */
const processNiceness = 19;

/**
 * The niceness of a session as a whole, among all sessions of the machine: about a third of the CPU time of one with niceness 0. With much less,
 * any two busy programs would starve it.
 */
const sessionNiceness = 5;

/** Time after which an agent counts as started, even if it has not called its model. */
export const maxStartMs = 60_000;

/**
 * Lowers the priority of a process and everything in its session, so that the service stays responsive with any number
 * of agents. Linux balances sessions against each other (sched_autogroup) and applies niceness only within a session,
 * so both are set.
 */
export const lowerPriority = (pid: number): void => lowerPriorityIn(`/proc/${pid}/autogroup`, pid);

/** Returns a function that does so with this process, even after it was protected from others. */
export function prepareToLowerPriority(): () => void {
  const file = `/proc/${process.pid}/autogroup`;
  const openFile = existsSync(file) ? openSync(file, "w") : file;
  return () => lowerPriorityIn(openFile, process.pid);
}

/** `file`: path or descriptor of the process's file for the niceness of its session. */
function lowerPriorityIn(file: string | number, pid: number): void {
  try {
    setPriority(pid, processNiceness);
    writeFileSync(file, String(sessionNiceness));
  } catch (error) {
    // Without root, this can be set ten times a second on the whole machine. Other errors: the process has exited, or
    // the file doesn't exist here.
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") setTimeout(lowerPriorityIn, 100, file, pid).unref();
  }
}

/** Lowers the priority of the calling thread alone. Only Linux has priorities of threads; elsewhere, it would be the whole process. */
export function lowerThreadPriority(): void {
  if (process.platform === "linux") setPriority(0, PRIORITY_BELOW_NORMAL);
}
