import { describe, expect, test } from "bun:test";
import { parse } from "unbash";
import { settingTable } from "../src/config.ts";
import { reportMarkdown } from "../src/web/markdown.ts";
import { testApp } from "./support/app.ts";
import { hostileGrade, niceGrade, runWithReport } from "./support/reports.ts";

const csp =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const slugs = [
  "start",
  "prompts",
  "runs",
  "reports",
  "api",
  "keys",
  "explorer",
  "scoring",
  "configuration",
  "operations",
];
const none = { authorization: "" };
const basic = (password: string, user = "me") => `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

type App = ReturnType<typeof testApp>;
const get = (app: App, path: string, headers: Record<string, string> = {}) =>
  app.send("GET", path, { headers: { ...none, ...headers } });
const linksOf = (html: string) =>
  [...html.matchAll(/\bhref="([^"]+)"/g)].map(([, href = ""]) => href.replaceAll("&amp;", "&"));
const codeOf = (markdown: string, language: string) =>
  [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , code = ""]) => code);

describe("documentation", () => {
  const app = testApp();

  test.each(slugs)("%s is a page, and Markdown under .md and for Accept", async (slug) => {
    const page = await get(app, `/docs/${slug}`);
    const markdown = await get(app, `/docs/${slug}.md`);
    const negotiated = await get(app, `/docs/${slug}`, { accept: "text/markdown, text/html;q=0.5" });
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("vary")).toBe("Accept");
    expect(page.headers.get("content-security-policy")).toBe(csp);
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    expect(page.body).toContain(`<link rel="canonical" href="http://localhost:3000/docs/${slug}"/>`);
    expect(page.body).toContain(
      `<link rel="alternate" type="text/markdown" href="http://localhost:3000/docs/${slug}.md"/>`,
    );
    expect(page.body).toContain('<a href="/llms.txt">http://localhost:3000/llms.txt</a>');
    expect(page.body).not.toContain("<script");
    expect(page.body).not.toContain("%EVALD_URL%");
    expect(markdown.status).toBe(200);
    expect(markdown.headers.get("content-type")).toBe("text/markdown; charset=utf-8");
    expect(markdown.body).toMatch(/^# .+\n\n> .+\n\nFor agents: \[http:\/\/localhost:3000\/llms\.txt\]/);
    expect(negotiated.body).toBe(markdown.body);
    expect(negotiated.headers.get("vary")).toBe("Accept");
  });

  test.each(slugs)("every code block of %s names its language, JSON and shell parse", async (slug) => {
    const { body } = await get(app, `/docs/${slug}.md`);
    const fences = [...body.matchAll(/^```(.*)$/gm)].map(([, name]) => name);
    expect(
      fences.filter((_, i) => i % 2 === 0).filter((name) => !/^(bash|json|text|ini|nginx)$/.test(name ?? "")),
    ).toEqual([]);
    expect(fences.filter((name, i) => i % 2 === 1 && name !== "")).toEqual([]);
    for (const code of codeOf(body, "json")) expect(() => JSON.parse(code), code).not.toThrow();
    for (const code of codeOf(body, "bash")) expect(parse(code).errors ?? [], code).toEqual([]);
  });

  test.each([
    ["text/html", "text/html; charset=utf-8"],
    ["*/*", "text/html; charset=utf-8"],
    ["text/markdown", "text/markdown; charset=utf-8"],
    ["text/html;q=0.8, text/markdown", "text/markdown; charset=utf-8"],
    ["text/markdown;q=0.3, text/html;q=0.9", "text/html; charset=utf-8"],
    ["text/markdown;q=0", "text/html; charset=utf-8"],
  ])("Accept: %s brings %s", async (accept, type) => {
    expect((await get(app, "/docs", { accept })).headers.get("content-type")).toBe(type);
  });

  test("a copy that is still good is not sent again", async () => {
    const etag = (await get(app, "/docs/runs")).headers.get("etag") ?? "";
    const again = await get(app, "/docs/runs", { "if-none-match": etag });
    expect([again.status, again.body]).toEqual([304, ""]);
    expect((await get(app, "/docs/runs", { "if-none-match": '"other"' })).status).toBe(200);
  });

  test("the settings are those of the configuration, in its order", async () => {
    const { body } = await get(app, "/docs/configuration.md");
    const names = [...(body as string).matchAll(/^\| `(EVALD_[A-Z_]+)` \| (.+?) \| (.+) \|$/gm)].map(
      ([, ...row]) => row,
    );
    expect(names).toEqual(settingTable.map((s) => [s.name, s.default === "" ? "none" : `\`${s.default}\``, s.means]));
    expect(names.length).toBeGreaterThan(10);
  });

  test("a page that is not there is 404, for people and for programs", async () => {
    for (const path of ["/docs/nothing", "/docs/nothing.md"]) expect((await get(app, path)).status).toBe(404);
    const page = await get(app, "/nothing", { accept: "text/html" });
    expect([page.status, page.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
    expect(page.headers.get("content-security-policy")).toBe(csp);
    expect(page.body).toContain("Nothing is here");
    expect((await get(app, "/nothing", { accept: "application/json" })).body.error).toBe("not_found");
    expect((await get(app, "/api/nothing", { accept: "text/html" })).body.error).toBe("unauthorized");
  });
});

