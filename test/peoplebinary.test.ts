import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { openBrowser } from "./support/browser.ts";
import { buildExecutable, call, emptyFolder, serve } from "./support/executable.ts";

const axe = await Bun.file(join(import.meta.dir, "..", "node_modules", "axe-core", "axe.min.js")).text();
const password = "correct horse battery";

let browser: Browser;
beforeAll(async () => {
  await buildExecutable();
  browser = await openBrowser();
}, 120_000);
afterAll(() => browser.close());

/** A browser of its own, which notes everything that the console complains of, CSP reports among it. */
async function open(): Promise<{ context: BrowserContext; page: Page; complaints: string[] }> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(`${page.url()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error.message}`));
  return { context, page, complaints };
}

/** What axe finds on the page as it stands. It comes by the debugger, which the CSP does not bind. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  type Axe = { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
  const found = await page.evaluate(() => (globalThis as unknown as { axe: Axe }).axe.run());
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${page.url()}: ${id}: ${html}`));
}

test("set up, sign out, sign in, invite; a second browser accepts and cannot reach what is for owners", async () => {
  const cwd = emptyFolder();
  const service = await serve({ cwd, env: { EVALD_WELCOME: "1" } });
  const at = (path: string) => service.url + path;
  const setup = (await service.said(/Set up your account\s+(http\S+)/))[1] as string;
  const [ada, bea] = [await open(), await open()];
  const found: string[] = [];
  const look = async (page: Page) => found.push(...(await violations(page)));

  await ada.page.goto(setup);
  await look(ada.page);
  await ada.page.getByLabel("Your name").fill("Ada");
  await ada.page.getByLabel("Address of mail").fill("ada@example.com");
  await ada.page.getByLabel("Password").fill(password);
  await ada.page.getByRole("button", { name: "Make me the owner" }).click();
  await ada.page.waitForURL(at("/"));
  await look(ada.page);

  await ada.page.getByRole("button", { name: "Sign out" }).click();
  await ada.page.waitForURL(at("/sign-in"));
  await look(ada.page);
  await ada.page.goto(at("/settings/members"));
  await ada.page.waitForURL(at("/sign-in?next=%2Fsettings%2Fmembers"));
  await ada.page.getByLabel("Address of mail").fill("ada@example.com");
  await ada.page.getByLabel("Password").fill(password);
  await ada.page.getByRole("button", { name: "Sign in" }).click();
  await ada.page.waitForURL(at("/settings/members"));

  await ada.page.getByLabel("Address of mail").fill("bea@example.com");
  await ada.page.getByRole("button", { name: "Invite" }).click();
  await ada.page.getByText("The invitation is made.").waitFor();
  await look(ada.page);
  const link = (await ada.page.locator(".copy code").textContent()) ?? "";
  await ada.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await ada.page.getByRole("button", { name: "Copy link" }).click();
  await ada.page.getByRole("button", { name: "Copied" }).waitFor();
  expect(await ada.page.evaluate(() => navigator.clipboard.readText())).toBe(link);

  await bea.page.goto(link);
  await look(bea.page);
  await bea.page.getByLabel("Your name").fill("Bea");
  await bea.page.getByLabel("Password").fill(password);
  await bea.page.getByRole("button", { name: "Join Example" }).click();
  await bea.page.waitForURL(at("/"));
  await bea.page.goto(at("/settings/members"));
  await bea.page.getByText("ada@example.com").waitFor();
  expect(await bea.page.getByRole("button", { name: "Invite" }).count()).toBe(0);
  await look(bea.page);
  await bea.page.goto(at("/account"));
  await look(bea.page);
  const refused = await bea.page.evaluate(async (): Promise<number[]> => {
    const paths = ["invite", "revoke", "role", "change"];
    const answers = paths.map((path) =>
      fetch(`/settings/members/${path}`, { method: "POST", body: new URLSearchParams() }),
    );
    return (await Promise.all(answers)).map(({ status }) => status);
  });
  expect(refused).toEqual([403, 403, 403, 403]);
  // Chromium says each of the four on the console: that is the refusal itself.
  expect(bea.complaints.splice(0).length).toBe(4);

  await ada.page.goto(at("/settings/members"));
  await ada.page.getByRole("button", { name: "Remove Bea" }).click();
  await ada.page.getByText("no member any more").waitFor();
  expect((await bea.page.goto(at("/settings/members")))?.status()).toBe(403);
  bea.complaints.splice(0);
  const again = await call(["org", "setup-link", "Example"], { cwd });
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("has people already")]);
  const reset = await call(["person", "reset-link", "bea@example.com"], { cwd, env: { EVALD_BASE_URL: service.url } });
  await bea.page.goto(reset.stdout.trim());
  await bea.page.getByText("For bea@example.com.").waitFor();
  await look(bea.page);

  expect({ found, complaints: [...ada.complaints, ...bea.complaints] }).toEqual({ found: [], complaints: [] });
  expect(await service.stop()).toBe(0);

  // What a backup holds signs nobody in.
  expect((await call(["backup", "copy"], { cwd })).code).toBe(0);
  expect((await call(["restore", "copy"], { cwd })).code).toBe(0);
  const restored = await serve({ cwd });
  await ada.page.goto(`${restored.url}/account`);
  expect(ada.page.url()).toBe(`${restored.url}/sign-in?next=%2Faccount`);
  expect(await restored.stop()).toBe(0);
}, 120_000);
