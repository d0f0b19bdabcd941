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
  type Counted,
  detailsOf,
  type LifecycleRow,
  lastOf,
  ofPreview,
  type PointRow,
  previewOf,
  siblingsOf,
  write,
} from "./lifecycle-rows.ts";

/** Called when a friction point of the live docs is new or regressed. */
export type AnnounceFriction = (
  tx: Tx,
  what: "friction.opened" | "friction.regressed",
  counted: Counted,
  point: PointRow,
) => void;

const pointsOf = statement((db) =>
  db
    .select()
    .from(frictionPoints)
    .where(eq(frictionPoints.reportId, sql.placeholder("report")))
    .orderBy(asc(frictionPoints.position)),
);

export function countLifecycles(ctx: Context, tx: Tx, counted: Counted, by: 1 | -1, announce: AnnounceFriction): void {
  const { report, run, exposure } = counted;
  const preview = previewOf(run.urlMap);
  const agent = agentKey(run);
  const points = pointsOf(ctx.db).all({ report: report.id });
  const met = new Set(points.map(({ fingerprint }) => fingerprint));
  const lifecycles = tx.select().from(frictionLifecycles).where(ofPreview(report, preview)).all();
  const lifecycleOf = new Map(lifecycles.map((row) => [row.fingerprint, row]));
  const evalRequest = tx.select().from(evalRequests).where(eq(evalRequests.id, run.evalRequestId)).get();
  const evaluation = {
    id: run.evalRequestId,
    at: evalRequest?.createdAt ?? run.createdAt,
    byModel: exposure?.byRules === false,
  };
  const meeting: Evaluation = { ...evaluation, met: by, passed: 0 };
  const passing: Evaluation = { ...evaluation, met: 0, passed: by };
  let siblings: ReturnType<typeof siblingsOf> | undefined;

  /** Adds the runs of the evaluation that missed it before it was first met. */
  function startLife({ fingerprint, grounds }: PointRow, life: History): { life: History; passed: number } {
    siblings ??= siblingsOf(tx, counted);
    const passingSiblings = siblings.filter((each) => !each.hasMet(fingerprint) && hasReached(each.exposure, grounds));
    const passed = passingSiblings.length;
    return { life: withRuns(life, { ...meeting, passed }) ?? life, passed };
  }

  function add(point: PointRow): void {
    const before = lifecycleOf.get(point.fingerprint);
    const { fingerprint, grounds, lostPoints, lostSeconds, lostUsd } = point;
    const isKnown = before !== undefined && findEvaluation(before.life, evaluation.id) !== null;
    const isAsleep = before === undefined || (!isKnown && currentStateOf(before.life).state === "fixed");
    const current = isAsleep
      ? startLife(point, before?.life ?? emptyHistory)
      : { life: withRuns(before.life, meeting) ?? before.life, passed: 0 };
    const key = { orgId: report.orgId, promptId: report.promptId, preview, fingerprint };
    const newest = { ...detailsOf(point), lastSeenAt: report.createdAt };
    if (!before) {
      const { state, fixedAt } = currentStateOf(current.life);
      const lost = { lostPoints, lostSeconds, lostUsd };
      const counts = { met: 1, reached: 1 + current.passed, firstSeenAt: report.createdAt, metBy: [agent], grounds };
      const row = { ...key, ...newest, ...counts, ...lost, state: state ?? "new", fixedAt, life: current.life };
      tx.insert(frictionLifecycles).values(row).run();
      if (preview === "") announce(tx, "friction.opened", counted, point);
      return;
    }
    const isBack = before.state !== "regressed" && currentStateOf(current.life).state === "regressed";
    if (isBack && preview === "") announce(tx, "friction.regressed", counted, point);
    write(tx, key, {
      ...(report.createdAt >= before.lastSeenAt ? newest : {}),
      firstSeenAt: Math.min(before.firstSeenAt, report.createdAt),
      met: before.met + 1,
      reached: before.reached + 1 + current.passed,
      ...plus(before, point, 1),
      metBy: [...new Set([...before.metBy, agent])],
      grounds,
      life: current.life,
    });
  }

  function remove(point: PointRow): void {
    const before = lifecycleOf.get(point.fingerprint);
    if (!before) return;
    const last = lastOf(tx, before, report.id);
    if (!last) {
      tx.delete(frictionLifecycles)
        .where(and(ofPreview(report, preview), eq(frictionLifecycles.fingerprint, point.fingerprint)))
        .run();
      return;
    }
    const counts = { met: Math.max(1, before.met - 1), reached: Math.max(1, before.reached - 1) };
    const life = withRuns(before.life, meeting) ?? before.life;
    write(tx, before, { ...last, ...counts, ...plus(before, point, -1), life });
  }

  for (const point of points) (by > 0 ? add : remove)(point);
  for (const row of lifecycles) {
    const { fingerprint, metBy, grounds, state, life } = row;
    if (!exposure || met.has(fingerprint) || !metBy.includes(agent)) continue;
    // Once it was fixed in an earlier evaluation, it isn't updated until it is met again.
    const isRemembered = findEvaluation(life, evaluation.id) !== null;
    if ((state === "fixed" && !isRemembered) || !hasReached(exposure, grounds)) continue;
    const changed = withRuns(life, passing);
    if (changed) write(tx, row, { reached: Math.max(row.met, row.reached + by), life: changed });
  }
}

type Lost = Pick<LifecycleRow, "lostPoints" | "lostSeconds" | "lostUsd">;

/** The sum of the known values; null if none is known. */
function plus(a: Lost, b: Lost, by: 1 | -1): Lost {
  const sum = (x: number | null, y: number | null) => (y === null ? x : Math.max(0, (x ?? 0) + by * y));
  return {
    lostPoints: sum(a.lostPoints, b.lostPoints),
    lostSeconds: sum(a.lostSeconds, b.lostSeconds),
    lostUsd: sum(a.lostUsd, b.lostUsd),
  };
}
