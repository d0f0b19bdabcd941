import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Agent } from "../../src/agents/agent.ts";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import { type Preset, toPreset } from "../../src/agents/coding/preset.ts";
import { presets } from "../../src/agents/coding/presets.ts";
import type { AgentEntry } from "../../src/config/agent-entry.ts";
import { cancelRun } from "../../src/runs/endings.ts";
import { testApp } from "../support/app.ts";
import { emptyFolder } from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { processesWith } from "../support/processes.ts";
import { until } from "../support/until.ts";

const key = "sk-the-real-key-0123456789";
const program = join(import.meta.dir, "..", "support", "fake-agent.mjs");
const path = process.env.PATH ?? "";
/** An argument of every process of the fake agent, to distinguish it from those of other tests. */
const mark = crypto.randomUUID();
let fake: ReturnType<typeof serveFakeModel>;

beforeAll(() => {
  const answer = { text: "The model says so.", usage: { input: 100, output: 20 } };
  const fail = (status: number, headers = {}) => ({ turns: [{ fail: { status, message: "no", headers } }] });
  fake = serveFakeModel({
    key,
    scenarios: {
      fine: { turns: [answer] },
      unauthorized: fail(401),
      payment: fail(402),
      "too-long": {
        turns: [{ fail: { status: 400, message: "maximum context length is 8 tokens; you requested 9" } }],
      },
      limited: fail(429, { "retry-after-ms": "1" }),
    },
  });
});
afterAll(() => fake.stop());

/** The fake agent in one of its modes, as an operator adds an agent. */
const custom = (mode: string, more: Partial<AgentEntry> = {}): Preset =>
  toPreset({
    ...{ id: "fake", command: program, args: [mode, mark], stream: mode.startsWith("acp") ? "acp" : "claude" },
    env: { GATEWAY: "{gateway}", TOKEN: "{token}", MODEL: "{model}" },
    provider: "openai-compatible",
    ...more,
  });

type Options = {
  model?: string;
  env?: Record<string, string>;
  agent?: Agent;
  limits?: object;
  workspace?: object;
  options?: object;
};

function appOf(
  preset: Preset,
  { model = "fine", env = {}, agent = createCodingAgent(preset, { path }) }: Options = {},
) {
  return testApp({
    agents: { [preset.id]: agent },
    env: {
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: key,
      OPENAI_API_KEY: key,
      EVALD_AGENT_MODEL: `openai-compatible/${model}`,
      EVALD_MODEL_PRICES: `{"openai-compatible/${model}": {"in": 10, "out": 100}}`,
      ...env,
    },
  });
}

/** One run and its results. A crash is not retried, so that it can be seen. */
async function runOf(preset: Preset, { limits, workspace, options, ...setup }: Options = {}) {
  const { send, runJobs, service } = appOf(preset, setup);
  const { body: prompt } = await send("POST", "/api/v1/prompts", {
    body: { text: "See https://docs.test/", limits, workspace, agents: [{ agent: preset.id, options }] },
  });
  const { body: asked } = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
  await runJobs();
  const { body: run } = await send("GET", `/api/v1/runs/${asked.runId}`);
  const slug = run.report?.slug;
  const trace = slug ? await send("GET", `/api/v1/reports/${slug}/trace?limit=500`) : null;
  await service.stop(0);
  const events: { type: string; [name: string]: unknown }[] = trace?.body.events ?? [];
  return { run, report: run.report, events, of: (type: string) => events.filter((event) => event.type === type) };
}

const running = (mark: string): number => processesWith(mark).length;

