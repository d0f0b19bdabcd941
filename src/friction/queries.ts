import { and, asc, desc, eq, getTableColumns, gt } from "drizzle-orm";
import { bound, literal, statement } from "../db/prepared.ts";
import { frictionLifecycles, frictionPoints } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";

/** How many of the newest friction points on previews are read per prompt. */
const maxPreviews = 1000;

const {
  orgId: _orgId,
  page: _page,
  preconditions: _preconditions,
  life: _life,
  ...columns
} = getTableColumns(frictionLifecycles);
export type ListedLifecycle = Omit<typeof frictionLifecycles.$inferSelect, "orgId" | "page" | "preconditions" | "life">;

const whereOfPrompt = and(eq(frictionLifecycles.orgId, bound("org")), eq(frictionLifecycles.promptId, bound("prompt")));

/** The friction points of a report with their lifecycles, worst first. */
export const pointsOfReport = statement((db) =>
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

/** The lifecycles of a prompt on the live docs. */
export const liveLifecycles = statement((db) =>
  db
    .select(columns)
    .from(frictionLifecycles)
    .where(and(whereOfPrompt, eq(frictionLifecycles.preview, ""))),
);

/** The newest lifecycles of a prompt on previews. */
export const previewLifecycles = statement((db) =>
  db
    .select(columns)
    .from(frictionLifecycles)
    .where(and(whereOfPrompt, gt(frictionLifecycles.preview, "")))
    .orderBy(desc(frictionLifecycles.lastSeenAt))
    .limit(literal(maxPreviews)),
);

/** The lifecycles of a friction point of a prompt, on the live docs and previews. */
export const lifecyclesOfPoint = statement((db) =>
  db
    .select(columns)
    .from(frictionLifecycles)
    .where(and(whereOfPrompt, eq(frictionLifecycles.fingerprint, bound("fingerprint"))))
    .orderBy(desc(frictionLifecycles.lastSeenAt)),
);

/** A friction point as a report shows it, with the slug of the report. */
export const pointInReport = statement((db) =>
  db
    .select({ point: frictionPoints, slug: reports.slug })
    .from(frictionPoints)
    .innerJoin(reports, eq(reports.id, frictionPoints.reportId))
    .where(and(eq(frictionPoints.reportId, bound("report")), eq(frictionPoints.fingerprint, bound("fingerprint")))),
);

/** The history of one lifecycle. */
export const historyOf = statement((db) =>
  db
    .select({ life: frictionLifecycles.life })
    .from(frictionLifecycles)
    .where(
      and(
        whereOfPrompt,
        eq(frictionLifecycles.preview, bound("preview")),
        eq(frictionLifecycles.fingerprint, bound("fingerprint")),
      ),
    ),
);
