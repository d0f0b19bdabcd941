import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import { toPreset } from "../../src/agents/coding/preset.ts";
import { createArchive } from "../../src/archives/archives.ts";
import type { AgentEntry } from "../../src/config/agent-entry.ts";
import { testApp } from "../support/app.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { serveMcp } from "../support/mcp-server.ts";
import { call, finish, modelRuns } from "../support/model-runs.ts";

// A fake agent and the agent with a model get skills and MCP servers here. Real agents are tested in test/slow/real-agent-context.test.ts.

const key = "sk-the-real-key-0123456789";
const program = join(import.meta.dir, "..", "support", "fake-agent.mjs");
const agent: AgentEntry = {
  ...{ id: "fake", command: program, args: ["context"], stream: "claude", provider: "openai-compatible" },
  env: { GATEWAY: "{gateway}", TOKEN: "{token}", MODEL: "{model}" },
};
const skill = (name: string) => `---\nname: ${name}\ndescription: Explains ${name}.\n---\n\nDo as it says.\n`;
const folders = { "skills/acme-guide/SKILL.md": skill("acme-guide"), "skills/spare/SKILL.md": skill("spare") };

let fake: ReturnType<typeof serveFakeModel>;
beforeAll(() => {
  fake = serveFakeModel({
    key,
    scenarios: {
      fine: { turns: [{ text: "Done.", usage: { input: 100, output: 20 } }] },
      reads: {
        turns: [
          call("read_file", { path: ".agents/skills/acme-guide/SKILL.md" }),
          finish("goal_not_met", "That was all."),
        ],
      },
    },
  });
});
afterAll(() => fake.stop());

const localServer = () => Bun.file(join(import.meta.dir, "..", "support", "mcp-stdio.py")).text();
const packed = (files: Record<string, string>) => new Bun.Archive(files, { compress: "gzip" }).bytes();

function setUp(custom: Partial<AgentEntry> = {}) {
  return testApp({
    agents: { fake: createCodingAgent(toPreset({ ...agent, ...custom }), { path: process.env.PATH ?? "" }) },
    env: {
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: key,
      EVALD_AGENT_MODEL: "openai-compatible/fine",
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
    },
  });
}

async function runOf(
  workspace: Record<string, unknown>,
  files: Record<string, string> = folders,
  { custom = {}, urlMap = {} }: { custom?: Partial<AgentEntry>; urlMap?: Record<string, string> } = {},
) {
  const { send, service, a, runJobs } = setUp(custom);
  const archive = createArchive(service.ctx, a.org, { data: await packed(files), files: 2 }).id;
  const body = { text: "See https://docs.test/", agent: "fake", workspace: { archive, ...workspace } };
  const { body: prompt } = await send("POST", "/api/v1/prompts", { body });
  const asked = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap } });
  await runJobs();
  const { body: run } = await send("GET", `/api/v1/runs/${asked.body.runId}`);
  const slug = run.report?.slug;
  const report = slug ? (await send("GET", `/api/v1/reports/${slug}`)).body : null;
  const events = slug ? (await send("GET", `/api/v1/reports/${slug}/trace?limit=500`)).body.events : [];
  const markdown = slug ? (await send("GET", `/reports/${slug}.md`)).body : null;
  await service.stop(0);
  return { run, report, events, markdown };
}

test("a report shows the given context, what the model received, and what was used", async () => {
  const { run, report, markdown } = await runOf({
    instructions: "Be brief.",
    env: { REGION: "eu-1" },
    skills: { folder: "skills" },
  });
  expect(run.failureReason).toBeNull();
  expect(report.context).toEqual({
    instructions: { chars: 9, isUsed: true },
    skills: [
      { name: "acme-guide", isOffered: true, uses: 1 },
      { name: "spare", isOffered: false, uses: 0 },
    ],
    mcpServers: [],
    env: ["REGION"],
    sites: [],
  });
  expect(markdown).toMatch(/\| Skill +\| acme-guide +\| yes +\| once/);
  const changed = { ...folders, "skills/spare/notes.txt": "one more file" };
  const other = await runOf(
    { instructions: "Be brief.", env: { REGION: "eu-1" }, skills: { folder: "skills" } },
    changed,
  );
  expect(other.report.agent.contextDigest).not.toBe(report.agent.contextDigest);
});

test("the agent with a model gets a list of its skills, and reads them", async () => {
  const before = (app: ReturnType<typeof testApp>) => {
    workspace.archive = createArchive(app.service.ctx, app.a.org, { data, files: 2 }).id;
  };
  const data = await packed(folders);
  const workspace: Record<string, unknown> = { skills: { folder: "skills" } };
  const { report, app } = await modelRuns(fake).runOf("reads", { before: before as never, prompt: { workspace } });
  const { body } = await app.send("GET", `/api/v1/reports/${report.slug}`);
  expect(body.context.skills).toMatchObject([
    { name: "acme-guide", isOffered: true, uses: 1 },
    { name: "spare", isOffered: true, uses: 0 },
  ]);
  expect(JSON.stringify(fake.requests.at(-1)?.body)).toContain("Explains spare.");
});

