import type { Context, OrgId } from "../context.ts";
import { cachedResult } from "../db/cache.ts";
import type { Db } from "../db/open.ts";
import type { frictionPoints } from "../db/tables/friction.ts";
import { notFound } from "../errors.ts";
import { listFieldFrictionAt } from "../field/field.ts";
import { severities } from "../grading/kinds.ts";
import { type Page, type Paged, paginate } from "../http/paging.ts";
import { columnOf, isDescending, type Sort, sorted } from "../http/sorting.ts";
import { toIso } from "../schema.ts";
import { currentStateOf } from "../stats/lifecycle.ts";
import { activeDismissals, type Dismissal } from "./dismissals.ts";
import { agentsOf, previewOf } from "./lifecycle-rows.ts";
import {
  historyOf,
  type ListedLifecycle,
  lifecyclesOfPoint,
  liveLifecycles,
  pointInReport,
  pointsOfReport,
  previewLifecycles,
} from "./queries.ts";
import type { FrictionDetail, FrictionFilter, FrictionPoint, FrictionSummary, Scope } from "./schema.ts";
import { promptsWithin } from "./scope.ts";

export const frictionColumns = ["severity", "runs", "cost", "seen"] as const;
type SortedFilter = FrictionFilter & { sort?: Sort<(typeof frictionColumns)[number]> };

type PointRow = typeof frictionPoints.$inferSelect;
type State = FrictionPoint["state"];

/** The rows of one friction point. The first row is the one to show. */
type PointRows = [ListedLifecycle, ...ListedLifecycle[]];

type DismissalsByFingerprint = ReturnType<typeof activeDismissals>;
const toDismissed = (dismissal: Dismissal | undefined): FrictionPoint["dismissed"] => {
  if (!dismissal) return null;
  const { id, reason, dismissedBy, createdAt } = dismissal;
  return { id, reason, dismissedBy, createdAt };
};

/** A friction point without the columns that only the database needs. */
const toPoint = ({
  orgId: _orgId,
  reportId: _reportId,
  promptId: _promptId,
  position: _position,
  preconditions: _preconditions,
  ...point
}: PointRow) => point;

type Loss = "lostPoints" | "lostSeconds" | "lostUsd";
/** The sum of the known losses, rounded to `digits` decimal places; null if none is known. */
function lossOf(rows: ListedLifecycle[], name: Loss, digits: number): number | null {
  const losses = rows.flatMap((row) => row[name] ?? []);
  return losses.length === 0 ? null : Number(losses.reduce((a, b) => a + b, 0).toFixed(digits));
}

/** The friction points of a report, worst first, each with its current status. In a draft, points without a published report are new. */
export function frictionOfReport(
  ctx: Context,
  org: OrgId,
  id: string,
  run: Parameters<typeof previewOf>[0],
): FrictionPoint[] {
  const dismissed = activeDismissals(ctx, org);
  return pointsOfReport(ctx.db)
    .all({ report: id, preview: previewOf(run) })
    .map(({ point, state, met, reached }) => ({
      ...toPoint(point),
      seenIn: { runs: met ?? 1, of: reached ?? 1 },
      state: state ?? "new",
      dismissed: toDismissed(dismissed.get(point.fingerprint)),
    }));
}

/**
 * The friction points in the published reports of a prompt or of a provider's prompts, without duplicates, worst
 * and most frequent first unless sorted. Friction found only on previews comes last. Dismissed friction is listed only on request.
 */
export function listFriction(
  ctx: Context,
  org: OrgId,
  filter: SortedFilter,
  { limit, offset }: Page,
): Paged<FrictionSummary> {
  const { severity, state, agent, dismissed, everything, promptId, providerId, sort } = filter;
  const filters = [promptId, providerId, severity, state, agent, dismissed, everything];
  const cacheKey = ["friction", org, ...filters, sort, limit, offset];
  return cachedResult(ctx.db, cacheKey, () => computeList(ctx, org, filter, { limit, offset }));
}

/** A friction point with its evaluations, oldest first. Throws not_found. */
export function getFriction(ctx: Context, org: OrgId, fingerprint: string, scope: Scope): FrictionDetail {
  const [rows] = lifecyclesByPoint(ctx, org, scope, fingerprint);
  const [point] = rows ? toSummaries(ctx.db, [rows], activeDismissals(ctx, org)) : [];
  if (!rows || !point) throw notFound(`No friction point has the fingerprint ${fingerprint}.`);
  const lifecycles = rows.flatMap(({ promptId, preview }) => {
    const row = historyOf(ctx.db).get({ org, prompt: promptId, preview, fingerprint });
    return row ? [{ promptId, life: row.life }] : [];
  });
  return {
    ...point,
    field: listFieldFrictionAt(ctx, org, fingerprint),
    prompts: lifecycles.map(({ promptId, life }) => {
      const { state, met, of, missed } = currentStateOf(life);
      return {
        promptId,
        state: state ?? "new",
        since: { met, of, missed },
        evaluations: life.evaluations.map(({ id, at, met, passed }) => ({
          evalRequestId: id,
          at: toIso(at),
          met,
          of: met + passed,
        })),
      };
    }),
  };
}

