import { eq, getTableColumns, getTableName } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { codeOf } from "../db/fault.ts";
import { tx } from "../db/open.ts";
import { preparedInsert } from "../db/rows.ts";
import { orgs, type prompts } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, conflict } from "../errors.ts";
import { frequencyTrouble, nextSlot } from "../jobs/schedule.ts";
import { templateVarsOf } from "../prompts/template.ts";
import { createCounts } from "../reports/counts.ts";
import { type Line, linesOf } from "./lines.ts";
import { columnsOf, findReserved, type RowType, rowTypes, shapes, words } from "./rows.ts";

/** Rows of one transaction, so that a service that runs waits for some milliseconds. */
const batchRows = 500;
/** Of a run with all that belongs to it, which is stored at once. An agent tells 64 MiB at most, and is sent a few times at most. */
const maxBundleBytes = 512 * 1024 * 1024;

type Row = Line["row"];
/** Rows that are stored together: one, or a run with all that belongs to it. */
type Bundle = Line[];

/** What was imported, or (a check) would be, by kind of row; `there`: rows that the organisation has already, which stay as they are. */
export type Imported = { rows: Partial<Record<RowType, number>>; there: number; scheduled: number };

/** Takes the file of an export into an organisation: all of it is checked before the first row is stored. */
export function createImports({ db, now }: Pick<Deps, "db" | "now">) {
  const count = createCounts({ db });
  const insertOf = new Map<RowType, (row: never) => void>();
  const insert = (type: RowType) => {
    const made = insertOf.get(type) ?? preparedInsert(db, shapes[type].table as SQLiteTable);
    insertOf.set(type, made as (row: never) => void);
    return made as (row: Record<string, unknown>) => void;
  };
  const owner = (table: string, column = "id") =>
    db.$client.prepare<{ org: string }, [value: string]>(`select org_id org from ${table} where ${column} = ?`);
  const owners = new Map(
    rowTypes.flatMap((type) => {
      const { id } = getTableColumns(shapes[type].table as SQLiteTable);
      return id ? [[type, owner(getTableName(shapes[type].table))] as const] : [];
    }),
  );
  const named = db.$client.prepare<{ org: string }, [org: string, prompt: string, page: string]>(
    "select org_id org from named_pages where org_id = ? and prompt_id = ? and page = ?",
  );
  const slugOwner = owner("reports", "slug");

  /** Whether the organisation has a row already. Throws conflict, by the line, for one of another organisation. */
  function isThere(org: OrgId, { n, type, row }: Line): boolean {
    if (type === "named_page") return named.get(org, String(row.promptId), String(row.page)) !== null;
    const found = owners.get(type)?.get(row.id)?.org;
    const taken = type === "report" && found === undefined && slugOwner.get(String(row.slug)) !== null;
    if (taken || (found !== undefined && found !== org))
      throw conflict(
        `line ${n}: the ${words(type)} ${taken ? row.slug : row.id} belongs to ${taken ? "another run" : "another organisation"} here; ids stay what they are, so import the file into another data folder`,
      );
    return found !== undefined;
  }

  const unpaid = db.$client.prepare<never, [usd: number, calls: number, org: string, from: number]>(
    'update spending set usd = max(0, usd - ?), unpriced_calls = max(0, unpriced_calls - ?) where org_id = ? and "from" = ?',
  );
  /** What a model cost there was not paid here: the trigger that counts what is stored of a session counted it. */
  function takeBack(org: OrgId, row: Row): void {
    if (row.type !== "usage" || row.source === "agent") return;
    const { costUsd } = row.data as { costUsd?: number | null };
    const at = Number(row.at);
    unpaid.run(costUsd ?? 0, costUsd == null ? 1 : 0, org, at - (at % 900_000));
  }

  /** A row as it is stored here. */
  function toStored(org: OrgId, type: RowType, row: Row, timeZone: string): Record<string, unknown> {
    const missing = columnsOf(type).map(([name, { default: value }]) => [name, row[name] ?? value ?? null]);
    const stored = { ...Object.fromEntries(missing), orgId: org };
    if (type === "run") return { ...stored, idempotencyKey: null, idempotencyHash: null, reservedUsd: null };
    if (type === "artefact") return { ...stored, data: Buffer.from(String(row.data), "base64") };
    if (type !== "prompt") return stored;
    const { id, frequency, status } = row as unknown as typeof prompts.$inferSelect;
    const isScheduled = frequency !== null && status === "active";
    return { ...stored, nextSlotAt: isScheduled ? nextSlot({ id, frequency, timeZone }, now()) : null };
  }

  return {
    /** Imports a file, or only checks that it could be. Throws bad_request and conflict with the line and the remedy; nothing is stored of a file that is refused. */
    importFile(org: OrgId, file: string, { check = false } = {}): Imported {
      const timeZone = db.select({ zone: orgs.timeZone }).from(orgs).where(eq(orgs.id, org)).get()?.zone ?? "UTC";
      const first = add(org, bundlesOf(file), () => {});
      if (check) return first;
      let batch: Bundle[] = [];
      let rows = 0;
      const store = () => {
        try {
          tx(db, (t) => {
            const lines = batch.flat();
            for (const { type, row } of lines) {
              insert(type)(toStored(org, type, row, timeZone));
              if (type === "event") takeBack(org, row);
            }
            for (const { type, row } of lines) if (type === "report" && row.status === "published") count(t, row.id, 1);
          });
        } catch (error) {
          if (!/^SQLITE_CONSTRAINT/.test(codeOf(error))) throw error;
          throw conflict("something else stored rows of this file while it was imported; import it again for the rest");
        }
        batch = [];
        rows = 0;
      };
      const imported = add(org, bundlesOf(file), (bundle) => {
        batch.push(bundle);
        rows += bundle.length;
        if (rows >= batchRows) store();
      });
      store();
      return imported;
    },
  };

  /** Gives each bundle that is new to the organisation to `keep`. */
  function add(org: OrgId, bundles: Iterable<Bundle>, keep: (bundle: Bundle) => void): Imported {
    const imported: Imported = { rows: {}, there: 0, scheduled: 0 };
    for (const bundle of bundles) {
      const known = bundle.map((line) => isThere(org, line));
      if (known[0]) {
        imported.there += bundle.length;
        continue;
      }
      const odd = bundle[known.indexOf(true)];
      if (odd) throw conflict(`line ${odd.n}: the ${words(odd.type)} ${odd.row.id} belongs to another run here`);
      for (const { type, row } of bundle) {
        imported.rows[type] = (imported.rows[type] ?? 0) + 1;
        if (type === "prompt" && row.frequency !== null && row.status === "active") imported.scheduled++;
      }
      keep(bundle);
    }
    return imported;
  }
}

