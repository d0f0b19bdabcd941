import { describe, expect, test } from "bun:test";
import { createKey, revokeKey } from "../src/auth/keys.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { reportMarkdown } from "../src/reports/markdown.ts";
import { getReport } from "../src/reports/reports.ts";
import { requestEval } from "../src/runs/requests.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { hostileGrade, judge, niceGrade, runWithReport } from "./support/reports.ts";

const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const none = { authorization: "" };

type App = ReturnType<typeof testApp>;
const get = (app: App, path: string, headers: Record<string, string> = {}) =>
  app.send("GET", path, { headers: { ...none, ...headers } });
const linksOf = (html: string) =>
  [...html.matchAll(/\bhref="([^"]+)"/g)].map(([, href = ""]) => href.replaceAll("&amp;", "&"));

describe("a page", () => {
  const app = testApp();
  const { runId, slug } = runWithReport(app, niceGrade);
  const paths = [`/reports/${slug}`, `/reports/${slug}.md`, `/reports/${slug}/session`, `/runs/${runId}`];

  test.each(paths.map((path) => [path.replace(slug, "SLUG").replace(runId, "RUN"), path]))(
    "is visible only to its organization: %s",
    async (_, path) => {
      for (const authorization of ["", "Bearer nothing", "Bearer evals_wrong", `Basic ${btoa(`me:${app.a.key}`)}`]) {
        const { status, headers, body } = await get(app, path, { authorization });
        expect([authorization, status, headers.get("www-authenticate")]).toEqual([authorization, 401, "Bearer"]);
        expect(body).toContain('data-error="unauthorized"');
        expect(headers.get("content-security-policy")).toBe(csp);
      }
      const stranger = await get(app, path, { accept: "text/html" });
      expect([stranger.status, stranger.headers.get("location")]).toEqual([
        303,
        `/sign-in?next=${encodeURIComponent(path)}`,
      ]);
      const person = await signedIn(app, { role: "member" });
      for (const [name, value] of [
        ["authorization", `Bearer ${app.a.key}`],
        ["cookie", person.cookie()],
      ] as const) {
        const answer = await get(app, path, { [name]: value });
        expect([
          answer.status,
          answer.headers.get("cache-control"),
          answer.headers.get("content-security-policy"),
        ]).toEqual([200, "private, no-store", csp]);
      }
      const foreign = await get(app, path, { authorization: `Bearer ${app.b.key}` });
      const absent = await get(app, path.replace(slug, "none-00000000").replace(runId, crypto.randomUUID()), {
        authorization: `Bearer ${app.b.key}`,
      });
      expect([foreign.status, absent.status]).toEqual([404, 404]);
      expect(foreign.headers.get("content-type")).toBe("text/html; charset=utf-8");
    },
  );

  test("no longer opens with a revoked key", async () => {
    const { key, apiKey } = createKey(app.service.ctx, app.a.org, "short");
    expect((await get(app, paths[0]!, { authorization: `Bearer ${key}` })).status).toBe(200);
    const blind = createKey(app.service.ctx, app.a.org, "blind", { scopes: ["run"] });
    expect((await get(app, paths[0]!, { authorization: `Bearer ${blind.key}` })).status).toBe(401);
    revokeKey(app.service.ctx, app.a.org, apiKey.id);
    expect((await get(app, paths[0]!, { authorization: `Bearer ${key}` })).status).toBe(401);
  });

  test("of a report shows grade, score, dimensions, friction with evidence, and fixes", async () => {
    const { body } = await app.send("GET", paths[0]!);
    for (const shown of [
      '<span class="grade grade-c big">C+</span>',
      "<strong>78.4</strong> of 100",
      '<span class="pill outcome-not_judged">',
      "Based on 45% of the scoring weight.",
      '<rect class="done" width="64.3" height="8">',
      "weight 15%",
      '<span class="gain">+4.1 points</span>',
      '<a class="name" href="#F1">F1</a>',
      '<li id="F1" class="severity-high">',
      `href="/reports/${slug}/session?fromSeq=0#e1"`,
      '<blockquote dir="auto" lang>See the [client reference](/reference/client).</blockquote>',
      '<a class="address" href="https://docs.example.com/quickstart" rel="noreferrer nofollow">',
      "1.4 s lost",
      `<a href="/runs/${runId}">`,
    ])
      expect(body).toContain(shown);
  });

  test("of a judged report shows each part of the goal with its evidence, and the cost of judging", async () => {
    const { slug: own } = runWithReport(app, { ...niceGrade, outcome: "goal_not_met", judge });
    const { body } = await app.send("GET", `/reports/${own}`);
    for (const shown of [
      '<li id="G1" class="met-yes">',
      '<li id="G2" class="met-no">',
      `href="/reports/${own}/session?fromSeq=54#e57"`,
      '<blockquote dir="auto" lang>TypeError: query</blockquote>',
      "openai/gpt-5",
      "$0.0123",
      "85%",
    ])
      expect(body).toContain(shown);
    const markdown = (await app.send("GET", `/reports/${own}.md`)).body;
    expect(markdown).toContain(
      "2. **Its rows were printed.** (not met; evidence: events 57, 58)\n   `TypeError: query`",
    );
    expect(markdown).toContain(
      "Judged by openai/gpt-5: 1 call, 8,200 input tokens, 640 output tokens, $0.0123 (not included in the cost of the run). Confidence: 85%.",
    );
    expect((await app.send("GET", paths[0]!)).body).not.toContain('id="goal"');
  });

  test("of a report without a score says why", async () => {
    const { slug: bare } = runWithReport(app, {
      ...niceGrade,
      score: null,
      grade: null,
      outcome: "scoring_failed",
      nullNotice: "The session held no event.",
    });
    const { body } = await app.send("GET", `/reports/${bare}`);
    expect(body).toContain('<p class="notice">The session held no event.</p>');
    expect(body).not.toContain(" big");
    expect((await app.send("GET", `/reports/${bare}.md`)).body).toMatch(/^# Not measured: Upload a file\n/);
  });

  test("of a session has pagination, filters and search", async () => {
    const all = await app.send("GET", `/reports/${slug}/session`);
    expect(all.body).toContain('<details id="e0" class="event-thought">');
    expect(all.body).toContain(`rel="next" href="/reports/${slug}/session?fromSeq=100"`);
    const rest = await app.send("GET", `/reports/${slug}/session?fromSeq=100`);
    expect(rest.body).not.toContain('id="e99"');
    expect(rest.body).toContain('<details id="e120" class="event-end">');
    const ends = await app.send("GET", `/reports/${slug}/session?types=end`);
    expect([...ends.body.matchAll(/<details id="(e\d+)"/g)].map(([, id]) => id)).toEqual(["e120"]);
    const hits = await app.send("GET", `/reports/${slug}/session?search=STEP%2042`);
    expect([...hits.body.matchAll(/<details id="(e\d+)"/g)].map(([, id]) => id)).toEqual(["e42"]);
    expect((await app.send("GET", `/reports/${slug}/session?types=nonsense`)).status).toBe(400);
  });

  test("of an unfinished run updates live, and a finished one doesn't", async () => {
    const refresh = '<noscript><meta http-equiv="refresh" content="5"/></noscript>';
    const done = await app.send("GET", `/runs/${runId}`);
    expect(done.body).toContain(`href="/reports/${slug}"`);
    expect(done.body).not.toContain(refresh);
    expect(done.body).not.toContain("hx-sse:connect");
    const prompt = createPrompt(app.service.ctx, app.a.org, { text: "Wait. https://docs.example.com" });
    const asked = { urlMap: {}, trigger: "api" } as const;
    const [waiting] = (await requestEval(app.service.ctx, app.a.org, prompt.id, asked)).runIds;
    const page = await app.send("GET", `/runs/${waiting}`);
    expect(page.body).toContain(refresh);
    expect(page.body).toContain(`hx-sse:connect="/runs/${waiting}/events?after=0.-1"`);
    expect(page.body).toContain('<span class="status-mark run-pending">');
  });
});

test("of a run or report shows the task at the time of the request, whatever happens to the prompt", async () => {
  const app = testApp();
  const asked = {
    title: "First title",
    text: "Upload {{file}}. https://docs.example.com",
    endGoal: "{{file}} is there.",
  };
  const { id } = (await app.send("POST", "/api/v1/prompts", { body: asked })).body;
  const { runId } = (
    await app.send("POST", `/api/v1/prompts/${id}/run`, {
      body: { urlMap: { "docs.example.com": "https://preview-42.example.com/" }, templateArgs: { file: "a.txt" } },
    })
  ).body;
  await app.send("PATCH", `/api/v1/prompts/${id}`, {
    body: { title: "Other title", text: "Other text", endGoal: "Other goal" },
  });
  const shows = async (path: string) => {
    const { body } = await app.send("GET", path);
    for (const shown of ["First title", "Upload a.txt.", "a.txt is there."]) expect(body).toContain(shown);
    expect(body).not.toContain("Other");
    return body;
  };
  expect(await shows(`/runs/${runId}`)).toContain('href="https://preview-42.example.com/"');
  await app.runJobs();
  expect(await shows(`/runs/${runId}`)).toContain('href="https://preview-42.example.com/"');
  const { slug } = (await app.send("GET", `/api/v1/runs/${runId}`)).body.report;
  for (const path of [`/reports/${slug}`, `/reports/${slug}.md`]) await shows(path);
  expect((await app.send("GET", `/reports/${slug}/session`)).body).toContain("<title>Session: First title");
  expect((await app.send("GET", `/api/v1/reports/${slug}`)).body).toMatchObject({
    task: { title: "First title", text: "Upload a.txt. https://docs.example.com", endGoal: "a.txt is there." },
    prompt: { id, title: "Other title" },
  });
});

describe("text of a target", () => {
  const app = testApp();
  const { slug } = runWithReport(app, hostileGrade, "<script>alert(1)</script> **bold** [a](javascript:alert(1))");

  test("is escaped in a page", async () => {
    for (const path of [`/reports/${slug}`, `/reports/${slug}/session`]) {
      const { body } = await app.send("GET", path);
      expect(body).not.toMatch(/<(script(?! src="\/client\.js)|img|iframe|b)\b/i);
      expect(linksOf(body).filter((href) => !/^(https?:\/\/|\/|#|\?|data:image\/svg)/.test(href))).toEqual([]);
      expect(body).not.toMatch(/<[a-z][^>]*\son\w+=/i);
    }
    const { body } = await app.send("GET", `/reports/${slug}`);
    expect(body).toContain("&lt;script>alert(1)&lt;/script>");
    expect(body).toContain('<span class="address">javascript:alert(1)</span>');
  });

  test("is escaped in Markdown, however it is rendered", async () => {
    const markdown = reportMarkdown(getReport(app.service.ctx, app.a.org, slug));
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
      "2",
      "3",
      "2",
    ]);
    expect(html).toContain("<strong>&lt;img src=x onerror=alert(1)&gt; # not a heading\\</strong>");
    expect(html).toContain("<code>``` &lt;b&gt;quote&lt;/b&gt; ** `x` ![i](http://evil.example/i.png)</code>");
    expect(markdown.replaceAll("\n", "")).not.toMatch(/\p{Cc}|\p{Cf}/u);
  });
});

test("a report as Markdown reads as plain text", () => {
  const app = testApp();
  const { slug } = runWithReport(app, niceGrade);
  const lines = reportMarkdown(getReport(app.service.ctx, app.a.org, slug)).split("\n");
  expect(lines[0]).toBe("# C+ (78.4 of 100): Upload a file");
  expect(lines[2]).toStartWith("Goal not tested · 45% of the scoring weight measured · explorer test · ");
  expect(lines).toContain("| Docs discoverability | 20%    | 88.2  | B+ |");
  expect(lines).toContain("1. **Mend dead links on Quickstart** (+4.1 points, fixes F1)");
  expect(lines).toContain("### F1: Dead link on Quickstart: /reference/client (404)");
  expect(lines).toContain("high · dead link · discovery · new (1 of 1) · 1.4 s lost");
  expect(lines).toContain("> `See the [client reference](/reference/client).`");
  expect(lines).toContain("<https://docs.example.com/quickstart> · evidence: events 1, 2");
});
