import { expect, test } from "bun:test";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { createProvider } from "../../src/providers/providers.ts";
import { testApp } from "../support/app.ts";
import { signedIn } from "../support/people.ts";

test("the report of the example docs has the planted mistakes and nothing else, says that it found all, and each costs a point", async () => {
  let handle: (request: Request) => Response | Promise<Response> = () => new Response();
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => handle(request) });
  const base = server.url.origin;
  const env = { EVALD_BASE_URL: base, EVALD_ALLOW_PRIVATE: server.url.host };
  const app = testApp({ agent: createExplorer({ version: "test" }), env });
  handle = (request) => app.app.handle(request);
  const { ctx } = app.service;
  const provider = createProvider(ctx, app.a.org, { name: "Acme Files (example)", docsUrl: `${base}/example` });
  const { id } = createPrompt(ctx, app.a.org, {
    text: "Upload a file to a bucket with the Acme Files API and print its URL.",
    endGoal: "A file was uploaded to a bucket, and its URL was printed.",
    targetProviderId: provider.id,
  });
  await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  const [{ slug }] = (await app.send("GET", "/api/v1/reports")).body;
  const { body } = await (await signedIn(app)).get(`/reports/${slug}`);
  const [, planted, found] = /class="pill planted">(\d+) planted mistakes, (\d+) found</.exec(body) ?? [];
  expect([planted, found]).toEqual(["4", "4"]);
  const report = (await app.send("GET", `/api/v1/reports/${slug}`)).body;
  const mistakes = report.frictionPoints.map(({ category, lostPoints }: { category: string; lostPoints: number }) => [
    category,
    lostPoints >= 1,
  ]);
  expect(mistakes.sort()).toEqual([
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
    ["", "/errors", "/llms.txt", "/quickstart", "/share", "/upload"].map((path) => `/example${path}`),
  );
  server.stop(true);
}, 60_000);
