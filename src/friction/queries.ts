import { and, asc, desc, eq, getTableColumns, gt } from "drizzle-orm";
import type { Db } from "../db/open.ts";
import { bound, literal, prepared } from "../db/prepared.ts";
import { frictionLifecycles, frictionPoints } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";

/** Maximum number of friction points that were found only on previews, per prompt or provider; the newest. */
const maxPreviews = 1000;

const { orgId: _, page: __, grounds: ___, life: ____, ...columns } = getTableColumns(frictionLifecycles);
export type ListedLifecycle = Omit<typeof frictionLifecycles.$inferSelect, "orgId" | "page" | "grounds" | "life">;

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
          eq(frictionLifecycles.preview, bound("preview")),
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
        .where(and(ofPrompt, eq(frictionLifecycles.preview, ""))),
    ),
    previews: prepared(
      db
        .select(columns)
        .from(frictionLifecycles)
        .where(and(ofPrompt, gt(frictionLifecycles.preview, "")))
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
            eq(frictionLifecycles.preview, bound("preview")),
            eq(frictionLifecycles.fingerprint, bound("fingerprint")),
          ),
        ),
    ),
  };
}
