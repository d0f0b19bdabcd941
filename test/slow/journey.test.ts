import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { barriersOf, complaintsOf, looking, openBrowser } from "../support/browser.ts";
import { buildExecutable, call, emptyFolder, serve } from "../support/executable.ts";
import { password } from "../support/people.ts";
import { serveSite } from "../support/site.ts";

/** Resolves once the first run was seen in progress. */
const released = Promise.withResolvers<void>();
const docs = serveSite({
  "/": {
    body: '<title>Acme</title><h1>Acme docs</h1><a href="/about">About us</a> <a href="/upload">Upload a file</a> <a href="/gone">Upload a file with Python</a>',
  },
  "/about": { body: "<title>About</title><h1>About us</h1><p>We are a company.</p>" },
  "/upload": async () => {
    await released.promise;
    return new Response("<title>Upload</title><h1>Upload a file with Python</h1><p>Call the client.</p>", {
      headers: { "content-type": "text/html" },
    });
  },
});

let browser: Browser;
beforeAll(async () => {
  await buildExecutable();
  browser = await openBrowser();
}, 300_000);
afterAll(async () => {
  docs.stop();
  await browser.close();
});

/** All problems reported by a browser, including CSP violations. */
const complaints: string[][] = [];

/** Opens a new browser. */
async function open(how: BrowserContextOptions = looking(1440, "light")): Promise<Page> {
  const context = await browser.newContext(how);
  const page = await context.newPage();
  complaints.push(complaintsOf(page));
  return page;
}

/**
 * The page is accessible and nothing overflows. This is for what a page shows only after input, because every-page.test.ts checks the pages
 * themselves.
 */
async function look(page: Page): Promise<void> {
  expect(await barriersOf(page)).toEqual([]);
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect([page.url(), Math.max(0, beyond)]).toEqual([page.url(), 0]);
}

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

async function keys(page: Page, ...strokes: string[]): Promise<void> {
  for (const stroke of strokes) await page.keyboard.press(stroke);
}

