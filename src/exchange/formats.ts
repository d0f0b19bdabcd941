import { and, asc, count, eq, gt, inArray, isNull, ne, or, type SQL, sql } from "drizzle-orm";
import { frictionPoints, prompts, reports, runs } from "../db/tables.ts";
import type { Deps } from "../deps.ts";
import { line } from "../grading/words.ts";
import type { Reports } from "../reports/reports.ts";
import type { Report } from "../reports/schema.ts";
import { dimensionNames } from "../weights.ts";
import { inSpan, type Span } from "./span.ts";

const pageRows = 200;

/** Reports for programs that know no evald: a table, a test result, a text. */
export function createFormats({ db }: Pick<Deps, "db">, ofReports: Reports, toMarkdown: (report: Report) => string) {
  const selected = () =>
    db
      .select({
        run: runs,
        report: reports,
        title: prompts.title,
        frictions: sql<number>`(select count(*) from ${frictionPoints} where ${frictionPoints.reportId} = ${reports.id})`,
      })
      .from(runs)
      .innerJoin(prompts, eq(prompts.id, runs.promptId))
      .leftJoin(reports, eq(reports.runId, runs.id));

  /** Runs with their reports, oldest first. Runs that gave way to others are nobody's result. */
  function* results(span: Span, more?: SQL) {
    const ended = and(inArray(runs.status, ["completed", "failed"]), more);
    for (let after = ""; ; ) {
      const page = selected()
        .where(and(inSpan(span), ended, gt(runs.id, after)))
        .orderBy(asc(runs.id))
        .limit(pageRows)
        .all();
      yield* page;
      after = page.at(-1)?.run.id ?? "";
      if (page.length < pageRows) return;
    }
  }

  function* csv(span: Span): Generator<string> {
    yield toCsv(csvHeading);
    for (const { run, report, title, frictions } of results(span)) {
      if (report === null) continue;
      const { metrics: m, methodology } = report;
      yield toCsv([
        ...[report.slug, new Date(report.createdAt).toISOString(), report.status, run.promptId, title],
        ...[run.id, run.evalRequestId, run.agent, run.agentVersion, run.model, JSON.stringify(run.urlMap)],
        ...[report.outcome, report.score, report.grade, report.coverage],
        ...[methodology.id, methodology.hash, methodology.judge],
        ...[m.timeSeconds, m.costUsd, m.errors, m.toolCalls, m.interruptions, frictions],
        ...dimensionNames.map((name) => report.dimensions.find((each) => each.name === name)?.score ?? null),
        report.keyFinding,
      ]);
    }
  }

  /** A suite a prompt, a case a run, but for those whose report a person has put away. A goal that was missed and a score below the bar are failures; no report, or none with a score, is an error. */
  function* junit(span: Span, minScore: number | null): Generator<string> {
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="evald">\n';
    const counts = or(isNull(reports.status), ne(reports.status, "archived"));
    const isError = sql`(${runs.status} = 'failed' or ${reports.score} is null)`;
    const isFailure = sql`(not ${isError} and (${reports.outcome} = 'goal_not_met' or ${reports.score} < ${minScore ?? 0}))`;
    const suites = db
      .select({
        promptId: runs.promptId,
        tests: count(),
        errors: sql<number>`sum(${isError})`,
        failures: sql<number>`sum(${isFailure})`,
      })
      .from(runs)
      .leftJoin(reports, eq(reports.runId, runs.id))
      .where(and(inSpan(span), inArray(runs.status, ["completed", "failed"]), counts))
      .groupBy(runs.promptId)
      .orderBy(asc(runs.promptId))
      .all();
    for (const { promptId, tests, errors, failures } of suites) {
      const prompt = db
        .select({ title: prompts.title, text: prompts.text })
        .from(prompts)
        .where(eq(prompts.id, promptId))
        .get();
      const name = line(prompt?.title ?? prompt?.text, 200);
      yield `  <testsuite${attributes({ name, tests, failures, errors, skipped: 0 })}>\n`;
      for (const { run, report } of results({ ...span, promptId }, counts)) yield toCase(run, report, minScore);
      yield "  </testsuite>\n";
    }
    yield "</testsuites>\n";
  }

  function* markdown(span: Span): Generator<string> {
    let first = true;
    for (const { report } of results(span)) {
      if (report === null) continue;
      yield `${first ? "" : "\n---\n\n"}${toMarkdown(ofReports.getReport(span.org, report.slug))}`;
      first = false;
    }
  }

  return { csv, junit, markdown };
}

const csvHeading = [
  ...["slug", "createdAt", "status", "promptId", "promptTitle", "runId", "evalRequestId", "agent", "agentVersion"],
  ...["model", "urlMap", "outcome", "score", "grade", "coverage", "methodology", "methodologyHash", "judge"],
  ...["timeSeconds", "costUsd", "errors", "toolCalls", "interruptions", "frictionPoints"],
  ...dimensionNames,
  "keyFinding",
];

/** RFC 4180. A text that a spreadsheet would take for a formula begins with an apostrophe (OWASP, CSV injection). */
function toCsv(values: readonly (string | number | null | undefined)[]): string {
  const cells = values.map((value) => {
    const text = typeof value === "string" && /^[=+\-@＝＋－＠\t\r\n]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${cells.join(",")}\r\n`;
}

function toCase(
  run: typeof runs.$inferSelect,
  report: typeof reports.$inferSelect | null,
  minScore: number | null,
): string {
  const classname = [run.agent, run.model].filter(Boolean).join(" ");
  const time = report?.metrics.timeSeconds ?? 0;
  const open = `    <testcase${attributes({ name: report?.slug ?? run.id, classname, time })}`;
  const [kind, type, message] = verdictOf(run, report, minScore);
  if (kind === null) return `${open}/>\n`;
  const about = report === null ? "" : escaped(report.verdict);
  return `${open}>\n      <${kind}${attributes({ type, message })}>${about}</${kind}>\n    </testcase>\n`;
}

function verdictOf(
  run: typeof runs.$inferSelect,
  report: typeof reports.$inferSelect | null,
  minScore: number | null,
): [kind: "error" | "failure" | null, type: string, message: string] {
  const reason = run.failureReason ?? "";
  if (report === null) return ["error", reason.split(":")[0] ?? "", reason];
  if (report.score === null) return ["error", report.outcome, report.nullNotice ?? ""];
  if (report.outcome === "goal_not_met") return ["failure", report.outcome, report.keyFinding];
  if (minScore !== null && report.score < minScore)
    return ["failure", "score", `The score of ${report.score} is below ${minScore}. ${report.keyFinding}`];
  return [null, "", ""];
}

const attributes = (values: Record<string, string | number>): string =>
  Object.entries(values)
    .map(([name, value]) => ` ${name}="${escaped(String(value))}"`)
    .join("");

/** Text for XML 1.0, in which most control characters cannot stand at all. */
const escaped = (text: string): string =>
  text
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not stand there
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"\t\n\r]/g, (char) => `&#${char.charCodeAt(0)};`);
