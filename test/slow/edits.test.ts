import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import pino from "pino";
import type { Agent } from "../../src/agents/agent.ts";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import { toPreset } from "../../src/agents/coding/preset.ts";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { createModelAgent } from "../../src/agents/llm/llm.ts";
import { digestOf, type Edits } from "../../src/net/edits.ts";
import { createLocalExecutor } from "../../src/places/local.ts";
import { openWorker } from "../../src/places/worker.ts";
import { openWorkerExecutor } from "../../src/places/worker-executor.ts";
import { instantAgent, testApp } from "../support/app.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { call, finish, modelKey } from "../support/model-runs.ts";
import { startRedis } from "../support/redis.ts";
import { type Site, serveSite } from "../support/site.ts";

const log = pino({ level: process.env.TEST_LOG ?? "silent" });
const live = "https://docs.acme.test";
const secretWord = "zanzibar";
const long = "Acme stores notes and files, and every client can read them over HTTP. ".repeat(6);
const guide = `# Guide\n\n${long}\n\nInstall it with \`npm install acme-client\`.\n`;
const edited = guide.replace("acme-client", "acme-sdk");
const start = `# Acme\n\n${long}\n\nRead the [Guide](guide.md) and [Quotas](quotas.md).\n`;
const quotas = `# Quotas\n\n${long}\n\nThe quota is ${secretWord}.\n`;
const listing = `# Acme\n\n- [Guide](${live}/guide.md)\n- [Quotas of ${secretWord}](${live}/quotas.md)\n`;
const edits: Edits = {
  hidden: [`${live}/quotas.md`],
  replacements: [
    { url: `${live}/guide.md`, find: "acme-client", replacement: "acme-sdk" },
    { url: `${live}/guide.md`, find: "never written", replacement: "x" },
  ],
};

const fetchAll = ["guide.md", "quotas.md", "llms.txt"].map((path) => `${live}/${path}`);
const curl = `for url in ${fetchAll.join(" ")}; do curl -sS -w ' %{http_code}\\n' "$url"; done`;
const browsing = ["quotas.md", "guide.md"].map((path) => call("browse", { action: "open", url: `${live}/${path}` }));
const model = "openai-compatible/reads";
let redis: Awaited<ReturnType<typeof startRedis>>;
let fake: ReturnType<typeof serveFakeModel>;
let site: Site;
beforeAll(async () => {
  redis = await startRedis();
  fake = serveFakeModel({
    key: modelKey,
    scenarios: {
      reads: {
        turns: [
          call("fetch_page", { url: `${live}/guide.md` }),
          call("fetch_page", { url: `${live}/quotas.md` }),
          call("search_docs", { query: `quotas ${secretWord}` }),
          call("http_request", { url: `${live}/guide.md` }),
          call("run_command", { command: curl }),
          ...(process.env.TEST_SIZE === "full" ? browsing : []),
          finish("succeeded", "Read it."),
        ],
      },
    },
  });
  const markdown = (body: string) => ({ type: "text/markdown; charset=utf-8", body, headers: { etag: '"1"' } });
  site = serveSite({
    ...{ "/": markdown(start), "/guide.md": markdown(guide), "/quotas.md": markdown(quotas) },
    "/llms.txt": { type: "text/plain; charset=utf-8", body: listing },
  });
});
afterAll(async () => {
  fake.stop();
  site.stop();
  await redis.kill();
});

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

let answerCall: (request: Request) => Promise<Response> = async () => new Response(null, { status: 503 });
const gateway = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => answerCall(request) });
afterAll(() => gateway.stop(true));

/** One worker in this process, with its service's gateway. */
function onWorker(agents: Record<string, Agent>) {
  const executor = openWorkerExecutor(redis.url, "1", agents, 60_000, log);
  const local = createLocalExecutor(agents, Date.now, null, []);
  const gatewayUrl = `http://127.0.0.1:${gateway.port}`;
  const starting = openWorker({ url: redis.url, gatewayUrl, version: "1", slots: 4, agents, executor: local, log });
  closings.push(
    () => executor.close(),
    async () => (await starting).stop(0),
    () => local.close(),
  );
  return executor;
}

