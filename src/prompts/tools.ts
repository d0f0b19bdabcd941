import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Context } from "../context.ts";
import {
  pageArguments,
  pageResult,
  promptIdArgument,
  readOnly,
  type Tool,
  tool,
  toPage,
  toResultPage,
  Undescribed,
} from "../mcp/tool.ts";
import { invalidInput } from "../schema.ts";
import { listPrompts } from "./lists.ts";
import { readPromptId } from "./names.ts";
import { createPrompt, updatePrompt } from "./prompts.ts";
import { PromptInput, PromptPatch, PromptSummary } from "./schema.ts";

/** The fields that most prompts set. People can set the others elsewhere, because every word of the tool list costs tokens in every conversation. */
const editableFields = [
  "text",
  "title",
  "endGoal",
  "status",
  "tags",
  "frequency",
  "runsPerEval",
  "additionalUrls",
  "templateDefaults",
  "agent",
  "model",
] as const;

/** These checks are described in words, because their schema is longer than the schemas of all other fields together. */
const briefChecks = {
  declaredChecks: Type.Optional(
    Type.Array(Undescribed, {
      description:
        'Success checks, such as {"url": "https://api.test/rows", "method": "POST", "headers": {}, "body": "{}", "status": 201, "contains": "id", "json": {"pointer": "/rows/0/id", "equals": 1}}, {"command": "npm test", "exitCode": 0} or {"file": "out.txt"}',
    }),
  ),
};

/** Throws bad_request for checks that the tool list doesn't describe. */
function withCheckedChecks<T extends object>(input: T & { declaredChecks?: object[] }): T & PromptPatch {
  const error = Value.Errors(Type.Pick(PromptPatch, ["declaredChecks"]), input).First();
  if (error) throw invalidInput(error, "declaredChecks");
  return input as T & PromptPatch;
}

const EditedPrompt = Type.Object({ ...PromptSummary.properties, warnings: Type.Array(Type.String()) });

export const promptTools = (ctx: Context): Tool[] => [
  tool({
    name: "list_prompts",
    title: "List eval prompts",
    description: "List prompts, the tasks for agents, newest first, to find a promptId.",
    input: Type.Object({
      includeArchived: Type.Optional(Type.Boolean({ default: false })),
      tag: Type.Optional(Type.String()),
      ...pageArguments,
    }),
    output: Type.Object({ prompts: Type.Array(PromptSummary), ...pageResult }),
    annotations: readOnly,
    run({ includeArchived = false, tag, limit, offset }, { caller }) {
      const page = toPage({ limit, offset });
      return toResultPage("prompts", listPrompts(ctx, caller.org, { ...page, includeArchived, tag }), offset);
    },
  }),
];

/** Tools for keys that may change prompts. */
export const promptEditTools = (ctx: Context): Tool[] => [
  tool({
    name: "create_prompt",
    title: "Create a prompt",
    description:
      "Create a prompt: a task for agents, with the URLs of the docs where they start in additionalUrls. Nothing runs until you call request_eval, unless you set frequency.",
    input: Type.Object({ ...Type.Pick(PromptInput, [...editableFields]).properties, ...briefChecks }),
    output: EditedPrompt,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    scope: "write",
    run: (input, { caller }) => createPrompt(ctx, caller.org, withCheckedChecks(input)),
  }),
  tool({
    name: "update_prompt",
    title: "Change a prompt",
    description:
      "Change, pause or archive a prompt. Fields that you leave out stay as they are. Reports keep the text that they were made with.",
    input: Type.Object({
      promptId: promptIdArgument,
      ...Type.Pick(PromptPatch, [...editableFields]).properties,
      ...briefChecks,
    }),
    output: EditedPrompt,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    scope: "write",
    run: ({ promptId, ...patch }, { caller: { org } }) =>
      updatePrompt(ctx, org, readPromptId(ctx, org, promptId), withCheckedChecks(patch)),
  }),
];
