import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { testApp } from "../support/app.ts";
import { evaluation, niceGrade } from "../support/reports.ts";
import { until } from "../support/until.ts";

const watched = [
  "AbortSignal",
  "AsyncGenerator",
  "Headers",
  "ReadableStream",
  "Request",
  "Response",
  "Timeout",
] as const;

test("runs, pages and streams whose readers stop reading leave nothing in memory", async () => {
  const app = testApp();
  const { body: prompt } = await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } });
  const headers = { authorization: `Bearer ${app.a.key}`, accept: "text/event-stream" };
  const readFirst = async (path: string) => {
    const { body } = await app.app.handle(new Request(new URL(path, app.baseUrl), { headers }));
    const reader = body?.getReader();
    await reader?.read();
    await reader?.cancel();
  };
  async function cycle(): Promise<void> {
    const { body: run } = await app.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
    for (const path of ["/live", "/runs/live", `/api/v1/runs/${run.runId}/events`, "/api/v1/export"])
      await readFirst(path);
    await app.runJobs();
    for (const path of ["/", "/runs", "/trends", "/api/v1/runs?limit=1"]) await app.send("GET", path);
  }
  const count = () => {
    Bun.gc(true);
    const counts = heapStats().objectTypeCounts;
    return watched.map((name) => counts[name] ?? 0);
  };
  const cycles = 40;
  for (let i = 0; i < cycles / 4; i++) await cycle();
  const before = count();
  for (let i = 0; i < cycles; i++) await cycle();
  // Ended streams may not have noticed it yet.
  await until("fewer objects than cycles are left", () => count().every((n, i) => n - (before[i] ?? 0) < cycles / 2));
}, 300_000);

test("earlier evaluations of a prompt don't stay in memory", async () => {
  const app = testApp();
  const { id } = createPrompt(app.service.ctx, app.a.org, { title: null, text: "See https://docs.test/" });
  const ids = new Set<string>();
  for (let i = 0; i < 40; i++) {
    const [run] = evaluation(app, id, [{ ...niceGrade, outcome: "succeeded", scope: "goal", score: 60 + i }]);
    ids.add(run?.evalRequestId ?? "");
    await app.send("GET", "/");
  }
  expect(ids.size).toBe(40);
  Bun.gc(true);
  const { strings } = JSON.parse(Bun.generateHeapSnapshot("v8")) as { strings: string[] };
  const [first = ""] = ids;
  expect(strings.filter((text) => text.length > first.length && text.includes(first)).length).toBeLessThan(5);
}, 60_000);
