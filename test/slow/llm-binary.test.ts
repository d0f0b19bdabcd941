import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  buildExecutable,
  call,
  client,
  emptyFolder,
  executable,
  furnish,
  serve,
  untilRun,
} from "../support/executable.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { descendantsOf, isGone, processesWith, processFile } from "../support/processes.ts";
import { type Site, serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

const key = "sk-the-real-key-0123456789";
let fake: ReturnType<typeof serveFakeModel>;
let docs: Site;
/** Whether the page that never responds was requested. */
const asked = Promise.withResolvers<void>();

const use = (name: string, input: Record<string, unknown>): Turn => ({ toolCalls: [{ name, input }] });
const done = use("finish", { outcome: "succeeded", summary: "It was read." });
const paths = {
  anthropic: "anthropic/claude-opus-4-8",
  "openai, chat": "openai/gpt-4-turbo",
  "openai, responses": "openai/gpt-5",
  google: "google/gemini-2.5-flash",
  "openai-compatible": "openai-compatible/org/llama3",
};

beforeAll(async () => {
  await buildExecutable();
  docs = serveSite({
    "/": { body: "<title>Acme</title><h1>Acme</h1><p>Print the word acme.</p>" },
    "/never": () => {
      asked.resolve();
      return new Promise(() => {});
    },
  });
  const turns = [use("fetch_page", { url: docs.url }), use("run_command", { command: "echo acme" }), done];
  const scenarios = Object.fromEntries(Object.values(paths).map((id) => [id.slice(id.indexOf("/") + 1), { turns }]));
  fake = serveFakeModel({
    key,
    scenarios: {
      ...scenarios,
      cancelled: { turns: [use("run_command", { command: "(setsid sleep 876.54 &); sleep 876.54", seconds: 200 })] },
      browses: {
        turns: [use("browse", { action: "open", url: docs.url }), use("browse", { action: "screenshot" }), done],
      },
      browsing: { turns: [use("browse", { action: "open", url: `${docs.url}/never` })] },
      steers: {
        turns: [
          {
            text: "\x1b]52;c;ZXZpbA==\x07 I wait.",
            ...use("run_command", { command: "printf '\\033[2Jtold\\n'; sleep 765.43", seconds: 200 }),
          },
        ],
      },
      killed: {
        first: [use("run_command", { command: "(setsid sleep 987.65 &); sleep 987.65", seconds: 200 })],
        turns: [done],
      },
    },
  });
}, 300_000);
afterAll(() => {
  fake.stop();
  docs.stop();
});

/** What is left of workspaces, besides the empty one that waits for the next run. */
function filesOfRuns(cwd: string): string[] {
  const all = readdirSync(join(cwd, "data", "workspaces"), { recursive: true }).map(String);
  return all.length === 1 ? [] : all;
}

const envOf = () => ({
  PATH: process.env.PATH ?? "",
  ANTHROPIC_API_KEY: key,
  ANTHROPIC_BASE_URL: fake.baseUrls.anthropic,
  OPENAI_API_KEY: key,
  OPENAI_BASE_URL: fake.baseUrls.openai,
  GOOGLE_GENERATIVE_AI_API_KEY: key,
  GOOGLE_GENERATIVE_AI_BASE_URL: fake.baseUrls.google,
  OPENAI_COMPATIBLE_API_KEY: key,
  OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
  EVALD_AGENT_MODEL: "openai-compatible/killed",
  EVALD_MODEL_PRICES: '{"openai-compatible/killed": {"in": 10, "out": 100}}',
  EVALD_ALLOW_PRIVATE: "127.0.0.1",
});

test("a session uses each provider's own protocol", async () => {
  const cwd = emptyFolder();
  const { key: apiKey } = await furnish(cwd);
  const service = await serve({ cwd, env: envOf() });
  const ask = client(service.url, apiKey);
  for (const [path, model] of Object.entries(paths)) {
    const prompt = await ask("POST", "/api/v1/prompts", { text: `Print the word that ${docs.url} asks for.`, model });
    const asked = await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} });
    const run = await untilRun(ask, asked.body.runId, "completed", "failed");
    expect([path, run.failureReason, run.agent]).toMatchObject([path, null, { id: "llm" }]);
    expect(run.agent.model).toBe(model.slice(model.indexOf("/") + 1));
    expect(run.report).toMatchObject({ outcome: "not_judged", metrics: { toolCalls: 3, errors: 0 } });
    expect(run.report.metrics.costDetail).toMatch(/^3 model calls to \S+, 360 tokens/);
  }
  const asked = fake.requests.map(({ path }) => path.replace(/[^/]*:/, ":"));
  expect([...new Set(asked)].sort()).toEqual([
    "/v1/chat/completions",
    "/v1/messages",
    "/v1/responses",
    "/v1beta/models/:streamGenerateContent",
  ]);
  // At each step, Anthropic is told to cache everything up to the last message.
  const told = fake.requests.filter(({ path }) => path === "/v1/messages").map(({ body }) => JSON.stringify(body));
  expect(told.map((body) => body.split('"cache_control":{"type":"ephemeral"}').length)).toEqual([2, 2, 2]);
  expect(told.at(-1)).toMatch(/"tool_result"[^[\]]*"cache_control":\{"type":"ephemeral"\}\}\]\}\],"tools":/);
  expect(await service.stop()).toBe(0);
});

