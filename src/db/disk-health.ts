import { dirname } from "node:path";
import type { Logger } from "pino";
import { reasonOf } from "../errors.ts";
import { createSignal } from "../signal.ts";
import { codeOf, type DiskFault, diskFault, refineDiskError } from "./fault.ts";
import type { Db } from "./open.ts";
import { checkFiles, rescueWal } from "./open-files.ts";

const checkEveryMs = 1000;

export type DiskHealth = ReturnType<typeof createDiskHealth>;

/**
 * Classifies errors of the disk. After one that cannot be recovered from, the database only reads, and `onBroken` is called once, after
 * everything that subscribed to `failed` has stopped.
 */
export function createDiskHealth(db: Db, log: Logger, onBroken?: (error: unknown) => void) {
  const failed = createSignal();
  let problem: string | null = null;

  /** The disk fault behind an error; null if it has another cause. */
  function onError(error: unknown): DiskFault | null {
    const fault = diskFault(refineDiskError(error, dirname(db.$client.filename)));
    if (problem !== null || fault !== "broken") return fault;
    problem = reasonOf(error);
    log.fatal({ err: error }, "the database disk has failed; shutting down");
    failed.emit();
    // The checkpoint needs a connection that may write, so it comes before `query_only`.
    if (codeOf(error) === "SQLITE_IOERR_VNODE") rescueDeletedWal();
    // Running work may read but not write: a second write could damage good data.
    db.$client.run("pragma query_only = on");
    onBroken?.(error);
    return fault;
  }

  function rescueDeletedWal(): void {
    try {
      if (rescueWal(db.$client)) log.warn("moved the rows of the deleted WAL into the database");
    } catch (error) {
      log.error({ err: error }, "could not move the rows of the deleted WAL into the database");
    }
  }

  let watch: ReturnType<typeof setInterval> | undefined;

  return {
    onError,
    /** Emitted once, when the disk can no longer be trusted. */
    failed,
    /** Why the disk can no longer be trusted; null if it can. */
    findProblem: (): string | null => problem,
    /** Checks once a second that the files of the database still exist. */
    start(): void {
      watch = setInterval(() => {
        try {
          if (problem === null) checkFiles(db.$client);
        } catch (error) {
          onError(error);
        }
      }, checkEveryMs);
    },
    stop: (): void => clearInterval(watch),
  };
}
