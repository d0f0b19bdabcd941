import type { LanguageModelV4 } from "@ai-sdk/provider";
import { viaSocket } from "../../net/upstream.ts";
import type { AgentResources } from "../agent.ts";
import { nearLimitHeader } from "../gateway/wire.ts";

/** OpenAI models that predate the Responses API. */
const beforeResponses = /^gpt-(3\.5|4)(-|$)/;

/**
 * A model that is reached through the gateway with a session token. Loads only the code of its provider, because each provider's code takes as long
 * to load as an agent's own. `onNear` is called with each limit that a response reports as near.
 */
export async function toModel(
  { provider, name, socketPath, token }: AgentResources["model"],
  onNear: (limit: string) => void = () => {},
): Promise<LanguageModelV4> {
  const settings = {
    apiKey: token,
    fetch: viaSocket(socketPath, ({ headers }) => {
      const near = headers.get(nearLimitHeader);
      for (const limit of near?.split(",") ?? []) onNear(limit);
    }),
  };
  const base = `http://gateway/${provider}`;
  if (provider === "anthropic") {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    return createAnthropic({ ...settings, baseURL: `${base}/v1` })(name);
  }
  if (provider === "google") {
    const { createGoogle } = await import("@ai-sdk/google");
    return createGoogle({ ...settings, baseURL: `${base}/v1beta` })(name);
  }
  if (provider === "openai") {
    const { createOpenAI } = await import("@ai-sdk/openai");
    const openai = createOpenAI({ ...settings, baseURL: `${base}/v1` });
    return beforeResponses.test(name) ? openai.chat(name) : openai.responses(name);
  }
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  return createOpenAICompatible({ ...settings, name: provider, baseURL: `${base}/v1` })(name);
}
