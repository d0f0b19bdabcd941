import { and, asc, eq, gte, isNull, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import { bound, statement } from "../db/prepared.ts";
import { exposures, type frictionLifecycles, frictionPoints } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { evalRequests, runs } from "../db/tables/runs.ts";
import { hasReached } from "../grading/exposure.ts";
import { mappedHostsOf } from "../net/mapping.ts";
import { pageKey } from "../net/page-key.ts";
import type { Evaluation } from "../stats/lifecycle.ts";

export type LifecycleRow = typeof frictionLifecycles.$inferSelect;
export type LifecycleKey = { orgId: string; promptId: string; preview: string; fingerprint: string };
export type PointRow = typeof frictionPoints.$inferSelect;

/** A report with everything about it that is counted. */
export type CountedReport = {
  report: typeof reports.$inferSelect;
  run: typeof runs.$inferSelect;
  exposure: typeof exposures.$inferSelect | null;
  points: PointRow[];
};

/** What a run read in place of the live docs. */
type DocsOfRun = { urlMap: Record<string, string>; editsDigest: string | null };

/** Whether a run read the live docs as they are: no preview, and no edits. The same as `isLiveRun` in SQL. */
export const isLive = ({ urlMap, editsDigest }: DocsOfRun): boolean =>
  Object.keys(urlMap).length === 0 && editsDigest === null;

/** Identifies the docs that a run read; empty for the live docs. Friction is tracked separately for each preview, and not at all for edited docs. */
export const previewOf = ({ urlMap, editsDigest }: DocsOfRun): string =>
  isLive({ urlMap, editsDigest })
    ? ""
    : new Bun.CryptoHasher("sha256")
        .update(JSON.stringify(mappedHostsOf(urlMap)) + (editsDigest ?? ""))
        .digest("hex")
        .slice(0, 16);

/** Identifies an agent with its model. Runs of other agents or models don't show what it would have met. */
export const agentKey = ({ agent, model }: { agent: string; model: string | null }) => `${agent} ${model ?? ""}`;

/** The agents that met a friction point: the part of `agentKey` before the model. */
export const agentsOf = (rows: { metBy: Record<string, string> }[]): string[] => [
  ...new Set(rows.flatMap(({ metBy }) => Object.keys(metBy).map((key) => key.split(" ")[0] ?? key))),
];

/** The stored details of a friction point, from its newest report. */
export const detailsOf = ({ reportId, severity, url }: Pick<PointRow, "reportId" | "severity" | "url">) => ({
  reportId,
  severity,
  page: url === null ? null : pageKey(url),
});

const publishedReport = statement((db) =>
  db
    .select({ report: reports, run: runs, exposure: exposures })
    .from(reports)
    .innerJoin(runs, eq(runs.id, reports.runId))
    .leftJoin(exposures, eq(exposures.reportId, reports.id))
    .where(and(eq(reports.id, bound("reportId")), eq(reports.status, "published"), isNull(runs.editsDigest))),
);

const pointsOfReport = statement((db) =>
  db
    .select()
    .from(frictionPoints)
    .where(eq(frictionPoints.reportId, sql.placeholder("reportId")))
    .orderBy(asc(frictionPoints.position)),
);

/** What is counted of a published report. null: the report isn't published, or its run has edits. Runs with edits count nowhere. */
export function findCounted({ db }: Context, reportId: string): CountedReport | null {
  const row = publishedReport(db).get({ reportId });
  return row ? { ...row, points: pointsOfReport(db).all({ reportId }) } : null;
}

/** A published report of an evaluation: the friction points that it has, and what its session reached. */
type CountedRun = {
  evalRequestId: string;
  at: number;
  agent: string;
  exposure: typeof exposures.$inferSelect | null;
  fingerprints: Set<string>;
};

/** The condition for the published reports of a prompt whose evaluation is a given one or a later one. */
const isPublishedFrom = and(
  eq(evalRequests.orgId, bound("orgId")),
  eq(evalRequests.promptId, bound("promptId")),
  gte(evalRequests.id, bound("fromId")),
  eq(reports.status, "published"),
);

const publishedRunsFrom = statement((db) =>
  db
    .select({
      reportId: reports.id,
      evalRequestId: evalRequests.id,
      at: evalRequests.createdAt,
      run: { agent: runs.agent, model: runs.model, urlMap: runs.urlMap, editsDigest: runs.editsDigest },
      exposure: exposures,
    })
    .from(evalRequests)
    .innerJoin(runs, and(eq(runs.orgId, evalRequests.orgId), eq(runs.evalRequestId, evalRequests.id)))
    .innerJoin(reports, eq(reports.runId, runs.id))
    .leftJoin(exposures, eq(exposures.reportId, reports.id))
    .where(isPublishedFrom)
    .orderBy(asc(evalRequests.id), asc(runs.id)),
);

const publishedPointsFrom = statement((db) =>
  db
    .select({ reportId: reports.id, fingerprint: frictionPoints.fingerprint })
    .from(evalRequests)
    .innerJoin(runs, and(eq(runs.orgId, evalRequests.orgId), eq(runs.evalRequestId, evalRequests.id)))
    .innerJoin(reports, eq(reports.runId, runs.id))
    .innerJoin(frictionPoints, eq(frictionPoints.reportId, reports.id))
    .where(isPublishedFrom),
);

/** The published reports of a prompt in its evaluations from `fromId` on, oldest evaluation first. */
export function listCountedRuns(
  { db }: Context,
  { orgId, promptId }: CountedReport["run"],
  preview: string,
  fromId: string,
) {
  const points = publishedPointsFrom(db).all({ orgId, promptId, fromId });
  const pointsByReport = Map.groupBy(points, ({ reportId }) => reportId);
  return publishedRunsFrom(db)
    .all({ orgId, promptId, fromId })
    .flatMap(({ reportId, run, ...row }): CountedRun[] => {
      if (previewOf(run) !== preview) return [];
      const fingerprints = new Set(pointsByReport.get(reportId)?.map(({ fingerprint }) => fingerprint));
      return [{ ...row, agent: agentKey(run), fingerprints }];
    });
}

/** The evaluations of a friction point. A run that didn't meet it counts only if the run's agent had met it by then. */
export function toEvaluations(
  countedRuns: CountedRun[],
  { fingerprint, metBy, preconditions }: Pick<LifecycleRow, "fingerprint" | "metBy" | "preconditions">,
): Evaluation[] {
  const evaluations: Evaluation[] = [];
  for (const { evalRequestId: id, at, agent, exposure, fingerprints } of countedRuns) {
    const hasMet = fingerprints.has(fingerprint);
    const metSince = metBy[agent];
    // IDs of evaluations sort by time.
    const agentHasMet = metSince !== undefined && metSince <= id;
    if (!hasMet && !(agentHasMet && exposure && hasReached(exposure, preconditions))) continue;
    let evaluation = evaluations.at(-1);
    if (evaluation?.id !== id) {
      evaluation = { id, at, met: 0, passed: 0, byModel: false };
      evaluations.push(evaluation);
    }
    evaluation[hasMet ? "met" : "passed"]++;
    evaluation.byModel ||= exposure?.byRules === false;
  }
  return evaluations;
}

const { severity, url, preconditions, lostPoints, lostSeconds, lostUsd } = frictionPoints;

const publishedWithPoint = statement((db) =>
  db
    .select({
      at: reports.createdAt,
      run: {
        evalRequestId: runs.evalRequestId,
        agent: runs.agent,
        model: runs.model,
        urlMap: runs.urlMap,
        editsDigest: runs.editsDigest,
      },
      point: { reportId: reports.id, severity, url, preconditions, lostPoints, lostSeconds, lostUsd },
    })
    .from(frictionPoints)
    .innerJoin(reports, eq(reports.id, frictionPoints.reportId))
    .innerJoin(runs, eq(runs.id, reports.runId))
    .where(
      and(
        eq(frictionPoints.orgId, bound("orgId")),
        eq(frictionPoints.promptId, bound("promptId")),
        eq(frictionPoints.fingerprint, bound("fingerprint")),
        eq(reports.status, "published"),
      ),
    )
    .orderBy(asc(reports.createdAt), asc(reports.id)),
);

/** The published reports that contain a friction point, oldest first. */
export const listSightings = ({ db }: Context, { preview, ...point }: LifecycleKey) =>
  publishedWithPoint(db)
    .all(point)
    .filter(({ run }) => previewOf(run) === preview);
