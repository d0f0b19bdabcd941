import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { barriersOf, complaintsOf, looking, openBrowser } from "./support/browser.ts";
import { buildExecutable, call, client, emptyFolder, serve, untilRun } from "./support/executable.ts";
import { password } from "./support/people.ts";
import { serveSite } from "./support/site.ts";

let browser: Browser;
beforeAll(async () => {
  await buildExecutable();
  browser = await openBrowser();
}, 120_000);
afterAll(() => browser.close());

const docs = serveSite({
  "/": {
    body: '<title>Acme</title><h1>Acme docs</h1><a href="/about">About us</a> <a href="/guide">Guide to files</a> <a href="/gone">Old guide</a>',
  },
  "/about": { body: "<title>About</title><h1>About us</h1><p>We are a company.</p>" },
  "/guide": {
    body: '<title>Guide</title><h1>Guide to files</h1><p>Begin here.</p><a href="/upload">Upload a file</a>',
  },
  "/upload": {
    body: "<title>Upload</title><h1>Upload a file with Python</h1><p>Call the client.</p><pre><code>client.upload('a.txt')</code></pre>",
  },
});
afterAll(() => docs.stop());

/** A service with a prompt that ran twice, and its owner in a browser. */
async function furnished() {
  const cwd = emptyFolder();
  const service = await serve({ cwd, env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${docs.port}` } });
  await call(["org", "create", "Acme"], { cwd });
  const key = (await call(["key", "create", "--name", "test"], { cwd })).stdout.trim();
  const ask = client(service.url, key);
  const prompt = {
    title: "Upload a file",
    text: `Upload a file with Python. Docs: ${docs.url}/`,
    endGoal: "Upload a file with Python",
  };
  const { id } = (await ask("POST", "/api/v1/prompts", prompt)).body;
  const slugs: string[] = [];
  for (let i = 0; i < 2; i++) {
    const { runId } = (await ask("POST", `/api/v1/prompts/${id}/run`, { urlMap: {} })).body;
    slugs.push((await untilRun(ask, runId, "completed", "failed")).report.slug);
  }
  const link = await call(["org", "setup-link", "Acme"], { cwd });
  const context = await browser.newContext(looking(1440, "light"));
  const page = await context.newPage();
  await page.goto(service.url + new URL(link.stdout.trim()).pathname);
  await page.getByLabel("Your name").fill("Ada");
  await page.getByLabel("Address of mail").fill("ada@acme.example");
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Make me the owner" }).click();
  await page.waitForURL((url) => !url.pathname.startsWith("/setup"));
  return { cwd, service, context, page, slugs };
}

const isOpen = async (page: Page) => expect(await barriersOf(page)).toEqual([]);
const seqOf = (page: Page) => Number(/#e(\d+)$/.exec(page.url())?.[1]);

test("a report is read down to its proof, compared, followed over time, and shared until the link ends", async () => {
  const { cwd, service, context, page, slugs } = await furnished();
  const complaints = complaintsOf(page);

  // From the list to a report, and from a dimension to its curve.
  await page.goto(`${service.url}/reports`);
  expect(await page.locator(".reports tbody tr").count()).toBe(2);
  await isOpen(page);
  await page.locator(`a[href="/reports/${slugs[1]}"]`).click();
  await page.locator(".dimensions summary").first().click();
  await page.locator(".dimensions .curve").first().waitFor();
  expect(await page.locator(".way-rows li").count()).toBeGreaterThan(2);
  await isOpen(page);

  // From a friction to the event that proves it.
  const friction = page.locator(".frictions li", { hasText: "Dead link" });
  await friction
    .getByRole("link", { name: /^event \d+$/ })
    .first()
    .click();
  await page.waitForURL(/\/session\?fromSeq=\d+#e\d+$/);
  const proof = seqOf(page);
  const row = page.locator(`#e${proof}`);
  expect(await row.getByRole("link", { name: /^F\d$/ }).count()).toBeGreaterThan(0);
  await row.locator("summary").click();
  await row.locator(".payload").first().waitFor();
  await isOpen(page);

  // Filtered, and back to one event by its number alone.
  const path = `${service.url}/reports/${slugs[1]}/session`;
  await page.goto(path);
  await page.getByRole("link", { name: /^http/ }).click();
  expect(await page.locator(".events tbody tr:not(.event-http)").count()).toBe(0);
  await page.getByLabel("only failures").check();
  await page.getByRole("button", { name: "Filter" }).click();
  expect(await page.locator(".events tbody tr:not(.failed)").count()).toBe(0);
  expect(await page.locator(".events tbody tr.failed").count()).toBeGreaterThan(0);
  await page.goto(`${path}?types=end#e${proof}`);
  await page.locator(`#e${proof}`).waitFor();
  await page.getByRole("searchbox").fill("no such words");
  await page.keyboard.press("Enter");
  await page.getByText("No event matches.").waitFor();
  await isOpen(page);

  // A payload that is too large for the page comes when it is opened.
  await page.goto(path);
  const lazy = page.locator("details[hx-get]").first();
  await lazy.locator("summary").click();
  await lazy.locator(".payload").first().waitFor();

  await page.goto(`${service.url}/reports`);
  for (const slug of slugs) await page.getByRole("checkbox", { name: `Compare ${slug}` }).check();
  await page.getByRole("button", { name: "Compare the chosen" }).click();
  await page.waitForURL(`${service.url}/compare?slugs=${slugs.join("%2C")}`);
  await page.getByRole("heading", { name: "Compare 2 reports" }).waitFor();
  await isOpen(page);
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.getByRole("img", { name: /^Mean scores of all prompts/ }).waitFor();
  await isOpen(page);

  // What stood in the way, and its life over the evaluations.
  await page.keyboard.press("g");
  await page.keyboard.press("f");
  await page
    .getByRole("link", { name: /^Dead link/ })
    .first()
    .waitFor();
  await isOpen(page);
  await page
    .getByRole("link", { name: /^Dead link/ })
    .first()
    .click();
  await page.getByRole("img", { name: /oldest first: 100 %, 100 %/ }).waitFor();
  await isOpen(page);

  // A provider, and the map of its docs.
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  await page.getByLabel("Name").fill("Acme");
  await page.getByLabel("Where its docs start").fill(docs.url);
  await isOpen(page);
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByRole("heading", { name: "Acme", level: 1 }).waitFor();
  await isOpen(page);

  // A link for people without an account.
  await page.goto(`${service.url}/reports/${slugs[1]}`);
  await page.getByText("A link for people without an account").click();
  await page.getByLabel("With the session").check();
  await page.getByRole("button", { name: "Make a link" }).click();
  const shared = (await page.locator("#made").textContent()) ?? "";
  await isOpen(page);
  const stranger = await browser.newContext(looking(390, "dark"));
  const their = await stranger.newPage();
  const theirs = complaintsOf(their);
  await their.goto(shared);
  await their.getByRole("heading", { name: "Upload a file", level: 1 }).waitFor();
  await isOpen(their);
  await their.getByRole("link", { name: "Open the session" }).click();
  await their.locator(".events tbody tr").first().waitFor();
  await isOpen(their);
  expect([...complaints, ...theirs]).toEqual([]);
  const db = new Database(join(cwd, "data", "evald.db"));
  db.run("update share_links set expires_at = created_at");
  db.close();
  expect((await their.goto(shared))?.status()).toBe(404);
  await isOpen(their);

  await stranger.close();
  await context.close();
  expect(await service.stop()).toBe(0);
}, 180_000);
