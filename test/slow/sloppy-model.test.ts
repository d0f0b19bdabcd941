import { afterAll, beforeAll, expect, test } from "bun:test";
import { buildExecutable, client, emptyFolder, furnish, serve, untilRun } from "../support/executable.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { call, finish, modelKey, modelRuns } from "../support/model-runs.ts";
import { type Site, serveSite } from "../support/site.ts";

const notes = "https://notes.test/api/notes";
const done = finish("goal_not_met", "That was all.");
const turns = (...all: Turn[]) => ({ turns: [...all, done] });
const long = (chars: number) => "long ".repeat(chars / 5);

let fake: ReturnType<typeof serveFakeModel>;
let docs: Site;
beforeAll(async () => {
  await buildExecutable();
  docs = serveSite({
    "/": { body: `<title>${long(3_000_000)}</title><h1>${long(900_000)}</h1><p>Here.</p>` },
    "/moves": { body: "<title>Moves</title><script>history.pushState(0, '', '/' + 'a'.repeat(1500000))</script>" },
  });
  fake = serveFakeModel({
    key: modelKey,
    scenarios: {
      wrong: turns(
        call("http_request", { url: notes, headers: { "x-note": "a\nb: c" } }),
        call("http_request", { url: notes, headers: { "no name": "a" } }),
        call("http_request", { url: notes, headers: { "x-note": "日本" } }),
        call("http_request", { url: `${notes}?${long(9000)}` }),
        call("run_command", { command: "echo a\0b" }),
        call("run_command", { command: `echo ${long(150_000)}` }),
        call("read_file", { path: "a\0b" }),
        call("write_file", { path: "a".repeat(256), text: "a" }),
        call("list_files", { path: "a".repeat(200_000) }),
        call("run_command", { command: "mkfifo pipe" }),
        call("read_file", { path: "pipe" }),
      ),
      vast: turns(
        call("write_file", { path: "vast.txt", text: long(1_200_000) }),
        call("fetch_page", { url: docs.url, from: long(1_200_000) as never }),
        call(long(1_200_000), {}),
        call("fetch_page", { url: docs.url }),
        call("search_docs", { query: "here" }),
        call("run_command", {
          command: `d=$(printf 'd%.0s' $(seq 200)); p=$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d; mkdir -p $p; cd $p; touch $(seq 600)`,
        }),
        call("list_files", {}),
        call("browse", { action: "open", url: `${docs.url}/moves` }),
      ),
      unpaid: {
        first: [call("run_command", { command: "true" })],
        turns: [{ fail: { status: 402, message: "no credits" } }],
      },
      lists: {
        turns: [
          call("report_friction", { title: "No example", severity: "low", quote: null, url: [] } as never),
          call("finish", { outcome: "goal_not_met", summary: "That was all.", evidence: [] } as never),
        ],
      },
      unknown: { turns: [{ fail: { status: 404, message: "no such model" } }] },
      uncounted: { turns: [{ ...call("run_command", { command: "true" }), usage: null }] },
    },
  });
}, 300_000);
afterAll(() => {
  fake.stop();
  docs.stop();
});

test("input that no program or request accepts is reported to the model, and the run continues", async () => {
  const { run, events, attempts } = await modelRuns(fake).runOf("wrong");
  expect([run.status, attempts.length]).toEqual(["completed", 1]);
  const results = events.filter(({ type }: { type: string }) => type === "tool_result");
  expect(results.map(({ ok, output }: { ok: boolean; output: { message?: string } }) => ok || output.message)).toEqual([
    'Invalid character in header content ["x-note"]',
    'Header name must be a valid HTTP token ["no name"]',
    'Invalid character in header content ["x-note"]',
    "the URL is longer than 8000 characters",
    "the command must not contain NUL characters",
    "the command has 150005 bytes, more than the limit of 120000; put it in a file with write_file and run that",
    "a\0b is not a path in /workspace",
    expect.stringContaining("cannot create"),
    `${"a".repeat(200)} is not a path in /workspace`,
    true,
    "no such file",
    true,
  ]);
});

test("null or a list in an optional field of a tool is accepted", async () => {
  const { run, events } = await modelRuns(fake).runOf("lists");
  expect(run.status).toBe("completed");
  const results = events.filter(({ type }: { type: string }) => type === "tool_result");
  expect(results.map(({ tool, ok }: { tool: string; ok: boolean }) => [tool, ok])).toEqual([
    ["report_friction", true],
    ["finish", true],
  ]);
});

test.each([
  [
    "a provider that requires payment",
    "unpaid",
    /^credentials: openai-compatible requires payment \(402\): no credits; /,
  ],
  ["an unknown model", "unknown", /^infrastructure: openai-compatible returned 404: no such model; check that http:/],
  [
    "a model that doesn't report its usage under a money limit",
    "uncounted",
    /^budget: uncounted does not report token usage, so the spending limit cannot be enforced; /,
  ],
])(
  "%s ends the run immediately, with its cause",
  async (_, name, reason) => {
    const { run, attempts } = await modelRuns(fake).runOf(name, { prompt: { limits: { costUsd: 1 } } });
    expect([run.status, run.report, attempts.length]).toEqual(["failed", null, 1]);
    expect(run.failureReason).toMatch(reason);
  },
  300_000,
);

test("whatever a model, a page or a folder contains, the session is stored and ends", async () => {
  const cwd = emptyFolder();
  const { key } = await furnish(cwd);
  const env = {
    OPENAI_COMPATIBLE_API_KEY: modelKey,
    OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
    EVALD_AGENT_MODEL: "openai-compatible/vast",
    EVALD_ALLOW_PRIVATE: "127.0.0.1",
  };
  const service = await serve({ cwd, env });
  const ask = client(service.url, key);
  const prompt = await ask("POST", "/api/v1/prompts", { text: `Read ${docs.url}` });
  const { runId } = (await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} })).body;
  const run = await untilRun(ask, runId, "completed", "failed");
  expect(run).toMatchObject({ failureReason: null, attempt: 1, report: { metrics: { toolCalls: 9 } } });
  const { body } = await ask("GET", `/api/v1/reports/${run.report.slug}/trace?types=tool_result`);
  const ok = body.events.map((event: { ok: boolean }) => event.ok);
  expect(ok.slice(0, 7)).toEqual([true, false, false, true, true, true, true]);
  // The model doesn't have to read it either, apart from its own messages.
  const read = fake.requests.filter(({ model }) => model === "vast").map(({ body: sent }) => JSON.stringify(sent));
  expect(read.at(-1)?.replaceAll(/(long ){1000,}/g, "").length).toBeLessThan(100_000);
  expect(await service.stop()).toBe(0);
}, 300_000);
