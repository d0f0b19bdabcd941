import { type Db, transaction } from "../db/open.ts";
import { knownWorkers } from "../db/tables/checks.ts";
import type { KnownWorker } from "../places/messages.ts";

/** The workers that the previous process of the service knew last. `now`: epoch milliseconds. */
export const listKnownWorkers = (db: Db, now: number): KnownWorker[] =>
  db
    .select()
    .from(knownWorkers)
    .all()
    .map(({ awayAt, ...worker }) => ({ ...worker, awayMs: awayAt === null ? null : Math.max(0, now - awayAt) }));

/** Stores the workers that the service knows. They replace the stored ones. */
export const storeKnownWorkers = (db: Db, now: number, workers: KnownWorker[]): void =>
  transaction(db, (tx) => {
    tx.delete(knownWorkers).run();
    for (const { awayMs, ...worker } of workers)
      tx.insert(knownWorkers)
        .values({ ...worker, awayAt: awayMs === null ? null : Math.round(now - awayMs) })
        .onConflictDoNothing()
        .run();
  });
