import { eq, getTableColumns, getTableName } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import { checkOrgSettings } from "../auth/orgs.ts";
import type { Context, OrgId } from "../context.ts";
import { frequencyProblem, nextTime } from "../cron.ts";
import { codeOf } from "../db/fault.ts";
import { type Db, type Tx, transaction } from "../db/open.ts";
import { insertStatement, timeZoneOf } from "../db/rows.ts";
import { orgs } from "../db/tables/orgs.ts";
import { prompts } from "../db/tables/prompts.ts";
import { AppError, badRequest, conflict } from "../errors.ts";
import { newDestinationState } from "../notifications/destinations.ts";
import { scheduleOf } from "../prompts/prompts.ts";
import { templateVarsOf } from "../prompts/template.ts";
import type { WorkspaceSetup } from "../prompts/workspace-schema.ts";
import { countChange } from "../reports/counts.ts";
import { type Line, linesOf, readHeader } from "./lines.ts";
import { columnsOf, findReservedField, keyOf, labelOf, type RowType, rowTypes, shapes } from "./rows.ts";

/** Rows per transaction. A running service waits only milliseconds for one. */
const batchRows = 500;
/** Limit of a run with its events, stored in one transaction. An agent may report up to 64 MiB per attempt, over a few attempts. */
const maxBundleBytes = 512 * 1024 * 1024;

type ImportedRow = Line["row"];
/** Rows stored together: a single row, or a run with everything that belongs to it. */
type Bundle = Line[];

/** `check`: only validate the file. `isPaused`: imported prompts don't run on their schedule until someone resumes them. */
export type ImportOptions = { check?: boolean; isPaused?: boolean };

