import { writeFileSync } from "node:fs";
import { constants, setPriority } from "node:os";

const { PRIORITY_BELOW_NORMAL } = constants.priority;

/**
 * Lets the rest of the machine go before a process and whatever it starts in its session: the service answers at once however many agents work.
 * Linux weighs sessions against one another (sched_autogroup), and niceness only within one, so both are set.
 */
export function giveWay(pid: number): void {
  try {
    setPriority(pid, PRIORITY_BELOW_NORMAL);
    writeFileSync(`/proc/${pid}/autogroup`, String(PRIORITY_BELOW_NORMAL));
  } catch (error) {
    // Who is not root may say so ten times a second on the whole machine. Anything else: gone already, or no such thing here.
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") setTimeout(giveWay, 100, pid).unref();
  }
}
