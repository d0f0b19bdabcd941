import { and, asc, desc, eq, inArray, lte, ne } from "drizzle-orm";
import { frictionPoints, reports } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { severities } from "../grading/score.ts";
import type { FrictionPoint, SeenFrictionPoint } from "./schema.ts";

/** Reports of a prompt that are looked at to tell what is new, open, fixed or back. */
const historyLength = 100;

type Row = typeof frictionPoints.$inferSelect;

const toPoint = ({ orgId: _, reportId: __, promptId: ___, position: ____, ...friction }: Row) => friction;

/**
 * What became of something that was seen in the reports at these places of a history (0 the oldest) of `length`: in the last one only, in the
 * last two, again after a gap, or no longer.
 */
function stateOf(places: number[], length: number): FrictionPoint["state"] {
  const last = length - 1;
  if (!places.includes(last)) return "fixed";
  if (places.length === 1) return "new";
  return places.includes(last - 1) ? "open" : "regressed";
}

export function createFriction({ db }: Pick<Deps, "db">) {
  /** The newest reports of a prompt, oldest first; `upTo`: not beyond this run. Ids of runs follow time. */
  function historyOf(org: string, promptId: string, upTo?: string) {
    return db
      .select({ id: reports.id, slug: reports.slug })
      .from(reports)
      .where(
        and(
          eq(reports.orgId, org),
          eq(reports.promptId, promptId),
          upTo === undefined ? ne(reports.status, "archived") : lte(reports.runId, upTo),
        ),
      )
      .orderBy(desc(reports.runId))
      .limit(historyLength)
      .all()
      .reverse();
  }

  const ids = (history: { id: string }[]) => history.map(({ id }) => id);

  return {
    /** The friction points of a report, worst first, as they stood when it was made. */
    ofReport({ id, orgId, promptId, runId }: typeof reports.$inferSelect): FrictionPoint[] {
      const own = db
        .select()
        .from(frictionPoints)
        .where(and(eq(frictionPoints.orgId, orgId), eq(frictionPoints.reportId, id)))
        .orderBy(asc(frictionPoints.position))
        .all();
      if (own.length === 0) return [];
      const history = historyOf(orgId, promptId, runId);
      const fingerprints = own.map(({ fingerprint }) => fingerprint);
      const seen = db
        .select({ fingerprint: frictionPoints.fingerprint, reportId: frictionPoints.reportId })
        .from(frictionPoints)
        .where(and(inArray(frictionPoints.reportId, ids(history)), inArray(frictionPoints.fingerprint, fingerprints)))
        .all();
      const order = new Map(history.map((report, i) => [report.id, i]));
      const places = Map.groupBy(seen, ({ fingerprint }) => fingerprint);
      return own.map((row) => {
        const at = (places.get(row.fingerprint) ?? []).map(({ reportId }) => order.get(reportId) as number);
        const seenIn = { runs: at.length, of: history.length };
        return { ...toPoint(row), seenIn, state: stateOf(at, history.length) };
      });
    },

    /** What stood in the way in the newest reports of a prompt: each thing once, as its newest report tells it, worst and most frequent first. */
    ofPrompt(org: OrgId, promptId: string): SeenFrictionPoint[] {
      const history = historyOf(org, promptId);
      const order = new Map(history.map((report, i) => [report.id, i]));
      const rows = db
        .select()
        .from(frictionPoints)
        .where(inArray(frictionPoints.reportId, ids(history)))
        .all()
        .map((row) => ({ row, place: order.get(row.reportId) as number }))
        .sort((a, b) => b.place - a.place);
      return [...Map.groupBy(rows, ({ row }) => row.fingerprint).values()]
        .map((seen) => {
          const [{ row, place }] = seen as [(typeof seen)[number]];
          const places = seen.map((each) => each.place);
          return {
            ...toPoint(row),
            seenIn: { runs: places.length, of: history.length },
            state: stateOf(places, history.length),
            slug: history[place]?.slug ?? "",
          };
        })
        .sort(
          (a, b) =>
            severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
            b.seenIn.runs - a.seenIn.runs ||
            (a.fingerprint < b.fingerprint ? -1 : 1),
        );
    },
  };
}
