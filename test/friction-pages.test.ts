import { describe, expect, test } from "bun:test";
import { createPrompt } from "../src/prompts/prompts.ts";
import { createProvider } from "../src/providers/providers.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const none = { ...niceGrade, frictions: [], recommendations: [] };
const friction = niceGrade.frictions[0]!;
const print = friction.fingerprint;

describe("the friction of a prompt", () => {
  const app = testApp();
  const { id } = createPrompt(app.service.ctx, app.a.org, {
    title: "Upload",
    text: "Upload. https://docs.example.com",
  });
  const hostile = {
    ...friction,
    fingerprint: "00000000000000c3",
    title: "<img src=x>",
    severity: "low" as const,
    url: null,
  };
  const [first] = evaluation(app, id, [{ ...niceGrade, frictions: [friction, hostile] }, none]);
  evaluation(app, id, [niceGrade, niceGrade]);
  const asB = { headers: { authorization: `Bearer ${app.b.key}` } };
  const titles = (html: string) => [...html.matchAll(/<a href="\/friction\/(\w+)\?promptId=/g)].map(([, each]) => each);

  test("is listed without duplicates, with its state, and filtered", async () => {
    const { body } = await app.send("GET", "/friction");
    expect(titles(body)).toEqual([print, hostile.fingerprint]);
    expect(body).toContain("3 of 4");
    // The mean cost of a run is shown, not the sum of all.
    expect(body.split(">4.1 points, 1.4 s<")).toHaveLength(3);
    expect(body).toContain("&lt;img src=x>");
    const of = async (query: string) => titles((await app.send("GET", `/friction?${query}`)).body);
    expect(await of(`of=${id}&severity=low`)).toEqual([hostile.fingerprint]);
    expect(await of(`promptId=${id}&severity=critical`)).toEqual([]);
    expect((await app.send("GET", "/friction", asB)).body).toContain('class="empty"');
    for (const [query, status] of [
      ["of=x", 400],
      ["state=gone", 400],
      [`promptId=${crypto.randomUUID()}`, 404],
    ])
      expect([query, (await app.send("GET", `/friction?${query}`)).status]).toEqual([query, status]);
    expect((await app.send("GET", `/friction?promptId=${id}`, asB)).status).toBe(404);
  });

  test("has a history over the evaluations that reached its page, as a chart and a table", async () => {
    const { body } = await app.send("GET", `/friction/${print}?promptId=${id}`);
    expect(body).toContain(": 50%, 100%</title>");
    expect(body).toContain("Dead link on Quickstart: /reference/client (404)</h1>");
    expect(body.match(/<rect class="met"/g)).toHaveLength(2);
    expect((await app.send("GET", `/friction/${print}?promptId=${id}`, asB)).status).toBe(404);
    expect((await app.send("GET", `/friction/none?promptId=${id}`)).status).toBe(404);
    expect((await app.send("GET", `/friction/${print}`)).status).toBe(200);
  });

  test("is marked as done by a person, and verified", async () => {
    const member = await signedIn(app, { role: "member" });
    const path = `/reports/${first?.slug}`;
    expect((await app.send("GET", path)).body).not.toContain(`${path}/done/`);
    expect((await member.get(path)).body).toContain(`action="${path}/done/${print}"`);
    const stranger = await signedIn(app, { org: app.b.org });
    expect((await stranger.post(`${path}/done/${print}`)).status).toBe(404);
    const { status, location } = await member.post(`${path}/done/${print}`);
    expect([status, location]).toEqual([303, `${path}#advice`]);
    const { body } = await member.get(path);
    expect(body).toContain('class="done done-running"');
    expect(body).not.toContain(`${path}/done/`);
    expect((await member.post(`${path}/done/${print}`)).status).toBe(409);
  });
});

describe("a provider", () => {
  const app = testApp();

  test("is added and changed by admins, with errors next to the submitted values", async () => {
    const admin = await signedIn(app, { role: "admin" });
    expect((await admin.get("/providers")).body).toContain('class="empty"');
    const wrong = await admin.post("/providers", { name: "Acme", docsUrl: "ftp://acme", productUrl: "" });
    expect([
      wrong.status,
      wrong.body.includes("Must be an absolute http or https URL"),
      wrong.body.includes('value="ftp://acme"'),
    ]).toEqual([400, true, true]);
    const { status, location } = await admin.post("/providers", {
      name: "<b>Acme</b>",
      docsUrl: "https://docs.acme.example/",
      productUrl: "",
    });
    expect(status).toBe(303);
    const { body } = await admin.get(location ?? "");
    expect(body).toContain("&lt;b>Acme&lt;/b></h1>");
    expect(body).toContain('class="empty"');
    expect((await admin.post(location ?? "", { name: "Acme", docsUrl: "", productUrl: "" })).status).toBe(303);
    expect((await admin.get("/providers")).body).toContain(">Acme</a>");
    const member = await signedIn(app, { role: "member" });
    expect((await member.post("/providers", { name: "Other" })).status).toBe(403);
    expect((await member.get("/providers")).body).not.toContain('action="/providers"');
    const stranger = await signedIn(app, { org: app.b.org });
    expect([
      (await stranger.get(location ?? "")).status,
      (await stranger.post(location ?? "", { name: "Mine" })).status,
    ]).toEqual([404, 404]);
  });

  test("has a docs map with pages read, never reached and guessed", async () => {
    const docs = "https://docs.example.com";
    const provider = createProvider(app.service.ctx, app.a.org, { name: "Docs", docsUrl: `${docs}/` });
    const input = { text: "Upload.", targetProviderId: provider.id };
    const { id } = createPrompt(app.service.ctx, app.a.org, input);
    const visit = { reads: 0, misses: 0, guesses: 0, errors: 0, found: {} };
    const visits = [
      { ...visit, page: `${docs}/start`, url: `${docs}/start`, reads: 2, errors: 1, found: { given: 1, link: 1 } },
      { ...visit, page: `${docs}/nowhere`, url: `${docs}/nowhere`, misses: 1, guesses: 1 },
    ];
    const listed = [{ page: `${docs}/never`, url: `${docs}/<b>never</b>`, by: "link" as const }];
    const exposure = { visits, listed, done: [], isComplete: true, byRules: true };
    const frictions = niceGrade.frictions.map((each) => ({ ...each, url: `${docs}/start` }));
    evaluation(app, id, [{ ...niceGrade, exposure, frictions }]);
    const { status, body } = await app.send("GET", `/providers/${provider.id}`);
    expect(status).toBe(200);
    // Labels say what the issue is, not only how severe it is.
    expect(body).toMatch(/<a class="pill severity severity-high"[^>]*>Dead link on/);
    for (const shown of [
      `<th scope="row" title="${docs}/start">/start</th>`,
      "start URL 1, linked 1",
      '<td class="number worse" data-label="Failures after reading">1 of 2</td>',
      `<code title="${docs}/nowhere">/nowhere</code> <small>1 time</small>`,
      "never",
    ])
      expect(body).toContain(shown);
    expect(body).not.toContain("<b>");
    const [until = ""] =
      /<h2[^>]*>\s*Docs map.*?<\/h2>/s.exec(body)?.[0].match(/\d{4}-\d\d-\d\d(?=<\/time><\/small>)/) ?? [];
    expect(until).toBe(new Date(app.service.ctx.now()).toISOString().slice(0, 10));
  });
});
