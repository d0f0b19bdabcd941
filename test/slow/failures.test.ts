import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import { toPreset } from "../../src/agents/coding/preset.ts";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { type FailureCode, failureRules } from "../../src/agents/failure.ts";
import type { FailureRule } from "../../src/agents/failure-rule.ts";
import { createModelAgent } from "../../src/agents/llm/llm.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import type { AgentEntry } from "../../src/config/agent-entry.ts";
import { archives } from "../../src/db/tables/prompts.ts";
import { removeModelKey, setModelKey } from "../../src/models/models.ts";
import { testApp } from "../support/app.ts";
import { buildExecutable, call, emptyFolder } from "../support/executable.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { call as use } from "../support/model-runs.ts";
import { serveTls } from "../support/network.ts";
import { signedIn } from "../support/people.ts";
import { serveSite } from "../support/site.ts";

// Each failure is forced with a real site, model, agent or limit, and read by REST, on the page and in the terminal.
const modelKey = "sk-the-real-key-0123456789";
const fail = (status: number, message: string): { turns: Turn[] } => ({ turns: [{ fail: { status, message } }] });
const fake = serveFakeModel({
  key: modelKey,
  scenarios: {
    refused: fail(401, "invalid key"),
    unpaid: fail(402, "no credit"),
    unknown: fail(404, "no such model"),
    rejected: fail(400, "tools are not supported"),
    broken: fail(500, "something broke"),
    limited: fail(429, "slow down"),
    small: fail(400, "This model's maximum context length is 10 tokens."),
    page: { turns: [{ garbage: "<h1>It works!</h1>" }] },
    silent: { turns: [{ silent: true }] },
    works: { turns: [use("finish", { outcome: "goal_not_met", summary: "No." })] },
    priced: {
      turns: [{ ...use("finish", { outcome: "goal_not_met", summary: "No." }), usage: { input: 100, output: 10 } }],
    },
  },
});
const never = () => new Promise<Response>(() => {});
const secret = serveSite({ "/": { body: "<h1>Private</h1>" } });
const site = serveSite({
  "/": { body: "<title>Notes</title><h1>Notes</h1><p>Add a note.</p>" },
  "/busy": { status: 503, headers: { "retry-after": "0" }, body: "Later" },
  "/slow": never,
  "/moved": { status: 302, headers: { location: secret.url } },
});
// Nobody trusts its certificate.
const untrusted = await serveTls("127.0.0.1", Number(new URL(site.url).port));
const closed = serveSite({});
closed.stop();
const garbage = createServer((socket) => {
  socket.on("error", () => {});
  socket.end("This is not HTTP.\r\n\r\n");
});
await new Promise<void>((resolve) => garbage.listen(0, "127.0.0.1", resolve));
const garbageAddress = garbage.address();
const garbageHost = `127.0.0.1:${typeof garbageAddress === "object" ? garbageAddress?.port : ""}`;
const hostOf = (url: string) => new URL(url).host;

/** Where the program of an agent is until it is removed. */
const bin = emptyFolder();
const program = join(bin, "fake-agent.mjs");
copyFileSync(join(import.meta.dir, "..", "support", "fake-agent.mjs"), program);
const kept = join(import.meta.dir, "..", "support");
/** A coding agent that `more` changes. */
const codingAgent = (id: string, more: Partial<AgentEntry> = {}) =>
  createCodingAgent(
    toPreset({
      ...{ id, command: "fake-agent.mjs", stream: "claude", provider: "openai-compatible", args: [] },
      ...more,
    }),
    { path: `${bin}:${process.env.PATH}` },
  );
const effort = { high: { args: ["--effort=high"] } };
/** An agent that loses an option, as after an upgrade of the service. */
let changing = codingAgent("changed", { command: join(kept, "fake-agent.mjs"), options: { effort } });

const app = testApp({
  agent: createExplorer({ version: "test" }),
  agents: {
    llm: createModelAgent({ version: "test" }),
    installed: codingAgent("installed", { package: "fake-agent" }),
    unlisted: codingAgent("unlisted"),
    mute: codingAgent("mute", { command: join(kept, "fake-agent.mjs"), args: ["empty"] }),
    changed: { ...changing, run: (task, context) => changing.run(task, context) },
  },
  env: {
    OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
    OPENAI_COMPATIBLE_API_KEY: modelKey,
    ANTHROPIC_API_KEY: modelKey,
    ANTHROPIC_BASE_URL: closed.url,
    EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    EVALD_ALLOW_PRIVATE: [site.url, untrusted.url, closed.url, fake.baseUrls["openai-compatible"]]
      .map(hostOf)
      .concat(garbageHost)
      .join(),
    EVALD_MODEL_PRICES: '{"openai-compatible/priced": {"in": 10, "out": 100}}',
    EVALD_IDLE_TIMEOUT_SECONDS: "20",
    EVALD_RUN_TIMEOUT_SECONDS: "12",
    EVALD_CONCURRENCY: "16",
  },
});
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.app.handle(request) });
beforeAll(buildExecutable, 300_000);
afterAll(async () => {
  server.stop(true);
  await app.service.stop(0);
  for (const each of [fake, site, untrusted, secret]) each.stop();
  garbage.close();
});

