import { writeFileSync } from "node:fs";
import { constants, setPriority } from "node:os";

const { PRIORITY_BELOW_NORMAL } = constants.priority;

/** The niceness of sessions in progress: beside 50 of them, Linux still gives the service and starting sessions most of two processors. */
const sessionNiceness = 19;

/**
 * Lowers the priority of a process and everything in its session, so that the service stays responsive with any number
 * of agents. Linux balances sessions against each other (sched_autogroup) and applies niceness only within a session,
 * so both are set.
 */
export function lowerPriority(pid: number): void {
  try {
    setPriority(pid, sessionNiceness);
    writeFileSync(`/proc/${pid}/autogroup`, String(sessionNiceness));
  } catch (error) {
    // Without root, this can be set ten times a second on the whole machine. Other errors: the process has exited, or
    // the file doesn't exist here.
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") setTimeout(lowerPriority, 100, pid).unref();
  }
}

/** Lowers the priority of the calling thread alone. Only Linux has priorities of threads; elsewhere, it would be the whole process. */
export function lowerThreadPriority(): void {
  if (process.platform === "linux") setPriority(0, PRIORITY_BELOW_NORMAL);
}
