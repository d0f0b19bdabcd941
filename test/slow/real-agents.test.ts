import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import clineEntry from "../../src/agents/coding/presets/cline.jsonc";
import { serveScriptedModel, usage } from "../../src/agents/coding/scripted-model.ts";
import { buildExecutable, call, client, emptyFolder, furnish, serve, untilRun } from "../support/executable.ts";
import { childrenOf, descendantsOf, isWaiting } from "../support/processes.ts";
import { type Site, serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

// The published coding agents, installed by test/support/agents.sh, each run with a scripted model. Those that it installs only with "all"
// are tested where they are installed.

const cache = process.env.EVALD_AGENTS_CACHE ?? join(process.env.HOME ?? "", ".cache", "evald-agents");
const binOf = (name: string) => join(cache, name, "node_modules", ".bin");
const names = ["node", "codex", "gemini", "opencode", "qwen", "pi"];
const moreNames = ["cline", "continue", "grok-build", "kimi"].filter((name) => existsSync(binOf(name)));
const PATH = [...[...names, ...moreNames].map(binOf), process.env.PATH].join(delimiter);
const key = "sk-the-real-key-0123456789";
const page = "https://docs.acme.test/guide";
const price = { in: 10, out: 100, cached: 1 };

const allAgents: [id: string, model: string][] = [
  ["codex", "openai/gpt-5.6-sol"],
  ["gemini", "google/gemini-3.1-pro-preview"],
  ["opencode", "anthropic/claude-opus-4-8"],
  ["pi", "anthropic/claude-sonnet-4-8"],
  ["qwen", "openai-compatible/qwen3-coder-plus"],
  ["cline", "openai/gpt-5"],
  ["continue", "anthropic/claude-opus-4-7"],
  ["grok-build", "openai-compatible/grok-code-fast-1"],
  ["kimi", "openai-compatible/kimi-k2"],
];
const agents = allAgents.filter(([id]) => [...names, ...moreNames].includes(id));

let model: ReturnType<typeof serveScriptedModel>;
let docs: Site;
let service: Awaited<ReturnType<typeof serve>>;
let ask: ReturnType<typeof client>;
let env: Record<string, string>;

beforeAll(async () => {
  const missing = names.filter((name) => !existsSync(binOf(name)));
  if (missing.length > 0) throw new Error(`run test/support/agents.sh, which installs ${missing.join(", ")}`);
  await buildExecutable();
  // Long enough for agents that look for the main text of a page.
  const filler = "<p>The file has the words hi there, which the next step of the guide reads.</p>".repeat(8);
  const guide = `<title>Guide</title><article><h1>Guide</h1><p>Write the file hello.txt.</p>${filler}</article>`;
  docs = serveSite({ "/guide": { body: guide } });
  model = serveScriptedModel(page);
  env = {
    PATH,
    ANTHROPIC_API_KEY: key,
    ANTHROPIC_BASE_URL: `${model.url}/v1`,
    OPENAI_API_KEY: key,
    OPENAI_BASE_URL: `${model.url}/v1`,
    GOOGLE_GENERATIVE_AI_API_KEY: key,
    GOOGLE_GENERATIVE_AI_BASE_URL: `${model.url}/v1beta`,
    OPENAI_COMPATIBLE_API_KEY: key,
    OPENAI_COMPATIBLE_BASE_URL: `${model.url}/v1`,
    EVALD_MODEL_PRICES: JSON.stringify(Object.fromEntries(agents.map(([, id]) => [id, price]))),
    EVALD_ALLOW_PRIVATE: "127.0.0.1",
    EVALD_AGENTS: JSON.stringify([
      {
        ...{ id: "my-opencode", command: "opencode", args: ["acp", "--pure"], stream: "acp", provider: "anthropic" },
        env: {
          OPENCODE_DISABLE_AUTOUPDATE: "1",
          OPENCODE_DISABLE_MODELS_FETCH: "1",
          OPENCODE_CONFIG_CONTENT: JSON.stringify({
            ...{ model: "evald/{model}", small_model: "evald/{model}", permission: "ask" },
            provider: {
              evald: {
                npm: "@ai-sdk/anthropic",
                options: { baseURL: "{gateway}/anthropic/v1", apiKey: "{token}" },
                models: { "{model}": { tool_call: true, limit: { context: 200_000, output: 32_000 } } },
              },
            },
          }),
        },
      },
    ]),
  };
  const cwd = emptyFolder();
  const { key: apiKey } = await furnish(cwd);
  service = await serve({ cwd, env });
  ask = client(service.url, apiKey);
}, 300_000);
afterAll(async () => {
  await service.stop();
  model.stop();
  docs.stop();
});

/** Processes of runs: all processes of the service except those that wait for the next run. */
const running = (): number =>
  childrenOf(service.pid)
    .map((pid) => [pid, ...descendantsOf(pid)])
    .filter((tree) => !tree.some(isWaiting))
    .flat().length;

type Event = { type: string; seq: number; [name: string]: unknown };

async function runOf(agent: string, id: string) {
  const prompt = await ask("POST", "/api/v1/prompts", { text: `Read ${page} and do it.`, agent, model: id });
  expect([prompt.status, prompt.body.detail]).toEqual([201, undefined]);
  const urlMap = { "docs.acme.test": docs.url };
  const asked = await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap });
  const run = await untilRun(ask, asked.body.runId, "completed", "failed");
  expect(run.failureReason).toBeNull();
  const trace = await ask("GET", `/api/v1/reports/${run.report.slug}/trace?limit=500`);
  const events: Event[] = trace.body.events;
  const of = (type: string) => events.filter((event) => event.type === type);
  const callOf = (part: string) => {
    const [made] = of("tool_call").filter(({ input }) => JSON.stringify(input).includes(part));
    return { call: made, result: of("tool_result").find((event) => event.id === made?.id) };
  };
  return { run, report: run.report, of, callOf };
}

