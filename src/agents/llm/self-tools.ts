import { z } from "zod";
import type { Outcome } from "../agent.ts";
import { defineTool, type ToolResult } from "./tool.ts";

/** Models also send null or a list for such a field, which must not fail the call. */
const optionalText = z.string().optional().catch(undefined);

/** Tools with which the agent reports questions, friction and its result, which is passed to `onFinish`. */
export function createReportTools(onFinish: (ending: { outcome: Outcome; reason: string }) => void) {
  return {
    ask_human: defineTool({
      description: "Ask a person a question. Nobody is available, so use it only when you would otherwise give up.",
      input: z.object({ question: z.string() }),
      async run({ question }, { report }): Promise<ToolResult> {
        report({ type: "interruption", question: question.slice(0, 2000), url: null });
        return { ok: true, output: { answer: "Nobody is available. Continue on your own, or finish." } };
      },
    }),
    report_friction: defineTool({
      description: "Report one problem in the docs or the product that slowed you down or misled you.",
      input: z.object({
        title: z.string(),
        severity: z.enum(["low", "medium", "high", "critical"]),
        quote: optionalText,
        url: optionalText,
      }),
      run: async (): Promise<ToolResult> => ({ ok: true, output: { noted: true } }),
    }),
    finish: defineTool({
      description: "End the session. State what you achieved and what proves it.",
      input: z.object({
        outcome: z.enum(["succeeded", "goal_not_met"]),
        summary: z.string(),
        evidence: optionalText,
      }),
      async run({ outcome, summary }): Promise<ToolResult> {
        onFinish({ outcome, reason: summary.slice(0, 2000) });
        return { ok: true, output: { outcome } };
      },
    }),
  };
}
