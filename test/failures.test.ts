import { expect, test } from "bun:test";
import { failureRules } from "../src/agents/failure.ts";
import { reportScreen } from "../src/cli/report-screen.ts";
import { getReport } from "../src/reports/reports.ts";
import { allDocs } from "../src/web/docs.ts";
import { scriptedAgent, testApp } from "./support/app.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

test("a failed run says over REST and on its pages what to do, and offers that first", async () => {
  const app = testApp();
  const { body: prompt } = await app.send("POST", "/api/v1/prompts", { body: { text: "Do it. https://a.example" } });
  const [run] = evaluation(app, prompt.id, Array(5).fill("prompt_time_limit: it took longer than 2 seconds"));
  const { body } = await app.send("GET", `/api/v1/runs/${run?.runId}`);
  expect(body.failure).toMatchObject({ code: "prompt_time_limit", cause: "timeout", runAgainHelps: false });
  expect(body.failure.action.url).toEndWith(`/prompts/${prompt.id}/edit#limits`);
  for (const path of [`/runs/${run?.runId}`, `/evals/${run?.evalRequestId}`, `/prompts/${prompt.id}`, "/"])
    expect([path, (await app.send("GET", path)).body.includes('data-code="prompt_time_limit"')]).toEqual([path, true]);
  expect((await app.send("GET", `/prompts/${prompt.id}`)).body).toContain('data-failed="5" data-of="5"');
});

test("every page of the docs that a remedy links to exists", () => {
  const slugs = new Set(allDocs().map(({ slug }) => slug));
  const paths = Object.values(failureRules).flatMap((rule) => ("button" in rule ? [rule.button.path] : []));
  const missing = paths.flatMap((path) => /^\/docs\/([a-z]+)/.exec(path)?.[1] ?? []).filter((slug) => !slugs.has(slug));
  expect(missing).toEqual([]);
});

test.each([60, 80, 120])("a report fits %i columns of a terminal, with at most three fixes", async (width) => {
  const app = testApp({ agent: scriptedAgent(async function* () {}) });
  const { body: prompt } = await app.send("POST", "/api/v1/prompts", { body: { text: "Do it. https://a.example" } });
  const [run] = evaluation(app, prompt.id, [niceGrade]);
  const report = getReport(app.service.ctx, app.a.org, run?.slug ?? "");
  const text = reportScreen(report, { width, hasColor: false, fullReportHint: report.url });
  const lines = text.split("\n");
  expect(lines.filter((line) => line.length > width && line.trim().includes(" "))).toEqual([]);
  expect(text).not.toContain("\u001b");
  expect(lines.filter((line) => /^\d\. /.test(line)).length).toBeLessThanOrEqual(3);
  expect(reportScreen(report, { width, hasColor: true, fullReportHint: report.url })).toContain("\u001b[");
});
