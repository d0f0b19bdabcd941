import { and, asc, count, desc, eq, gte, inArray, lt, lte, sql } from "drizzle-orm";
import { type Tx, tx } from "../db/open.ts";
import { rowReader } from "../db/rows.ts";
import { frictionPoints, prompts, type ReportStatus, recommendations, reports, runs } from "../db/tables.ts";
import { keptWhileUnchanged } from "../db/unchanged.ts";
import type { Deps, OrgId } from "../deps.ts";
import { notFound } from "../errors.ts";
import type { Grade } from "../grading/score.ts";
import { slugWords } from "../grading/words.ts";
import type { Page, Paged } from "../paging.ts";
import { promptSummaryColumns, toPromptSummary } from "../prompts/prompts.ts";
import { toInstant } from "../schema.ts";
import { createBaselines } from "./baseline.ts";
import { createCounts, writeReach } from "./counts.ts";
import { namePages } from "./docsmap.ts";
import { createFixes } from "./fixes.ts";
import { createFriction } from "./friction.ts";
import type { Report, ReportFilter, ReportSummary, RunReport } from "./schema.ts";

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

const columns = {
  report: {
    ...runReportColumns,
    judge: reports.judge,
    id: reports.id,
    orgId: reports.orgId,
    promptId: reports.promptId,
    runId: reports.runId,
    createdAt: reports.createdAt,
  },
  run: {
    id: runs.id,
    evalRequestId: runs.evalRequestId,
    attempt: runs.attempt,
    urlMap: runs.urlMap,
    templateArgs: runs.templateArgs,
    task: runs.task,
    agent: runs.agent,
    agentVersion: runs.agentVersion,
    model: runs.model,
    createdAt: runs.createdAt,
    startedAt: runs.startedAt,
    completedAt: runs.completedAt,
  },
  prompt: promptSummaryColumns,
};
const readReport = rowReader(columns.report);
const readRun = rowReader(columns.run);
const readPrompt = rowReader(columns.prompt);
const runAt = Object.keys(columns.report).length;
const promptAt = runAt + Object.keys(columns.run).length;

export type Reports = ReturnType<typeof createReports>;

