import { and, eq } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { proposalSets } from "../db/tables/proposals.ts";
import { conflict, invalidField } from "../errors.ts";
import { createPrompt, getPromptRow, hasPrompt, nameOfPrompt } from "../prompts/prompts.ts";
import type { TaskProposal } from "./proposal.ts";
import { getProposalSetRow } from "./proposal-sets.ts";
import type { CreatedPrompts, ProposalAcceptance } from "./schema.ts";

type Edit = NonNullable<ProposalAcceptance["edits"]>[number];

/**
 * Creates the prompts of some proposals in one transaction, in the order of `only`. If a prompt was already created from a proposal, that prompt is
 * returned. Throws not_found, conflict while the set is not completed, and bad_request, which names the field.
 */
export function acceptProposals(
  ctx: Context,
  org: OrgId,
  id: string,
  { only, edits = [], targetProviderId }: ProposalAcceptance,
): CreatedPrompts {
  return transaction(ctx.db, (tx) => {
    const { id: setId, status, request, proposals, accepted } = getProposalSetRow(ctx, org, id);
    if (proposals === null) throw conflict(`The set of proposals is ${status}. Only completed ones have proposals.`);
    const promptIds = { ...accepted };
    for (const [i, number] of only.entries()) {
      const proposal = proposals[number - 1];
      if (!proposal) throw invalidField(`only.${i}`, `there are ${proposals.length} proposals`);
      if (hasPrompt(ctx, org, promptIds[number] ?? "")) continue;
      const edit = edits.find((each) => each.number === number);
      promptIds[number] = createPromptOf(ctx, org, proposal, edit, { targetProviderId, mcpUrl: request.mcpUrl });
    }
    tx.update(proposalSets)
      .set({ accepted: promptIds })
      .where(and(eq(proposalSets.orgId, org), eq(proposalSets.id, setId)))
      .run();
    recordAudit(ctx, org, "proposal_set.accepted", { id: setId }, changesOf({}, { only: only.join(", ") }));
    return {
      prompts: only.map((number) => {
        const prompt = getPromptRow(ctx, org, promptIds[number] ?? "");
        return { promptId: prompt.id, title: nameOfPrompt(prompt) };
      }),
    };
  });
}

/** Creates the prompt of a proposal. If the task is for the tools of an MCP server, the prompt gets that server. Returns the ID of the prompt. */
function createPromptOf(
  ctx: Context,
  org: OrgId,
  { source, docsOwnWords, ...proposal }: TaskProposal,
  edit: Edit | undefined,
  { targetProviderId, mcpUrl }: { targetProviderId: string | undefined; mcpUrl: string | undefined },
): string {
  // Only in a text that a person has edited, braces are variables.
  const textOf = (field: "text" | "endGoal") => {
    const edited = edit?.[field] ?? proposal[field];
    return edited === proposal[field] ? withoutVariables(edited) : edited;
  };
  const { url, line, quote } = source;
  const input = {
    title: edit?.title ?? proposal.title,
    text: textOf("text"),
    endGoal: textOf("endGoal"),
    additionalUrls: proposal.additionalUrls,
    tags: proposal.tags,
    ...(proposal.declaredChecks.length > 0 && { declaredChecks: proposal.declaredChecks }),
    ...(url === mcpUrl && { workspace: { mcpServers: { product: { url } } } }),
    ...(targetProviderId !== undefined && { targetProviderId }),
  };
  // As long as this is the end goal of the prompt, it repeats the docs.
  const ownGoal = docsOwnWords ? withoutVariables(proposal.endGoal) : null;
  const basis = { url, line, quote, digest: new Bun.CryptoHasher("sha256").update(quote).digest("hex"), ownGoal };
  return createPrompt(ctx, org, input, { basis }).id;
}

/** A text whose braces are escaped. Braces in the docs are no variables of the prompt. */
const withoutVariables = (text: string): string => text.replace(/(?<!\\)\{\{/g, "\\{{");