test("a kill during a session leaves nothing behind, the run is executed again, and its cost is kept", async () => {
  const cwd = emptyFolder();
  const { key: apiKey } = await furnish(cwd);
  const first = await serve({ cwd, env: envOf() });
  const ask = client(first.url, apiKey);
  const prompt = await ask("POST", "/api/v1/prompts", { text: `Do what ${docs.url} says.` });
  const { runId } = (await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} })).body;
  await until("the command runs", () => processesWith("sleep\x00987.65").length >= 2);
  const below = descendantsOf(first.pid);
  expect(below.length).toBeGreaterThan(3);
  expect(below.filter((pid) => processFile(pid, "environ").includes(key))).toEqual([]);
  await first.stop("SIGKILL");
  await until("its processes are gone", () => processesWith("987.65").length === 0 && below.every(isGone));

  const second = await serve({ cwd, env: envOf() });
  const again = client(second.url, apiKey);
  const run = await untilRun(again, runId, "completed", "failed");
  expect(run).toMatchObject({ status: "completed", attempt: 2, report: { outcome: "not_judged" } });
  const { body } = await again("GET", `/api/v1/runs/${runId}/attempts`);
  const attempts = Array.isArray(body) ? body : body.attempts;
  expect(
    attempts.map(({ outcome, costUsd }: { outcome: string; costUsd: number }) => [outcome, costUsd]).sort(),
  ).toEqual([
    ["done", 0.003],
    ["lost", 0.003],
  ]);
  expect(filesOfRuns(cwd)).toEqual([]);
  expect(await second.stop()).toBe(0);
});

test("a browser session stores a screenshot, in the data and in a backup", async () => {
  const cwd = emptyFolder();
  const { key: apiKey } = await furnish(cwd);
  const service = await serve({ cwd, env: { ...envOf(), EVALD_AGENT_MODEL: "openai-compatible/browses" } });
  const ask = client(service.url, apiKey);
  const prompt = await ask("POST", "/api/v1/prompts", { text: `Do what ${docs.url} says.` });
  const { runId } = (await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} })).body;
  const run = await untilRun(ask, runId, "completed", "failed");
  const { body } = await ask("GET", `/api/v1/reports/${run.report.slug}/trace?types=tool_result`);
  expect(body.events.slice(0, 2)).toMatchObject([
    { tool: "browse", ok: true, output: { title: "Acme", text: expect.stringMatching(/^heading "Acme" level 1\n/) } },
    { tool: "browse", ok: true, artifact: { name: "screenshot-1.webp", bytes: expect.any(Number) } },
  ]);
  const file = join(cwd, "copy");
  expect((await call(["backup", file], { cwd })).code).toBe(0);
  const rows = new Database(file, { readonly: true }).query("select name, length(data) as bytes from artifacts").all();
  expect(rows).toEqual([body.events[1].artifact]);
  expect(await service.stop()).toBe(0);
});

