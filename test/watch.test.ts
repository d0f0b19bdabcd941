import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { barriersOf, complaintsOf, looking, openBrowser } from "./support/browser.ts";
import { buildExecutable, call, emptyFolder, serve } from "./support/executable.ts";
import { password } from "./support/people.ts";
import { serveSite } from "./support/site.ts";

let browser: Browser;
beforeAll(async () => {
  await buildExecutable();
  browser = await openBrowser();
}, 120_000);
afterAll(() => browser.close());

test("a prompt is written, run, and watched until its report is there", async () => {
  const released = Promise.withResolvers<void>();
  const docs = serveSite({
    "/": { body: '<title>Acme</title><h1>Acme docs</h1><a href="/upload">Upload a file</a> <a href="/more">More</a>' },
    "/upload": async () => {
      await released.promise;
      return new Response("<title>Upload</title><h1>Upload a file with Python</h1><p>Use the client.</p>", {
        headers: { "content-type": "text/html" },
      });
    },
  });
  const cwd = emptyFolder();
  const service = await serve({ cwd, env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${docs.port}` } });
  await call(["org", "create", "Acme", "--time-zone", "Europe/Berlin"], { cwd });
  const link = await call(["org", "setup-link", "Acme"], { cwd });
  const context = await browser.newContext(looking(1440, "light"));
  const page = await context.newPage();
  const complaints = complaintsOf(page);
  const isOpen = async () => expect(await barriersOf(page)).toEqual([]);

  await page.goto(service.url + new URL(link.stdout.trim()).pathname);
  await page.getByLabel("Your name").fill("Ada");
  await page.getByLabel("Address of mail").fill("ada@acme.example");
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Make me the owner" }).click();

  // Nothing is there yet: the page shows how to begin.
  await page.goto(service.url);
  await page.getByRole("heading", { name: "Begin with one task" }).waitFor();
  await isOpen();

  // Written by keyboard: variables and times appear while it is typed.
  await page.getByRole("link", { name: "With schedule, variables and more" }).click();
  await page.getByLabel("Title").fill("Upload a file");
  await page.getByLabel("Task").pressSequentially(`Upload a file with {{language}}. Docs: ${docs.url}/`);
  await page.getByRole("textbox", { name: "language" }).fill("Python");
  await page.getByLabel("How often").selectOption("daily");
  await page.getByText("Next times, Europe/Berlin").waitFor();
  expect(await page.locator(".times li").count()).toBe(3);
  const times = await page.locator(".times li").allTextContents();
  expect(await page.getByRole("textbox", { name: "language" }).inputValue()).toBe("Python");
  await page.getByLabel("How often").selectOption("cron");
  await page.getByLabel("Cron expression").fill("61 * * * *");
  await page.getByText('"61 * * * *" is not understood').waitFor();
  await page.getByLabel("How often").selectOption("daily");
  await page.locator(".times li").first().waitFor();
  await isOpen();
  await page.getByRole("button", { name: "Create the prompt" }).click();
  await page.getByRole("heading", { name: "Run now" }).waitFor();
  // It falls where it was shown.
  expect(await page.locator(".to-come > span:first-child").allTextContents()).toEqual(times);
  await isOpen();

  await page.getByRole("textbox", { name: "language" }).fill("Go");
  await page.getByRole("button", { name: "Run now" }).click();
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/);
  const runPath = new URL(page.url()).pathname;
  // The page of docs is held back: what is shown now came while the run went on.
  await page.locator(".timeline .what", { hasText: "/upload" }).first().waitFor();
  await page.locator(".status-mark.run-running").waitFor();
  await isOpen();
  const home = await context.newPage();
  const ofHome = complaintsOf(home);
  await home.goto(service.url);
  await home.locator("#now + ul .run-running").waitFor();
  released.resolve();
  await page.getByRole("link", { name: /Read the report/ }).waitFor();
  await home.getByText("Nothing runs.").waitFor();
  expect(await page.locator(".status-mark.run-completed").count()).toBe(1);
  expect(await page.getByRole("button", { name: "Run again" }).count()).toBe(1);
  const seen = await page.locator(".timeline li").count();
  // What came bit by bit is what a page shows that is opened afterwards.
  await page.reload();
  expect(await page.locator(".timeline li").count()).toBe(seen);
  await page.getByRole("link", { name: /Read the report/ }).click();
  await page.waitForURL(/\/reports\//);

  // The list is filtered as it is chosen, and searched from the keyboard.
  await page.goto(`${service.url}/runs`);
  await page.getByLabel("Status").selectOption("failed");
  await page.getByText("No run matches.").waitFor();
  expect(new URL(page.url()).searchParams.get("status")).toBe("failed");
  await page.getByLabel("Status").selectOption("");
  await page.locator(`a[href="${runPath}"]`).waitFor();
  await isOpen();
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await page.waitForURL(`${service.url}/prompts`);
  await page.keyboard.press("/");
  await page.keyboard.type("no such words");
  await page.getByText("No prompt matches.").waitFor();
  await isOpen();

  expect([...complaints, ...ofHome]).toEqual([]);
  await context.close();
  docs.stop();
  // The streams of open pages do not keep it.
  expect(await service.stop()).toBe(0);
}, 60_000);
