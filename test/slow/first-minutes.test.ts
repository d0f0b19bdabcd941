import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Locator, Page } from "playwright-core";
import { complaintsOf, looking, openBrowser } from "../support/browser.ts";
import { buildExecutable, call, emptyFolder, serve } from "../support/executable.ts";
import { password } from "../support/people.ts";
import { serveSite } from "../support/site.ts";

// The first minutes of a person with the executable: from the setup link to the report of their own docs.

setDefaultTimeout(120_000);

const toPage = (title: string, body: string) => ({
  body: `<!doctype html><html lang="en"><title>${title}</title><h1>${title}</h1>${body}</html>`,
});
const docs = serveSite({
  "/": toPage("Widgets", `<p>Start here.</p><a href="/start">Getting started</a> <a href="/gone">Limits</a>`),
  "/start": toPage(
    "Getting started",
    `<h2>Complete the first example</h2><p>Follow the getting started guide.</p><pre><code class="language-sh">widget run first</code></pre>`,
  ),
});
const docsUrl = `${docs.url}/`;
const closedUrl = "http://127.0.0.1:9/";
const cwd = emptyFolder();
let service: Awaited<ReturnType<typeof serve>>;
let browser: Browser;
let page: Page;
let complaints: string[];

beforeAll(async () => {
  await buildExecutable();
  service = await serve({
    cwd,
    env: { EVALD_WELCOME: "1", EVALD_ALLOW_PRIVATE: new URL(docs.url).host },
  });
  await service.said(/Read it/);
  browser = await openBrowser();
  page = await (await browser.newContext(looking(1440, "light"))).newPage();
  complaints = complaintsOf(page);
}, 300_000);
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  docs.stop();
});

const at = (path: string) => page.goto(service.url + path);
const main = () => page.locator("main").textContent();
const isUuid = /[0-9a-f]{8}-[0-9a-f]{4}-7/;

test("the command alone and a wrong setting say what to do", async () => {
  const alone = await call([], { cwd });
  expect(alone.stdout + alone.stderr).toContain("evald serve");
  for (const value of ["true", "1"]) {
    const { code, stderr } = await call(["serve"], { cwd: emptyFolder(), env: { EVALD_ALLOW_PRIVATE: value } });
    expect([value, code, stderr.includes("EVALD_ALLOW_PRIVATE")]).toEqual([value, 2, true]);
  }
});

test("visitors see the example's report and where the first account comes from", async () => {
  for (const path of ["/", "/sign-in"]) {
    await at(path);
    const text = (await main()) ?? "";
    expect([path, text.includes("evald org setup-link"), /Ask an owner/.test(text)]).toEqual([path, true, false]);
  }
  await at("/");
  await page.getByRole("link", { name: "Open the example report" }).click();
  expect(await page.locator(".planted").textContent()).toBe("4 planted mistakes, 4 found");
  expect(await page.locator(".fix").count()).toBe(4);
});

test("the report of one's own docs is 4 fields and 3 clicks away from the setup link", async () => {
  const counts = { fields: 0, clicks: 0 };
  const fill = async (label: string, text: string) => {
    counts.fields++;
    await page.getByLabel(label).fill(text);
  };
  const click = async (what: Locator) => {
    counts.clicks++;
    await what.click();
  };
  const [, setup = ""] = await service.said(/Create your account +http:\/\/[^/]+(\/setup\/\S+)/);
  await at(setup);
  // The organization can be named here, and is not asked for.
  expect(await page.getByLabel("Organization").inputValue()).toBe("Example");
  await fill("Your name", "Nora");
  await fill("Email", "nora@example.com");
  await fill("Password", password);
  await click(page.getByRole("button", { name: "Create account" }));
  await fill("Docs URL", docsUrl);
  await click(page.getByRole("button", { name: "Create and run" }));
  await page.waitForURL(/\/runs\//);
  await page.locator(".report-link").waitFor();
  // The page of a run that has ended doesn't claim to be live.
  await page.locator("#timeline-state", { hasText: /^\d+ events$/ }).waitFor();
  expect(await page.getByText("Follow newest event").isVisible()).toBe(false);
  expect(await page.locator("#toast").textContent()).toBe("");
  await click(page.locator("a.report-link"));
  await page.locator("#fix-1").waitFor();
  expect(await page.locator("#fix-1").textContent()).toContain("/gone");
  expect(await page.title()).toMatch(/^Docs [\d.]+: Follow the getting started guide/);
  expect(await page.locator(".score-line").textContent()).toMatch(
    /^Docs [\d.]+ of 100 · Goal not tested: add a success check/,
  );
  expect(counts).toEqual({ fields: 4, clicks: 3 });
});

test("the example's report on the server has all planted mistakes, and each costs points", async () => {
  await at("/reports");
  await page.getByRole("link", { name: "Upload a file" }).first().click();
  await page.locator(".planted").waitFor();
  expect(await page.locator(".planted").textContent()).toBe("4 planted mistakes, 4 found");
  const gains = await page.locator(".fix .gain").allInnerTexts();
  expect(gains.map((gain) => Number.parseFloat(gain) >= 1)).toEqual([true, true, true, true]);
});

test("docs that runs can't reach are refused when they are saved, with the value to set", async () => {
  await at("/prompts/new");
  await page.getByLabel("Docs URL").fill(closedUrl);
  await page.getByLabel("Task", { exact: true }).fill("Run it.");
  await page
    .getByRole("button", { name: /^Create/ })
    .first()
    .click();
  await page.locator("#docsUrl-wrong").waitFor();
  expect(await page.locator("#docsUrl-wrong").textContent()).toMatch(/127\.0\.0\.1:9 .*EVALD_ALLOW_PRIVATE/);
});

test("lists name prompts by their task, and scores without a dash", async () => {
  for (const path of ["/prompts", "/reports", "/runs", "/trends", "/friction"]) {
    await at(path);
    const text = (await main()) ?? "";
    expect([path, isUuid.test(text), text.includes("Follow the getting started guide")]).toEqual([path, false, true]);
  }
  await at("/prompts");
  expect(await page.locator(".result").allInnerTexts()).toEqual([
    expect.stringMatching(/^Docs [\d.]+$/),
    expect.stringMatching(/^Docs [\d.]+$/),
  ]);
});

test("an invitation is a sentence that is true without email", async () => {
  await at("/settings/members");
  await page.getByLabel("Email").fill("vic@example.com");
  const form = page.locator("form", { has: page.getByLabel("Email") });
  await form.getByLabel("Role").selectOption("viewer");
  await form.getByRole("button").click();
  const link = await page.locator("code", { hasText: "/invite/" }).first().textContent();
  const guest = await (await browser.newContext(looking(390, "dark"))).newPage();
  await guest.goto(link ?? "");
  const text = await guest.locator("main").textContent();
  expect(text).toContain("Nora invited you to Example as a viewer.");
  expect(text).not.toContain("sent to");
});

test("the setting of the service decides which docs its commands accept", async () => {
  const create = (env: Record<string, string>) =>
    call(["prompt", "create", "--text", "Run it.", "--start-url", docsUrl], { cwd, env });
  expect((await create({})).code).toBe(0);
  const other = ["prompt", "create", "--text", "Run it.", "--start-url", closedUrl];
  expect((await call(other, { cwd, env: { EVALD_ALLOW_PRIVATE: "127.0.0.1" } })).stderr).toMatch(/127\.0\.0\.1:9 /);
  // The refused form is the only response that is not a page.
  expect(complaints.filter((complaint) => !complaint.includes("status of 400"))).toEqual([]);
});