describe("a coding agent", () => {
  test("that reports its end is stopped, with its calls, its answer and its reported cost", async () => {
    const { run, report, of } = await runOf(custom("fine"));
    expect(run.failureReason).toBeNull();
    expect(run.agent).toMatchObject({ id: "fake", version: expect.stringMatching(/\+custom\.[0-9a-f]{8}$/) });
    expect(of("tool_call")).toMatchObject([
      { id: "c1", tool: "run_command", ownName: "Bash", input: { command: "echo hello" } },
    ]);
    expect(of("tool_result")).toMatchObject([{ ok: true, ownName: "Bash", output: { text: "hello" } }]);
    expect(of("end")).toMatchObject([{ outcome: "not_judged", reason: "All done." }]);
    expect(report).toMatchObject({ scope: "conduct_only", metrics: { toolCalls: 1, errors: 0 } });
    await until("the agent is gone", () => running(mark) === 0);
  });

  test("that shortens its conversation again and again is stopped, and graded", async () => {
    const { run, of } = await runOf(custom("compacts"), { model: "too-long" });
    expect(run.failureReason).toBeNull();
    expect(of("end")).toMatchObject([{ outcome: "goal_not_met", ending: "context_overflow" }]);
    await until("the agent is gone", () => running(mark) === 0);
  });

  test("whose reported cost differs from the gateway's has the difference shown", async () => {
    const { report } = await runOf(custom("model"));
    expect(report.metrics).toMatchObject({ costUsd: 0.003 });
    expect(report.metrics.costDetail).toContain("$0.50");
  });

  test("that leaves processes behind is killed with all of them", async () => {
    const { run } = await runOf(custom("children"));
    expect(run.status).toBe("completed");
    await until("its processes are gone", () => running("4321.5") === 0);
  });

  test("that writes something other than JSON continues, and the lines are reported", async () => {
    const { run, of } = await runOf(custom("garbage"));
    expect(run.status).toBe("completed");
    expect(of("message").at(-1)?.text).toMatch(/2 lines.*this is not JSON/);
  });

  test("that writes a line of 3 MB is read", async () => {
    const { run, of } = await runOf(custom("long"));
    expect([run.status, of("message").length, of("end")[0]?.reason]).toEqual(["completed", 1, "All done."]);
  });

  test("whose output is cut with exit code 0 gets its answer from the model's record", async () => {
    const { run, of } = await runOf(custom("cut"));
    expect(run.failureReason).toBeNull();
    expect(of("end")).toMatchObject([{ outcome: "not_judged", reason: "The model says so." }]);
  });

  test("that asks a question continues without an answer, which counts as an interruption", async () => {
    const { report, of } = await runOf(custom("question"));
    expect(of("interruption")).toMatchObject([{ question: "Which color?" }]);
    expect(report.metrics.interruptions).toBe(1);
  });

  test("that loops is stopped by the limit of tool calls", async () => {
    const { report, of } = await runOf(custom("loop"), { env: { EVALD_MAX_TOOL_CALLS: "20" } });
    expect(report.outcome).toBe("goal_not_met");
    expect(of("limit").at(-1)).toMatchObject({ limit: "tool_calls", value: 20 });
    await until("the agent is gone", () => running(mark) === 0);
  });

  test("without a known stream gets its calls from the model's record", async () => {
    const { of } = await runOf(custom("cut", { stream: "none" }));
    expect(of("end")).toMatchObject([{ outcome: "not_judged" }]);
  });

  test.each([
    [
      "as an argument",
      { args: ["told", mark, "", "{prompt}"] },
      { args: [expect.stringContaining("See https://docs.test/")] },
    ],
    ["on stdin", { args: ["told", mark] }, { args: [], stdin: expect.stringContaining("See https://docs.test/") }],
    [
      "in a file",
      { args: ["told", mark], env: { READ: "{promptFile}" } },
      { stdin: "", file: expect.stringContaining("See https://docs.test/") },
    ],
    [
      "with a configuration file",
      {
        args: ["told", mark],
        env: { READ: "{home}/.acme/config.json" },
        files: { ".acme/config.json": { m: "{model}" } },
      },
      { file: '{"m":"fine"}' },
    ],
    [
      "with a file of lines",
      { args: ["told", mark], env: { READ: "{home}/a.toml" }, files: { "a.toml": ["[a]", 'p = "{provider}"'] } },
      { file: '[a]\np = "openai-compatible"\n' },
    ],
  ] as const)("gets its task %s", async (_, fields, told) => {
    const { run, of } = await runOf(custom("told", structuredClone(fields) as never));
    expect(run.failureReason).toBeNull();
    expect(JSON.parse(String(of("end")[0]?.reason))).toMatchObject(told);
  });

  test("reads what its mounts contain, and is not started if one is missing", async () => {
    const folder = emptyFolder();
    writeFileSync(join(folder, "note.txt"), "mounted");
    const fields = { args: ["told", mark], env: { READ: join(folder, "note.txt") } };
    const objectionWith = (mount: string) =>
      createCodingAgent(custom("told", { ...fields, mounts: [mount] }), { path }).preflight()[0]?.detail;
    expect(objectionWith("/nowhere/at/all")).toContain("/nowhere/at/all, which is in its mounts, does not exist");
    if (process.getuid?.() === 0) expect(objectionWith(folder)).toContain("is not readable for other users");
    chmodSync(folder, 0o755);
    const { of } = await runOf(custom("told", { ...fields, mounts: [folder] }));
    expect(JSON.parse(String(of("end")[0]?.reason))).toMatchObject({ file: "mounted" });
  });

  test("has its own names of tools and exit codes mapped", async () => {
    const tools = { terminal: "run_command", save: "write_file" } as const;
    const { of } = await runOf(custom("own-tools", { tools, exitCode: "exit status (\\d+)" }));
    expect(of("tool_call")).toMatchObject([
      { tool: "run_command", ownName: "terminal", input: { command: "make" } },
      { tool: "write_file", ownName: "save", input: { path: "a.txt" } },
    ]);
    expect(of("tool_result")).toMatchObject([
      { tool: "run_command", ok: false, output: { exitCode: 7 } },
      { tool: "write_file", ok: true },
    ]);
  });

  test("that asks for permission over ACP is interrupted by that only if the prompt says so", async () => {
    const interruptionsWith = async (permissions: "allow" | "ask") => {
      const { of } = await runOf(custom("acp"), { options: { permissions } });
      return of("interruption").length;
    };
    const [allowed, asked] = [await interruptionsWith("allow"), await interruptionsWith("ask")];
    expect(asked).toBe(allowed + 1);
  });

  test.each([
    ["crash", {}, /^agent_crashed: fake exited with code 3 in mid-session; stderr: Segmentation fault of my own/],
    ["hang", { limits: { idleSeconds: 2 } }, /^timeout: /],
    ["empty", {}, /^agent_crashed: fake ended without an answer/],
    ["silent", {}, /^agent_crashed: fake exited with code 0 without an answer/],
    ["memory", { env: { EVALD_AGENT_MEMORY_MB: "1024" } }, /^budget: fake reached its limit of 1024 MiB of memory/],
    ["model", { model: "unauthorized" }, /^credentials: openai-compatible rejected the API key \(401\)/],
    ["model", { model: "payment" }, /^credentials: openai-compatible requires payment \(402\)/],
    ["model", { model: "limited" }, /^infrastructure: .*(429|no)/],
    ["acp-crash", {}, /^agent_crashed: fake exited with code 4/],
  ] as const)("that has the fault %s %j fails with its cause", async (mode, options, reason) => {
    const { run } = await runOf(custom(mode), options);
    expect(run.status).toBe("failed");
    expect(run.failureReason).toMatch(reason);
    await until("the agent is gone", () => running(mark) === 0);
  });

  test("that uses up its model budget has a session that ended by a limit", async () => {
    const { report, of } = await runOf(custom("budget"), { env: { EVALD_MAX_MODEL_CALLS: "3" } });
    expect(report.outcome).toBe("goal_not_met");
    expect(of("limit").at(-1)).toMatchObject({ limit: "model_calls", value: 3 });
  });

  test("that is cancelled during a turn is stopped", async () => {
    const { send, service, a } = appOf(custom("hang"));
    const { body: prompt } = await send("POST", "/api/v1/prompts", {
      body: { text: "See https://docs.test/", agent: "fake" },
    });
    const { body: asked } = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
    await service.runner.start();
    await until("the agent works", () => running(mark) > 0);
    await cancelRun(service.ctx, a.org, asked.runId, "a test");
    await until("the agent is gone", () => running(mark) === 0);
    expect((await send("GET", `/api/v1/runs/${asked.runId}`)).body.failureReason).toBe("cancelled: by a test");
    await service.stop(0);
  });

  test("whose program is replaced during its session failed because of that, and another attempt runs the new one", async () => {
    const own = join(emptyFolder(), "fake-agent.mjs");
    copyFileSync(program, own);
    const { send, service, db } = appOf(custom("hang", { command: own }));
    const body = { text: "See https://docs.test/", agent: "fake" };
    const { body: prompt } = await send("POST", "/api/v1/prompts", { body });
    const { body: asked } = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
    await service.runner.start();
    await until("the agent works", () => running(mark) > 0);
    writeFileSync(
      own,
      readFileSync(program, "utf8").replaceAll("async hang() {", "async hang() {\n    return modes.fine();"),
    );
    for (const pid of processesWith(own)) process.kill(pid, "SIGKILL");
    const run = async () => (await send("GET", `/api/v1/runs/${asked.runId}`)).body;
    await until("the run has ended", async () => (await run()).completedAt);
    expect(await run()).toMatchObject({ status: "completed", attempt: 2 });
    const ofFirst = db.$client.query<{ data: string }, []>("select data from session_events where attempt = 1");
    expect(JSON.parse(ofFirst.all().at(-1)?.data ?? "")).toMatchObject({
      name: "attempt_failed",
      detail: { code: "agent_replaced", ending: "replaced" },
    });
    await service.stop(0);
  });

  test("over ACP gets every permission, no questions, and whole messages", async () => {
    const { run, of } = await runOf(custom("acp"));
    expect(run.failureReason).toBeNull();
    expect(of("thought")).toMatchObject([{ text: "Let me see." }]);
    expect(of("tool_call")).toMatchObject([{ tool: "run_command", input: { command: "echo hello" } }]);
    expect(of("tool_result")).toMatchObject([{ ok: true, output: { text: "hello" } }]);
    expect(of("end")).toMatchObject([{ reason: "All done." }]);
  });
});

