import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import { toPreset } from "../../src/agents/coding/preset.ts";
import { type EndingName, endings } from "../../src/agents/endings.ts";
import { type FailureCode, failureRules } from "../../src/agents/failure.ts";
import type { StreamFormat } from "../../src/config/agent-entry.ts";
import { testApp } from "../support/app.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { until } from "../support/until.ts";

// Programs that end in the middle of their work, whatever stream they write. All of them run in one service, at the same time. With AGENTS=all,
// every stream has every fault; otherwise those that share their code have one each.

const program = join(import.meta.dir, "..", "support", "fake-agent.mjs");
const isLong = process.env.AGENTS === "all";
const fake = serveFakeModel({ scenarios: { fine: { turns: [{ text: "The model says so." }] } } });

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

/** A run of a fake agent. `work`: what it writes first, in its stream. */
type Case = { mode: string; stream: StreamFormat; work?: string; limits?: object };

const quickIdle = { idleSeconds: 20 };
type Fault = { mode: string; ending: EndingName; text: RegExp; limits?: object };
const faults: Record<string, Fault> = {
  "asks a question and exits": { mode: "asks", ending: "question", text: /Do you trust the files in this folder\?/ },
  "waits for a login": {
    mode: "login-wait",
    ending: "login_needed",
    text: /https:\/\/auth\.acme\.test\/device .*ABCD-1234/,
    limits: quickIdle,
  },
  "exits for want of a login": { mode: "login-exit", ending: "login_needed", text: /stderr: Not logged in\. Run acme/ },
  crashes: { mode: "crash", ending: "exited", text: /code 3.*stderr: Segmentation fault of my own/ },
  "is killed": { mode: "killed", ending: "killed", text: /signal 9/ },
  "prints something and hangs": {
    mode: "waits",
    ending: "idle",
    text: /(was idle for 20 seconds|did not call its model within 40 seconds).*Waiting for the update server of acme/,
    limits: quickIdle,
  },
};
/** The codes of their failures. */
const codes: { [Ending in EndingName]?: FailureCode } = {
  question: "agent_asked_question",
  login_needed: "agent_login_needed",
  exited: "agent_crashed",
  killed: "agent_crashed",
  idle: "prompt_idle_limit",
};
const faultyCases = streams.flatMap((stream) =>
  Object.entries(faults)
    .filter(([name]) => isLong || stream === "claude" || stream === "none" || name === "crashes")
    .map(([name, fault]) => ({ stream, name, ...fault, case: { ...fault, stream, work: workOf(stream) } })),
);
const muteCases = streams
  .filter((stream) => stream !== "none")
  .map((stream) => [stream, { mode: "mute", stream, work: workOf(stream) }] as const);
const colored: Case = { mode: "colored", stream: "claude" };
const forks: Case = { mode: "forks", stream: "claude" };
const crash: Case = { mode: "crash", stream: "claude" };
const acpStops = [
  ["refusal", "refused"],
  ["max_tokens", "output_limit"],
  ["max_turn_requests", "turn_limit"],
].map(([work = "", ending]) => [work, ending, { mode: "acp", stream: "acp", work } as Case] as const);
const acpFaults = [
  ["acp-login", "login_needed", "credentials"],
  ["acp-crash", "exited", "agent_crashed"],
].map(([mode = "", ending, cause]) => [mode, ending, cause, { mode, stream: "acp" } as Case] as const);

const cases: Case[] = [
  ...faultyCases.map((each) => each.case),
  ...[...muteCases, ...acpStops, ...acpFaults].map((each) => each.at(-1) as Case),
  ...[crash, colored, forks],
];
const idOf = (each: Case) => `fake-${cases.indexOf(each)}`;

let app: ReturnType<typeof testApp>;
const runIds = new Map<Case, string>();

