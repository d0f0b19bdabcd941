import { and, desc, eq, inArray, ne } from "drizzle-orm";
import type { Tx } from "../db/open.ts";
import { exposures, frictionLifecycles, frictionPoints } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { mappedHostsOf } from "../net/mapping.ts";
import { pageKey } from "../net/page-key.ts";
import { currentStateOf, type History } from "../stats/lifecycle.ts";

export type LifecycleRow = typeof frictionLifecycles.$inferSelect;
export type PointRow = typeof frictionPoints.$inferSelect;

/** A report that starts or stops counting, with everything that is counted of it. */
export type CountedReport = {
  report: typeof reports.$inferSelect;
  run: typeof runs.$inferSelect;
  exposure: typeof exposures.$inferSelect | null;
};

/** Whether a run used the live docs, and no preview. */
export const isLive = ({ urlMap }: { urlMap: Record<string, string> }): boolean => Object.keys(urlMap).length === 0;

/** Empty for the live docs; each preview is tracked separately. */
export const previewOf = (urlMap: Record<string, string>): string =>
  isLive({ urlMap })
    ? ""
    : new Bun.CryptoHasher("sha256")
        .update(JSON.stringify(mappedHostsOf(urlMap)))
        .digest("hex")
        .slice(0, 16);

/** Runs of another agent or model don't show what this one would have met. */
export const agentKey = ({ agent, model }: CountedReport["run"]) => `${agent} ${model ?? ""}`;

/** The agents that met a friction point. */
export const agentsOf = (rows: { metBy: string[] }[]): string[] => [
  ...new Set(rows.flatMap(({ metBy }) => metBy.map((key) => key.split(" ")[0] ?? key))),
];

export const whereOfPreview = (report: CountedReport["report"], preview: string) =>
  and(
    eq(frictionLifecycles.orgId, report.orgId),
    eq(frictionLifecycles.promptId, report.promptId),
    eq(frictionLifecycles.preview, preview),
  );

/** Other published reports of an evaluation with the same agent and model, with the friction points of each. */
export function siblingsOf(tx: Tx, { report, run }: CountedReport) {
  const rows = tx
    .select({ reportId: reports.id, run: runs, exposure: exposures })
    .from(runs)
    .innerJoin(reports, eq(reports.runId, runs.id))
    .innerJoin(exposures, eq(exposures.reportId, reports.id))
    .where(
      and(
        eq(runs.orgId, run.orgId),
        eq(runs.evalRequestId, run.evalRequestId),
        ne(reports.id, report.id),
        eq(reports.status, "published"),
      ),
    )
    .all()
    .filter((sibling) => agentKey(sibling.run) === agentKey(run));
  const points = tx
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
  return rows.map(({ reportId, exposure }) => ({
    exposure,
    hasMet: (fingerprint: string) => met.has(`${reportId} ${fingerprint}`),
  }));
}

export function updateLifecycle(
  tx: Tx,
  key: Pick<LifecycleRow, "orgId" | "promptId" | "preview" | "fingerprint">,
  row: Partial<LifecycleRow>,
) {
  const { state, fixedAt } = currentStateOf(row.life as History);
  tx.update(frictionLifecycles)
    .set({ ...row, state: state ?? "new", fixedAt })
    .where(
      and(
        eq(frictionLifecycles.orgId, key.orgId),
        eq(frictionLifecycles.promptId, key.promptId),
        eq(frictionLifecycles.preview, key.preview),
        eq(frictionLifecycles.fingerprint, key.fingerprint),
      ),
    )
    .run();
}

/** The newest other published report that contains a friction point, and when it was first and last seen; null if there is none. */
export function findNewestSighting(tx: Tx, { orgId, promptId, preview, fingerprint }: LifecycleRow, reportId: string) {
  const sightings = tx
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
    .filter(({ urlMap }) => previewOf(urlMap) === preview);
  const [last] = sightings;
  if (!last) return null;
  const firstSeenAt = sightings.at(-1)?.at ?? last.at;
  return { ...detailsOf(last.point), lastSeenAt: last.at, firstSeenAt };
}

/** The stored details of a friction point, from its newest report. */
export const detailsOf = ({ reportId, severity, url }: PointRow) => ({
  reportId,
  severity,
  page: url === null ? null : pageKey(url),
});
