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
import { getReport } from "../reports/reports.ts";
import { toIso } from "../schema.ts";
import { inSpan, type Span } from "./reading.ts";

const pageRows = 200;
/** Runs counted at once. */
const countedRows = 2000;

/** The lowest score that passes, and the scope that it must have. */
export type SuccessBar = { minScore: number; scope: Scope };

/** The reports of an export as CSV, with a heading and one row each. */
export function* exportCsv(ctx: Context, span: Span): Generator<string> {
  yield toCsv(csvHeading);
  for (const { run, report, title, frictions } of results(ctx, span)) {
    if (report === null) continue;
    const { metrics, methodology } = report;
    yield toCsv([
      ...[report.slug, toIso(report.createdAt), report.status, run.promptId, title],
      ...[
        run.id,
        run.evalRequestId,
        run.agent,
        run.agentVersion,
        run.model,
        JSON.stringify(withoutUrlMapTokens(run.urlMap)),
      ],
      ...[report.outcome, report.score, report.scope, report.grade, report.coverage],
      ...[methodology.id, methodology.hash, methodology.judge],
      ...[metrics.timeSeconds, metrics.costUsd, metrics.errors, metrics.toolCalls, metrics.interruptions, frictions],
      ...dimensionNames.map((name) => report.dimensions.find((each) => each.name === name)?.score ?? null),
      report.keyFinding,
    ]);
  }
}

/** One test suite per prompt, one case per run, without archived reports. A missed goal or a score below the bar is a failure; a missing report or score, or a score of another scope, is an error. */
export function* exportJunit(ctx: Context, span: Span, bar: SuccessBar | null): Generator<string> {
  yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="evald">\n';
  const whereNotArchived = or(isNull(reports.status), ne(reports.status, "archived"));
  const isMissed = sql`(${reports.outcome} = 'goal_not_met')`;
  const isOtherScope = bar === null ? sql`false` : sql`(not ${isMissed} and ${reports.scope} <> ${bar.scope})`;
  const isError = sql<number>`(${runs.status} = 'failed' or ${reports.score} is null or ${isOtherScope})`;
  const isFailure = sql<number | null>`(not ${isError} and (${isMissed} or ${reports.score} < ${bar?.minScore ?? 0}))`;
  const ofCase = ctx.db
    .select({ id: runs.id, promptId: runs.promptId, error: isError, failure: isFailure })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id));
  const suites = new Map<string, { tests: number; errors: number; failures: number }>();
  for (let after = "", rows = countedRows; rows === countedRows; ) {
    const page = ofCase
      .where(and(inSpan(span), inArray(runs.status, ["completed", "failed"]), whereNotArchived, gt(runs.id, after)))
      .orderBy(asc(runs.id))
      .limit(countedRows)
      .all();
    for (const { promptId, error, failure } of page) {
      const suite = suites.get(promptId) ?? { tests: 0, errors: 0, failures: 0 };
      suites.set(promptId, suite);
      suite.tests++;
      suite.errors += error;
      suite.failures += failure ?? 0;
    }
    rows = page.length;
    after = page.at(-1)?.id ?? after;
    // Nothing to send yet: the heads of the suites come first.
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
function* results(ctx: Context, span: Span, more?: SQL) {
  const whereEnded = and(inArray(runs.status, ["completed", "failed"]), more);
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

const csvHeading = [
  ...["slug", "createdAt", "status", "promptId", "promptTitle", "runId", "evalRequestId", "agent", "agentVersion"],
  ...["model", "urlMap", "outcome", "score", "scope", "grade", "coverage", "methodology", "methodologyHash", "judge"],
  ...["timeSeconds", "costUsd", "errors", "toolCalls", "interruptions", "frictionPoints"],
  ...dimensionNames,
  "keyFinding",
];

function toCase(
  run: typeof runs.$inferSelect,
  report: typeof reports.$inferSelect | null,
  bar: SuccessBar | null,
): string {
  const classname = [run.agent, run.model].filter(Boolean).join(" ");
  const time = report?.metrics.timeSeconds ?? 0;
  const open = `    <testcase${toXmlAttributes({ name: report?.slug ?? run.id, classname, time })}`;
  const problem = problemOf(run, report, bar);
  if (problem === null) return `${open}/>\n`;
  const { kind, type, message } = problem;
  const description = report === null ? "" : toXmlText(report.verdict);
  return `${open}>\n      <${kind}${toXmlAttributes({ type, message })}>${description}</${kind}>\n    </testcase>\n`;
}

/** Why a case isn't a success; null if it is one. */
function problemOf(
  run: typeof runs.$inferSelect,
  report: typeof reports.$inferSelect | null,
  bar: SuccessBar | null,
): { kind: "error" | "failure"; type: string; message: string } | null {
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
