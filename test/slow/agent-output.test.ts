import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import { toPreset } from "../../src/agents/coding/preset.ts";
import { replayOutput } from "../../src/agents/coding/replay.ts";
import { testApp } from "../support/app.ts";
import { buildExecutable, call, emptyFolder } from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";

// What a coding agent prints is kept with the session, and can be turned into events again.

const key = "sk-the-real-key-0123456789";
const program = join(import.meta.dir, "..", "support", "fake-agent.mjs");
let fake: ReturnType<typeof serveFakeModel>;
beforeAll(() => {
  const answer = { text: "Fine.", usage: { input: 10, output: 2 } };
  const flaky = { ...answer, before: [{ fail: { status: 500, message: "no" } }] };
  fake = serveFakeModel({ key, scenarios: { fine: { turns: [answer] }, flaky: { turns: [flaky] } } });
});
afterAll(() => fake.stop());

type Event = { type: string; [name: string]: unknown };

/** A run of the fake agent in a mode, with its events and its output. */
async function runOf(mode: string, { options = {}, model = "fine" }: { options?: object; model?: string } = {}) {
  const preset = toPreset({
    ...{ id: "fake", command: program, args: [mode], stream: mode.startsWith("acp") ? "acp" : "claude" },
    env: { GATEWAY: "{gateway}", TOKEN: "{token}", MODEL: "{model}" },
    provider: "openai-compatible",
  });
  const { send, runJobs, service, b } = testApp({
    agents: { fake: createCodingAgent(preset, { path: process.env.PATH ?? "" }) },
    env: {
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: key,
      EVALD_AGENT_MODEL: `openai-compatible/${model}`,
      EVALD_MODEL_PRICES: `{"openai-compatible/${model}": {"in": 10, "out": 100}}`,
    },
  });
  const { body: prompt } = await send("POST", "/api/v1/prompts", {
    body: { text: "See https://docs.test/", agents: [{ agent: "fake", options }] },
  });
  const { body: asked } = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
  await runJobs();
  const { body: run } = await send("GET", `/api/v1/runs/${asked.runId}`);
  const path = `/api/v1/runs/${asked.runId}/output`;
  const output = await send("GET", path);
  const foreign = await send("GET", path, { headers: { authorization: `Bearer ${b.key}` } });
  const slug = run.report?.slug;
  const trace = slug ? await send("GET", `/api/v1/reports/${slug}/trace?limit=500`) : null;
  const session = slug ? await send("GET", `/reports/${slug}/session`) : null;
  const links = [...String(session?.body).matchAll(/href="(\/runs\/[^"]*attempt=[^"]*)"/g)].map(
    ([, link = ""]) => link,
  );
  const pages = await Promise.all(links.map((link) => send("GET", link)));
  await service.stop(0);
  const events: Event[] = trace?.body.events ?? [];
  const of = (type: string) => events.filter((event) => event.type === type);
  return { run, links, pages, preset, output, foreign, events, of, lines: String(output.body).trim().split("\n") };
}

/** The fields of an event that the agent itself reported. */
const own = ({ type, id, tool, ok, input, output, text, question, ownName }: Event) => ({
  ...{ type, id, tool, ok, input, output, text, question, ownName },
});
const fromAgent = ({ type }: Event) => /^(thought|message|tool_call|tool_result|interruption)$/.test(type);

test("the output of an agent is kept, and gives the same events again", async () => {
  const { output, foreign, preset, events, lines } = await runOf("question");
  expect([output.status, output.headers.get("content-type")]).toEqual([200, "application/x-ndjson; charset=utf-8"]);
  expect(foreign.status).toBe(404);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ evald: "agent-output", agent: "fake", stream: "claude" });
  const replay = replayOutput(String(output.body), preset);
  expect(replay).toMatchObject({ ending: "finished", answer: "I chose red.", unreadableLines: 0, unknownKinds: [] });
  expect(replay.events.map(own)).toEqual(events.filter(fromAgent).map(own));
});

test("the page of a session links to its attempts and to the output", async () => {
  const { run, links, pages, output } = await runOf("model", { model: "flaky" });
  const path = `/runs/${run.runId}`;
  expect([run.attempt, links]).toEqual([2, [`${path}?attempt=1`, `${path}/output?attempt=2`]]);
  expect(pages.map(({ status }) => status)).toEqual([200, 200]);
  expect(String(pages[0]?.body)).toContain('data-outcome="retried"');
  expect(pages[1]?.body).toEqual(output.body);
});

