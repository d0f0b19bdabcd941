import { type Static, Type } from "@sinclair/typebox";
import { and, asc, eq, gt, ne } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import type { Commit } from "../db/commit.ts";
import { orgs } from "../db/tables/orgs.ts";
import { prompts, providers } from "../db/tables/prompts.ts";
import { AppError, badRequest } from "../errors.ts";
import { yieldToEventLoop } from "../event-loop.ts";
import { Id } from "../schema.ts";
import { hasTag } from "./lists.ts";
import { checkFrequency, checkSchedule } from "./prompt-check.ts";
import { PromptPatch } from "./schema.ts";

/** Prompts changed in one transaction. Requests are answered in between. */
const batch = 50;
/** Problems that a response contains. */
const maxProblems = 20;

export const TagSchedule = Type.Object(
  {
    tag: Type.String({ minLength: 1, maxLength: 50, description: "All prompts with this tag that are not archived" }),
    frequency: Type.Required(Type.Pick(PromptPatch, ["frequency"])).properties.frequency,
  },
  { title: "TagSchedule", examples: [{ tag: "nightly", frequency: "0 3 * * *" }] },
);
export type TagSchedule = Static<typeof TagSchedule>;

export const TagScheduled = Type.Object(
  {
    scheduled: Type.Integer({ minimum: 0, description: "Prompts that have the frequency now" }),
    skipped: Type.Integer({ minimum: 0, description: "Prompts that can't have it, and were not changed" }),
    problems: Type.Array(Type.Object({ promptId: Id, detail: Type.String() }), {
      description: "Why prompts were skipped, the first 20",
    }),
  },
  { title: "TagScheduled" },
);
export type TagScheduled = Static<typeof TagScheduled>;

export type TagSchedules = ReturnType<typeof createTagSchedules>;

const { id, status } = prompts;
const provider = { docsUrl: providers.docsUrl, productUrl: providers.productUrl };

/** Schedules for all prompts with a tag. Each prompt keeps its own slots, `runsPerEval` and defaults. */
export function createTagSchedules({ db, now, signals }: Context, { commit }: { commit: Commit }) {
  return {
    /**
     * Sets the frequency of every prompt with the tag; null removes it. Prompts that can't have it are skipped. Throws bad_request for an
     * invalid frequency, or a tag that no prompt has.
     */
    async scheduleTag(org: OrgId, { tag, frequency }: TagSchedule): Promise<TagScheduled> {
      checkFrequency(frequency);
      const timeZone = db.select({ zone: orgs.timeZone }).from(orgs).where(eq(orgs.id, org)).get()?.zone ?? "UTC";
      const tagged = and(eq(prompts.orgId, org), ne(status, "archived"), hasTag(tag));
      const after = (last: string) => {
        const rows = db.select({ row: prompts, provider }).from(prompts);
        const ofPrompt = and(eq(providers.orgId, prompts.orgId), eq(providers.id, prompts.targetProviderId));
        return rows
          .leftJoin(providers, ofPrompt)
          .where(and(tagged, gt(id, last)))
          .orderBy(asc(id))
          .limit(batch)
          .all();
      };
      let scheduled = 0;
      const problems: TagScheduled["problems"] = [];
      const change = ({ row, provider }: ReturnType<typeof after>[number]) => {
        try {
          checkSchedule({ ...row, frequency }, provider);
        } catch (error) {
          if (!(error instanceof AppError)) throw error;
          problems.push({ promptId: row.id, detail: error.detail });
          return;
        }
        scheduled++;
        // Its slots stay the same.
        if (row.frequency === frequency) return;
        const isScheduled = frequency !== null && row.status === "active";
        const nextSlotAt = isScheduled ? nextTime({ id: row.id, frequency, timeZone }, now()) : null;
        db.update(prompts)
          .set({ frequency, nextSlotAt })
          .where(and(eq(prompts.orgId, org), eq(id, row.id)))
          .run();
      };
      for (let last = ""; ; await yieldToEventLoop()) {
        const rows = await commit(() => {
          const found = after(last);
          for (const row of found) change(row);
          return found;
        });
        last = rows.at(-1)?.row.id ?? last;
        if (rows.length < batch) break;
      }
      const skipped = problems.length;
      if (scheduled + skipped === 0) throw badRequest(`Invalid tag: no prompt has the tag ${JSON.stringify(tag)}.`);
      signals.scheduleChanged.emit();
      return { scheduled, skipped, problems: problems.slice(0, maxProblems) };
    },
  };
}
