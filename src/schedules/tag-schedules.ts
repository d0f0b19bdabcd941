import { and, asc, eq, gt, ne } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import { prompts, providers } from "../db/tables/prompts.ts";
import { AppError, badRequest } from "../errors.ts";
import { turnOfOrg } from "../http/turns.ts";
import { toFrequency } from "../prompts/frequency.ts";
import { hasTag } from "../prompts/lists.ts";
import { checkFrequency, checkSchedule } from "../prompts/prompt-check.ts";
import { scheduleOf } from "../prompts/prompts.ts";
import type { TagSchedule, TagScheduleResult } from "./schema.ts";

/** How many prompts one transaction changes. Requests are answered between transactions. */
const batchSize = 50;
/** How many problems a response contains. */
const maxProblems = 20;

/**
 * Sets the frequency of every prompt with the tag; null removes it. Each prompt keeps its own times, `runsPerEval` and defaults. Prompts that
 * can't have the frequency are skipped. Throws bad_request for an invalid frequency, or a tag that no prompt has.
 */
export async function scheduleTag(ctx: Context, org: OrgId, { tag, ...input }: TagSchedule) {
  const frequency = toFrequency(input.frequency);
  checkFrequency(frequency);
  let scheduled = 0;
  const problems: TagScheduleResult["problems"] = [];
  let lastId = "";
  while (true) {
    const rows = await ctx.commit(() => {
      const batch = listTaggedPrompts(ctx, org, tag, lastId);
      for (const each of batch) {
        const problem = schedulePrompt(ctx, each, frequency);
        if (problem === null) scheduled++;
        else problems.push({ promptId: each.prompt.id, detail: problem });
      }
      return batch;
    });
    lastId = rows.at(-1)?.prompt.id ?? lastId;
    if (rows.length < batchSize) break;
    await turnOfOrg(ctx, org);
  }
  const skipped = problems.length;
  if (scheduled + skipped === 0) throw badRequest(`Invalid tag: no prompt has the tag ${JSON.stringify(tag)}.`);
  const changes = changesOf({}, { frequency, prompts: scheduled });
  await ctx.commit(() => recordAudit(ctx, org, "tag_schedule.changed", { name: tag }, changes));
  ctx.signals.scheduleChanged.emit();
  return { scheduled, skipped, problems: problems.slice(0, maxProblems) };
}

type TaggedPrompt = ReturnType<typeof listTaggedPrompts>[number];

/** The next prompts with a tag, by ID. Archived prompts are left out. */
function listTaggedPrompts({ db }: Context, org: OrgId, tag: string, afterId: string) {
  const onProvider = and(eq(providers.orgId, prompts.orgId), eq(providers.id, prompts.targetProviderId));
  return db
    .select({ prompt: prompts, provider: { docsUrl: providers.docsUrl, productUrl: providers.productUrl } })
    .from(prompts)
    .leftJoin(providers, onProvider)
    .where(and(eq(prompts.orgId, org), ne(prompts.status, "archived"), hasTag(tag), gt(prompts.id, afterId)))
    .orderBy(asc(prompts.id))
    .limit(batchSize)
    .all();
}

/** Sets the frequency of a prompt and returns null. If the prompt can't have the frequency, returns why. */
function schedulePrompt(ctx: Context, { prompt, provider }: TaggedPrompt, frequency: string | null) {
  const { id, orgId } = prompt;
  try {
    checkSchedule({ ...prompt, frequency }, provider);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.detail;
  }
  if (prompt.frequency === frequency) return null;
  const schedule = scheduleOf(ctx, { ...prompt, frequency });
  const nextEvaluationAt = schedule && nextTime(schedule, ctx.now());
  ctx.db
    .update(prompts)
    .set({ frequency, nextEvaluationAt })
    .where(and(eq(prompts.orgId, orgId), eq(prompts.id, id)))
    .run();
  return null;
}
