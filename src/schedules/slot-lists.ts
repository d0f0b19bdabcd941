import { and, count, desc, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { slots } from "../db/tables/slots.ts";
import type { Page, Paged } from "../http/paging.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { toIso } from "../schema.ts";
import type { Slot } from "./schema.ts";

/** The slots of a prompt with their outcomes, newest first. Throws not_found. */
export function listSlots(ctx: Context, org: OrgId, promptId: string, { limit, offset }: Page): Paged<Slot> {
  const { id } = getPromptRow(ctx, org, promptId);
  const own = and(eq(slots.orgId, org), eq(slots.promptId, id));
  const rows = ctx.db
    .select()
    .from(slots)
    .where(own)
    .orderBy(desc(slots.scheduledAt))
    .limit(limit)
    .offset(offset)
    .all();
  return {
    items: rows.map(({ scheduledAt, outcome, evalRequestId, reason, createdAt }) => ({
      scheduledAt: toIso(scheduledAt),
      outcome,
      evalRequestId,
      reason,
      createdAt: toIso(createdAt),
    })),
    total: ctx.db.select({ n: count() }).from(slots).where(own).get()?.n ?? 0,
  };
}
