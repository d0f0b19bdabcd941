import { expect, test } from "bun:test";
import type { AgentEvent } from "../src/agents/agent.ts";
import { lineParsers } from "../src/agents/coding/agent-output.ts";
import { contentType, readScriptedRequest, type ScriptedAnswer } from "../src/agents/coding/model-formats.ts";
import { startRecord } from "../src/agents/coding/record.ts";
import { createStreamState, parseLine, readLine } from "../src/agents/coding/streams/stream.ts";
import { endingOfCall, endings } from "../src/agents/endings.ts";
import { createTemporaryFolder } from "../src/agents/sockets.ts";
import { contextOf } from "../src/grading/context.ts";
import { gradeSession } from "../src/grading/score.ts";
import { viaSocket } from "../src/net/upstream.ts";

type Line = Record<string, unknown>;

/** Parses lines of an agent's stream, and returns its events and how it ends if nothing follows. */
function read(stream: keyof typeof lineParsers, lines: Line[]) {
  const state = createStreamState();
  const events: AgentEvent[] = [];
  for (const line of lines) if (!state.end) events.push(...parseLine(lineParsers[stream], line, state));
  return { events, end: state.end ?? state.likelyEnd, hasEnded: state.end !== null };
}

const tooLong = "This model's maximum context length is 32768 tokens. However, you requested 40000.";

/** How each stream reports that it failed, with a status if it reports one. */
const errorLines: Record<keyof typeof lineParsers, (status: number | null, message: string) => Line[]> = {
  claude: (status, message) => [
    { type: "result", subtype: "success", is_error: true, api_error_status: status, result: message },
  ],
  codex: (status, message) => [
    { type: "turn.failed", error: { message: status === null ? message : `unexpected status ${status}: ${message}` } },
  ],
  gemini: (status, message) => [
    {
      type: "result",
      status: "error",
      error: { message: status === null ? message : `{"code":${status}} ${message}` },
    },
  ],
  opencode: (status, message) => [
    { type: "error", error: { name: "APIError", data: { ...(status !== null && { statusCode: status }), message } } },
  ],
  copilot: (status, message) => [
    { type: "session.error", data: { ...(status !== null && { statusCode: status }), message } },
    { type: "assistant.idle", data: {} },
  ],
  pi: (status, message) => [
    {
      type: "agent_end",
      messages: [{ stopReason: "error", errorMessage: status === null ? message : `${status} ${message}` }],
    },
  ],
};

const streams = Object.keys(errorLines) as (keyof typeof lineParsers)[];
const faults = [
  [401, "invalid key", "key_rejected"],
  [402, "no credit", "key_rejected"],
  [403, "not allowed", "key_rejected"],
  [404, "no such model", "provider_rejected"],
  [400, "unknown field", "provider_rejected"],
  [400, tooLong, "context_overflow"],
  [null, tooLong, "context_overflow"],
  [413, "too large", "context_overflow"],
  [408, "timeout", "provider_fault"],
  [429, "slow down", "provider_fault"],
  [500, "something broke", "provider_fault"],
  [529, "overloaded", "provider_fault"],
  [null, "Reached maximum number of turns", "turn_limit"],
  [null, "Not logged in. Please run /login", "login_needed"],
  [null, "undefined is not a function", "agent_error"],
] as const;

test.each(streams.flatMap((stream) => faults.map((fault) => [stream, ...fault] as const)))(
  "%s: an error with status %p and text %p is the ending %s",
  (stream, status, message, ending) => {
    expect(read(stream, errorLines[stream](status, message)).end).toMatchObject({ ending, text: null });
  },
);

/** How each stream shows that its agent works on, and that it has finished. */
const workLines: Record<keyof typeof lineParsers, { work: Line[]; finished: Line[] }> = {
  claude: {
    work: [{ type: "assistant", message: { content: [{ type: "text", text: "I go on." }] } }],
    finished: [{ type: "result", subtype: "success", is_error: false, result: "Done." }],
  },
  codex: {
    work: [{ type: "item.completed", item: { id: "i1", type: "agent_message", text: "Done." } }],
    finished: [{ type: "turn.completed", usage: {} }],
  },
  gemini: {
    work: [{ type: "message", role: "assistant", content: "Done." }],
    finished: [{ type: "result", status: "success" }],
  },
  opencode: {
    work: [{ type: "text", part: { text: "Done." } }],
    finished: [{ type: "step_finish", part: { reason: "stop" } }],
  },
  copilot: {
    work: [{ type: "assistant.message", data: { content: "Done." } }],
    finished: [{ type: "assistant.idle", data: {} }],
  },
  pi: {
    work: [{ type: "message_end", message: { role: "assistant", content: [{ type: "text", text: "Done." }] } }],
    finished: [{ type: "agent_end", messages: [{ stopReason: "stop" }] }],
  },
};

