import { eq } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { reaches, reports, runs } from "../db/tables.ts";
import type { Reach } from "../grading/reach.ts";
import { createPageCounts } from "./docsmap.ts";
import { type Counted, createLives } from "./lives.ts";
import { createScoreCounts } from "./scoredays.ts";

/** Notes what a session came to, in the place of what was noted before. */
export function writeReach(t: Tx, owner: { orgId: string; reportId: string }, { listed: _, ...reach }: Reach): void {
  t.insert(reaches)
    .values({ ...owner, ...reach })
    .onConflictDoUpdate({ target: reaches.reportId, set: reach })
    .run();
}

/** What is kept over many reports, so that nobody has to read them all: called in the transaction in which a published one comes or goes. */
export function createCounts({ db }: { db: Db }) {
  const counters: ((t: Tx, counted: Counted, by: 1 | -1) => void)[] = [
    createLives({ db }),
    createPageCounts({ db }),
    createScoreCounts({ db }),
  ];

  /** A published report begins (`by` 1) or ceases (-1) to count. */
  return function count(t: Tx, reportId: string, by: 1 | -1): void {
    const counted = t
      .select({ report: reports, run: runs, reach: reaches })
      .from(reports)
      .innerJoin(runs, eq(runs.id, reports.runId))
      .leftJoin(reaches, eq(reaches.reportId, reports.id))
      .where(eq(reports.id, reportId))
      .get();
    if (counted) for (const counter of counters) counter(t, counted, by);
  };
}
