import { expect, test } from "bun:test";
import { exampleReport } from "../../src/web/example.ts";
import { resultOf, runExample } from "../support/example-report.ts";

test("the report of the example docs has the planted mistakes and nothing else, and visitors see the same", async () => {
  const { app, base, slug, person, report, stop } = await runExample();
  const { body } = await person.get(`/reports/${slug}`);
  const [, planted, found] = /class="pill planted">(\d+) planted mistakes, (\d+) found</.exec(body) ?? [];
  expect([planted, found]).toEqual(["4", "4"]);
  expect(report.frictionPoints.map(({ category, lostPoints }) => [category, (lostPoints ?? 0) >= 1]).sort()).toEqual([
    ["broken_sample", true],
    ["dead_link", true],
    ["dead_link", true],
    ["dead_link", true],
  ]);
  const trace = (await app.send("GET", `/api/v1/reports/${slug}/trace?types=milestone&limit=500`)).body;
  const pagesRead = trace.events.flatMap(({ name, detail }: { name: string; detail: { url: string } }) =>
    name === "page_read" ? [new URL(detail.url).pathname] : [],
  );
  expect(pagesRead.sort()).toEqual(
    ["", "/errors", "/quickstart", "/share", "/upload"].map((path) => `/example${path}`),
  );
  // If this fails, `bun run docs` writes the report again.
  const { report: stored } = exampleReport({ baseUrl: base });
  expect(resultOf(report)).toEqual(resultOf(stored));
  const visitor = (await app.app.handle(new Request(`${base}/`, { headers: { accept: "text/html" } }))).text();
  for (const { title } of report.recommendations) expect(await visitor).toContain(title);
  stop();
}, 60_000);
