import { and, asc, eq } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { createCache } from "../db/cache.ts";
import { type Db, transaction } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import { bound, statement } from "../db/prepared.ts";
import { recommendations } from "../db/tables/friction.ts";
import { prompts, providers } from "../db/tables/prompts.ts";
import { type ReportStatus, reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { doneFixesOf } from "../friction/fixes.ts";
import { frictionOfReport } from "../friction/friction.ts";
import type { Dimension } from "../grading/grade.ts";
import { withoutUrlMapTokens } from "../net/mapping.ts";
import { promptSummaryColumns, toPromptSummary } from "../prompts/lists.ts";
import { toIso } from "../schema.ts";
import { baselineOfReport } from "./baseline.ts";
import { findCalibration } from "./calibration.ts";
import { countChange } from "./counts.ts";
import { splitGradeFields, toDimension, toNullNotice } from "./grade-schema.ts";
import { reportUrl, runUrls } from "./links.ts";
import { getReportRow, reportNotFound } from "./report-row.ts";
import type { Report, RunReport } from "./schema.ts";

const { main, details } = splitGradeFields(reports);
export const runReportColumns = { slug: reports.slug, ...main, status: reports.status };

type RunReportRow = Omit<RunReport, "url" | "dimensions"> & { dimensions: Dimension[] };

/** Turns a row into the report of a run, in place, because copying its many fields would take longer than computing the others. */
export function toRunReport(row: RunReportRow, url: string): RunReport {
  const report = row as unknown as RunReport;
  report.url = url;
  report.dimensions = row.dimensions.map(toDimension);
  report.nullNotice = toNullNotice(row);
  return report;
}

const columns = {
  report: runReportColumns,
  details,
  id: reports.id,
  createdAt: reports.createdAt,
  run: {
    id: runs.id,
    evalRequestId: runs.evalRequestId,
    attempt: runs.attempt,
    urlMap: runs.urlMap,
    editsDigest: runs.editsDigest,
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

const reportCache = perConnection((db: Db) => createCache<Report>(db, 1000));

const reportBySlug = statement((db) =>
  db
    .select(columns)
    .from(reports)
    .innerJoin(runs, eq(runs.id, reports.runId))
    .innerJoin(prompts, eq(prompts.id, reports.promptId))
    .leftJoin(providers, eq(providers.id, prompts.targetProviderId))
    .where(and(eq(reports.orgId, bound("org")), eq(reports.slug, bound("slug")))),
);

const fixesOfReport = statement((db) =>
  db
    .select()
    .from(recommendations)
    .where(eq(recommendations.reportId, bound("reportId")))
    .orderBy(asc(recommendations.priority)),
);

/** Reads a report. Throws not_found. Cached, because reports are read far more often than they change. */
export const getReport = (ctx: Context, org: OrgId, slug: string): Report =>
  reportCache(ctx.db)(`${org} ${slug}`, () =>
    // The copy lies contiguously in memory, which halves the time to serialize it as JSON.
    JSON.parse(JSON.stringify(readReport(ctx, org, slug))),
  );

/** Publishes, withdraws or archives a report. Throws not_found. */
export function setReportStatus(ctx: Context, org: OrgId, slug: string, status: ReportStatus): Report {
  transaction(ctx.db, (tx) => {
    const { id, status: before } = getReportRow(tx, org, slug);
    countChange(ctx, tx, id, () => {
      tx.update(reports).set({ status }).where(eq(reports.id, id)).run();
    });
    recordAudit(ctx, org, "report.updated", { id, name: slug }, changesOf({ status: before }, { status }));
  });
  return getReport(ctx, org, slug);
}

function readReport(ctx: Context, org: OrgId, slug: string): Report {
  const row = reportBySlug(ctx.db).get({ org, slug });
  if (!row) throw reportNotFound(slug);
  const { report, details, id, createdAt, run, prompt, provider } = row;
  const frictionPoints = frictionOfReport(ctx, org, id, run);
  const frictionById = new Map(frictionPoints.map((point) => [point.id, point]));
  const fixes = fixesOfReport(ctx.db).all({ reportId: id });
  const fingerprintOf = (id: string) => frictionById.get(id)?.fingerprint ?? "";
  const fingerprintsByFix = fixes.map(({ frictionIds }) => frictionIds.map(fingerprintOf));
  const doneFixes = doneFixesOf(ctx, org, prompt.id, fingerprintsByFix);
  const reportWithoutBaseline = {
    ...toRunReport(report, reportUrl(ctx.baseUrl(), slug)),
    createdAt: toIso(createdAt),
    run: {
      runId: run.id,
      ...runUrls(ctx.baseUrl(), run.id),
      evalRequestId: run.evalRequestId,
      attempt: run.attempt,
      urlMap: withoutUrlMapTokens(run.urlMap),
      ...(run.task.edits && { edits: run.task.edits }),
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
    ...details,
    calibration: findCalibration(ctx, org, { agent: run.agent, model: run.model, methodology: report.methodology.id }),
    frictionPoints,
    recommendations: fixes.map(({ orgId: _orgId, reportId: _reportId, ...recommendation }, i) => {
      const dismissals = recommendation.frictionIds.map((id) => frictionById.get(id)?.dismissed ?? null);
      // A fix counts as dismissed if all friction that it removes is dismissed.
      const dismissed = dismissals.includes(null) ? null : (dismissals[0] ?? null);
      return { ...recommendation, done: doneFixes[i] ?? null, dismissed };
    }),
  };
  return { ...reportWithoutBaseline, baseline: baselineOfReport(ctx, org, reportWithoutBaseline) };
}