test("the output of an agent that crashes is kept", async () => {
  const { run, output, lines } = await runOf("crash");
  expect([run.status, output.status]).toEqual(["failed", 200]);
  expect(lines.length).toBeGreaterThan(2);
});

test("secrets in the output are redacted, even if they arrive in pieces", async () => {
  const { lines, output } = await runOf("secrets");
  const body = String(output.body);
  for (const secret of ["ghp_", "hunter2-hunter2"]) expect(body).not.toContain(secret);
  const texts = lines.slice(1).map((line) => JSON.parse(line).message?.content?.[0]?.text ?? "");
  expect(texts.join("")).toContain("[redacted]");
});

test("agent replay prints the events of a file", async () => {
  await buildExecutable();
  const { output } = await runOf("fine");
  const cwd = emptyFolder();
  writeFileSync(join(cwd, "kept.jsonl"), String(output.body));
  const replayed = await call(["agent", "replay", "kept.jsonl", "--agent", "claude", "--json"], { cwd });
  const events = replayed.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Event);
  expect([replayed.code, events.map(({ type }) => type)]).toEqual([0, ["tool_call", "tool_result", "message"]]);
  const unknown = await call(["agent", "replay", "kept.jsonl"], { cwd });
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("No coding agent has the ID fake")]);
}, 300_000);

test("agent try saves the output up to its last line", async () => {
  await buildExecutable();
  const cwd = emptyFolder();
  const entry = { id: "fake", command: program, args: ["fine"], stream: "claude", provider: "openai" };
  const env = { EVALD_AGENTS: JSON.stringify([entry]) };
  await call(["agent", "try", "fake", "--save", "kept.jsonl"], { cwd, env });
  const kept = (await Bun.file(join(cwd, "kept.jsonl")).text()).trim().split("\n");
  expect(JSON.parse(kept.at(-1) ?? "")).toMatchObject({ type: "result", result: "All done." });
}, 300_000);

test("every kind of update over ACP is recorded, and the agent can use files and terminals of its sandbox", async () => {
  const { run, output, preset, events, of } = await runOf("acp-all");
  expect(run.failureReason).toBeNull();
  const find = (id: string) =>
    events.filter((event) => event.id === id).map(({ type, ok, ...rest }) => ({ type, ok, ...rest }));
  expect(of("thought").map(({ text }) => text)).toEqual(["Plan:\n- [x] Look\n- [ ] Write"]);
  expect(of("message")[0]?.text).toBe("See [image/png, 5 bytes][Guide](https://docs.test/a) and this.");
  expect(find("a1")).toMatchObject([
    { type: "tool_call", tool: "run_command", input: { command: "ls -la" } },
    { ok: true, output: { text: "total 0" } },
  ]);
  expect(find("a2")).toMatchObject([
    { type: "tool_call", tool: "write_file", input: { path: "/workspace/a.txt" } },
    { ok: true, output: { text: "--- /workspace/a.txt\n+++ /workspace/a.txt\n-old\n+new" } },
  ]);
  expect(find("a3")[1]).toMatchObject({ ok: true, output: { text: "[image/png, 5 bytes]" } });
  expect(find("a4")).toMatchObject([{ subagent: "task-1" }, { subagent: "task-1" }]);
  expect(of("interruption")).toMatchObject([{ question: "Sign in?", url: "https://acme.test/" }]);
  expect(find("client-1")).toMatchObject([
    { type: "tool_call", tool: "write_file", ownName: "fs/write_text_file", input: { path: "/workspace/notes/b.txt" } },
    { ok: true },
  ]);
  expect(find("client-2")[1]).toMatchObject({ tool: "read_file", ok: true, output: { text: "two" } });
  expect(find("client-3")[1]).toMatchObject({ tool: "read_file", ok: false });
  expect(find("a5")[1]).toMatchObject({
    tool: "run_command",
    ok: false,
    output: { exitCode: 3, text: "one\ntwo\nthree\nfour\n" },
  });
  expect(find("a6")).toMatchObject([{ type: "tool_call", input: { x: 1 } }]);
  const seen = JSON.parse(String(of("end")[0]?.reason));
  expect(seen).toMatchObject({ asked: { action: "cancel" }, part: "two", missing: -32_002, exit: { exitCode: 3 } });
  expect(seen.killed).toBe("9");
  // The replay has everything but what evald did for the agent.
  const replay = replayOutput(String(output.body), preset);
  const isOwn = (event: Event) => fromAgent(event) && !String(event.id).startsWith("client-");
  expect(replay.events.map(own)).toEqual(events.filter(isOwn).map(own));
  expect(replay.ending).toBe("finished");
});
