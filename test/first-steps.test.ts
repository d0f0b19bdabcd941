import { expect, test } from "bun:test";
import { createKey, flushLastUsed } from "../src/auth/keys.ts";
import { updateOrg } from "../src/auth/orgs.ts";
import { setupPath } from "../src/auth/setup.ts";
import { findLatestResults } from "../src/comparisons/latest.ts";
import { listPrompts } from "../src/prompts/lists.ts";
import { createPrompt, getPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { createProvider } from "../src/providers/providers.ts";
import { getReport } from "../src/reports/reports.ts";
import { listRunPage } from "../src/runs/lists.ts";
import { requestEval } from "../src/runs/requests.ts";
import { getRunTask } from "../src/runs/runs.ts";
import { testApp } from "./support/app.ts";
import { browse, password, signedIn } from "./support/people.ts";
import { evaluation, finishRuns, niceGrade } from "./support/reports.ts";

const docs = "https://docs.example.com/";
const countOf = (app: ReturnType<typeof testApp>) =>
  listPrompts(app.service.ctx, app.a.org, { limit: 10, offset: 0, includeArchived: true }).total;

test("a prompt without any URL is rejected at its docs URL; with one it is created and run", async () => {
  const app = testApp();
  const person = await signedIn(app);
  for (const path of ["/", "/prompts/new"]) expect((await person.get(path)).body).toContain('name="docsUrl"');

  const form = { text: "Follow the guide.", do: "run" };
  const refused = await person.post("/prompts", form);
  expect([refused.status, refused.body.includes('id="docsUrl-wrong"'), countOf(app)]).toEqual([400, true, 0]);
  const { body } = await person.post("/prompts", { ...form, docsUrl: "docs.example.com" });
  expect([body.includes('id="docsUrl-wrong"'), countOf(app)]).toEqual([true, 0]);
  // The value of a variable may be a URL, and a provider may have one.
  const provider = createProvider(app.service.ctx, app.a.org, { name: "Acme", docsUrl: docs });
  for (const [name, value] of [
    ["text", "Read {{url}}."],
    ["targetProviderId", provider.id],
    ["text", `Read ${docs}`],
  ] as const)
    expect((await person.post("/prompts", { ...form, [name]: value, do: "" })).status).toBe(303);
  const bare = createProvider(app.service.ctx, app.a.org, { name: "Bare" });
  expect((await person.post("/prompts", { ...form, targetProviderId: bare.id })).status).toBe(400);

  const made = await person.post("/prompts", { ...form, docsUrl: docs });
  expect(made.location).toStartWith("/runs/");
  const [run] = listRunPage(app.service.ctx, app.a.org, {}, { limit: 2 }).items;
  expect(getRunTask(app.service.ctx, app.a.org, run?.runId ?? "").task.startUrls).toEqual([docs]);
  const prompt = getPrompt(app.service.ctx, app.a.org, run?.promptId ?? "");
  expect(prompt.additionalUrls as unknown).toEqual([{ url: docs, kind: "docs" }]);
  // The page of the prompt asks for the values of variables.
  expect((await person.post("/prompts", { ...form, docsUrl: docs, text: "{{a}}" })).location).toStartWith("/prompts/");
});

test("owners see the first steps, checked one by one, until they are done or hidden", async () => {
  const app = testApp();
  const { service, a } = app;
  const owner = await signedIn(app);
  const done = async () => (await owner.get("/")).body.match(/<li class="done"/g)?.length ?? 0;
  expect(await done()).toBe(0);
  const example = createProvider(service.ctx, a.org, { name: "Example", docsUrl: `${app.baseUrl}/example` });
  const shown = createPrompt(service.ctx, a.org, { text: "x", targetProviderId: example.id });
  const [{ slug } = {}] = evaluation(app, shown.id, [niceGrade]);
  expect(await done()).toBe(0);
  // The example must not hide the form for one's own docs.
  const home = (await owner.get("/")).body;
  expect([home.includes('name="docsUrl"'), home.includes(`/reports/${slug}"`)]).toEqual([true, true]);
  const { id } = createPrompt(service.ctx, a.org, { text: docs });
  expect(await done()).toBe(1);
  expect((await owner.get("/")).body).not.toContain('name="docsUrl"');
  evaluation(app, id, [niceGrade]);
  expect(await done()).toBe(2);
  updatePrompt(service.ctx, a.org, id, { frequency: "daily" });
  await app.send("GET", "/api/v1/whoami");
  flushLastUsed(service.ctx, { isStopping: true });
  expect(await done()).toBe(4);
  expect((await (await signedIn(app, { role: "admin", email: "b@example.com" })).get("/")).body).not.toContain(
    'id="steps"',
  );
  // The other member completed the list.
  expect((await owner.get("/")).body).not.toContain('id="steps"');

  const other = await signedIn(app, { org: app.b.org, email: "c@example.com" });
  createPrompt(service.ctx, app.b.org, { text: docs });
  expect((await other.get("/")).body).toContain('id="steps"');
  expect((await other.post("/first-steps/hide")).location).toBe("/");
  expect((await other.get("/")).body).not.toContain('id="steps"');
});

test("home lists a change of the level and failed runs, and counts runs in progress", async () => {
  const app = testApp();
  const { id } = createPrompt(app.service.ctx, app.a.org, { text: docs, title: "Upload" });
  for (const score of [80, 80, 80, 80, 80, 80, 60, 60, 60, 60, 60, 60]) evaluation(app, id, [{ ...niceGrade, score }]);
  evaluation(app, id, ["infrastructure: no network", "timeout: too long"]);
  await requestEval(app.service.ctx, app.a.org, id, { urlMap: {}, trigger: "api", runs: 3 });
  const { body } = await (await signedIn(app)).get("/");
  const lines = [...body.matchAll(/data-kind="(\w+)".*?<strong class="size \w+">(.*?)<\/strong>/gs)];
  expect(lines.map(([, kind, size]) => [kind, size])).toEqual([
    ["score_fell", "−20.0"],
    ["runs_failed", "2 of 2 failed"],
  ]);
  expect(body).toContain("3 runs in progress");
  const change = findLatestResults(app.service.ctx, app.a.org, id)?.change;
  expect(change).toMatchObject({ verdict: "regressed", delta: -20 });
  // Its two reports are the last before and the first after the change.
  const scores = change?.slugs.map((slug) => getReport(app.service.ctx, app.a.org, slug).score);
  expect(scores).toEqual([80, 60]);
  finishRuns(app, () => 60);
});

test("common passwords are rejected, and phrases are not", async () => {
  const app = testApp();
  const path = setupPath(app.service.ctx, app.a.org);
  const person = { name: "Ada", email: "ada@example.com" };
  for (const weak of ["password1234", "123456789012", "aaaaaaaaaaaaa", "qwertyuiop12", "P@ssw0rd!2345"])
    expect([weak, (await browse(app).post(path, { ...person, password: weak })).status]).toEqual([weak, 400]);
  expect((await browse(app).post(path, { ...person, password })).status).toBe(303);
});

test("times are shown in the time zone of the organization, with its name", async () => {
  const at = Date.parse("2026-11-21T23:30:00Z");
  const app = testApp({ now: () => at });
  const { org } = app.a;
  updateOrg(app.service.ctx, org, { timeZone: "Asia/Tokyo" });
  const { id } = createPrompt(app.service.ctx, org, { text: docs });
  const [run, reported] = evaluation(app, id, ["timeout: too long", niceGrade]);
  const person = await signedIn(app);
  const report = `/reports/${reported?.slug}`;
  const { body: sharing } = await person.post(`${report}/shares`, { days: "7" });
  const [, link = ""] = /(\/shared\/[\w-]+)/.exec(sharing) ?? [];
  const { body: shared } = await app.send("GET", link, { headers: { authorization: "" } });
  expect(shared).toContain("2026-11-29 08:30 GMT+9");
  expect((await person.get(report)).body).toContain("Expires <time");
  for (const path of [
    "/runs",
    `/runs/${run?.runId}`,
    report,
    `${report}/session`,
    "/settings/keys",
    "/settings/members",
    "/account",
  ]) {
    if (path === "/settings/keys") createKey(app.service.ctx, org, "ci", { lifeMs: 3600_000 });
    const { body } = await person.get(path);
    expect([path, /2026-11-2\d \d\d:\d\d UTC|\d\d:\d\d:\d\d UTC/.test(body)]).toEqual([path, false]);
    if (path !== "/account")
      expect([
        path,
        body.includes("2026-11-22 08:30 GMT+9") ||
          body.includes("2026-11-22 09:30 GMT+9") ||
          body.includes("2026-11-22<"),
      ]).toEqual([path, true]);
  }
});
