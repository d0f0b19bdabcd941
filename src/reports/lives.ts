import { and, asc, desc, eq, inArray, ne, sql } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { evalRequests, frictionLives, frictionPoints, reaches, reports, runs } from "../db/tables.ts";
import { type Evaluation, findEvaluation, type Life, standingOf, unmet, withRuns } from "../grading/life.ts";
import { cameBy } from "../grading/reach.ts";
import { samePage } from "../grading/words.ts";

type LifeRow = typeof frictionLives.$inferSelect;
type PointRow = typeof frictionPoints.$inferSelect;

/** A report that begins or ceases to count, with all that is counted of it. */
export type Counted = {
  report: typeof reports.$inferSelect;
  run: typeof runs.$inferSelect;
  reach: typeof reaches.$inferSelect | null;
};

/** Empty for the live docs; a preview has a life of its own. */
export const placeOf = (urlMap: Record<string, string>): string =>
  Object.keys(urlMap).length === 0
    ? ""
    : new Bun.CryptoHasher("sha256")
        .update(JSON.stringify(Object.entries(urlMap).sort()))
        .digest("hex")
        .slice(0, 16);

/** Runs of another agent or model say nothing about what this one would have met. */
const cellOf = ({ agent, model }: Counted["run"]) => `${agent} ${model ?? ""}`;

