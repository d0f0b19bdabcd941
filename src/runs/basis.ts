import { and, eq, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { prompts } from "../db/tables/prompts.ts";
import { sessionEvents } from "../db/tables/runs.ts";
import type { SessionId } from "../reports/session-events.ts";
import type { RunRow } from "./run-row.ts";

const basisState = sql<"kept" | "changed">`json_extract(${sessionEvents.data}, '$.detail.basis')`;

/** Whether a session still found the text that its task is based on. null: the task is based on no text, or the page was not read. */
function findBasisState({ db }: Context, { orgId, runId, attempt }: SessionId): "kept" | "changed" | null {
  const ofSession = and(
    eq(sessionEvents.orgId, orgId),
    eq(sessionEvents.runId, runId),
    eq(sessionEvents.attempt, attempt),
    eq(sessionEvents.type, "milestone"),
    sql`json_extract(${sessionEvents.data}, '$.name') = 'page_read'`,
    sql`${basisState} is not null`,
  );
  return db.select({ state: basisState }).from(sessionEvents).where(ofSession).limit(1).get()?.state ?? null;
}

/**
 * Records in a prompt whether the text of the docs that it is based on has changed, as a run of the live docs found. Returns the work for the
 * transaction that completes the run. A prompt keeps the first run that found the text changed, until a run finds the text again.
 */
export function basisUpdateOf(
  ctx: Context,
  { id, orgId, promptId, task, urlMap, editsDigest }: RunRow,
  attempt: number,
) {
  const isLive = Object.keys(urlMap).length === 0 && editsDigest === null;
  const state = task.basis && isLive ? findBasisState(ctx, { orgId, runId: id, attempt }) : null;
  return (tx: Tx): void => {
    if (state === null) return;
    const change = { runId: id, at: ctx.now() };
    tx.update(prompts)
      .set({
        basisChange: state === "kept" ? null : sql`coalesce(${prompts.basisChange}, ${JSON.stringify(change)})`,
      })
      .where(and(eq(prompts.orgId, orgId), eq(prompts.id, promptId)))
      .run();
  };
}
