import { and, inArray, isNull } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Db, Tx } from "../db/open.ts";
import { deletions } from "../db/tables/deletions.ts";
import { cancelDeletedRuns, stopEndedRuns } from "../runs/endings.ts";
import { takeTurn } from "./erasure.ts";

/** Runs that one step cancels. */
const runsPerStep = 10;

type DeletionRow = typeof deletions.$inferSelect;

/** The runs of the prompt or the organization that was deleted. `toSql`: gets a condition on `runs`. */
function listRuns({ $client }: Db, deletion: DeletionRow, toSql: (ofDeletion: string) => string): string[] {
  const { orgId, kind, subjectId } = deletion;
  const rows =
    kind === "organization"
      ? $client.query(toSql("runs.org_id = ?")).values(orgId)
      : $client.query(toSql("runs.org_id = ? and runs.prompt_id = ?")).values(orgId, subjectId);
  return (rows as [string][]).map(([id]) => id);
}

/**
 * Cancels the running runs of a prompt or an organization that is being deleted, in the transaction that hides it. There are only a few of them.
 * Returns their IDs; pass them to `stopEndedRuns` after the commit.
 */
export function cancelRunningRuns(ctx: Context, tx: Tx, deletion: DeletionRow): string[] {
  // Without `indexed by`, SQLite reads all jobs, or in `listUnfinished` all runs of the organization.
  const ids = listRuns(
    ctx.db,
    deletion,
    (ofDeletion) =>
      `select runs.id from jobs indexed by jobs_running cross join runs on runs.id = jobs.subject
      where jobs.state = 'running' and jobs.kind = 'run' and runs.completed_at is null and ${ofDeletion}`,
  );
  cancelDeletedRuns(ctx, tx, ids, deletion.deletedBy ?? "");
  return ids;
}

const listUnfinished = (db: Db, deletion: DeletionRow) =>
  listRuns(
    db,
    deletion,
    (ofDeletion) =>
      `select id from runs indexed by runs_unfinished where completed_at is null and ${ofDeletion} limit ${runsPerStep}`,
  );

/** Cancels the unfinished runs of a hidden prompt or organization, in short turns. */
export async function cancelUnfinishedRuns(ctx: Context, deletion: DeletionRow, stop?: AbortSignal): Promise<void> {
  const { db } = ctx;
  if (deletion.kind === "run" || listUnfinished(db, deletion).length === 0) return;
  let isMoreLeft = true;
  while (isMoreLeft && !stop?.aborted) {
    const cancelled: string[] = [];
    isMoreLeft = await takeTurn(db, () => {
      const ids = listUnfinished(db, deletion);
      // `takeTurn` has opened the transaction.
      cancelDeletedRuns(ctx, db as unknown as Tx, ids, deletion.deletedBy ?? "");
      cancelled.push(...ids);
      return ids.length > 0;
    });
    stopEndedRuns(ctx, cancelled);
  }
}

/** Cancels the unfinished runs of all deletions. A process that is killed goes on at its next start. */
export async function cancelRunsOfDeletions(ctx: Context, stop: AbortSignal): Promise<void> {
  const open = and(isNull(deletions.completedAt), inArray(deletions.kind, ["prompt", "organization"]));
  for (const row of ctx.db.select().from(deletions).where(open).all()) {
    if (stop.aborted) return;
    await cancelUnfinishedRuns(ctx, row, stop);
  }
}