const at = (path: string) => ({ text: `Add a note. ${path.startsWith("/") ? site.url : ""}${path}` });
const llm = (model: string, more: object = {}) => ({
  ...at("/"),
  agent: "llm",
  model: `openai-compatible/${model}`,
  ...more,
});

const coding = (agent: string, more: object = {}) => ({ ...at("/"), agent, model: "openai-compatible/works", ...more });

/** The prompt that fails with each code, and the subject of the failure. */
const cases: [FailureCode, object, subject?: string][] = [
  ["address_not_allowed", at("/moved"), hostOf(secret.url)],
  ["url_not_allowed", at("https://user:secret@example.com/"), "example.com:443"],
  ["name_not_resolved", at("https://no-such-host.invalid/"), "no-such-host.invalid"],
  ["certificate_invalid", at(`${untrusted.url}/`), hostOf(untrusted.url)],
  ["site_unreachable", at(`${closed.url}/`), hostOf(closed.url)],
  ["site_unavailable", at("/busy"), hostOf(site.url)],
  ["site_response_invalid", at(`http://${garbageHost}/`), garbageHost],
  ["no_start_url", { text: "Add a note." }],
  ["model_key_refused", llm("refused"), "openai-compatible/refused"],
  ["model_payment_required", llm("unpaid"), "openai-compatible/unpaid"],
  ["model_not_found", llm("unknown"), "openai-compatible/unknown"],
  ["model_request_rejected", llm("rejected"), "openai-compatible/rejected"],
  ["model_server_error", llm("broken"), "openai-compatible/broken"],
  ["model_rate_limited", llm("limited"), "openai-compatible/limited"],
  ["model_answer_incomplete", llm("page"), "openai-compatible/page"],
  ["conversation_too_long", llm("small"), "openai-compatible/small"],
  ["model_unreachable", { ...at("/"), agent: "llm", model: "anthropic/claude-opus-4-8" }, "anthropic/claude-opus-4-8"],
  ["model_price_unknown", llm("works", { limits: { costUsd: 1 } }), "openai-compatible/works"],
  ["prompt_time_limit", { ...at("/slow"), limits: { wallClockSeconds: 2 } }, "2"],
  ["prompt_idle_limit", { ...at("/slow"), limits: { idleSeconds: 1 } }, "1"],
  ["server_time_limit", llm("silent"), "12"],
  ["workspace_setup_failed", llm("works", { workspace: { setup: "exit 3" } })],
  ["agent_failed", coding("mute"), "mute"],
];
const runIds = new Map<FailureCode, string>();

/** Creates a prompt and requests a run of it, before `change` and the run. Returns the ID of the run. */
async function request(code: FailureCode, body: object): Promise<string> {
  const prompt = await app.send("POST", "/api/v1/prompts", { body: { title: code, ...body } });
  expect([code, prompt.status, prompt.body.detail]).toEqual([code, 201, undefined]);
  const run = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  runIds.set(code, run.body.runId);
  return run.body.runId;
}

let page: Awaited<ReturnType<typeof signedIn>>;
let terminal = "";
beforeAll(async () => {
  for (const [code, body] of cases) await request(code, body);
  // What changes after a run was accepted.
  await request("agent_not_installed", coding("installed"));
  await request("agent_not_available", coding("unlisted"));
  rmSync(program);
  await request("agent_unsuitable", {
    ...at("/"),
    agents: [{ agent: "changed", model: "openai-compatible/works", options: { effort: "high" } }],
  });
  changing = codingAgent("changed", { command: join(kept, "fake-agent.mjs") });
  setModelKey(app.service.ctx, app.a.org, "google", "sk-of-the-organization-0123456789");
  await request("model_key_missing", { ...at("/"), agent: "llm", model: "google/gemini-3-pro" });
  removeModelKey(app.service.ctx, app.a.org, "google");
  const { body: archive } = await app.send("POST", "/api/v1/archives", {
    body: await new Bun.Archive({ "README.md": "# Hi" }, { compress: "gzip" }).bytes(),
    headers: { "content-type": "application/gzip" },
  });
  await request("workspace_failed", llm("works", { workspace: { archive: archive.id } }));
  app.db.delete(archives).run();
  // It spends more than the budget of the month will be.
  await request("month_budget_spent", llm("priced"));
  const cancelled = await request("cancelled", at("/"));
  await app.send("POST", `/api/v1/runs/${cancelled}/cancel`);
  await app.runJobs();
  await request("month_budget_spent", llm("priced"));
  updateOrg(app.service.ctx, app.a.org, { maxUsdAMonth: 0.001 });
  await app.runJobs();
  updateOrg(app.service.ctx, app.a.org, { maxUsdAMonth: null });
  page = await signedIn(app);
  const env = { EVALD_KEY: app.a.key };
  const listed = await call(["runs", "--limit", "100", "--url", server.url.href], { cwd: emptyFolder(), env });
  terminal = listed.stdout;
}, 300_000);