/** Counts of imported rows by type, or with `check` of rows that would be imported; the CLI prints them as JSON. */
type ImportResult = {
  rows: Partial<Record<RowType, number>>;
  /** Rows that the organization already has. */
  there: number;
  /** Imported prompts whose schedule runs here, and those with a schedule that were paused. */
  scheduled: number;
  paused: number;
  /** Settings that the organization keeps, although the file has others: only an organization without prompts gets them. */
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

/** Passes each bundle that the organization does not have yet to `store`. Throws conflict if schedules would run at other times. */
function importBundles(
  { db }: Context,
  org: OrgId,
  file: string,
  { isPaused = false }: ImportOptions,
  store: (bundle: Bundle) => void,
): ImportResult {
  const { timeZone, omitted } = readHeader(file);
  const imported: ImportResult = { rows: {}, there: 0, scheduled: 0, paused: 0, keptSettings: [], omitted };
  let zone = timeZoneOf(db, org);
  for (const bundle of bundlesOf(file)) {
    const [settings] = bundle;
    if (settings?.type === "organization") {
      if (hasPrompts(db, org)) imported.keptSettings = differingSettings(db, org, settings.row);
      else zone = String(settings.row.timeZone);
    }
    const storedLines = bundle.filter((line) => isStored(db, org, line));
    const [conflicting] = storedLines;
    if (conflicting === bundle[0]) {
      imported.there += bundle.length;
      continue;
    }
    if (conflicting)
      throw conflict(
        `Line ${conflicting.lineNumber}: the ${labelOf(conflicting.type)} ${conflicting.row.id} already exists on another run.`,
      );
    for (const { type, row } of bundle) {
      imported.rows[type] = (imported.rows[type] ?? 0) + 1;
      if (type === "prompt" && isScheduled(row)) imported[isPaused ? "paused" : "scheduled"]++;
    }
    store(bundle);
  }
  if (imported.scheduled > 0 && timeZone !== null && timeZone !== zone)
    throw conflict(
      `The schedules of the file are in the time zone ${timeZone}, but the organization is in ${zone}. Set its time zone with evald org set --time-zone, or import the prompts paused with --paused.`,
    );
  return imported;
}

const isScheduled = (row: ImportedRow) => row.frequency !== null && row.status === "active";

const hasPrompts = (db: Db, org: OrgId) =>
  db.select({ id: prompts.id }).from(prompts).where(eq(prompts.orgId, org)).limit(1).get() !== undefined;

/** The settings in which an organization differs from those of a file. */
function differingSettings(db: Db, org: OrgId, row: ImportedRow): string[] {
  const stored: Record<string, unknown> = db.select().from(orgs).where(eq(orgs.id, org)).get() ?? {};
  return columnsOf("organization")
    .map(([name]) => name)
    .filter((name) => !Bun.deepEquals(stored[name], row[name]));
}

const typesWithId = new Set(rowTypes.filter((type) => "id" in getTableColumns(shapes[type].table)));

/** Whether the organization already has the row. Throws conflict with the line number if it belongs to another organization. */
function isStored(db: Db, org: OrgId, { lineNumber, type, row }: Line): boolean {
  const { $client } = db;
  if (type === "organization") return hasPrompts(db, org);
  const keys = keyOf(type);
  if (keys.length > 0 && rowTypes.indexOf(type) < rowTypes.indexOf("run")) {
    const query = `select 1 from ${getTableName(shapes[type].table)} where ${keys.map(([, { name }]) => `"${name}" = ?`).join(" and ")}`;
    const values = keys.map(([name]) => row[name] ?? org);
    return $client.query(query).get(...(values as string[])) !== null;
  }
  if (!typesWithId.has(type)) return false;
  // Built once per table: the client keeps what it has prepared.
  const ownerBy = (column: "id" | "slug", value: string) =>
    $client
      .query<{ org: string }, [string]>(
        `select org_id org from ${getTableName(shapes[type].table)} where ${column} = ?`,
      )
      .get(value)?.org;
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
  const store = (tx: Tx, { type, row }: Line) => {
    if (type === "organization") tx.update(orgs).set(toSettings(row)).where(eq(orgs.id, org)).run();
    else if (type === "prompt") insertPrompt(ctx, org, row, isPaused);
    else insertByType.get(type)?.(db)(toStored(ctx, org, type, row));
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

/** The settings of an organization in a file. */
const toSettings = (row: ImportedRow) =>
  Object.fromEntries(columnsOf("organization").map(([name]) => [name, row[name]]));

/** The columns of an imported row, with the values that this instance gives the others. */
function toColumns(org: OrgId, type: RowType, row: ImportedRow): Record<string, unknown> {
  const columns = columnsOf(type).map(([name, { default: value }]) => [name, row[name] ?? value ?? null]);
  const { omittedColumns = [], withheldColumns = {} } = shapes[type];
  const others = [...omittedColumns, ...Object.keys(withheldColumns)].map((name) => [name, null]);
  return { ...Object.fromEntries([...columns, ...others]), orgId: org };
}

function insertPrompt(ctx: Context, org: OrgId, row: ImportedRow, isPaused: boolean): void {
  const { id, frequency } = row as unknown as typeof prompts.$inferSelect;
  const isActive = frequency !== null && isScheduled(row);
  const schedule = isActive && !isPaused ? scheduleOf(ctx, { id, orgId: org, status: "active", frequency }) : null;
  const nextEvaluationAt = schedule && nextTime(schedule, ctx.now());
  const state = isActive && isPaused ? { status: "paused" } : {};
  insertByType.get("prompt")?.(ctx.db)({ ...toColumns(org, "prompt", row), nextEvaluationAt, ...state });
}

/** Turns an imported row into the row to store. */
function toStored(ctx: Context, org: OrgId, type: RowType, row: ImportedRow): Record<string, unknown> {
  const columns = toColumns(org, type, row);
  // Triggers set it from the runs that follow.
  if (type === "eval_request") return { ...columns, status: "pending" };
  if (type === "artifact" || type === "archive") return { ...columns, data: Buffer.from(String(row.data), "base64") };
  if (type === "share_link") return { ...columns, tokenHash: Buffer.from(String(row.tokenHash), "base64") };
  if (type === "destination") return { ...columns, ...newDestinationState(ctx, org, row) };
  return columns;
}

const invalidLine = ({ lineNumber }: Line, reason: string) => badRequest(`Line ${lineNumber}: ${reason}.`);

/** Yields the rows of a file in bundles; the last one only after the whole file was validated. Throws bad_request with the line number. */
function* bundlesOf(file: string): Generator<Bundle> {
  const keys = new Set<string>();
  /** Baselines of prompts, checked at the end because prompts come before evaluations. */
  const baselines: [line: Line, id: unknown][] = [];
  let bundle: Bundle = [];
  let bytes = 0;
  for (const line of linesOf(file)) {
    const { type, row } = line;
    const before = bundle.at(-1);
    if (before && rowTypes.indexOf(type) < rowTypes.indexOf(before.type) && type !== "run")
      throw invalidLine(line, `${labelOf(type)} rows must come before ${labelOf(before.type)} rows`);
    if (rowTypes.indexOf(type) <= rowTypes.indexOf("run")) {
      checkBundle(bundle);
      if (before) yield bundle;
      bundle = [line];
      bytes = 0;
    } else {
      if (bundle[0]?.type !== "run") throw invalidLine(line, `${labelOf(type)} rows must come after their run`);
      bundle.push(line);
    }
    for (const key of keysOf(line)) {
      if (keys.has(`${type} ${key}`)) throw invalidLine(line, `the ${labelOf(type)} ${key} appears twice`);
      keys.add(`${type} ${key}`);
    }
    bytes += line.bytes;
    if (bytes > maxBundleBytes) throw invalidLine(line, `the run is larger than ${maxBundleBytes / 1024 / 1024} MiB`);
    if (type === "event" && before?.type === "event") {
      const attempts = Number(row.attempt) - Number(before.row.attempt);
      if (attempts < 0 || (attempts === 0 && Number(row.seq) <= Number(before.row.seq)))
        throw invalidLine(line, "the events of a run must be in order");
    }
    checkRow(line, keys);
    if (type === "prompt" && row.baselineRequestId != null) baselines.push([line, row.baselineRequestId]);
  }
  checkBundle(bundle);
  for (const [line, id] of baselines)
    if (!keys.has(`eval_request ${id}`)) throw invalidLine(line, `its baseline ${id} is not in the file`);
  if (bundle.length > 0) yield bundle;
}

/** The unique keys of a row. Events need none: their order is checked. */
function keysOf({ type, row }: Line): unknown[] {
  if (type === "organization") return ["settings"];
  if (type === "event") return [];
  if (type === "reach") return [row.reportId];
  // The file doesn't name the organization, which the key of some tables begins with.
  const composite = keyOf(type).filter(([name]) => name !== "orgId");
  if (composite.length > 0) return [composite.map(([name]) => row[name]).join(" ")];
  if (type === "share_link") return [row.id, row.tokenHash];
  if (type === "archive") return [row.id, row.digest];
  return [row.id, ...(type === "report" ? [row.slug] : []), ...(type === "gate" ? [row.headRequestId] : [])];
}

/** The costs in the data of a usage event. */
type UsageData = { costUsd?: number | null; estimate?: { costUsd?: number | null } };

/** Checks what the schema of a row can't, such as its references to earlier rows. Throws bad_request with the line number. */
function checkRow(line: Line, keys: Set<string>): void {
  const { type, row } = line;
  const requireReference = (rowType: RowType, id: unknown) => {
    if (id !== null && !keys.has(`${rowType} ${id}`))
      throw invalidLine(line, `its ${labelOf(rowType)} ${id} must come earlier in the file`);
  };
  if (type === "prompt") {
    requireReference("provider", row.targetProviderId ?? null);
    const { archive = null, skills } = (row.workspace ?? {}) as WorkspaceSetup;
    requireReference("archive", archive);
    requireReference("archive", skills?.archive ?? null);
    const problem = typeof row.frequency === "string" ? frequencyProblem(row.frequency) : null;
    if (problem !== null) throw invalidLine(line, `frequency: ${problem}`);
    const vars = templateVarsOf(String(row.text), (row.endGoal ?? null) as string | null);
    if (!Bun.deepEquals(vars, row.templateVars ?? null))
      throw invalidLine(line, "templateVars must match the variables in text and endGoal");
  }
  if (type === "artifact" && String(row.name).endsWith(".webp") && !String(row.data).startsWith("UklGR"))
    throw invalidLine(line, "data must be a WebP image");
  if (type === "archive") {
    const content = Buffer.from(String(row.data), "base64");
    if (content.length !== row.bytes || new Bun.CryptoHasher("sha256").update(content).digest("hex") !== row.digest)
      throw invalidLine(line, "bytes and digest must match the data");
  }
  if ("promptId" in row) requireReference("prompt", row.promptId);
  if (type === "gate")
    for (const target of [row, ...((row.others ?? []) as ImportedRow[])]) {
      requireReference("prompt", target.promptId);
      for (const id of [target.headRequestId, target.baseRequestId ?? null]) requireReference("eval_request", id);
    }
  if (type === "organization") checkSettings(line);
  if (type === "scheduled_evaluation") {
    requireReference("eval_request", row.evalRequestId ?? null);
    const hasRun = row.outcome === "ran";
    if (hasRun !== (row.evalRequestId != null) || (!hasRun && row.reason == null))
      throw invalidLine(line, "a scheduled evaluation has an evaluation or a reason why it did not run");
    if (row.outcome === "waiting") throw invalidLine(line, "a waiting evaluation cannot be imported");
  }
  if (type === "destination" && (row.kind === "email") !== (row.url == null))
    throw invalidLine(line, "only a destination of kind email has no url");
  if (type === "job" && row.completedAt == null) throw invalidLine(line, "an unfinished job cannot be imported");
  if (type === "field_report") requireReference("field_friction", row.frictionId);
  if (type === "fix") for (const id of [row.beforeId, row.afterId]) requireReference("eval_request", id);
  if (type === "run") requireReference("eval_request", row.evalRequestId);
  if (type === "run" || type === "regrade") {
    const isFailure = ["failed", "superseded", "cancelled"].includes(String(row.status));
    const fields = ["failureCause", "failureDetail", ...(type === "run" ? ["failureCode"] : [])];
    if (fields.some((field) => (row[field] != null) !== isFailure))
      throw invalidLine(
        line,
        `a ${row.status} ${labelOf(type)} must ${isFailure ? "" : "not "}have ${fields.join(", ")}`,
      );
  }
  if (["run", "gate", "regrade"].includes(type) && row.completedAt == null)
    throw invalidLine(line, `an unfinished ${labelOf(type)} cannot be imported`);
  if (type === "gate" && row.reason == null) throw invalidLine(line, "a gate must have a reason");
  const reserved = type === "event" ? findReservedField(row) : undefined;
  if (reserved !== undefined) throw invalidLine(line, `${reserved} is not allowed in the data of an event`);
  const { costUsd = null, estimate } = row.type === "usage" ? (row.data as UsageData) : {};
  for (const usd of [costUsd, estimate?.costUsd ?? null])
    if (usd !== null && !(typeof usd === "number" && usd >= 0))
      throw invalidLine(line, "costUsd must be a number of 0 or more");
  if (type === "report" && (row.score == null) !== (row.nullNotice != null))
    throw invalidLine(line, "set nullNotice exactly when score is null");
  if (type === "grading" && row.hash !== (row.grade as { methodology: { hash: string } }).methodology.hash)
    throw invalidLine(line, "hash must match the methodology in its grade");
}

function checkSettings(line: Line): void {
  try {
    checkOrgSettings(toSettings(line.row));
  } catch (error) {
    throw error instanceof AppError ? invalidLine(line, error.detail.replace(/\.$/, "")) : error;
  }
}

/** Checks that the rows of a run are consistent with each other. Throws bad_request with the line number. */
function checkBundle(bundle: Bundle): void {
  const [runLine] = bundle;
  if (runLine?.type !== "run") return;
  const rowsOfType = (rowType: RowType) => bundle.filter(({ type }) => type === rowType);
  const [report, second] = rowsOfType("report");
  if (second) throw invalidLine(second, "the run has more than one report");
  if ((runLine.row.status === "completed") !== (report !== undefined))
    throw invalidLine(runLine, "only a completed run has a report, and it must have one");
  const expected: Record<string, unknown> = {
    runId: runLine.row.id,
    promptId: runLine.row.promptId,
    reportId: report?.row.id,
    subject: runLine.row.id,
    jobId: rowsOfType("job")[0]?.row.id,
  };
  for (const line of bundle.slice(1))
    for (const [name, value] of Object.entries(expected))
      if (name in line.row && line.row[name] !== value) throw invalidLine(line, `${name} must match the rows above it`);
  const pointIds = new Set(rowsOfType("friction_point").map(({ row }) => row.id));
  for (const line of rowsOfType("recommendation"))
    for (const id of line.row.frictionIds as string[])
      if (!pointIds.has(id)) throw invalidLine(line, `its friction point ${id} is missing`);
  const gradingLines = rowsOfType("grading");
  if (report?.row.gradingId != null && !gradingLines.some(({ row }) => row.id === report.row.gradingId))
    throw invalidLine(report, `its grading ${report.row.gradingId} is missing`);
  const keys: [RowType, (row: ImportedRow) => unknown][] = [
    ["friction_point", ({ fingerprint }) => fingerprint],
    ["recommendation", ({ priority }) => priority],
    ["grading", ({ hash, repeat }) => `${hash} ${repeat}`],
  ];
  for (const [type, toKey] of keys) {
    const earlier = new Set<unknown>();
    for (const line of rowsOfType(type)) {
      const key = toKey(line.row);
      if (earlier.has(key)) throw invalidLine(line, `the ${labelOf(type)} ${key} appears twice`);
      earlier.add(key);
    }
  }
}
