import { Type } from "@sinclair/typebox";
import type { Context, OrgId } from "../context.ts";
import { invalidField } from "../errors.ts";
import { type Tool, tool } from "../mcp/tool.ts";
import { Id } from "../schema.ts";
import { getProposalSet, requestProposals } from "./proposal-sets.ts";
import { ProposalRequest, ProposalSet } from "./schema.ts";

/** Longest text of a proposal in a result, in characters, so that 20 of them are not too large. */
const maxTextChars = 160;

const { docsUrl, primaryTask, count } = ProposalRequest.properties;
const { status, failure, read } = ProposalSet.properties;

const BriefProposal = Type.Object({
  number: Type.Integer(),
  title: Type.String(),
  text: Type.String(),
  endGoal: Type.String(),
  tags: Type.Array(Type.String()),
  needs: Type.Array(Type.String()),
  source: Type.String({ description: "Page and line" }),
  quote: Type.String(),
  docsOwnWords: Type.Boolean(),
});

/** A text with a limited length. */
const brief = (text: string): string =>
  text.length <= maxTextChars ? text : `${text.slice(0, maxTextChars - 1).toWellFormed()}…`;

function toBriefSet(ctx: Context, org: OrgId, id: string) {
  const { proposalSetId, status, failure, read, proposals } = getProposalSet(ctx, org, id);
  return {
    proposalSetId,
    status,
    failure,
    read,
    proposals: proposals.map(({ title, text, endGoal, tags, needs, source, docsOwnWords }, i) => ({
      number: i + 1,
      title: brief(title),
      text: brief(text),
      endGoal: brief(endGoal),
      tags: tags.slice(0, 3),
      needs,
      source: `${brief(source.url)}:${source.line}`,
      quote: brief(source.quote),
      docsOwnWords,
    })),
  };
}

/** The tool for keys that may change prompts. It creates no prompt itself: `create_prompt` does. */
export const proposalTools = (ctx: Context): Tool[] => [
  tool({
    name: "propose_prompts",
    title: "Propose prompts from docs",
    description:
      "Read docs and propose prompts, each with the line that it comes from. Pass docsUrl to start, then proposalSetId every few seconds until status is completed. Nothing is created: ask the person which ones to create with create_prompt.",
    input: Type.Object({ docsUrl: Type.Optional(docsUrl), primaryTask, count, proposalSetId: Type.Optional(Id) }),
    output: Type.Object({ proposalSetId: Id, status, failure, read, proposals: Type.Array(BriefProposal) }),
    annotations: { readOnlyHint: true, openWorldHint: true },
    scope: "write",
    async run({ docsUrl, proposalSetId, ...request }, { caller: { org } }) {
      if ((docsUrl === undefined) === (proposalSetId === undefined))
        throw invalidField("docsUrl", "pass either docsUrl or proposalSetId");
      const id =
        proposalSetId ?? (await requestProposals(ctx, org, { ...request, docsUrl: docsUrl ?? "" })).proposalSetId;
      return toBriefSet(ctx, org, id);
    },
  }),
];