test.each<[FailureCode, (string | null)?]>([
  ...cases.map(([code, _, subject = null]): [FailureCode, string | null] => [code, subject]),
  ["agent_not_installed", "npm install -g fake-agent"],
  ["agent_not_available", "unlisted"],
  ["agent_unsuitable", "changed"],
  ["model_key_missing", "google/gemini-3-pro"],
  ["workspace_failed", null],
  ["cancelled", null],
  ["month_budget_spent", null],
])("%s: REST, page and terminal say what to do, and what helps comes first", async (code, subject = null) => {
  const runId = runIds.get(code) ?? "";
  const rule: FailureRule = failureRules[code];
  const { body: run } = await app.send("GET", `/api/v1/runs/${runId}`);
  const { cause, title, remedy, runAgain = false } = rule;
  expect([run.status, run.report]).toEqual(["failed", null]);
  expect(run.failure).toMatchObject({ code, cause, title, remedy, runAgainHelps: runAgain, subject });
  expect(run.failureReason).toStartWith(`${cause}: `);
  expect(run.failureReason).not.toContain("secret");
  expect(run.failure.action === null).toBe(rule.button === undefined);

  const { body: html } = await page.get(`/runs/${runId}`);
  const notice =
    /<div class="notice bad failure"[^>]*data-code="(\w+)"[^>]*data-cause="(\w+)".*?<\/div>\s*<\/div>/s.exec(html);
  expect([notice?.[1], notice?.[2]]).toEqual([code, cause]);
  // The first button is the main one: to run again only where that can help.
  const buttons = [...(notice?.[0] ?? "").matchAll(/<(?:a|button)[^>]*class="([^"]*)"[^>]*>([^<]+)</g)].map(
    ([, classes = "", label]) => ({ label, isMain: classes.split(" ").includes("main") }),
  );
  const [first, ...others] = buttons.filter(({ label }) => label !== "Copy");
  expect(first).toEqual({ label: runAgain ? "Run again" : run.failure.action.label, isMain: true });
  expect(others.filter(({ isMain }) => isMain)).toEqual([]);

  const row = terminal.split("\n").find((line) => line.startsWith(runId));
  expect(row).toContain(title);
});

/** The tests that force the other codes, and the one that ends no run. */
const elsewhere: { [Code in FailureCode]?: string | null } = {
  agent_login_needed: "slow/broken-agents",
  agent_asked_question: "slow/broken-agents",
  agent_not_started: "slow/child",
  agent_replaced: "slow/coding-agents",
  agent_crashed: "slow/broken-agents",
  sandbox_unavailable: "slow/machine-failures",
  server_idle_limit: "slow/endings",
  prompt_cost_limit: "slow/spending",
  organization_cost_limit: "slow/spending",
  server_cost_limit: "slow/spending",
  prompt_limit: "slow/machine-failures",
  server_limit: "slow/machine-failures",
  process_limit: "slow/broken-agents",
  session_too_large: "slow/child",
  no_worker: "slow/workers",
  worker_lost: "slow/workers",
  disk_full: "slow/session",
  session_not_stored: "jobs",
  grading_failed: "jobs",
  service_crashed: "jobs",
  internal_error: "jobs",
  superseded: "slow/endings",
  // After the last retry, the run completes with a report that says that nothing was judged.
  judge_unreachable: null,
};

const textOf = (file: string) => readFileSync(join(import.meta.dir, "..", `${file}.test.ts`), "utf8");

test("every code is forced here or in the test of what causes it", () => {
  const codes = Object.keys(failureRules) as FailureCode[];
  const missing = codes.filter((code) => {
    if (runIds.has(code)) return false;
    const file = elsewhere[code];
    return file === undefined || (file !== null && !textOf(file).includes(`"${code}"`));
  });
  expect(missing).toEqual([]);
});

test("the terminal says why a run failed and what to do", async () => {
  const env = { EVALD_KEY: app.a.key };
  await app.service.runner.start();
  const { code, stderr } = await call(["run", "no_start_url", "--wait", "--url", server.url.href], { cwd: bin, env });
  const { title, remedy } = failureRules.no_start_url;
  expect([code, stderr.includes(`${title}. `), stderr.includes(remedy)]).toEqual([3, true, true]);
}, 60_000);
