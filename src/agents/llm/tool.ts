import { type Schema, type Tool, tool } from "ai";
import type { z } from "zod";
import type { AgentEvent, Artefact } from "../agent.ts";

/** Result of a tool. `output` is sent to the model and stored in the session. */
export type Result = { ok: boolean; output: Record<string, unknown>; artefact?: Artefact };

/** The context of a tool call: `tell` sends events under its ID. */
export type Call = { id: string; signal: AbortSignal; tell: (event: AgentEvent) => void };

/** A tool of the model. `run` doesn't throw for mistakes of the model or failures of the target. */
export type ToolSpec<I = unknown> = {
  description: string;
  input: z.ZodType<I> | Schema<I>;
  run: (input: I, call: Call) => Promise<Result>;
};

/** Ties the input type of a schema to its function. */
export const spec = <I>(of: ToolSpec<I>): ToolSpec => of as unknown as ToolSpec;

type Terms = {
  nextId: () => string;
  signal: AbortSignal;
  tell: (event: AgentEvent) => void;
  /** Called with errors thrown by a tool. They are bugs on our side, never friction. */
  onFault: (error: unknown) => void;
};

/** The tools in AI SDK format. Each call is reported when it starts and ends. */
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

/** Maximum length of a URL. A page can have one of any length. */
export const maxUrlChars = 8_000;

/** Maximum characters of a tool's input or output in JSON, because a hostile page or folder can be of any size. */
const maxEventChars = 120_000;

/** The fields of an event, bounded: if too large, with shortened texts, or else as a single text. */
export function bounded(fields: Record<string, unknown>): Record<string, unknown> {
  const json = JSON.stringify(fields);
  if (json.length <= maxEventChars) return fields;
  const short = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === "string" ? shortened(value, 20_000) : value,
  ]);
  const cut = Object.fromEntries(short);
  return JSON.stringify(cut).length <= maxEventChars ? cut : { cut: shortened(json, 20_000) };
}

/** The start and end of a long text, with a note on how much was left out. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.floor(most * 0.6);
  return `${text.slice(0, head)}\n… ${text.length - most} characters omitted …\n${text.slice(text.length - (most - head))}`;
}
