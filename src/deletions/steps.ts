import type { SQLQueryBindings } from "bun:sqlite";
import type { Db } from "../db/open.ts";
import { slugDigest } from "../reports/report-writer.ts";
import { erasableTables } from "./erasable-tables.ts";

/** Rows that one statement erases. Events have up to 32 KiB each. */
const batchRows = 20;

/** Runs a statement. Returns the number of changed rows. */
const execute = (db: Db, sql: string, ...values: SQLQueryBindings[]): number =>
  db.$client.query(sql).run(...values).changes;

/** The first column of the first row of a query; null: there is none. */
const find = (db: Db, sql: string, ...values: SQLQueryBindings[]): string | null =>
  (db.$client.query(sql).values(...values)[0]?.[0] as string | undefined) ?? null;

/** Erases up to a batch of the rows that a condition selects. True: there may be more. */
const eraseBatch = (db: Db, table: string, where: string, ...values: SQLQueryBindings[]): boolean =>
  execute(db, `delete from "${table}" where ${where} limit ${batchRows}`, ...values) === batchRows;

/** Removes what the audit log says about something erased. The entries stay. */
function forgetTarget(db: Db, orgId: string, targetId: string): void {
  execute(
    db,
    "update audit_entries set target_name = null, changes = null where org_id = ? and target_id = ? and (target_name is not null or changes is not null)",
    orgId,
    targetId,
  );
}

/** Erases a job with its earlier attempts. `subject`: the ID of what the job is about. */
function eraseJob(db: Db, kind: string, subject: string): void {
  execute(
    db,
    "delete from earlier_attempts where job_id in (select id from jobs where kind = ? and subject = ?)",
    kind,
    subject,
  );
  execute(db, "delete from jobs where kind = ? and subject = ?", kind, subject);
}

/** Erases one small part of a run with its session and report. False: nothing is left. */
export function eraseFromRun(db: Db, orgId: string, runId: string): boolean {
  const tables = erasableTables(db).filter(({ name }) => name !== "runs" && name !== "reports");
  for (const { name, columns } of tables)
    if (columns.has("run_id") && eraseBatch(db, name, "run_id = ?", runId)) return true;
  const reportId = find(db, "select id from reports where run_id = ?", runId);
  if (reportId !== null) {
    for (const { name, columns } of tables)
      if (columns.has("report_id") && eraseBatch(db, name, "org_id = ? and report_id = ?", orgId, reportId))
        return true;
    const slug = find(db, "select slug from reports where id = ?", reportId) ?? "";
    execute(db, "insert or ignore into erased_slugs (digest) values (?)", slugDigest(slug));
    execute(db, "delete from reports where id = ?", reportId);
    for (const id of [reportId, slug]) forgetTarget(db, orgId, id);
  }
  eraseJob(db, "run", runId);
  forgetTarget(db, orgId, runId);
  execute(db, "delete from runs where id = ?", runId);
  return false;
}

/** Erases one small part of a hidden prompt. The last part removes it from the list of hidden prompts. */
export function eraseFromPrompt(db: Db, orgId: string, promptId: string): void {
  const runId = find(db, "select id from runs where org_id = ? and prompt_id = ? limit 1", orgId, promptId);
  if (runId !== null) {
    eraseFromRun(db, orgId, runId);
    return;
  }
  if (eraseNotification(db, "org_id = ? and prompt_id = ?", orgId, promptId)) return;
  // Messages about several prompts.
  if (eraseNotification(db, "org_id = ? and prompt_id is null and instr(data, ?) > 0", orgId, promptId)) return;
  if (eraseRegrade(db, "org_id = ? and prompt_id = ?", orgId, promptId)) return;
  if (eraseEvaluation(db, orgId, promptId)) return;
  execute(db, "delete from gates where org_id = ? and others is not null and instr(others, ?) > 0", orgId, promptId);
  execute(db, "delete from inbox_marks where org_id = ? and instr(item_id, ?) > 0", orgId, promptId);
  for (const { name, columns } of erasableTables(db))
    if (columns.has("prompt_id") && columns.has("org_id"))
      if (eraseBatch(db, name, "org_id = ? and prompt_id = ?", orgId, promptId)) return;
  forgetTarget(db, orgId, promptId);
  execute(db, "delete from prompts where org_id = ? and id = ?", orgId, promptId);
  execute(db, "delete from deleted_prompts where prompt_id = ?", promptId);
}

/** Erases a notification that mentions a deleted run and isn't hidden with it. False: there is none. */
export function eraseMention(db: Db, orgId: string, promptId: string, runId: string, slug: string | null): boolean {
  const mentions = "(instr(data, ?) > 0 or instr(data, ?) > 0)";
  return (
    eraseNotification(db, `org_id = ? and prompt_id = ? and ${mentions}`, orgId, promptId, runId, slug) ||
    eraseNotification(db, `org_id = ? and prompt_id is null and ${mentions}`, orgId, runId, slug)
  );
}

/** Erases an evaluation without runs, and what refers to it. False: the prompt has none. */
function eraseEvaluation(db: Db, orgId: string, promptId: string): boolean {
  const id = find(db, "select id from eval_requests where org_id = ? and prompt_id = ? limit 1", orgId, promptId);
  if (id === null) return false;
  const gateIds = db.$client
    .query("select id from gates where org_id = ?1 and (head_request_id = ?2 or base_request_id = ?2)")
    .values(orgId, id) as [string][];
  for (const [gateId] of gateIds) {
    forgetTarget(db, orgId, gateId);
    execute(db, "delete from gates where id = ?", gateId);
  }
  execute(db, "delete from scheduled_evaluations where org_id = ? and eval_request_id = ?", orgId, id);
  execute(db, "delete from fixes where org_id = ?1 and (before_id = ?2 or after_id = ?2)", orgId, id);
  // A run of the evaluation that was deleted on its own belongs to another hidden prompt.
  const promptOfRun = "select prompt_id from runs where org_id = ? and eval_request_id = ? limit 1";
  const hidingPrompt = find(db, promptOfRun, orgId, id);
  if (hidingPrompt !== null) execute(db, "update eval_requests set prompt_id = ? where id = ?", hidingPrompt, id);
  else {
    forgetTarget(db, orgId, id);
    execute(db, "delete from eval_requests where id = ?", id);
  }
  return true;
}

