import { Type } from "@sinclair/typebox";
import { pageArguments, pageResult, readOnly, type Tool, tool, toPage, toRows } from "../mcp/tool.ts";
import type { Prompts } from "./prompts.ts";
import { PromptSummary } from "./schema.ts";

export const promptTools = (prompts: Prompts): Tool[] => [
  tool({
    name: "list_prompts",
    title: "List eval prompts",
    description:
      "List the eval prompts, newest first: the tasks that agents are sent to do. Use it to find the promptId that the other tools take. To run one, use request_eval.",
    input: Type.Object({ includeArchived: Type.Optional(Type.Boolean({ default: false })), ...pageArguments }),
    output: Type.Object({ prompts: Type.Array(PromptSummary), ...pageResult }),
    annotations: readOnly,
    run({ includeArchived = false, limit, offset }, { caller }) {
      const page = toPage({ limit, offset });
      return toRows("prompts", prompts.listPrompts(caller.org, { ...page, includeArchived }), offset);
    },
  }),
];