beforeAll(async () => {
  const toAgent = (each: Case) => {
    const { mode, stream, work } = each;
    const preset = toPreset({
      ...{ id: idOf(each), command: program, stream, provider: "openai-compatible" },
      args: [mode, "broken-agent", ...(work === undefined ? [] : [work])],
      env: { GATEWAY: "{gateway}", TOKEN: "{token}", MODEL: "{model}" },
    });
    return [preset.id, createCodingAgent(preset, { path: process.env.PATH ?? "" })] as const;
  };
  app = testApp({
    agents: Object.fromEntries(cases.map(toAgent)),
    env: {
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: "sk-the-real-key-0123456789",
      EVALD_AGENT_MODEL: "openai-compatible/fine",
      EVALD_CONCURRENCY: "8",
    },
  });
  // Those that wait take the longest.
  for (const each of cases.toSorted((a, b) => Number("limits" in b) - Number("limits" in a))) {
    const body = { text: "See https://docs.test/", agent: idOf(each), limits: each.limits };
    const { body: prompt } = await app.send("POST", "/api/v1/prompts", { body });
    const { body: asked } = await app.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
    runIds.set(each, asked.runId);
  }
  await app.service.runner.start();
}, 60_000);
afterAll(async () => {
  await app.service.stop(0);
  fake.stop();
});

/** All attempts of a run, each with its events. Waits until the run has ended. */
async function attemptsOf(each: Case) {
  const { send } = app;
  const runId = runIds.get(each);
  const path = `/api/v1/runs/${runId}`;
  await until(
    `${each.mode} of ${each.stream} has ended`,
    async () => (await send("GET", path)).body.completedAt !== null,
  );
  const { body: attempts }: { body: { attempt: number; outcome: string }[] } = await send("GET", `${path}/attempts`);
  const eventsOf = async (query: string) =>
    String((await send("GET", `${path}/events${query}`)).body)
      .split("\n\n")
      .filter((message) => message.startsWith("event: event\n"))
      .map((message) => JSON.parse(/^data: (.*)$/m.exec(message)?.[1] ?? "{}"));
  const sessions = await Promise.all(attempts.map(({ attempt }) => eventsOf(`?attempt=${attempt}`)));
  return {
    attempts,
    sessions,
    endings: sessions.map((events) => {
      const last = events.at(-1);
      return last?.type === "end" ? last.ending : last?.detail.ending;
    }),
    newest: await eventsOf(""),
    missing: (await send("GET", `${path}/events?attempt=${attempts.length + 1}`)).status,
    run: (await send("GET", path)).body,
    page: String((await send("GET", `/runs/${runId}?attempt=1`)).body),
  };
}

test.each(faultyCases.map((each) => [each.stream, each.name, each] as const))(
  "%s: an agent that %s ends as it should",
  async (_stream, _name, { ending, text, case: each }) => {
    const result = await attemptsOf(each);
    const { failure } = endings[ending];
    expect(result.run.failure.code).toBe(codes[ending]);
    const count = failure?.retry === "attempt" ? 3 : 1;
    expect(result.endings).toEqual(Array.from({ length: count }, () => ending));
    expect(result.run.failureReason).toMatch(new RegExp(`^${failure && failureRules[failure.code].cause}: `));
    expect(result.run.failureReason).toMatch(text);
  },
  300_000,
);

test.each(muteCases)(
  "%s: an agent that exits with code 0 in the middle of its work has crashed",
  async (_, each) => {
    expect((await attemptsOf(each)).endings).toEqual(["exited", "exited", "exited"]);
  },
  300_000,
);

test("every attempt keeps its events, which the page of the run shows as well", async () => {
  const { attempts, sessions, newest, missing, page } = await attemptsOf(crash);
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

test.each(acpStops)(
  "an agent over ACP that stops with %s is graded once",
  async (_, ending, each) => {
    const { run, endings } = await attemptsOf(each);
    expect(run.failureReason).toBeNull();
    expect([endings, run.report.outcome]).toEqual([[ending], "goal_not_met"]);
  },
  300_000,
);

test.each(acpFaults)(
  "an agent over ACP with the fault %s ends as %s",
  async (_, ending, cause, each) => {
    const { run, endings } = await attemptsOf(each);
    expect(run.failureReason).toStartWith(`${cause}: `);
    expect([...new Set(endings)]).toEqual([ending]);
    expect(endings.length).toBe(cause === "credentials" ? 1 : 3);
  },
  300_000,
);

test("an agent that starts too many processes fails with their limit", async () => {
  const { run, endings } = await attemptsOf(forks);
  expect(endings).toEqual(["resource_limit"]);
  expect(run.failure).toMatchObject({ code: "process_limit", cause: "budget", subject: "1024" });
}, 300_000);

test("an agent that colors its lines is read", async () => {
  const { run, endings, sessions } = await attemptsOf(colored);
  expect(run.failureReason).toBeNull();
  expect([endings, sessions[0]?.at(-1)?.reason]).toEqual([["finished"], "In color."]);
}, 300_000);
