import { and, asc, desc, eq, gt, sql } from "drizzle-orm";
import type { Db } from "../db/open.ts";
import { frictionLifecycles, frictionPoints, reports } from "../db/tables.ts";

/** Maximum number of friction points that were found only on previews, per prompt or provider; the newest. */
const maxPreviews = 1000;

const columns = {
  promptId: frictionLifecycles.promptId,
  place: frictionLifecycles.place,
  fingerprint: frictionLifecycles.fingerprint,
  reportId: frictionLifecycles.reportId,
  severity: frictionLifecycles.severity,
  state: frictionLifecycles.state,
  firstSeenAt: frictionLifecycles.firstSeenAt,
  lastSeenAt: frictionLifecycles.lastSeenAt,
  fixedAt: frictionLifecycles.fixedAt,
  met: frictionLifecycles.met,
  reached: frictionLifecycles.reached,
  lostPoints: frictionLifecycles.lostPoints,
  lostSeconds: frictionLifecycles.lostSeconds,
  lostUsd: frictionLifecycles.lostUsd,
};
export type LifecycleRow = { [K in keyof typeof columns]: (typeof frictionLifecycles.$inferSelect)[K] };

/** The prepared queries of friction lists. */
export function prepareFriction(db: Db) {
  const ofReport = db
    .select({
      point: frictionPoints,
      state: frictionLifecycles.state,
      met: frictionLifecycles.met,
      reached: frictionLifecycles.reached,
    })
    .from(frictionPoints)
    .leftJoin(
      frictionLifecycles,
      and(
        eq(frictionLifecycles.orgId, frictionPoints.orgId),
        eq(frictionLifecycles.promptId, frictionPoints.promptId),
        eq(frictionLifecycles.place, sql.placeholder("place")),
        eq(frictionLifecycles.fingerprint, frictionPoints.fingerprint),
      ),
    )
    .where(eq(frictionPoints.reportId, sql.placeholder("report")))
    .orderBy(asc(frictionPoints.position))
    .prepare();

  const ofPrompt = and(
    eq(frictionLifecycles.orgId, sql.placeholder("org")),
    eq(frictionLifecycles.promptId, sql.placeholder("prompt")),
  );
  return {
    ofReport,
    live: db
      .select(columns)
      .from(frictionLifecycles)
      .where(and(ofPrompt, eq(frictionLifecycles.place, "")))
      .prepare(),
    previews: db
      .select(columns)
      .from(frictionLifecycles)
      .where(and(ofPrompt, gt(frictionLifecycles.place, "")))
      .orderBy(desc(frictionLifecycles.lastSeenAt))
      .limit(maxPreviews)
      .prepare(),
    one: db
      .select(columns)
      .from(frictionLifecycles)
      .where(and(ofPrompt, eq(frictionLifecycles.fingerprint, sql.placeholder("fingerprint"))))
      .orderBy(desc(frictionLifecycles.lastSeenAt))
      .prepare(),
    newest: db
      .select({ point: frictionPoints, slug: reports.slug })
      .from(frictionPoints)
      .innerJoin(reports, eq(reports.id, frictionPoints.reportId))
      .where(
        and(
          eq(frictionPoints.reportId, sql.placeholder("report")),
          eq(frictionPoints.fingerprint, sql.placeholder("fingerprint")),
        ),
      )
      .prepare(),
    life: db
      .select({ life: frictionLifecycles.life })
      .from(frictionLifecycles)
      .where(
        and(
          ofPrompt,
          eq(frictionLifecycles.place, sql.placeholder("place")),
          eq(frictionLifecycles.fingerprint, sql.placeholder("fingerprint")),
        ),
      )
      .prepare(),
  };
}
