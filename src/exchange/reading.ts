import {
  and,
  asc,
  eq,
  exists,
  getTableColumns,
  gte,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  notExists,
  notInArray,
  or,
  type SQL,
  sql,
} from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type { OrgId } from "../context.ts";
import type { Db } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { auditEntries } from "../db/tables/audit.ts";
import { exposures, fixes, frictionPoints, recommendations } from "../db/tables/friction.ts";
import { gates } from "../db/tables/gates.ts";
import { earlierAttempts, jobs } from "../db/tables/jobs.ts";
import { archives, prompts, providers } from "../db/tables/prompts.ts";
import { gradings, regrades, reports, shareLinks } from "../db/tables/reports.ts";
import { artifacts, evalRequests, runs, sessionEvents } from "../db/tables/runs.ts";
import { scheduledEvaluations } from "../db/tables/schedules.ts";
import { spending, spendingDetails } from "../db/tables/spending.ts";
import { listedPages } from "../db/tables/trends.ts";
import { isPartOfRun, keyOf, type RowType, rowTypes, shapes, typesOfOrg } from "./rows.ts";

/** The number of rows per page. An archive may have 5 MiB and an event 32 KiB, and an export holds a page in memory until its client has read it. */
const pageRowsByType: Partial<Record<RowType, number>> = { archive: 1, event: 16 };
const pageRowsOf = (type: RowType): number => pageRowsByType[type] ?? 200;

/** Selects the runs that ended before the export started, narrowed by its filters. */
export type Span = {
  org: OrgId;
  promptId: string | null;
  /** Runs with an ID from `fromId` on and before `toId`. */
  fromId: string;
  toId: string;
  /** The same limits as times, for rows without such an ID; null: without this limit. */
  sinceMs: number | null;
  untilMs: number | null;
  /** When the export started, epoch ms. */
  endedBy: number;
  hasAuditLog: boolean;
};

/** Whether a run is exported: it ended before the export started. */
export const inSpan = ({ org, promptId, fromId, toId, endedBy }: Span): SQL | undefined =>
  and(
    eq(runs.orgId, org),
    promptId === null ? undefined : eq(runs.promptId, promptId),
    gte(runs.id, fromId),
    lt(runs.id, toId),
    // completedAt is null for unfinished runs, so the comparison excludes them.
    lte(runs.completedAt, endedBy),
  );

const isOutsideSpan = (span: Span): SQL => sql`(${inSpan(span)}) is not true`;

type StoredRow = Record<string, unknown>;
type ExportedRow = [type: RowType, row: StoredRow];

/** Yields a list page by page. `read` returns the rows after `last`, at first those after `start`. */
function* paged(type: RowType, read: (last: StoredRow) => StoredRow[], start: StoredRow): Generator<ExportedRow> {
  for (let last = start; ; ) {
    const page = read(last);
    for (const row of page) yield [type, row];
    if (page.length < pageRowsOf(type)) return;
    last = page.at(-1) as StoredRow;
  }
}

/**
 * The IDs of the evaluations of a gate's further prompts. `others` is an array of objects such as `{"headRequestId": "…", "baseRequestId": null}`. A
 * base that is null has an empty ID here, which no evaluation has.
 */
const evaluationsOfOthers = sql`(select coalesce(side.value, '') from json_each(${gates.others}) target, json_each(target.value) side where side.key in ('headRequestId', 'baseRequestId'))`;

/** In an export of one prompt, selects only the rows that the prompt refers to. undefined: all rows. */
function usedBy(db: Db, id: SQLiteColumn, reference: SQLiteColumn | SQL, { promptId }: Span): SQL | undefined {
  if (promptId === null) return;
  return inArray(
    id,
    db
      .select({ id: sql`${reference}` })
      .from(prompts)
      .where(eq(prompts.id, promptId)),
  );
}

const runsOf = (db: Db, evalRequestId: SQLiteColumn, { org }: Span, where: SQL | undefined) =>
  db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId), where));

/** Whether an evaluation has a run that is exported. */
const whereExported = (db: Db, id: SQLiteColumn, span: Span) => exists(runsOf(db, id, span, inSpan(span)));

/** Whether all runs of an evaluation are exported. */
const whereWhole = (db: Db, id: SQLiteColumn, span: Span) =>
  and(whereExported(db, id, span), notExists(runsOf(db, id, span, isOutsideSpan(span))));

/** Whether a time is within the filter and before the start of the export. */
const within = (column: SQLiteColumn, { sinceMs, untilMs, endedBy }: Span) =>
  and(
    lte(column, endedBy),
    sinceMs === null ? undefined : gte(column, sinceMs),
    untilMs === null ? undefined : lt(column, untilMs),
  );

