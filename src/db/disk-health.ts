import { dirname } from "node:path";
import type { Logger } from "pino";
import { type DiskFault, diskFault, nameFault } from "./fault.ts";
import type { Db } from "./open.ts";

type Options = {
  db: Db;
  log: Logger;
  /** Stops the job runner. */
  halt: () => void;
  /** Called once, when the disk can no longer be trusted. */
  onBroken?: (error: unknown) => void;
};

/** Classifies errors of the disk. After one that cannot be recovered from, the database only reads. */
export function createDiskHealth({ db, log, halt, onBroken = () => {} }: Options) {
  let broken: string | null = null;

  /** The disk fault behind an error; null if it has another cause. */
  function onError(error: unknown): DiskFault | null {
    const fault = diskFault(nameFault(error, dirname(db.$client.filename)));
    if (broken !== null || fault !== "broken") return fault;
    broken = error instanceof Error ? error.message : String(error);
    log.fatal({ err: error }, "the database disk has failed; shutting down");
    halt();
    // Running work may read but not write: a second write could damage good data.
    db.$client.run("pragma query_only = on");
    onBroken(error);
    return fault;
  }

  return { onError, broken: (): string | null => broken };
}