test("a first start leads to a report shared by link", async () => {
  const cwd = emptyFolder();
  const env = {
    EVALD_ALLOW_PRIVATE: `127.0.0.1:${docs.port}`,
    EVALD_PEOPLE_MAKE_ORGS: "1",
    EVALD_WELCOME: "1",
    // Nothing is submitted there: its prompts are only viewed.
    OPENAI_COMPATIBLE_BASE_URL: docs.url,
    OPENAI_COMPATIBLE_API_KEY: "sk-never-sent",
  };
  const service = await serve({ cwd, env });
  const at = (path: string) => service.url + path;
  const ada = await open();

  // The first start prints the URL to create the first owner's account.
  await ada.goto((await service.said(/Create your account\s+(http\S+)/))[1] as string);
  await ada.getByLabel("Your name").fill("Ada");
  await ada.getByLabel("Email").fill("ada@example.com");
  await ada.getByLabel("Password").fill(password);
  await press(ada, "Create account");
  await ada.waitForURL(at("/"));

  // Sign out, and in again at the requested page.
  await press(ada, "Sign out");
  await ada.waitForURL(at("/sign-in"));
  await ada.goto(at("/account"));
  await ada.waitForURL(at("/sign-in?next=%2Faccount"));
  await ada.getByLabel("Email").fill("ada@example.com");
  await ada.getByLabel("Password").fill(password);
  await press(ada, "Sign in");
  await ada.waitForURL(at("/account"));

  // A new organization is empty: its pages say how to start. The switcher leads back.
  await ada.getByLabel("Organization name").fill("Acme");
  await press(ada, "Create organization");
  await ada.locator(".first h1").waitFor();
  await ada.locator("details.org summary").click();
  await press(ada, "Example");
  await ada.locator("details.org summary", { hasText: "Example" }).waitFor();
  await ada.locator("details.org summary").click();
  await press(ada, "Acme");
  await ada.locator(".first h1").waitFor();
  await ada.goto(at("/settings"));
  await ada.getByLabel("Time zone").fill("Europe/Berlin");
  await press(ada, "Save settings");
  await ada.getByRole("status").waitFor();

  // A prompt is created by keyboard. Variables and times appear while typing.
  await keys(ada, "g", "p");
  await ada.locator(".empty a.button").click();
  await ada.getByLabel("Title").fill("Upload a file");
  await ada.getByLabel("Task").pressSequentially(`Upload a file with {{language}}. Docs: ${docs.url}/`);
  await ada.getByLabel("End goal", { exact: true }).fill("Upload a file with {{language}}");
  await ada.getByRole("textbox", { name: "language" }).fill("Python");
  await ada.getByLabel("Frequency").selectOption("daily");
  await ada.locator(".times", { hasText: "Europe/Berlin" }).waitFor();
  const times = await ada.locator(".times li").allTextContents();
  expect(times).toHaveLength(3);
  expect(await ada.getByRole("textbox", { name: "language" }).inputValue()).toBe("Python");
  await ada.getByLabel("Frequency").selectOption("cron");
  await ada.getByLabel("Cron expression").fill("61 * * * *");
  await ada.getByText('"61 * * * *" is not a valid schedule').waitFor();
  await ada.getByLabel("Frequency").selectOption("daily");
  await ada.locator(".times li").first().waitFor();
  await look(ada);
  await press(ada, "Create prompt");
  await ada.locator("#run-form").waitFor();
  expect(await ada.locator(".to-come > span:first-child").allTextContents()).toEqual(times);

  // A run updates live while a page of the docs is delayed.
  await press(ada, "Run now");
  await ada.waitForURL(/\/runs\/[0-9a-f-]{36}$/);
  const run = new URL(ada.url()).pathname;
  await ada.locator(".timeline .what", { hasText: "/upload" }).first().waitFor();
  await ada.locator(".status-mark.run-running").waitFor();
  await look(ada);
  const home = await ada.context().newPage();
  complaints.push(complaintsOf(home));
  await home.goto(service.url);
  await home.locator(".summary", { hasText: "1 run in progress" }).waitFor();
  released.resolve();
  await ada.locator(".report-link").waitFor();
  await home.locator(".summary", { hasText: "0 runs in progress" }).waitFor();
  await home.close();
  expect(await ada.locator(".status-mark.run-completed").count()).toBe(1);
  // The live updates equal the page opened afterwards.
  const seen = await ada.locator(".timeline li").count();
  await ada.reload();
  expect(await ada.locator(".timeline li").count()).toBe(seen);
  await press(ada, "Run again");
  await ada.waitForURL((url) => url.pathname.startsWith("/runs/") && url.pathname !== run);
  await ada.locator(".report-link").waitFor();
  await ada.locator('a[href^="/evals/"]').click();
  await ada.locator(".tiles").waitFor();

  // The list is filtered on selection, and searched by keyboard.
  await ada.goto(at("/runs"));
  await ada.getByLabel("Status").selectOption("failed");
  await ada.locator("#runs .empty").waitFor();
  expect(new URL(ada.url()).searchParams.get("status")).toBe("failed");
  await ada.getByLabel("Status").selectOption("");
  await ada.locator(`a[href="${run}"]`).waitFor();
  await keys(ada, "g", "p");
  await ada.waitForURL(at("/prompts"));
  await keys(ada, "/");
  await ada.keyboard.type("no such words");
  await ada.locator("#prompts .empty").waitFor();
  await look(ada);
  await ada.goto(at("/prompts"));
  await keys(ada, "?");
  await ada.locator("#keys[open]").waitFor();
  await look(ada);
  await press(ada, "Close");

  // A report is read down to the curve of a dimension and the evidence of a friction point.
  await keys(ada, "g", "r");
  await ada.waitForURL(at("/reports"));
  const slugs = await ada
    .locator('input[type="checkbox"]')
    .evaluateAll((all) => all.map((each) => each.getAttribute("name") ?? ""));
  expect(slugs).toHaveLength(2);
  const report = at(`/reports/${slugs[0]}`);
  await ada.locator(`a[href="/reports/${slugs[0]}"]`).click();
  await ada.locator(".dimensions summary").first().click();
  await ada.locator(".dimensions .curve").first().waitFor();
  expect(await ada.locator(".visit-rows li").count()).toBeGreaterThan(1);
  await ada.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await ada.locator("#method > summary").click();
  await press(ada, "Copy as Markdown");
  await press(ada, "Copied");
  expect(await ada.evaluate(() => navigator.clipboard.readText())).toStartWith("# ");
  await ada.locator("#friction > summary").click();
  const friction = ada.locator(".frictions li", { hasText: "Dead link" });
  await friction
    .getByRole("link", { name: /^event \d+$/ })
    .first()
    .click();
  await ada.waitForURL(/\/session\?fromSeq=\d+#e\d+$/);
  const proof = ada.url().slice(ada.url().indexOf("#"));
  const row = ada.locator(proof);
  expect(await ada.locator(".line", { has: row }).getByRole("link", { name: /^F\d$/ }).count()).toBeGreaterThan(0);
  await row.locator(".payload").first().waitFor();
  await look(ada);

  // The session has filters and shows one event by its number. A large payload loads when it is opened.
  await ada.goto(`${report}/session`);
  await ada.getByRole("link", { name: /^http/ }).click();
  expect(await ada.locator(".line > details:not(.event-http)").count()).toBe(0);
  await ada.getByLabel("Failures only").check();
  await press(ada, "Filter");
  expect(await ada.locator(".line > details.failed").count()).toBeGreaterThan(0);
  await ada.goto(`${report}/session?types=end${proof}`);
  await ada.locator(proof).waitFor();
  await ada.getByRole("searchbox").fill("no such words");
  await keys(ada, "Enter");
  await ada.locator(".session .empty").waitFor();
  await look(ada);
  await ada.goto(`${report}/session`);
  const lazy = ada.locator("details[hx-get]").first();
  await lazy.locator("summary").click();
  await lazy.locator(".payload").first().waitFor();

  // Comparison and trends follow.
  await ada.goto(at("/reports"));
  for (const slug of slugs) await ada.getByRole("checkbox", { name: `Select ${slug}` }).check();
  await press(ada, "Compare");
  await ada.waitForURL(at(`/compare?slugs=${slugs.toReversed().join("%2C")}`));
  await ada.locator(".verdict-card").waitFor();
  // The search goes anywhere by keyboard.
  await keys(ada, "Control+k");
  await ada.keyboard.type("trends");
  await ada.locator('#palette a[aria-selected="true"]', { hasText: "Trends" }).waitFor();
  await look(ada);
  await keys(ada, "Enter");
  await ada.locator("svg.trend").waitFor();
  await keys(ada, "g", "f");
  const thing = ada.getByRole("link", { name: /^Dead link/ }).first();
  await thing.waitFor();
  await thing.click();
  await ada.getByRole("img", { name: /: 100%, 100%$/ }).waitFor();
  await keys(ada, "g", "d");
  await ada.getByLabel("Name").fill("Acme");
  await ada.getByLabel("Docs URL").fill(docs.url);
  await press(ada, "Add provider");
  await ada.getByRole("heading", { name: "Acme", level: 1 }).waitFor();

  // A key is shown once, used by a program, revoked, and rejected from then on.
  await ada.goto(at("/settings/keys"));
  await ada.getByLabel("Name").fill("ci");
  await press(ada, "Create API key");
  const key = (await ada.locator("#new-key").textContent()) ?? "";
  await look(ada);
  const asProgram = async (path: string, accept = "*/*") =>
    (await fetch(at(path), { headers: { authorization: `Bearer ${key}`, accept } })).status;
  expect([await asProgram("/api/v1/prompts"), await asProgram("/runs", "text/html")]).toEqual([200, 200]);
  await ada.goto(at("/settings/keys"));
  expect(await ada.content()).not.toContain(key);
  await press(ada, "Revoke ci");
  await look(ada);
  await press(ada, "Revoke key");
  await ada.getByRole("status").waitFor();
  expect([await asProgram("/api/v1/prompts"), await asProgram("/runs", "text/html")]).toEqual([401, 401]);

  // An invited person signs in on a phone. Features for owners are neither shown nor allowed.
  await ada.goto(at("/settings/members"));
  await ada.getByLabel("Email").fill("bea@example.com");
  await press(ada, "Invite member");
  await ada.getByRole("status").waitFor();
  await look(ada);
  const invitation = (await ada.locator(".copy code").textContent()) ?? "";
  await press(ada, "Copy link");
  await press(ada, "Copied");
  expect(await ada.evaluate(() => navigator.clipboard.readText())).toBe(invitation);
  const bea = await open(looking(390, "dark"));
  await bea.goto(invitation);
  await bea.getByLabel("Your name").fill("Bea");
  await bea.getByLabel("Password").fill(password);
  await press(bea, "Join Acme");
  await bea.waitForURL(at("/"));
  await press(bea, "Menu");
  await look(bea);
  await bea.getByRole("link", { name: "Settings" }).click();
  await bea.waitForURL(/\/settings/);
  await bea.goto(at("/settings/members"));
  await bea.getByText("ada@example.com").waitFor();
  expect(await bea.getByRole("button", { name: "Invite member" }).count()).toBe(0);

  // A prompt with long words for a paid model works on a phone too.
  await bea.goto(at("/prompts/new"));
  await bea.getByLabel("Title").fill("Upload many large files ".repeat(9).slice(0, 200));
  await bea.getByLabel("Task").fill(`See ${docs.url}/${"unbroken".repeat(40)}`);
  await bea.getByLabel("Agent", { exact: true }).selectOption("llm");
  await bea.getByRole("textbox", { name: "Model", exact: true }).fill("openai-compatible/a-model");
  await press(bea, "Create prompt");
  await bea.getByLabel(/openai-compatible\/a-model/).waitFor();
  await look(bea);
  for (const path of ["/", "/prompts"]) {
    await bea.goto(at(path));
    await look(bea);
  }
  const refused = await bea.evaluate(async (slug): Promise<number[]> => {
    const owners = ["members/invite", "members/revoke", "members/role", "members/change"].map(
      (each) => `/settings/${each}`,
    );
    const paths = [
      ...owners,
      "/settings",
      "/settings/keys",
      "/providers",
      `/reports/${slug}/shares`,
      `/reports/${slug}/status`,
    ];
    const answers = paths.map((path) => fetch(path, { method: "POST", body: new URLSearchParams() }));
    return (await Promise.all(answers)).map(({ status }) => status);
  }, slugs[0]);
  expect(refused).toEqual(Array.from(refused, () => 403));
  // Chromium logs each rejection to the console.
  expect(complaints.at(-1)?.splice(0).length).toBe(refused.length);

  // A link for people without an account works until it is revoked, and another until it expires.
  const share = async (): Promise<string> => {
    await ada.goto(report);
    await ada.getByText("Share", { exact: true }).click();
    await ada.getByLabel("Include session").check();
    await press(ada, "Create link");
    return (await ada.locator("#made").textContent()) ?? "";
  };
  const stranger = await open(looking(390, "dark"));
  const link = await share();
  await look(ada);
  await stranger.goto(link);
  await stranger.locator(".report .pills", { hasText: "Upload a file" }).waitFor();
  await stranger.getByRole("link", { name: "View session" }).click();
  await stranger.locator(".line > details").first().waitFor();
  await ada.goto(report);
  const sharing = ada.getByText("Share", { exact: true });
  await sharing.click();
  await ada.getByRole("button", { name: /^Revoke the link/ }).click();
  await press(ada, "Revoke link");
  await sharing.click();
  await ada.getByText("revoked", { exact: true }).waitFor();
  expect((await stranger.goto(link))?.status()).toBe(404);
  const ending = await share();
  expect((await stranger.goto(ending))?.status()).toBe(200);
  const db = new Database(join(cwd, "data", "evald.db"));
  db.run("update share_links set expires_at = created_at");
  db.close();
  expect((await stranger.goto(ending))?.status()).toBe(404);
  // The browser itself reports missing resources.
  complaints.at(-1)?.splice(0);

  // A removed member loses access immediately. A lost password is reset by a link.
  await ada.goto(at("/settings/members"));
  await press(ada, "Remove Bea");
  await look(ada);
  await press(ada, "Remove member");
  await ada.getByRole("status").waitFor();
  expect((await bea.goto(at("/settings/members")))?.status()).toBe(403);
  complaints.at(-2)?.splice(0);
  const again = await call(["org", "setup-link", "Acme"], { cwd });
  expect(again.code).toBe(2);
  const reset = await call(["person", "reset-link", "bea@example.com"], { cwd, env: { EVALD_BASE_URL: service.url } });
  await bea.goto(reset.stdout.trim());
  await bea.getByText("bea@example.com").waitFor();

  expect(complaints.flat()).toEqual([]);
  // Streams of open pages don't delay it.
  await ada.goto(at("/runs"));
  expect(await service.stop()).toBe(0);
  // They report a lost connection, and are live again when the service is back.
  const lost = ada.locator("#connection");
  await lost.waitFor();
  const back = await serve({ cwd, env: { ...env, EVALD_WELCOME: "0", EVALD_PORT: new URL(service.url).port } });
  await lost.waitFor({ state: "detached" });
  await ada.route("**/runs/live?*", (route) => route.abort());
  await ada.goto(at("/runs"));
  await lost.waitFor();
  await ada.unroute("**/runs/live?*");
  await lost.waitFor({ state: "detached" });
  expect(await back.stop()).toBe(0);

  // A restored backup signs nobody in.
  expect((await call(["backup", "copy"], { cwd })).code).toBe(0);
  expect((await call(["restore", "copy"], { cwd })).code).toBe(0);
  const restored = await serve({ cwd });
  await ada.goto(`${restored.url}/account`);
  expect(ada.url()).toBe(`${restored.url}/sign-in?next=%2Faccount`);
  expect(await restored.stop()).toBe(0);
}, 300_000);
