import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModel } from "ai";
import { viaSocket } from "../../net/upstream.ts";
import type { ModelAccess } from "../gateway/prices.ts";

type Way = Pick<ModelAccess, "id" | "provider" | "name"> & { socketPath: string; token: string };

/** A model that is reached through the gateway, with the token of a session there. */
export function toModel({ provider, name, socketPath, token }: Way): Exclude<LanguageModel, string> {
  const settings = { apiKey: token, fetch: viaSocket(socketPath) };
  const base = `http://gateway/${provider}`;
  if (provider === "anthropic") return createAnthropic({ ...settings, baseURL: `${base}/v1` })(name);
  if (provider === "google") return createGoogle({ ...settings, baseURL: `${base}/v1beta` })(name);
  if (provider === "openai") return createOpenAI({ ...settings, baseURL: `${base}/v1` })(name);
  return createOpenAICompatible({ ...settings, name: provider, baseURL: `${base}/v1` })(name);
}