/** Keeps the lives of friction: called in the transaction in which a published report comes or goes. */
export function createLives({ db }: { db: Db }) {
  const ofPlace = (report: Counted["report"], place: string) =>
    and(
      eq(frictionLives.orgId, report.orgId),
      eq(frictionLives.promptId, report.promptId),
      eq(frictionLives.place, place),
    );

  const pointsOf = db
    .select()
    .from(frictionPoints)
    .where(eq(frictionPoints.reportId, sql.placeholder("report")))
    .orderBy(asc(frictionPoints.position))
    .prepare();

  /** Other published reports of an evaluation, by the same agent and model, with the friction that each has. */
  function siblingsOf(t: Tx, { report, run }: Counted) {
    const rows = t
      .select({ reportId: reports.id, run: runs, reach: reaches })
      .from(runs)
      .innerJoin(reports, eq(reports.runId, runs.id))
      .innerJoin(reaches, eq(reaches.reportId, reports.id))
      .where(
        and(
          eq(runs.orgId, run.orgId),
          eq(runs.evalRequestId, run.evalRequestId),
          ne(reports.id, report.id),
          eq(reports.status, "published"),
        ),
      )
      .all()
      .filter((sibling) => cellOf(sibling.run) === cellOf(run));
    const points = t
      .select({ reportId: frictionPoints.reportId, fingerprint: frictionPoints.fingerprint })
      .from(frictionPoints)
      .where(
        inArray(
          frictionPoints.reportId,
          rows.map(({ reportId }) => reportId),
        ),
      )
      .all();
    const met = new Set(points.map(({ reportId, fingerprint }) => `${reportId} ${fingerprint}`));
    return rows.map(({ reportId, reach }) => ({
      reach,
      hasMet: (fingerprint: string) => met.has(`${reportId} ${fingerprint}`),
    }));
  }

  function write(t: Tx, key: Pick<LifeRow, "orgId" | "promptId" | "place" | "fingerprint">, row: Partial<LifeRow>) {
    const { state, fixedAt } = standingOf(row.life as Life);
    t.update(frictionLives)
      .set({ ...row, state: state ?? "new", fixedAt })
      .where(
        and(
          eq(frictionLives.orgId, key.orgId),
          eq(frictionLives.promptId, key.promptId),
          eq(frictionLives.place, key.place),
          eq(frictionLives.fingerprint, key.fingerprint),
        ),
      )
      .run();
  }

  /** The published report beside this one that tells a friction last, and when it was seen first and last; null if there is none. */
  function lastOf(t: Tx, { orgId, promptId, place, fingerprint }: LifeRow, reportId: string) {
    const seen = t
      .select({ id: reports.id, at: reports.createdAt, urlMap: runs.urlMap, point: frictionPoints })
      .from(frictionPoints)
      .innerJoin(reports, eq(reports.id, frictionPoints.reportId))
      .innerJoin(runs, eq(runs.id, reports.runId))
      .where(
        and(
          eq(frictionPoints.orgId, orgId),
          eq(frictionPoints.promptId, promptId),
          eq(frictionPoints.fingerprint, fingerprint),
          eq(reports.status, "published"),
          ne(reports.id, reportId),
        ),
      )
      .orderBy(desc(reports.createdAt), desc(reports.id))
      .all()
      .filter(({ urlMap }) => placeOf(urlMap) === place);
    const [last] = seen;
    if (!last) return null;
    const firstSeenAt = seen.at(-1)?.at ?? last.at;
    return { ...tellingOf(last.point), lastSeenAt: last.at, firstSeenAt };
  }

  /** A report begins (`by` 1) or ceases (-1) to count. Its status is written already. */
  return function count(t: Tx, counted: Counted, by: 1 | -1): void {
    const { report, run, reach } = counted;
    const place = placeOf(run.urlMap);
    const cell = cellOf(run);
    const points = pointsOf.all({ report: report.id });
    const met = new Set(points.map(({ fingerprint }) => fingerprint));
    const lives = t.select().from(frictionLives).where(ofPlace(report, place)).all();
    const known = new Map(lives.map((row) => [row.fingerprint, row]));
    const asked = t.select().from(evalRequests).where(eq(evalRequests.id, run.evalRequestId)).get();
    const evaluation = {
      id: run.evalRequestId,
      at: asked?.createdAt ?? run.createdAt,
      byModel: reach?.byRules === false,
    };
    const meeting: Evaluation = { ...evaluation, met: by, passed: 0 };
    const passing: Evaluation = { ...evaluation, met: 0, passed: by };
    let siblings: ReturnType<typeof siblingsOf> | undefined;

    /** What other runs of the evaluation, counted before, had missed when nobody knew of it. */
    function begun({ fingerprint, grounds }: PointRow, life: Life): { life: Life; passed: number } {
      siblings ??= siblingsOf(t, counted);
      const missed = siblings.filter(
        (each) => grounds !== null && !each.hasMet(fingerprint) && cameBy(each.reach, grounds),
      );
      const passed = missed.length;
      return { life: withRuns(life, { ...meeting, passed }) ?? life, passed };
    }

    function add(point: PointRow): void {
      const before = known.get(point.fingerprint);
      const { fingerprint, grounds, lostPoints, lostSeconds, lostUsd } = point;
      const isKnown = before !== undefined && findEvaluation(before.life, evaluation.id) !== null;
      const isAsleep = before === undefined || (!isKnown && standingOf(before.life).state === "fixed");
      const told = isAsleep
        ? begun(point, before?.life ?? unmet)
        : { life: withRuns(before.life, meeting) ?? before.life, passed: 0 };
      const key = { orgId: report.orgId, promptId: report.promptId, place, fingerprint };
      const newest = { ...tellingOf(point), lastSeenAt: report.createdAt };
      if (!before) {
        const { state, fixedAt } = standingOf(told.life);
        const lost = { lostPoints, lostSeconds, lostUsd };
        const counts = { met: 1, reached: 1 + told.passed, firstSeenAt: report.createdAt, metBy: [cell], grounds };
        const row = { ...key, ...newest, ...counts, ...lost, state: state ?? "new", fixedAt, life: told.life };
        t.insert(frictionLives).values(row).run();
        return;
      }
      write(t, key, {
        ...(report.createdAt >= before.lastSeenAt ? newest : {}),
        firstSeenAt: Math.min(before.firstSeenAt, report.createdAt),
        met: before.met + 1,
        reached: before.reached + 1 + told.passed,
        ...plus(before, point, 1),
        metBy: [...new Set([...before.metBy, cell])],
        grounds: grounds ?? before.grounds,
        life: told.life,
      });
    }

    function remove(point: PointRow): void {
      const before = known.get(point.fingerprint);
      if (!before) return;
      const last = lastOf(t, before, report.id);
      if (!last) {
        t.delete(frictionLives)
          .where(and(ofPlace(report, place), eq(frictionLives.fingerprint, point.fingerprint)))
          .run();
        return;
      }
      const counts = { met: Math.max(1, before.met - 1), reached: Math.max(1, before.reached - 1) };
      const life = withRuns(before.life, meeting) ?? before.life;
      write(t, before, { ...last, ...counts, ...plus(before, point, -1), life });
    }

    for (const point of points) (by > 0 ? add : remove)(point);
    for (const row of lives) {
      const { fingerprint, metBy, grounds, state, life } = row;
      if (!reach || grounds === null || met.has(fingerprint) || !metBy.includes(cell)) continue;
      // What was fixed in an earlier evaluation is not watched until it comes back.
      const isRemembered = findEvaluation(life, evaluation.id) !== null;
      if ((state === "fixed" && !isRemembered) || !cameBy(reach, grounds)) continue;
      const changed = withRuns(life, passing);
      if (changed) write(t, row, { reached: Math.max(row.met, row.reached + by), life: changed });
    }
  };
}

/** What is kept of the friction point that tells a friction last. */
const tellingOf = ({ reportId, severity, url }: PointRow) => ({
  reportId,
  severity,
  page: url === null ? null : samePage(url),
});

type Lost = Pick<LifeRow, "lostPoints" | "lostSeconds" | "lostUsd">;

/** Sums of what is known; null while nothing is. */
function plus(a: Lost, b: Lost, by: 1 | -1): Lost {
  const sum = (x: number | null, y: number | null) => (y === null ? x : Math.max(0, (x ?? 0) + by * y));
  return {
    lostPoints: sum(a.lostPoints, b.lostPoints),
    lostSeconds: sum(a.lostSeconds, b.lostSeconds),
    lostUsd: sum(a.lostUsd, b.lostUsd),
  };
}
