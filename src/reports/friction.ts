import { and, asc, desc, eq, inArray, lte, ne, type SQL, sql } from "drizzle-orm";
import { frictionPoints, reports } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { severities } from "../grading/kinds.ts";
import type { FrictionPoint, SeenFrictionPoint } from "./schema.ts";

/** Reports of a prompt that are looked at to tell what is new, open, fixed or back. */
const historyLength = 100;

type ReportKey = Pick<typeof reports.$inferSelect, "id" | "orgId" | "promptId" | "runId">;
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
  const report = sql.placeholder("report");
  // Ids of runs follow time.
  const newest = (which: SQL) =>
    db
      .select({ id: reports.id })
      .from(reports)
      .where(and(eq(reports.orgId, sql.placeholder("org")), eq(reports.promptId, sql.placeholder("prompt")), which))
      .orderBy(desc(reports.runId))
      .limit(historyLength);
  const upToRun = lte(reports.runId, sql.placeholder("run"));
  const own = db.select().from(frictionPoints).where(eq(frictionPoints.reportId, report));
  const queries = {
    upToRun: newest(upToRun).prepare(),
    kept: newest(ne(reports.status, "archived")).prepare(),
    own: own.orderBy(asc(frictionPoints.position)).prepare(),
    seen: db
      .select({ fingerprint: frictionPoints.fingerprint, reportId: frictionPoints.reportId })
      .from(frictionPoints)
      .where(
        and(
          inArray(frictionPoints.reportId, newest(upToRun)),
          sql`${frictionPoints.fingerprint} in (select ${frictionPoints.fingerprint} from ${frictionPoints} where ${frictionPoints.reportId} = ${report})`,
        ),
      )
      .prepare(),
  };

  /** The place of each report in a history, 0 the oldest. */
  const placesOf = (newestFirst: { id: string }[]) =>
    new Map(newestFirst.map(({ id }, i) => [id, newestFirst.length - 1 - i]));

  return {
    /** The friction points of a report, worst first, as they stood when it was made. */
    ofReport({ id, orgId, promptId, runId }: ReportKey): FrictionPoint[] {
      const values = { org: orgId, prompt: promptId, report: id, run: runId };
      const own = queries.own.all(values);
      if (own.length === 0) return [];
      const order = placesOf(queries.upToRun.all(values));
      const seen = Map.groupBy(queries.seen.all(values), ({ fingerprint }) => fingerprint);
      return own.map((row) => {
        const at = (seen.get(row.fingerprint) ?? []).map(({ reportId }) => order.get(reportId) as number);
        return { ...toPoint(row), seenIn: { runs: at.length, of: order.size }, state: stateOf(at, order.size) };
      });
    },

    /** What stood in the way in the newest reports of a prompt: each thing once, as its newest report tells it, worst and most frequent first. */
    ofPrompt(org: OrgId, promptId: string): SeenFrictionPoint[] {
      const order = placesOf(queries.kept.all({ org, prompt: promptId }));
      const rows = db
        .select({ row: frictionPoints, slug: reports.slug })
        .from(frictionPoints)
        .innerJoin(reports, eq(reports.id, frictionPoints.reportId))
        .where(inArray(frictionPoints.reportId, [...order.keys()]))
        .all()
        .map(({ row, slug }) => ({ row, slug, place: order.get(row.reportId) as number }))
        .sort((a, b) => b.place - a.place);
      return [...Map.groupBy(rows, ({ row }) => row.fingerprint).values()]
        .map((seen) => {
          const [{ row, slug }] = seen as [(typeof seen)[number]];
          const places = seen.map(({ place }) => place);
          const seenIn = { runs: places.length, of: order.size };
          return { ...toPoint(row), seenIn, state: stateOf(places, order.size), slug };
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
