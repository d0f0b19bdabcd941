import { eq } from "drizzle-orm";
import type { Context } from "../context.ts";
import { runs, type WaitingFor } from "../db/tables/runs.ts";
import { untilUnlocked } from "../db/write-lock.ts";

/** Returns a function that stores what the agent of a run waits for; null once it has started. `mayWrite`: whether this process still runs it. */
export function createWaitNotes({ db, log }: Pick<Context, "db" | "log">, runId: string, mayWrite: () => boolean) {
  let isStored = false;
  let last: Promise<void> = Promise.resolve();

  async function store(waitingFor: WaitingFor | null): Promise<void> {
    try {
      await untilUnlocked(db);
      if (mayWrite()) db.update(runs).set({ waitingFor }).where(eq(runs.id, runId)).run();
    } catch (error) {
      log.warn({ run: runId, err: error }, "could not store what a run waits for");
    }
  }

  return (waitingFor: WaitingFor | null): void => {
    if (waitingFor === null && !isStored) return;
    isStored = waitingFor !== null;
    last = last.then(() => store(waitingFor));
  };
}
