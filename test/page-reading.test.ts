import { afterEach, describe, expect, test } from "bun:test";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { findWorstFault } from "../src/agents/explorer/page-health.ts";
import { readPage } from "../src/agents/page.ts";
import type { Task } from "../src/agents/task.ts";
import { gradeSession } from "../src/grading/score.ts";
import { wideLimits } from "./support/limits.ts";
import { type Site, type SiteRoute, serveSite } from "./support/site.ts";
import { clock } from "./truth/clock.ts";
import { answer, filler, goal, html } from "./truth/pages/case.ts";
import { deliveryCases } from "./truth/pages/delivery.ts";
import { freshCases } from "./truth/pages/fresh.ts";
import { measurePages } from "./truth/pages/measure.ts";
import { brokenShapes, soundShapes } from "./truth/pages/shapes.ts";
import { unusableCases } from "./truth/pages/unusable.ts";
import { validCases } from "./truth/pages/valid.ts";
import { explore } from "./truth/session.ts";

const sites: Site[] = [];
afterEach(() => {
  for (const site of sites.splice(0)) site.stop();
});

function open(routes: Record<string, SiteRoute>): Site {
  const site = serveSite(routes);
  sites.push(site);
  return site;
}

const start = (links: string) =>
  html("Skiff Docs", `<main><h1>Skiff Docs</h1><p>Skiff delivers parcels.</p>${links}</main>`);
const keys = html("Keys", `<main><h1>Keys</h1>${answer()}</main>`);
const toKeys = `<a href="/keys">Rotate an API key</a>`;

const cases = [...validCases, ...unusableCases, ...deliveryCases, ...freshCases, ...soundShapes, ...brokenShapes];

describe("a report is right about a page", () => {
  test.each(cases.map((each) => [each.name, each] as const))(
    "%s",
    async (name, each) => {
      expect((await measurePages([each])).get(name)).toBeNull();
    },
    30_000,
  );
});

