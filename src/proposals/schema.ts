import { type Static, Type } from "@sinclair/typebox";
import { proposalStatuses } from "../db/tables/proposals.ts";
import { textOf } from "../prompts/workspace-schema.ts";
import { HttpUrl, Id, Nullable, OneOf, Time, Url } from "../schema.ts";
import { DroppedCandidates, defaultProposals, maxProposals, TaskProposal } from "./proposal.ts";

/** Maximum size of all files of a request, in characters. */
export const maxFileChars = 400_000;

/** What a model may cost without another limit, in USD. */
export const defaultMaxUsd = 1;

const SourceFile = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 200, description: "File name, such as README.md" }),
    command: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: "Command whose help or manual page it is" }),
    ),
    text: textOf(maxFileChars, "Content"),
  },
  { title: "ProposalFile" },
);
export type SourceFile = Static<typeof SourceFile>;

export const ProposalRequest = Type.Object(
  {
    docsUrl: HttpUrl("Root of the docs, where agents start"),
    openapiUrl: Type.Optional(HttpUrl("OpenAPI description in JSON or YAML")),
    mcpUrl: Type.Optional(HttpUrl("MCP server over HTTP whose tools to read")),
    product: Type.Optional(textOf(100, "Name of the product; default: from the docs")),
    primaryTask: Type.Optional(textOf(300, "What most people do with it first, such as: back up a folder")),
    count: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxProposals,
        description: `Maximum number of proposals; default ${defaultProposals}`,
      }),
    ),
    files: Type.Optional(
      Type.Array(SourceFile, { maxItems: 5, description: "README, and help or manual pages of commands" }),
    ),
    includeDemand: Type.Optional(
      Type.Boolean({ description: "Also propose what agents asked for and didn't find; default true" }),
    ),
    model: Type.Optional(Type.String({ maxLength: 200, description: "provider/model; default: rules" })),
    maxUsd: Type.Optional(
      Type.Number({ exclusiveMinimum: 0, maximum: 100, description: `Limit of its cost; default ${defaultMaxUsd}` }),
    ),
  },
  {
    title: "ProposalRequest",
    examples: [{ docsUrl: "https://docs.acme.example/", primaryTask: "Back up a folder", count: 8 }],
  },
);
export type ProposalRequest = Static<typeof ProposalRequest>;

export const AcceptedProposalRequest = Type.Object(
  { proposalSetId: Id, statusUrl: Url },
  { title: "AcceptedProposalRequest" },
);
export type AcceptedProposalRequest = Static<typeof AcceptedProposalRequest>;

export const ProposalSet = Type.Object(
  {
    proposalSetId: Id,
    status: OneOf(proposalStatuses),
    docsUrl: Type.String(),
    read: Nullable(
      Type.Object({ pages: Type.Integer(), seconds: Type.Number() }, { description: "null: not yet read" }),
    ),
    costUsd: Nullable(Type.Number({ description: "Cost of the model; null: unknown" })),
    proposals: Type.Array(TaskProposal, { description: "The best first; empty until completed" }),
    dropped: Type.Array(DroppedCandidates, { description: "By reason" }),
    prompts: Type.Record(Type.String(), Type.String(), {
      description: "IDs of prompts by the number of their proposal, from 1",
    }),
    failure: Nullable(
      Type.Object({
        code: Type.String({
          description: "robots, sign_in, no_text, no_api_description, no_mcp_server, or the code of a failed run",
        }),
        detail: Type.String(),
      }),
    ),
    createdAt: Time,
    completedAt: Nullable(Time),
    expiresAt: Time,
  },
  {
    title: "ProposalSet",
    examples: [
      {
        proposalSetId: "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e13",
        status: "pending",
        docsUrl: "https://docs.acme.example/",
        read: null,
        costUsd: null,
        proposals: [],
        dropped: [],
        prompts: {},
        failure: null,
        createdAt: "2026-11-21T09:30:00.000Z",
        completedAt: null,
        expiresAt: "2026-12-21T09:30:00.000Z",
      },
    ],
  },
);
export type ProposalSet = Static<typeof ProposalSet>;

const number = Type.Integer({ minimum: 1, maximum: maxProposals });

export const ProposalAcceptance = Type.Object(
  {
    only: Type.Array(number, {
      minItems: 1,
      maxItems: maxProposals,
      uniqueItems: true,
      description: "Numbers of the proposals, from 1",
    }),
    edits: Type.Optional(
      Type.Array(
        Type.Object({
          number,
          title: Type.Optional(textOf(200, "Title")),
          text: Type.Optional(textOf(4000, "Task for the agent")),
          endGoal: Type.Optional(textOf(2000, "What must be true when the agent is done")),
        }),
        { maxItems: maxProposals, description: "Changes to their texts" },
      ),
    ),
    targetProviderId: Type.Optional(Id),
  },
  { title: "ProposalAcceptance", examples: [{ only: [1, 3, 4] }] },
);
export type ProposalAcceptance = Static<typeof ProposalAcceptance>;

export const CreatedPrompts = Type.Object(
  { prompts: Type.Array(Type.Object({ promptId: Id, title: Type.String() })) },
  { title: "CreatedPrompts", description: "In the order of only" },
);
export type CreatedPrompts = Static<typeof CreatedPrompts>;
