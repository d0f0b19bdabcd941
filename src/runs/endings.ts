import { and, eq, isNull } from "drizzle-orm";
import { type Failure, type StoredFailure, toFailure, toFailureColumns, toFailureReason } from "../agents/failure.ts";
import { recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { endedAt } from "../db/rows.ts";
import { runs } from "../db/tables/runs.ts";
import { AppError, conflict } from "../errors.ts";
import { cancelJob } from "../jobs/queue.ts";
import { hostsOf } from "../net/mapping.ts";
import { announceEnd } from "./announcements.ts";
import { getRunRow, type RunRow } from "./run-row.ts";
import { costOfAttempt } from "./usage.ts";

/** Stops everything of ended runs that still runs. Call it once their end is on disk. */
export function stopEndedRuns(ctx: Context, runIds: string[]): void {
  ctx.signals.jobCancelled.emit();
  ctx.signals.runsEnded.emit(runIds);
}

/**
 * Cancels an unfinished run, which becomes failed. `requester` is named in its failure reason. A session in progress stops within a second. Throws
 * not_found, and conflict for an ended run.
 */
export async function cancelRun(ctx: Context, org: OrgId, id: string, requester: string): Promise<void> {
  const runId = await ctx.commit((tx) => {
    const run = getRunRow(ctx, org, id);
    if (run.completedAt !== null) throw conflict(`The run has already ended with status ${run.status}.`);
    const failure = toFailure("cancelled", `by ${requester}`);
    endRun(ctx, tx, run.id, toFailureColumns(failure), failure);
    recordAudit(ctx, org, "run.cancelled", { id: run.id, name: run.task.title });
    return run.id;
  });
  stopEndedRuns(ctx, [runId]);
}

/** Cancels several runs. Runs that have ended in the meantime are ignored. Otherwise throws like `cancelRun`. */
export async function cancelRuns(ctx: Context, org: OrgId, ids: string[], requester: string): Promise<void> {
  for (const id of ids)
    await cancelRun(ctx, org, id, requester).catch((error) => {
      if (!(error instanceof AppError) || error.code !== "conflict") throw error;
    });
}

/**
 * Supersedes the unfinished runs of a prompt that have the same edits and whose urlMap replaces the same hosts. `successor`: the ID of the run that
 * supersedes them. Returns their IDs; pass them to `stopEndedRuns` after the commit.
 */
export function supersedeRuns(
  ctx: Context,
  tx: Tx,
  org: OrgId,
  { promptId, urlMap, editsDigest }: Pick<RunRow, "promptId" | "urlMap" | "editsDigest">,
  successor: string,
): string[] {
  const hosts = hostsOf(urlMap);
  const unfinishedRuns = and(eq(runs.orgId, org), eq(runs.promptId, promptId), isNull(runs.completedAt));
  const rows = tx
    .select({ id: runs.id, urlMap: runs.urlMap, editsDigest: runs.editsDigest })
    .from(runs)
    .where(unfinishedRuns)
    .all();
  const ids = rows
    .filter((row) => hostsOf(row.urlMap) === hosts && row.editsDigest === editsDigest)
    .map(({ id }) => id);
  const columns = { failureCause: "superseded", failureCode: "superseded", failureSubject: successor } as const;
  for (const id of ids) endRun(ctx, tx, id, { ...columns, failureDetail: `by run ${successor}` }, null);
  return ids;
}

/** Cancels unfinished runs that were deleted, without notifying anyone. Pass the IDs to `stopEndedRuns` after the commit. */
export function cancelDeletedRuns(ctx: Context, tx: Tx, runIds: string[], requester: string): void {
  const columns = toFailureColumns(toFailure("cancelled", `by ${requester}`));
  for (const id of runIds) closeRun(ctx, tx, id, columns, "failed");
}

/** Ends an unfinished run and its job, and notifies of it. `failure`: null if it is superseded. */
function endRun(ctx: Context, tx: Tx, runId: string, columns: StoredFailure, failure: Failure | null): void {
  closeRun(ctx, tx, runId, columns, failure === null ? "superseded" : "failed");
  announceEnd(ctx, tx, runId, failure);
}

function closeRun(ctx: Context, tx: Tx, runId: string, columns: StoredFailure, status: "superseded" | "failed"): void {
  const at = ctx.now();
  const reason = toFailureReason(columns) ?? "";
  cancelJob(tx, { kind: "run", subject: runId, reason, at }, (lease) => costOfAttempt(ctx, lease));
  tx.update(runs)
    .set({
      status,
      ...columns,
      completedAt: endedAt(at, runs.startedAt),
      reservedUsd: null,
      waitingFor: null,
    })
    .where(eq(runs.id, runId))
    .run();
}
