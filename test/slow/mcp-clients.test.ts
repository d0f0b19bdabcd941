import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { buildExecutable, call, client, emptyFolder, serve, untilRun } from "../support/executable.ts";
import { serveSite } from "../support/site.ts";

// Third-party clients use the executable, with real reports of a small site.

const site = serveSite({
  "/": {
    body: "<!doctype html><html lang=en><title>Acme</title><main><h1>Acme</h1><a href=/upload>Upload</a> <a href=/gone>Gone</a></main></html>",
  },
  "/upload": {
    body: '<!doctype html><html lang=en><title>Upload</title><main><h1>Upload a file</h1><p>Upload a file with the SDK.</p><pre><code class="language-js">await sdk.upload("a.txt");</code></pre></main></html>',
  },
});
let service: Awaited<ReturnType<typeof serve>>;
let key = "";
const world = { promptId: "", slugs: [] as string[] };

beforeAll(async () => {
  await buildExecutable();
  const cwd = emptyFolder();
  service = await serve({ cwd, env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` } });
  await call(["org", "create", "Acme"], { cwd });
  key = (await call(["key", "create", "--name", "agent"], { cwd })).stdout.trim();
  const ask = client(service.url, key);
  const prompt = await ask("POST", "/api/v1/prompts", {
    title: "Upload a file",
    text: `Upload a file. Docs: ${site.url}/`,
    endGoal: "A file was uploaded with the SDK.",
  });
  world.promptId = prompt.body.id;
  for (let i = 0; i < 2; i++) {
    const { body } = await ask("POST", `/api/v1/prompts/${world.promptId}/run`, { urlMap: {} });
    world.slugs.push((await untilRun(ask, body.runId, "completed", "failed")).report.slug);
  }
}, 300_000);

afterAll(async () => {
  await service.stop();
  site.stop();
});

type Result = { isError?: boolean; structuredContent?: unknown; content: unknown };

/** Arguments for each tool, and what identifies its result. */
const questions = (): [name: string, args: Record<string, unknown>, expected: object][] => {
  const { promptId, slugs } = world;
  return [
    ["list_reports", { since: "2026-01-01", limit: 1 }, { reports: [{ prompt: { id: promptId } }] }],
    ["get_report", { slug: slugs[0] }, { slug: slugs[0], outcome: "not_judged" }],
    ["get_session_trace", { slug: slugs[0], types: ["end"] }, { events: [{ type: "end" }], total: 1, nextSeq: null }],
    [
      "get_friction_points",
      { promptId, limit: 100 },
      { frictionPoints: expect.arrayContaining([expect.objectContaining({ category: "dead_link", state: "open" })]) },
    ],
    ["compare_reports", { slugs }, { comparability: { same: true, differences: [] }, verdict: "no_change" }],
    ["get_trends", { interval: "month" }, { agent: "explorer", points: [{ infraFailures: 0 }] }],
    ["list_prompts", {}, { prompts: [{ id: promptId }], total: 1, nextOffset: null }],
    [
      "request_eval",
      { promptId, waitSeconds: 50, runs: 2 },
      { status: "completed", runs: [{ status: "completed" }, { status: "completed" }] },
    ],
    ["list_eval_requests", { limit: 1 }, { evalRequests: [{ status: "completed", trigger: "mcp" }] }],
  ];
};

/** Calls each tool and everything besides tools through the API of each SDK. */
async function askAll(tool: (name: string, args: Record<string, unknown>) => Promise<Result>) {
  for (const [name, args, expected] of questions()) {
    const { isError, structuredContent } = await tool(name, args);
    expect([name, isError ?? false]).toEqual([name, false]);
    expect(structuredContent).toMatchObject(expected);
  }
  const missing = await tool("get_report", { slug: "none" });
  expect(missing.isError).toBe(true);
  expect(JSON.stringify(missing.content)).toContain("list_reports");
}

const url = () => new URL("/api/mcp", service.url);
const requestInit = () => ({ headers: { authorization: `Bearer ${key}` } });

// Both clients validate every structuredContent against the tool's outputSchema.
test("the client of @modelcontextprotocol/sdk speaks 2025-11-25 to every tool, resource and prompt", async () => {
  const agent = new FirstClient({ name: "test", version: "1" });
  await agent.connect(new FirstTransport(url(), { requestInit: requestInit() }));
  expect((await agent.listTools()).tools.length).toBe(9);
  const progress: number[] = [];
  await askAll(async (name, args) => {
    const onprogress = ({ progress: done }: { progress: number }) => progress.push(done);
    return (await agent.callTool({ name, arguments: args }, undefined, { onprogress })) as Result;
  });
  expect([progress[0], progress.at(-1)]).toEqual([0, 2]);
  const [resource] = (await agent.listResources()).resources;
  expect((await agent.readResource({ uri: resource?.uri ?? "" })).contents[0]).toMatchObject({
    mimeType: "text/markdown",
  });
  expect((await agent.listResourceTemplates()).resourceTemplates.length).toBe(1);
  const prompt = await agent.getPrompt({ name: "investigate_report", arguments: { slug: world.slugs[0] ?? "" } });
  expect(prompt.messages.map(({ content }) => content.type)).toEqual(["text", "resource"]);
  const ref = { type: "ref/prompt", name: "fix_top_friction" } as const;
  const { completion } = await agent.complete({ ref, argument: { name: "promptId", value: "upload" } });
  expect(completion.values).toEqual([world.promptId]);
  await agent.close();
});

test("the client of @modelcontextprotocol/client negotiates 2026-07-28 and speaks it to every tool, resource and prompt", async () => {
  const agent = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await agent.connect(new StreamableHTTPClientTransport(url(), { requestInit: requestInit() }));
  expect(agent.getNegotiatedProtocolVersion()).toBe("2026-07-28");
  expect((await agent.listTools()).tools.length).toBe(9);
  const progress: number[] = [];
  await askAll(async (name, args) => {
    const onprogress = ({ progress: done }: { progress: number }) => progress.push(done);
    return (await agent.callTool({ name, arguments: args }, { onprogress })) as Result;
  });
  expect([progress[0], progress.at(-1)]).toEqual([0, 2]);
  const [resource] = (await agent.listResources()).resources;
  expect((await agent.readResource({ uri: resource?.uri ?? "" })).contents[0]).toMatchObject({
    mimeType: "text/markdown",
  });
  const prompt = await agent.getPrompt({ name: "fix_top_friction", arguments: { promptId: world.promptId } });
  expect(prompt.messages.map(({ content }) => content.type)).toEqual(["text", "resource"]);
  await expect(agent.readResource({ uri: "evald://reports/none" })).rejects.toThrow("Resource not found");
  await agent.close();
});

/** The inspector runs on Node, as usual. */
async function inspect(...args: string[]) {
  const inspector = join(import.meta.dir, "..", "..", "node_modules", ".bin", "mcp-inspector");
  const child = Bun.spawn(
    [
      "node",
      inspector,
      "--cli",
      url().href,
      "--transport",
      "http",
      "--header",
      `Authorization: Bearer ${key}`,
      ...args,
    ],
    { stdout: "pipe", stderr: "pipe" },
  );
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stderr, json: JSON.parse(stdout) };
}

test("mcp-inspector lists the tools without complaints about their schemas, and calls each", async () => {
  const listed = await inspect("--method", "tools/list", "--strict");
  expect([listed.code, listed.json?.tools.length], listed.stderr).toEqual([0, 9]);
  await askAll(async (name, args) => {
    const pairs = Object.entries(args).map(
      ([argument, value]) => `${argument}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    const { json } = await inspect(
      "--method",
      "tools/call",
      "--tool-name",
      name,
      ...(pairs.length > 0 ? ["--tool-arg", ...pairs] : []),
    );
    return json;
  });
}, 300_000);
