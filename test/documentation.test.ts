import { beforeAll, describe, expect, test } from "bun:test";
import { dirname, join } from "node:path";
import { parse } from "unbash";
import { settingTable } from "../src/config.ts";
import { errorStatus } from "../src/errors.ts";
import { toHtml } from "../src/web/docs.ts";
import { testApp } from "./support/app.ts";
import { buildExecutable, call, client, emptyFolder, executable, serve, untilRun } from "./support/executable.ts";

beforeAll(buildExecutable, 120_000);

const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const slugs = [
  "start",
  "prompts",
  "schedules",
  "runs",
  "reports",
  "gates",
  "regrading",
  "exports",
  "history",
  "mcp",
  "rest",
  "keys",
  "explorer",
  "scoring",
  "configuration",
  "models",
  "operations",
];
const none = { authorization: "" };
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
    expect(page.headers.get("vary")).toBe("Accept, Accept-Encoding");
    expect(page.headers.get("content-security-policy")).toBe(csp);
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    expect(page.body).toContain(`<link rel="canonical" href="http://localhost:3000/docs/${slug}"/>`);
    expect(page.body).toContain(
      `<link rel="alternate" type="text/markdown" href="http://localhost:3000/docs/${slug}.md"/>`,
    );
    expect(page.body).toContain('<a href="/llms.txt">http://localhost:3000/llms.txt</a>');
    expect(page.body).not.toMatch(/<script(?! src="\/client\.js)/);
    expect(page.body).not.toContain("%EVALD_URL%");
    expect(markdown.status).toBe(200);
    expect(markdown.headers.get("content-type")).toBe("text/markdown; charset=utf-8");
    expect(markdown.body).toMatch(/^# .+\n\n> .+\n\nFor agents: \[http:\/\/localhost:3000\/llms\.txt\]/);
    expect(negotiated.body).toBe(markdown.body);
    expect(negotiated.headers.get("vary")).toBe("Accept, Accept-Encoding");
  });

  test.each(slugs)("every code block of %s names its language, JSON and shell parse", async (slug) => {
    const { body } = await get(app, `/docs/${slug}.md`);
    const fences = [...body.matchAll(/^```(.*)$/gm)].map(([, name]) => name);
    expect(
      fences.filter((_, i) => i % 2 === 0).filter((name) => !/^(bash|json|text|ini|toml|nginx)$/.test(name ?? "")),
    ).toEqual([]);
    expect(fences.filter((name, i) => i % 2 === 1 && name !== "")).toEqual([]);
    for (const code of codeOf(body, "toml")) expect(() => Bun.TOML.parse(code), code).not.toThrow();
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

  test("the error codes are those that are thrown; the others are called reserved", async () => {
    const body = (await get(app, "/docs/rest.md")).body as string;
    const told = [...body.matchAll(/^\| `(\w+)` +\| (\d{3}) /gm)].map(([, code, status]) => [code, Number(status)]);
    const reserved = [...body.matchAll(/`(\w+)` \((\d{3})\)/g)].map(([, code, status]) => [code, Number(status)]);
    expect(Object.fromEntries([...told, ...reserved])).toEqual(errorStatus);
    const root = join(import.meta.dir, "..", "src");
    const sources = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(root)].map((file) => Bun.file(join(root, file)).text());
    const thrown = (await Promise.all(sources)).flatMap((text) =>
      [...text.matchAll(/new AppError\(\s*"(\w+)"/g)].map(([, code]) => code as string),
    );
    expect(told.map(([code]) => code)).toEqual(Object.keys(errorStatus).filter((code) => thrown.includes(code)));
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

test("HTML in the text of a page stays text", () => {
  const body = "<script>alert(1)</script>\n\nAn <img src=x> and [a link](/docs/runs).";
  const doc = { slug: "test", section: "Test", title: "Test", description: "Test.", body };
  expect(toHtml(doc, { baseUrl: "https://example.com/evals", base: "/evals" })).toBe(
    '<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n<p>An &lt;img src=x&gt; and <a href="/evals/docs/runs">a link</a>.</p>\n',
  );
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
  const robots = (await get(app, "https://example.com/evals/robots.txt")).body;
  expect(robots).toContain("Disallow: /evals/api/\n");
  expect(robots).toContain("Sitemap: https://example.com/evals/sitemap.xml\n");
});

/** What each bash sample of a page prints, in the order of the page. */
const samples: Record<string, RegExp[]> = {
  "start.md": [
    /^$/,
    /"organisation":\{"id":"[^"]+","name":"Test"/,
    /"title": "First report"/,
    /"statusUrl": "http/,
    /"status": "completed",\n {2}"score": \d/,
    /^# [A-F][+-]? \(\d/,
  ],
  "rest.md": [
    /^x-total-count: 1\r$/m,
    /"name":"Test"/,
    /^\[\{"id":"[^"]+","title":"First report"/,
    /^\{"id":"[^"]+","title":null,"text":"Find out/,
    /^\{"id":"[^"]+","title":null,"text":"Find out/,
    /^\{"id":"[^"]+","title":"Error codes","text":"Find out/,
    /^\{"runId":"[^"]+","statusUrl":"http/,
    /^\[\{"runId":"[^"]+","status":"completed"/,
    /^\{"runId":"[^"]+","status":"completed"/,
    /^\[\{"slug":"error-codes-/,
    /^\{"slug":"error-codes-/,
    /^error-codes-\w+ published\n$/,
    /^revoked\n$/,
    /^\{"events":\[\{"seq":\d+,.*"type":"http"/,
    /"ready"[\s\S]*^\/api\/v1\/runs$/m,
  ],
  "runs.md": [
    /^\{\n {2}"slug": "error-codes-/,
    / event\n +\d+ run\n$/,
    /"ended": "done"/,
    /^(cancelled: by the API key "test"|the run has ended already: it is completed)$/m,
    /^http\S+\/api\/v1\/runs\/\S+$/m,
    /^\{"runId":"[^"]+","statusUrl":"http/,
    /\tcompleted\tA\S*\tError codes\n/,
  ],
  "reports.md": [/^# [A-F][+-]? \([\s\S]*"outcome": "not_judged"/, /^\d+\tend\t\w/m],
  "regrading.md": [
    /^\{\n {2}"status": "planned",\n {2}"total": \d+,\n {2}"graded": 0,/,
    /^[0-9a-f-]{36}\n$/,
    /^1\tno judge\tA\S*\ttrue\n$/,
  ],
  "exports.md": [/^acme\.jsonl\nslug,createdAt,/, /^error-codes-[0-9a-f]{8}\t\d/m, /^0\n$/],
  "gates.md": [
    /^## Gate passed: Error codes\n\n\*\*the mean score \S+ is not below 20; /,
    /^\{\n {2}"status": "running",[\s\S]*"warnings": \[/,
    /^\{\n {2}"verdict": /,
  ],
  "history.md": [
    /^$|^(high|medium|low)\t(new|open)\t\d+ of \d+\t/,
    /"n": \d+,\n {2}"mean": \d/,
    /"totals": \{\n {4}"pages": [1-9]/,
  ],
  "mcp.md": [
    /"structuredContent":\{"reports":\[\{"slug":"error-codes-/,
    /^\{\n {2}"grade": "[A-F][+-]?",\n {2}"keyFinding": "/,
  ],
  "prompts.md": [
    /^\{"id":"[^"]+","title":"Upload a file"/,
    /^[0-9a-f-]{36}\n$/,
    /^[0-9a-f-]{36}\n$/,
    /"status":"paused"[\s\S]*"status":"active"/,
  ],
  "scoring.md": [/^82\.5\n$/],
  "keys.md": [
    /^[0-9a-f-]{36}\nevals_\w{36}\n$/,
    /^$/,
    /^$/,
    /"name":"Test"/,
    /^<!doctype html>[\s\S]*<title>Run: /,
    /^ID +KEY[\s\S]* laptop [\s\S]* ci /,
    /^[0-9a-f-]{36}\n$/,
  ],
  "schedules.md": [/^[0-9a-f-]{36}\n$/, /^[0-9a-f-]{36}\n$/, /^\[\]\n$/],
  "people.md": [/^[0-9a-f-]{36}\nhttp\S+\/setup\/\S+\n$/],
};

test("every sample that bash can run prints what it should, page after page, against the executable", async () => {
  const cwd = emptyFolder();
  const service = await serve({ cwd });
  await call(["org", "create", "Test"], { cwd });
  const key = (await call(["key", "create", "--name", "test"], { cwd })).stdout.trim();
  const ask = client(service.url, key);
  const env = { PATH: `${dirname(executable)}:${process.env.PATH}`, EVALD_URL: service.url, EVALD_KEY: key };

  async function run(sample: string): Promise<string> {
    const code = sample
      .replace("evals_your_key_here", key)
      .replace("http://127.0.0.1:3000", service.url)
      .replace(/https:\/\/docs\.(example\.com|acme\.example)/, `${service.url}/docs`);
    const shell = Bun.spawn(["bash", "-euo", "pipefail", "-c", code], { cwd, env, stdout: "pipe", stderr: "pipe" });
    const outputs = [new Response(shell.stdout).text(), new Response(shell.stderr).text(), shell.exited] as const;
    const [stdout, stderr, exit] = await Promise.all(outputs);
    expect([code, exit, exit === 0 || stderr]).toEqual([code, 0, true]);
    for (const { runId } of (await ask("GET", "/api/v1/runs")).body) await untilRun(ask, runId, "completed", "failed");
    return stdout;
  }

  for (const [page, prints] of Object.entries(samples)) {
    const codes = codeOf(await (await fetch(`${service.url}/docs/${page}`)).text(), "bash");
    expect([page, codes.length]).toEqual([page, prints.length]);
    for (const [i, code] of codes.entries()) expect(await run(code), code).toMatch(prints[i] as RegExp);
  }
  const readme = await Bun.file(join(import.meta.dir, "..", "README.md")).text();
  const rest = codeOf(readme, "sh").filter((code) => code.includes("curl"));
  expect(rest.length).toBe(1);
  for (const code of rest) expect(await run(code)).toMatch(/^\{\n {2}"status": "(pending|running|completed)",/);
  expect(await service.stop()).toBe(0);
}, 120_000);

describe("the API reference", () => {
  const app = testApp();

  test("tells every operation but the pages, each with its method, path, parameters and answers", async () => {
    const { body } = await get(app, "/docs/api");
    const document = (await get(app, "/openapi.json")).body;
    for (const [path, methods] of Object.entries<Record<string, { operationId: string; tags: string[] }>>(
      document.paths,
    ))
      for (const [method, { operationId, tags }] of Object.entries(methods)) {
        const at = body.indexOf(`<section id="${operationId}" class="operation">`);
        expect([operationId, at >= 0]).toEqual([operationId, !tags.includes("Pages")]);
        if (at >= 0)
          expect(body.slice(at)).toMatch(
            new RegExp(`^.{0,400}>${method.toUpperCase()}</code> <code>${path.replace(/[{}]/g, "\\$&")}<`),
          );
      }
    for (const name of Object.keys(document.components.schemas)) expect(body).toContain(`id="schema-${name}"`);
    for (const [, id] of body.matchAll(/href="#([^"]+)"/g)) expect(body).toContain(`id="${id}"`);
  });

  test("the address of other tools leads to it", async () => {
    const { status, headers } = await get(app, "/swagger");
    expect([status, headers.get("location")]).toEqual([303, "/docs/api"]);
  });
});