export function createReports({ db, now, newId, baseUrl }: Pick<Deps, "db" | "now" | "newId" | "baseUrl">) {
  const unusedSlug = (tx: Tx, title: string): string => {
    for (;;) {
      const slug = `${slugWords(title)}-${Buffer.from(crypto.getRandomValues(new Uint8Array(4))).toString("hex")}`;
      if (!tx.select({ id: reports.id }).from(reports).where(eq(reports.slug, slug)).get()) return slug;
    }
  };

  const friction = createFriction({ db });
  const fixes = createFixes({ db });
  const countReport = createCounts({ db });
  const baselines = createBaselines({ db });

  const iso = (at: number) => new Date(at).toISOString();

  const bySlug = db
    .select(columns)
    .from(reports)
    .innerJoin(runs, eq(runs.id, reports.runId))
    .innerJoin(prompts, eq(prompts.id, reports.promptId))
    .where(and(eq(reports.orgId, sql.placeholder("org")), eq(reports.slug, sql.placeholder("slug"))))
    .prepare();

  const adviceOf = db
    .select()
    .from(recommendations)
    .where(eq(recommendations.reportId, sql.placeholder("reportId")))
    .orderBy(asc(recommendations.priority))
    .prepare();

  const missing = (slug: string) => notFound(`no report has the slug ${slug}`);

  const kept = keptWhileUnchanged<Report>(db, 1000);
  /** Throws not_found. Reports are read far more often than anything is written. */
  const getReport = (org: OrgId, slug: string): Report => kept(`${org} ${slug}`, () => makeReport(org, slug));
  function makeReport(org: OrgId, slug: string): Report {
    const [row] = bySlug.values({ org, slug });
    if (!row) throw missing(slug);
    const report = readReport(row, 0);
    const run = readRun(row, runAt);
    const prompt = readPrompt(row, promptAt);
    const points = friction.ofReport(report.id, run.urlMap);
    const prints = new Map(points.map(({ id, fingerprint }) => [id, fingerprint]));
    const advice = adviceOf.all({ reportId: report.id });
    const recommended = advice.map(({ frictionIds }) => frictionIds.map((id) => prints.get(id) ?? ""));
    const done = fixes.doneOf(org, prompt.id, recommended);
    const whole = {
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
      task: {
        title: run.task.title,
        text: run.task.text,
        endGoal: run.task.endGoal,
        startUrls: run.task.startUrls,
      },
      prompt: toPromptSummary(prompt),
      agent: { id: run.agent, version: run.agentVersion, model: run.model },
      judge: report.judge,
      frictionPoints: points,
      recommendations: advice.map(({ orgId: _, reportId: __, ...recommendation }, i) => ({
        ...recommendation,
        done: done[i] ?? null,
      })),
    };
    return { ...whole, baseline: baselines.ofReport(org, whole) };
  }

  return {
    getReport,
    count: countReport,

    /** Stores the grade of a run's session: part of the transaction that completes the run. */
    insertReport(tx: Tx, run: typeof runs.$inferSelect, attempt: number, grade: Grade): void {
      const createdAt = now();
      const reportId = newId(createdAt);
      const { frictions, recommendations: advice, reach, ...rest } = grade;
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
      writeReach(tx, owner, reach);
      namePages(tx, run, reach.listed);
      if (!run.task.reviewBeforePublishing) countReport(tx, reportId, 1);
    },

    /** Newest first. Throws bad_request for a moment that is none. */
    listReports(org: OrgId, filter: ReportFilter, { limit, offset }: Page): Paged<ReportSummary> {
      const { promptId, status, outcome, agent, minScore, maxScore, since, until } = filter;
      const [id, more] = [promptId?.toLowerCase(), outcome ?? minScore ?? maxScore ?? since ?? until];
      const where = and(
        eq(reports.orgId, org),
        // What else is asked of them stands in the index of filters alone: the plus keeps SQLite from that of the prompt.
        id === undefined ? id : more === undefined ? eq(reports.promptId, id) : sql`+${reports.promptId} = ${id}`,
        // Nearly all are published, so that their index is no way to the newest of them: the plus keeps SQLite from it.
        status === "published" ? sql`+${reports.status} = ${status}` : status && eq(reports.status, status),
        outcome && eq(reports.outcome, outcome),
        agent === undefined ? undefined : eq(runs.agent, agent),
        minScore === undefined ? undefined : gte(reports.score, minScore),
        maxScore === undefined ? undefined : lte(reports.score, maxScore),
        since === undefined ? undefined : gte(reports.createdAt, toInstant("since", since)),
        until === undefined ? undefined : lt(reports.createdAt, toInstant("until", until)),
      );
      const ofAgent = eq(runs.id, reports.runId);
      const ids = db.select({ id: reports.id }).from(reports);
      // Chosen by the index of filters alone, before whole rows are read.
      const chosen = (agent === undefined ? ids : ids.innerJoin(runs, ofAgent))
        .where(where)
        .orderBy(desc(reports.id))
        .limit(limit)
        .offset(offset);
      const rows = db
        .select({
          report: {
            slug: reports.slug,
            status: reports.status,
            score: reports.score,
            grade: reports.grade,
            outcome: reports.outcome,
            keyFinding: reports.keyFinding,
          },
          createdAt: reports.createdAt,
          prompt: { id: prompts.id, title: prompts.title },
          runId: reports.runId,
          agent: { id: runs.agent, version: runs.agentVersion, model: runs.model },
        })
        .from(reports)
        .innerJoin(runs, ofAgent)
        .innerJoin(prompts, eq(prompts.id, reports.promptId))
        .where(inArray(reports.id, chosen))
        .orderBy(desc(reports.id))
        .all();
      const counted = db.select({ n: count() }).from(reports);
      const total = (agent === undefined ? counted : counted.innerJoin(runs, ofAgent)).where(where);
      return {
        items: rows.map(({ report, createdAt, ...rest }) => ({
          ...report,
          url: reportUrl(baseUrl(), report.slug),
          ...rest,
          createdAt: iso(createdAt),
        })),
        total: total.get()?.n ?? 0,
      };
    },

    /** Publishes, withdraws or archives a report. Throws not_found. */
    setStatus(org: OrgId, slug: string, status: ReportStatus): Report {
      tx(db, (t) => {
        const own = and(eq(reports.orgId, org), eq(reports.slug, slug));
        const before = t.select({ id: reports.id, status: reports.status }).from(reports).where(own).get();
        if (!before) throw missing(slug);
        t.update(reports).set({ status }).where(own).run();
        const by = Number(status === "published") - Number(before.status === "published");
        if (by === 1 || by === -1) countReport(t, before.id, by);
      });
      return getReport(org, slug);
    },

    /** The slugs of the newest thousand reports, newest first. */
    listSlugs: (org: OrgId): string[] =>
      db
        .select({ slug: reports.slug })
        .from(reports)
        .where(eq(reports.orgId, org))
        .orderBy(desc(reports.id))
        .limit(1000)
        .all()
        .map(({ slug }) => slug),

    listFriction: friction.list,
    getFriction: friction.get,
  };
}
