import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import { type Preset, toPreset } from "../../src/agents/coding/preset.ts";
import { presets } from "../../src/agents/coding/presets.ts";
import { type EndingName, endings } from "../../src/agents/endings.ts";
import { testApp } from "../support/app.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { processesWith } from "../support/processes.ts";
import { until } from "../support/until.ts";

// The published coding agents, installed by test/support/agents.sh, each with faults of a model: with AGENTS=all every agent with every fault.
const isLong = process.env.AGENTS === "all";

const cache = process.env.EVALD_AGENTS_CACHE ?? join(process.env.HOME ?? "", ".cache", "evald-agents");
const binOf = (name: string) => join(cache, name, "node_modules", ".bin");
const names = ["node", "codex", "gemini", "opencode", "qwen", "pi"];
/** Agents that test/support/agents.sh doesn't install are tested where someone has. */
const moreNames = ["claude", "copilot"].filter((name) => existsSync(binOf(name)));
const PATH = [...[...names, ...moreNames].map(binOf), process.env.PATH].join(delimiter);
const key = "sk-the-real-key-0123456789";

const openCodeOverAcp = toPreset({
  ...{ id: "opencode-acp", command: "opencode", args: ["acp", "--pure"], stream: "acp", provider: "anthropic" },
  env: {
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_CONFIG_CONTENT: JSON.stringify({
      ...{ model: "evald/{model}", small_model: "evald/{model}", permission: "allow" },
      provider: {
        evald: {
          npm: "@ai-sdk/anthropic",
          options: { baseURL: "{gateway}/anthropic/v1", apiKey: "{token}" },
          models: { "{model}": { tool_call: true, limit: { context: 200_000, output: 32_000 } } },
        },
      },
    }),
  },
});

const agents: [id: string, provider: string][] = [
  ["codex", "openai"],
  ["gemini", "google"],
  ["opencode", "anthropic"],
  ["pi", "anthropic"],
  ["qwen", "openai-compatible"],
  ["opencode-acp", "anthropic"],
  ...moreNames.map((name): [string, string] => [name, name === "claude" ? "anthropic" : "openai"]),
];

const usage = { input: 1000, output: 50 };
const done: Turn = { text: "Done.", usage };
const command: Turn = { text: "Let me see.", command: "echo hello", usage };
const fail = (status: number, message: string): Turn => ({ fail: { status, message } });
const html: Turn = { garbage: "<h1>Bad gateway</h1>" };
const brokenStream: Turn = { garbage: "data: {broken\n\ndata: also not JSON\n\n", garbageType: "text/event-stream" };
const cut: Turn = { text: "This answer is cut in the middle.", usage, cut: "half" };
const endsEarly: Turn = { text: "This answer ends in the middle.", usage, cut: "end" };
const tooLong = fail(400, "This model's maximum context length is 32768 tokens. However, you requested 40000.");
const once = (fault: Turn): Turn => ({ ...done, before: [fault] });

/** What follows after one tool call, and how the session must end; null: whether the agent gets over it is its own business. */
const faults: Record<string, { turn: Turn; ending: EndingName | EndingName[] }> = {
  "no fault": { turn: done, ending: "finished" },
  // Codex does not try again by itself.
  "429 once": { turn: once(fail(429, "slow down")), ending: ["finished", "provider_fault"] },
  "500 once": { turn: once(fail(500, "something broke")), ending: "finished" },
  "529 once": { turn: once(fail(529, "overloaded")), ending: "finished" },
  "cut once": { turn: once(cut), ending: ["finished", "cut_answer"] },
  "ends early once": { turn: once(endsEarly), ending: ["finished", "cut_answer"] },
  "HTML once": { turn: once(html), ending: ["finished", "cut_answer"] },
  "broken stream once": { turn: once(brokenStream), ending: ["finished", "cut_answer"] },
  "too long once": { turn: once(tooLong), ending: ["finished", "context_overflow"] },
  "500 always": { turn: fail(500, "something broke"), ending: "provider_fault" },
  "ends early always": { turn: endsEarly, ending: ["cut_answer", "provider_fault"] },
  "HTML always": { turn: html, ending: ["cut_answer", "provider_fault"] },
  "broken stream always": { turn: brokenStream, ending: ["cut_answer", "provider_fault"] },
  "rejected key": { turn: fail(401, "invalid key"), ending: "key_rejected" },
  "payment required": { turn: fail(402, "no credit"), ending: "key_rejected" },
  "bad request": { turn: fail(400, "this field is not known"), ending: "provider_rejected" },
  "unknown model": { turn: fail(404, "no such model"), ending: "provider_rejected" },
  "too long": { turn: tooLong, ending: "context_overflow" },
  refusal: { turn: { text: "I cannot help with that.", usage, stop: "refusal" }, ending: "refused" },
  "output limit": { turn: { text: "Once upon a time", usage, stop: "length" }, ending: "output_limit" },
};

