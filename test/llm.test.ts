import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createModelAgent } from "../src/agents/llm/llm.ts";
import { testApp } from "./support/app.ts";
import { emptyFolder } from "./support/executable.ts";
import { serveFakeModel, type Turn } from "./support/fakemodel.ts";
import { type Site, serveSite } from "./support/site.ts";

const key = "sk-the-real-key-0123456789";
globalThis.AI_SDK_LOG_WARNINGS = false;

/** A product with an API that stores notes, and documentation that says how: `path` is where it says that the API is. */
function serveProduct(path: string) {
  const notes: string[] = [];
  const site: Site = serveSite({
    "/": {
      body: "<title>Notes</title><h1>Notes</h1><p>Keep notes over HTTP.</p><a href='/guide.md'>Guide: add a note</a>",
    },
    "/guide.md": {
      body: `# Add a note\n\nSend the text of the note with a POST request to \`${path}\`.\n\n\`\`\`sh\ncurl -d 'Hello' https://notes.test${path}\n\`\`\`\n`,
    },
    "/api/notes": async (request) => {
      if (request.method !== "POST") return Response.json(notes);
      notes.push(await request.text());
      return Response.json({ id: notes.length }, { status: 201 });
    },
  });
  return { site, notes };
}

const call = (name: string, input: Record<string, unknown>): Turn => ({ toolCalls: [{ name, input }] });
const finish = (outcome: string, summary: string) => call("finish", { outcome, summary });

/** What a model that follows the docs does. */
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
  fake = serveFakeModel({ key, scenarios: { met: { turns: met }, missed: { turns: missed } } });
});
afterAll(() => fake.stop());

type Options = { model?: string; env?: Record<string, string>; path?: string; dataDir?: string };

/** One run of a prompt with the model agent, over REST; answers with the run, its report and its events. */
async function runOf(
  name: string,
  { env = {}, path = "/api/notes", dataDir, model = `openai-compatible/${name}` }: Options = {},
) {
  const product = serveProduct(path);
  const app = testApp({
    agents: { llm: createModelAgent({ version: "test" }) },
    env: {
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: key,
      EVALD_AGENT_MODEL: model,
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
      EVALD_MODEL_PRICES: `{"${model}": {"in": 10, "out": 100, "cached": 1}}`,
      ...env,
    },
    dataDir,
  });
  const { send, runJobs } = app;
  const body = { text: "Add a note by the docs at https://notes.test/", endGoal: "A note was added." };
  const prompt = await send("POST", "/api/v1/prompts", { body });
  const asked = await send("POST", `/api/v1/prompts/${prompt.body.id}/run`, {
    body: { urlMap: { "notes.test": product.site.url } },
  });
  await runJobs();
  const run = (await send("GET", `/api/v1/runs/${asked.body.runId}`)).body;
  const slug = run.report?.slug;
  const report = slug && (await send("GET", `/api/v1/reports/${slug}`)).body;
  const events = slug ? (await send("GET", `/api/v1/reports/${slug}/trace?limit=500`)).body.events : [];
  const attempts = (await send("GET", `/api/v1/runs/${asked.body.runId}/attempts`)).body;
  product.site.stop();
  return { ...app, run, report, events, attempts, notes: product.notes };
}

test("a model reads the docs, writes code, runs it in the sandbox, calls the API and finishes", async () => {
  const dataDir = emptyFolder();
  const { run, report, events, notes } = await runOf("met", { dataDir });
  console.log(JSON.stringify(run, null, 1).slice(0, 3000));
  for (const e of events) console.log(JSON.stringify(e).slice(0, 400));
  expect(run).toMatchObject({ status: "completed", agent: { id: "llm", model: "met" }, failureReason: null });
  expect(notes).toEqual(["From the sandbox"]);
  expect(existsSync(join(dataDir, "workspaces")) ? readdirSync(join(dataDir, "workspaces")) : []).toEqual([]);
  expect(report).toBeDefined();
}, 60_000);
