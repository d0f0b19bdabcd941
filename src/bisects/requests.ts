import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { bisects } from "../db/tables/bisects.ts";
import { conflict, invalidField } from "../errors.ts";
import { parseUrlMap } from "../net/mapping.ts";
import { agentsForRun } from "../prompts/prompt-check.ts";
import { getPromptRow, nameOfPrompt } from "../prompts/prompts.ts";
import { selectArgs } from "../prompts/template.ts";
import type { EvalSource } from "../runs/requests.ts";
import { getBisect } from "./bisects.ts";
import { checkTemplate, urlMapOf } from "./builds.ts";
import type { Bisect, BisectRequest } from "./schema.ts";

/**
 * Accepts a bisect. Its first runs are requested once its builds have answered. Throws not_found, conflict for an archived prompt, and
 * missing_template_vars. Throws bad_request for a template without {commit}, a prompt without docs and a prompt with several agents.
 */
export async function requestBisect(ctx: Context, org: OrgId, input: BisectRequest & EvalSource): Promise<Bisect> {
  const { promptId, urlTemplate, commits, agent = null, model = null, budgetUsd = null } = input;
  const prompt = getPromptRow(ctx, org, promptId);
  checkTemplate(urlTemplate);
  for (const commit of commits) parseUrlMap(urlMapOf(ctx, org, prompt, { urlTemplate, commit }));
  const agents = agentsForRun(ctx, org, prompt, { agent: agent ?? undefined, model: model ?? undefined });
  if (agents.length > 1) throw invalidField("agent", "the prompt names several agents; choose one");
  if (prompt.status === "archived") throw conflict("The prompt is archived.");
  const templateArgs = { ...prompt.templateDefaults, ...input.templateArgs };
  selectArgs(prompt.templateVars, templateArgs);
  const createdAt = ctx.now();
  const { trigger, requester: { personId = null, keyId = null } = {} } = input;
  const request = { urlTemplate, commits, templateArgs, agent, model, budgetUsd, trigger, personId, keyId };
  const id = ctx.newId(createdAt);
  const ids = { id, orgId: org, promptId: prompt.id };
  await ctx.commit((tx) => {
    tx.insert(bisects)
      .values({ ...ids, ...request, skipped: [], status: "running", createdAt })
      .run();
    const changes = changesOf({}, { promptId: prompt.id, commits: commits.length });
    recordAudit(ctx, org, "bisect.requested", { id, name: nameOfPrompt(prompt) }, changes);
  });
  return getBisect(ctx, org, id);
}
