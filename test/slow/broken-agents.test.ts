import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import { toPreset } from "../../src/agents/coding/preset.ts";
import { type EndingName, endings } from "../../src/agents/endings.ts";
import { failureRules } from "../../src/agents/failure.ts";
import type { StreamFormat } from "../../src/config/agent-entry.ts";
import { testApp } from "../support/app.ts";
import { serveFakeModel } from "../support/fake-model.ts";

// Programs that end in the middle of their work, whatever stream they write.

const program = join(import.meta.dir, "..", "support", "fake-agent.mjs");
const fake = serveFakeModel({ scenarios: { fine: { turns: [{ text: "The model says so." }] } } });
afterAll(() => fake.stop());

const streams = ["claude", "codex", "gemini", "opencode", "copilot", "pi", "none"] as const;

/** The lines of a recorded session until its first tool call has a result. */
function workOf(stream: (typeof streams)[number]): string {
  if (stream === "none") return "";
  const file = join(import.meta.dir, "..", "fixtures", "agent-streams", `${stream}.jsonl`);
  const lines = readFileSync(file, "utf8").trim().split("\n");
  const result = /"type":"(tool_result|tool\.execution_complete|tool_execution_end|tool_use)"|"exit_code":0/;
  const isResult = (line: string) =>
    result.test(line) &&
    !(stream === "claude" && line.includes('"assistant"')) &&
    !/^\{"type":"tool_use","timestamp":"/.test(line);
  return `${lines.slice(0, lines.findIndex(isResult) + 1).join("\n")}\n`;
}

type Options = { env?: Record<string, string>; limits?: object };

/** All attempts of a run, each with its last event. */
async function attemptsOf(mode: string, stream: StreamFormat, work: string | null, { env = {}, limits }: Options = {}) {
  const preset = toPreset({
    ...{ id: "fake", command: program, stream, provider: "openai-compatible" },
    args: [mode, "broken-agent", ...(work === null ? [] : [work])],
    env: { GATEWAY: "{gateway}", TOKEN: "{token}", MODEL: "{model}" },
  });
  const { send, runJobs, service } = testApp({
    agents: { fake: createCodingAgent(preset, { path: process.env.PATH ?? "" }) },
    env: {
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: "sk-the-real-key-0123456789",
      EVALD_AGENT_MODEL: "openai-compatible/fine",
      ...env,
    },
  });
  const prompt = await send("POST", "/api/v1/prompts", {
    body: { text: "See https://docs.test/", agent: "fake", limits },
  });
  const asked = await send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  await runJobs();
  const path = `/api/v1/runs/${asked.body.runId}`;
  const attempts: { attempt: number; outcome: string; reason: string | null }[] = (
    await send("GET", `${path}/attempts`)
  ).body;
  const eventsOf = async (query: string) =>
    String((await send("GET", `${path}/events${query}`)).body)
      .split("\n\n")
      .filter((message) => message.startsWith("event: event\n"))
      .map((message) => JSON.parse(/^data: (.*)$/m.exec(message)?.[1] ?? "{}"));
  const sessions = await Promise.all(attempts.map(({ attempt }) => eventsOf(`?attempt=${attempt}`)));
  const result = {
    attempts,
    sessions,
    endings: sessions.map((events) => {
      const last = events.at(-1);
      return last?.type === "end" ? last.ending : last?.detail.ending;
    }),
    newest: await eventsOf(""),
    missing: (await send("GET", `${path}/events?attempt=${attempts.length + 1}`)).status,
    run: (await send("GET", path)).body,
    page: String((await send("GET", `/runs/${asked.body.runId}?attempt=1`)).body),
  };
  await service.stop(0);
  return result;
}

const quickIdle = { limits: { idleSeconds: 40 } };
const faults: Record<string, { mode: string; ending: EndingName; text: RegExp; options?: Options }> = {
  "asks a question and exits": { mode: "asks", ending: "question", text: /Do you trust the files in this folder\?/ },
  "waits for a login": {
    mode: "login-wait",
    ending: "login_needed",
    text: /https:\/\/auth\.acme\.test\/device .*ABCD-1234/,
    options: quickIdle,
  },
  "exits for want of a login": { mode: "login-exit", ending: "login_needed", text: /stderr: Not logged in\. Run acme/ },
  crashes: { mode: "crash", ending: "exited", text: /code 3.*stderr: Segmentation fault of my own/ },
  "is killed": { mode: "killed", ending: "killed", text: /signal 9/ },
  "prints something and hangs": {
    mode: "waits",
    ending: "idle",
    text: /(was idle for 40 seconds|did not call its model within 80 seconds).*Waiting for the update server of acme/,
    options: quickIdle,
  },
};

test.each(streams.flatMap((stream) => Object.entries(faults).map(([name, fault]) => [stream, name, fault] as const)))(
  "%s: an agent that %s ends as it should",
  async (stream, _, { mode, ending, text, options }) => {
    const result = await attemptsOf(mode, stream, workOf(stream), options);
    const { failure } = endings[ending];
    const count = failure?.retry === "attempt" ? 3 : 1;
    expect(result.endings).toEqual(Array.from({ length: count }, () => ending));
    expect(result.run.failureReason).toMatch(new RegExp(`^${failure && failureRules[failure.code].cause}: `));
    expect(result.run.failureReason).toMatch(text);
  },
  300_000,
);

test.each(streams.filter((stream) => stream !== "none"))(
  "%s: an agent that exits with code 0 in the middle of its work has crashed",
  async (stream) => {
    expect((await attemptsOf("mute", stream, workOf(stream))).endings).toEqual(["exited", "exited", "exited"]);
  },
  300_000,
);

test("every attempt keeps its events, which the page of the run shows as well", async () => {
  const { attempts, sessions, newest, missing, page } = await attemptsOf("crash", "claude", null);
  expect(attempts.map(({ outcome }) => outcome)).toEqual(["retried", "retried", "failed"]);
  for (const events of sessions) {
    const names = events.map(({ type, name }) => name ?? type);
    expect(names).toEqual(expect.arrayContaining(["started", "tool_call", "tool_result"]));
    expect(names.filter((name) => name === "attempt_failed")).toEqual(names.slice(-1));
  }
  expect(newest).toEqual(sessions[2] ?? []);
  expect(sessions[0]?.map(({ at }) => at)).not.toEqual(sessions[1]?.map(({ at }) => at));
  expect(missing).toBe(404);
  expect(page).toMatch(/attempt=2".*attempt=3"/s);
  expect(page).toMatch(/Timeline of attempt 1/);
}, 300_000);

test.each([
  ["refusal", "refused"],
  ["max_tokens", "output_limit"],
  ["max_turn_requests", "turn_limit"],
])(
  "an agent over ACP that stops with %s is graded once",
  async (stopReason, ending) => {
    const { run, endings } = await attemptsOf("acp", "acp", stopReason);
    expect(run.failureReason).toBeNull();
    expect([endings, run.report.outcome]).toEqual([[ending], "goal_not_met"]);
  },
  300_000,
);

test.each([
  ["acp-login", "login_needed", "credentials"],
  ["acp-crash", "exited", "agent_crashed"],
])(
  "an agent over ACP with the fault %s ends as %s",
  async (mode, ending, cause) => {
    const { run, endings } = await attemptsOf(mode, "acp", null);
    expect(run.failureReason).toStartWith(`${cause}: `);
    expect([...new Set(endings)]).toEqual([ending]);
    expect(endings.length).toBe(cause === "credentials" ? 1 : 3);
  },
  300_000,
);

test("an agent that colors its lines is read", async () => {
  const { run, endings, sessions } = await attemptsOf("colored", "claude", null);
  expect(run.failureReason).toBeNull();
  expect([endings, sessions[0]?.at(-1)?.reason]).toEqual([["finished"], "In color."]);
}, 300_000);
