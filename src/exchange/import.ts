import { eq, getTableColumns, getTableName } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import { codeOf } from "../db/fault.ts";
import { type Db, type Tx, transaction } from "../db/open.ts";
import { insertStatement, timeZoneOf } from "../db/rows.ts";
import { orgs } from "../db/tables/orgs.ts";
import { prompts } from "../db/tables/prompts.ts";
import { conflict } from "../errors.ts";
import { newDestinationState } from "../notifications/destinations.ts";
import { scheduleOf } from "../prompts/prompts.ts";
import { countChange } from "../reports/counts.ts";
import { type Bundle, bundlesOf, type ImportedRow, toSettings } from "./bundles.ts";
import { type Line, readHeader } from "./lines.ts";
import { columnsOf, isPartOfRun, keyOf, labelOf, type RowType, rowTypes, shapes } from "./rows.ts";

/** Rows per transaction. A running service waits only milliseconds for one transaction. */
const batchRows = 500;

/** `check`: only validate the file. `isPaused`: imported prompts don't run on their schedule until someone resumes them. */
export type ImportOptions = { check?: boolean; isPaused?: boolean };

/** Counts of imported rows by type, or with `check` of rows that would be imported; the CLI prints them as JSON. */
type ImportResult = {
  rows: Partial<Record<RowType, number>>;
  /** How many of the rows the organization already has. */
  there: number;
  /** How many imported prompts run on their schedule here, and how many with a schedule were paused. */
  scheduled: number;
  paused: number;
  /** Settings in which the file differs, but which the organization keeps. Only an organization without prompts gets the settings of a file. */
  keptSettings: string[];
  /** What the file does not contain, in words. */
  omitted: string[];
};

/**
 * Imports an export file into an organization, or only validates it with `check`. Throws bad_request or conflict with the line number. The
 * whole file is validated before the first row is stored, so a rejected file stores nothing.
 */
export function importFile(ctx: Context, org: OrgId, file: string, options: ImportOptions = {}): ImportResult {
  const counts = importBundles(ctx, org, file, options, () => {});
  if (options.check) return counts;
  let batch: Bundle[] = [];
  let rows = 0;
  const imported = importBundles(ctx, org, file, options, (bundle) => {
    batch.push(bundle);
    rows += bundle.length;
    if (rows < batchRows) return;
    storeBundles(ctx, org, batch, options);
    batch = [];
    rows = 0;
  });
  storeBundles(ctx, org, batch, options);
  transaction(ctx.db, () => recordAudit(ctx, org, "import.completed", {}, changesOf({}, imported.rows)));
  return imported;
}

/** Passes each bundle to `store` that the organization does not have yet. Throws conflict if schedules would run at other times. */
function importBundles(
  { db }: Context,
  org: OrgId,
  file: string,
  { isPaused = false }: ImportOptions,
  store: (bundle: Bundle) => void,
): ImportResult {
  const { timeZone: fileTimeZone, omitted } = readHeader(file);
  const imported: ImportResult = { rows: {}, there: 0, scheduled: 0, paused: 0, keptSettings: [], omitted };
  let timeZone = timeZoneOf(db, org);
  for (const bundle of bundlesOf(file)) {
    const [first] = bundle;
    if (first?.type === "organization") {
      if (hasPrompts(db, org)) imported.keptSettings = differingSettings(db, org, first.row);
      else timeZone = String(first.row.timeZone);
    }
    const [firstStored] = bundle.filter((line) => isStored(db, org, line));
    // The first row of a run's bundle is the run, which was stored together with its parts.
    if (firstStored === first) {
      imported.there += bundle.length;
      continue;
    }
    if (firstStored)
      throw conflict(
        `Line ${firstStored.lineNumber}: the ${labelOf(firstStored.type)} ${firstStored.row.id} already exists on another run.`,
      );
    for (const { type, row } of bundle) {
      imported.rows[type] = (imported.rows[type] ?? 0) + 1;
      if (type === "prompt" && isScheduled(row)) imported[isPaused ? "paused" : "scheduled"]++;
    }
    store(bundle);
  }
  if (imported.scheduled > 0 && fileTimeZone !== null && fileTimeZone !== timeZone)
    throw conflict(
      `The schedules of the file are in the time zone ${fileTimeZone}, but the organization is in ${timeZone}. Set its time zone with evald org set --time-zone, or import the prompts paused with --paused.`,
    );
  return imported;
}

const isScheduled = (row: ImportedRow) => row.frequency !== null && row.status === "active";

const hasPrompts = (db: Db, org: OrgId) =>
  db.select({ id: prompts.id }).from(prompts).where(eq(prompts.orgId, org)).limit(1).get() !== undefined;

