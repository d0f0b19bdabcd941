import { and, asc, desc, eq, inArray, sql } from "drizzle-orm";
import { toFailureReason } from "../agents/failure.ts";
import { toRunFailure } from "../agents/remedies.ts";
import type { Context, OrgId } from "../context.ts";
import type { Db } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import { bound, prepared, statement } from "../db/prepared.ts";
import { attempts, jobs } from "../db/tables/jobs.ts";
import { prompts } from "../db/tables/prompts.ts";
import { reports, runCounts } from "../db/tables/reports.ts";
import { type RunTask, runs } from "../db/tables/runs.ts";
import { notFound } from "../errors.ts";
import { gradeLetter } from "../grading/methodology.ts";
import type { Page, Paged } from "../http/paging.ts";
import { promptSummaryColumns, toPromptSummary } from "../prompts/lists.ts";
import { attemptsWithOutput } from "../reports/artifacts.ts";
import { reportUrl, runUrls } from "../reports/links.ts";
import { runReportColumns, toRunReport } from "../reports/reports.ts";
import type { RunReport } from "../reports/schema.ts";
import { toIso } from "../schema.ts";
import type { ApiRunFilter } from "./run-conditions.ts";
import { getRunRow, runNotFound } from "./run-row.ts";
import type { Attempt, Run } from "./schema.ts";

export type RequestedTask = { task: RunTask; urlMap: Record<string, string> };

const columns = {
  run: {
    id: runs.id,
    status: runs.status,
    failureCause: runs.failureCause,
    failureCode: runs.failureCode,
    failureSubject: runs.failureSubject,
    promptId: runs.promptId,
    failureDetail: runs.failureDetail,
    templateArgs: runs.templateArgs,
    agent: runs.agent,
    agentVersion: runs.agentVersion,
    contextDigest: runs.contextDigest,
    model: runs.model,
    evalRequestId: runs.evalRequestId,
    attempt: runs.attempt,
    createdAt: runs.createdAt,
    startedAt: runs.startedAt,
    completedAt: runs.completedAt,
    waitingFor: runs.waitingFor,
  },
  prompt: promptSummaryColumns,
  promptSettings: { successBar: prompts.successBar },
  report: runReportColumns,
};

/** A report whose goal was not tested succeeds if its score passes the bar of its prompt. A report without a score doesn't pass. */
function withSuccessBar(
  report: RunReport,
  successBar: NonNullable<Run["report"]>["passedBar"],
): NonNullable<Run["report"]> {
  const { outcome, score, scope } = report;
  const isMeasured = outcome === "not_judged" && score !== null && scope === successBar?.scope;
  const passes = isMeasured && score >= successBar.minScore;
  // The report is changed in place, because copies take time in a long list.
  const result = report as NonNullable<Run["report"]>;
  if (passes) result.outcome = "succeeded";
  result.passedBar = passes ? successBar : null;
  return result;
}

/**
 * A run for clients that were not written for evald. They take a report without a grade for an unfinished one. So if the score passed the bar of its
 * prompt, the report gets the grade of that score.
 */
export function withGradeOfBar(run: Run): Run {
  const { report } = run;
  if (report?.score == null || report.passedBar === null) return run;
  return { ...run, report: { ...report, grade: gradeLetter(report.score), nullNotice: null } };
}

/** The queries of a page. There is one for each combination of filters. */
const pageQueries = perConnection((db: Db) => ({
  all: preparePageQueries(db, { promptId: false, reportStatus: false }),
  promptId: preparePageQueries(db, { promptId: true, reportStatus: false }),
  reportStatus: preparePageQueries(db, { promptId: false, reportStatus: true }),
  both: preparePageQueries(db, { promptId: true, reportStatus: true }),
}));

const runById = statement((db) => selectRuns(db).where(and(eq(runs.orgId, bound("org")), eq(runs.id, bound("id")))));

type RunWithReport = ReturnType<ReturnType<typeof selectRuns>["all"]>[number];

/** Throws not_found. */
export function getRun(ctx: Context, org: OrgId, id: string): Run {
  const row = runById(ctx.db).get({ org, id: id.toLowerCase() });
  if (!row) throw runNotFound(id);
  return toRun(ctx, row);
}

/** The task of a run, as it was accepted. Values of `urlMap` may hold tokens. Throws not_found. */
export function getRunTask(ctx: Context, org: OrgId, id: string): RequestedTask {
  const { task, urlMap } = getRunRow(ctx, org, id);
  return { task, urlMap };
}

/** The number of runs of a prompt, or in total. */
export const countRuns = (ctx: Context, org: OrgId, promptId?: string): number =>
  pageQueries(ctx.db)[promptId ? "promptId" : "all"].total.get({ org, promptId, countedStatus: "any" })?.n ?? 0;

