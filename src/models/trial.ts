import type { AgentEvent } from "../agents/agent.ts";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import { badRequest } from "../errors.ts";

const question = "Answer with the word yes.";
const maxTokens = 64;

/** Makes one small call through the gateway, as an agent makes it. Throws bad_request that says what the provider said. */
export async function tryModel(access: ModelAccess, now: () => number) {
  // Loaded here: the prices alone would make every start slower.
  const [{ createGateway }, { keyHeader }] = await Promise.all([
    import("../agents/gateway/gateway.ts"),
    import("../agents/gateway/wire.ts"),
  ]);
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
  const { provider, name } = access;
  const chat = { model: name, messages: [{ role: "user", content: question }] };
  const [path, body] =
    provider === "anthropic"
      ? ["/v1/messages", { ...chat, max_tokens: maxTokens }]
      : provider === "google"
        ? [`/v1beta/models/${name}:generateContent`, { contents: [{ role: "user", parts: [{ text: question }] }] }]
        : ["/v1/chat/completions", chat];
  const begun = performance.now();
  try {
    const response = await fetch(`http://gateway/${provider}${path}`, {
      unix: session.socketPath,
      method: "POST",
      headers: { ...keyHeader(provider, session.token), "anthropic-version": "2023-06-01" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    const ms = Math.round(performance.now() - begun);
    if (!response.ok || trouble !== null)
      throw badRequest(trouble ?? `${access.id} answered ${response.status}: ${text}`);
    const usage = events.find((event) => event.type === "usage");
    if (!usage) throw badRequest(`${access.id} gave an answer that is none of a model: ${text.slice(0, 300)}`);
    return { ...usage, ms };
  } finally {
    await session.close();
    await gateway.close();
  }
}
