import { createHash } from "node:crypto";
import { and, asc, eq, exists, gt, gte, inArray, isNull, lt, lte, notExists, or, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import { version } from "../../package.json" with { type: "json" };
import { firstIdOf } from "../db/rows.ts";
import {
  evalRequests,
  fixes,
  gates,
  namedPages,
  orgs,
  prompts,
  providers,
  regrades,
  runs,
  sessionEvents,
} from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Models } from "../models/models.ts";
import type { Reports } from "../reports/reports.ts";
import type { Report } from "../reports/schema.ts";
import { redactKeys, redactSecrets, toInstant } from "../schema.ts";
import { createFormats } from "./formats.ts";
import { columnsOf, formatVersion, type RowType, rowTypes, shapes } from "./rows.ts";
import type { ExportFilter } from "./schema.ts";
import { inSpan, type Span } from "./span.ts";

/** Rows that are read at once. */
const pageRows = 200;

type Parts = { reports: Reports; models: Pick<Models, "secretsOf">; toMarkdown: (report: Report) => string };
type Row = Record<string, unknown>;
type Told = [type: RowType, row: Row];

export type Exports = ReturnType<typeof createExports>;

/** What an organisation has, as a file: line by line, so that neither its size nor writes that go on meanwhile matter. */
export function createExports(deps: Pick<Deps, "db" | "now">, { reports: ofReports, models, toMarkdown }: Parts) {
  const { db, now } = deps;
  const formats = createFormats(deps, ofReports, toMarkdown);

  /** A list a page at a time: `read` answers with the rows after one, or with the first. */
  function* paged(type: RowType, read: (last: Row) => Row[], first: Row = { id: "" }): Generator<Told> {
    for (let last = first; ; ) {
      const page = read(last);
      for (const row of page) yield [type, row];
      if (page.length < pageRows) return;
      last = page.at(-1) as Row;
    }
  }

  const runsOf = (evalRequestId: SQLiteColumn, more: SQL | undefined) =>
    db
      .select({ id: runs.id })
      .from(runs)
      .where(and(eq(runs.evalRequestId, evalRequestId), more));
  /** Whether an evaluation has a run that is exported. */
  const isTold = (span: Span, id: SQLiteColumn) => exists(runsOf(id, inSpan(span)));
  /** Whether all of its runs are. */
  const isWhole = (span: Span, id: SQLiteColumn) =>
    and(isTold(span, id), notExists(runsOf(id, sql`(${inSpan(span)}) is not true`)));

  /** What stands in a file in the order of its ids, and which of it belongs to an export. */
  const chosen = {
    provider: ({ promptId }: Span) =>
      promptId === null
        ? undefined
        : inArray(
            providers.id,
            db.select({ id: prompts.targetProviderId }).from(prompts).where(eq(prompts.id, promptId)),
          ),
    prompt: ({ promptId }: Span) => (promptId === null ? undefined : eq(prompts.id, promptId)),
    eval_request: (span: Span) => isTold(span, evalRequests.id),
    fix: (span: Span) => and(isTold(span, fixes.beforeId), isTold(span, fixes.afterId)),
    gate: (span: Span) =>
      and(
        lte(gates.decidedAt, span.endedBy),
        isWhole(span, gates.headRequestId),
        or(isNull(gates.baseRequestId), isWhole(span, gates.baseRequestId)),
      ),
    regrade: ({ promptId, from, to, endedBy }: Span) =>
      and(
        lte(regrades.completedAt, endedBy),
        gte(regrades.id, from),
        lt(regrades.id, to),
        promptId === null ? undefined : eq(regrades.promptId, promptId),
      ),
    run: inSpan,
  };

  function listed(type: keyof typeof chosen, span: Span): Generator<Told> {
    const table = shapes[type].table as typeof runs;
    const where = and(eq(table.orgId, span.org), chosen[type](span));
    return paged(type, ({ id }) =>
      db
        .select()
        .from(table)
        .where(and(where, gt(table.id, String(id))))
        .orderBy(asc(table.id))
        .limit(pageRows)
        .all(),
    );
  }

  /** Pages that the docs named to the runs of a prompt. */
  function namedOf({ org, promptId: only }: Span): Generator<Told> {
    const { orgId, promptId, page } = namedPages;
    const own = and(eq(orgId, org), only === null ? undefined : eq(promptId, only));
    const read = (last: Row) =>
      db
        .select()
        .from(namedPages)
        .where(and(own, sql`(${promptId}, ${page}) > (${last.promptId}, ${last.page})`))
        .orderBy(asc(promptId), asc(page))
        .limit(pageRows)
        .all();
    return paged("named_page", read, { promptId: "", page: "" });
  }

  // Made once: for each run anew that would take longer than all reading.
  const id = sql.placeholder("id");
  const ownOf = (type: "artefact" | "report" | (typeof ofReport)[number]) => {
    const { table, of, order } = shapes[type];
    const made = db
      .select()
      .from(table as SQLiteTable)
      .where(eq(of, id))
      .orderBy(...order.map((column) => asc(column)))
      .prepare();
    return (owner: unknown): Told[] => made.all({ id: owner }).map((row) => [type, row]);
  };
  const ofReport = ["reach", "friction_point", "recommendation", "grading"] as const;
  const [artefactsOf, reportOf] = [ownOf("artefact"), ownOf("report")];
  const partsOf = ofReport.map(ownOf);
  const { runId, attempt, seq } = sessionEvents;
  const nextEvents = db
    .select()
    .from(sessionEvents)
    .where(and(eq(runId, id), sql`(${attempt}, ${seq}) > (${sql.placeholder("attempt")}, ${sql.placeholder("seq")})`))
    .orderBy(asc(attempt), asc(seq))
    .limit(pageRows)
    .prepare();

  /** A report with all that belongs to it, as it is at one moment. */
  const reportParts = db.$client.transaction((run: unknown): Told[] =>
    reportOf(run).flatMap((report) => [report, ...partsOf.flatMap((list) => list(report[1].id))]),
  );

  function* told(span: Span): Generator<Told> {
    yield* listed("provider", span);
    yield* listed("prompt", span);
    yield* namedOf(span);
    yield* listed("eval_request", span);
    yield* listed("fix", span);
    yield* listed("gate", span);
    yield* listed("regrade", span);
    for (const run of listed("run", span)) {
      yield run;
      const { id } = run[1];
      yield* paged("event", ({ attempt, seq }) => nextEvents.all({ id, attempt, seq }), { attempt: -1, seq: -1 });
      yield* artefactsOf(id);
      yield* reportParts(id);
    }
  }

  /** A line a row, between one that says what this is and one that proves it whole. */
  function* lines(span: Span, organisation: string): Generator<string> {
    const secrets = models.secretsOf(span.org).map((secret) => JSON.stringify(secret).slice(1, -1));
    const exportedAt = new Date(span.endedBy).toISOString();
    yield `${JSON.stringify({ type: "evald export", version: formatVersion, evald: version, organisation, exportedAt })}\n`;
    const hash = createHash("sha256");
    let rows = 0;
    const columns = new Map(rowTypes.map((type) => [type, columnsOf(type).map(([name]) => name)]));
    for (const [type, row] of told(span)) {
      const kept: Record<string, unknown> = {};
      for (const name of columns.get(type) ?? [])
        kept[name] = Buffer.isBuffer(row[name]) ? row[name].toString("base64") : row[name];
      const baseline = kept.baselineRequestId;
      if (typeof baseline === "string" && (baseline < span.from || baseline >= span.to)) kept.baselineRequestId = null;
      // No secret should stand in what is stored; what a person wrote into a prompt is another thing.
      const line = `${redactSecrets(redactKeys(JSON.stringify({ type, row: kept })), secrets)}\n`;
      hash.update(line);
      rows++;
      yield line;
    }
    yield `${JSON.stringify({ type: "end", rows, sha256: hash.digest("hex") })}\n`;
  }

  return {
    /** The text of an export, in pieces. What ended before it began is in it, once. Throws bad_request, not_found before the first piece. */
    exportOrg(org: OrgId, filter: ExportFilter): Iterable<string> {
      const { format = "jsonl", since, until, minScore } = filter;
      const promptId = filter.promptId?.toLowerCase() ?? null;
      const own = and(eq(prompts.orgId, org), eq(prompts.id, promptId ?? ""));
      if (promptId !== null && !db.select({ id: prompts.id }).from(prompts).where(own).get())
        throw notFound(`no prompt has the id ${filter.promptId}`);
      if (minScore !== undefined && format !== "junit")
        throw badRequest("minScore: only the format junit tells what fails; leave it out");
      const endedBy = now();
      const from = since === undefined ? "" : firstIdOf(toInstant("since", since));
      const to = until === undefined ? "g" : firstIdOf(toInstant("until", until));
      const span = { org, promptId, from, to, endedBy };
      if (format === "csv") return formats.csv(span);
      if (format === "junit") return formats.junit(span, minScore ?? null);
      if (format === "markdown") return formats.markdown(span);
      const name = db.select({ name: orgs.name }).from(orgs).where(eq(orgs.id, org)).get()?.name ?? "";
      return lines(span, name);
    },
  };
}
