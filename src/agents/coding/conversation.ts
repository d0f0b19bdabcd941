import { ownMember } from "../../schema.ts";
import { type Fields, list, object, text, textOf } from "../fields.ts";
import { createEventReader } from "../gateway/event-reader.ts";
import type { Format } from "../gateway/wire.ts";

/** A tool call of the model. `id` is empty if the protocol has none. */
export type ModelCall = { id: string; name: string; input: Fields };
/** The result of a call, as the model got it. */
export type ModelResult = { id: string; name: string | null; output: string };

/** The answer of a model in one turn. `stop`: why it ended early; null if it didn't. */
export type ModelAnswer = { text: string; calls: ModelCall[]; stop: ModelStop | null };

/** Why a model stopped before its answer was complete. */
type ModelStop = "refused" | "output_limit" | "context_overflow";

type ConversationReader = {
  format: Format;
  /** All tool results in a request, oldest first. */
  resultsOf(body: Fields): ModelResult[];
  /** Reads an event of a stream, or a complete answer. */
  readEvent(event: Fields, answer: PartialAnswer): void;
};

/** An incomplete answer; inputs arrive as pieces of JSON. */
type PartialAnswer = {
  text: string;
  calls: { id: string; name: string; input: string }[];
  stop: ModelStop | null;
};

/** The reasons of all protocols for stopping early; any other reason is a regular end. */
const stops: Record<string, ModelStop> = {
  // Chat completions, messages and responses
  content_filter: "refused",
  refusal: "refused",
  length: "output_limit",
  max_tokens: "output_limit",
  max_output_tokens: "output_limit",
  model_context_window_exceeded: "context_overflow",
  // Gemini
  SAFETY: "refused",
  RECITATION: "refused",
  BLOCKLIST: "refused",
  PROHIBITED_CONTENT: "refused",
  SPII: "refused",
  MAX_TOKENS: "output_limit",
};
const stopOf = (reason: unknown): ModelStop | null => ownMember(stops, text(reason)) ?? null;

const chat: ConversationReader = {
  format: "chat",
  resultsOf: (body) =>
    list(body.messages)
      .map(object)
      .filter(({ role }) => role === "tool")
      .map((each) => ({ id: text(each.tool_call_id), name: null, output: textOf(each.content) })),
  readEvent(event, answer) {
    const choice = object(list(event.choices)[0]);
    const message = object(choice.delta ?? choice.message);
    answer.text += textOf(message.content) || text(message.refusal);
    answer.stop ??= stopOf(choice.finish_reason) ?? (text(message.refusal) ? "refused" : null);
    for (const [at, each] of list(message.tool_calls).map(object).entries()) {
      const index = typeof each.index === "number" ? each.index : at;
      answer.calls[index] ??= { id: "", name: "", input: "" };
      const call = answer.calls[index];
      const { name, arguments: input } = object(each.function);
      call.id ||= text(each.id);
      call.name ||= text(name);
      call.input += text(input);
    }
  },
};

const responses: ConversationReader = {
  format: "responses",
  resultsOf: (body) =>
    list(body.input)
      .map(object)
      .filter(({ type }) => type === "function_call_output" || type === "custom_tool_call_output")
      .map((each) => ({ id: text(each.call_id), name: null, output: textOf(each.output) })),
  readEvent(event, answer) {
    const response = event.object === "response" ? event : object(event.response);
    answer.stop ??= stopOf(object(response.incomplete_details).reason);
    const items = event.type === "response.output_item.done" ? [event.item] : list(event.output);
    for (const item of items.map(object)) {
      if (item.type === "message") {
        const refusal = list(item.content)
          .map(object)
          .find(({ type }) => type === "refusal");
        if (refusal) answer.stop = "refused";
        answer.text += textOf(item.content) || text(refusal?.refusal);
      }
      if (item.type === "function_call" || item.type === "custom_tool_call")
        answer.calls.push({
          id: text(item.call_id),
          // Tools of MCP servers are grouped in namespaces.
          name: text(item.namespace) + text(item.name),
          input: text(item.arguments ?? item.input),
        });
    }
  },
};

const messages: ConversationReader = {
  format: "messages",
  resultsOf: (body) =>
    list(body.messages)
      .flatMap((each) => list(object(each).content))
      .map(object)
      .filter(({ type }) => type === "tool_result")
      .map((each) => ({ id: text(each.tool_use_id), name: null, output: textOf(each.content) })),
  readEvent(event, answer) {
    answer.stop ??= stopOf(object(event.delta).stop_reason ?? event.stop_reason);
    if (event.type === "content_block_start") addBlock(object(event.content_block), answer);
    else if (event.type === "content_block_delta") {
      const { text: textDelta, partial_json: json } = object(event.delta);
      answer.text += text(textDelta);
      const call = answer.calls.at(-1);
      if (call) call.input += text(json);
    } else for (const block of list(event.content)) addBlock(object(block), answer);
  },
};

function addBlock(block: Fields, answer: PartialAnswer): void {
  if (block.type === "text") answer.text += text(block.text);
  if (block.type !== "tool_use") return;
  // In a stream, a block starts with an empty input, and the pieces of its JSON follow.
  const input = Object.keys(object(block.input)).length > 0 ? JSON.stringify(block.input) : "";
  answer.calls.push({ id: text(block.id), name: text(block.name), input });
}

const gemini: ConversationReader = {
  format: "gemini",
  resultsOf: (body) =>
    list(body.contents)
      .flatMap((each) => list(object(each).parts))
      .map((part) => object(object(part).functionResponse))
      .filter(({ name }) => typeof name === "string")
      .map(({ id, name, response }) => ({ id: text(id), name: text(name), output: outputOf(object(response)) })),
  readEvent(event, answer) {
    const candidate = object(list(event.candidates)[0]);
    answer.stop ??=
      stopOf(candidate.finishReason) ?? (object(event.promptFeedback).blockReason === undefined ? null : "refused");
    for (const part of list(object(candidate.content).parts).map(object)) {
      if (part.thought !== true) answer.text += text(part.text);
      const { id, name, args } = object(part.functionCall);
      if (typeof name === "string") answer.calls.push({ id: text(id), name, input: JSON.stringify(args ?? {}) });
    }
  },
};

const outputOf = (response: Fields): string =>
  text(response.output) || text(response.error) || JSON.stringify(response);

/** The reader of a model's protocol by the path of a request; null for any other path. */
export function findReader(path: string): ConversationReader | null {
  if (/\/chat\/completions$/.test(path)) return chat;
  if (/\/responses$/.test(path)) return responses;
  if (/\/messages$/.test(path)) return messages;
  return /:(stream)?generateContent$/i.test(path) ? gemini : null;
}

/** Reads a model's answer from its bytes as they pass, as a stream of events or one object. */
export function createAnswerReader(reader: ConversationReader, isStream: boolean) {
  const answer: PartialAnswer = { text: "", calls: [], stop: null };
  const events = createEventReader(isStream, (event) => {
    if (event !== "done") reader.readEvent(event, answer);
  });
  return {
    push: events.push,
    end(): ModelAnswer {
      events.end();
      const calls = answer.calls.filter(Boolean).map(({ id, name, input }) => ({ id, name, input: inputOf(input) }));
      return { text: answer.text, calls, stop: answer.stop };
    },
  };
}

/** Text that is no JSON becomes the field `input`; JSON that is no object is dropped. */
function inputOf(json: string): Fields {
  try {
    return object(JSON.parse(json));
  } catch {
    return json === "" ? {} : { input: json };
  }
}