const shortAgents = ["codex", "pi"];
const shortFaults = ["500 once", "HTML always", "too long", "refusal"];
const cases = agents
  .filter(([agent]) => isLong || shortAgents.includes(agent))
  .flatMap(([agent, provider]) =>
    Object.entries(faults)
      .filter(([fault]) => isLong || shortFaults.includes(fault))
      .map(([fault, { turn, ending }]) => ({ agent, provider, fault, turn, ending })),
  );
type Case = (typeof cases)[number];
const modelOf = ({ agent, provider, fault }: Case) => `${provider}/${agent}-${fault.replaceAll(" ", "-")}`;

let model: ReturnType<typeof serveFakeModel>;
let app: ReturnType<typeof testApp>;

beforeAll(async () => {
  const missing = names.filter((name) => !existsSync(binOf(name)));
  if (missing.length > 0) throw new Error(`run test/support/agents.sh, which installs ${missing.join(", ")}`);
  model = serveFakeModel();
  for (const each of cases)
    model.add(modelOf(each).split("/")[1] ?? "", { turns: [command, each.turn], side: { text: "A title", usage } });
  const own = [...presets, openCodeOverAcp].filter(({ id }) => agents.some(([agent]) => agent === id));
  app = testApp({
    agents: Object.fromEntries(own.map((preset: Preset) => [preset.id, createCodingAgent(preset, { path: PATH })])),
    env: {
      ANTHROPIC_API_KEY: key,
      ANTHROPIC_BASE_URL: model.baseUrls.anthropic,
      OPENAI_API_KEY: key,
      OPENAI_BASE_URL: model.baseUrls.openai,
      GOOGLE_GENERATIVE_AI_API_KEY: key,
      GOOGLE_GENERATIVE_AI_BASE_URL: model.baseUrls.google,
      OPENAI_COMPATIBLE_API_KEY: key,
      OPENAI_COMPATIBLE_BASE_URL: model.baseUrls["openai-compatible"],
      EVALD_CONCURRENCY: "3",
    },
  });
  await app.service.runner.start();
});
afterAll(async () => {
  await app.service.stop(0);
  model.stop();
});

/** The first attempt of a run. A further one is cancelled. */
async function firstAttemptOf({ agent, ...rest }: Case) {
  const { send } = app;
  const body = { text: "See https://docs.test/", agent, model: modelOf({ agent, ...rest }) };
  const prompt = await send("POST", "/api/v1/prompts", { body });
  const asked = await send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  const path = `/api/v1/runs/${asked.body.runId}`;
  let attempts: { outcome: string | null; reason: string | null }[] = [];
  await until(
    `${agent} has ended`,
    async () => {
      attempts = (await send("GET", `${path}/attempts`)).body;
      return attempts[0]?.outcome != null;
    },
    120_000,
  );
  await send("POST", `${path}/cancel`);
  const { body: stream } = await send("GET", `${path}/events?attempt=1`);
  const events: { type: string; name?: string; ending?: string; detail?: { ending: string } }[] = String(stream)
    .split("\n\n")
    .filter((message) => message.startsWith("event: event\n"))
    .map((message) => JSON.parse(/^data: (.*)$/m.exec(message)?.[1] ?? "{}"));
  const end = events.findLast(({ type, name }) => type === "end" || name === "attempt_failed");
  return { ...attempts[0], ending: end?.ending ?? end?.detail?.ending, end };
}

test.each(cases.map((each) => [each.agent, each.fault, each] as const))(
  "%s: %s",
  async (_, __, each) => {
    const { outcome, reason, ending } = await firstAttemptOf(each);
    if (process.env.PRINT_ENDINGS) console.log([each.agent, each.fault, outcome, ending, reason].join(" | "));
    expect([each.ending].flat()).toContain(ending as EndingName);
    const rule = endings[ending as EndingName];
    const expected = rule.outcome !== null ? "done" : rule.failure.retry === "never" ? "failed" : "retried";
    expect([outcome, reason]).toEqual([expected, expected === "done" ? null : expect.any(String)]);
    expect(processesWith(modelOf(each).split("/")[1] ?? "")).toEqual([]);
  },
  300_000,
);