test("a kill while a page loads leaves no browser behind", async () => {
  const cwd = emptyFolder();
  const { key: apiKey } = await furnish(cwd);
  const service = await serve({ cwd, env: { ...envOf(), EVALD_AGENT_MODEL: "openai-compatible/browsing" } });
  const ask = client(service.url, apiKey);
  const prompt = await ask("POST", "/api/v1/prompts", { text: `Do what ${docs.url} says.` });
  await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} });
  await asked.promise;
  const below = descendantsOf(service.pid);
  const browsers = below.filter((pid) => processFile(pid, "cmdline").includes("chromium"));
  expect(browsers.length).toBeGreaterThan(2);
  expect(below.filter((pid) => processFile(pid, "environ").includes(key))).toEqual([]);
  await service.stop("SIGKILL");
  await until("its processes are gone", () => below.every(isGone));
});

test("cancelling a run during a command leaves nothing behind", async () => {
  const cwd = emptyFolder();
  const { key: apiKey } = await furnish(cwd);
  const service = await serve({ cwd, env: { ...envOf(), EVALD_AGENT_MODEL: "openai-compatible/cancelled" } });
  const ask = client(service.url, apiKey);
  const prompt = await ask("POST", "/api/v1/prompts", { text: `Do what ${docs.url} says.` });
  const { runId } = (await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} })).body;
  await until("the command runs", () => processesWith("sleep\x00876.54").length >= 2);
  await ask("POST", `/api/v1/runs/${runId}/cancel`);
  await until("its processes are gone", () => processesWith("876.54").length === 0);
  expect(await service.stop()).toBe(0);
  expect(readdirSync(join(cwd, "data", "workspaces"))).toEqual([]);
});

test("evald eval runs the model agent, prints its progress, and ends", async () => {
  const cwd = emptyFolder();
  const { code, stderr, stdout } = await call(["eval", docs.url, "--goal", "Print acme", "--model", "openai/gpt-5"], {
    cwd,
    env: envOf(),
  });
  expect([code, stderr]).toEqual([0, expect.stringContaining("$ echo acme")]);
  expect(stdout).toContain("llm");
  expect(readdirSync(cwd)).toEqual([]);
});

test("evald eval leaves no process or folder when it is stopped or killed, and writes no terminal control sequences", async () => {
  const env = { ...envOf(), TMPDIR: emptyFolder() };
  const begin = async () => {
    const cwd = emptyFolder();
    const args = [executable, "eval", docs.url, "--goal", "Wait", "--model", "openai-compatible/steers"];
    const child = Bun.spawn(args, { cwd, env, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
    let said = "";
    const reader = child.stderr.getReader();
    while (!said.includes("| [2Jtold\n")) said += Buffer.from((await reader.read()).value ?? []).toString();
    return { child, said };
  };
  const killed = await begin();
  killed.child.kill("SIGKILL");
  await killed.child.exited;
  expect(readdirSync(env.TMPDIR)).toHaveLength(2);
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    const { child, said } = await begin();
    expect(said).not.toMatch(/(?!\n)\p{Cc}/u);
    child.kill(signal);
    expect(await child.exited).toBe(code);
    expect(readdirSync(env.TMPDIR)).toEqual([]);
    await until("its processes are gone", () => processesWith("765.43").length === 0);
  }
});

test("an agent without a sandbox has no commands and files, and says so", async () => {
  const cwd = emptyFolder();
  const { key: apiKey } = await furnish(cwd);
  const service = await serve({ cwd, env: { ...envOf(), PATH: "/nonexistent" } });
  const ask = client(service.url, apiKey);
  const prompt = await ask("POST", "/api/v1/prompts", { text: `See ${docs.url}`, model: "openai/gpt-5" });
  const asked = await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} });
  const { report } = await untilRun(ask, asked.body.runId, "completed", "failed");
  const { body } = await ask("GET", `/api/v1/reports/${report.slug}/trace`);
  expect(body.events[0].detail).toMatchObject({
    tools: ["fetch_page", "search_docs", "http_request", "ask_human", "report_friction", "finish"],
    missing: [
      expect.stringContaining("bubblewrap is not installed"),
      expect.stringContaining("a browser (the sandbox is not available: bubblewrap is not installed"),
    ],
  });
  expect(report.summary.whatDidnt).toContain("Not available to the agent");
  const failed = body.events.find((event: { type: string; ok: boolean }) => event.type === "tool_result" && !event.ok);
  expect(failed).toMatchObject({
    tool: "run_command",
    output: { message: expect.stringContaining("there is no tool run_command") },
  });
  expect(await service.stop()).toBe(0);
});
