import type { ModelProvider } from "../../config/model-settings.ts";
import { type Fields, object } from "../fields.ts";
import type { Format, ModelRequest } from "./wire.ts";

/** Fields that limit the tokens of an answer, as any protocol spells them. */
const limitField = /^(max_?((completion|output|new)_?)?tokens|n_predict)$/i;
/** Fields that ask for several answers at once. */
const answersField = /^(n|candidate_?count|best_of)$/i;
/** Objects in which some protocols have these fields. */
const configField = /^generation_?config$/i;

/** The most answers that OpenAI gives to a request. */
const maxAnswers = 128;

/** The output that a request asks for: tokens of each answer at most (null: it sets no limit), and the number of answers. */
export type RequestedOutput = { maxTokens: number | null; answers: number };

/** A field of a request that must be a number, and isn't. */
type InvalidField = { field: string; message: string };

/**
 * The output that a request asks for. Providers differ in which field they read, so the highest value of each kind counts. If a field isn't a whole
 * number, returns that field.
 */
export function readRequestedOutput({ body }: ModelRequest): RequestedOutput | InvalidField {
  const output: RequestedOutput = { maxTokens: null, answers: 1 };
  for (const [path, fields] of listConfigs(body)) {
    if (fields === null) return { field: path, message: `${path} must be an object` };
    for (const [name, value] of Object.entries(fields)) {
      const isLimit = limitField.test(name);
      if (value == null || !(isLimit || answersField.test(name))) continue;
      const [min, max] = isLimit ? [0, Number.MAX_SAFE_INTEGER] : [1, maxAnswers];
      const field = path === "" ? name : `${path}.${name}`;
      if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max)
        return { field, message: `${field} must be a whole number from ${min} to ${max}` };
      if (isLimit) output.maxTokens = Math.max(output.maxTokens ?? 0, value as number);
      else output.answers = Math.max(output.answers, value as number);
    }
  }
  return output;
}

/** The objects in which a request limits its output, with their paths; null in place of a value that isn't an object. */
function listConfigs(body: Fields): [path: string, fields: Fields | null][] {
  const configs = Object.entries(body).filter(([name, value]) => configField.test(name) && value != null);
  return [
    ["", body],
    ...configs.map(([name, value]): [string, Fields | null] => [
      name,
      typeof value === "object" && !Array.isArray(value) ? object(value) : null,
    ]),
  ];
}

/** A request with an output limit, in which every limit is at most this many tokens for each answer. */
export function lowerOutputLimit(request: ModelRequest, maxTokens: number): ModelRequest {
  const { format, body } = request;
  const lower = (fields: Fields): Fields =>
    mapFields(fields, (name, value) =>
      limitField.test(name) && typeof value === "number" ? Math.min(value, maxTokens) : value,
    );
  const limitedBody = mapFields(lower(body), (name, value) =>
    configField.test(name) && value != null ? lower(object(value)) : value,
  );
  return { ...request, body: fitThinking(format, limitedBody) };
}

/** A request without an output limit, with an added limit of this many tokens for each answer. */
export function addOutputLimit(request: ModelRequest, provider: ModelProvider, maxTokens: number): ModelRequest {
  const { format, body } = request;
  const addedLimit = { [addedFields[format](provider)]: maxTokens };
  if (format !== "gemini") return { ...request, body: { ...body, ...addedLimit } };
  const config = Object.keys(body).find((name) => configField.test(name)) ?? "generationConfig";
  return { ...request, body: { ...body, [config]: { ...object(body[config]), ...addedLimit } } };
}

const mapFields = (fields: Fields, change: (name: string, value: unknown) => unknown): Fields =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, change(name, value)]));

/** The field to add to a request without a limit. OpenAI's newer models reject `max_tokens`. Many other servers know only `max_tokens`. */
const addedFields: Record<Format, (provider: ModelProvider) => string> = {
  chat: (provider) => (provider === "openai" ? "max_completion_tokens" : "max_tokens"),
  responses: () => "max_output_tokens",
  messages: () => "max_tokens",
  gemini: () => "maxOutputTokens",
};

/** The least thinking that Anthropic accepts, in tokens. */
const minThinking = 1_024;

/** Anthropic rejects a request whose thinking may take as many tokens as the whole answer. */
function fitThinking(format: Format, body: Fields): Fields {
  const thinking = object(body.thinking);
  const { budget_tokens: thinkingTokens } = thinking;
  const { max_tokens: maxTokens } = body;
  if (format !== "messages" || typeof thinkingTokens !== "number" || typeof maxTokens !== "number") return body;
  if (thinkingTokens < maxTokens) return body;
  if (maxTokens <= minThinking) return { ...body, thinking: { type: "disabled" } };
  const fittingTokens = Math.max(minThinking, Math.floor(maxTokens / 2));
  return { ...body, thinking: { ...thinking, budget_tokens: fittingTokens } };
}