/** Newest first. */
export function listRuns(
  ctx: Context,
  org: OrgId,
  { promptId, reportStatus }: ApiRunFilter,
  { limit, offset }: Page,
): Paged<Run> {
  const queries = pageQueries(ctx.db)[filtersIn({ promptId, reportStatus })];
  const values = {
    org,
    limit,
    offset,
    promptId: promptId?.toLowerCase(),
    reportStatus,
    countedStatus: reportStatus ?? "any",
  };
  return { items: queries.rows.all(values).map((each) => toRun(ctx, each)), total: queries.total.get(values)?.n ?? 0 };
}

function filtersIn({ promptId, reportStatus }: ApiRunFilter): "all" | "promptId" | "reportStatus" | "both" {
  if (promptId && reportStatus) return "both";
  if (promptId) return "promptId";
  return reportStatus ? "reportStatus" : "all";
}

/** The attempts of a run, oldest first. Throws not_found. */
export function listAttempts(ctx: Context, org: OrgId, id: string): Attempt[] {
  const run = getRunRow(ctx, org, id);
  const job = ctx.db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.kind, "run"), eq(jobs.subject, run.id)));
  const withOutput = attemptsWithOutput(ctx, run.id);
  return ctx.db
    .select({
      attempt: attempts.attempt,
      startedAt: attempts.startedAt,
      completedAt: attempts.completedAt,
      outcome: attempts.outcome,
      reason: attempts.reason,
      costUsd: attempts.costUsd,
    })
    .from(attempts)
    .where(inArray(attempts.jobId, job))
    .orderBy(asc(attempts.attempt))
    .all()
    .map(({ startedAt, completedAt, ...rest }) => ({
      ...rest,
      startedAt: toIso(startedAt),
      completedAt: toIso(completedAt),
      hasOutput: withOutput.has(rest.attempt),
    }));
}

/** One attempt of a run. Throws not_found. */
export function getAttempt(ctx: Context, org: OrgId, id: string, attempt: number): Attempt {
  const row = listAttempts(ctx, org, id).find((each) => each.attempt === attempt);
  if (!row) throw notFound(`The run has no attempt ${attempt}.`);
  return row;
}

const selectRuns = (db: Db) =>
  db
    .select(columns)
    .from(runs)
    .innerJoin(prompts, eq(prompts.id, runs.promptId))
    .leftJoin(reports, eq(reports.runId, runs.id));

/** One index alone selects the IDs of a page. Only the rows of these IDs are joined, however deep the page is. */
function preparePageQueries(db: Db, { promptId, reportStatus }: { promptId: boolean; reportStatus: boolean }) {
  const ids = reportStatus
    ? db
        .select({ id: reports.runId })
        .from(reports)
        .where(
          and(
            eq(reports.orgId, bound("org")),
            eq(reports.status, bound("reportStatus")),
            promptId ? eq(reports.promptId, bound("promptId")) : undefined,
          ),
        )
        .orderBy(desc(reports.runId))
    : db
        .select({ id: runs.id })
        .from(runs)
        .where(and(eq(runs.orgId, bound("org")), promptId ? eq(runs.promptId, bound("promptId")) : undefined))
        .orderBy(desc(runs.id));
  const total = db
    .select({ n: sql<number>`coalesce(sum(${runCounts.count}), 0)` })
    .from(runCounts)
    .where(
      and(
        eq(runCounts.orgId, bound("org")),
        eq(runCounts.reportStatus, bound("countedStatus")),
        promptId ? eq(runCounts.promptId, bound("promptId")) : undefined,
      ),
    );
  const pageIds = ids.limit(bound("limit")).offset(bound("offset"));
  return {
    rows: prepared(selectRuns(db).where(inArray(runs.id, pageIds)).orderBy(desc(runs.id))),
    total: prepared(total),
  };
}

function toRun(ctx: Context, { run, prompt, promptSettings, report }: RunWithReport): Run {
  const { statusUrl, runUrl } = runUrls(ctx.baseUrl(), run.id);
  return {
    runId: run.id,
    status: run.status,
    report:
      report && withSuccessBar(toRunReport(report, reportUrl(ctx.baseUrl(), report.slug)), promptSettings.successBar),
    statusUrl,
    runUrl,
    completedAt: toIso(run.completedAt),
    createdAt: toIso(run.createdAt),
    failureReason: toFailureReason(run),
    failure: toRunFailure(ctx.baseUrl(), run),
    templateArgs: run.templateArgs,
    prompt: toPromptSummary(prompt),
    agent: { id: run.agent, version: run.agentVersion, model: run.model, contextDigest: run.contextDigest },
    evalRequestId: run.evalRequestId,
    startedAt: toIso(run.startedAt),
    attempt: run.attempt,
    waitingFor: run.waitingFor && {
      ...run.waitingFor,
      labels: [...run.waitingFor.labels],
      failsAt: toIso(run.waitingFor.failsAt),
    },
  };
}