/** Streams in which a failure that the agent gets over looks like one that ends it. */
const recoverable: Record<string, Line[]> = {
  opencode: errorLines.opencode(400, tooLong),
  pi: errorLines.pi(400, tooLong),
  copilot: [{ type: "session.error", data: { statusCode: 429, message: "slow down" } }],
  "copilot after a failed call": [{ type: "model.call_failure", data: { statusCode: 500, errorMessage: "broke" } }],
};

test.each(Object.entries(recoverable))("%s: a failure that the agent gets over is no ending", (name, failure) => {
  const stream = name.split(" ")[0] as keyof typeof lineParsers;
  const { work, finished } = workLines[stream];
  expect(read(stream, failure).hasEnded).toBe(false);
  expect(read(stream, [...failure, ...work, ...finished]).end).toMatchObject({
    ending: "finished",
    error: null,
    text: "Done.",
  });
});

test.each(streams)("%s: an agent that finishes has that ending", (stream) => {
  const { work, finished } = workLines[stream];
  expect(read(stream, [...work, ...finished]).end).toMatchObject({ ending: "finished", error: null, text: "Done." });
});

test("Claude Code says in one of two fields what went wrong, and reports its limit of turns by the kind of its result", () => {
  const result = { type: "result", is_error: true };
  const errors = ["Credit balance is too low"];
  expect(read("claude", [{ ...result, subtype: "error_during_execution", errors }]).end?.error?.message).toBe(
    "Credit balance is too low",
  );
  expect(read("claude", [{ ...result, is_error: false, subtype: "error_max_turns" }]).end).toMatchObject({
    ending: "turn_limit",
  });
});

test("a colored line is read like any other", () => {
  expect(readLine('\u001b[36m{"type":"init"}\u001b[0m')).toEqual({ type: "init" });
  expect(readLine("\u001b[1mWelcome\u001b[0m")).toBeNull();
});

test("a page that Codex's provider opens was read, with an unknown result", () => {
  const action = { type: "open_page", url: "https://docs.test/guide" };
  const { events } = read("codex", [
    { type: "item.started", item: { id: "i1", type: "web_search" } },
    { type: "item.completed", item: { id: "i1", type: "web_search", action } },
  ]);
  expect(events).toMatchObject([
    { type: "tool_call", tool: "fetch_page", input: { url: action.url } },
    { type: "milestone", name: "page_read", detail: { url: action.url } },
    { type: "tool_result", tool: "fetch_page", ok: null },
  ]);
});

test("what a subagent of Claude Code does is marked with the call that started it", () => {
  const use = (id: string, name: string) => ({ type: "tool_use", id, name, input: {} });
  const line = (content: object, parent: string | null) => ({
    ...{ type: "assistant", parent_tool_use_id: parent },
    message: { content: [content] },
  });
  const { events } = read("claude", [
    line(use("t1", "Task"), null),
    line({ type: "text", text: "I look." }, "t1"),
    line(use("t2", "Bash"), "t1"),
  ]);
  expect(events.map(({ type, subagent }) => [type, subagent])).toEqual([
    ["tool_call", undefined],
    ["message", "t1"],
    ["tool_call", "t1"],
  ]);
});

const answers: [name: string, answer: Omit<ScriptedAnswer, "model" | "usage">, stop: string | null][] = [
  ["that is whole", { text: "Hello" }, null],
  ["that was refused", { text: "No.", stop: "refusal" }, "refused"],
  ["that is too long", { text: "Once upon", stop: "length" }, "output_limit"],
];
const paths = [
  "/openai/v1/chat/completions",
  "/openai/v1/responses",
  "/anthropic/v1/messages",
  "/google/v1beta/models/m:streamGenerateContent",
  "/google/v1beta/models/m:generateContent",
];

