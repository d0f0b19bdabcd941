import { Type } from "@sinclair/typebox";
import type { Context } from "../context.ts";
import { pageArguments, pageResult, readOnly, type Tool, tool, toPage, toResultPage } from "../mcp/tool.ts";
import { listPrompts } from "./lists.ts";
import { PromptSummary } from "./schema.ts";

export const promptTools = (ctx: Context): Tool[] => [
  tool({
    name: "list_prompts",
    title: "List eval prompts",
    description: "List prompts, the tasks that agents are evaluated on, newest first. Use it to find a promptId.",
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
