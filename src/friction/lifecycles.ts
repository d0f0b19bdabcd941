import { and, eq, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { frictionLifecycles } from "../db/tables/friction.ts";
import { hasReached } from "../grading/exposure.ts";
import { currentStateOf, type History, historyOf, replaceEvaluations } from "../stats/lifecycle.ts";
import {
  agentKey,
  type CountedReport,
  detailsOf,
  type LifecycleKey,
  type LifecycleRow,
  listCountedRuns,
  listSightings,
  type PointRow,
  previewOf,
  toEvaluations,
} from "./lifecycle-rows.ts";

/** Called when a friction point of the live docs is new or regressed. */
type AnnounceFriction = (
  tx: Tx,
  event: "friction.opened" | "friction.regressed",
  counted: CountedReport,
  point: PointRow,
) => void;

/** What is counted of a report before and after a change, with one of its friction points. null: the report isn't published. */
type Change = {
  before: CountedReport | null;
  after: CountedReport | null;
  pointBefore: PointRow | undefined;
  pointAfter: PointRow | undefined;
};

/** What is known of a friction point from the reports that contain it. */
type Sightings = Omit<LifecycleRow, keyof LifecycleKey | "state" | "fixedAt" | "reached" | "life">;

const ofPrompt = and(
  eq(frictionLifecycles.orgId, sql.placeholder("orgId")),
  eq(frictionLifecycles.promptId, sql.placeholder("promptId")),
  eq(frictionLifecycles.preview, sql.placeholder("preview")),
);

const lifecyclesOfPrompt = statement((db) => db.select().from(frictionLifecycles).where(ofPrompt));

const deleteLifecycle = statement((db) =>
  db
    .delete(frictionLifecycles)
    .where(and(ofPrompt, eq(frictionLifecycles.fingerprint, sql.placeholder("fingerprint")))),
);

/**
 * Brings the lifecycles of a prompt up to date when a report starts or stops counting, or shows another grading. Each history is computed from the
 * stored rows of the report's evaluation and of later ones, so it doesn't depend on the order in which reports arrive. `before` and `after`: what was
 * counted of the report before the change, and what is counted now.
 */
export function updateLifecycles(
  ctx: Context,
  tx: Tx,
  before: CountedReport | null,
  after: CountedReport | null,
  announce: AnnounceFriction,
): void {
  const counted = after ?? before;
  if (!counted) return;
  const { orgId, promptId, evalRequestId } = counted.run;
  const preview = previewOf(counted.run);
  const storedRows = lifecyclesOfPrompt(ctx.db).all({ orgId, promptId, preview });
  const rows = new Map(storedRows.map((row) => [row.fingerprint, row]));
  const pointsBefore = new Map(before?.points.map((point) => [point.fingerprint, point]));
  const pointsAfter = new Map(after?.points.map((point) => [point.fingerprint, point]));
  const runsByFirstId = new Map<string, ReturnType<typeof listCountedRuns>>();
  function runsFrom(fromId: string) {
    const runs = runsByFirstId.get(fromId) ?? listCountedRuns(ctx, counted!.run, preview, fromId);
    runsByFirstId.set(fromId, runs);
    return runs;
  }

  for (const fingerprint of new Set([...pointsAfter.keys(), ...pointsBefore.keys(), ...rows.keys()])) {
    const row = rows.get(fingerprint);
    const [pointBefore, pointAfter] = [pointsBefore.get(fingerprint), pointsAfter.get(fingerprint)];
    const change = { before, after, pointBefore, pointAfter };
    if (row && !concerns(change, row)) continue;
    const key = { orgId, promptId, preview, fingerprint };
    const sightings = sightingsAfter(ctx, change, key, row);
    if (sightings === null) {
      deleteLifecycle(ctx.db).run(key);
      continue;
    }
    const evaluationsFrom = (id: string) => toEvaluations(runsFrom(id), { ...sightings, fingerprint });
    /**
     * The stored history with this change. null: it has to be computed as a whole, because the point's preconditions changed and other runs meet it
     * now.
     */
    const updatedLife = (): History | null => {
      if (!row || !Bun.deepEquals(row.preconditions, sightings.preconditions)) return null;
      if (meetsAsBefore(change)) return row.life;
      return replaceEvaluations(row.life, evalRequestId, evaluationsFrom(evalRequestId));
    };
    const life = updatedLife() ?? historyOf(evaluationsFrom(""));
    const { state, fixedAt, reached } = currentStateOf(life);
    storeLifecycle(tx, { ...key, ...sightings, state: state ?? "new", fixedAt, reached, life });
    const isNewSighting = pointAfter !== undefined && pointBefore === undefined;
    if (!after || !isNewSighting || preview !== "") continue;
    if (!row) announce(tx, "friction.opened", after, pointAfter);
    else if (row.state !== "regressed" && state === "regressed") announce(tx, "friction.regressed", after, pointAfter);
  }
}

function storeLifecycle(tx: Tx, row: LifecycleRow): void {
  const { orgId, promptId, preview, fingerprint } = frictionLifecycles;
  tx.insert(frictionLifecycles)
    .values(row)
    .onConflictDoUpdate({ target: [orgId, promptId, preview, fingerprint], set: row })
    .run();
}

/** Whether a report has met a friction point both before and after a change, in a session of the same kind. Then its evaluation stays the same. */
const meetsAsBefore = ({ before, after, pointBefore, pointAfter }: Change): boolean =>
  pointBefore !== undefined && pointAfter !== undefined && before?.exposure?.byRules === after?.exposure?.byRules;

/** Whether a change of a report can change a lifecycle. */
function concerns(change: Change, row: LifecycleRow): boolean {
  const { before, after, pointBefore, pointAfter } = change;
  if (pointBefore && pointAfter)
    return !meetsAsBefore(change) || !Bun.deepEquals(countedFieldsOf(pointBefore), countedFieldsOf(pointAfter));
  if (pointBefore || pointAfter) return true;
  return missOf(before, row) !== missOf(after, row);
}

/** How a report without a friction point counts for it: as a miss by rules or by a model; null: not at all. */
function missOf(counted: CountedReport | null, row: LifecycleRow): "rules" | "model" | null {
  if (!counted?.exposure) return null;
  const { run, exposure } = counted;
  const agentMetSince = row.metBy[agentKey(run)];
  if (agentMetSince === undefined || agentMetSince > run.evalRequestId) return null;
  // The last evaluation that counts is the one that fixed the point. After it, an evaluation counts only if it meets the point again.
  const isAfterFix = row.state === "fixed" && run.evalRequestId > (row.life.evaluations.at(-1)?.id ?? "");
  if (isAfterFix || !hasReached(exposure, row.preconditions)) return null;
  return exposure.byRules ? "rules" : "model";
}

/** What a lifecycle shows or counts of a friction point. */
const countedFieldsOf = ({ severity, url, preconditions, lostPoints, lostSeconds, lostUsd }: PointRow) => ({
  severity,
  url,
  preconditions,
  lostPoints,
  lostSeconds,
  lostUsd,
});

/** The sightings of a friction point after a change; null if no published report contains it. */
function sightingsAfter(
  ctx: Context,
  { after, pointBefore, pointAfter }: Change,
  key: LifecycleKey,
  row?: LifecycleRow,
): Sightings | null {
  if (row && !pointBefore && !pointAfter) return row;
  // Only a further sighting can be counted without reading the others again.
  if (row && after && pointAfter && !pointBefore)
    return addSighting(row, { at: after.report.createdAt, run: after.run, point: pointAfter });
  return listSightings(ctx, key).reduce<Sightings | null>(addSighting, null);
}

type Sighting = ReturnType<typeof listSightings>[number];

const noSightings = { met: 0, metBy: {}, lostPoints: null, lostSeconds: null, lostUsd: null };

function addSighting(before: Sightings | null, { at, run, point }: Sighting): Sightings {
  const newest = { ...detailsOf(point), lastSeenAt: at, preconditions: point.preconditions };
  const sightings: Sightings = before ?? { ...newest, ...noSightings, firstSeenAt: at };
  const { metBy, lastSeenAt, reportId } = sightings;
  const isNewest = at > lastSeenAt || (at === lastSeenAt && point.reportId > reportId);
  const agent = agentKey(run);
  const metSince = metBy[agent];
  const isFirst = metSince === undefined || run.evalRequestId < metSince;
  const updatedMetBy = isFirst ? { ...metBy, [agent]: run.evalRequestId } : metBy;
  return {
    ...sightings,
    ...(isNewest && newest),
    firstSeenAt: Math.min(sightings.firstSeenAt, at),
    met: sightings.met + 1,
    // Sorted, so that the row is the same in whatever order reports arrive.
    metBy: Object.fromEntries(Object.entries(updatedMetBy).sort(([a], [b]) => (a < b ? -1 : 1))),
    lostPoints: addLoss(sightings.lostPoints, point.lostPoints),
    lostSeconds: addLoss(sightings.lostSeconds, point.lostSeconds),
    lostUsd: addLoss(sightings.lostUsd, point.lostUsd),
  };
}

/** The sum of the known values, or null if none is known. It is computed in millionths, so that the order of the values doesn't matter. */
const addLoss = (sum: number | null, loss: number | null): number | null =>
  loss === null ? sum : (Math.round((sum ?? 0) * 1e6) + Math.round(loss * 1e6)) / 1e6;