test.each(
  paths.flatMap((path) =>
    [true, false].flatMap((isStream) => answers.map((answer) => [path, isStream, ...answer] as const)),
  ),
)("%s (stream: %p): the record knows why an answer %s stopped", async (path, isStream, _, answer, stop) => {
  const { socketPath } = createTemporaryFolder("gateway");
  const provider = Bun.serve({
    unix: socketPath,
    async fetch(request) {
      const scripted = await readScriptedRequest(request);
      if (!scripted) return new Response(null, { status: 404 });
      const body = scripted.encode({ ...answer, usage: null }).join("");
      return new Response(body, { headers: { "content-type": contentType(scripted) } });
    },
  });
  const nothing = () => {};
  const record = startRecord(socketPath, { onCall: nothing, onResult: nothing, onRequest: nothing });
  const tools = path.startsWith("/google") ? [{ functionDeclarations: [{ name: "run" }] }] : [{ type: "function" }];
  const body = { model: "m", stream: isStream, messages: [], input: [], contents: [], tools };
  const send = viaSocket(record.socketPath);
  await (await send(`http://gateway${path}`, { method: "POST", body: JSON.stringify(body) })).text();
  expect(record.answers.map((each) => each.stop)).toEqual([stop as never]);
  expect([record.callCount, record.callsInProgress, record.lastAnswer]).toEqual([1, 0, answer.text ?? ""]);
  await record.close();
  await provider.stop(true);
});

test("no fault of a provider can be graded", () => {
  for (const status of [200, 401, 402, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504, 529]) {
    const ending = endingOfCall(status, "an error");
    expect([status, ending && endings[ending].outcome]).toEqual([status, null]);
  }
});

type Event = Parameters<typeof contextOf>[0][number];
const session = (events: object[]) =>
  events.map((event, seq) => ({ seq, at: seq, tMs: seq, source: "agent", ...event }) as Event);
const started = {
  type: "milestone",
  name: "started",
  detail: { agent: "fake", version: "1", kind: "model", model: "m", goal: "Go.", starts: ["https://docs.test/"] },
};
const callAndResult = (id: string, ok: boolean | null, input: object = { command: "acme up" }, ownName = "Bash") => [
  { type: "tool_call", id, tool: "run_command", ownName, input },
  { type: "tool_result", id, tool: "run_command", ownName, ok, output: { exitCode: null, text: "" } },
];

test("a skill that could not be loaded is not used", () => {
  const skills = [{ name: "acme-guide", description: "", digest: "" }];
  const workspace = {
    archive: null,
    repository: null,
    setup: null,
    instructionChars: 0,
    env: [],
    skills,
    mcpServers: [],
  };
  const use = (ok: boolean | null) => callAndResult("s1", ok, { skill: "acme-guide" }, "skill");
  const usesOf = (ok: boolean | null) =>
    contextOf(session([{ type: "milestone", name: "workspace_prepared", detail: workspace }, ...use(ok)]))?.skills[0]
      ?.uses;
  expect([usesOf(true), usesOf(false), usesOf(null)]).toEqual([1, 0, 1]);
});

test("a result that the agent does not report is neither an error nor the fix of one", () => {
  const end = { type: "end", outcome: "not_judged", reason: "Done.", ending: "finished" };
  const grade = (events: object[]) => gradeSession(session([started, ...events, end]));
  const partOf = ({ dimensions }: ReturnType<typeof grade>) =>
    dimensions.find(({ name }) => name === "Error recovery")?.score ?? null;
  const unknown = grade(callAndResult("t1", null));
  expect([unknown.metrics.errors, partOf(unknown)]).toEqual([0, null]);
  expect(unknown.metrics.errorsDetail).toMatch(/1 tool call/);
  const failed = grade(callAndResult("t1", false));
  expect([failed.metrics.errors, partOf(failed)]).toEqual([1, 0]);
  const fixed = grade([...callAndResult("t1", false), ...callAndResult("t2", true)]);
  expect(partOf(fixed)).toBe(100);
  const unclear = grade([...callAndResult("t1", false), ...callAndResult("t2", null)]);
  expect(partOf(unclear)).toBeNull();
});
