import { z } from "zod";
import type { Outcome } from "../agent.ts";
import { type Result, spec } from "./tool.ts";

/** The tools in which the agent speaks of itself and of what it met. `onFinish` hears what it claims at the end. */
export function selfTools(onFinish: (ending: { outcome: Outcome; reason: string }) => void) {
  return {
    ask_human: spec({
      description: "Asks a person. Nobody is here: only where you would otherwise give up.",
      input: z.object({ question: z.string() }),
      async run({ question }, { tell }): Promise<Result> {
        tell({ type: "interruption", question: question.slice(0, 2000), url: null });
        return { ok: true, output: { answer: "Nobody is here. Go on by yourself, or finish." } };
      },
    }),
    report_friction: spec({
      description: "Notes one thing in the docs or the product that stood in your way.",
      input: z.object({
        title: z.string(),
        severity: z.enum(["low", "medium", "high", "critical"]),
        quote: z.string().optional(),
        url: z.string().optional(),
      }),
      run: async (): Promise<Result> => ({ ok: true, output: { noted: true } }),
    }),
    finish: spec({
      description: "Ends the work. Say what was reached, and what proves it.",
      input: z.object({
        outcome: z.enum(["succeeded", "goal_not_met"]),
        summary: z.string(),
        evidence: z.string().optional(),
      }),
      async run({ outcome, summary }): Promise<Result> {
        onFinish({ outcome, reason: summary.slice(0, 2000) });
        return { ok: true, output: { outcome } };
      },
    }),
  };
}