describe.each([["http://localhost:3000"], ["https://example.com/evals"]])("links of %s", (baseUrl) => {
  const app = testApp({ env: { EVALD_BASE_URL: baseUrl } });

  test("every link of every page, of its Markdown, of llms.txt and of the sitemap leads somewhere", async () => {
    const anchors = new Map<string, Set<string>>();
    const seen = new Set<string>();
    const wanted: { from: string; url: URL }[] = [];
    const queue = [`${baseUrl}/`, `${baseUrl}/llms.txt`, `${baseUrl}/sitemap.xml`, `${baseUrl}/robots.txt`];
    for (let address = queue.shift(); address; address = queue.shift()) {
      const { status, headers, body } = await get(app, address);
      expect([address, status]).toEqual([address, 200]);
      const type = headers.get("content-type") ?? "";
      const text = typeof body === "string" ? body : "";
      const found = type.startsWith("text/html")
        ? linksOf(text)
        : type.startsWith("text/css") || type.startsWith("application/json")
          ? []
          : [
              ...text
                .replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, "")
                .matchAll(/\]\(([^)\s]+)\)|<loc>([^<]+)<|^Sitemap: (.+)$/gm),
            ].map((m) => (m[1] ?? m[2] ?? m[3]) as string);
      anchors.set(address, new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id as string)));
      for (const href of found) {
        if (href.startsWith("data:")) continue;
        expect([address, href, /^(https?:\/\/|\/|#)/.test(href)]).toEqual([address, href, true]);
        const url = new URL(href, address);
        wanted.push({ from: address, url });
        const plain = url.href.replace(/#.*$/, "");
        expect([address, plain.startsWith(baseUrl)]).toEqual([address, true]);
        if (!seen.has(plain)) queue.push(plain);
        seen.add(plain);
      }
    }
    for (const slug of slugs) expect([...seen]).toContain(`${baseUrl}/docs/${slug}.md`);
    const lost = wanted
      .filter(({ url }) => url.hash && !url.pathname.endsWith(".md"))
      .filter(({ url }) => !anchors.get(url.href.replace(/#.*$/, ""))?.has(url.hash.slice(1)));
    expect(lost.map(({ from, url }) => `${from} → ${url.href}`)).toEqual([]);
  });

  test("llms.txt has the form and names every page", async () => {
    const { body, headers } = await get(app, `${baseUrl}/llms.txt`);
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(body).toMatch(/^# evald\n\n> .+\n/);
    for (const slug of slugs)
      expect(body).toMatch(new RegExp(`^- \\[.+\\]\\(${RegExp.escape(baseUrl)}/docs/${slug}\\.md\\): .+\\.$`, "m"));
  });
});

test("under a base path nothing answers outside of it", async () => {
  const app = testApp({ env: { EVALD_BASE_URL: "https://example.com/evals" } });
  expect((await get(app, "https://example.com/evals")).status).toBe(200);
  expect((await get(app, "https://example.com/docs")).status).toBe(404);
  expect((await get(app, "https://example.com/evals/robots.txt")).body).toContain("Disallow: /evals/api/\n");
});

describe("reports and runs", () => {
  const app = testApp();
  const { runId, slug } = runWithReport(app, niceGrade);
  const paths = [`/reports/${slug}`, `/reports/${slug}.md`, `/reports/${slug}/session`, `/runs/${runId}`];

  test.each(paths.map((path) => [path.replace(slug, "SLUG").replace(runId, "RUN"), path]))(
    "%s is for its organisation",
    async (_, path) => {
      const challenge = 'Basic realm="evald: any user name, an API key as the password", charset="UTF-8"';
      for (const authorization of [
        "",
        basic("evals_wrong"),
        basic(""),
        "Basic !!!",
        "Bearer nothing",
        `Digest ${app.a.key}`,
      ]) {
        const { status, headers, body } = await get(app, path, { authorization });
        expect([authorization, status, headers.get("www-authenticate")]).toEqual([authorization, 401, challenge]);
        expect(body).toContain("An API key is needed");
        expect(headers.get("content-security-policy")).toBe(csp);
      }
      for (const authorization of [basic(app.a.key), basic(app.a.key, ""), `Bearer ${app.a.key}`]) {
        const { status, headers } = await get(app, path, { authorization });
        expect([status, headers.get("cache-control"), headers.get("content-security-policy")]).toEqual([
          200,
          "private, no-store",
          csp,
        ]);
      }
      const foreign = await get(app, path, { authorization: basic(app.b.key) });
      const absent = await get(app, path.replace(slug, "none-00000000").replace(runId, crypto.randomUUID()), {
        authorization: basic(app.b.key),
      });
      expect([foreign.status, absent.status]).toEqual([404, 404]);
      expect(foreign.headers.get("content-type")).toBe("text/html; charset=utf-8");
    },
  );

  test("a revoked key no longer opens a page", async () => {
    const { key, apiKey } = app.service.keys.createKey(app.a.org, "short");
    expect((await get(app, paths[0]!, { authorization: basic(key) })).status).toBe(200);
    app.service.keys.revokeKey(app.a.org, apiKey.id);
    expect((await get(app, paths[0]!, { authorization: basic(key) })).status).toBe(401);
  });

  test("the report shows grade, score, dimensions, friction with proof, advice", async () => {
    const { body } = await app.send("GET", paths[0]!);
    for (const shown of [
      '<span class="grade grade-c big">C+</span>',
      "<strong>78.4</strong> of 100",
      "Goal not judged",
      "45% measured",
      '<rect class="done" width="64.3" height="8">',
      "weight 15%",
      "Links (20%): 35 of 41 resolve",
      '<span class="gain">+4.1 points</span>',
      '<a class="name" href="#F1">F1</a>',
      '<li id="F1" class="severity-high">',
      `href="/reports/${slug}/session?fromSeq=0#e1"`,
      "<blockquote>See the [client reference](/reference/client).</blockquote>",
      '<a class="address" href="https://docs.example.com/quickstart" rel="noreferrer nofollow">',
      "1.4 s lost",
      `<a href="/runs/${runId}">`,
    ])
      expect(body).toContain(shown);
  });

  test("a report without a score says why", async () => {
    const { slug: bare } = runWithReport(app, {
      ...niceGrade,
      score: null,
      grade: null,
      outcome: "scoring_failed",
      nullNotice: "The session held no event.",
    });
    const { body } = await app.send("GET", `/reports/${bare}`);
    expect(body).toContain('<p class="notice">The session held no event.</p>');
    expect(body).toContain("no score");
    expect((await app.send("GET", `/reports/${bare}.md`)).body).toMatch(/^# No score: Upload a file\n/);
  });

  test("the session is paged, filtered and searched", async () => {
    const all = await app.send("GET", `/reports/${slug}/session`);
    expect(all.body).toContain('<tr id="e0" class="event-thought">');
    expect(all.body).toContain("Next page, from event 100");
    const rest = await app.send("GET", `/reports/${slug}/session?fromSeq=100`);
    expect(rest.body).not.toContain('id="e99"');
    expect(rest.body).toContain('<tr id="e120" class="event-end">');
    const ends = await app.send("GET", `/reports/${slug}/session?types=end`);
    expect([...ends.body.matchAll(/<tr id="(e\d+)"/g)].map(([, id]) => id)).toEqual(["e120"]);
    const hits = await app.send("GET", `/reports/${slug}/session?search=STEP%2042`);
    expect([...hits.body.matchAll(/<tr id="(e\d+)"/g)].map(([, id]) => id)).toEqual(["e42"]);
    expect((await app.send("GET", `/reports/${slug}/session?types=nonsense`)).status).toBe(400);
  });

  test("a run that is not finished loads itself again, a finished one does not", async () => {
    const refresh = '<meta http-equiv="refresh" content="2"/>';
    const done = await app.send("GET", `/runs/${runId}`);
    expect(done.body).toContain(`href="/reports/${slug}"`);
    expect(done.body).not.toContain(refresh);
    const prompt = app.service.prompts.createPrompt(app.a.org, { text: "Wait. https://docs.example.com" });
    const [waiting = ""] = app.service.requests.requestEval(app.a.org, prompt.id, {
      urlMap: {},
      trigger: "api",
    }).runIds;
    const page = await app.send("GET", `/runs/${waiting}`);
    expect(page.body).toContain(refresh);
    expect(page.body).toContain("Waiting for its turn");
  });
});

describe("words of a target", () => {
  const app = testApp();
  const { slug } = runWithReport(app, hostileGrade, "<script>alert(1)</script> **bold** [a](javascript:alert(1))");

  test("are text in a page", async () => {
    for (const path of [`/reports/${slug}`, `/reports/${slug}/session`]) {
      const { body } = await app.send("GET", path);
      expect(body).not.toMatch(/<(script|img|iframe|b)\b/i);
      expect(linksOf(body).filter((href) => !/^(https?:\/\/|\/|#|data:image\/svg)/.test(href))).toEqual([]);
      expect(body).not.toMatch(/<[a-z][^>]*\son\w+=/i);
    }
    const { body } = await app.send("GET", `/reports/${slug}`);
    expect(body).toContain("&lt;script>alert(1)&lt;/script>");
    expect(body).toContain('<span class="address">javascript:alert(1)</span>');
  });

  test("are text in Markdown, however it is rendered", async () => {
    const markdown = reportMarkdown(app.service.reports.getReport(app.a.org, slug));
    expect((await app.send("GET", `/reports/${slug}.md`)).body).toBe(markdown);
    const html = Bun.markdown.html(markdown);
    expect(html).not.toMatch(/<(script|img|iframe|b|em|del)\b/i);
    expect(linksOf(html).filter((href) => !href.startsWith("http://localhost:3000/"))).toEqual([]);
    expect([...html.matchAll(/<h(\d)>/g)].map(([, level]) => level)).toEqual([
      "1",
      "2",
      "2",
      "2",
      "2",
      "2",
      "2",
      "3",
      "2",
    ]);
    expect(html).toContain("<strong>&lt;img src=x onerror=alert(1)&gt; # not a heading</strong>");
    expect(html).toContain("<code>``` &lt;b&gt;quote&lt;/b&gt; ** `x` ![i](http://evil.example/i.png)</code>");
    expect(markdown.replaceAll("\n", "")).not.toMatch(/\p{Cc}|\p{Cf}/u);
  });
});

test("a report as Markdown reads as plain text", () => {
  const app = testApp();
  const { slug } = runWithReport(app, niceGrade);
  const lines = reportMarkdown(app.service.reports.getReport(app.a.org, slug)).split("\n");
  expect(lines[0]).toBe("# C+ (78.4 of 100): Upload a file");
  expect(lines[2]).toStartWith("Goal not judged · 45% of the weight measured · explorer test · ");
  expect(lines).toContain("| Docs discoverability | 20%    | 88.2  | B+ |");
  expect(lines).toContain("1. **Mend dead links on Quickstart** (+4.1 points, removes F1)");
  expect(lines).toContain("### F1: Dead link on Quickstart: /reference/client (404)");
  expect(lines).toContain("high · dead link · discovery · new (1 of 1) · 1.4 s lost");
  expect(lines).toContain("> `See the [client reference](/reference/client).`");
  expect(lines).toContain("<https://docs.example.com/quickstart> · proof: events 1, 2");
});

test("every page is described with its types, and nothing else is under Pages", async () => {
  const { body } = await testApp().send("GET", "/openapi.json");
  type Operation = { tags: string[]; operationId: string; responses: Record<string, { content?: object }> };
  const pages = Object.entries<{ get?: Operation }>(body.paths)
    .filter(([, { get: operation }]) => operation?.tags.includes("Pages"))
    .map(([path, { get: operation }]) => [
      path,
      Object.entries(operation?.responses ?? {})
        .filter(([, { content }]) => content)
        .map(([status, { content }]) => [status, Object.keys(content ?? {})]),
    ]);
  expect(Object.fromEntries(pages)).toEqual({
    "/": [["200", ["text/html"]]],
    "/style.css": [["200", ["text/css"]]],
    "/llms.txt": [["200", ["text/plain"]]],
    "/robots.txt": [["200", ["text/plain"]]],
    "/sitemap.xml": [["200", ["application/xml"]]],
    "/docs": [["200", ["text/html", "text/markdown"]]],
    "/docs.md": [["200", ["text/markdown"]]],
    "/docs/{page}": [
      ["200", ["text/html", "text/markdown"]],
      ["404", ["text/html"]],
    ],
    "/reports/{slug}": [
      ["200", ["text/html", "text/markdown"]],
      ["401", ["text/html"]],
      ["404", ["text/html"]],
    ],
    "/reports/{slug}/session": [
      ["200", ["text/html"]],
      ["400", ["text/html"]],
      ["401", ["text/html"]],
      ["404", ["text/html"]],
    ],
    "/runs/{runId}": [
      ["200", ["text/html"]],
      ["401", ["text/html"]],
      ["404", ["text/html"]],
    ],
  });
});