/** Selects the rows of a table that are exported; undefined: all rows of the organization. */
function filterOf(db: Db, type: RowType, span: Span): SQL | undefined {
  const { promptId, fromId, toId, endedBy } = span;
  // An export of one prompt leaves out what belongs to the organization as a whole.
  if (promptId !== null && typesOfOrg[type] !== undefined) return sql`false`;
  switch (type) {
    case "audit_entry":
      return span.hasAuditLog ? within(auditEntries.createdAt, span) : sql`false`;
    case "spending":
      return within(spending.from, span);
    case "spending_detail":
      return within(spendingDetails.from, span);
    case "listed_page":
      return promptId === null ? undefined : eq(listedPages.promptId, promptId);
    case "scheduled_evaluation": {
      const { outcome, evalRequestId, createdAt } = scheduledEvaluations;
      return and(
        promptId === null ? undefined : eq(scheduledEvaluations.promptId, promptId),
        or(
          whereExported(db, evalRequestId, span),
          and(notInArray(outcome, ["ran", "waiting"]), within(createdAt, span)),
        ),
      );
    }
    case "provider":
      return usedBy(db, providers.id, prompts.targetProviderId, span);
    case "archive":
      return or(
        usedBy(db, archives.id, sql`json_extract(${prompts.workspace}, '$.archive')`, span),
        usedBy(db, archives.id, sql`json_extract(${prompts.workspace}, '$.skills.archive')`, span),
      );
    case "prompt":
      return promptId === null ? undefined : eq(prompts.id, promptId);
    case "eval_request":
      return whereExported(db, evalRequests.id, span);
    case "fix":
      return and(whereExported(db, fixes.beforeId, span), whereExported(db, fixes.afterId, span));
    case "gate":
      return and(
        lte(gates.completedAt, endedBy),
        whereWhole(db, gates.headRequestId, span),
        or(isNull(gates.baseRequestId), whereWhole(db, gates.baseRequestId, span)),
        notExists(
          db
            .select({ id: runs.id })
            .from(runs)
            .where(
              and(eq(runs.orgId, span.org), inArray(runs.evalRequestId, evaluationsOfOthers), isOutsideSpan(span)),
            ),
        ),
      );
    case "regrade":
      return and(
        lte(regrades.completedAt, endedBy),
        gte(regrades.id, fromId),
        lt(regrades.id, toId),
        promptId === null ? undefined : eq(regrades.promptId, promptId),
      );
    case "run":
      return inSpan(span);
    default:
      return undefined;
  }
}

/** The rows of a table in the order of their keys. */
function listRows(db: Db, type: RowType, span: Span): Generator<ExportedRow> {
  const { table } = shapes[type];
  const columns = getTableColumns(table);
  const owner = (type === "organization" ? columns.id : columns.orgId) as SQLiteColumn;
  const compositeKey = keyOf(type);
  const hasCompositeKey = compositeKey.length > 0;
  const key = hasCompositeKey ? compositeKey : Object.entries(columns).filter(([, column]) => column.primary);
  const keyColumns = key.map(([, column]) => sql`${column}`);
  const after = (last: StoredRow) => {
    const values = key.map(([name]) => sql`${last[name]}`);
    return sql`(${sql.join(keyColumns, sql`, `)}) > (${sql.join(values, sql`, `)})`;
  };
  const where = and(eq(owner, span.org), filterOf(db, type, span));
  // No key is empty or negative, so the first page begins after these.
  const start = Object.fromEntries(key.map(([name, { dataType }]) => [name, dataType === "string" ? "" : -1]));
  const read = (last: StoredRow) =>
    db
      .select()
      .from(table)
      .where(and(where, after(last)))
      .orderBy(...key.map(([, column]) => asc(column)))
      .limit(pageRowsOf(type))
      .all();
  return paged(type, read, start);
}

// Statements are prepared once: preparing them per run would take longer than all reads.
const idPlaceholder = sql.placeholder("id");
/** A function that reads the rows with an owner. */
const createRowReader = (type: RowType, owner: SQLiteColumn, ...order: SQLiteColumn[]) => {
  const rows = statement((db) =>
    db
      .select()
      .from(shapes[type].table)
      .where(eq(owner, idPlaceholder))
      .orderBy(...order.map((column) => asc(column))),
  );
  return (db: Db, id: unknown) =>
    rows(db)
      .all({ id })
      .map((row): ExportedRow => [type, row]);
};
const attemptsOf = createRowReader("attempt", earlierAttempts.jobId, earlierAttempts.attempt);
const artifactsOf = createRowReader("artifact", artifacts.runId, artifacts.attempt, artifacts.name);
const reportOf = createRowReader("report", reports.runId, reports.id);
const reportPartsOf = [
  createRowReader("reach", exposures.reportId, exposures.reportId),
  createRowReader("friction_point", frictionPoints.reportId, frictionPoints.position),
  createRowReader("recommendation", recommendations.reportId, recommendations.priority),
  createRowReader("grading", gradings.reportId, gradings.id),
  createRowReader("share_link", shareLinks.reportId, shareLinks.id),
];

// A session that was cut off may still be ending.
const endedJobOf = statement((db) =>
  db
    .select()
    .from(jobs)
    .where(and(eq(jobs.kind, "run"), eq(jobs.subject, idPlaceholder), isNotNull(jobs.completedAt))),
);

const { runId, attempt, seq } = sessionEvents;
const eventsAfter = statement((db) =>
  db
    .select()
    .from(sessionEvents)
    .where(
      and(
        eq(runId, idPlaceholder),
        sql`(${attempt}, ${seq}) > (${sql.placeholder("attempt")}, ${sql.placeholder("seq")})`,
      ),
    )
    .orderBy(asc(attempt), asc(seq))
    .limit(pageRowsOf("event")),
);

/** Reads all rows of an export, in the order in which an import needs them, a page at a time. */
export function* readRows(db: Db, span: Span): Generator<ExportedRow> {
  for (const type of rowTypes) if (type !== "run" && !isPartOfRun(type)) yield* listRows(db, type, span);
  for (const [type, run] of listRows(db, "run", span)) {
    yield [type, run];
    const { id } = run;
    const job = endedJobOf(db).get({ id });
    if (job) {
      yield ["job", job];
      yield* attemptsOf(db, job.id);
    }
    const events = eventsAfter(db);
    yield* paged("event", ({ attempt, seq }) => events.all({ id, attempt, seq }), { attempt: -1, seq: -1 });
    yield* artifactsOf(db, id);
    // One transaction, so that the report and its parts match.
    yield* db.$client.transaction(() =>
      reportOf(db, id).flatMap(([type, report]): ExportedRow[] => [
        [type, report],
        ...reportPartsOf.flatMap((partsOf) => partsOf(db, report.id)),
      ]),
    )();
  }
}
