import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { importFile } from "../src/exchange/import.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { serveSite } from "./support/site.ts";

const page = (title: string, body: string) => ({
  body: `<!doctype html><html lang="en"><head><title>${title}</title></head><body><h1>${title}</h1>${body}</body></html>`,
});
const prose = "Our service stores what you send to it. ".repeat(12);
const site = serveSite({
  "/": page("Acme", `<p>${prose}</p><a href="/revoke">Revoke an access token</a>`),
  "/revoke": page(
    "Access tokens",
    `<h2>Revoke an access token</h2><p>${prose}</p><pre><code class="language-sh">acme token revoke tok_1</code></pre>`,
  ),
});
const folder = mkdtempSync(join(tmpdir(), "wordings-"));
afterAll(() => {
  site.stop();
  rmSync(folder, { recursive: true });
});

const goal = "Revoke an access {{thing}}";
const wordings = ["Delete an access {{thing}}", "Lock out a stolen credential"];

test("a report compares what each wording of the goal finds, and exports keep the wordings", async () => {
  const env = { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` };
  const app = testApp({ agent: createExplorer({ version: "test" }), env });
  const { body: prompt } = await app.send("POST", "/api/v1/prompts", {
    body: { text: `Work with tokens. ${site.url}/`, endGoal: goal, wordings },
  });
  expect(prompt.wordings).toEqual(wordings);
  const run = { urlMap: {}, templateArgs: { thing: "token" } };
  await app.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: run });
  await app.runJobs();
  const { body: listed } = await app.send("GET", "/api/v1/reports");
  const { slug } = listed[0];
  const { body: report } = await app.send("GET", `/api/v1/reports/${slug}`);
  const texts = ["Revoke an access token", "Delete an access token", "Lock out a stolen credential"];
  const { results, spread } = report.wordings;
  expect(results.map(({ text, state }: { text: string; state: string }) => [text, state])).toEqual([
    [texts[0], "likely"],
    [texts[1], expect.stringMatching(/^(likely|unclear)$/)],
    [texts[2], "unclear"],
  ]);
  const fits = results.map(({ fit }: { fit: number }) => fit);
  expect(fits[0]).toBeGreaterThan(fits[2]);
  expect(spread).toBeCloseTo(Math.max(...fits) - Math.min(...fits), 2);
  expect(results[0].url).toBe(`${site.url}/revoke`);

  const { body: file } = await app.send("GET", "/api/v1/export");
  const path = join(folder, "export.jsonl");
  writeFileSync(path, file);
  const other = testApp();
  await importFile(other.service.ctx, other.a.org, path, {});
  expect((await other.send("GET", `/api/v1/prompts/${prompt.id}`)).body.wordings).toEqual(wordings);
  expect((await other.send("GET", `/api/v1/reports/${slug}`)).body.wordings).toEqual(report.wordings);
});

test("a report without other wordings has nothing to compare", async () => {
  const env = { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` };
  const app = testApp({ agent: createExplorer({ version: "test" }), env });
  const { id } = createPrompt(app.service.ctx, app.a.org, { text: `Revoke an access token. ${site.url}/` });
  await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  const { slug } = (await app.send("GET", "/api/v1/reports")).body[0];
  expect((await app.send("GET", `/api/v1/reports/${slug}`)).body.wordings).toBeNull();
});
