import { and, asc, eq } from "drizzle-orm";
import { type Context, type OrgId, perContext } from "../context.ts";
import { type Db, transaction } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import { bound, statement } from "../db/prepared.ts";
import { recommendations } from "../db/tables/friction.ts";
import { prompts, providers } from "../db/tables/prompts.ts";
import { type ReportStatus, reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { keptWhileUnchanged } from "../db/unchanged.ts";
import { createField } from "../field/field.ts";
import { createDismissals } from "../friction/dismissals.ts";
import { createFixes } from "../friction/fixes.ts";
import { createFriction } from "../friction/friction.ts";
import type { FrictionPoint } from "../friction/schema.ts";
import type { Dimension } from "../grading/grade.ts";
import { shownUrlMap } from "../net/mapping.ts";
import { promptSummaryColumns, toPromptSummary } from "../prompts/lists.ts";
import { toIso } from "../schema.ts";
import { findReportBaseline } from "./baseline.ts";
import { countReport } from "./counts.ts";
import { pickGraded, toDimension, toNullNotice } from "./grade-schema.ts";
import { reportUrl, runUrls } from "./links.ts";
import { getReportRow, noReport } from "./report-row.ts";
import type { Report, RunReport } from "./schema.ts";

const { judge, lost, wordings, context, ...graded } = pickGraded(reports);
/** What the report of a run in a list has. */
export const runReportColumns = { slug: reports.slug, ...graded, status: reports.status };

type RunReportRow = Omit<RunReport, "url" | "dimensions"> & { dimensions: Dimension[] };

/** Makes a row the report of a run: copying its many fields would take longer than computing the others. */
export function toRunReport(row: RunReportRow, url: string): RunReport {
  const report = row as unknown as RunReport;
  report.url = url;
  report.dimensions = row.dimensions.map(toDimension);
  report.nullNotice = toNullNotice(row);
  return report;
}

const detailColumns = {
  report: runReportColumns,
  details: {
    judge,
    lost,
    wordings,
    context,
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
    contextDigest: runs.contextDigest,
    model: runs.model,
    createdAt: runs.createdAt,
    startedAt: runs.startedAt,
    completedAt: runs.completedAt,
  },
  prompt: promptSummaryColumns,
  provider: { name: providers.name },
};

const reportBySlug = statement((db) =>
  db
    .select(detailColumns)
    .from(reports)
    .innerJoin(runs, eq(runs.id, reports.runId))
    .innerJoin(prompts, eq(prompts.id, reports.promptId))
    .leftJoin(providers, eq(providers.id, prompts.targetProviderId))
    .where(and(eq(reports.orgId, bound("org")), eq(reports.slug, bound("slug")))),
);

const recommendationsOfReport = statement((db) =>
  db
    .select()
    .from(recommendations)
    .where(eq(recommendations.reportId, bound("reportId")))
    .orderBy(asc(recommendations.priority)),
);

const cacheOf = perConnection((db: Db) => keptWhileUnchanged<Report>(db, 1000));

const frictionOf = perContext((ctx) => createFriction(ctx, { ...createDismissals(ctx), ...createField(ctx) }));
const fixesOf = perContext((ctx) => createFixes(ctx));

/** A report by its slug. Throws not_found. Cached, because reports are read far more often than they change. */
export const getReport = (ctx: Context, org: OrgId, slug: string): Report =>
  cacheOf(ctx.db)(`${org} ${slug}`, () => compact(readReport(ctx, org, slug)));

/** Publishes, withdraws or archives a report. Throws not_found. */
export function setReportStatus(ctx: Context, org: OrgId, slug: string, status: ReportStatus): Report {
  transaction(ctx.db, (tx) => {
    const before = getReportRow(tx, org, slug);
    tx.update(reports).set({ status }).where(eq(reports.id, before.id)).run();
    const by = Number(status === "published") - Number(before.status === "published");
    if (by === 1 || by === -1) countReport(ctx, tx, before.id, by);
  });
  return getReport(ctx, org, slug);
}

/** A copy whose parts lie side by side in memory, which halves the time to write it as JSON. */
const compact = (report: Report): Report => JSON.parse(JSON.stringify(report));

function readReport(ctx: Context, org: OrgId, slug: string): Report {
  const row = reportBySlug(ctx.db).get({ org, slug });
  if (!row) throw noReport(slug);
  const { report, run, prompt, provider } = row;
  const { judge, lost, wordings, context, id, createdAt } = row.details;
  const frictionPoints = frictionOf(ctx).ofReport(org, id, run.urlMap);
  const withoutBaseline = {
    ...toRunReport(report, reportUrl(ctx.baseUrl(), slug)),
    createdAt: toIso(createdAt),
    run: {
      runId: run.id,
      ...runUrls(ctx.baseUrl(), run.id),
      evalRequestId: run.evalRequestId,
      attempt: run.attempt,
      urlMap: shownUrlMap(run.urlMap),
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
    product: {
      name: provider?.name ?? null,
      host: URL.parse(run.task.startUrls[0] ?? "")?.host ?? null,
    },
    prompt: toPromptSummary(prompt),
    agent: { id: run.agent, version: run.agentVersion, model: run.model, contextDigest: run.contextDigest },
    judge,
    lost,
    wordings,
    context,
    frictionPoints,
    recommendations: listRecommendations(ctx, org, prompt.id, id, frictionPoints),
  };
  return { ...withoutBaseline, baseline: findReportBaseline(ctx, org, withoutBaseline) };
}

/** The recommended fixes of a report by priority, each with its verification and dismissal. */
function listRecommendations(
  ctx: Context,
  org: OrgId,
  promptId: string,
  reportId: string,
  frictionPoints: FrictionPoint[],
): Report["recommendations"] {
  const pointById = new Map(frictionPoints.map((point) => [point.id, point]));
  const rows = recommendationsOfReport(ctx.db).all({ reportId });
  const fingerprints = rows.map(({ frictionIds }) => frictionIds.map((id) => pointById.get(id)?.fingerprint ?? ""));
  const done = fixesOf(ctx).doneOf(org, promptId, fingerprints);
  return rows.map(({ orgId: _org, reportId: _report, ...recommendation }, i) => {
    const dismissals = recommendation.frictionIds.map((id) => pointById.get(id)?.dismissed ?? null);
    // It is dismissed if all friction that it removes is.
    const dismissed = dismissals.includes(null) ? null : (dismissals[0] ?? null);
    return { ...recommendation, done: done[i] ?? null, dismissed };
  });
}
