import { Type } from "@sinclair/typebox";
import { pageArguments, pageResult, readOnly, type Tool, tool, toPage, toRows } from "../mcp/tool.ts";
import type { Prompts } from "./prompts.ts";
import { PromptSummary } from "./schema.ts";

export const promptTools = (prompts: Prompts): Tool[] => [
  tool({
    name: "list_prompts",
    title: "List eval prompts",
    description:
      "List prompts, newest first: the tasks that agents are evaluated on. Use it to find the promptId for other tools. To run a prompt, use request_eval.",
    input: Type.Object({
      includeArchived: Type.Optional(Type.Boolean({ default: false })),
      tag: Type.Optional(Type.String()),
      ...pageArguments,
    }),
    output: Type.Object({ prompts: Type.Array(PromptSummary), ...pageResult }),
    annotations: readOnly,
    run({ includeArchived = false, tag, limit, offset }, { caller }) {
      const page = toPage({ limit, offset });
      return toRows("prompts", prompts.listPrompts(caller.org, { ...page, includeArchived, tag }), offset);
    },
  }),
];
