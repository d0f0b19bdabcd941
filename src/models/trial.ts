import type { AgentEvent } from "../agents/agent.ts";
import { createGateway } from "../agents/gateway/gateway.ts";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import { badRequest, reasonOf } from "../errors.ts";
import { redactSecrets } from "../schema.ts";

const question = "Answer with the word yes.";
const maxOutputTokens = 256;

/** Sends one small request with a tool through the gateway, as an agent would. Throws bad_request with the provider's error. */
export async function tryModel(access: ModelAccess, now: () => number) {
  // This is loaded lazily, because the SDKs would slow down every start.
  const [{ streamText, tool }, { z }, { toModel }] = await Promise.all([
    import("ai"),
    import("zod"),
    import("../agents/llm/providers.ts"),
  ]);
  // The SDK would write warnings about provider features to stdout.
  globalThis.AI_SDK_LOG_WARNINGS = false;
  const gateway = createGateway({ now, silenceMs: 60_000, maxFailures: 1 });
  const events: AgentEvent[] = [];
  let gatewayFailure: string | null = null;
  const session = gateway.openSession({
    model: access,
    limits: { calls: 1, tokens: 10_000, costUsd: null },
    onEvent: (event) => events.push(event),
    onFailure: ({ detail }) => {
      gatewayFailure = detail;
    },
  });
  const startedAt = performance.now();
  try {
    let clientError: unknown;
    const { stream } = streamText({
      model: await toModel({ ...access, ...session }),
      prompt: question,
      tools: { look: tool({ description: "Look up a word.", inputSchema: z.object({ word: z.string() }) }) },
      maxOutputTokens,
      maxRetries: 0,
      onError: ({ error }) => {
        clientError = error;
      },
    });
    try {
      for await (const part of stream) if (part.type === "error") clientError = part.error;
    } catch (error) {
      clientError ??= error;
    }
    const ms = Math.round(performance.now() - startedAt);
    // Waits until the gateway has read the response to its end and reported the usage.
    await session.close();
    // A provider may repeat the key.
    const clean = (text: string) => redactSecrets(text, access.key ? [access.key] : []);
    if (gatewayFailure !== null) throw badRequest(`The test request failed: ${clean(gatewayFailure)}.`);
    if (clientError !== undefined) {
      throw badRequest(`The test request to ${access.id} failed: ${clean(reasonOf(clientError))}`);
    }
    const usage = events.find((event) => event.type === "usage");
    if (!usage) throw badRequest(`${access.id} did not return a model response.`);
    return { ...usage, ms };
  } finally {
    await session.close();
    await gateway.close();
  }
}

type Trial = Awaited<ReturnType<typeof tryModel>>;

/** The result of a test request as a sentence, without a period at its end. */
export function describeTrial({ model, ms, inputTokens, outputTokens, costUsd }: Trial): string {
  const start = `${model} answered after ${ms} ms`;
  if (inputTokens + outputTokens === 0)
    return `${start}. It reports no token usage, so token and cost limits cannot be enforced`;
  const cost = costUsd === null ? "cost unknown (no price; set EVALD_MODEL_PRICES)" : `$${costUsd.toFixed(6)}`;
  return `${start}: ${inputTokens} tokens in, ${outputTokens} out, ${cost}`;
}