/** Agents that say the exit code of a command only if it failed. */
const namesOnlyFailures = ["gemini", "pi", "cline", "continue", "kimi"];
/** Agents that don't report whether a call succeeded. Only a failure is told, by their texts. */
const namesNoSuccess = ["cline", "continue"];

test.each(agents)(
  "%s works through a whole session",
  async (agent, id) => {
    const name = id.slice(id.indexOf("/") + 1);
    const { run, report, of, callOf } = await runOf(agent, id);
    const tested = of("milestone").find((event) => event.name === "started")?.detail;
    expect([run.agent.id, tested]).toMatchObject([agent, { isTested: true }]);

    const success = namesNoSuccess.includes(agent) ? null : true;
    expect(callOf("echo hello")).toMatchObject({ call: { tool: "run_command" }, result: { ok: success } });
    const { output } = callOf("echo hello").result as unknown as { output: { exitCode: number | null } };
    expect(output.exitCode).toBe(namesOnlyFailures.includes(agent) ? null : 0);
    expect(callOf("exit 3")).toMatchObject({ result: { ok: false, output: { exitCode: 3 } } });
    expect(callOf("hello.txt")).toMatchObject({ call: { tool: "write_file" }, result: { ok: success } });
    expect(of("tool_call").every((event) => typeof event.ownName === "string" || event.tool === "write_file")).toBe(
      true,
    );
    expect(of("end")).toMatchObject([{ outcome: "not_judged", reason: "Done: all steps of the trial were made." }]);

    const fetched = callOf(page);
    const reached = of("http").filter(
      // Continue looks at the root of a site before it fetches a page.
      ({ status, method, url }) => status !== null && method !== "CONNECT" && url !== "https://docs.acme.test/",
    );
    expect(reached).toMatchObject([
      { url: page, mappedUrl: `${docs.url}/guide`, status: 200, provenance: "given", id: fetched.call?.id },
    ]);
    expect(of("milestone").find((event) => event.name === "page_read")?.detail).toMatchObject({ url: page });
    expect(JSON.stringify(fetched.result)).toContain("Write the file hello.txt");

    const calls = model.callCount(name);
    const costUsd = (calls * (600 * price.in + 400 * price.cached + 50 * price.out)) / 1e6;
    expect(of("usage").reduce((sum, event) => sum + Number(event.inputTokens) + Number(event.outputTokens), 0)).toBe(
      calls * (usage.input + usage.output),
    );
    expect(report.metrics.costUsd).toBeCloseTo(costUsd, 6);
    expect(report.metrics).toMatchObject({ toolCalls: 4, interruptions: 0 });
    expect(report.dimensions.length).toBeGreaterThan(3);
    await until("its processes are gone", () => running() === 0);
    // Only the run's host and package registries were requested.
    const hosts = of("http").map((event) => new URL(String(event.url)).hostname);
    expect(hosts.filter((host) => host !== "docs.acme.test" && host !== "registry.npmjs.org")).toEqual([]);
  },
  300_000,
);

test("an agent over ACP works through a whole session", async () => {
  const { run, of, callOf } = await runOf("my-opencode", "anthropic/claude-opus-4-8");
  expect(run.agent.version).toMatch(/^1\.18\.33\+custom\./);
  expect(callOf("echo hello")).toMatchObject({ call: { tool: "run_command" }, result: { ok: true } });
  expect(callOf("exit 3")).toMatchObject({ result: { ok: false, output: { exitCode: 3 } } });
  expect(callOf(page)).toMatchObject({ call: { tool: "fetch_page" }, result: { ok: true } });
  expect(callOf("hello.txt")).toMatchObject({ call: { tool: "write_file" }, result: { ok: true } });
  expect(of("http").find((event) => event.url === page)).toMatchObject({ status: 200 });
  expect(of("end")).toMatchObject([{ reason: "Done: all steps of the trial were made." }]);
  await until("its processes are gone", () => running() === 0);
}, 300_000);

