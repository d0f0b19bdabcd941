import { and, asc, eq, exists, gt, gte, inArray, isNull, lt, lte, notExists, or, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Db } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import { statement } from "../db/prepared.ts";
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
/** The condition for the rows of a table that are exported. */
type Filter = (db: Db, span: Span) => SQL | undefined;

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
  (id: SQLiteColumn, reference: SQLiteColumn | SQL): Filter =>
  (db, { promptId }) =>
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
const ofAllPrompts: Filter = (_, { promptId }) => (promptId === null ? undefined : sql`false`);

const afterPrompts = ["eval_request", "fix", "dismissal", "field_friction", "field_report", "gate", "regrade"] as const;

const runsOf = (db: Db, evalRequestId: SQLiteColumn, more: SQL | undefined) =>
  db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.evalRequestId, evalRequestId), more));

/** Whether an evaluation has a run that is exported. */
const isExported = (db: Db, span: Span, id: SQLiteColumn) => exists(runsOf(db, id, inSpan(span)));

/** Whether all runs of an evaluation are exported. */
const isWhole = (db: Db, span: Span, id: SQLiteColumn) =>
  and(isExported(db, span, id), notExists(runsOf(db, id, sql`(${inSpan(span)}) is not true`)));

/** Tables exported in the order of their IDs, with the filter for each. */
const filters = {
  provider: usedBy(providers.id, prompts.targetProviderId),
  archive: (db, span) =>
    or(
      usedBy(archives.id, sql`json_extract(${prompts.workspace}, '$.archive')`)(db, span),
      usedBy(archives.id, sql`json_extract(${prompts.workspace}, '$.skills.archive')`)(db, span),
    ),
  prompt: (_, { promptId }) => (promptId === null ? undefined : eq(prompts.id, promptId)),
  eval_request: (db, span) => isExported(db, span, evalRequests.id),
  dismissal: ofAllPrompts,
  field_friction: ofAllPrompts,
  field_report: ofAllPrompts,
  fix: (db, span) => and(isExported(db, span, fixes.beforeId), isExported(db, span, fixes.afterId)),
  gate: (db, span) =>
    and(
      lte(gates.completedAt, span.endedBy),
      isWhole(db, span, gates.headRequestId),
      or(isNull(gates.baseRequestId), isWhole(db, span, gates.baseRequestId)),
      notExists(
        db
          .select({ id: runs.id })
          .from(runs)
          .where(and(inArray(runs.evalRequestId, ofOthers), sql`(${inSpan(span)}) is not true`)),
      ),
    ),
  regrade: (_, { promptId, from, to, endedBy }) =>
    and(
      lte(regrades.completedAt, endedBy),
      gte(regrades.id, from),
      lt(regrades.id, to),
      promptId === null ? undefined : eq(regrades.promptId, promptId),
    ),
  run: (_, span) => inSpan(span),
} satisfies Partial<Record<RowType, Filter>>;

/** Yields all rows of an export, in the order in which an import needs them, read a page at a time. */
export function* readRows(db: Db, span: Span): Generator<ExportedRow> {
  for (const type of ["provider", "archive", "prompt"] as const) yield* readTable(db, type, span);
  yield* readNamedPages(db, span);
  for (const type of afterPrompts) yield* readTable(db, type, span);
  for (const run of readTable(db, "run", span)) {
    yield run;
    const { id } = run[1];
    yield* paged("event", ({ attempt, seq }) => nextEvents(db).all({ id, attempt, seq }), { attempt: -1, seq: -1 });
    yield* listOwned(db, "artifact", id);
    yield* reportReader(db)(id);
  }
}

function readTable(db: Db, type: keyof typeof filters, span: Span): Generator<ExportedRow> {
  const table = shapes[type].table as typeof runs;
  const where = and(eq(table.orgId, span.org), (filters[type] as Filter)(db, span));
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
function readNamedPages(db: Db, { org, promptId: only }: Span): Generator<ExportedRow> {
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

const nextEvents = statement((db) => {
  const { runId, attempt, seq } = sessionEvents;
  return db
    .select()
    .from(sessionEvents)
    .where(
      and(
        eq(runId, sql.placeholder("id")),
        sql`(${attempt}, ${seq}) > (${sql.placeholder("attempt")}, ${sql.placeholder("seq")})`,
      ),
    )
    .orderBy(asc(attempt), asc(seq))
    .limit(pageRowsOf("event"));
});

const partsOfReport = ["reach", "friction_point", "recommendation", "grading"] as const;
type OwnedType = "artifact" | "report" | (typeof partsOfReport)[number];

function ownedBy(type: OwnedType) {
  const { table, of, order } = shapes[type];
  return statement((db) =>
    db
      .select()
      .from(table as SQLiteTable)
      .where(eq(of, sql.placeholder("owner")))
      .orderBy(...order.map((column) => asc(column))),
  );
}

/** The rows of a run or report. Prepared once, because preparing them for each run would take longer than all reads. */
const ownedRows = {
  artifact: ownedBy("artifact"),
  report: ownedBy("report"),
  reach: ownedBy("reach"),
  friction_point: ownedBy("friction_point"),
  recommendation: ownedBy("recommendation"),
  grading: ownedBy("grading"),
};

const listOwned = (db: Db, type: OwnedType, owner: unknown): ExportedRow[] =>
  ownedRows[type](db)
    .all({ owner })
    .map((row) => [type, row]);

/** Reads the report of a run with everything that belongs to it, in one transaction. */
const reportReader = perConnection((db: Db) =>
  db.$client.transaction((runId: unknown): ExportedRow[] =>
    listOwned(db, "report", runId).flatMap((report) => [
      report,
      ...partsOfReport.flatMap((type) => listOwned(db, type, report[1].id)),
    ]),
  ),
);
