import { describe, expect, test } from "bun:test";
import type { Agent } from "../src/agents/agent.ts";
import { applyOptions, supportedOptions } from "../src/agents/coding/agent-options.ts";
import { toPreset } from "../src/agents/coding/preset.ts";
import { presets } from "../src/agents/coding/presets.ts";
import { parseClaudeLine } from "../src/agents/coding/streams/claude.ts";
import { createStreamState } from "../src/agents/coding/streams/stream.ts";
import { createGateway } from "../src/agents/gateway/gateway.ts";
import { runs } from "../src/db/tables/runs.ts";
import { requestEval } from "../src/runs/requests.ts";
import { testApp } from "./support/app.ts";
import { serveFakeModel } from "./support/fake-model.ts";
import { fieldsOf } from "./support/form-fields.ts";
import { signedIn } from "./support/people.ts";

const entry = {
  ...{ id: "acme", command: "acme", stream: "none", provider: "openai", args: ["run", "{prompt}"] },
  options: {
    effort: { low: { args: ["--effort", "low"] }, high: { args: ["--effort", "high"] } },
    permissions: { allow: { args: ["--yes"] }, ask: {} },
    systemPrompt: { files: { "SYSTEM.md": "{systemPrompt}" } },
    webSearch: { off: { env: { SEARCH: "0" } }, on: { env: { SEARCH: "1" } } },
  },
} as const;
const acme = toPreset(structuredClone(entry) as never);

const agent = (id: string, options: ReturnType<typeof supportedOptions>): Agent => ({
  describe: () => ({ id, version: "1.0", model: null, kind: "rules", options }),
  preflight: () => [],
  async *run() {
    yield { type: "end", outcome: "not_judged", reason: "Done." };
  },
});
const app = testApp({ agents: { acme: agent("acme", supportedOptions(acme)), plain: agent("plain", {}) } });
const { send, service, a } = app;
const create = (agents: object[]) =>
  send("POST", "/api/v1/prompts", { body: { text: "Upload a file. https://docs.example.com", agents } });

