import { expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { AgentFailure } from "../../src/agents/agent.ts";
import { createChildAgent } from "../../src/agents/child.ts";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { wideLimits } from "../support/limits.ts";
import { type Site, type SiteRoute, serveSite } from "../support/site.ts";

/** CPU time without an event after which the process of a run is stopped, in ms. In the service, it is 30 s. */
const silentCpuMs = 3_000;
const mib = 1024 * 1024;

const text = "Upload a file with the SDK, and read how it is stored. ".repeat(40);
const html = (body: string): SiteRoute => ({
  body: `<!doctype html><html lang="en"><title>Acme</title>${body}</html>`,
});
const start = html(`<h1>Acme</h1><p>${text}</p><a href="/next">Next</a>`);
const xml = (body: string | Uint8Array<ArrayBuffer>, headers = {}): SiteRoute => ({
  body,
  type: "application/xml",
  headers,
});
const index = (urls: string[]) =>
  `<sitemapindex>${urls.map((url) => `<sitemap><loc>${url}</loc></sitemap>`).join("")}</sitemapindex>`;
const robots = (body: string): Record<string, SiteRoute> => ({
  "/": start,
  "/next": start,
  "/robots.txt": { body, type: "text/plain" },
});
const bomb = new Uint8Array(gzipSync(Buffer.alloc(256 * mib, " ")));
const zipped = { "content-encoding": "gzip" };

const tenEach = <T>(make: (level: number) => T) => Array.from({ length: 9 }, (_, level) => make(level + 1));
const ten = (item: string) => Array(10).fill(item);
const laughs = `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "lol">${tenEach(
  (level) => `<!ENTITY l${level} "${ten(`&l${level - 1};`).join("")}">`,
).join("")}]><urlset><url><loc>&l9;</loc></url></urlset>`;
const anchors = `l0: &l0 lol\n${tenEach((level) => `l${level}: &l${level} [${ten(`*l${level - 1}`).join(", ")}]`).join("\n")}\n`;
const expandingApi = {
  openapi: "3.1.0",
  info: { title: "Acme", version: "1" },
  paths: {
    "/upload": {
      post: {
        requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/L9" } } } },
        responses: { 200: { description: "Done" } },
      },
    },
  },
  components: {
    schemas: {
      L0: { type: "string" },
      ...Object.fromEntries(
        tenEach((level) => [
          `L${level}`,
          {
            type: "object",
            properties: Object.fromEntries(
              ten("").map((_, i) => [`p${i}`, { $ref: `#/components/schemas/L${level - 1}` }]),
            ),
          },
        ]),
      ),
    },
  },
};
/** A response that never ends. */
const endless =
  (piece: string): SiteRoute =>
  () =>
    new Response(
      new ReadableStream({ pull: (controller) => controller.enqueue(new TextEncoder().encode(piece.repeat(1000))) }),
      { headers: { "content-type": "text/html" } },
    );

const kinds: Record<string, (site: () => string) => Record<string, SiteRoute>> = {
  "robots.txt: one pattern with 100,000 wildcards": () =>
    robots(`User-agent: *\nDisallow: /${"*a".repeat(100_000)}$\n`),
  "robots.txt: 20,000 rules": () =>
    robots(`User-agent: *\n${Array.from({ length: 20_000 }, (_, i) => `Disallow: /*${i}*x*$`).join("\n")}\n`),
  "robots.txt: a gzip bomb": () => ({ "/": start, "/robots.txt": { body: bomb, headers: zipped } }),
  "llms.txt: 100,000 links": () => ({
    "/": start,
    "/llms.txt": {
      body: `# Acme\n\n${Array.from({ length: 100_000 }, (_, i) => `- [Page ${i}](/p${i}.md)`).join("\n")}`,
      type: "text/plain",
    },
  }),
  "llms.txt: 2 MiB of open brackets": () => ({
    "/": start,
    "/llms.txt": { body: `# Acme\n\n${"[".repeat(2 * mib)}`, type: "text/plain" },
  }),
  "sitemaps: a loop of indexes": (site) => ({
    "/": start,
    "/sitemap.xml": () => new Response(index([`${site()}/a.xml`, `${site()}/sitemap.xml`])),
    "/a.xml": () => new Response(index([`${site()}/sitemap.xml`, `${site()}/a.xml?again`])),
  }),
  "sitemaps: an index of 50,000 indexes": (site) => ({
    "/": start,
    "/sitemap.xml": () => new Response(index(Array.from({ length: 50_000 }, (_, i) => `${site()}/${i}.xml`))),
  }),
  "sitemaps: an index of 250,000 indexes with short names": () => ({
    "/": start,
    "/sitemap.xml": xml(`<sitemapindex>${Array.from({ length: 250_000 }, (_, i) => `<loc>${i}</loc>`).join("")}`),
  }),
  "sitemaps: an index that names a new index, endlessly": (site) => ({
    "/": start,
    "/sitemap.xml": (request) =>
      new Response(index([`${site()}/sitemap.xml?${Number(new URL(request.url).search.slice(1)) + 1}`])),
  }),
  "sitemaps: entities that expand to a billion": () => ({ "/": start, "/sitemap.xml": xml(laughs) }),
  "robots.txt: 50,000 sitemaps": (site) => ({
    "/": start,
    "/robots.txt": () =>
      new Response(Array.from({ length: 50_000 }, (_, i) => `Sitemap: ${site()}/sitemap.xml?${i}`).join("\n")),
    "/sitemap.xml": () => new Response(`<urlset><url><loc>${site()}/next</loc></url></urlset>`),
  }),
  "robots.txt: a delay of a year": () => robots("User-agent: *\nCrawl-delay: 31536000\n"),
  "robots.txt: without an end": () => ({ "/": start, "/robots.txt": endless("Disallow: /x\n") }),
  "llms.txt: without an end": () => ({ "/": start, "/llms.txt": endless("- [Page](/p.md)\n") }),
  "HTML: without an end": () => ({ "/": start, "/next": endless("<p>More <a href=/next>") }),
  "HTML: a link to itself with another query, endlessly": () => ({
    "/": (request) =>
      new Response(`<!doctype html><h1>Acme</h1><p>${text}</p><a href="/?${new URL(request.url).search}0">Upload</a>`, {
        headers: { "content-type": "text/html" },
      }),
  }),
  "redirects to a new URL, endlessly": () => ({
    "/": (request) =>
      Response.redirect(`${new URL(request.url).origin}/?${Number(new URL(request.url).search.slice(1)) + 1}`),
  }),
  "429 until next year": () => ({
    "/": start,
    "/next": { status: 429, headers: { "retry-after": "31536000" }, body: "Later" },
    "/robots.txt": { status: 429, headers: { "retry-after": "31536000" } },
  }),
  "OpenAPI: references that expand to a billion": () => ({
    "/": html(`<h1>Acme</h1><p>${text}</p><a href="/openapi.json">OpenAPI</a>`),
    "/openapi.json": { type: "application/json", body: JSON.stringify(expandingApi) },
  }),
  "OpenAPI: YAML anchors that expand to a billion": () => ({
    "/": html(`<h1>Acme</h1><p>${text}</p><a href="/openapi.yaml">OpenAPI</a>`),
    "/openapi.yaml": { type: "application/yaml", body: `openapi: 3.1.0\ninfo: {title: A, version: "1"}\n${anchors}` },
  }),
  "sitemaps: a gzip bomb": () => ({ "/": start, "/sitemap.xml": xml(bomb, zipped) }),
  "sitemaps: 4 MiB of unclosed elements": () => ({
    "/": start,
    "/sitemap.xml": xml(`<urlset>${"<loc>".repeat((4 * mib) / 5)}`),
  }),
  "HTML: 200,000 nested elements": () => ({ "/": html(`<h1>Acme</h1>${"<div>".repeat(200_000)}${text}`) }),
  "HTML: 3 MiB of unclosed links": () => ({ "/": html(`<h1>Acme</h1>${'<a href="x'.repeat((3 * mib) / 10)}`) }),
  "HTML: an attribute of 4 MiB": () => ({ "/": html(`<h1 title="${"a".repeat(4 * mib)}">Acme</h1><p>${text}</p>`) }),
  "HTML: 100,000 links": () => ({
    "/": html(
      `<h1>Acme</h1><p>${text}</p>${Array.from({ length: 100_000 }, (_, i) => `<a href="/p${i}">Page ${i}</a>`).join(" ")}`,
    ),
  }),
  "Markdown: 1 MiB of each kind of mark": () => ({
    "/": {
      type: "text/markdown",
      body: `# Acme\n\n${["*", "_", "`", "[", "> ", "![", "|", "<"].map((mark) => mark.repeat(mib / 8)).join("\n\n")}\n\n${text}`,
    },
  }),
  "JSON: 500,000 brackets in a sample": () => ({
    "/": { type: "text/markdown", body: `# Acme\n\n${text}\n\n\`\`\`json\n${"[".repeat(500_000)}\n\`\`\`\n` },
  }),
};

const inCheck = [1, 8].map((i) => Object.keys(kinds)[i - 1] as string);

test.each(process.env.ATTACK === "long" ? Object.keys(kinds) : inCheck)(
  "a run ends in bounded time despite %s",
  async (kind) => {
    const site: Site = serveSite(kinds[kind]?.(() => site.url) ?? {});
    const agent = createChildAgent(createExplorer({ version: "test" }), { silentCpuMs });
    const ended = await Array.fromAsync(
      agent.run(
        {
          ...{ text: "Upload a file", endGoal: null, startUrls: [`${site.url}/`], productUrl: null, urlMap: {} },
          ...{ declaredChecks: [], limits: { ...wideLimits, maxRequests: 30 } },
        },
        {
          ...{ signal: new AbortController().signal, now: Date.now, startedAt: Date.now() },
          ...{ allow: [{ host: "127.0.0.1", port: null }], resources: null },
        },
      ),
    ).then(
      (events) => events.at(-1)?.type,
      (error) => (error instanceof AgentFailure ? error.failure.cause : error),
    );
    expect(["end", "budget"]).toContain(ended);
    site.stop();
  },
  300_000,
);
