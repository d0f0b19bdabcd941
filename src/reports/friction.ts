import { and, asc, desc, eq, inArray, lte, ne, type SQL, sql } from "drizzle-orm";
import { frictionPoints, reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { severities } from "../grading/kinds.ts";
import type { FrictionPoint, SeenFrictionPoint } from "./schema.ts";

/** Reports of a prompt that are looked at to tell what is new, open, fixed or back. */
const historyLength = 100;

type ReportKey = Pick<typeof reports.$inferSelect, "id" | "orgId" | "promptId" | "runId">;
type Row = typeof frictionPoints.$inferSelect;

const toPoint = ({ orgId: _, reportId: __, promptId: ___, position: ____, ...friction }: Row) => friction;

/** A report, and what it may be told apart by: repeats are of one evaluation, and a preview is not the live docs. */
type Told = { id: string; evalRequestId: string; urlMap: Record<string, string> };

/** Reports of a prompt with the same urlMap, each with its evaluation, newest first. `isLive`: without a urlMap. */
type History = { isLive: boolean; evaluations: Map<string, string> };

/** The history that each report belongs to. */
function historiesOf(newestFirst: Told[]): Map<string, History> {
  const alike = Map.groupBy(newestFirst, ({ urlMap }) => JSON.stringify(Object.entries(urlMap).sort()));
  return new Map(
    [...alike].flatMap(([key, told]) => {
      const evaluations = new Map(told.map(({ id, evalRequestId }) => [id, evalRequestId]));
      const history = { isLive: key === "[]", evaluations };
      return told.map(({ id }) => [id, history] as const);
    }),
  );
}

/**
 * In how many reports of a history something was seen, and what became of it by its evaluations: seen in the last one only, in the last two,
 * again after a gap, or no longer.
 */
function standing(seenIn: string[], { evaluations }: History): Pick<FrictionPoint, "seenIn" | "state"> {
  const reports = seenIn.filter((id) => evaluations.has(id));
  const seen = new Set(reports.map((id) => evaluations.get(id)));
  const [last, before] = new Set(evaluations.values());
  const state = !seen.has(last) ? "fixed" : seen.size === 1 ? "new" : seen.has(before) ? "open" : "regressed";
  return { seenIn: { runs: reports.length, of: evaluations.size }, state };
}

export function createFriction({ db }: Pick<Deps, "db">) {
  const report = sql.placeholder("report");
  // Ids of runs follow time.
  const ofThePrompt = (which: SQL) =>
    and(eq(reports.orgId, sql.placeholder("org")), eq(reports.promptId, sql.placeholder("prompt")), which);
  const newest = (which: SQL) =>
    db
      .select({ id: reports.id, evalRequestId: runs.evalRequestId, urlMap: runs.urlMap })
      .from(reports)
      .innerJoin(runs, eq(runs.id, reports.runId))
      .where(ofThePrompt(which))
      .orderBy(desc(reports.runId))
      .limit(historyLength)
      .prepare();
  const upToRun = lte(reports.runId, sql.placeholder("run"));
  const own = db.select().from(frictionPoints).where(eq(frictionPoints.reportId, report));
  const queries = {
    upToRun: newest(upToRun),
    kept: newest(ne(reports.status, "archived")),
    own: own.orderBy(asc(frictionPoints.position)).prepare(),
    seen: db
      .select({ fingerprint: frictionPoints.fingerprint, reportId: frictionPoints.reportId })
      .from(frictionPoints)
      .where(
        and(
          inArray(
            frictionPoints.reportId,
            db
              .select({ id: reports.id })
              .from(reports)
              .where(ofThePrompt(upToRun))
              .orderBy(desc(reports.runId))
              .limit(historyLength),
          ),
          sql`${frictionPoints.fingerprint} in (select ${frictionPoints.fingerprint} from ${frictionPoints} where ${frictionPoints.reportId} = ${report})`,
        ),
      )
      .prepare(),
  };

  return {
    /** The friction points of a report, worst first, as they stood when it was made. */
    ofReport({ id, orgId, promptId, runId }: ReportKey): FrictionPoint[] {
      const values = { org: orgId, prompt: promptId, report: id, run: runId };
      const own = queries.own.all(values);
      if (own.length === 0) return [];
      const history = historiesOf(queries.upToRun.all(values)).get(id) as History;
      const seen = Map.groupBy(queries.seen.all(values), ({ fingerprint }) => fingerprint);
      return own.map((row) => {
        const seenIn = (seen.get(row.fingerprint) ?? []).map(({ reportId }) => reportId);
        return { ...toPoint(row), ...standing(seenIn, history) };
      });
    },

    /**
     * What stood in the way in the newest reports of a prompt: each thing once, worst and most frequent first, as the newest report without a
     * urlMap that shows it tells it; what was only seen through a urlMap as the newest of all.
     */
    ofPrompt(org: OrgId, promptId: string): SeenFrictionPoint[] {
      const histories = historiesOf(queries.kept.all({ org, prompt: promptId }));
      const rows = db
        .select({ row: frictionPoints, slug: reports.slug, runId: reports.runId })
        .from(frictionPoints)
        .innerJoin(reports, eq(reports.id, frictionPoints.reportId))
        .where(inArray(frictionPoints.reportId, [...histories.keys()]))
        .all()
        .map((each) => ({ ...each, history: histories.get(each.row.reportId) as History }))
        .sort((a, b) => Number(b.history.isLive) - Number(a.history.isLive) || (a.runId < b.runId ? 1 : -1));
      return [...Map.groupBy(rows, ({ row }) => row.fingerprint).values()]
        .map((seen) => {
          const [{ row, slug, history }] = seen as [(typeof seen)[number]];
          const seenIn = seen.map(({ row: { reportId } }) => reportId);
          return { ...toPoint(row), ...standing(seenIn, history), slug };
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