describe("an installation", () => {
  /** A package of Codex in some version whose program is the fake agent. */
  function installed(name: string, version: string): string {
    const folder = emptyFolder();
    const home = join(folder, "node_modules", "@openai", "codex");
    const bin = join(folder, "node_modules", ".bin");
    for (const each of [home, bin]) mkdirSync(each, { recursive: true });
    writeFileSync(join(home, "package.json"), JSON.stringify({ name, version }));
    const said = [
      { type: "item.completed", item: { id: "i1", type: "agent_message", text: "All done." } },
      { type: "turn.completed", usage: {} },
    ].map((line) => JSON.stringify(line));
    writeFileSync(join(home, "codex.js"), `#!/usr/bin/env node\nconsole.log(${JSON.stringify(said.join("\n"))});\n`);
    chmodSync(join(home, "codex.js"), 0o755);
    symlinkSync("../@openai/codex/codex.js", join(bin, "codex"));
    return `${bin}:${path}`;
  }
  const codex = presets.find(({ id }) => id === "codex") as Preset;
  const model = { EVALD_AGENT_MODEL: "openai/gpt-5" };

  test("of an unknown version works, and the report warns", async () => {
    const agent = createCodingAgent(codex, { path: installed("@openai/codex", "9.9.9") });
    const { run, report, events } = await runOf(codex, { agent, env: model });
    expect(run.agent.version).toBe("9.9.9+preset.1");
    expect(events[0]).toMatchObject({ name: "started", detail: { isTested: false } });
    expect(report.summary.whatDidnt).toContain("codex 9.9.9");
  });

  test.each([
    ["another package", () => installed("codex-of-others", "1.0.0"), /belongs to codex-of-others/],
    ["no package", () => "/nowhere", /not installed; install it with: npm install -g @openai\/codex@/],
  ])("can't be named by a prompt if it is of %s", async (_, pathOf, detail) => {
    const agent = createCodingAgent(codex, { path: pathOf() });
    const { send } = appOf(codex, { agent, env: model });
    const { status, body } = await send("POST", "/api/v1/prompts", {
      body: { text: "See https://docs.test/", agent: "codex" },
    });
    expect([status, body.error]).toEqual([400, "bad_request"]);
    expect(body.detail).toMatch(detail);
  });
});

test("a coding agent finds its workspace set up, and its changes are kept", async () => {
  const script = "cat AGENTS.md made.txt; echo new > new.txt; echo; echo $REGION";
  const preset = custom("", { command: "/bin/sh", args: ["-c", script], stream: "none" });
  const workspace = { setup: "echo $REGION > made.txt", env: { REGION: "eu-1" }, instructions: "Be brief.\n" };
  const { run, events, of } = await runOf(preset, { workspace });
  expect(run.status).toBe("completed");
  expect(events.at(-1)?.reason).toBe("Be brief.\neu-1\n\neu-1");
  const milestones = of("milestone").map(({ name, detail }) => [name, detail]);
  expect(milestones).toContainEqual(["workspace_prepared", expect.objectContaining({ env: ["REGION"] })]);
  expect(milestones).toContainEqual(["workspace_changed", { files: 1, isCut: false }]);
});
