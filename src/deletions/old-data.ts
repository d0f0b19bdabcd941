import { and, eq, lt } from "drizzle-orm";
import type { Context } from "../context.ts";
import { includingDeleted } from "../db/hidden-rows.ts";
import type { Tx } from "../db/open.ts";
import { firstIdOf } from "../db/rows.ts";
import { type keptKinds, retention } from "../db/tables/deletions.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { proposalRetentionMs } from "../proposals/proposal-sets.ts";
import { countChange } from "../reports/counts.ts";
import { firstMonthKept } from "../traffic/traffic.ts";
import { takeTurn } from "./erasure.ts";
import {
  eraseFromRun,
  eraseOldDelivery,
  eraseOldSession,
  eraseOldTraffic,
  eraseProposalSet,
  type SessionTable,
} from "./steps.ts";

const dayMs = 24 * 3600_000;

/** The kinds of data that are erased here; `forgetFormerMembers` erases the names of people. */
type KeptKind = Exclude<(typeof keptKinds)[number], "people">;

/**
 * Erases old sets of proposals and counts of access logs, and what organizations keep for a shorter time than the server does. It works in short
 * turns, as `eraseDue` does. A wrong clock deletes nothing.
 */
export async function eraseOldData(ctx: Context, stop: AbortSignal): Promise<void> {
  const proposalsEnd = firstIdOf(ctx.provenTime.now() - proposalRetentionMs);
  while (await takeTurn(ctx.db, () => eraseProposalSet(ctx.db, "id < ?", proposalsEnd))) if (stop.aborted) return;
  const trafficEnd = firstMonthKept(ctx.provenTime.now());
  while (await takeTurn(ctx.db, () => eraseOldTraffic(ctx.db, trafficEnd))) if (stop.aborted) return;
  for (const { orgId, kind, days } of ctx.db.select().from(retention).all()) {
    if (kind === "people") continue;
    const beforeMs = ctx.provenTime.now() - days * dayMs;
    const step = stepOf(ctx, kind, orgId, beforeMs);
    while (await takeTurn(ctx.db, step)) if (stop.aborted) return;
  }
}

/** Returns a function that erases one small part of the data that is too old. False: nothing is left. */
function stepOf(ctx: Context, kind: KeptKind, orgId: string, beforeMs: number): () => boolean {
  const { db } = ctx;
  const endId = firstIdOf(beforeMs);
  let after = "";
  const eraseSessions = (tables: SessionTable[]) => () => {
    const last = eraseOldSession(db, { orgId, endId, beforeMs, after }, tables);
    after = last ?? after;
    return last !== null;
  };
  switch (kind) {
    case "sessions":
      return eraseSessions(["artifacts", "session_pages", "session_events"]);
    case "artifacts":
      return eraseSessions(["artifacts"]);
    case "deliveries":
      return () => eraseOldDelivery(db, orgId, endId, beforeMs);
    case "reports":
      return () => eraseOldRun(ctx, orgId, endId, beforeMs);
  }
}

/** Erases a part of an old run. Its report stops counting before the first part is erased. */
function eraseOldRun(ctx: Context, orgId: string, endId: string, beforeMs: number): boolean {
  const all = includingDeleted(ctx.db);
  const isOld = and(eq(runs.orgId, orgId), lt(runs.id, endId), lt(runs.completedAt, beforeMs));
  const run = all
    .select({ id: runs.id, reportId: reports.id, status: reports.status })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .where(isOld)
    .orderBy(runs.id)
    .limit(1)
    .get();
  if (!run) return false;
  const { reportId } = run;
  if (reportId !== null && run.status !== "archived") {
    const archive = () => void all.update(reports).set({ status: "archived" }).where(eq(reports.id, reportId)).run();
    // `takeTurn` has opened the transaction.
    countChange(ctx, ctx.db as unknown as Tx, reportId, archive, { announces: false });
  }
  eraseFromRun(ctx.db, orgId, run.id);
  return true;
}
