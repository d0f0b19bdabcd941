import { max } from "drizzle-orm";
import { type Db, transaction } from "./open.ts";
import { clock } from "./tables/clock.ts";
import { runs } from "./tables/runs.ts";

const minuteMs = 60_000;
/** A clock that is set forward by less is believed at once. */
const toleranceMs = 60 * minuteMs;
/** A clock that stays ahead for as long is believed. Time passes only while a service runs. */
const trialMs = 24 * 60 * minuteMs;
/** How often the proof is stored. */
const storeEveryMs = 10 * minuteMs;

/**
 * The time to delete by, which a clock that is set wrong doesn't change. It is never later than the clock. If the clock jumps forward, as it also
 * seems to after a downtime, this time goes on from its last value at the speed of the monotonic clock, until the clock has been ahead for a day.
 */
export type ProvenTime = {
  /** Epoch milliseconds. */
  now(): number;
  /** Milliseconds by which the clock is ahead of it; 0: the clock is believed. */
  aheadMs(): number;
  /** Stores the proof for the next process, if it is due. */
  store(): void;
};

/** `monotonicNow`: milliseconds of a clock that nobody sets. */
export function createProvenTime(db: Db, now: () => number, monotonicNow: () => number): ProvenTime {
  const createdAt = now();
  let checkedAt = monotonicNow();
  /** The proven time when it was last checked, and for how long the clock has been ahead of it. */
  let proof: { provenAt: number; aheadForMs: number } | null = null;
  let storedAt: number | null = null;

  /** The stored proof. Without one, when the newest run was created: the database is new, or from a backup. */
  function readProof() {
    const stored = db.select({ provenAt: clock.provenAt, aheadForMs: clock.aheadForMs }).from(clock).get();
    if (stored) return stored;
    const newestRun = db
      .select({ createdAt: max(runs.createdAt) })
      .from(runs)
      .get();
    return { provenAt: newestRun?.createdAt ?? createdAt, aheadForMs: 0 };
  }

  function prove() {
    const last = proof ?? readProof();
    // Whole milliseconds, as they are stored. The rest counts next time.
    const elapsedMs = Math.floor(monotonicNow() - checkedAt);
    checkedAt += elapsedMs;
    const expectedAt = last.provenAt + elapsedMs;
    const aheadForMs = last.aheadForMs + elapsedMs;
    const isAhead = now() - expectedAt > toleranceMs && aheadForMs < trialMs;
    proof = isAhead ? { provenAt: expectedAt, aheadForMs } : { provenAt: now(), aheadForMs: 0 };
    return proof;
  }

  return {
    now: () => prove().provenAt,
    aheadMs() {
      const aheadMs = now() - prove().provenAt;
      return aheadMs > toleranceMs ? aheadMs : 0;
    },
    store() {
      const values = { ...prove(), id: 1 };
      if (storedAt !== null && Math.abs(values.provenAt - storedAt) < storeEveryMs) return;
      transaction(db, (tx) =>
        tx.insert(clock).values(values).onConflictDoUpdate({ target: clock.id, set: values }).run(),
      );
      storedAt = values.provenAt;
    },
  };
}
