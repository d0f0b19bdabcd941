import { afterAll, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { createOrg } from "../../src/auth/orgs.ts";
import { setupPath } from "../../src/auth/setup.ts";
import { findLatestResults } from "../../src/comparisons/latest.ts";
import { jobs } from "../../src/db/tables/jobs.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { complaintsOf, looking, openBrowser } from "../support/browser.ts";
import { goal, guessedPathAnswer, guessedPathSession, guide } from "../support/guessed-path.ts";
import { judgedApp, says } from "../support/judged.ts";
import { password, signedIn } from "../support/people.ts";
import { evaluation, niceGrade, steps } from "../support/reports.ts";

// These tests count the clicks of common tasks. Typing and choosing in a list are not clicks.

const released = Promise.withResolvers<void>();
let isHeld = false;
const app = judgedApp({
  turns: [says(guessedPathAnswer())],
  sessions: async () => {
    if (isHeld) await released.promise;
    return guessedPathSession();
  },
});
const { service, a } = app;
const start = "https://docs.notes.example/";
const { report } = await app.run({ endGoal: goal, text: `Add a note. ${start}` });
const prompt = createPrompt(service.ctx, a.org, { title: "Upload", text: `Upload a file. ${start}` });
const calm = { ...niceGrade, frictions: [], recommendations: [] };
for (const grade of [...Array(6).fill({ ...calm, score: 80 }), ...Array(6).fill({ ...niceGrade, score: 60 })])
  evaluation(app, prompt.id, [grade]);
const [failed] = evaluation(app, prompt.id, ["timeout: took too long"]);

// These runs have ended, so no work is left.
app.db.update(jobs).set({ state: "done", completedAt: 0 }).run();
await service.runner.start();

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 60,
  fetch: (request) => app.app.handle(request),
});
const browser = await openBrowser();
const complaints: string[][] = [];
afterAll(async () => {
  await browser.close();
  server.stop(true);
  await app.stop();
});

/** Opens a new browser. */
async function newPage(cookie = ""): Promise<Page> {
  const context = await browser.newContext(looking(1440, "light"));
  await context.addCookies(
    [...cookie.matchAll(/([^=; ]+)=([^;]*)/g)].map(([, name = "", value = ""]) => ({
      name,
      value,
      url: server.url.href,
    })),
  );
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  complaints.push(complaintsOf(page));
  return page;
}

const owners = await newPage((await signedIn(app)).cookie());

/** A journey that starts at a page, as the owner by default, and counts its clicks. */
async function open(path: string, page = owners) {
  await page.goto(new URL(path, server.url).href);
  const journey = {
    page,
    clicks: 0,
    async click(what: Locator) {
      journey.clicks++;
      await what.click();
    },
    button: (name: string | RegExp) => page.getByRole("button", { name, exact: true }),
    link: (name: string | RegExp) => page.getByRole("link", { name, exact: true }),
  };
  return journey;
}

/** Whether something is on the first screen. */
async function isInView(what: Locator): Promise<boolean> {
  const box = await what.boundingBox();
  return box !== null && box.y >= 0 && box.y + box.height <= 900;
}

/** Moves the focus with the Tab key until it is on an element, as people without a mouse do. */
async function tabTo(page: Page, what: Locator): Promise<void> {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    if (await what.evaluate((element) => element === document.activeElement)) return;
  }
  throw new Error(`the Tab key does not reach ${what}`);
}

