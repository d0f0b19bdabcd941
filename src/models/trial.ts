import type { AgentEvent } from "../agents/agent.ts";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import { badRequest } from "../errors.ts";

const question = "Answer with the word yes.";
const maxOutputTokens = 256;

/** Makes one small call through the gateway, with a tool, as an agent makes it. Throws bad_request that says what the provider said. */
export async function tryModel(access: ModelAccess, now: () => number) {
  // Loaded here: the prices alone would make every start slower.
  const [{ streamText, tool }, { z }, { createGateway }, { toModel }] = await Promise.all([
    import("ai"),
    import("zod"),
    import("../agents/gateway/gateway.ts"),
    import("../agents/llm/providers.ts"),
  ]);
  // It would write to stdout what a provider cannot do.
  globalThis.AI_SDK_LOG_WARNINGS = false;
  const gateway = createGateway({ now, silenceMs: 60_000, maxFailures: 1 });
  const events: AgentEvent[] = [];
  let trouble: string | null = null;
  const session = gateway.openSession({
    model: access,
    limits: { calls: 1, tokens: 10_000, costUsd: null },
    onEvent: (event) => events.push(event),
    onFailure: ({ detail }) => {
      trouble = detail;
    },
  });
  const begun = performance.now();
  try {
    let failed: unknown;
    const { stream } = streamText({
      model: toModel({ ...access, ...session }),
      prompt: question,
      tools: { look: tool({ description: "Looks a word up.", inputSchema: z.object({ word: z.string() }) }) },
      maxOutputTokens,
      maxRetries: 0,
      onError: ({ error }) => {
        failed = error;
      },
    });
    try {
      for await (const part of stream) if (part.type === "error") failed = part.error;
    } catch (error) {
      failed ??= error;
    }
    const ms = Math.round(performance.now() - begun);
    await session.close();
    if (trouble !== null) throw badRequest(trouble);
    if (failed !== undefined)
      throw badRequest(`${access.id}: ${failed instanceof Error ? failed.message : String(failed)}`);
    const usage = events.find((event) => event.type === "usage");
    if (!usage) throw badRequest(`${access.id} gave no answer of a model`);
    return { ...usage, ms };
  } finally {
    await session.close();
    await gateway.close();
  }
}

type Trial = Awaited<ReturnType<typeof tryModel>>;

/** What came of a trial, without a full stop. */
export function trialWords({ model, ms, inputTokens, outputTokens, costUsd }: Trial): string {
  const answered = `${model} answered after ${ms} ms`;
  if (inputTokens + outputTokens === 0)
    return `${answered}: it does not say what the call used, so no limit of its tokens or money can hold`;
  const cost = costUsd === null ? "at a price that nobody states" : `for $${costUsd.toFixed(6)}`;
  return `${answered}: ${inputTokens} tokens in, ${outputTokens} out, ${cost}`;
}