test("the agent with a model uses remote MCP servers through the proxy, and local ones in the sandbox", async () => {
  const mcp = serveMcp();
  fake.add("looks", {
    turns: [
      call("mcp__acme-remote__lookup", { name: "a" }),
      call("mcp__acme-local__lookup", { name: "b" }),
      call("mcp__acme-local__lookup", {}),
      finish("goal_not_met", "That was all."),
    ],
  });
  const data = await packed({ "server.py": await localServer() });
  const workspace: Record<string, unknown> = {
    mcpServers: {
      "acme-remote": { url: `${mcp.url}/mcp` },
      "acme-local": { command: "python3", args: ["server.py"] },
      broken: { command: "sh", args: ["-c", "echo not today >&2; exit 1"] },
      forbidden: { url: "http://127.0.0.1:1/mcp" },
    },
  };
  const before = (app: ReturnType<typeof testApp>) => {
    workspace.archive = createArchive(app.service.ctx, app.a.org, { data, files: 1 }).id;
  };
  const { report, events, run, app } = await modelRuns(fake).runOf("looks", {
    before: before as never,
    prompt: { workspace },
  });
  mcp.stop();
  expect(run.failureReason).toBeNull();
  const { body } = await app.send("GET", `/api/v1/reports/${report.slug}`);
  expect(body.context.mcpServers).toMatchObject([
    { name: "acme-remote", isOffered: true, uses: 1 },
    { name: "acme-local", isOffered: true, uses: 2 },
    { name: "broken", isOffered: false, uses: 0 },
    { name: "forbidden", isOffered: false, uses: 0 },
  ]);
  const of = (type: string) => events.filter((event: { type: string }) => event.type === type);
  const results = of("tool_result").filter(({ tool }: { tool: string }) => tool.startsWith("mcp__"));
  expect(results).toMatchObject([
    { ok: true, output: { text: "remote a" } },
    { ok: true, output: { text: "local b" } },
    { ok: false },
  ]);
  expect(mcp.calls).toEqual(["a"]);
  const requests = of("http").filter(({ purpose }: { purpose: string }) => purpose === "mcp");
  expect(
    requests.some(({ id, status }: { id: string; status: number }) => id === results[0].id && status === 200),
  ).toBe(true);
  expect(JSON.stringify(fake.requests.at(-1)?.body)).toContain("not today");
});

test("an agent over ACP gets skills and MCP servers, and their use is measured", async () => {
  const mcp = serveMcp();
  const files = { ...folders, "server.py": await localServer() };
  const mcpServers = {
    "acme-remote": { url: "https://mcp.acme.test/mcp" },
    "acme-local": { command: "python3", args: ["server.py"] },
  };
  const custom: Partial<AgentEntry> = { args: ["acp-context"], stream: "acp" };
  const options = { custom, urlMap: { "mcp.acme.test": mcp.url } };
  const { run, report, events } = await runOf({ skills: { folder: "skills" }, mcpServers }, files, options);
  mcp.stop();
  expect(run.failureReason).toBeNull();
  expect(report.context).toMatchObject({
    skills: [
      { name: "acme-guide", isOffered: true, uses: 1 },
      { name: "spare", isOffered: false, uses: 0 },
    ],
    mcpServers: [
      { name: "acme-remote", isOffered: true, uses: 1 },
      { name: "acme-local", isOffered: true, uses: 1 },
    ],
  });
  const texts = events.flatMap(({ type, output }: { type: string; output: { text: string } }) =>
    type === "tool_result" ? (/(remote|local) acme/.exec(output.text ?? "")?.[0] ?? []) : [],
  );
  expect([texts, mcp.calls]).toEqual([["remote acme", "local acme"], ["acme"]]);
  expect(
    events.some(({ purpose, status }: { purpose: string; status: number }) => purpose === "mcp" && status === 200),
  ).toBe(true);
});

describe("a run fails before the agent starts, with the reason, if its skills are", () => {
  test.each<[string, Record<string, unknown>, Record<string, string>, RegExp]>([
    ["a folder of 100 MB", { setup: "head -c 100000000 /dev/zero > skills/big" }, folders, /95 MiB.*limit of 10 MiB/],
    ["a folder that doesn't exist", {}, { "a.txt": "a" }, /the folder skills does not exist/],
    ["a folder without a skill", {}, { "skills/a.txt": "a" }, /no SKILL\.md/],
    ["a link to a path outside", { setup: "rm -r skills; ln -s /etc skills" }, folders, /a path outside the workspace/],
    ["an invalid name", {}, { "skills/a/SKILL.md": skill("../../x") }, /invalid name/],
  ])(
    "%s",
    async (_, more, files, reason) => {
      const asked = fake.requests.length;
      const { run } = await runOf({ ...more, skills: { folder: "skills" } }, files);
      expect([run.status, run.failureReason]).toEqual(["failed", expect.stringMatching(reason)]);
      expect(run.failureReason).toStartWith("infrastructure: copying the skills (workspace.skills) failed");
      expect(fake.requests.length).toBe(asked);
    },
    300_000,
  );
});

test("an agent without MCP support is rejected when the prompt is saved and when a run names it", async () => {
  const { send } = setUp();
  const workspace = { mcpServers: { acme: { url: "https://mcp.acme.test/mcp" } } };
  const prompt = { text: "See https://docs.test/", agent: "fake", workspace };
  const saved = await send("POST", "/api/v1/prompts", { body: prompt });
  expect([saved.status, saved.body.detail]).toEqual([
    400,
    expect.stringContaining("workspace.mcpServers: the agent fake"),
  ]);
  const { body } = await send("POST", "/api/v1/prompts", { body: { ...prompt, agent: null } });
  const asked = await send("POST", `/api/v1/prompts/${body.id}/run`, { body: { urlMap: {}, agent: "fake" } });
  expect([asked.status, asked.body.detail]).toEqual([
    400,
    expect.stringContaining("workspace.mcpServers: the agent fake"),
  ]);
  const { body: agents } = await send("GET", "/api/v1/agents");
  expect(agents.find(({ id }: { id: string }) => id === "fake").lacks).toEqual(["mcpServers"]);
});
