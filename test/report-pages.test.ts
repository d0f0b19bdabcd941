import { beforeAll, describe, expect, test } from "bun:test";
import type { AgentEvent } from "../src/agents/agent.ts";
import { transaction } from "../src/db/open.ts";
import type { DimensionPart, Grade } from "../src/grading/grade.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { addGrading } from "../src/reports/gradings.ts";
import { goalAnswer, section } from "./fixtures/grading/session.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, hostileGrade, niceGrade, runWithReport } from "./support/reports.ts";

type App = ReturnType<typeof testApp>;
type Browser = Awaited<ReturnType<typeof signedIn>>;
const asB = ({ b }: App) => ({ authorization: `Bearer ${b.key}` });
const rows = (html: string) =>
  [...html.matchAll(/<details id="e(\d+)"/g)].map(([, seq]) => Number(seq)).sort((a, b) => a - b);
const slugsOf = (html: string) =>
  [...html.matchAll(/<input type="checkbox" id="[^"]+" name="([^"]+)"/g)].map(([, slug]) => slug);

const form = { origin: "http://localhost:3000", "content-type": "application/x-www-form-urlencoded" };
const docs = "https://docs.example.com";
const got = (path: string, more: object = {}): AgentEvent => ({
  ...{ type: "http", id: "t1", method: "GET", url: docs + path, mappedUrl: null, status: 200, ms: 40, bytes: 2000 },
  ...{ contentType: "text/html", provenance: "link", foundOn: `${docs}/`, purpose: "task", error: null },
  ...more,
});
const read = (path: string, title: string): AgentEvent => ({
  type: "milestone",
  name: "page_read",
  detail: { url: docs + path, chars: 900, form: "html", title },
});
const matched = (path: string): AgentEvent => ({
  type: "milestone",
  name: "section_matched",
  detail: section(docs + path, "Upload", ["upload"]),
});
const started: AgentEvent = {
  type: "milestone",
  name: "started",
  detail: { agent: "explorer", version: "test", kind: "rules", model: null, goal: "Upload", starts: [`${docs}/`] },
};
const walk: AgentEvent[] = [
  started,
  { type: "milestone", name: "goal_terms", detail: { terms: ["upload"] } },
  got("/", { provenance: "given", foundOn: null }),
  read("/", "Start"),
  got("/about"),
  read("/about", "About us"),
  got("/guide"),
  read("/guide", "Guide"),
  matched("/guide"),
  got("/upload", { foundOn: `${docs}/guide` }),
  read("/upload", "Upload a file"),
  matched("/upload"),
  goalAnswer({
    ...{ state: "likely", sections: 1, fit: 1, clicks: 4, pages: 4 },
    nearest: [section(`${docs}/upload`, "Upload", ["upload"])],
  }),
  got("/uploads", { provenance: "guessed", foundOn: null, status: 404 }),
  { type: "end", outcome: "not_judged", reason: "Nobody judges here." },
];

describe("the list of reports", () => {
  const app = testApp();
  const good = runWithReport(app, { ...niceGrade, score: 93, grade: "A" }, "Good docs").slug;
  const fair = runWithReport(app, niceGrade, "Fair docs").slug;
  const missed = runWithReport(app, { ...niceGrade, score: 40, grade: "F", outcome: "goal_not_met" }, "Bad docs").slug;

  test.each([
    ["", [missed, fair, good]],
    ["?outcome=goal_not_met", [missed]],
    ["?worst=C", [fair, good]],
    ["?worst=C&best=C", [fair]],
    ["?best=D", [missed]],
    ["?agent=llm", []],
    ["?status=draft", []],
    ["?offset=1", [fair, good]],
  ])("shows the matching reports: %s", async (query, slugs) => {
    const { status, body } = await app.send("GET", `/reports${query}`);
    expect([status, slugsOf(body)]).toEqual([200, slugs]);
  });

  test("reports invalid filters, and is empty for another organization", async () => {
    expect((await app.send("GET", "/reports?best=Z")).status).toBe(400);
    expect((await app.send("GET", "/reports", { headers: { authorization: "" } })).status).toBe(401);
    const { body } = await app.send("GET", "/reports", { headers: asB(app) });
    expect([slugsOf(body), body.includes('class="empty"')]).toEqual([[], true]);
  });

  test("has pages", async () => {
    const many = testApp();
    const made = Array.from({ length: 51 }, (_, i) => runWithReport(many, niceGrade, `Report ${i}`).slug).reverse();
    const first = (await many.send("GET", "/reports?agent=explorer")).body;
    expect(slugsOf(first)).toEqual(made.slice(0, 50));
    expect(first).toContain('rel="next" href="/reports?agent=explorer&amp;offset=50"');
    const last = (await many.send("GET", "/reports?agent=explorer&offset=50")).body;
    expect(slugsOf(last)).toEqual(made.slice(50));
    expect(last).toContain('rel="prev" href="/reports?agent=explorer"');
  });
});

describe("a report", () => {
  const app = testApp();
  const parts: DimensionPart[] = [
    {
      ...{ name: "Path to the goal", value: 23, unit: "pages", score: 47.1, weight: 0.5, counts: {} },
      curve: { best: 2, worst: 32, floor: 40, scale: "log" },
    },
    {
      ...{ name: "Links", value: 0.994, unit: "share", score: 99.4, weight: 0.5, counts: {} },
      curve: { best: 1, worst: 0, floor: 0, scale: "linear" },
    },
  ];
  const dimensions: Grade["dimensions"] = [
    { name: "Docs discoverability", weight: 0.2, score: 73.2, grade: "C", parts, unmeasured: ["Code samples"] },
  ];
  const { slug } = runWithReport(app, { ...niceGrade, dimensions }, "Upload a file", walk);
  const path = `/reports/${slug}`;

  test("shows the parts of each dimension, on their curves", async () => {
    const { body } = await app.send("GET", path);
    for (const { name, score } of parts) expect(body).toContain(`<title>${name}: ${score} of 100 (100 at `);
    expect(body.match(/class="curve /g)).toHaveLength(2);
    expect(body).toContain("Not measured: code samples.");
    // Between 32 pages on the left and 2 on the right, 23 is at 30 %.
    expect(body).toContain('<circle class="point" cx="85.0" cy="38.7" r="4">');
  });

  test("without a proven goal leads those who may edit to the success checks of the prompt", async () => {
    const conduct = { ...niceGrade, scope: "conduct_only", evidence: "judged", grade: null } as const;
    const { slug } = runWithReport(app, conduct);
    const promptId = (await app.send("GET", `/api/v1/reports/${slug}`)).body.prompt.id;
    const link = `href="/prompts/${promptId}/edit#checks"`;
    const seenBy = async (role: "member" | "viewer", slug: string) =>
      (await (await signedIn(app, { role })).get(`/reports/${slug}`)).body.includes(link);
    expect([await seenBy("member", slug), await seenBy("viewer", slug)]).toEqual([true, false]);
    const form = await (await signedIn(app, { role: "member" })).get(`/prompts/${promptId}/edit`);
    expect(form.body).toContain('<fieldset id="checks">');
    const proven = runWithReport(app, { ...conduct, scope: "goal", evidence: "verified", grade: "B+" });
    const page = await (await signedIn(app, { role: "member" })).get(`/reports/${proven.slug}`);
    expect(page.body).not.toContain("edit#checks");
  });

  test("shows the pages visited: which helped, which were dead ends, which didn't exist", async () => {
    const { body } = await app.send("GET", path);
    const steps = [...body.matchAll(/<li class="step-([\w-]+)"><span class="page" title="([^"]+)"[^>]*>([^<]*)/g)];
    expect(steps.map(([, kind, url, title]) => [kind, url, title])).toEqual([
      ["read", `${docs}/`, "Start"],
      ["dead-end", `${docs}/about`, "About us"],
      ["read", `${docs}/guide`, "Guide"],
      ["goal", `${docs}/upload`, "Upload a file"],
      ["missed", `${docs}/uploads`, "/uploads"],
    ]);
    expect(body).toContain('<span class="what">404</span>');
    expect(body).toContain(`href="${path}/session?fromSeq=6#e9">event 9</a>`);
  });

  test("is also JSON and Markdown", async () => {
    const { body, headers } = await app.send("GET", `${path}.json`);
    expect(headers.get("content-type")).toBe("application/json");
    expect(body).toEqual((await app.send("GET", `/api/v1${path}`)).body);
    expect((await app.send("GET", `${path}.json`, { headers: asB(app) })).status).toBe(404);
    expect((await app.send("GET", path)).body).toContain(`data-copy-from="${path}.md"`);
  });

  test("is published, made a draft or archived only by a form of this service", async () => {
    const member = await signedIn(app, { role: "admin" });
    const stranger = await signedIn(app, { org: app.b.org });
    const statusOf = async () => (await app.send("GET", `/api/v1${path}`)).body.status;
    const { status, location } = await member.post(`${path}/status`, { status: "draft" });
    expect([status, location, await statusOf()]).toEqual([303, path, "draft"]);
    expect((await member.get(path)).body).toContain('<span class="pill">draft</span>');
    const refused = [
      await member.post(`${path}/status`, { status: "archived" }, { origin: "https://evil.example" }),
      await app.send("POST", `${path}/status`, { body: "status=archived", headers: form }),
      await member.post(`${path}/status`, { status: "deleted" }),
      await stranger.post(`${path}/status`, { status: "archived" }),
      await app.send("POST", `${path}/status`, { body: "status=archived", headers: { ...form, authorization: "" } }),
    ];
    expect(refused.map((each) => each.status)).toEqual([403, 403, 400, 404, 401]);
    expect(await statusOf()).toBe("draft");
    expect((await app.send("GET", path)).body).not.toContain(`action="${path}/status"`);
  });
});

test("fixes have one color in the bar of a score, however many there are", async () => {
  const app = testApp();
  const [fix] = niceGrade.recommendations as [Grade["recommendations"][number]];
  const recommendations = [1, 2, 3].map((priority) => ({ ...fix, priority, title: `Fix ${priority}`, lostPoints: 4 }));
  const lost = { fixes: 18.5, agent: 0, network: 0, unmeasured: 0, total: 18.5 };
  const { slug } = runWithReport(app, { ...niceGrade, recommendations, lost });
  const { body } = await (await signedIn(app)).get(`/reports/${slug}`);
  const classes = [...body.matchAll(/<li class="([^"]+)" data-segment="fix"/g)].map(([, name]) => name);
  expect([classes.length, new Set(classes).size]).toEqual([3, 1]);
});

test("has gradings, one of which an admin can pin", async () => {
  const app = testApp();
  const { slug } = runWithReport(app, niceGrade);
  const path = `/reports/${slug}`;
  const [admin, member] = [await signedIn(app, { role: "admin" }), await signedIn(app, { role: "member" })];
  expect((await admin.get(path)).body).not.toContain('id="gradings"');
  const { id } = app.db.$client.query<{ id: string }, []>("select id from reports").get() ?? { id: "" };
  const methodology = { ...niceGrade.methodology, id: "acme-1", hash: "b".repeat(64) };
  const other = { ...niceGrade, score: 41.5, grade: "F", methodology } as Grade;
  transaction(app.db, (tx) => addGrading(app.service.ctx, tx, id, { grade: other, repeat: 1, judging: null }));
  const cells = async (who: Browser) => {
    const { body } = await who.get(path);
    const table = body.slice(body.indexOf('id="gradings"'));
    return [
      ...table.matchAll(/<th scope="row">(\S+) .*?<td class="number">([\d.]+)<.*?<td>((?:<form|\w+|–)).*?<\/tr>/gs),
    ].map(([row, name, score]) => [name, score, /Pinned/.test(row), /<button/.test(row)]);
  };
  const first = niceGrade.score?.toFixed(1);
  expect(await cells(admin)).toEqual([
    [niceGrade.methodology.id, first, false, true],
    ["acme-1", "41.5", false, true],
  ]);
  expect((await member.post(`${path}/grading`, { grading: id })).status).toBe(403);
  expect((await admin.post(`${path}/grading`, { grading: id })).location).toBe(`${path}#gradings`);
  expect((await app.send("GET", `/api/v1${path}`)).body.score).toBe(niceGrade.score);
  expect(await cells(member)).toEqual([
    [niceGrade.methodology.id, first, true, false],
    ["acme-1", "41.5", false, false],
  ]);
  await admin.post(`${path}/grading`, { grading: "" });
  expect((await app.send("GET", `/api/v1${path}`)).body.score).toBe(41.5);
});

describe("a session", () => {
  const app = testApp();
  const call = (i: number, tool: string, ok: boolean): AgentEvent[] => [
    { type: "tool_call", id: `c${i}`, tool, input: { command: `step ${i}` } },
    { type: "tool_result", id: `c${i}`, tool, ok, output: { stdout: `line one\nline ${i}`, exitCode: ok ? 0 : 1 } },
  ];
  const events: AgentEvent[] = [
    started,
    ...call(1, "run_command", true),
    ...call(2, "read_page", false),
    got("/gone", { status: 404 }),
    { type: "usage", model: "openai/gpt-5", inputTokens: 800, outputTokens: 20, costUsd: 0.0125 },
    { type: "error", where: "model", message: "rate limited", url: null, retryable: true },
    { type: "message", text: `<img src=x onerror=alert(1)> ${"long ".repeat(400)}` },
    { type: "end", outcome: "not_judged", reason: "done" },
  ];
  const { slug } = runWithReport(app, niceGrade, "Upload a file", events);
  const path = `/reports/${slug}/session`;
  const shown = async (query: string) => rows((await app.send("GET", path + query)).body);

  test.each([
    ["", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
    ["?failed=1", [4, 5, 7]],
    ["?source=gateway", [6]],
    ["?tool=run_command", [1, 2]],
    ["?tool=run_command&failed=1", []],
    ["?types=tool_call,usage", [1, 3, 6]],
    ["?limit=4&fromSeq=5", [5, 6, 7, 8]],
    ["?limit=4&beforeSeq=5", [1, 2, 3, 4]],
    ["?limit=2&types=tool_call,usage&beforeSeq=6", [1, 3]],
  ])("can be filtered: %s", async (query, seqs) => expect(await shown(query)).toEqual(seqs));

  test("that is large leaves turns for other requests while its page is rendered", async () => {
    const app = testApp();
    const calls: AgentEvent[] = Array.from({ length: 500 }, (_, i) => [
      { type: "tool_call" as const, id: `${i}`, tool: "fetch_page", input: { url: `https://docs.test/${i}` } },
      { type: "tool_result" as const, id: `${i}`, tool: "fetch_page", ok: true, output: {} },
    ]).flat();
    const { slug } = runWithReport(app, niceGrade, "Upload a file", calls);
    const { get } = await signedIn(app);
    let isOpen = true;
    const page = get(`/reports/${slug}/session`).finally(() => (isOpen = false));
    let turns = 0;
    for (; isOpen; turns++) await new Promise((resolve) => setImmediate(resolve));
    expect((await page).status).toBe(200);
    // One for each 50 events.
    expect(turns).toBeGreaterThanOrEqual(20);
  });

  test("has links in both directions only if there is more", async () => {
    const turns = async (query: string) => {
      const { body } = await app.send("GET", path + query);
      return [
        ...new Set([...body.matchAll(/rel="(prev|next)" href="[^"]*\?([^"]*)"/g)].map(([, rel, to]) => `${rel} ${to}`)),
      ];
    };
    expect(await turns("?limit=4")).toEqual(["next limit=4&amp;fromSeq=4"]);
    expect(await turns("?limit=4&fromSeq=4")).toEqual(["prev limit=4&amp;beforeSeq=4", "next limit=4&amp;fromSeq=8"]);
    expect(await turns("?limit=4&beforeSeq=4")).toEqual(["next limit=4&amp;fromSeq=4"]);
    expect(await turns("?limit=2&failed=1&fromSeq=5")).toEqual(["prev failed=1&amp;limit=2&amp;beforeSeq=5"]);
    expect(await turns("?failed=1&fromSeq=3")).toEqual([]);
  });

  test("shows an overview, the next failure, and the evidence and cost of each event", async () => {
    const { body } = await app.send("GET", path);
    expect(body).toContain('<input type="checkbox" name="failed"');
    expect(body).toContain('href="?fromSeq=0#e1" title="Dead link on Quickstart: /reference/client (404)"');
    expect(body).toContain(`<a class="pill proves" href="/reports/${slug}#F1">F1</a>`);
    expect(body).toContain("<span>$0.0125</span>");
    expect(body).toContain("$0.01<");
    expect(body).toContain('<details id="e7" class="event-error failed">');
    const later = (await app.send("GET", `${path}?limit=2`)).body;
    expect(later).toContain('data-jump="next" href="?fromSeq=1#e4"');
    expect(body).toContain('<pre dir="auto" lang>line one\nline 1</pre>');
  });

  test("loads a large payload when it is opened, as text", async () => {
    const { body } = await app.send("GET", path);
    expect(body).toContain(
      `<details id="e8" class="event-message" hx-get="${path}/8" hx-trigger="toggle once" hx-target="find .whole" hx-swap="outerHTML">`,
    );
    expect(body).not.toContain("long ".repeat(60));
    const whole = await app.send("GET", `${path}/8`);
    expect(whole.body).toContain("<h1>Event 8: message</h1>");
    const part = await app.send("GET", `${path}/8`, { headers: { "hx-request": "true" } });
    expect(part.body).toStartWith('<dl class="payload"><div><dt>text</dt>');
    for (const html of [whole.body, part.body]) {
      expect(html).toContain(`&lt;img src=x onerror=alert(1)> ${"long ".repeat(400)}`);
      expect(html).not.toContain("<img");
    }
  });

  test("does not exist for another organization or with an unknown event", async () => {
    const paths = [`${path}/10`, `${path}/x`, `${path}/-1`, `${path}/1.5`, "/reports/none-00000000/session/1"];
    for (const each of paths) expect([each, (await app.send("GET", each)).status]).toEqual([each, 404]);
    for (const each of [path, `${path}/1`])
      expect((await app.send("GET", each, { headers: asB(app) })).status).toBe(404);
    for (const query of ["?source=nobody", "?failed=2", "?fromSeq=x", "?beforeSeq=-1"])
      expect([query, (await app.send("GET", path + query)).status]).toEqual([query, 400]);
  });
});

describe("a share link", () => {
  let now = Date.parse("2026-11-21T09:00:00Z");
  const app = testApp({ now: () => now });
  const { slug } = runWithReport(app, hostileGrade, "<script>alert(1)</script>");
  const path = `/reports/${slug}`;
  const nobody = { headers: { authorization: "" } };
  let owner: Browser;
  beforeAll(async () => {
    owner = await signedIn(app);
  });
  const make = async (fields: Record<string, string>) => {
    const { status, body } = await owner.post(`${path}/shares`, fields);
    const url = /<code id="made">([^<]+)</.exec(body)?.[1] ?? "";
    return { status, shared: new URL(url).pathname };
  };
  const look = (address: string) => app.send("GET", address, nobody);

  test("shows the report to anyone who has the link, without exposing its URL", async () => {
    const { status, shared } = await make({ days: "7" });
    expect([status, /^\/shared\/[\w-]{43}$/.test(shared)]).toEqual([200, true]);
    const { status: seen, body, headers } = await look(shared);
    expect([seen, headers.get("referrer-policy"), headers.get("x-robots-tag"), headers.get("cache-control")]).toEqual([
      200,
      "no-referrer",
      "noindex, nofollow",
      "private, no-store",
    ]);
    expect(body).toContain('<meta name="robots" content="noindex"/>');
    expect(body).toContain("&lt;script>alert(1)&lt;/script>");
    expect(body).not.toMatch(/href="\/(reports|runs|prompts|friction)\b/);
    // Organization, date of the run and validity; nothing of the service around it.
    for (const text of ['<strong dir="auto" lang>A</strong>', "2026-11-21", "2026-11-28"])
      expect([text, body.includes(text)]).toEqual([text, true]);
    expect(body).not.toMatch(/href="\/("|docs"|docs\/api|sign-in|llms)/);
    expect([...body.matchAll(/<form[^>]* action="([^"]+)"/g)].map(([, action]) => action)).toEqual(["/theme"]);
    expect((await look(`${shared}/session`)).status).toBe(404);
    expect((await look(`${shared}/session/1`)).status).toBe(404);
    const stored = app.db.$client.query("select * from share_links").all();
    expect(JSON.stringify(stored)).not.toContain(shared.slice(8));
    expect((await app.send("GET", path)).body).not.toContain(shared);
  });

  test("shows the session if it is included", async () => {
    const { shared } = await make({ days: "1", session: "1" });
    expect((await look(shared)).body).toContain(`href="${shared}/session?fromSeq=0#e1"`);
    const { status, body } = await look(`${shared}/session?search=step%2042`);
    expect([status, rows(body)]).toEqual([200, [42]]);
    expect(body).not.toMatch(/href="\/reports\b/);
    expect((await look(`${shared}/session/42`)).status).toBe(200);
  });

  test("is invalid after it expires, is revoked or its report is archived, and then equals an unknown link", async () => {
    const links: string[] = [];
    for (const days of ["1", "30", "30"]) links.push((await make({ days })).shared);
    const stranger = await signedIn(app, { org: app.b.org });
    const listed = (await owner.get(path)).body;
    const [newest] = [...listed.matchAll(/action="([^"]+\/revoke)"/g)].map(([, action]) => action ?? "");
    expect((await stranger.post(newest ?? "")).status).toBe(404);
    expect((await owner.post(newest ?? "", {}, { origin: "https://evil.example" })).status).toBe(403);
    expect((await look(links[2] ?? "")).status).toBe(200);
    // The page asks first, and names what is lost.
    const asked = await owner.post(newest ?? "");
    expect([asked.status, (await look(links[2] ?? "")).status]).toEqual([200, 200]);
    expect(asked.body).toContain("the report");
    expect((await owner.post(newest ?? "", { confirmed: "1" })).status).toBe(303);
    now += 24 * 3600_000;
    expect((await owner.get(path)).body).toContain("<small>revoked</small>");
    const [expired, alive, revoked] = await Promise.all(links.map(look));
    expect(alive?.status).toBe(200);
    const unknown = `/shared/${"A".repeat(43)}`;
    const absent = await look(unknown);
    const same = ({ status, headers, body }: typeof absent, address: string) => ({
      status,
      body: String(body).replaceAll(address, ""),
      headers: Object.fromEntries([...headers].filter(([name]) => name !== "x-request-id")),
    });
    const none = same(absent, unknown);
    expect(none.status).toBe(404);
    expect(same(expired!, links[0]!)).toEqual(none);
    expect(same(revoked!, links[2]!)).toEqual(none);
    expect((await owner.post(`${path}/status`, { status: "archived" })).status).toBe(200);
    expect((await look(links[1]!)).status).toBe(200);
    await owner.post(`${path}/status`, { status: "archived", confirmed: "1" });
    expect(same(await look(links[1]!), links[1]!)).toEqual(none);
  });

  test("can be created only by owners, with an offered lifetime, for their own reports", async () => {
    for (const days of ["", "0", "365", "7.5", "x"])
      expect((await owner.post(`${path}/shares`, { days })).status).toBe(400);
    const admin = await signedIn(app, { role: "admin" });
    expect((await admin.get(path)).body).not.toContain("/shares");
    expect((await admin.post(`${path}/shares`, { days: "7" })).status).toBe(403);
    const stranger = await signedIn(app, { org: app.b.org });
    expect((await stranger.post(`${path}/shares`, { days: "7" })).status).toBe(404);
    expect((await owner.post(`${path}/shares`, { days: "7" }, { origin: "null" })).status).toBe(403);
  });
});

describe("a comparison of reports", () => {
  const app = testApp();
  const prompt = createPrompt(app.service.ctx, app.a.org, {
    title: "Upload",
    text: "Upload. https://docs.example.com",
  });
  const scored = (score: number, more: Partial<Grade> = {}) => ({ ...niceGrade, score, ...more });
  const [first] = evaluation(
    app,
    prompt.id,
    [90, 91, 92, 91].map((score) => scored(score)),
  );
  const worse = { dimensions: [niceGrade.dimensions[0]!, { ...niceGrade.dimensions[1]!, score: 12.5, grade: "F" }] };
  const point = { ...niceGrade.frictions[0]!, fingerprint: "00000000000000b2", title: "<b>Page gone</b>" };
  const frictions = [{ ...point, url: null }];
  const [last] = evaluation(
    app,
    prompt.id,
    [70, 71, 72, 71].map((score) => scored(score, { ...worse, frictions, recommendations: [] })),
  );
  const [a, b] = [first?.slug ?? "", last?.slug ?? ""];

  test("is started from the list, oldest report first", async () => {
    const { status, headers } = await app.send("GET", `/compare?${b}=1&${a}=1`);
    expect([status, headers.get("location")]).toEqual([303, `/compare?slugs=${a}%2C${b}`]);
  });

  test("has a verdict with evidence, dimensions in the order of a report, and new and resolved friction", async () => {
    const { body } = await app.send("GET", `/compare?slugs=${a},${b}`);
    for (const shown of [
      '<section class="verdict-card verdict-regressed"',
      '<svg class="delta"',
      "&lt;b>Page gone&lt;/b>",
      `href="/reports/${b}"`,
    ])
      expect(body).toContain(shown);
    const table = body.slice(body.indexOf('<table class="list compared">'));
    const rows = [...table.matchAll(/<th scope="row">([A-Z][\w ]+)<\/th>/g)].map(([, name]) => name);
    expect(rows.slice(0, 3)).toEqual(["Score", "Docs discoverability", "Docs quality"]);

    expect(body).toContain('<td class="number worse">−51.8</td>');
    const groups = [...body.matchAll(/data-group="(\w+)" data-count="(\d)"/g)];
    expect(groups.map(([, group, count]) => [group, count])).toEqual([
      ["new", "1"],
      ["resolved", "1"],
    ]);
  });

  test("isn't needed to see a report's repeats and baseline", async () => {
    const { body } = await app.send("GET", `/reports/${b}`);
    for (const shown of [
      "mean 71 (95% CI 69.7–72.3) over 4 runs",
      "vs. 91, the mean of 4 runs",
      'data-usual="false"',
      '<span class="worse">−51.8</span>',
    ])
      expect(body).toContain(shown);
    const { id } = createPrompt(app.service.ctx, app.a.org, { text: "https://docs.example.com" });
    const [before, after] = [90, 60].map((score) => evaluation(app, id, Array(5).fill(scored(score)))[0]);
    const isMarked = async (slug = "") => (await app.send("GET", `/reports/${slug}`)).body.includes("change-regressed");
    expect([await isMarked(before?.slug), await isMarked(after?.slug)]).toEqual([false, true]);
    // Equal scores have no interval.
    const [same] = evaluation(
      app,
      createPrompt(app.service.ctx, app.a.org, { text: "https://docs.example.com" }).id,
      Array(4).fill(scored(78.3)),
    );
    const equal = (await app.send("GET", `/reports/${same?.slug}`)).body;
    expect([equal.includes("78.3 in all 4 runs"), equal.includes("78.3–78.3")]).toEqual([true, false]);
    const single = runWithReport(app, niceGrade, "Single").slug;
    expect((await app.send("GET", `/reports/${single}`)).body).not.toContain("95% CI");
  });

  test("within one evaluation or across prompts says why there is no verdict", async () => {
    const other = runWithReport(app, niceGrade, "Other prompt").slug;
    const { body } = await app.send("GET", `/compare?slugs=${a},${other}`);
    expect(body).toMatch(/verdict-(none|not_comparable)/);
    expect(body.match(/id="differences"/g)).toHaveLength(1);
    // Differences have names, not IDs.
    expect(body).not.toMatch(/prompt: [0-9a-f]{8}-/);
  });

  test("takes 2 to 10 reports of the organization", async () => {
    const eleven = Array.from({ length: 11 }, (_, i) => `r-${i}`).join();
    const asked = ["", `?slugs=${a}`, `?slugs=${a},${a}`, `?slugs=${eleven}`, `?slugs=${a},none-00000000`];
    const statuses = await Promise.all(asked.map(async (query) => (await app.send("GET", `/compare${query}`)).status));
    expect(statuses).toEqual([303, 400, 400, 400, 404]);
    expect((await app.send("GET", `/compare?slugs=${a},${b}`, { headers: asB(app) })).status).toBe(404);
  });
});

describe("trends", () => {
  let now = Date.parse("2026-11-02T09:00:00Z");
  const app = testApp({ now: () => now });
  const { id } = createPrompt(app.service.ctx, app.a.org, {
    title: "<b>Upload</b>",
    text: "Upload. https://docs.example.com",
  });
  for (const scores of [[80, 82, 81], [84], [70, 72]]) {
    evaluation(
      app,
      id,
      scores.map((score) => ({ ...niceGrade, score })),
    );
    now += 7 * 24 * 3600_000;
  }

  test("are drawn with their bands, and listed in a table", async () => {
    const { body } = await app.send("GET", `/trends?promptId=${id}`);
    expect(body).toMatch(/<title>[^<]*&lt;b>Upload&lt;\/b>[^<]* 81 [^<]*2026-11-02[^<]* 71 [^<]*2026-11-16/);
    expect(body.match(/<circle /g)).toHaveLength(3);
    expect(body.match(/<path class="range"/g)).toHaveLength(2);
    const rows = [
      ...body.matchAll(
        /<th scope="row" class="when"><time[^>]*>([\d-]+)<\/time><\/th><td class="number"[^>]*>(\d)<\/td><td class="number"[^>]*>([\d.]+)/g,
      ),
    ];
    expect(rows.map(([, from, n, mean]) => [from, n, mean])).toEqual([
      ["2026-11-16", "2", "71"],
      ["2026-11-09", "1", "84"],
      ["2026-11-02", "3", "81"],
    ]);
    expect(body).toContain("UTC");
  });

  test("include the day that they end on", async () => {
    const { body } = await app.send("GET", `/trends?promptId=${id}&interval=day&until=2026-11-09`);
    const days = [...body.matchAll(/<th scope="row" class="when"><time[^>]*>([\d-]+)</g)].map(([, day]) => day);
    expect(days).toEqual(["2026-11-09", "2026-11-02"]);
    expect(body).toContain('name="until" value="2026-11-09"');
  });

  test("that start and end with a time show the first and the last day of it", async () => {
    const period = "since=2026-11-02T00:00:00Z&until=2026-11-09T00:00:00Z";
    const { body } = await app.send("GET", `/trends?promptId=${id}&${period}`);
    expect(body).toContain('name="since" value="2026-11-02"');
    expect(body).toContain('name="until" value="2026-11-08"');
  });

  test("of another methodology have their own line and table", async () => {
    const { id } = createPrompt(app.service.ctx, app.a.org, { text: "Upload. https://docs.example.com" });
    const before = { methodology: { id: "0", hash: "000000000000", judge: null } };
    for (const grade of [{ ...niceGrade, ...before, score: 40 }, niceGrade]) {
      evaluation(app, id, [grade, grade]);
      now += 7 * 24 * 3600_000;
    }
    const { body } = await app.send("GET", `/trends?promptId=${id}`);
    expect(body.match(/<polyline class="line"/g)).toHaveLength(2);
    expect(body).toMatch(/<g class="other">.*?<title>[\d-]+: 40, 2 runs/);
    expect(body).toContain('data-methodology="000000000000"');
    expect(body).toContain("methodology</strong> 0 00000000 → 3 3f9c0a17");
  });

  test("of two agent versions are two lines with a mark between them", async () => {
    const { id } = createPrompt(app.service.ctx, app.a.org, { text: "Upload. https://docs.example.com" });
    for (const score of [40, 80]) {
      evaluation(app, id, [{ ...niceGrade, score }]);
      now += 7 * 24 * 3600_000;
    }
    app.db.$client.run("update score_days set version = '0.169.0' where prompt_id = ? and scores = '[40]'", [id]);
    const { body } = await app.send("GET", `/trends?promptId=${id}`);
    expect(body.match(/<polyline class="line"/g)).toHaveLength(2);
    expect(body).toMatch(/<g class="mark" data-what="agent version"><title>[^<]*0\.169\.0 → test/);
    expect(body).toContain('data-version="0.169.0"');
  });

  test("without runs, or of another organization, are empty and say what to do", async () => {
    for (const [query, headers] of [
      ["?until=2026-01-01", {}],
      ["", asB(app)],
    ] as const) {
      const { status, body } = await app.send("GET", `/trends${query}`, { headers });
      expect([status, body.includes('class="empty"')]).toEqual([200, true]);
    }
    const refused = ["?promptId=x", "?interval=year", "?since=yesterday", `?promptId=${crypto.randomUUID()}`];
    const statuses = await Promise.all(refused.map(async (query) => (await app.send("GET", `/trends${query}`)).status));
    expect(statuses).toEqual([400, 400, 400, 404]);
  });
});
