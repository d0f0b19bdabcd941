import { Cron } from "croner";
import { and, count, desc, eq, ne, sql } from "drizzle-orm";
import { prompts, providers } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Page, Paged } from "../paging.ts";
import { checkHttpUrl } from "../schema.ts";
import type { Prompt, PromptInput, PromptPatch, PromptSummary } from "./schema.ts";
import { templateVarsOf } from "./template.ts";

const presets = ["hourly", "daily", "weekly", "monthly"];

type PromptRow = typeof prompts.$inferSelect;

export function toPromptSummary(row: Pick<PromptRow, keyof PromptSummary>): PromptSummary {
  return {
    id: row.id,
    title: row.title,
    text: row.text,
    endGoal: row.endGoal,
    status: row.status,
    templateVars: row.templateVars,
    createdAt: new Date(row.createdAt).toISOString(),
  };
}

const toPrompt = (row: PromptRow): Prompt => ({
  ...toPromptSummary(row),
  frequency: row.frequency,
  runsPerEval: row.runsPerEval,
  targetProviderId: row.targetProviderId,
  additionalUrls: row.additionalUrls,
  templateDefaults: row.templateDefaults,
  declaredChecks: row.declaredChecks,
  agent: row.agent,
  model: row.model,
  reviewBeforePublishing: row.reviewBeforePublishing,
});

export type Prompts = ReturnType<typeof createPrompts>;

/** `agentIds`: the agents that this service can send; a prompt that names another is refused. */
export function createPrompts({ db, now, newId }: Pick<Deps, "db" | "now" | "newId">, agentIds: string[]) {
  const byId = db
    .select()
    .from(prompts)
    .where(and(eq(prompts.orgId, sql.placeholder("org")), eq(prompts.id, sql.placeholder("id"))))
    .prepare();

  /** The row itself, for other features. Throws not_found. */
  function getPromptRow(org: OrgId, id: string): PromptRow {
    const row = byId.get({ org, id: id.toLowerCase() });
    if (!row) throw notFound(`no prompt has the id ${id}`);
    return row;
  }

  function check(org: OrgId, row: PromptRow): PromptRow {
    const targetProviderId = row.targetProviderId?.toLowerCase() ?? null;
    if (targetProviderId !== null) {
      const own = and(eq(providers.orgId, org), eq(providers.id, targetProviderId));
      if (!db.select({ id: providers.id }).from(providers).where(own).get())
        throw badRequest(`targetProviderId: no provider has the id ${targetProviderId}`);
    }
    const { additionalUrls, declaredChecks } = row;
    for (const [field, listed] of Object.entries({ additionalUrls, declaredChecks }))
      for (const [i, { url }] of (listed ?? []).entries()) checkHttpUrl(`${field}.${i}.url`, url);
    if (row.frequency !== null) checkFrequency(row.frequency);
    const lacking = (row.templateVars ?? []).filter((name) => !Object.hasOwn(row.templateDefaults ?? {}, name));
    if (row.frequency !== null && lacking.length > 0)
      throw badRequest(`frequency: a scheduled prompt needs templateDefaults for its variables: ${lacking.join(", ")}`);
    if (row.agent !== null && !agentIds.includes(row.agent))
      throw badRequest(`agent: ${JSON.stringify(row.agent)} is not available here; use ${agentIds.join(" or ")}`);
    if (row.model !== null) throw badRequest("model: no agent that is available here uses a model; leave it null");
    return { ...row, targetProviderId };
  }

  return {
    getPromptRow,
    getPrompt: (org: OrgId, id: string): Prompt => toPrompt(getPromptRow(org, id)),

    /** Newest first. */
    listPrompts(
      org: OrgId,
      { limit, offset, includeArchived }: Page & { includeArchived: boolean },
    ): Paged<PromptSummary> {
      const where = includeArchived
        ? eq(prompts.orgId, org)
        : and(eq(prompts.orgId, org), ne(prompts.status, "archived"));
      const rows = db.select().from(prompts).where(where).orderBy(desc(prompts.id)).limit(limit).offset(offset).all();
      const total = db.select({ n: count() }).from(prompts).where(where).get()?.n ?? 0;
      return { items: rows.map(toPromptSummary), total };
    },

    /** Throws bad_request that names the field. */
    createPrompt(org: OrgId, input: PromptInput): Prompt {
      const createdAt = now();
      const row = check(org, {
        id: newId(createdAt),
        orgId: org,
        title: input.title ?? null,
        text: input.text,
        endGoal: input.endGoal ?? null,
        status: "active",
        frequency: input.frequency ?? null,
        runsPerEval: input.runsPerEval ?? null,
        targetProviderId: input.targetProviderId ?? null,
        additionalUrls: input.additionalUrls ?? null,
        templateVars: templateVarsOf(input.text, input.endGoal ?? null),
        templateDefaults: input.templateDefaults ?? null,
        declaredChecks: input.declaredChecks ?? null,
        agent: input.agent ?? null,
        model: input.model ?? null,
        reviewBeforePublishing: input.reviewBeforePublishing ?? false,
        createdAt,
      });
      db.insert(prompts).values(row).run();
      return toPrompt(row);
    },

    /** Fields that are not given stay as they are. Throws not_found, and bad_request that names the field. */
    updatePrompt(org: OrgId, id: string, patch: PromptPatch): Prompt {
      const changed = { ...getPromptRow(org, id), ...patch };
      const row = check(org, { ...changed, templateVars: templateVarsOf(changed.text, changed.endGoal) });
      db.update(prompts)
        .set(row)
        .where(and(eq(prompts.orgId, org), eq(prompts.id, row.id)))
        .run();
      return toPrompt(row);
    },
  };
}

/** A preset, or five cron fields that do come around: `0 0 30 2 *` never does. */
function checkFrequency(frequency: string): void {
  if (presets.includes(frequency)) return;
  const expected = `use ${presets.join(", ")} or five cron fields, as in 0 6 * * 1-5`;
  if (frequency.trim().split(/\s+/).length !== 5)
    throw badRequest(`frequency: ${JSON.stringify(frequency)} is not understood; ${expected}`);
  let next: Date | null;
  try {
    next = new Cron(frequency, { paused: true }).nextRun();
  } catch {
    throw badRequest(`frequency: ${JSON.stringify(frequency)} is not understood; ${expected}`);
  }
  if (!next) throw badRequest(`frequency: ${JSON.stringify(frequency)} never comes around; ${expected}`);
}