test("a coding agent is not run without a sandbox", async () => {
  const cwd = emptyFolder();
  // The folder has everything but bubblewrap.
  symlinkSync(Bun.which("node", { PATH }) ?? "", join(cwd, "node"));
  const program = join(import.meta.dir, "..", "support", "fake-agent.mjs");
  const fake = { id: "fake", command: program, stream: "claude", provider: "openai" };
  const args = ["eval", docs.url, "--goal", "Read it.", "--agent", "fake", "--model", "openai/gpt-5.6-sol"];
  const { code, stderr } = await call(args, { cwd, env: { ...env, PATH: cwd, EVALD_AGENTS: JSON.stringify([fake]) } });
  expect([code, stderr]).toEqual([3, expect.stringMatching(/No sandbox\. .*bubblewrap is not installed/)]);
});

test("an agent that is defined in a file with a relative path is run", async () => {
  const cwd = emptyFolder();
  const program = join(import.meta.dir, "..", "support", "fake-agent.mjs");
  const fake = { id: "fake", command: program, stream: "claude", provider: "openai" };
  writeFileSync(join(cwd, "agents.json"), JSON.stringify([fake]));
  const args = ["eval", docs.url, "--goal", "Read it.", "--agent", "fake", "--model", "openai/gpt-5.6-sol", "--json"];
  const { code, stdout, stderr } = await call(args, { cwd, env: { ...env, EVALD_AGENTS: "agents.json" } });
  expect([code, code === 0 || stderr]).toEqual([0, true]);
  expect(JSON.parse(stdout).agent.id).toBe("fake");
}, 300_000);

test("agent list and doctor show the agents, and agent try runs one", async () => {
  const cwd = emptyFolder();
  const listed = JSON.parse((await call(["agent", "list", "--json"], { cwd, env })).stdout);
  for (const [id] of agents)
    expect(listed.find((each: { id: string }) => each.id === id)).toMatchObject({ isInstalled: true, isTested: true });
  const claude = listed.find((each: { id: string }) => each.id === "claude");
  if (!claude.isInstalled) expect(claude.detail).toContain("npm install -g @anthropic-ai/claude-code@");
  const findings = JSON.parse((await call(["doctor", "--json"], { cwd, env })).stdout);
  expect(findings.find((each: { subject: string }) => each.subject === "codex")).toMatchObject({
    state: "ok",
    detail: expect.stringContaining("0.169.0"),
  });
  const tried = await call(["agent", "try", "codex"], { cwd, env: { PATH } });
  expect([tried.code, tried.stderr.match(/^ok /gm)?.length]).toEqual([0, 6]);
}, 300_000);

test.if(moreNames.includes("grok-build"))(
  "two programs of one name are told apart, and agent try runs the one without exit codes",
  async () => {
    const cwd = emptyFolder();
    const listed = JSON.parse((await call(["agent", "list", "--json"], { cwd, env })).stdout);
    const find = (id: string) => listed.find((each: { id: string }) => each.id === id);
    expect([find("grok-build").isInstalled, find("grok").isInstalled]).toEqual([true, false]);
    expect(find("grok").detail).toContain("belongs to @xai-official/grok");
    const tried = await call(["agent", "try", "grok"], { cwd, env: { PATH: [binOf("grok"), PATH].join(delimiter) } });
    expect([tried.code, tried.stderr.match(/^ok /gm)?.length]).toEqual([0, 6]);
  },
  300_000,
);

test.if(moreNames.includes("cline"))(
  "agent try says what to change in the entry of a new agent",
  async () => {
    const cwd = emptyFolder();
    const entry = {
      id: "my-cline",
      command: "cline",
      package: "cline",
      provider: "openai",
      stream: "none",
      args: ["-P", "openai-compatible", "-m", "{model}", "--auto-approve", "true", "{prompt}"],
      files: { ".cline/data/settings/providers.json": clineEntry.files?.[".cline/data/settings/providers.json"] },
    };
    const tryIt = (more: object) =>
      call(["agent", "try", "my-cline"], { cwd, env: { PATH, EVALD_AGENTS: JSON.stringify([{ ...entry, ...more }]) } });
    const first = await tryIt({});
    expect([first.code, first.stderr]).toEqual([1, expect.stringContaining('"run_commands":"run_command"')]);
    const second = await tryIt({ tools: clineEntry.tools });
    expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('Set "exitCode": "')]);
    const pattern = /Set "exitCode": (".*")$/m.exec(second.stderr)?.[1] ?? "";
    const third = await tryIt({ tools: clineEntry.tools, exitCode: JSON.parse(pattern) });
    expect([third.code, third.stderr.match(/^ok /gm)?.length]).toEqual([0, 6]);
  },
  600_000,
);
