import type {
  LanguageModelV4FunctionTool,
  LanguageModelV4ToolCall,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import { asSchema, type Schema, safeParseJSON, safeValidateTypes } from "@ai-sdk/provider-utils";
import type { z } from "zod";
import type { AgentEvent, Artifact } from "../agent.ts";
import { boundFields } from "../event-size.ts";

/** Maximum length of a URL. A page can have one of any length. */
export const maxUrlChars = 8_000;

/** Result of a tool. `output` is sent to the model and stored in the session. */
export type ToolResult = { ok: boolean; output: Record<string, unknown>; artifact?: Artifact };

/** The context of a tool call: `report` sends events under its ID. */
export type ToolCall = { id: string; signal: AbortSignal; report: (event: AgentEvent) => void };

/** A tool of the model. `run` doesn't throw for mistakes of the model or failures of the target. */
export type ToolSpec<I = unknown> = {
  description: string;
  input: z.ZodType<I> | Schema<I>;
  run: (input: I, call: ToolCall) => Promise<ToolResult>;
};

/** Ties the input type of a schema to its function. */
export const defineTool = <I>(toolSpec: ToolSpec<I>): ToolSpec => toolSpec as unknown as ToolSpec;

/** A call as it stays in the conversation, and its result. */
type CallResult = { call: LanguageModelV4ToolCallPart; result: LanguageModelV4ToolResultPart };

/** The tools of an agent with a model. */
export type Toolbox = {
  /** The tools as they are sent to the model. */
  definitions: LanguageModelV4FunctionTool[];
  /**
   * Runs a call of the model and reports its start and its end. A call of an unknown tool or with invalid input gets an error as its
   * result. Throws what a tool throws: a bug on our side, never friction.
   */
  run: (call: LanguageModelV4ToolCall) => Promise<CallResult>;
};

/** The tools of one session. */
export async function createToolbox(
  specs: Record<string, ToolSpec>,
  { nextId, signal, report }: Omit<ToolCall, "id"> & { nextId: () => string },
): Promise<Toolbox> {
  const definitions = Object.entries(specs).map(async ([name, { description, input }]) => {
    return { type: "function" as const, name, description, inputSchema: await asSchema(input).jsonSchema };
  });
  return {
    definitions: await Promise.all(definitions),
    async run({ toolCallId, toolName, input: json, providerMetadata: providerOptions }) {
      const spec = Object.hasOwn(specs, toolName) ? specs[toolName] : undefined;
      const { input, problem } = await parseInput(json, spec);
      const id = nextId();
      const tool = toolName.slice(0, 200);
      const fields = typeof input === "object" && input !== null ? { ...input } : { input };
      report({ type: "tool_call", id, tool, input: boundFields(fields) });
      const commonFields = { toolCallId, toolName, ...(providerOptions && { providerOptions }) };
      const call = { ...commonFields, type: "tool-call" as const, input: fields };
      if (!spec || problem !== null) {
        const reason = problem ?? `there is no tool ${tool}; the tools are ${Object.keys(specs).join(", ")}`;
        const message = reason.slice(0, 1000);
        report({ type: "tool_result", id, tool, ok: false, output: { message } });
        return {
          call,
          result: { ...commonFields, type: "tool-result", output: { type: "error-text", value: message } },
        };
      }
      const { ok, output: fullOutput, artifact } = await spec.run(input, { id, signal, report });
      const output = boundFields(fullOutput);
      report({ type: "tool_result", id, tool, ok, output, ...(artifact && { artifact }) });
      const value = JSON.parse(JSON.stringify(ok ? output : { failed: true, ...output }));
      return { call, result: { ...commonFields, type: "tool-result", output: { type: "json", value } } };
    },
  };
}

/** The input of a call. If the input is invalid, it is returned as the model sent it, with the reason. */
async function parseInput(json: string, spec?: ToolSpec): Promise<{ input: unknown; problem: string | null }> {
  const parsed = await safeParseJSON({ text: json.trim() || "{}" });
  if (!parsed.success) return { input: json, problem: `the input is not valid JSON: ${causeOf(parsed.error).message}` };
  if (!spec) return { input: parsed.value, problem: null };
  const validated = await safeValidateTypes({ value: parsed.value, schema: spec.input });
  return validated.success
    ? { input: validated.value, problem: null }
    : { input: parsed.value, problem: issuesIn(causeOf(validated.error)) };
}

/** The SDK's own messages repeat the whole input. */
const causeOf = (error: Error) => (error.cause instanceof Error ? error.cause : error);

/** The fields that a schema rejected, with the reasons. */
function issuesIn(error: Error & { issues?: { path: PropertyKey[]; message: string }[] }): string {
  const issues = error.issues?.map(({ path, message }) => `${path.map(String).join(".") || "input"}: ${message}`);
  return issues?.join("; ") ?? error.message;
}
