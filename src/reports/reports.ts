import { and, asc, eq, lte, sql } from "drizzle-orm";
import type { Tx } from "../db/open.ts";
import { frictionPoints, prompts, recommendations, reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { notFound } from "../errors.ts";
import type { Grade } from "../grading/score.ts";
import { toPromptSummary } from "../prompts/prompts.ts";
import type { FrictionPoint, Report, RunReport } from "./schema.ts";

export const reportUrl = (baseUrl: string, slug: string): string => `${baseUrl}/reports/${slug}`;

export const runUrls = (baseUrl: string, runId: string) => ({
  statusUrl: `${baseUrl}/api/v1/runs/${runId}`,
  runUrl: `${baseUrl}/runs/${runId}`,
});

export const runReportColumns = {
  slug: reports.slug,
  status: reports.status,
  score: reports.score,
  grade: reports.grade,
  metrics: reports.metrics,
  dimensions: reports.dimensions,
  outcome: reports.outcome,
  nullNotice: reports.nullNotice,
  keyFinding: reports.keyFinding,
  verdict: reports.verdict,
  summary: reports.summary,
  coverage: reports.coverage,
  methodology: reports.methodology,
};

export const toRunReport = (row: Omit<RunReport, "url">, url: string): RunReport => ({
  slug: row.slug,
  url,
  score: row.score,
  grade: row.grade,
  metrics: row.metrics,
  dimensions: row.dimensions,
  status: row.status,
  outcome: row.outcome,
  nullNotice: row.nullNotice,
  keyFinding: row.keyFinding,
  verdict: row.verdict,
  summary: row.summary,
  coverage: row.coverage,
  methodology: row.methodology,
});

export type Reports = ReturnType<typeof createReports>;

export function createReports({ db, now, newId, baseUrl }: Pick<Deps, "db" | "now" | "newId" | "baseUrl">) {
  const unusedSlug = (tx: Tx, title: string): string => {
    for (;;) {
      const slug = `${slugWords(title)}-${Buffer.from(crypto.getRandomValues(new Uint8Array(4))).toString("hex")}`;
      if (!tx.select({ id: reports.id }).from(reports).where(eq(reports.slug, slug)).get()) return slug;
    }
  };

  const iso = (at: number) => new Date(at).toISOString();

  return {
    /** Stores the grade of a run's session: part of the transaction that completes the run. */
    insertReport(tx: Tx, run: typeof runs.$inferSelect, attempt: number, grade: Grade): void {
      const createdAt = now();
      const reportId = newId(createdAt);
      const { frictions, recommendations: advice, ...rest } = grade;
      tx.insert(reports)
        .values({
          ...rest,
          id: reportId,
          orgId: run.orgId,
          runId: run.id,
          promptId: run.promptId,
          attempt,
          slug: unusedSlug(tx, run.task.title ?? run.task.text),
          status: run.task.reviewBeforePublishing ? "draft" : "published",
          createdAt,
        })
        .run();
      const owner = { orgId: run.orgId, reportId };
      const ids = new Map(frictions.map(({ fingerprint }) => [fingerprint, newId(createdAt)]));
      const idOf = (fingerprint: string) => ids.get(fingerprint) as string;
      frictions.forEach((friction, position) => {
        const id = idOf(friction.fingerprint);
        tx.insert(frictionPoints)
          .values({ ...friction, ...owner, id, promptId: run.promptId, position })
          .run();
      });
      for (const { frictions: proves, ...recommendation } of advice)
        tx.insert(recommendations)
          .values({ ...recommendation, ...owner, id: newId(createdAt), frictionIds: proves.map(idOf) })
          .run();
    },

    /** Throws not_found. */
    getReport(org: OrgId, slug: string): Report {
      const row = db
        .select({ report: reports, run: runs, prompt: prompts })
        .from(reports)
        .innerJoin(runs, eq(runs.id, reports.runId))
        .innerJoin(prompts, eq(prompts.id, reports.promptId))
        .where(and(eq(reports.orgId, org), eq(reports.slug, slug)))
        .get();
      if (!row) throw notFound(`no report has the slug ${slug}`);
      const { report, run, prompt } = row;
      return {
        ...toRunReport(report, reportUrl(baseUrl(), slug)),
        createdAt: iso(report.createdAt),
        run: {
          runId: run.id,
          ...runUrls(baseUrl(), run.id),
          evalRequestId: run.evalRequestId,
          attempt: run.attempt,
          urlMap: run.urlMap,
          templateArgs: run.templateArgs,
          createdAt: iso(run.createdAt),
          startedAt: run.startedAt === null ? null : iso(run.startedAt),
          completedAt: run.completedAt === null ? null : iso(run.completedAt),
        },
        task: { title: run.task.title, text: run.task.text, endGoal: run.task.endGoal },
        prompt: toPromptSummary(prompt),
        agent: { id: run.agent, version: run.agentVersion, model: run.model },
        judge: report.judge,
        frictionPoints: listFrictionPoints(report),
        recommendations: db
          .select()
          .from(recommendations)
          .where(and(eq(recommendations.orgId, org), eq(recommendations.reportId, report.id)))
          .orderBy(asc(recommendations.priority))
          .all()
          .map(({ orgId: _, reportId: __, ...recommendation }) => recommendation),
      };
    },
  };

  function listFrictionPoints(report: typeof reports.$inferSelect): FrictionPoint[] {
    // Older reports of the same prompt: ids of runs follow time.
    const upToNow = and(
      eq(reports.orgId, report.orgId),
      eq(reports.promptId, report.promptId),
      lte(reports.runId, report.runId),
    );
    const history = db
      .select({ id: reports.id, runId: reports.runId })
      .from(reports)
      .where(upToNow)
      .orderBy(asc(reports.runId))
      .all();
    const order = new Map(history.map(({ id }, i) => [id, i]));
    const own = db
      .select()
      .from(frictionPoints)
      .where(and(eq(frictionPoints.orgId, report.orgId), eq(frictionPoints.reportId, report.id)))
      .orderBy(asc(frictionPoints.position))
      .all();
    const seen = db
      .select({
        fingerprint: frictionPoints.fingerprint,
        reportId: frictionPoints.reportId,
      })
      .from(frictionPoints)
      .where(
        and(
          eq(frictionPoints.orgId, report.orgId),
          eq(frictionPoints.promptId, report.promptId),
          sql`${frictionPoints.fingerprint} in (select ${frictionPoints.fingerprint} from ${frictionPoints} where ${frictionPoints.reportId} = ${report.id})`,
        ),
      )
      .all();
    const positions = Map.groupBy(
      seen.filter(({ reportId }) => order.has(reportId)),
      ({ fingerprint }) => fingerprint,
    );
    const last = history.length - 1;
    return own.map(({ orgId: _, reportId: __, promptId: ___, position: ____, ...friction }) => {
      const at = (positions.get(friction.fingerprint) ?? []).map(({ reportId }) => order.get(reportId) as number);
      const before = at.filter((i) => i < last);
      const state = before.length === 0 ? "new" : before.includes(last - 1) ? "open" : "regressed";
      return { ...friction, seenIn: { runs: at.length, of: history.length }, state };
    });
  }
}

/** At most eight words of a title as a slug; `report` where it has no letters of the Latin alphabet. */
function slugWords(title: string): string {
  const words = title
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}/gu, "")
    .match(/[a-z0-9]+/g);
  return (words ?? ["report"]).slice(0, 8).join("-").slice(0, 60).replace(/-+$/, "");
}
