import { and, asc, desc, eq, gt } from "drizzle-orm";
import type { Db } from "../db/open.ts";
import { bound, literal, prepared } from "../db/prepared.ts";
import { frictionLifecycles, frictionPoints } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";

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
  metBy: frictionLifecycles.metBy,
};
export type LifecycleRow = { [K in keyof typeof columns]: (typeof frictionLifecycles.$inferSelect)[K] };

/** The prepared queries of friction lists. */
export function prepareFriction(db: Db) {
  const ofReport = prepared(
    db
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
          eq(frictionLifecycles.place, bound("place")),
          eq(frictionLifecycles.fingerprint, frictionPoints.fingerprint),
        ),
      )
      .where(eq(frictionPoints.reportId, bound("report")))
      .orderBy(asc(frictionPoints.position)),
  );

  const ofPrompt = and(eq(frictionLifecycles.orgId, bound("org")), eq(frictionLifecycles.promptId, bound("prompt")));
  return {
    ofReport,
    live: prepared(
      db
        .select(columns)
        .from(frictionLifecycles)
        .where(and(ofPrompt, eq(frictionLifecycles.place, ""))),
    ),
    previews: prepared(
      db
        .select(columns)
        .from(frictionLifecycles)
        .where(and(ofPrompt, gt(frictionLifecycles.place, "")))
        .orderBy(desc(frictionLifecycles.lastSeenAt))
        .limit(literal(maxPreviews)),
    ),
    one: prepared(
      db
        .select(columns)
        .from(frictionLifecycles)
        .where(and(ofPrompt, eq(frictionLifecycles.fingerprint, bound("fingerprint"))))
        .orderBy(desc(frictionLifecycles.lastSeenAt)),
    ),
    newest: prepared(
      db
        .select({ point: frictionPoints, slug: reports.slug })
        .from(frictionPoints)
        .innerJoin(reports, eq(reports.id, frictionPoints.reportId))
        .where(and(eq(frictionPoints.reportId, bound("report")), eq(frictionPoints.fingerprint, bound("fingerprint")))),
    ),
    life: prepared(
      db
        .select({ life: frictionLifecycles.life })
        .from(frictionLifecycles)
        .where(
          and(
            ofPrompt,
            eq(frictionLifecycles.place, bound("place")),
            eq(frictionLifecycles.fingerprint, bound("fingerprint")),
          ),
        ),
    ),
  };
}
