import { afterAll, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { createKey, listKeys } from "../../src/auth/keys.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import { findPerson } from "../../src/auth/people.ts";
import { complaintsOf, looking, openBrowser } from "../support/browser.ts";
import { demo } from "../support/demo.ts";
import { join, signedIn } from "../support/people.ts";

// The tasks of a team after three weeks, with their clicks counted. Typing and choosing in a list are not clicks.

const app = await demo();
const { service, a, b, prompts } = app;
const leaver = "lena@acme.example";
join(app, a.org, "admin", leaver);
createKey(service.ctx, a.org, "Key of Lena", { createdBy: findPerson(service.ctx, leaver)?.id });
const owner = await signedIn(app, { email: "ada@acme.example" });
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.app.handle(request) });
const browser = await openBrowser();
const complaints: string[][] = [];
afterAll(async () => {
  await browser.close();
  server.stop(true);
  await app.stop();
});

async function newPage(cookie = ""): Promise<Page> {
  const context = await browser.newContext(looking(1440, "light"));
  const cookies = [...cookie.matchAll(/([^=; ]+)=([^;]*)/g)];
  await context.addCookies(cookies.map(([, name = "", value = ""]) => ({ name, value, url: server.url.href })));
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  complaints.push(complaintsOf(page));
  return page;
}
const owners = await newPage(owner.cookie());

/** A journey from a page, by default as the owner, that counts its clicks. */
async function open(path: string, page = owners) {
  await page.goto(new URL(path, server.url).href);
  const journey = {
    page,
    main: page.locator("main"),
    clicks: 0,
    async click(what: Locator) {
      journey.clicks++;
      await what.click();
    },
    link: (name: string | RegExp) => page.getByRole("link", { name, exact: true }).first(),
    button: (name: string | RegExp) => page.getByRole("button", { name, exact: true }).first(),
  };
  return journey;
}
const text = async ({ main }: { main: Locator }) => (await main.textContent()) ?? "";

test("what got worse last week is on Home, and 1 click away from its reasons", async () => {
  const journey = await open("/");
  await journey.click(journey.page.locator('[data-kind="score_fell"]').getByRole("link", { name: "See why" }).first());
  await journey.page.waitForURL(/\/why$/);
  expect([await text(journey), journey.clicks]).toEqual([expect.stringContaining("Search the notes"), 1]);
});

test("what a failed run needs is 1 click away, on the main button of its notice", async () => {
  const failed = app.db.$client.query("select id from runs where failure_code is not null limit 1").values()[0]?.[0];
  const journey = await open(`/runs/${failed}`);
  await journey.click(journey.page.locator(".failure .main"));
  await journey.page.waitForURL(/\/(prompts|docs|settings|runs)\//);
  expect(journey.clicks).toBe(1);
});

test("the gate that failed is 1 click away from the friction behind it", async () => {
  const journey = await open("/gates");
  await journey.click(journey.main.locator('a[href*="/gates/"]').last());
  await journey.page.waitForURL(/\/gates\/[0-9a-f-]{36}$/);
  await journey.page.locator('main a[href*="/friction/"], main a[href*="/reports/"]').first().waitFor();
  expect(journey.clicks).toBe(1);
});

test("what models cost is 1 click away", async () => {
  const journey = await open("/");
  await journey.click(journey.link("Spending"));
  await journey.page.locator("#by-prompt").waitFor();
  expect(journey.clicks).toBe(1);
});

test("agents are side by side 2 clicks from Home, and 1 more from the runs of a cell", async () => {
  const journey = await open("/");
  await journey.click(journey.link("Prompts"));
  await journey.click(journey.link("Compare agents side by side"));
  const cell = journey.page.locator(".matrix td a").last();
  await cell.waitFor();
  expect(await journey.page.locator(".matrix thead th").count()).toBe(3);
  expect(await journey.page.getByText("No runs").count()).toBeGreaterThan(0);
  expect(journey.clicks).toBe(2);
  await journey.click(cell);
  await journey.page.waitForURL(/\/reports\?promptId=/);
  await journey.page.locator('#reports a[href^="/reports/"]').first().waitFor();
});

test("a change of a prompt is 2 clicks away in Trends, with what it is compared with", async () => {
  const journey = await open("/");
  await journey.click(journey.link("Trends"));
  await journey.page.getByLabel("Prompt or tag").selectOption(prompts.search);
  await journey.click(journey.link("Compare before and after"));
  await journey.page.locator(".verdict-card").waitFor();
  expect(journey.clicks).toBe(2);
});

test("a viewer reads everything, and sees no button that they can't use", async () => {
  const viewer = await signedIn(app, { role: "viewer" });
  const page = await newPage(viewer.cookie());
  for (const path of ["/", `/prompts/${prompts.search}`, `/reports/${app.slug}`, "/prompts", "/gates", "/matrix"]) {
    const journey = await open(path, page);
    const buttons = await journey.main.getByRole("button").allTextContents();
    expect([path, buttons.filter((name) => /^(Run|New|Archive|Share|Edit|Delete|Cancel)/.test(name.trim()))]).toEqual([
      path,
      [],
    ]);
    expect([path, await journey.main.getByRole("link", { name: /^(New|Edit) / }).count()]).toEqual([path, 0]);
  }
});

test("a writer with a shared link sees the fix without a click, and copies it with one", async () => {
  const journey = await open(app.sharedPath, await newPage());
  await journey.page.locator("#fix-1").waitFor();
  const copy = journey.page.locator("#fix-1 button[data-copy]").first();
  expect([await copy.isVisible(), journey.clicks]).toEqual([true, 0]);
});

test("customers read the results page without an account", async () => {
  const { resultsPath } = updateOrg(service.ctx, a.org, { hasResultsPage: true });
  const journey = await open(resultsPath ?? "", await newPage());
  expect(await text(journey)).toContain("Add a note");
  expect(await text(journey)).not.toContain("Untitled");
});

test("the other organization is 2 clicks away", async () => {
  const both = await signedIn(app, { role: "member", email: "both@acme.example" });
  join(app, b.org, "member", "both@acme.example");
  const journey = await open("/", await newPage(both.cookie()));
  const current = journey.page.locator("details.org summary");
  const other = (await current.textContent()) === "B" ? "Acme" : "B";
  await journey.click(current);
  await journey.click(journey.button(other));
  await journey.page.locator("details.org summary", { hasText: new RegExp(`^${other}$`) }).waitFor();
  expect(journey.clicks).toBe(2);
}, 60_000);

test("a person who leaves is removed with their keys in 5 clicks", async () => {
  const journey = await open("/");
  await journey.click(journey.link("Settings"));
  await journey.click(journey.link("Members"));
  const row = journey.page.locator("tr", { hasText: leaver });
  await journey.click(row.getByRole("button", { name: /^Remove/ }));
  await journey.click(journey.page.getByLabel("Revoke this API key"));
  await journey.click(journey.button("Remove member"));
  await journey.page.getByText("Member removed.").waitFor();
  expect(journey.clicks).toBe(5);
  const key = listKeys(service.ctx, a.org).find(({ name }) => name === "Key of Lena");
  expect([key?.revokedAt === null, key?.createdBy?.isMember]).toEqual([false, false]);
}, 60_000);

test("the browser reports no problem", () => {
  expect(complaints.flat()).toEqual([]);
});