describe("the options of an agent", () => {
  test("add arguments, variables and files, with the defaults of what a prompt leaves out", () => {
    expect(applyOptions(acme)).toMatchObject({ args: ["run", "{prompt}", "--yes"], env: { SEARCH: "0" }, files: {} });
    const options = {
      ...{ args: ["--debug"], env: { A: "1" }, effort: "high", systemPrompt: "Be brief.", permissions: "ask" },
      webSearch: true,
    } as const;
    expect(applyOptions(acme, structuredClone(options) as never)).toMatchObject({
      args: ["run", "{prompt}", "--effort", "high", "--debug"],
      env: { SEARCH: "1", A: "1" },
      files: { "SYSTEM.md": "{systemPrompt}" },
    });
  });

  test("are kept when a form without JavaScript saves the prompt, and set by it", async () => {
    const person = await signedIn(app);
    const options = {
      ...{ effort: "high", permissions: "ask", webSearch: true, systemPrompt: "Be brief.\nAnd kind." },
      ...{ args: ["--debug", "--trace"], env: { A: "1", B: "x=y" } },
    };
    const { body } = await create([{ agent: "acme", options }, { agent: "plain" }]);
    const agentsOf = async (id: string) => (await send("GET", `/api/v1/prompts/${id}`)).body.agents;
    const page = await person.get(`/prompts/${body.id}/edit`);
    const fields = fieldsOf(page.body);
    const saved = await person.post(`/prompts/${body.id}/edit`, fields);
    expect([saved.status, await agentsOf(body.id)]).toEqual([303, body.agents]);
    const form = {
      ...{ text: "Upload a file. https://docs.example.com", runsPerEval: "1", agent: "acme" },
      "options.effort": "low",
      "options.env": "A=1\r\nB=2",
    };
    const created = await person.post("/prompts", form);
    expect(await agentsOf(created.location?.split("/").at(-1) ?? "")).toEqual([
      { agent: "acme", model: null, options: { effort: "low", env: { A: "1", B: "2" } } },
    ]);
    const refused = await person.post("/prompts", { ...form, agent: "plain" });
    expect([refused.status, refused.body]).toEqual([400, expect.stringContaining("options.effort")]);
    expect((await person.post("/prompts", { ...form, agent: "" })).body).toContain('id="agent-wrong"');
  });

  test("are listed, stored with a prompt, and reach its runs", async () => {
    const { body: list } = await send("GET", "/api/v1/agents");
    const listed = list.agents ?? list;
    expect(listed.find(({ id }: { id: string }) => id === "acme").options).toEqual({
      ...{ args: null, env: null, effort: ["low", "high"], permissions: ["allow", "ask"], systemPrompt: null },
      webSearch: ["off", "on"],
    });
    const options = { effort: "high", permissions: "ask", env: { A: "1" } };
    const { status, body } = await create([{ agent: "acme", options }]);
    expect([status, body.agent, body.agents]).toEqual([201, "acme", [{ agent: "acme", model: null, options }]]);
    const { runIds } = await requestEval(service.ctx, a.org, body.id, { urlMap: {}, trigger: "api" });
    const [run] = service.ctx.db.select().from(runs).all();
    expect([run?.id, run?.task.agentOptions]).toEqual([runIds[0], options] as never);
    // Another agent was chosen without them, and a list of one without options is a single agent.
    expect((await send("PATCH", `/api/v1/prompts/${body.id}`, { body: { agent: "plain" } })).body.agents).toBeNull();
  });

  test.each([
    ["plain", { effort: "high" }, "agents.0.options.effort", /plain does not support it; leave it out/],
    ["plain", { args: ["-v"] }, "agents.0.options.args", /does not support it/],
    ["acme", { effort: "medium" }, "agents.0.options.effort", /with this value; use low or high/],
    ["acme", { effort: "extreme" }, "agents.0.options.effort", /must be one of low, medium, high/],
    ["acme", { speed: "fast" }, "agents.0.options.speed", /is not a known field/],
    ["acme", { env: { NODE_OPTIONS: "x" } }, "agents.0.options.env", /is set by evald/],
  ] as const)("of %s that it doesn't have are refused: %j", async (id, options, field, detail) => {
    const { status, body } = await create([{ agent: id, options }]);
    expect([status, body.error]).toEqual([400, "bad_request"]);
    expect(body.detail).toContain(field);
    expect(body.detail).toMatch(detail);
  });

  test.each(presets.map((preset) => [preset.id, preset] as const))("of %s can all be applied", (_, preset) => {
    const { effort = [], permissions = [], webSearch = [] } = supportedOptions(preset);
    for (const each of effort ?? []) applyOptions(preset, { effort: each as "low" });
    for (const each of permissions ?? []) applyOptions(preset, { permissions: each as "ask" });
    for (const each of webSearch ?? []) applyOptions(preset, { webSearch: each === "on" });
    // Over ACP, an agent asks unless evald tells it not to.
    if (permissions?.includes("ask") && preset.stream !== "acp")
      expect(applyOptions(preset, { permissions: "ask" })).not.toEqual(applyOptions(preset));
  });
});

test("a call that Claude Code would have asked for counts as an interruption", () => {
  const denials = [{ tool_name: "Bash", tool_use_id: "c1", tool_input: { command: "exit 3" } }];
  const end = { type: "result", subtype: "success", is_error: false, result: "Done." };
  const events = parseClaudeLine({ ...end, permission_denials: denials }, createStreamState());
  expect(events).toMatchObject([{ type: "interruption", question: expect.stringContaining("exit 3") }]);
  expect(parseClaudeLine({ ...end, permission_denials: [] }, createStreamState())).toEqual([]);
});

test.each([
  ["openai", "/responses", { input: "Hi", tools: [{ type: "web_search" }] }],
  ["anthropic", "/messages", { messages: [], tools: [{ type: "web_search_20250305", name: "web_search" }] }],
] as const)("web search of %s reaches the provider only if the prompt turned it on", async (provider, path, body) => {
  const key = "sk-test";
  const fake = serveFakeModel({ key, scenarios: { fine: { turns: [{ text: "Hi." }] } } });
  const gateway = createGateway({ now: Date.now });
  const statusOf = async (allowsWebSearch: boolean, tools: readonly object[] = body.tools) => {
    const session = gateway.openSession({
      model: { id: `${provider}/fine`, provider, name: "fine", key, baseUrl: fake.baseUrls[provider], prices: {} },
      limits: { calls: 9, tokens: 1e6, costUsd: null },
      onEvent: () => {},
      onFailure: () => {},
      allowsWebSearch,
    } as never);
    const request = new Request(`http://gateway/${provider}/v1${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${session.token}`, "x-api-key": session.token },
      body: JSON.stringify({ model: "fine", ...body, tools }),
    });
    const { status } = await gateway.answer(request);
    await session.close();
    return status;
  };
  expect([await statusOf(true), await statusOf(false)]).toEqual([200, 403]);
  expect(await statusOf(true, [{ type: "code_interpreter" }])).toBe(403);
  await gateway.close();
  fake.stop();
});
