import { eq } from "drizzle-orm";
import type { Context } from "../context.ts";
import { runs, type WaitingFor } from "../db/tables/runs.ts";
import { untilUnlocked } from "../db/write-lock.ts";

/**
 * Returns a function that stores what a run waits for; null: it no longer waits. Values are stored in the order of the calls, as long as `mayWrite`
 * allows.
 */
export function createWaitWriter(
  { db, log }: Context,
  runId: string,
  mayWrite: () => boolean,
): (waitingFor: WaitingFor | null) => void {
  let isStored = false;
  let lastWrite: Promise<void> = Promise.resolve();

  async function store(waitingFor: WaitingFor | null): Promise<void> {
    try {
      await untilUnlocked(db);
      if (mayWrite()) db.update(runs).set({ waitingFor }).where(eq(runs.id, runId)).run();
    } catch (error) {
      log.warn({ run: runId, err: error }, "could not save why a run is waiting");
    }
  }

  return (waitingFor) => {
    if (waitingFor === null && !isStored) return;
    isStored = waitingFor !== null;
    lastWrite = lastWrite.then(() => store(waitingFor));
  };
}