/** The settings that an organization and a file have with different values. */
function differingSettings(db: Db, org: OrgId, row: ImportedRow): string[] {
  const stored: Record<string, unknown> = db.select().from(orgs).where(eq(orgs.id, org)).get() ?? {};
  return columnsOf("organization")
    .map(([name]) => name)
    .filter((name) => !Bun.deepEquals(stored[name], row[name]));
}

const typesWithId = new Set(rowTypes.filter((type) => "id" in getTableColumns(shapes[type].table)));

/** Whether the organization already has the row. Throws conflict with the line number if it belongs to another organization. */
function isStored(db: Db, org: OrgId, { lineNumber, type, row }: Line): boolean {
  if (type === "organization") return hasPrompts(db, org);
  const table = getTableName(shapes[type].table);
  const key = keyOf(type);
  if (key.length > 0 && !isPartOfRun(type)) {
    const where = key.map(([, { name }]) => `"${name}" = ?`).join(" and ");
    // The key includes the organization, which is not in the file.
    const values = key.map(([name]) => row[name] ?? org) as string[];
    return db.$client.query(`select 1 from ${table} where ${where}`).get(...values) !== null;
  }
  // A part without an ID exists if its run exists. The run comes first in its bundle.
  if (!typesWithId.has(type)) return false;
  const ownerBy = (column: "id" | "slug", value: string) =>
    db.$client.query<{ org: string }, [string]>(`select org_id org from ${table} where ${column} = ?`).get(value)?.org;
  const owner = ownerBy("id", row.id);
  const refuse = (name: unknown, other: string) =>
    conflict(
      `Line ${lineNumber}: the ${labelOf(type)} ${name} belongs to another ${other} of this service. Import the file into another data directory.`,
    );
  if (owner !== undefined && owner !== org) throw refuse(row.id, "organization");
  if (owner === undefined && type === "report" && ownerBy("slug", String(row.slug)) !== undefined)
    throw refuse(row.slug, "run");
  return owner !== undefined;
}

const insertByType = new Map(rowTypes.map((type) => [type, insertStatement(shapes[type].table)]));

/** Stores bundles in one transaction. */
function storeBundles(ctx: Context, org: OrgId, bundles: Bundle[], { isPaused = false }: ImportOptions): void {
  const { db } = ctx;
  const store = (tx: Tx, line: Line) => {
    const { type, row } = line;
    if (type === "organization") tx.update(orgs).set(toSettings(row)).where(eq(orgs.id, org)).run();
    else insertByType.get(type)?.(db)(toStored(ctx, org, line, isPaused));
  };
  try {
    transaction(db, (tx) => {
      for (const bundle of bundles) {
        const storeAll = () => {
          for (const line of bundle) store(tx, line);
        };
        const report = bundle.find(({ type }) => type === "report");
        if (report) countChange(ctx, tx, report.row.id, storeAll, { announces: false });
        else storeAll();
      }
    });
  } catch (error) {
    if (!/^SQLITE_CONSTRAINT/.test(codeOf(error))) throw error;
    throw conflict("Another process imported rows of this file at the same time. Import it again to add the rest.");
  }
}

/** The columns of an imported row. Columns that the file doesn't have get this instance's values. */
function toColumns(org: OrgId, type: RowType, row: ImportedRow): Record<string, unknown> {
  const columns = columnsOf(type).map(([name, { default: value }]) => [name, row[name] ?? value ?? null]);
  const { omittedColumns = [], withheldColumns = {} } = shapes[type];
  const others = [...omittedColumns, ...Object.keys(withheldColumns)].map((name) => [name, null]);
  return { ...Object.fromEntries([...columns, ...others]), orgId: org };
}

/** The columns that decide when an imported prompt runs next. */
function toScheduleState(ctx: Context, org: OrgId, row: ImportedRow, isPaused: boolean) {
  if (isPaused && isScheduled(row)) return { status: "paused", nextEvaluationAt: null };
  const { id, status, frequency } = row as unknown as typeof prompts.$inferSelect;
  const schedule = scheduleOf(ctx, { id, orgId: org, status, frequency });
  return { nextEvaluationAt: schedule && nextTime(schedule, ctx.now()) };
}

/** Turns an imported row into the row to store. */
function toStored(ctx: Context, org: OrgId, { type, row }: Line, isPaused: boolean): Record<string, unknown> {
  const columns = toColumns(org, type, row);
  if (type === "prompt") return { ...columns, ...toScheduleState(ctx, org, row, isPaused) };
  // Triggers set it from the runs that follow.
  if (type === "eval_request") return { ...columns, status: "pending" };
  if (type === "artifact" || type === "archive") return { ...columns, data: Buffer.from(String(row.data), "base64") };
  if (type === "share_link") return { ...columns, tokenHash: Buffer.from(String(row.tokenHash), "base64") };
  if (type === "destination") return { ...columns, ...newDestinationState(ctx, org, row) };
  return columns;
}
