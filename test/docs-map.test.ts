import { afterEach, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { DocsMap } from "../src/friction/docs-map.ts";
import type { Visit } from "../src/grading/grade.ts";
import { pageKey } from "../src/net/page-key.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { evaluation, niceGrade } from "./support/reports.ts";
import { type Site, serveSite } from "./support/site.ts";

const sites: Site[] = [];
afterEach(() => {
  for (const site of sites.splice(0)) site.stop();
});

const html = (title: string, body: string) => ({
  body: `<!doctype html><html lang="en"><title>${title}</title><main><h1>${title}</h1><p>${"Words. ".repeat(60)}</p>${body}</main></html>`,
});

test("all forms of the address of a page are one page", () => {
  const forms = ["", "/", "/index", "/index/", "/Index/", "/index.html", "/index.html/", "//index.md", ".md", ".html"];
  const keys = forms.map((form) => pageKey(`https://acme.dev/guides${form}?b=1&a=2#start`));
  expect([...new Set(keys)]).toEqual(["https://acme.dev/guides?a=2&b=1"]);
  expect(pageKey("https://acme.dev/guides/indexes/")).toBe("https://acme.dev/guides/indexes");
});

test("the docs map of real docs shows pages read and how they were found, pages not read, and friction by page", async () => {
  const site: Site = serveSite({
    "/": html(
      "Acme",
      '<a href="/install">Install the client</a> <a href="/pricing">Pricing</a> <a href="/gone">Gone</a>',
    ),
    "/install": html(
      "Install",
      '<h2>Install the client</h2><p>Install it.</p><pre><code class="language-sh">npm install acme</code></pre>',
    ),
    "/pricing": html("Pricing", "It costs nothing."),
    "/internals": html("Internals", "How it works inside."),
    "/sitemap.xml": () =>
      new Response(
        `<urlset><url><loc>${site.url}/pricing</loc></url><url><loc>${site.url}/internals</loc></url></urlset>`,
      ),
    "/llms.txt": () => new Response(`# Acme\n\n- [Internals](${site.url}/internals): how it works inside\n`),
  });
  sites.push(site);
  const app = testApp({
    agent: createExplorer({ version: "test" }),
    env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
  });
  const { send } = app;
  const provider = (await send("POST", "/api/v1/providers", { body: { name: "Acme", docsUrl: `${site.url}/` } })).body;
  const body = { text: "Install the client.", targetProviderId: provider.id };
  const prompt = (await send("POST", "/api/v1/prompts", { body })).body;
  for (let i = 0; i < 2; i++) await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  const { status, body: map } = await send("GET", `/api/v1/providers/${provider.id}/docs-map`);
  expect([status, [...Value.Errors(DocsMap, map)]]).toEqual([200, []]);
  const none = { given: 0, llmsTxt: 0, sitemap: 0, link: 0, search: 0, guessed: 0 };
  const { pages, ...rest } = map;
  expect(rest).toMatchObject({
    runs: 2,
    unreached: [
      { url: `${site.url}/internals`, listedBy: ["llms.txt", "sitemap"] },
      { url: `${site.url}/pricing`, listedBy: ["sitemap", "link"] },
    ],
    guessed: [],
    totals: { pages: 2, unreached: 2, guessed: 0 },
  });
  expect(pages).toMatchObject([
    { url: `${site.url}/`, runs: 2, reads: 2, found: { ...none, given: 2 }, errorsAfter: 0 },
    { url: `${site.url}/install`, runs: 2, reads: 2, found: { ...none, link: 2 }, errorsAfter: 0, friction: [] },
  ]);
  expect(pages[0].friction.map(({ title, state }: { title: string; state: string }) => [title, state])).toContainEqual([
    "Dead link on Acme: /gone (404)",
    "open",
  ]);
  expect((await send("GET", `/api/v1/prompts/${prompt.id}/docs-map`)).body).toEqual(map);
  // On its page, friction is named by its title and not only by its severity.
  const page = (await send("GET", `/providers/${provider.id}`, { headers: { accept: "text/html" } })).body;
  expect(page).toMatch(/class="pill severity[^>]*>Dead link on Acme: \/gone \(404\)/);
});

test("the docs map counts published runs on the live docs by month and agent, and separates guesses", async () => {
  let now = Date.UTC(2026, 7, 15);
  const app = testApp({ now: () => now });
  const { send, service, a } = app;
  const { id } = createPrompt(service.ctx, a.org, { text: "Upload. https://docs.example.com" });
  const [quickstart] = niceGrade.exposure.visits as [Visit];
  const guess = { ...quickstart, page: "https://docs.example.com/sdk", url: "https://docs.example.com/sdk" };
  const missed = { ...guess, reads: 0, errors: 0, misses: 2, guesses: 2, found: {} };
  const guessing = { ...niceGrade, exposure: { ...niceGrade.exposure, visits: [quickstart, missed] } };
  const told = async (query = "") => {
    const { runs, pages, guessed } = (await send("GET", `/api/v1/prompts/${id}/docs-map${query}`)).body;
    return { runs, pages: pages.map((page: Told) => [page.url, page.runs, page.errorsAfter]), guessed };
  };
  type Told = { url: string; runs: number; errorsAfter: number };
  evaluation(app, id, [niceGrade]);
  now = Date.UTC(2026, 10, 1);
  const [last] = evaluation(app, id, [guessing, guessing]);
  evaluation(app, id, [guessing], { urlMap: { "docs.example.com": "https://preview.example.com" } });
  const url = "https://docs.example.com/quickstart";
  const sdk = "https://docs.example.com/sdk";
  // The default is September to November; August is shown only on request.
  expect(await told()).toEqual({ runs: 2, pages: [[url, 2, 2]], guessed: [{ url: sdk, misses: 4 }] });
  expect(await told("?since=2026-08-31")).toMatchObject({ runs: 3, pages: [[url, 3, 3]] });
  expect(await told("?since=2026-08-01&until=2026-10-31")).toEqual({ runs: 1, pages: [[url, 1, 1]], guessed: [] });
  expect((await told("?agent=llm")).runs).toBe(0);
  await send("PATCH", `/api/v1/reports/${last?.slug}`, { body: { status: "archived" } });
  expect(await told()).toEqual({ runs: 1, pages: [[url, 1, 1]], guessed: [{ url: sdk, misses: 2 }] });
  const { b } = app;
  const foreign = await send("GET", `/api/v1/prompts/${id}/docs-map`, {
    headers: { authorization: `Bearer ${b.key}` },
  });
  expect([foreign.status, (await send("GET", `/api/v1/prompts/${id}/docs-map?since=soon`)).status]).toEqual([404, 400]);
});
