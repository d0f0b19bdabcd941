import { and, count, desc, eq, inArray, ne, sql } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import { forgetKeys } from "../auth/keys.ts";
import { getOrg } from "../auth/orgs.ts";
import type { Context, OrgId } from "../context.ts";
import { includingDeleted } from "../db/hidden-rows.ts";
import type { Tx } from "../db/open.ts";
import { type DeletionCounts, deletedOrgs, deletedPrompts, deletions } from "../db/tables/deletions.ts";
import { members } from "../db/tables/people.ts";
import { prompts } from "../db/tables/prompts.ts";
import { reports, runCounts } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { conflict, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { countChange } from "../reports/counts.ts";
import { titleOf } from "../reports/labels.ts";
import { getReportRow } from "../reports/report-row.ts";
import { cancelDeletedRuns, stopEndedRuns } from "../runs/endings.ts";
import { getRunRow } from "../runs/run-row.ts";
import { toIso } from "../schema.ts";
import { cancelRunningRuns, cancelUnfinishedRuns } from "./cancellation.ts";
import { addHidingPrompt, moveRun } from "./moves.ts";
import type { Deletion } from "./schema.ts";

const hourMs = 3600_000;
/** How long each kind of deletion can be restored, in milliseconds. */
const restorableMs = { organization: 7 * 24 * hourMs, prompt: 24 * hourMs, run: 24 * hourMs } as const;

type DeletionRow = typeof deletions.$inferSelect;

const toDeletion = (row: DeletionRow): Deletion => ({
  id: row.id,
  kind: row.kind,
  subjectId: row.subjectId,
  title: row.title,
  counts: row.counts,
  status: row.status,
  deletedBy: row.deletedBy,
  createdAt: toIso(row.createdAt),
  erasesAt: toIso(row.erasesAt),
  completedAt: toIso(row.completedAt),
});

/** What would be lost with a prompt, or with all of the organization. */
export function countDeleted({ db }: Context, org: OrgId, promptId?: string): DeletionCounts {
  const ofPrompt = promptId === undefined ? undefined : eq(runCounts.promptId, promptId);
  const sumOf = (condition: ReturnType<typeof eq>) =>
    db
      .select({ n: sql<number>`coalesce(sum(${runCounts.count}), 0)` })
      .from(runCounts)
      .where(and(eq(runCounts.orgId, org), ofPrompt, condition))
      .get()?.n ?? 0;
  const ofOrg = db.select({ n: count() }).from(prompts).where(eq(prompts.orgId, org));
  return {
    prompts: promptId === undefined ? (ofOrg.get()?.n ?? 0) : 1,
    // `any` counts the runs without a report, too.
    runs: sumOf(eq(runCounts.reportStatus, "any")),
    reports: sumOf(ne(runCounts.reportStatus, "any")),
  };
}

type NewDeletion = Pick<DeletionRow, "kind" | "subjectId" | "title" | "counts" | "deletedBy"> &
  Partial<Pick<DeletionRow, "ofPrompt" | "slug">>;

function insertDeletion(ctx: Context, tx: Tx, org: OrgId, deletion: NewDeletion): DeletionRow {
  const createdAt = ctx.now();
  const row: DeletionRow = {
    ofPrompt: null,
    slug: null,
    ...deletion,
    id: ctx.newId(createdAt),
    orgId: org,
    status: "pending",
    createdAt,
    erasesAt: createdAt + restorableMs[deletion.kind],
    completedAt: null,
  };
  tx.insert(deletions).values(row).run();
  return row;
}

/**
 * Deletes a prompt with its runs and reports. It is hidden at once, its unfinished runs are cancelled soon, and it is erased after a day.
 * `deletedBy` is named in the list of deletions. Throws not_found.
 */
export async function deletePrompt(ctx: Context, org: OrgId, id: string, deletedBy: string): Promise<Deletion> {
  const { deletion, ended } = await ctx.commit((tx) => {
    const prompt = getPromptRow(ctx, org, id);
    const counts = countDeleted(ctx, org, prompt.id);
    const title = titleOf(prompt);
    const deletion = insertDeletion(ctx, tx, org, { kind: "prompt", subjectId: prompt.id, title, counts, deletedBy });
    tx.insert(deletedPrompts).values({ promptId: prompt.id, deletionId: deletion.id }).run();
    recordAudit(ctx, org, "prompt.deleted", { id: prompt.id, name: title });
    return { deletion, ended: cancelRunningRuns(ctx, tx, deletion) };
  });
  stopEndedRuns(ctx, ended);
  ctx.signals.scheduleChanged.emit();
  // The loop that erases also cancels the runs that have not started.
  ctx.signals.erasureDue.emit();
  return toDeletion(deletion);
}

/** Deletes a run with its session and report, as `deletePrompt` does. Throws not_found. */
export async function deleteRun(ctx: Context, org: OrgId, id: string, deletedBy: string): Promise<Deletion> {
  const { deletion, ended } = await ctx.commit((tx) => {
    const run = getRunRow(ctx, org, id);
    const ended = run.completedAt === null ? [run.id] : [];
    cancelDeletedRuns(ctx, tx, ended, deletedBy);
    return { deletion: hideRun(ctx, tx, org, id, deletedBy), ended };
  });
  stopEndedRuns(ctx, ended);
  return toDeletion(deletion);
}

/** Deletes a report with its run. Throws not_found. */
export const deleteReport = (ctx: Context, org: OrgId, slug: string, deletedBy: string): Promise<Deletion> =>
  deleteRun(ctx, org, getReportRow(ctx.db, org, slug).runId, deletedBy);

/** Hides a run with its report by moving it to a hidden prompt of its own. Returns the deletion. */
function hideRun(ctx: Context, tx: Tx, org: OrgId, id: string, deletedBy: string): DeletionRow {
  const run = getRunRow(ctx, org, id);
  const report = tx.select().from(reports).where(eq(reports.runId, run.id)).get();
  const deletion = insertDeletion(ctx, tx, org, {
    kind: "run",
    subjectId: run.id,
    ofPrompt: run.promptId,
    slug: report?.slug ?? null,
    title: titleOf(run.task),
    counts: { prompts: 0, runs: 1, reports: report ? 1 : 0 },
    deletedBy,
  });
  const hidingPromptId = addHidingPrompt(ctx, tx, getPromptRow(ctx, org, run.promptId));
  const hide = () => {
    moveRun(tx, run, hidingPromptId);
    tx.insert(deletedPrompts).values({ promptId: hidingPromptId, deletionId: deletion.id }).run();
  };
  if (report) countChange(ctx, tx, report.id, hide, { announces: false });
  else hide();
  recordAudit(ctx, org, "run.deleted", { id: run.id, name: deletion.title });
  return deletion;
}

/**
 * Deletes an organization with everything in it. Its API keys and members lose access at once, and it is erased after seven days. Throws
 * not_found.
 */
export async function deleteOrg(ctx: Context, org: OrgId, deletedBy: string): Promise<Deletion> {
  const { deletion, ended } = await ctx.commit((tx) => {
    const { name } = getOrg(ctx, org);
    const counts = countDeleted(ctx, org);
    const row = { kind: "organization", subjectId: org, title: name, counts, deletedBy } as const;
    const deletion = insertDeletion(ctx, tx, org, row);
    // Prompts that were deleted before keep their own deletion: restoring the organization doesn't restore them.
    tx.run(sql`insert or ignore into deleted_prompts select id, ${deletion.id} from prompts where org_id = ${org}`);
    tx.insert(deletedOrgs).values({ orgId: org, deletionId: deletion.id }).run();
    recordAudit(ctx, org, "organization.deleted", { id: org, name });
    return { deletion, ended: cancelRunningRuns(ctx, tx, deletion) };
  });
  forgetKeys(ctx);
  stopEndedRuns(ctx, ended);
  ctx.signals.scheduleChanged.emit();
  ctx.signals.erasureDue.emit();
  return toDeletion(deletion);
}

function getDeletionRow(tx: Tx | Context["db"], org: OrgId, id: string): DeletionRow {
  const where = and(eq(deletions.orgId, org), eq(deletions.id, id.toLowerCase()));
  const row = tx.select().from(deletions).where(where).get();
  if (!row) throw notFound(`No deletion has the ID ${id}.`);
  return row;
}

/** Throws not_found. */
export const getDeletion = (ctx: Context, org: OrgId, id: string): Deletion =>
  toDeletion(getDeletionRow(ctx.db, org, id));

/** Newest first. */
export function listDeletions({ db }: Context, org: OrgId, { limit, offset }: Page): Paged<Deletion> {
  const where = eq(deletions.orgId, org);
  const rows = db.select().from(deletions).where(where).orderBy(desc(deletions.id)).limit(limit).offset(offset).all();
  const total = db.select({ n: count() }).from(deletions).where(where).get()?.n ?? 0;
  return { items: rows.map(toDeletion), total };
}

/**
 * Restores what was deleted. It is as it was, except that its unfinished runs were cancelled. Throws not_found, and conflict if it can no longer be
 * restored.
 */
export async function restore(ctx: Context, org: OrgId, id: string): Promise<Deletion> {
  const rowBefore = getDeletionRow(ctx.db, org, id);
  // The loop may have cancelled only some of its unfinished runs by now.
  if (rowBefore.status === "pending") await cancelUnfinishedRuns(ctx, rowBefore);
  const deletion = await ctx.commit((tx) => {
    const row = getDeletionRow(tx, org, id);
    if (row.status !== "pending") throw conflict(`This deletion can't be undone: its status is ${row.status}.`);
    if (row.kind === "run") unhideRun(ctx, tx, row);
    else {
      tx.delete(deletedPrompts).where(eq(deletedPrompts.deletionId, row.id)).run();
      tx.delete(deletedOrgs).where(eq(deletedOrgs.deletionId, row.id)).run();
    }
    const end = { status: "restored", completedAt: ctx.now() } as const;
    tx.update(deletions).set(end).where(eq(deletions.id, row.id)).run();
    recordAudit(ctx, org, "deletion.restored", { id: row.subjectId, name: row.title });
    return { ...row, ...end };
  });
  forgetKeys(ctx);
  ctx.signals.scheduleChanged.emit();
  return toDeletion(deletion);
}

/** Moves a deleted run back to its prompt, and removes the prompt that hid it. Throws conflict if its prompt was erased. */
function unhideRun(ctx: Context, tx: Tx, { id, subjectId, ofPrompt }: DeletionRow): void {
  const everything = includingDeleted(ctx.db);
  const run = everything.select().from(runs).where(eq(runs.id, subjectId)).get();
  const originalPrompt = everything
    .select({ id: prompts.id })
    .from(prompts)
    .where(eq(prompts.id, ofPrompt ?? ""))
    .get();
  if (!run || !originalPrompt) throw conflict("This deletion can't be undone: the prompt of the run was erased.");
  const report = everything.select({ id: reports.id }).from(reports).where(eq(reports.runId, run.id)).get();
  const show = () => {
    moveRun(tx, run, originalPrompt.id);
    tx.delete(deletedPrompts).where(eq(deletedPrompts.deletionId, id)).run();
  };
  if (report) countChange(ctx, tx, report.id, show, { announces: false });
  else show();
  const { promptId: hidingPromptId } = run;
  tx.delete(runCounts).where(eq(runCounts.promptId, hidingPromptId)).run();
  tx.run(sql`delete from eval_counts where prompt_id = ${hidingPromptId}`);
  tx.delete(prompts).where(eq(prompts.id, hidingPromptId)).run();
}

/** Erases a deletion now, before its time to be restored is over. Throws not_found, and conflict if it was restored. */
export async function eraseNow(ctx: Context, org: OrgId, id: string): Promise<Deletion> {
  const deletion = await ctx.commit((tx) => {
    const row = getDeletionRow(tx, org, id);
    if (row.status === "restored") throw conflict("It was restored: delete it again.");
    const whereOpen = and(eq(deletions.id, row.id), inArray(deletions.status, ["pending", "erasing"]));
    tx.update(deletions).set({ status: "erasing", erasesAt: ctx.now() }).where(whereOpen).run();
    recordAudit(ctx, org, "deletion.erasure_requested", { id: row.subjectId, name: row.title });
    return getDeletionRow(tx, org, row.id);
  });
  ctx.signals.erasureDue.emit();
  return toDeletion(deletion);
}

/** The deleted organizations that a person owns and can restore. */
export function listDeletedOrgsOf(ctx: Context, personId: string): (Deletion & { org: OrgId })[] {
  const where = and(eq(members.personId, personId), eq(members.role, "owner"));
  const rows = includingDeleted(ctx.db).select({ org: members.orgId }).from(members).where(where).all();
  return listDeletedOrgs(ctx).filter(({ org }) => rows.some((row) => row.org === org));
}

/** The deleted organizations that can still be restored, by their name. For the command line, and their owners. */
export const listDeletedOrgs = ({ db }: Context): (Deletion & { org: OrgId })[] =>
  db
    .select()
    .from(deletions)
    .where(and(eq(deletions.kind, "organization"), eq(deletions.status, "pending")))
    .orderBy(desc(deletions.id))
    .all()
    .map((row) => ({ ...toDeletion(row), org: row.orgId as OrgId }));