/** The rows of a file, what belongs together at once; the last one comes once the whole file was found to be sound. Throws bad_request, by the line. */
function* bundlesOf(file: string): Generator<Bundle> {
  const seen = new Set<string>();
  /** Of prompts, which stand before the requests that they name. */
  const baselines: [line: number, id: unknown][] = [];
  let bundle: Bundle = [];
  let bytes = 0;
  for (const line of linesOf(file)) {
    const { n, type, row } = line;
    const bad = (why: string) => badRequest(`line ${n}: ${why}`);
    const before = bundle.at(-1);
    if (before && rowTypes.indexOf(type) < rowTypes.indexOf(before.type) && type !== "run")
      throw bad(`a ${words(type)} must not come after a ${words(before.type)}`);
    if (rowTypes.indexOf(type) <= rowTypes.indexOf("run")) {
      checkBundle(bundle);
      if (before) yield bundle;
      bundle = [line];
      bytes = 0;
    } else {
      if (bundle[0]?.type !== "run") throw bad(`a ${words(type)} must come after its run`);
      bundle.push(line);
    }
    for (const key of keysOf(line)) {
      if (seen.has(`${type} ${key}`)) throw bad(`the ${words(type)} ${key} stands twice`);
      seen.add(`${type} ${key}`);
    }
    bytes += line.bytes;
    if (bytes > maxBundleBytes) throw bad(`the run has more than ${maxBundleBytes / 1024 / 1024} MiB`);
    if (type === "event" && before?.type === "event" && !comesAfter(row, before.row))
      throw bad("the events of a run must stand in their order");
    checkReferences(line, seen);
    if (type === "prompt" && row.baselineRequestId != null) baselines.push([n, row.baselineRequestId]);
  }
  checkBundle(bundle);
  for (const [n, id] of baselines)
    if (!seen.has(`eval_request ${id}`)) throw badRequest(`line ${n}: its baseline ${id} does not stand in the file`);
  if (bundle.length > 0) yield bundle;
}

/** What no other row of its kind may have. Of events their order says it. */
function keysOf({ type, row }: Line): unknown[] {
  if (type === "named_page") return [`${row.promptId} ${row.page}`];
  if (type === "artefact") return [`${row.runId} ${row.attempt} ${row.name}`];
  if (type === "reach") return [row.reportId];
  if (type === "event") return [];
  return [row.id, ...(type === "report" ? [row.slug] : []), ...(type === "gate" ? [row.headRequestId] : [])];
}

