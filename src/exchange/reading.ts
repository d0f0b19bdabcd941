import { and, asc, eq, exists, gt, gte, inArray, isNull, lt, lte, notExists, or, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Context } from "../context.ts";
import type { Db } from "../db/open.ts";
import { prepared } from "../db/prepared.ts";
import { fixes } from "../db/tables/friction.ts";
import { gates } from "../db/tables/gates.ts";
import { archives, prompts, providers } from "../db/tables/prompts.ts";
import { regrades } from "../db/tables/reports.ts";
import { evalRequests, runs, sessionEvents } from "../db/tables/runs.ts";
import { namedPages } from "../db/tables/trends.ts";
import { type RowType, shapes } from "./rows.ts";
import { inSpan, type Span } from "./span.ts";

/** Rows per page. An archive may have 5 MiB, an event 32 KiB. An export holds a page in memory for as long as its client takes to read it. */
const pageRows = { archive: 1, event: 16, other: 200 };
const pageRowsOf = (type: RowType): number =>
  type === "archive" || type === "event" ? pageRows[type] : pageRows.other;

type Row = Record<string, unknown>;
type ExportedRow = [type: RowType, row: Row];

/** Yields a list page by page; `read` returns the rows after `last`. */
function* paged(type: RowType, read: (last: Row) => Row[], first: Row = { id: "" }): Generator<ExportedRow> {
  for (let last = first; ; ) {
    const page = read(last);
    for (const row of page) yield [type, row];
    if (page.length < pageRowsOf(type)) return;
    last = page.at(-1) as Row;
  }
}

/** The evaluations of the further prompts of a gate. */
const ofOthers = sql`(select coalesce(side.value, '') from json_each(${gates.others}) target, json_each(target.value) side where side.key in ('headRequestId', 'baseRequestId'))`;

/** In an export of one prompt, only the row that it refers to. */
const usedBy =
  (db: Db, id: SQLiteColumn, reference: SQLiteColumn | SQL) =>
  ({ promptId }: Span) =>
    promptId === null
      ? undefined
      : inArray(
          id,
          db
            .select({ id: sql`${reference}` })
            .from(prompts)
            .where(eq(prompts.id, promptId)),
        );

/** Rows that belong to no prompt are not in the export of one. */
const ofAllPrompts = ({ promptId }: Span) => (promptId === null ? undefined : sql`false`);

const afterPrompts = ["eval_request", "fix", "dismissal", "field_friction", "field_report", "gate", "regrade"] as const;

/** Reads all rows of an export, in the order in which an import needs them, a page at a time. */
export function createRowReader({ db }: Pick<Context, "db">) {
  const runsOf = (evalRequestId: SQLiteColumn, more: SQL | undefined) =>
    db
      .select({ id: runs.id })
      .from(runs)
      .where(and(eq(runs.evalRequestId, evalRequestId), more));
  /** Whether an evaluation has a run that is exported. */
  const isExported = (span: Span, id: SQLiteColumn) => exists(runsOf(id, inSpan(span)));
  /** Whether all of its runs are. */
  const isWhole = (span: Span, id: SQLiteColumn) =>
    and(isExported(span, id), notExists(runsOf(id, sql`(${inSpan(span)}) is not true`)));

  /** Tables exported in the order of their ids, with the filter for each. */
  const chosen = {
    provider: usedBy(db, providers.id, prompts.targetProviderId),
    archive: (span: Span) =>
      or(
        usedBy(db, archives.id, sql`json_extract(${prompts.workspace}, '$.archive')`)(span),
        usedBy(db, archives.id, sql`json_extract(${prompts.workspace}, '$.skills.archive')`)(span),
      ),
    prompt: ({ promptId }: Span) => (promptId === null ? undefined : eq(prompts.id, promptId)),
    eval_request: (span: Span) => isExported(span, evalRequests.id),
    dismissal: ofAllPrompts,
    field_friction: ofAllPrompts,
    field_report: ofAllPrompts,
    fix: (span: Span) => and(isExported(span, fixes.beforeId), isExported(span, fixes.afterId)),
    gate: (span: Span) =>
      and(
        lte(gates.completedAt, span.endedBy),
        isWhole(span, gates.headRequestId),
        or(isNull(gates.baseRequestId), isWhole(span, gates.baseRequestId)),
        notExists(
          db
            .select({ id: runs.id })
            .from(runs)
            .where(and(inArray(runs.evalRequestId, ofOthers), sql`(${inSpan(span)}) is not true`)),
        ),
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

  function listed(type: keyof typeof chosen, span: Span): Generator<ExportedRow> {
    const table = shapes[type].table as typeof runs;
    const where = and(eq(table.orgId, span.org), chosen[type](span));
    return paged(type, ({ id }) =>
      db
        .select()
        .from(table)
        .where(and(where, gt(table.id, String(id))))
        .orderBy(asc(table.id))
        .limit(pageRowsOf(type))
        .all(),
    );
  }

  /** Pages that the docs linked to in the runs of a prompt. */
  function namedOf({ org, promptId: only }: Span): Generator<ExportedRow> {
    const { orgId, promptId, page } = namedPages;
    const own = and(eq(orgId, org), only === null ? undefined : eq(promptId, only));
    const read = (last: Row) =>
      db
        .select()
        .from(namedPages)
        .where(and(own, sql`(${promptId}, ${page}) > (${last.promptId}, ${last.page})`))
        .orderBy(asc(promptId), asc(page))
        .limit(pageRowsOf("named_page"))
        .all();
    return paged("named_page", read, { promptId: "", page: "" });
  }

  // Prepared once: preparing per run would take longer than all reads.
  const id = sql.placeholder("id");
  const ownOf = (type: "artifact" | "report" | (typeof ofReport)[number]) => {
    const { table, of, order } = shapes[type];
    const made = prepared(
      db
        .select()
        .from(table as SQLiteTable)
        .where(eq(of, id))
        .orderBy(...order.map((column) => asc(column))),
    );
    return (owner: unknown): ExportedRow[] => made.all({ id: owner }).map((row) => [type, row]);
  };
  const ofReport = ["reach", "friction_point", "recommendation", "grading"] as const;
  const [artifactsOf, reportOf] = [ownOf("artifact"), ownOf("report")];
  const partsOf = ofReport.map(ownOf);
  const { runId, attempt, seq } = sessionEvents;
  const nextEvents = prepared(
    db
      .select()
      .from(sessionEvents)
      .where(and(eq(runId, id), sql`(${attempt}, ${seq}) > (${sql.placeholder("attempt")}, ${sql.placeholder("seq")})`))
      .orderBy(asc(attempt), asc(seq))
      .limit(pageRowsOf("event")),
  );

  /** A report with everything that belongs to it, read in one transaction. */
  const reportParts = db.$client.transaction((run: unknown): ExportedRow[] =>
    reportOf(run).flatMap((report) => [report, ...partsOf.flatMap((list) => list(report[1].id))]),
  );

  return function* readRows(span: Span): Generator<ExportedRow> {
    yield* listed("provider", span);
    yield* listed("archive", span);
    yield* listed("prompt", span);
    yield* namedOf(span);
    for (const type of afterPrompts) yield* listed(type, span);
    for (const run of listed("run", span)) {
      yield run;
      const { id } = run[1];
      yield* paged("event", ({ attempt, seq }) => nextEvents.all({ id, attempt, seq }), { attempt: -1, seq: -1 });
      yield* artifactsOf(id);
      yield* reportParts(id);
    }
  };
}