test("a new owner gets from the setup link to the first report in at most 6 clicks, by keyboard only", async () => {
  const org = createOrg(service.ctx, "Newcomers").id;
  const { page, button, link } = await open(setupPath(service.ctx, org), await newPage());
  let presses = 0;
  const type = async (label: string, text: string) => {
    await tabTo(page, page.getByLabel(label));
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type(text);
  };
  const press = async (what: Locator, key = "Enter") => {
    await tabTo(page, what);
    await page.keyboard.press(key);
    presses++;
  };
  await type("Your name", "Ada");
  await type("Email", "newcomer@example.com");
  await type("Password", password);
  await press(button("Create account"));
  await page.getByRole("heading", { name: "Test your docs with an agent" }).waitFor();
  await type("Docs URL", start);
  await press(button("Create prompt"));
  isHeld = true;
  await press(page.getByRole("checkbox", { name: /^I agree to pay/ }), "Space");
  await press(button("Run now"));
  await page.waitForURL(/\/runs\//);
  await page.locator(".run-running").first().waitFor();
  released.resolve();
  // The page follows the run.
  await page.locator(".report-link").waitFor();
  await press(page.locator(".report-link a, a.report-link").first());
  await page.locator("#fix-1").waitFor();
  expect(await page.locator(".product").textContent()).toContain("docs.notes.example");
  expect(presses).toBeLessThanOrEqual(6);
  await link("Home").waitFor();
});

test("a report shows the line to change without a click", async () => {
  const { page } = await open(`/reports/${report.slug}`);
  const fix = page.locator("#fix-1");
  for (const shown of [fix.getByText("line 7"), fix.locator(`a[href="${guide}"]`), fix.locator("ins")])
    expect(await isInView(shown)).toBe(true);
});

test("a report is 1 click away from where the agent went wrong", async () => {
  const journey = await open(`/reports/${report.slug}`);
  await journey.click(journey.page.locator(".step-of-failed a"));
  await journey.page.locator("details.failed[open]").first().waitFor();
  expect(journey.clicks).toBeLessThanOrEqual(1);
});

test("friction labels on one event don't overlap, and each is at least 24 pixels high", async () => {
  const [friction] = niceGrade.frictions;
  const frictions = ["a1", "b2", "c3"].map((end) => ({
    ...friction!,
    fingerprint: `00000000000000${end}`,
    events: [2],
  }));
  const other = createPrompt(service.ctx, a.org, { title: "Labels", text: `Upload a file. ${start}` });
  const [labelled] = evaluation(
    app,
    other.id,
    [{ ...niceGrade, frictions, recommendations: [] }],
    {},
    steps("Upload", 120),
  );
  await owners.setViewportSize({ width: 390, height: 844 });
  await open(`/reports/${labelled?.slug}/session`);
  const labels = await owners.locator(".session").getByRole("link", { name: /^F\d$/ }).all();
  const boxes = (await Promise.all(labels.map((label) => label.boundingBox()))).filter((box) => box !== null);
  expect(boxes.length).toBeGreaterThanOrEqual(3);
  for (const { width, height } of boxes) expect([width >= 24, height >= 24]).toEqual([true, true]);
  const isCovered = boxes.some((a, i) =>
    boxes.some(
      (b, j) => i < j && a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height,
    ),
  );
  expect(isCovered).toBe(false);
  await owners.setViewportSize({ width: 1440, height: 900 });
});

test("last week's change is at most 2 clicks away from the verdict and the friction behind it", async () => {
  const journey = await open("/");
  await journey.click(journey.page.locator('[data-kind="score_fell"]').getByRole("link", { name: "See why" }).first());
  expect(await isInView(journey.page.locator(".lead"))).toBe(true);
  await journey.page.locator("[data-fingerprint]").first().waitFor();
  expect(journey.clicks).toBeLessThanOrEqual(2);
});

test("an evaluation is compared with the previous one in at most 2 clicks", async () => {
  const [last] = findLatestResults(service.ctx, a.org, prompt.id)?.points.slice(-1) ?? [];
  const journey = await open(`/evals/${last?.evalRequestId}`);
  await journey.click(journey.link("Compare with previous"));
  await journey.page.locator(".verdict-card").waitFor();
  expect(await journey.page.locator('.compared thead a[href^="/reports/"]').count()).toBeGreaterThanOrEqual(2);
  expect(journey.clicks).toBeLessThanOrEqual(2);
});

test("Home and the run's page show the cause of a failed run without a click", async () => {
  const { page } = await open("/");
  const cause = page.locator('[data-cause="timeout"]');
  expect(await isInView(cause)).toBe(true);
  await page.goto(new URL(`/runs/${failed?.runId}`, server.url).href);
  expect(await isInView(cause)).toBe(true);
});

test("a schedule is set 2 clicks after the prompt", async () => {
  const journey = await open(`/prompts/${prompt.id}`);
  await journey.click(journey.link("Add schedule"));
  await journey.page.getByLabel("Frequency").selectOption("daily");
  await journey.click(journey.button(/^Save/));
  await journey.page.locator(".to-come").first().waitFor();
  expect(journey.clicks).toBeLessThanOrEqual(2);
});

test("a viewer is invited in at most 3 clicks, and joins in one", async () => {
  const journey = await open("/");
  await journey.click(journey.link("Settings"));
  await journey.click(journey.link("Members"));
  await journey.page.getByLabel("Email").fill("reader@example.com");
  await journey.page.getByLabel("Role", { exact: true }).last().selectOption("viewer");
  await journey.click(journey.button("Invite member"));
  const invitation = journey.page.locator(".copy code");
  expect(await isInView(invitation)).toBe(true);
  expect(journey.clicks).toBeLessThanOrEqual(3);

  const reader = await open(new URL((await invitation.textContent()) ?? "").pathname, await newPage());
  await reader.page.getByLabel("Your name").fill("Bea");
  await reader.page.getByLabel("Password").fill(password);
  await reader.click(reader.button(/^Join/));
  await reader.page.getByRole("heading", { name: "Home" }).waitFor();
  expect(await reader.link("New prompt").count()).toBe(0);
  await reader.page.goto(new URL(`/reports/${report.slug}`, server.url).href);
  expect(await isInView(reader.page.locator("#fix-1 ins"))).toBe(true);
});

test("an API key with the setup of an MCP client takes 3 clicks", async () => {
  const journey = await open("/");
  await journey.click(journey.link("Settings"));
  await journey.click(journey.link("API keys"));
  await journey.page.getByLabel("Name").fill("editor");
  await journey.click(journey.button("Create API key"));
  expect(await isInView(journey.page.locator("#new-key"))).toBe(true);
  // Each client has a sample to copy.
  const samples = journey.page.locator(".sample");
  expect(await samples.count()).toBeGreaterThanOrEqual(4);
  expect(await samples.locator("button[data-copy]").count()).toBe(await samples.count());
  expect(journey.clicks).toBeLessThanOrEqual(3);
});

test("a report is shared by link in at most 3 clicks, and the link is visible to copy", async () => {
  const journey = await open(`/reports/${report.slug}`);
  await journey.click(journey.page.getByText("Share", { exact: true }));
  await journey.click(journey.button("Create link"));
  const link = journey.page.locator("#made");
  expect(await isInView(link)).toBe(true);
  expect(await isInView(journey.button("Copy link"))).toBe(true);
  expect(journey.clicks).toBeLessThanOrEqual(3);
  const reader = await open(new URL((await link.textContent()) ?? "").pathname, await newPage());
  expect(await isInView(reader.page.locator("#fix-1 ins"))).toBe(true);
});

test("the docs are searched without leaving the organization", async () => {
  const journey = await open("/docs");
  await journey.page.getByRole("searchbox").first().fill("webhook");
  await journey.page.keyboard.press("Enter");
  await journey.click(journey.page.locator(".found a").first());
  await journey.page.locator("mark, .prose").first().waitFor();
  await journey.click(journey.link(/Back to A/));
  await journey.page.getByRole("heading", { name: "Home" }).waitFor();
});

test("selected runs stay selected while the list updates", async () => {
  const { page, button } = await open("/runs");
  const selected = () => page.locator("#runs input:checked").evaluateAll((all) => all.map(({ id }) => id));
  const boxes = page.locator("#runs input[type=checkbox]");
  const total = await boxes.count();
  const ids = await boxes.evaluateAll((all) => [all[1]?.id, all[3]?.id].map(String));
  for (const id of ids) await page.locator(`#${id}`).check();
  const [added] = evaluation(app, prompt.id, ["timeout: took too long"]);
  service.ctx.signals.jobQueued.emit();
  await page.locator(`#select-${added?.runId}`).waitFor();
  expect([await selected(), await boxes.count()]).toEqual([ids, total + 1]);
  expect(await button("Export").isEnabled()).toBe(true);
});

test("the color scheme changes immediately, keeps what was typed, and stays", async () => {
  const { page, button } = await open("/prompts/new");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.getByLabel("Title").fill("Typed");
  await Promise.all([page.waitForResponse(/\/theme$/), button("Dark").click()]);
  const dark = await background();
  expect([dark === light, await page.getByLabel("Title").inputValue()]).toEqual([false, "Typed"]);
  await page.goto(server.url.href);
  expect(await background()).toBe(dark);
});

test("the browser reports no problem", () => {
  expect(complaints.flat()).toEqual([]);
});
