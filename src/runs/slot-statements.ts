import { and, eq, gt, isNotNull, lte, min, ne, sql } from "drizzle-orm";
import type { Schedule } from "../cron.ts";
import type { Db } from "../db/open.ts";
import { prepared } from "../db/prepared.ts";
import { preparedInsert } from "../db/rows.ts";
import { orgs } from "../db/tables/orgs.ts";
import { prompts } from "../db/tables/prompts.ts";
import { slots } from "../db/tables/slots.ts";

/** Number of prompts to read at once. */
export const batch = 200;

export type SlotStatements = ReturnType<typeof prepareSlots>;
/** A prompt with the data of its schedule. */
export type ScheduledPrompt = ReturnType<SlotStatements["listRows"]["all"]>[number];

/** The prepared statements of schedules. */
export function prepareSlots(db: Db) {
  const insertSlot = preparedInsert(db, slots);
  const id = sql.placeholder("id");
  const at = sql.placeholder("at");
  const listDue = prepared(db.select({ id: prompts.id }).from(prompts).where(lte(prompts.nextSlotAt, at)));
  const firstSlot = prepared(
    db
      .select({ at: min(prompts.nextSlotAt) })
      .from(prompts)
      .where(isNotNull(prompts.nextSlotAt)),
  );
  const setNext = prepared(
    db
      .update(prompts)
      .set({ nextSlotAt: sql`${at}` })
      .where(eq(prompts.id, id)),
  );
  const forgetAfter = prepared(
    db.delete(slots).where(and(eq(slots.promptId, id), gt(slots.scheduledAt, at), ne(slots.outcome, "ran"))),
  );
  const findSlot = prepared(
    db
      .select({ at: slots.scheduledAt })
      .from(slots)
      .where(and(eq(slots.promptId, id), eq(slots.scheduledAt, at))),
  );
  const withZone = () =>
    db
      .select({
        id: prompts.id,
        orgId: prompts.orgId,
        status: prompts.status,
        frequency: prompts.frequency,
        runsPerEval: prompts.runsPerEval,
        templateDefaults: prompts.templateDefaults,
        createdAt: prompts.createdAt,
        nextSlotAt: prompts.nextSlotAt,
        timeZone: orgs.timeZone,
      })
      .from(prompts)
      .innerJoin(orgs, eq(orgs.id, prompts.orgId));
  const getRow = prepared(withZone().where(eq(prompts.id, id)));
  const listRows = prepared(
    withZone()
      .where(and(gt(prompts.id, id), isNotNull(prompts.frequency)))
      .orderBy(prompts.id)
      .limit(batch),
  );

  return { insertSlot, listDue, firstSlot, setNext, forgetAfter, findSlot, getRow, listRows };
}

/** The schedule of an active prompt that has one; null for all others. */
export const scheduleOf = ({ id, status, frequency, timeZone }: ScheduledPrompt): Schedule | null =>
  status === "active" && frequency !== null ? { id, frequency, timeZone } : null;