/** Friction points without duplicates. Each has its rows on the live docs, newest first. Without such rows, it has its newest row on a preview. */
function lifecyclesByPoint(ctx: Context, org: OrgId, scope: Scope, fingerprint?: string): PointRows[] {
  const lifecycles = promptsWithin(ctx, org, scope).flatMap((prompt) =>
    fingerprint === undefined
      ? [...liveLifecycles(ctx.db).all({ org, prompt }), ...previewLifecycles(ctx.db).all({ org, prompt })]
      : lifecyclesOfPoint(ctx.db).all({ org, prompt, fingerprint }),
  );
  const live = lifecycles.filter(({ preview }) => preview === "");
  const previews = lifecycles.filter(({ preview }) => preview !== "").sort((a, b) => b.lastSeenAt - a.lastSeenAt);
  const rowsByPoint = Map.groupBy(live, (row) => row.fingerprint);
  for (const row of previews) if (!rowsByPoint.has(row.fingerprint)) rowsByPoint.set(row.fingerprint, [row]);
  return [...rowsByPoint.values()].map(
    (rows) =>
      rows.sort((a, b) => b.lastSeenAt - a.lastSeenAt || (a.promptId < b.promptId ? -1 : 1)) as [ListedLifecycle],
  );
}

/** A friction point according to its newest report, with its status. */
function toSummaries(db: Db, points: PointRows[], dismissed: DismissalsByFingerprint): FrictionSummary[] {
  return points.flatMap((rows) => {
    const [first] = rows;
    const newest = pointInReport(db).get({ report: first.reportId, fingerprint: first.fingerprint });
    if (!newest) return [];
    const fixedAt = Math.max(...rows.map((row) => row.fixedAt ?? 0));
    const state = stateOf(rows);
    return {
      ...toPoint(newest.point),
      seenIn: { runs: sumOf(rows, "met"), of: sumOf(rows, "reached") },
      state,
      slug: newest.slug,
      isPreview: first.preview !== "",
      firstSeenAt: toIso(Math.min(...rows.map((row) => row.firstSeenAt))),
      lastSeenAt: toIso(first.lastSeenAt),
      fixedAt: state === "fixed" ? toIso(fixedAt) : null,
      cost: {
        points: lossOf(rows, "lostPoints", 1),
        seconds: lossOf(rows, "lostSeconds", 1),
        usd: lossOf(rows, "lostUsd", 6),
      },
      promptIds: rows.map((row) => row.promptId),
      agents: agentsOf(rows),
      dismissed: toDismissed(dismissed.get(first.fingerprint)),
    };
  });
}

function computeList(ctx: Context, org: OrgId, { sort, ...filter }: SortedFilter, { limit, offset }: Page) {
  const { severity, state, agent, dismissed = "false", ...scope } = filter;
  const dismissals = activeDismissals(ctx, org);
  const matching = lifecyclesByPoint(ctx, org, scope)
    .filter((rows) => agent === undefined || agentsOf(rows).includes(agent))
    .filter(([first]) => dismissals.has(first.fingerprint) === (dismissed === "true"))
    .map((rows) => ({
      rows,
      rank: severities.indexOf(rows[0].severity) + (rows[0].preview === "" ? 0 : severities.length),
      state: stateOf(rows),
      met: sumOf(rows, "met"),
    }))
    .filter(({ rows: [first] }) => severity === undefined || first.severity === severity)
    .filter((point) => state === undefined || point.state === state)
    .sort((a, b) => a.rank - b.rank || b.met - a.met || (a.rows[0].fingerprint < b.rows[0].fingerprint ? -1 : 1));
  const ordered = sort ? sorted(matching, sortValues[columnOf(sort)], isDescending(sort)) : matching;
  const { items, total } = paginate(ordered, { limit, offset });
  const points = items.map(({ rows }) => rows);
  return { items: toSummaries(ctx.db, points, dismissals), total };
}

type Sortable = { rows: PointRows; rank: number; state: State; met: number };

/** What each column sorts by. `cost`: the points lost per run that met it. */
const sortValues: Record<(typeof frictionColumns)[number], (point: Sortable) => number | null> = {
  severity: ({ rows: [first] }) => -severities.indexOf(first.severity),
  runs: ({ met }) => met,
  cost: ({ rows, met }) => {
    const points = lossOf(rows, "lostPoints", 1);
    return points === null ? null : points / Math.max(1, met);
  },
  seen: ({ rows: [first] }) => first.lastSeenAt,
};

const sumOf = (rows: ListedLifecycle[], name: "met" | "reached") => rows.reduce((sum, row) => sum + row[name], 0);

/**
 * The status of a friction point over several prompts: the worst of their statuses. If it is new in one prompt after it was fixed in another, it has
 * regressed.
 */
function stateOf(rows: PointRows): State {
  const states = rows.map((row) => row.state);
  if (states.includes("regressed")) return "regressed";
  if (states.includes("open")) return "open";
  if (!states.includes("new")) return "fixed";
  const fixedAt = Math.min(
    ...rows.map((row) => (row.state === "fixed" ? (row.fixedAt ?? 0) : Number.POSITIVE_INFINITY)),
  );
  return rows.some((row) => row.state === "new" && row.firstSeenAt > fixedAt) ? "regressed" : "new";
}
