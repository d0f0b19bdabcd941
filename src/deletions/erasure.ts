import { and, asc, eq, isNull, lte, or } from "drizzle-orm";
import type { Context } from "../context.ts";
import { type Db, transaction } from "../db/open.ts";
import { deletions } from "../db/tables/deletions.ts";
import { untilUnlocked, withoutWaiting } from "../db/write-lock.ts";
import { eraseFromOrg, eraseFromPrompt, eraseMention, unhideOrg } from "./steps.ts";

/** How long one transaction erases, in milliseconds: others wait as long. */
const turnMs = 5;

type DeletionRow = typeof deletions.$inferSelect;

/**
 * Erases what was deleted and can no longer be restored. It works in short turns, with pauses as long as them. A process that is killed goes on at
 * its next start. At the end it truncates the log of the database, which still has copies of erased pages.
 */
export async function eraseDue(ctx: Context, stop: AbortSignal): Promise<void> {
  const isDue = or(eq(deletions.status, "erasing"), lte(deletions.erasesAt, ctx.provenTime.now()));
  const due = ctx.db
    .select()
    .from(deletions)
    .where(and(isNull(deletions.completedAt), isDue))
    .orderBy(asc(deletions.erasesAt))
    .all();
  for (const row of due) {
    if (stop.aborted) return;
    await erase(ctx, row, stop);
  }
}

async function erase(ctx: Context, row: DeletionRow, stop: AbortSignal): Promise<void> {
  const { db, log } = ctx;
  const change = (values: Partial<DeletionRow>) =>
    transaction(db, (tx) => tx.update(deletions).set(values).where(eq(deletions.id, row.id)).run());
  if (row.status === "pending") change({ status: "erasing" });
  while (await takeTurn(db, () => eraseStep(db, row))) if (stop.aborted) return;
  change({ title: null, slug: null, deletedBy: null });
  // A reader that holds it back is done soon: the next pass tries again.
  if (!truncateLog(db)) return;
  change({ status: "erased", completedAt: ctx.now() });
  log.info({ deletion: row.id, kind: row.kind }, "erased what was deleted");
}

/** Erases one small part of a deletion. False: nothing is left. */
function eraseStep(db: Db, { id, orgId, kind, subjectId, ofPrompt, slug }: DeletionRow): boolean {
  const next = db.$client
    .query<{ prompt_id: string }, [string]>("select prompt_id from deleted_prompts where deletion_id = ? limit 1")
    .get(id);
  if (next) {
    eraseFromPrompt(db, orgId, next.prompt_id);
    return true;
  }
  if (kind === "run") return eraseMention(db, orgId, ofPrompt ?? "", subjectId, slug);
  if (kind === "prompt") return false;
  if (eraseFromOrg(db, orgId)) return true;
  unhideOrg(db, orgId);
  return false;
}

/** Repeats a step for one turn, in one transaction, and pauses as long. False: nothing is left. */
export async function takeTurn(db: Db, step: () => boolean): Promise<boolean> {
  await untilUnlocked(db);
  const startedAt = performance.now();
  let isMoreLeft = true;
  transaction(db, () => {
    while (isMoreLeft && performance.now() - startedAt < turnMs) isMoreLeft = step();
  });
  await Bun.sleep(performance.now() - startedAt);
  return isMoreLeft;
}

/** Writes the log back to the database and truncates it. False: a reader holds it back. */
export const truncateLog = (db: Db): boolean =>
  db.$client.filename === ":memory:" ||
  withoutWaiting(db, () => db.$client.query<{ busy: number }, []>("pragma wal_checkpoint(truncate)").get()?.busy === 0);