const comesAfter = (a: Row, b: Row) =>
  Number(a.attempt) - Number(b.attempt) > 0 || (a.attempt === b.attempt && Number(a.seq) > Number(b.seq));

/** What a row says of itself and of those before it. Throws bad_request, by the line. */
function checkReferences({ n, type, row }: Line, seen: Set<string>): void {
  const bad = (why: string) => badRequest(`line ${n}: ${why}`);
  const needs = (what: RowType, id: unknown) => {
    if (id !== null && !seen.has(`${what} ${id}`))
      throw bad(`its ${words(what)} ${id} does not stand before it in the file`);
  };
  if (type === "prompt") {
    needs("provider", row.targetProviderId ?? null);
    const trouble = typeof row.frequency === "string" ? frequencyTrouble(row.frequency) : null;
    if (trouble !== null) throw bad(`frequency: ${trouble}`);
    const vars = templateVarsOf(String(row.text), (row.endGoal ?? null) as string | null);
    if (!Bun.deepEquals(vars, row.templateVars ?? null))
      throw bad("templateVars must be those of its text and endGoal");
  }
  if ("promptId" in row) needs("prompt", row.promptId);
  if (type === "gate") for (const id of [row.headRequestId, row.baseRequestId ?? null]) needs("eval_request", id);
  if (type === "fix") for (const id of [row.beforeId, row.afterId]) needs("eval_request", id);
  if (type === "run") {
    needs("eval_request", row.evalRequestId);
    if (row.status === "failed" && row.failureReason == null) throw bad("a run that failed must have a failureReason");
  }
  const end = { run: "completedAt", gate: "decidedAt", regrade: "completedAt" }[type as string];
  if (end !== undefined && row[end] == null) throw bad(`a ${words(type)} that has not ended cannot be imported`);
  if (type === "gate" && row.reason == null) throw bad("a gate must have a reason");
  const reserved = type === "event" ? findReserved(row) : undefined;
  if (reserved !== undefined) throw bad(`${reserved} must not stand in the data of an event`);
  const { costUsd = null } = row.type === "usage" ? (row.data as { costUsd?: unknown }) : {};
  if (costUsd !== null && !(typeof costUsd === "number" && costUsd >= 0))
    throw bad("costUsd must be a number of at least 0");
  if (type === "report" && (row.score == null) !== (row.nullNotice != null))
    throw bad("nullNotice must say why there is no score");
  if (type === "grading" && row.hash !== (row.grade as { methodology: { hash: string } }).methodology.hash)
    throw bad("hash must be that of the methodology in its grade");
}

/** What the rows of a run say of one another. Throws bad_request, by the line. */
function checkBundle(bundle: Bundle): void {
  const [head] = bundle;
  if (head?.type !== "run") return;
  const of = (wanted: RowType) => bundle.filter(({ type }) => type === wanted);
  const [report, second] = of("report");
  const bad = ({ n }: Line, why: string) => badRequest(`line ${n}: ${why}`);
  if (second) throw bad(second, "the run has a report already");
  if ((head.row.status === "completed") !== (report !== undefined))
    throw bad(head, "a completed run must have a report, and no other may");
  const expected: Record<string, unknown> = {
    runId: head.row.id,
    promptId: head.row.promptId,
    reportId: report?.row.id,
  };
  for (const line of bundle.slice(1))
    for (const [name, value] of Object.entries(expected))
      if (name in line.row && line.row[name] !== value) throw bad(line, `${name} must be that of the rows before it`);
  const points = new Set(of("friction_point").map(({ row }) => row.id));
  for (const line of of("recommendation"))
    for (const id of line.row.frictionIds as string[])
      if (!points.has(id)) throw bad(line, `its friction point ${id} is not there`);
  const all = of("grading");
  if (report?.row.gradingId != null && !all.some(({ row }) => row.id === report.row.gradingId))
    throw bad(report, `its grading ${report.row.gradingId} is not there`);
  const places: [RowType, (row: Row) => unknown][] = [
    ["friction_point", (row) => row.fingerprint],
    ["recommendation", (row) => row.priority],
    ["grading", (row) => `${row.hash} ${row.repeat}`],
  ];
  for (const [type, place] of places) {
    const taken = new Set<unknown>();
    for (const line of of(type)) {
      if (taken.has(place(line.row))) throw bad(line, `the ${words(type)} ${place(line.row)} stands twice`);
      taken.add(place(line.row));
    }
  }
}