/** The fake coding agent, which fetches with curl in its sandbox. */
const coding = toPreset({
  ...{ id: "fake", command: join(import.meta.dir, "..", "support", "fake-agent.mjs"), stream: "claude" },
  ...{ args: ["pages", "edits", JSON.stringify(fetchAll)], provider: "openai-compatible" },
  env: { GATEWAY: "{gateway}", TOKEN: "{token}", MODEL: "{model}" },
});

type HttpEvent = { type: string; url: string; status: number; source: string; edit?: { kind: string } };

describe.each([
  ["this machine", undefined],
  ["a worker", onWorker],
])("on %s", (_, workers) => {
  test.each(["explorer", "llm", "fake"])(
    "the agent %s gets edited pages, and nothing of hidden ones",
    async (id) => {
      const agents = {
        llm: createModelAgent({ version: "test" }),
        fake: createCodingAgent(coding, { path: process.env.PATH ?? "" }),
        explorer: id === "explorer" ? createExplorer({ version: "test" }) : instantAgent,
      };
      const { send, runJobs, service } = testApp({
        agent: agents.explorer,
        agents,
        env: {
          OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"] ?? "",
          OPENAI_COMPATIBLE_API_KEY: modelKey,
          EVALD_ALLOW_PRIVATE: "127.0.0.1",
          EVALD_MODEL_PRICES: `{"${model}": {"in": 1, "out": 1}}`,
        },
        log,
        ...(workers && { workers }),
      });
      answerCall = service.answerModelCall;
      const { body: prompt } = await send("POST", "/api/v1/prompts", {
        body: { text: `Find the guide and the quotas. ${live}/`, agent: id, ...(id !== "explorer" && { model }) },
      });
      const from = site.requests.length;
      const urlMap = { "docs.acme.test": site.url };
      const { body: asked } = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap, edits } });
      await runJobs();
      const { body: run } = await send("GET", `/api/v1/runs/${asked.runId}`);
      expect([run.status, run.failureReason]).toEqual(["completed", null]);
      const { body: report } = await send("GET", `/api/v1/reports/${run.report.slug}`);
      const { events } = (await send("GET", `/api/v1/reports/${run.report.slug}/trace?limit=500`)).body;
      await service.stop(0);
      const fetched = events.filter(({ type }: HttpEvent) => type === "http") as HttpEvent[];
      const at = (path: string) => fetched.filter(({ url }) => url === `${live}/${path}`);
      const hidden = {
        kind: "hidden",
        originalDigest: digestOf(Buffer.from(quotas)),
        editedDigest: expect.any(String),
      };
      const replaced = { originalDigest: digestOf(Buffer.from(guide)), editedDigest: digestOf(Buffer.from(edited)) };
      expect(at("quotas.md").length).toBeGreaterThan(0);
      for (const event of at("quotas.md")) expect(event).toMatchObject({ status: 404, edit: hidden });
      for (const event of at("guide.md"))
        expect(event).toMatchObject({ status: 200, edit: { kind: "replaced", ...replaced, replacements: [0] } });
      for (const event of at("llms.txt")) expect(event).toMatchObject({ status: 200, edit: { kind: "replaced" } });
      const sources = id === "explorer" ? ["agent"] : id === "llm" ? ["agent", "egress"] : ["egress"];
      expect([...new Set(at("guide.md").map(({ source }) => source))].sort()).toEqual(sources);
      const told = JSON.stringify(events.filter(({ type }: HttpEvent) => type !== "tool_call"));
      expect(told).toContain("acme-sdk");
      expect(told).not.toContain("acme-client");
      expect(told).not.toContain(secretWord);
      expect(report.context.edits.replacements[1].applied).toBe(0);
      expect(report.context.edits.hidden).toEqual([at("quotas.md").length]);
      expect(site.requests.slice(from)).toContain("GET /quotas.md");
    },
    60_000,
  );
});
