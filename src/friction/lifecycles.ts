import { and, asc, eq, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { frictionLifecycles, frictionPoints } from "../db/tables/friction.ts";
import { evalRequests } from "../db/tables/runs.ts";
import { hasReached } from "../grading/exposure.ts";
import {
  currentStateOf,
  type Evaluation,
  emptyHistory,
  findEvaluation,
  type History,
  withRuns,
} from "../stats/lifecycle.ts";

import {
  agentKey,
  type CountedReport,
  detailsOf,
  findNewestSighting,
  type LifecycleRow,
  type PointRow,
  previewOf,
  siblingsOf,
  updateLifecycle,
  whereOfPreview,
} from "./lifecycle-rows.ts";

/** Called when a friction point of the live docs is new or regressed. */
export type AnnounceFriction = (
  tx: Tx,
  event: "friction.opened" | "friction.regressed",
  counted: CountedReport,
  point: PointRow,
) => void;

const pointsOf = statement((db) =>
  db
    .select()
    .from(frictionPoints)
    .where(eq(frictionPoints.reportId, sql.placeholder("report")))
    .orderBy(asc(frictionPoints.position)),
);

/** Adds the friction of a report to the lifecycles of its prompt, or subtracts it (`by` -1) when the report stops counting. */
export function updateLifecycles(
  ctx: Context,
  tx: Tx,
  counted: CountedReport,
  by: 1 | -1,
  announce: AnnounceFriction,
): void {
  const { report, run, exposure } = counted;
  const preview = previewOf(run.urlMap);
  const agent = agentKey(run);
  const points = pointsOf(ctx.db).all({ report: report.id });
  const fingerprints = new Set(points.map(({ fingerprint }) => fingerprint));
  const lifecycles = tx.select().from(frictionLifecycles).where(whereOfPreview(report, preview)).all();
  const lifecycleOf = new Map(lifecycles.map((row) => [row.fingerprint, row]));
  const evalRequest = tx.select().from(evalRequests).where(eq(evalRequests.id, run.evalRequestId)).get();
  const evaluation = {
    id: run.evalRequestId,
    at: evalRequest?.createdAt ?? run.createdAt,
    byModel: exposure?.byRules === false,
  };
  const hits: Evaluation = { ...evaluation, met: by, passed: 0 };
  const misses: Evaluation = { ...evaluation, met: 0, passed: by };
  let siblings: ReturnType<typeof siblingsOf> | undefined;

  /** The history of a friction point that is new or returns. Runs of the evaluation that passed its place without meeting it count too. */
  function startHistory({ fingerprint, preconditions }: PointRow, life: History): { life: History; passed: number } {
    siblings ??= siblingsOf(tx, counted);
    const passingSiblings = siblings.filter(
      (each) => !each.hasMet(fingerprint) && hasReached(each.exposure, preconditions),
    );
    const passed = passingSiblings.length;
    return { life: withRuns(life, { ...hits, passed }) ?? life, passed };
  }

  function addPoint(point: PointRow): void {
    const before = lifecycleOf.get(point.fingerprint);
    const { fingerprint, preconditions, lostPoints, lostSeconds, lostUsd } = point;
    const isCounted = before !== undefined && findEvaluation(before.life, evaluation.id) !== null;
    const startsAnew = before === undefined || (!isCounted && currentStateOf(before.life).state === "fixed");
    const current = startsAnew
      ? startHistory(point, before?.life ?? emptyHistory)
      : { life: withRuns(before.life, hits) ?? before.life, passed: 0 };
    const key = { orgId: report.orgId, promptId: report.promptId, preview, fingerprint };
    const newest = { ...detailsOf(point), lastSeenAt: report.createdAt };
    if (!before) {
      const { state, fixedAt } = currentStateOf(current.life);
      const lost = { lostPoints, lostSeconds, lostUsd };
      const counts = {
        met: 1,
        reached: 1 + current.passed,
        firstSeenAt: report.createdAt,
        metBy: [agent],
        preconditions,
      };
      const row = { ...key, ...newest, ...counts, ...lost, state: state ?? "new", fixedAt, life: current.life };
      tx.insert(frictionLifecycles).values(row).run();
      if (preview === "") announce(tx, "friction.opened", counted, point);
      return;
    }
    const isRegression = before.state !== "regressed" && currentStateOf(current.life).state === "regressed";
    if (isRegression && preview === "") announce(tx, "friction.regressed", counted, point);
    updateLifecycle(tx, key, {
      ...(report.createdAt >= before.lastSeenAt ? newest : {}),
      firstSeenAt: Math.min(before.firstSeenAt, report.createdAt),
      met: before.met + 1,
      reached: before.reached + 1 + current.passed,
      ...addLosses(before, point, 1),
      metBy: [...new Set([...before.metBy, agent])],
      preconditions,
      life: current.life,
    });
  }

  function removePoint(point: PointRow): void {
    const before = lifecycleOf.get(point.fingerprint);
    if (!before) return;
    const last = findNewestSighting(tx, before, report.id);
    if (!last) {
      tx.delete(frictionLifecycles)
        .where(and(whereOfPreview(report, preview), eq(frictionLifecycles.fingerprint, point.fingerprint)))
        .run();
      return;
    }
    const counts = { met: Math.max(1, before.met - 1), reached: Math.max(1, before.reached - 1) };
    const life = withRuns(before.life, hits) ?? before.life;
    updateLifecycle(tx, before, { ...last, ...counts, ...addLosses(before, point, -1), life });
  }

  for (const point of points) (by > 0 ? addPoint : removePoint)(point);
  for (const row of lifecycles) {
    const { fingerprint, metBy, preconditions, state, life } = row;
    if (!exposure || fingerprints.has(fingerprint) || !metBy.includes(agent)) continue;
    // Once it was fixed in an earlier evaluation, it isn't updated until it is met again.
    const isCounted = findEvaluation(life, evaluation.id) !== null;
    if ((state === "fixed" && !isCounted) || !hasReached(exposure, preconditions)) continue;
    const history = withRuns(life, misses);
    if (history) updateLifecycle(tx, row, { reached: Math.max(row.met, row.reached + by), life: history });
  }
}

type Losses = Pick<LifecycleRow, "lostPoints" | "lostSeconds" | "lostUsd">;

/** The sum of the known values; null if none is known. */
function addLosses(a: Losses, b: Losses, by: 1 | -1): Losses {
  const sum = (x: number | null, y: number | null) => (y === null ? x : Math.max(0, (x ?? 0) + by * y));
  return {
    lostPoints: sum(a.lostPoints, b.lostPoints),
    lostSeconds: sum(a.lostSeconds, b.lostSeconds),
    lostUsd: sum(a.lostUsd, b.lostUsd),
  };
}
