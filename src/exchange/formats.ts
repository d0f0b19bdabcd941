import { and, asc, eq, gt, inArray, isNull, ne, or, type SQL, sql } from "drizzle-orm";
import { toFailureReason } from "../agents/failure.ts";
import { dimensionNames } from "../config/weights.ts";
import type { Context } from "../context.ts";
import { frictionPoints } from "../db/tables/friction.ts";
import { prompts } from "../db/tables/prompts.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import type { Scope } from "../grading/grade.ts";
import { toCsv } from "../http/csv.ts";
import { toXmlAttributes, toXmlText } from "../http/xml.ts";
import { withoutUrlMapTokens } from "../net/mapping.ts";
import { titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import { reportMarkdown } from "../reports/markdown.ts";
import type { ReportRow } from "../reports/report-row.ts";
import { getReport } from "../reports/reports.ts";
import type { RunRow } from "../runs/run-row.ts";
import { toIso } from "../schema.ts";
import { inSpan, type Span } from "./reading.ts";

const pageRows = 200;

/** The lowest score that passes, and the scope that the score must have. */
export type SuccessBar = { minScore: number; scope: Scope };

/** The reports of an export as CSV, with a heading and one row each. */
export function* exportCsv(ctx: Context, span: Span): Generator<string> {
  yield toCsv(csvColumns.map(([name]) => name));
  for (const { report, ...others } of results(ctx, span))
    if (report !== null) yield toCsv(csvColumns.map(([, toCell]) => toCell({ report, ...others })));
}

/**
 * One test suite per prompt and one case per run. Archived reports are left out. A missed goal or a score below the bar is a failure. A missing
 * report, a missing score or a score of another scope is an error.
 */
export function* exportJunit(ctx: Context, span: Span, bar: SuccessBar | null): Generator<string> {
  yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="evald">\n';
  const whereNotArchived = or(isNull(reports.status), ne(reports.status, "archived"));
  const suites = new Map<string, { tests: number; errors: number; failures: number }>();
  // The counts of a suite come before its cases, so the results are read twice.
  for (const { run, report } of results(ctx, span, whereNotArchived)) {
    const suite = suites.get(run.promptId) ?? { tests: 0, errors: 0, failures: 0 };
    suites.set(run.promptId, suite);
    suite.tests++;
    const problem = problemOf(run, report, bar);
    if (problem?.kind === "error") suite.errors++;
    if (problem?.kind === "failure") suite.failures++;
    // There is nothing to send yet, but other work may run in between.
    yield "";
  }
  for (const [promptId, { tests, errors, failures }] of [...suites].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const prompt = ctx.db
      .select({ title: prompts.title, text: titleText })
      .from(prompts)
      .where(eq(prompts.id, promptId))
      .get();
    const name = prompt ? titleOf(prompt) : "";
    yield `  <testsuite${toXmlAttributes({ name, tests, failures, errors, skipped: 0 })}>\n`;
    for (const { run, report } of results(ctx, { ...span, promptId }, whereNotArchived)) yield toCase(run, report, bar);
    yield "  </testsuite>\n";
  }
  yield "</testsuites>\n";
}

/** The reports of an export as one Markdown document. */
export function* exportMarkdown(ctx: Context, span: Span): Generator<string> {
  let separator = "";
  for (const { report } of results(ctx, span)) {
    if (report === null) continue;
    yield separator + reportMarkdown(getReport(ctx, span.org, report.slug));
    separator = "\n---\n\n";
  }
}

const selectResults = (ctx: Context) =>
  ctx.db
    .select({
      run: runs,
      report: reports,
      title: prompts.title,
      frictions: sql<number>`(select count(*) from ${frictionPoints} where ${frictionPoints.reportId} = ${reports.id})`,
    })
    .from(runs)
    .innerJoin(prompts, eq(prompts.id, runs.promptId))
    .leftJoin(reports, eq(reports.runId, runs.id));

/** Runs with their reports, oldest first, without superseded runs. */
function* results(ctx: Context, span: Span, where?: SQL) {
  const whereEnded = and(inArray(runs.status, ["completed", "failed"]), where);
  for (let after = ""; ; ) {
    const page = selectResults(ctx)
      .where(and(inSpan(span), whereEnded, gt(runs.id, after)))
      .orderBy(asc(runs.id))
      .limit(pageRows)
      .all();
    yield* page;
    after = page.at(-1)?.run.id ?? "";
    if (page.length < pageRows) return;
  }
}

type ReportResult = { run: RunRow; report: ReportRow; title: string | null; frictions: number };

type CsvColumn = [name: string, toCell: (result: ReportResult) => string | number | null];

const csvColumns: CsvColumn[] = [
  ["slug", ({ report }) => report.slug],
  ["createdAt", ({ report }) => toIso(report.createdAt)],
  ["status", ({ report }) => report.status],
  ["promptId", ({ run }) => run.promptId],
  ["promptTitle", ({ title }) => title],
  ["runId", ({ run }) => run.id],
  ["evalRequestId", ({ run }) => run.evalRequestId],
  ["agent", ({ run }) => run.agent],
  ["agentVersion", ({ run }) => run.agentVersion],
  ["model", ({ run }) => run.model],
  ["urlMap", ({ run }) => JSON.stringify(withoutUrlMapTokens(run.urlMap))],
  ["outcome", ({ report }) => report.outcome],
  ["score", ({ report }) => report.score],
  ["scope", ({ report }) => report.scope],
  ["grade", ({ report }) => report.grade],
  ["coverage", ({ report }) => report.coverage],
  ["methodology", ({ report }) => report.methodology.id],
  ["methodologyHash", ({ report }) => report.methodology.hash],
  ["judge", ({ report }) => report.methodology.judge],
  ["timeSeconds", ({ report }) => report.metrics.timeSeconds],
  ["costUsd", ({ report }) => report.metrics.costUsd],
  ["errors", ({ report }) => report.metrics.errors],
  ["toolCalls", ({ report }) => report.metrics.toolCalls],
  ["interruptions", ({ report }) => report.metrics.interruptions],
  ["frictionPoints", ({ frictions }) => frictions],
  ...dimensionNames.map(
    (name): CsvColumn => [
      name,
      ({ report }) => report.dimensions.find((dimension) => dimension.name === name)?.score ?? null,
    ],
  ),
  ["keyFinding", ({ report }) => report.keyFinding],
];

function toCase(run: RunRow, report: ReportRow | null, bar: SuccessBar | null): string {
  const classname = [run.agent, run.model].filter(Boolean).join(" ");
  const time = report?.metrics.timeSeconds ?? 0;
  const open = `    <testcase${toXmlAttributes({ name: report?.slug ?? run.id, classname, time })}`;
  const problem = problemOf(run, report, bar);
  if (problem === null) return `${open}/>\n`;
  const { kind, type, message } = problem;
  const description = report === null ? "" : toXmlText(report.verdict);
  return `${open}>\n      <${kind}${toXmlAttributes({ type, message })}>${description}</${kind}>\n    </testcase>\n`;
}

type Problem = { kind: "error" | "failure"; type: string; message: string };

/** Why a case isn't a success; null if it is one. */
function problemOf(run: RunRow, report: ReportRow | null, bar: SuccessBar | null): Problem | null {
  if (report === null) return { kind: "error", type: run.failureCause ?? "", message: toFailureReason(run) ?? "" };
  const { outcome, score, scope, nullNotice, keyFinding } = report;
  if (score === null) return { kind: "error", type: outcome, message: nullNotice ?? "" };
  if (outcome === "goal_not_met") return { kind: "failure", type: outcome, message: keyFinding };
  if (bar === null) return null;
  if (scope !== bar.scope) {
    const message = `minScore applies to scores of scope ${bar.scope}, but this one has scope ${scope}.`;
    return { kind: "error", type: "scope", message };
  }
  if (score >= bar.minScore) return null;
  return { kind: "failure", type: "score", message: `Score ${score} is below ${bar.minScore}. ${keyFinding}` };
}
