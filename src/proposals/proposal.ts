import { type Static, Type } from "@sinclair/typebox";
import type { PageText } from "../agents/explorer/docs-reading.ts";
import type { ListedTool } from "../agents/explorer/mcp-listing.ts";
import { DeclaredCheck } from "../prompts/check-schema.ts";
import { AdditionalUrl, Tags } from "../prompts/schema.ts";
import { Nullable, OneOf } from "../schema.ts";

/** Maximum number of proposals in one answer. */
export const maxProposals = 20;
export const defaultProposals = 8;

/** Who made a proposal: fixed rules, a language model, or what agents asked for and didn't find. */
const proposalAuthors = ["rules", "model", "demand"] as const;

/** What a person must provide before an agent can do the task. `approval`: the task buys something, deletes data of others or writes to people. */
export const proposalNeeds = ["account", "secret", "workspace", "approval"] as const;

/** Why a task is proposed. `primary`: the caller said that most people do it first. */
const proposalReasons = [
  "primary",
  "heading",
  "sentence",
  "symptom",
  "tutorial",
  "operation",
  "command",
  "tool",
  "skill",
  "model",
  "guessed_url",
  "field_report",
  "field_traffic",
] as const;

export type ProposalReason = (typeof proposalReasons)[number];

/**
 * Why a candidate was dropped. `step`: it is a step of a tutorial. `page_kind`: it is outdated, or its page is about the project and not about its
 * use.
 */
const dropReasons = [
  "no_quote",
  "quote_not_on_page",
  "quote_too_short",
  "answer_as_start",
  "docs_own_words",
  "check_in_task",
  "check_passes",
  "unknown_host",
  "duplicate",
  "step",
  "page_kind",
  "no_action",
  "needs_page",
  "not_json",
  "invalid",
  "over_count",
] as const;
export type DropReason = (typeof dropReasons)[number];

/** The text that a proposal is based on. `line` is its line, from 1, in the page's Markdown or in the text of the file. */
const ProposalBasis = Type.Object(
  {
    url: Type.String({ maxLength: 2000, description: "Page or file with the quote" }),
    line: Type.Integer({ minimum: 1, description: "From 1" }),
    quote: Type.String({ maxLength: 1000, description: "Verbatim" }),
  },
  { title: "ProposalBasis" },
);

export const TaskProposal = Type.Object(
  {
    title: Type.String({ maxLength: 200 }),
    text: Type.String({ maxLength: 4000, description: "Task for the agent" }),
    endGoal: Type.String({ maxLength: 2000, description: "What must be true when the agent is done" }),
    additionalUrls: Type.Array(AdditionalUrl, { maxItems: 10, description: "Root of the docs" }),
    tags: Tags,
    declaredChecks: Type.Array(DeclaredCheck, { maxItems: 10, description: "Only checks that prove something" }),
    checksNotRun: Nullable(
      Type.String({ description: "Why its checks couldn't run yet; null: they ran, and failed as they must" }),
    ),
    hints: Type.Array(Type.String({ maxLength: 500 }), { maxItems: 10, description: "Ideas for checks of your own" }),
    needs: Type.Array(OneOf(proposalNeeds), { description: "What you must provide first" }),
    by: OneOf(proposalAuthors, "demand: agents looked for it and didn't find it"),
    source: ProposalBasis,
    docsOwnWords: Type.Boolean({
      description: "The goal repeats words of the docs, which makes it too easy",
    }),
    why: OneOf(proposalReasons, "Why it is proposed"),
  },
  {
    title: "TaskProposal",
    examples: [
      {
        title: "Back up a folder",
        text: "Back up a folder with Acme.",
        endGoal: "A folder was backed up.",
        additionalUrls: [{ url: "https://docs.acme.example/" }],
        tags: ["docs"],
        declaredChecks: [],
        checksNotRun: null,
        hints: [],
        needs: [],
        by: "rules",
        source: { url: "https://docs.acme.example/backup", line: 12, quote: "To back up a folder, run acme backup." },
        docsOwnWords: true,
        why: "sentence",
      },
    ],
  },
);
export type TaskProposal = Static<typeof TaskProposal>;

export const DroppedCandidates = Type.Object({
  reason: OneOf(dropReasons),
  count: Type.Integer({ minimum: 1 }),
});
export type DroppedCandidates = Static<typeof DroppedCandidates>;

/** A page as it was read: `headings` and `samples` have line numbers of `markdown`. */
export type ProposalPage = PageText;

/** The help of a command as the command prints it, or its manual page as text. */
export type HelpText = { url: string; command: string; text: string };

/** An MCP server of the product, and its tools. */
type ProposalServer = { url: string; tools: ListedTool[] };

/** The description of a skill. By it, agents decide whether to read the skill. `page`: the front matter of its SKILL.md. */
export type SkillText = { page: ProposalPage; description: string };

/** Everything that proposals can be made from. Nothing more is requested. */
export type ProposalSource = {
  /** Name of the product, such as `pino`. */
  product: string;
  /** Root of the docs, where agents start. */
  docsUrl: string;
  /** The pages that were read, in reading order: the root first. */
  pages: ProposalPage[];
  /** OpenAPI descriptions, parsed from JSON or YAML. */
  apiDescriptions: { url: string; document: unknown }[];
  readme: ProposalPage | null;
  skill: SkillText | null;
  helpTexts: HelpText[];
  mcpServers: ProposalServer[];
  /** What most people do first with the product, in the words of the caller. */
  primaryTask: string | null;
  /** Maximum number of proposals, 1 to `maxProposals`. */
  count: number;
};

/** Proposals, best first, and for each reason how many candidates were dropped. */
export type ProposalResult = { proposals: TaskProposal[]; dropped: DroppedCandidates[] };

/** All pages that proposals can quote. */
export const listPages = ({ skill, readme, pages }: ProposalSource): ProposalPage[] => [
  ...(skill === null ? [] : [skill.page]),
  ...(readme === null ? [] : [readme]),
  ...pages,
];
