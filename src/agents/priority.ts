import { existsSync, openSync, writeFileSync } from "node:fs";
import { constants, setPriority } from "node:os";

const { PRIORITY_BELOW_NORMAL } = constants.priority;

/**
 * The niceness of a session's processes, compared with the processes that start with the session, such as the service in a control group of its own.
 */
const processNiceness = 19;

/**
 * The niceness of a session as a whole among all sessions of the machine. The session gets about a third of the CPU time of a session with niceness
 * 0. With much less, any two busy programs would starve it.
 */
const sessionNiceness = 5;

/** Time after which an agent counts as started, even if it has not called its model. */
export const maxStartMs = 60_000;

/**
 * Lowers the priority of a process and of everything in its session, so that the service stays responsive with any number of agents. Linux balances
 * sessions against each other (sched_autogroup), and applies niceness only within a session. Therefore, both are set.
 */
export const lowerPriority = (pid: number): void => lowerPriorityIn(`/proc/${pid}/autogroup`, pid);

/** Returns a function that lowers the priority of this process, even after the process was protected from others. */
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

/**
 * Lowers the priority of the calling thread alone. Only Linux has priorities of threads. Elsewhere, this would lower the priority of the whole
 * process.
 */
export function lowerThreadPriority(): void {
  if (process.platform === "linux") setPriority(0, PRIORITY_BELOW_NORMAL);
}