describe("the explorer", () => {
  test("asks again when a host has asked it to wait", async () => {
    let asked = 0;
    const site = open({
      "/": { body: start(toKeys) },
      "/keys": () => {
        asked++;
        const headers = { "content-type": "text/html" };
        return asked === 1
          ? new Response("", { status: 429, headers: { ...headers, "retry-after": "0" } })
          : new Response(keys, { headers });
      },
    });
    const { events, grade } = await explore(`${site.url}/`, goal);
    expect(events).toContainEqual(
      expect.objectContaining({ name: "goal_answer", detail: expect.objectContaining({ state: "likely" }) }),
    );
    expect(grade.frictions.filter(({ severity }) => severity !== "low")).toEqual([]);
  }, 30_000);

  test("finds links to a missing section between the pages of the path and of the survey", async () => {
    const site = open({
      "/": { body: start(toKeys) },
      "/keys": {
        body: html("Keys", `<main><h1>Keys</h1>${answer()}<p>First <a href="/install#gone">install</a> it.</p></main>`),
      },
      "/install": {
        body: html("Install", `<main><h1 id="install">Install</h1>${filler(3)}<pre>npm install skiff</pre></main>`),
      },
    });
    const { grade } = await explore(`${site.url}/`, goal);
    expect(grade.frictions).toContainEqual(expect.objectContaining({ title: expect.stringContaining("#gone") }));
  }, 30_000);

  test("accepts links to lines of a source", async () => {
    const body = html(
      "Keys",
      `<main><h1 id="keys">Keys</h1>${answer()}<p><a href="#12-20">Source</a>, <a href="#7">line</a></p></main>`,
    );
    const site = open({ "/": { body: start(toKeys) }, "/keys": { body } });
    const { grade } = await explore(`${site.url}/`, goal);
    expect(grade.frictions.filter(({ title }) => title.includes("#"))).toEqual([]);
  }, 30_000);

  test("shows corrections of dead links in the same order, whichever response comes first", async () => {
    const missing = (ms: number) => async () => {
      await clock.sleep(ms);
      return new Response("Not found", { status: 404 });
    };
    const names = ["/alpha", "/bravo", "/alphaa", "/bravoo"].map((path) => `<li><a href="${path}">${path}</a></li>`);
    const site = open({
      "/": { body: start(toKeys + names.join("")) },
      "/keys": { body: html("Keys", `<main><h1>Keys</h1>${answer()}</main>`) },
      "/alpha": { body: html("Alpha", `<main><h1>Alpha</h1>${filler(3)}</main>`) },
      "/bravo": { body: html("Bravo", `<main><h1>Bravo</h1>${filler(3)}</main>`) },
      "/alphaa": missing(300),
      "/bravoo": missing(0),
    });
    const { events } = await explore(`${site.url}/`, goal);
    const edits = events.flatMap((event) =>
      event.type === "milestone" && event.name === "dead_links" ? event.detail.edits : [],
    );
    expect(edits.map(({ expected }) => new URL(expected, site.url).pathname)).toEqual(["/alpha", "/bravo"]);
  }, 30_000);

  test("names what a slow page shows before its slowness", () => {
    const page = readPage("https://skiff.test/a", "text/html", html("Page not found", "<h1>Page not found</h1>"));
    const response = { url: page.url, mappedUrl: null, status: 200, headers: new Headers(), ms: 9000, redirects: [] };
    const fetchResult = {
      ok: true as const,
      isSlow: true,
      response: { ...response, body: new Uint8Array() },
      contentType: "text/html",
      text: () => "",
      wrongCharset: () => null,
    };
    expect(findWorstFault(page.url, fetchResult, page)?.id).toBe("missing-pages-say-so");
    expect(findWorstFault(page.url, fetchResult, null)?.id).toBe("answers-in-time");
  });

  test.each([
    [
      "has a content type that readers don't open",
      { type: "application/octet-stream", body: "# Install" },
      "unreadable_page",
    ],
    ["is larger than what is read of a page", { body: "x".repeat(5 * 1024 * 1024 + 1) }, "unreadable_page"],
  ])(
    "reports a needed page that %s",
    async (_, install, category) => {
      const body = html("Keys", `<main><h1>Keys</h1>${answer()}<p>First <a href="/install">install</a> it.</p></main>`);
      const site = open({ "/": { body: start(toKeys) }, "/keys": { body }, "/install": install });
      const { grade } = await explore(`${site.url}/`, goal);
      expect(grade.frictions).toContainEqual(
        expect.objectContaining({ category, severity: "high", description: expect.stringContaining("/install") }),
      );
    },
    30_000,
  );

  const wall = html("Skiff", `<main><form method="post" action="/in"><input type="password" name="p"></form></main>`);
  const challenge = html("Wait", `<p>One moment.</p><script src="/challenge.js"></script>`);
  test.each([
    ["a wall", { "/keys": { body: wall } }, "auth"],
    ["a test of the browser", { "/keys": { body: challenge } }, "auth"],
  ])(
    "reports %s once, and its fix first",
    async (_, routes, category) => {
      const site = open({ "/": { body: start(toKeys) }, ...(routes as Record<string, SiteRoute>) });
      const { grade } = await explore(`${site.url}/`, goal);
      const found = grade.frictions.filter((friction) => /^(auth|needs_human|dead_link)$/.test(friction.category));
      expect(found.map((friction) => friction.category)).toEqual([category as (typeof found)[number]["category"]]);
      expect(grade.recommendations[0]?.frictions).toEqual([found[0]!.fingerprint]);
    },
    30_000,
  );

  test("reports a dead entry of llms.txt once, and its fix first", async () => {
    const site: Site = open({
      "/": { body: start(toKeys) },
      "/keys": { body: keys },
      "/llms.txt": () =>
        new Response(`# Skiff\n\n> Parcels.\n\n- [Keys](${site.url}/keys)\n- [Gone](${site.url}/gone)\n`),
    });
    const { grade } = await explore(`${site.url}/`, goal);
    const dead = grade.frictions.filter(({ category }) => category === "dead_link");
    expect(dead).toEqual([expect.objectContaining({ title: expect.stringContaining("/gone") })]);
    expect(grade.recommendations[0]?.frictions).toEqual([dead[0]!.fingerprint]);
  }, 30_000);

  test("recommends to let agents read the page that robots.txt forbids before anything that follows from it", async () => {
    const site = open({
      "/": { body: start(`<p>Skiff has an API.</p><a href="/keys">Keys</a> <a href="/labels">Labels</a>`) },
      "/keys": { body: keys },
      "/labels": { body: html("Labels", `<main><h1>Labels</h1>${filler(4)}</main>`) },
      "/robots.txt": { body: "User-agent: *\nDisallow: /keys\n" },
    });
    const { grade } = await explore(`${site.url}/`, goal);
    const blocked = grade.frictions.filter(({ category }) => category === "auth");
    expect(blocked).toHaveLength(1);
    expect(grade.frictions.find(({ category }) => category === "missing_docs")?.severity).toBe("low");
    expect(grade.recommendations[0]?.frictions).toEqual([blocked[0]!.fingerprint]);
  }, 30_000);

  test("scores the same docs the same through a mapped host that names its own origin", async () => {
    const site: Site = open({
      "/": { body: start(`${toKeys} <a href="/labels">Labels</a>`) },
      "/keys": { body: keys },
      "/labels": { body: html("Labels", `<main><h1>Labels</h1>${filler(4)}</main>`) },
      "/llms.txt": () =>
        new Response(
          `# Skiff\n\n> Parcels.\n\n## Docs\n\n- [Keys](${site.url}/keys): rotate\n- [Labels](${site.url}/labels)\n- [Gone](${site.url}/gone)\n`,
          {
            headers: { "content-type": "text/plain" },
          },
        ),
    });
    const direct = await gradeThrough(`${site.url}/`, {});
    const mapped = await gradeThrough("https://docs.skiff.test/", { "docs.skiff.test": site.url });
    expect(mapped.score).toBe(direct.score);
    expect(mapped.frictions.map(({ severity, category }) => [severity, category])).toEqual(
      direct.frictions.map(({ severity, category }) => [severity, category]),
    );
  }, 30_000);
});

async function gradeThrough(startUrl: string, urlMap: Record<string, string>) {
  const startedAt = clock.now();
  const task: Task = {
    ...{ text: goal, endGoal: goal, startUrls: [startUrl], productUrl: null, urlMap },
    ...{ declaredChecks: [], limits: wideLimits },
  };
  const events = await Array.fromAsync(
    createExplorer({ version: "0.0.0" }).run(task, {
      ...{ signal: new AbortController().signal, now: clock.now, startedAt, resources: null },
      allow: [{ host: "127.0.0.1", port: null }],
    }),
  );
  return gradeSession(
    events.map((event, seq) => ({ ...event, seq, at: startedAt, tMs: seq, source: "agent" as const })),
  );
}

test.each([
  ['Declaration <a href="https://code.test/http/request.c">[src]</a>', "Declaration [src]"],
  ['Lists <a href="/list_(data).html">[T; N]</a>', "Lists [T; N]"],
  ['<a href="/home"><img src="/logo.png" alt="Skiff"></a> Keys', "Skiff Keys"],
])("a heading has the texts of its links, and none of their addresses: %s", (heading, text) => {
  const { headings } = readPage(
    "http://docs.test/",
    "text/html",
    html("Docs", `<h1>Docs</h1><h2>${heading}</h2>${answer()}`),
  );
  expect(headings[1]?.text).toBe(text);
});
