import { getTableColumns, getTableName } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import { codeOf } from "../db/fault.ts";
import { type Db, transaction } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import { preparedInsert, timeZoneOf } from "../db/rows.ts";
import type { prompts } from "../db/tables/prompts.ts";
import { conflict } from "../errors.ts";
import { countReport } from "../reports/counts.ts";
import { type Bundle, bundlesOf } from "./bundles.ts";
import type { Line } from "./lines.ts";
import { columnsOf, labelOf, type RowType, rowTypes, shapes } from "./rows.ts";

/** Rows per transaction. A running service waits only milliseconds for one. */
const batchRows = 500;

type Row = Line["row"];

/**
 * Counts of imported rows by type, or with `check` of rows that would be imported. `existing`: rows that the organization already has, which are
 * left unchanged. `scheduled`: imported prompts with an active schedule.
 */
export type ImportResult = { rows: Partial<Record<RowType, number>>; existing: number; scheduled: number };

/**
 * Imports an export file into an organization, or with `check` only validates it. The whole file is validated before the first row is stored.
 * Throws bad_request or conflict with the line number; a rejected file stores nothing.
 */
export function importFile(ctx: Context, org: OrgId, file: string, { check = false } = {}): ImportResult {
  const validated = passNewBundles(ctx.db, org, file, () => {});
  if (check) return validated;
  let batch: Bundle[] = [];
  let rows = 0;
  const store = () => {
    storeRows(ctx, org, batch.flat());
    batch = [];
    rows = 0;
  };
  const result = passNewBundles(ctx.db, org, file, (bundle) => {
    batch.push(bundle);
    rows += bundle.length;
    if (rows >= batchRows) store();
  });
  store();
  return result;
}

/** Passes each bundle of a file that the organization does not have yet to `take`. Throws bad_request or conflict with the line number. */
function passNewBundles(db: Db, org: OrgId, file: string, take: (bundle: Bundle) => void): ImportResult {
  const result: ImportResult = { rows: {}, existing: 0, scheduled: 0 };
  for (const bundle of bundlesOf(file)) {
    const exist = bundle.map((line) => exists(db, org, line));
    if (exist[0]) {
      result.existing += bundle.length;
      continue;
    }
    const misplaced = bundle[exist.indexOf(true)];
    if (misplaced) {
      const { n, type, row } = misplaced;
      throw conflict(`line ${n}: the ${labelOf(type)} ${row.id} already exists on another run`);
    }
    for (const { type, row } of bundle) {
      result.rows[type] = (result.rows[type] ?? 0) + 1;
      if (type === "prompt" && row.frequency !== null && row.status === "active") result.scheduled++;
    }
    take(bundle);
  }
  return result;
}

/** Statements that find the organization of an existing row. */
const ownersOf = perConnection(({ $client }: Db) => {
  const prepareOwner = (table: string, column = "id") =>
    $client.prepare<{ org: string }, [value: string]>(`select org_id org from ${table} where ${column} = ?`);
  return {
    byId: new Map(
      rowTypes.flatMap((type) => {
        const table: SQLiteTable = shapes[type].table;
        return getTableColumns(table).id ? [[type, prepareOwner(getTableName(table))] as const] : [];
      }),
    ),
    bySlug: prepareOwner("reports", "slug"),
    namedPage: $client.prepare<{ org: string }, [org: string, prompt: string, page: string]>(
      "select org_id org from named_pages where org_id = ? and prompt_id = ? and page = ?",
    ),
  };
});

/** Whether the organization already has the row. Throws conflict with the line number if it belongs to another organization. */
function exists(db: Db, org: OrgId, { n, type, row }: Line): boolean {
  const { byId, bySlug, namedPage } = ownersOf(db);
  if (type === "named_page") return namedPage.get(org, String(row.promptId), String(row.page)) !== null;
  const owner = byId.get(type)?.get(row.id)?.org;
  const isSlugTaken = type === "report" && owner === undefined && bySlug.get(String(row.slug)) !== null;
  if (isSlugTaken || (owner !== undefined && owner !== org))
    throw conflict(
      `line ${n}: the ${labelOf(type)} ${isSlugTaken ? row.slug : row.id} belongs to ${isSlugTaken ? "another run" : "another organization"} of this service; import the file into another data directory`,
    );
  return owner !== undefined;
}

/** Stores rows in one transaction. Throws conflict if another process stored one of them meanwhile. */
function storeRows(ctx: Context, org: OrgId, lines: Line[]): void {
  const { db } = ctx;
  const timeZone = timeZoneOf(db, org);
  try {
    transaction(db, (tx) => {
      for (const { type, row } of lines) {
        insertOf(db, type)(toStored(ctx, org, type, row, timeZone));
        if (type === "event") subtractSpending(db, org, row);
      }
      for (const { type, row } of lines)
        if (type === "report" && row.status === "published") countReport(ctx, tx, row.id, 1, { announces: false });
    });
  } catch (error) {
    if (!/^SQLITE_CONSTRAINT/.test(codeOf(error))) throw error;
    throw conflict("another process imported rows of this file at the same time; import it again to add the rest");
  }
}

type Insert = (row: Record<string, unknown>) => void;
const insertsOf = perConnection((_: Db) => new Map<RowType, Insert>());

function insertOf(db: Db, type: RowType): Insert {
  const inserts = insertsOf(db);
  const insert = inserts.get(type) ?? (preparedInsert(db, shapes[type].table as SQLiteTable) as Insert);
  inserts.set(type, insert);
  return insert;
}

const subtraction = perConnection(({ $client }: Db) =>
  $client.prepare<never, [usd: number, calls: number, org: string, from: number]>(
    'update spending set usd = max(0, usd - ?), unpriced_calls = max(0, unpriced_calls - ?) where org_id = ? and "from" = ?',
  ),
);

/** Subtracts imported model costs, which a trigger adds to this instance's spending. */
function subtractSpending(db: Db, org: OrgId, row: Row): void {
  if (row.type !== "usage" || row.source === "agent") return;
  const { costUsd } = row.data as { costUsd?: number | null };
  const at = Number(row.at);
  subtraction(db).run(costUsd ?? 0, costUsd == null ? 1 : 0, org, at - (at % 900_000));
}

/** Turns an imported row into the row to store. */
function toStored(ctx: Context, org: OrgId, type: RowType, row: Row, timeZone: string): Record<string, unknown> {
  const columns = columnsOf(type).map(([name, { default: value }]) => [name, row[name] ?? value ?? null]);
  const stored = { ...Object.fromEntries(columns), orgId: org };
  if (type === "run")
    return { ...stored, idempotencyKey: null, idempotencyHash: null, reservedUsd: null, waitingFor: null };
  if (type === "report") return { ...stored, agent: null, agentVersion: null };
  if (type === "artifact" || type === "archive") return { ...stored, data: Buffer.from(String(row.data), "base64") };
  if (type !== "prompt") return stored;
  const { id, frequency, status } = row as unknown as typeof prompts.$inferSelect;
  const isScheduled = frequency !== null && status === "active";
  return { ...stored, nextSlotAt: isScheduled ? nextTime({ id, frequency, timeZone }, ctx.now()) : null };
}
