import { and, asc, eq, sql } from "drizzle-orm";
import { tx } from "../db/open.ts";
import { rowReader } from "../db/rows.ts";
import { prompts, type ReportStatus, recommendations, reports, runs } from "../db/tables.ts";
import { keptWhileUnchanged } from "../db/unchanged.ts";
import type { Deps, OrgId } from "../deps.ts";
import { createFixes } from "../friction/fixes.ts";
import type { FrictionLists } from "../friction/friction.ts";
import type { Dimension } from "../grading/grade.ts";
import { promptSummaryColumns, toPromptSummary } from "../prompts/lists.ts";
import { toIso } from "../schema.ts";

import type { Baselines } from "./baseline.ts";

import type { CountReport } from "./counts.ts";
import { pickGraded, toDimension, toNullNotice } from "./grade-schema.ts";
import { reportUrl, runUrls } from "./links.ts";
import { createReportLists } from "./lists.ts";
import { getReportRow, noReport } from "./report-row.ts";
import { createReportWriter } from "./report-writer.ts";
import type { Report, RunReport } from "./schema.ts";

const { judge, lost, ...graded } = pickGraded(reports);
export const runReportColumns = { slug: reports.slug, ...graded, status: reports.status };

type RunReportRow = Omit<RunReport, "url" | "dimensions"> & { dimensions: Dimension[] };

export const toRunReport = ({ slug, ...row }: RunReportRow, url: string): RunReport => ({
  slug,
  url,
  ...row,
  dimensions: row.dimensions.map(toDimension),
  nullNotice: toNullNotice(row),
});

const columns = {
  report: runReportColumns,
  more: {
    judge,
    lost,
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
const readMore = rowReader(columns.more);
const readRun = rowReader(columns.run);
const readPrompt = rowReader(columns.prompt);
const moreAt = Object.keys(columns.report).length;
const runAt = moreAt + Object.keys(columns.more).length;
const promptAt = runAt + Object.keys(columns.run).length;

export type Reports = ReturnType<typeof createReports>;

export function createReports(
  { db, now, newId, baseUrl }: Pick<Deps, "db" | "now" | "newId" | "baseUrl">,
  { friction, baselines, countReport }: { friction: FrictionLists; baselines: Baselines; countReport: CountReport },
) {
  const fixes = createFixes({ db });

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

  const kept = keptWhileUnchanged<Report>(db, 1000);
  /** Throws not_found. Cached, because reports are read far more often than they change. */
  const getReport = (org: OrgId, slug: string): Report => kept(`${org} ${slug}`, () => makeReport(org, slug));
  function makeReport(org: OrgId, slug: string): Report {
    const [row] = bySlug.values({ org, slug });
    if (!row) throw noReport(slug);
    const report = readReport(row, 0);
    const { judge, lost, id, createdAt } = readMore(row, moreAt);
    const run = readRun(row, runAt);
    const prompt = readPrompt(row, promptAt);
    const points = friction.ofReport(id, run.urlMap);
    const prints = new Map(points.map(({ id, fingerprint }) => [id, fingerprint]));
    const advice = adviceOf.all({ reportId: id });
    const recommended = advice.map(({ frictionIds }) => frictionIds.map((id) => prints.get(id) ?? ""));
    const done = fixes.doneOf(org, prompt.id, recommended);
    const whole = {
      ...toRunReport(report, reportUrl(baseUrl(), slug)),
      createdAt: toIso(createdAt),
      run: {
        runId: run.id,
        ...runUrls(baseUrl(), run.id),
        evalRequestId: run.evalRequestId,
        attempt: run.attempt,
        urlMap: run.urlMap,
        templateArgs: run.templateArgs,
        createdAt: toIso(run.createdAt),
        startedAt: toIso(run.startedAt),
        completedAt: toIso(run.completedAt),
      },
      task: {
        title: run.task.title,
        text: run.task.text,
        endGoal: run.task.endGoal,
        startUrls: run.task.startUrls,
      },
      prompt: toPromptSummary(prompt),
      agent: { id: run.agent, version: run.agentVersion, model: run.model },
      judge,
      lost,
      frictionPoints: points,
      recommendations: advice.map(({ orgId: _, reportId: __, ...recommendation }, i) => ({
        ...recommendation,
        done: done[i] ?? null,
      })),
    };
    return { ...whole, baseline: baselines.ofReport(org, whole) };
  }

  return {
    ...createReportLists({ db, baseUrl }),
    insertReport: createReportWriter({ now, newId }, countReport),
    getReport,
    count: countReport,

    /** Publishes, withdraws or archives a report. Throws not_found. */
    setStatus(org: OrgId, slug: string, status: ReportStatus): Report {
      tx(db, (t) => {
        const before = getReportRow(t, org, slug);
        t.update(reports).set({ status }).where(eq(reports.id, before.id)).run();
        const by = Number(status === "published") - Number(before.status === "published");
        if (by === 1 || by === -1) countReport(t, before.id, by);
      });
      return getReport(org, slug);
    },
  };
}