/** Erases a regrade with its jobs. False: none matches. */
function eraseRegrade(db: Db, where: string, ...values: SQLQueryBindings[]): boolean {
  const id = find(db, `select id from regrades where ${where} limit 1`, ...values);
  if (id === null) return false;
  // The subject of each job is the ID, a slash and a number: a tilde sorts after them.
  const ofRegrade = "kind = 'regrade' and subject >= ?1 and subject < ?1 || '~'";
  execute(db, `delete from earlier_attempts where job_id in (select id from jobs where ${ofRegrade})`, id);
  execute(db, `delete from jobs where ${ofRegrade}`, id);
  execute(db, "delete from regrades where id = ?", id);
  return true;
}

/** Erases counts of access logs of the months before `month`. False: nothing is left. */
export const eraseOldTraffic = (db: Db, month: string): boolean => eraseBatch(db, "field_traffic", "month < ?", month);

/** Erases a set of proposals with its job. False: none matches. */
export function eraseProposalSet(db: Db, where: string, ...values: SQLQueryBindings[]): boolean {
  const id = find(db, `select id from proposal_sets where ${where} limit 1`, ...values);
  if (id === null) return false;
  eraseJob(db, "proposal", id);
  execute(db, "delete from proposal_sets where id = ?", id);
  return true;
}

/** Erases a notification with its deliveries. False: no notification matches. */
function eraseNotification(db: Db, where: string, ...values: SQLQueryBindings[]): boolean {
  const id = find(db, `select id from notifications where ${where} limit 1`, ...values);
  if (id === null) return false;
  const ofNotification = "select id from deliveries where notification_id = ?";
  for (const [deliveryId] of db.$client.query(ofNotification).values(id) as [string][]) {
    execute(db, "delete from delivery_tries where delivery_id = ?", deliveryId);
    eraseJob(db, "delivery", deliveryId);
    execute(db, "delete from deliveries where id = ?", deliveryId);
  }
  execute(db, "delete from notifications where id = ?", id);
  return true;
}

/** Tables whose rows are erased last, after all others of an organization. */
const erasedLast = new Set(["orgs", "former_members", "audit_entries"]);

/** Erases one small part of a hidden organization whose prompts are erased. False: nothing is left. */
export function eraseFromOrg(db: Db, orgId: string): boolean {
  const ofOrg = "org_id = ?";
  if (eraseNotification(db, ofOrg, orgId) || eraseRegrade(db, ofOrg, orgId) || eraseProposalSet(db, ofOrg, orgId))
    return true;
  for (const { name, isIndexedByOrg } of erasableTables(db))
    if (isIndexedByOrg && !erasedLast.has(name) && eraseBatch(db, name, ofOrg, orgId)) return true;
  execute(db, "update sign_ins set org_id = null where org_id = ?", orgId);
  execute(db, "delete from pauses where kind = 'organization' and subject = ?", orgId);
  // A trigger added its members when they were erased.
  execute(db, "delete from former_members where org_id = ?", orgId);
  execute(db, "delete from orgs where id = ?", orgId);
  // Entries are kept while their organization exists.
  return eraseBatch(db, "audit_entries", ofOrg, orgId);
}

/** Removes an erased organization from the list of hidden ones. */
export const unhideOrg = (db: Db, orgId: string): void =>
  void execute(db, "delete from deleted_orgs where org_id = ?", orgId);

/** Runs that one step looks at. */
const maxRunsPerStep = 200;

/** The tables of a session that an organization can keep for a shorter time than its report. */
export type SessionTable = "artifacts" | "session_pages" | "session_events";

/**
 * Erases a part of the rows that `tables` have of the next session that ended before a time. It looks at runs with IDs between `after` and `endId`.
 * Returns the `after` of the next call; null: nothing is left.
 */
export function eraseOldSession(
  db: Db,
  { orgId, endId, beforeMs, after }: { orgId: string; endId: string; beforeMs: number; after: string },
  tables: readonly SessionTable[],
): string | null {
  const runsAfter =
    "select id from runs where org_id = ? and id > ? and id < ? and completed_at < ? order by id limit ?";
  const rows = db.$client.query(runsAfter).values(orgId, after, endId, beforeMs, maxRunsPerStep) as [string][];
  let last = after;
  for (const [runId] of rows) {
    // Events come last: without them, nothing refers to the others.
    for (const table of tables) if (eraseBatch(db, table, "run_id = ?", runId)) return last;
    last = runId;
  }
  return rows.length === 0 ? null : last;
}

/** Erases a notification made before a time whose deliveries have all ended by then. False: nothing is left. */
export const eraseOldDelivery = (db: Db, orgId: string, endId: string, beforeMs: number): boolean =>
  eraseNotification(
    db,
    `org_id = ? and id < ? and once_key is null and not exists (select 1 from deliveries
    where deliveries.org_id = notifications.org_id and notification_id = notifications.id and (completed_at is null or completed_at >= ?))`,
    orgId,
    endId,
    beforeMs,
  );
