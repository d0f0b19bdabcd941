import type { Context, OrgId } from "../context.ts";
import { conflict, invalidField } from "../errors.ts";
import { nameOfPrompt } from "../prompts/prompts.ts";
import { acceptEval, type EvalSource } from "../runs/requests.ts";
import { listMembers } from "./members.ts";
import type { StartedSuite, SuiteRun } from "./schema.ts";
import { getSuite } from "./suites.ts";

/**
 * Runs all prompts of a suite with the same agent and model, for some products or for all. Either all evaluations are accepted or none. Throws
 * not_found, conflict, which names a changed prompt, and what `acceptEval` throws.
 */
export async function runSuite(
  ctx: Context,
  org: OrgId,
  suiteId: string,
  { providerIds, runs = 1, agent, model }: SuiteRun,
  source: EvalSource,
): Promise<StartedSuite> {
  const members = listMembers(ctx, org, getSuite(ctx, org, suiteId));
  const membersToRun = members.filter(({ providerId }) => providerIds?.includes(providerId) ?? true);
  const unknownIndex = providerIds?.findIndex((id) => members.every(({ providerId }) => providerId !== id)) ?? -1;
  if (unknownIndex >= 0)
    throw invalidField(`providerIds.${unknownIndex}`, "the suite has no prompts for this provider");
  if (membersToRun.length === 0) throw conflict("The suite has no prompts yet. Create them for a provider first.");
  const changed = membersToRun.find(({ isChanged }) => isChanged);
  if (changed)
    throw conflict(
      `The prompt ${JSON.stringify(nameOfPrompt(changed.prompt))} differs from the suite. Undo its changes, or archive it.`,
    );
  const accepted = await ctx.commit((tx) =>
    membersToRun.map(({ prompt }) => {
      const templateArgs = prompt.templateDefaults ?? {};
      return acceptEval(ctx, tx, org, prompt.id, { urlMap: {}, runs, agent, model, templateArgs, ...source });
    }),
  );
  ctx.signals.jobQueued.emit();
  return {
    evalRequestIds: accepted.map(({ evalRequestId }) => evalRequestId),
    runs: accepted.flatMap(({ runIds }) => runIds).length,
  };
}
