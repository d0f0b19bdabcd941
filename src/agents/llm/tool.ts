import { type Tool, tool } from "ai";
import type { z } from "zod";
import type { AgentEvent, Artefact } from "../agent.ts";

/** What came of a tool. The model is told the output, and the session keeps it. */
export type Result = { ok: boolean; output: Record<string, unknown>; artefact?: Artefact };

/** What a tool may do beside its work: tell of it, under the id of its call. */
export type Call = { id: string; signal: AbortSignal; tell: (event: AgentEvent) => void };

/** A tool of the model. `run` does not throw for what the model or the target did wrong. */
export type ToolSpec<I = unknown> = {
  description: string;
  input: z.ZodType<I>;
  run: (input: I, call: Call) => Promise<Result>;
};

/** Keeps the type of the input between schema and work. */
export const spec = <I>(of: ToolSpec<I>): ToolSpec => of as unknown as ToolSpec;

type Terms = {
  nextId: () => string;
  signal: AbortSignal;
  tell: (event: AgentEvent) => void;
  /** Hears what a tool threw: a fault of this side, which is nobody's friction. */
  onFault: (error: unknown) => void;
};

/** The tools as the AI SDK takes them, each call told of as it begins and as it ends. */
export function toTools(
  specs: Record<string, ToolSpec>,
  { nextId, signal, tell, onFault }: Terms,
): Record<string, Tool> {
  const entries = Object.entries(specs).map(([name, { description, input: inputSchema, run }]) => {
    const execute = async (input: unknown) => {
      const id = nextId();
      tell({ type: "tool_call", id, tool: name, input: bounded(input as Record<string, unknown>) });
      try {
        const { ok, output: whole, artefact } = await run(input, { id, signal, tell });
        const output = bounded(whole);
        tell({ type: "tool_result", id, tool: name, ok, output, ...(artefact && { artefact }) });
        return ok ? output : { failed: true, ...output };
      } catch (error) {
        onFault(error);
        throw error;
      }
    };
    return [name, tool({ description, inputSchema, execute })] as const;
  });
  return Object.fromEntries(entries);
}

/** Of an address that is asked for or told: a page may give itself one of any length. */
export const maxUrlChars = 8_000;

/** The most of what a tool takes or answers that is told of it, in characters of JSON: of a hostile page or folder it may be any amount. */
const maxToldChars = 120_000;

/** Fields as they may be told: where they are too much, with their texts shortened, or as one text of all. */
export function bounded(fields: Record<string, unknown>): Record<string, unknown> {
  const json = JSON.stringify(fields);
  if (json.length <= maxToldChars) return fields;
  const short = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === "string" ? shortened(value, 20_000) : value,
  ]);
  const cut = Object.fromEntries(short);
  return JSON.stringify(cut).length <= maxToldChars ? cut : { cut: shortened(json, 20_000) };
}

/** The first and the last of a text that is too long for one look, with a word on what is left out. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.floor(most * 0.6);
  return `${text.slice(0, head)}\n… ${text.length - most} characters left out …\n${text.slice(text.length - (most - head))}`;
}
