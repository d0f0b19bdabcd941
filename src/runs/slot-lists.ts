import { and, count, desc, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { slots } from "../db/tables/slots.ts";
import type { Page, Paged } from "../http/paging.ts";
import type { Prompts } from "../prompts/prompts.ts";
import { toIso } from "../schema.ts";
import type { Slot } from "./slot-schema.ts";

export function createSlotLists({ db }: Pick<Context, "db">, ofPrompts: Pick<Prompts, "getPromptRow">) {
  return {
    /** The slots of a prompt with their outcomes, newest first. Throws not_found. */
    listSlots(org: OrgId, promptId: string, { limit, offset }: Page): Paged<Slot> {
      const { id } = ofPrompts.getPromptRow(org, promptId);
      const own = and(eq(slots.orgId, org), eq(slots.promptId, id));
      const rows = db
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
        total: db.select({ n: count() }).from(slots).where(own).get()?.n ?? 0,
      };
    },
  };
}
