import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import type { Preset } from "../../src/agents/coding/preset.ts";
import { presets } from "../../src/agents/coding/presets.ts";
import { serveScriptedModel } from "../../src/agents/coding/scripted-model.ts";
import { createArchive } from "../../src/archives/archives.ts";
import { testApp } from "../support/app.ts";
import { serveMcp } from "../support/mcp-server.ts";
import { type Site, serveSite } from "../support/site.ts";

// The published coding agents, installed by test/support/agents.sh, get skills, MCP servers and AGENTS.md.

const cache = process.env.EVALD_AGENTS_CACHE ?? join(process.env.HOME ?? "", ".cache", "evald-agents");
const binOf = (name: string) => join(cache, name, "node_modules", ".bin");
const path = [...["node", "codex", "gemini", "opencode", "qwen", "pi"].map(binOf), process.env.PATH].join(delimiter);
const key = "sk-the-real-key-0123456789";
const page = "https://docs.acme.test/guide";

let docs: Site;
let mcp: ReturnType<typeof serveMcp>;

beforeAll(() => {
  docs = serveSite({ "/guide": { body: "<title>Guide</title><h1>Guide</h1><p>Look it up.</p>" } });
  mcp = serveMcp();
});
afterAll(() => {
  mcp.stop();
  docs.stop();
});

const skill = "---\nname: acme-guide\ndescription: How to look things up at Acme.\n---\n\nUse the tool lookup.\n";
const skills = await new Bun.Archive({ "acme-guide/SKILL.md": skill }, { compress: "gzip" }).bytes();
const localServer = readFileSync(join(import.meta.dir, "..", "support", "mcp-stdio.py"), "utf8");

async function runOf(id: string, modelId: string, hasMcp: boolean) {
  const preset = presets.find((each) => each.id === id) as Preset;
  const model = serveScriptedModel(page, hasMcp ? ["skill", "first MCP tool", "second MCP tool"] : ["skill"]);
  const base = (path: string) => `${model.url}/${path}`;
  const app = testApp({
    agents: { [id]: createCodingAgent(preset, { path }) },
    env: {
      ...{ ANTHROPIC_API_KEY: key, OPENAI_API_KEY: key, GOOGLE_GENERATIVE_AI_API_KEY: key },
      ...{ OPENAI_COMPATIBLE_API_KEY: key, OPENAI_COMPATIBLE_BASE_URL: base("v1") },
      ...{ ANTHROPIC_BASE_URL: base("v1"), OPENAI_BASE_URL: base("v1") },
      GOOGLE_GENERATIVE_AI_BASE_URL: base("v1beta"),
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
    },
  });
  const { send, service, a, runJobs } = app;
  const archive = createArchive(service.ctx, a.org, { data: skills, files: 1 }).id;
  const local = await new Bun.Archive({ "server.py": localServer }, { compress: "gzip" }).bytes();
  const workspace = {
    archive: createArchive(service.ctx, a.org, { data: local, files: 1 }).id,
    instructions: "Always look things up first.",
    skills: { archive },
    ...(hasMcp && {
      mcpServers: {
        "acme-remote": { url: "https://mcp.acme.test/mcp" },
        "acme-local": { command: "python3", args: ["server.py"], env: { MODE: "test" } },
      },
    }),
  };
  const body = { text: `Read ${page}.`, agent: id, model: modelId, workspace };
  const prompt = await send("POST", "/api/v1/prompts", { body });
  expect([prompt.status, prompt.body.detail]).toEqual([201, undefined]);
  const urlMap = { "docs.acme.test": docs.url, "mcp.acme.test": mcp.url };
  const asked = await send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap } });
  await runJobs();
  const { body: run } = await send("GET", `/api/v1/runs/${asked.body.runId}`);
  expect(run.failureReason).toBeNull();
  const { body: trace } = await send("GET", `/api/v1/reports/${run.report.slug}/trace?limit=500`);
  const { body: report } = await send("GET", `/api/v1/reports/${run.report.slug}`);
  await service.stop(0);
  model.stop();
  type Event = { type: string; [name: string]: unknown };
  return { report, of: (type: string) => (trace.events as Event[]).filter((event) => event.type === type) };
}

test.each([
  ["codex", "openai/gpt-5.6-sol", true],
  ["gemini", "google/gemini-3.1-pro-preview", true],
  ["opencode", "anthropic/claude-opus-4-8", true],
  ["qwen", "openai-compatible/qwen3-coder-plus", true],
  ["pi", "anthropic/claude-sonnet-4-8", false],
] as const)(
  "%s gets its instructions, skills and MCP servers, and their use is measured",
  async (id, modelId, hasMcp) => {
    const { report, of } = await runOf(id, modelId, hasMcp);
    const servers = hasMcp ? ["acme-remote", "acme-local"] : [];
    expect(of("milestone").findLast(({ name }) => name === "context_offered")?.detail).toEqual({
      instructions: true,
      skills: ["acme-guide"],
      mcpServers: servers,
    });
    const called = of("milestone").filter(({ name }) => name === "mcp_server_called");
    expect(called.map(({ detail }) => (detail as { server: string }).server).sort()).toEqual([...servers].sort());
    expect(of("http").filter(({ purpose }) => purpose === "mcp").length > 0).toBe(hasMcp);
    expect(report.context).toMatchObject({
      instructions: { isUsed: true },
      skills: [{ name: "acme-guide", isOffered: true, uses: 1 }],
      mcpServers: servers.map((name) => ({ name, isOffered: true, uses: 1 })),
    });
  },
  300_000,
);
