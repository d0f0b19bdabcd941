import { afterAll, expect, test } from "bun:test";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { prompts } from "../../src/db/tables/prompts.ts";
import { testApp } from "../support/app.ts";
import { complaintsOf, openBrowser, problemsOf } from "../support/browser.ts";
import { buildExecutable, call, emptyFolder } from "../support/executable.ts";
import { signedIn } from "../support/people.ts";
import { serveSite } from "../support/site.ts";

const tasks = ["Back up a folder", "Restore a folder", "Install the client", "Upload a file", "Configure a schedule"];
const pageOf = (title: string, i: number) =>
  `<!doctype html><html lang="en"><title>${title} | Acme</title><h1>Acme guide ${i}</h1><p>${"Acme keeps your files safe. ".repeat(20)}</p>
  <h2>${title}</h2><p>To ${title.toLowerCase()} with Acme, run the command below.</p><pre><code class="language-sh">acme run ${i}</code></pre></html>`;
const links = tasks.map((title, i) => `<a href="/guide-${i}">${title}</a>`).join(" ");
const site = serveSite({
  "/": { body: `<!doctype html><html lang="en"><title>Acme</title><h1>Acme docs</h1>${links}</html>` },
  ...Object.fromEntries(tasks.map((title, i) => [`/guide-${i}`, { body: pageOf(title, i) }])),
});
const browser = await openBrowser();
afterAll(async () => {
  await browser.close();
  site.stop();
});

test.each([true, false])(
  "docs lead to five prompts and their first reports in three clicks; JavaScript: %p",
  async (javaScriptEnabled) => {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 60,
      fetch: (each) => app.app.handle(each),
    });
    const app = testApp({
      agent: createExplorer({ version: "test" }),
      env: { EVALD_BASE_URL: server.url.origin, EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
    });
    const cookie = (await signedIn(app)).cookie();
    const context = await browser.newContext({ javaScriptEnabled });
    const cookies = cookie.split("; ").map((each) => each.split(/=(.*)/s));
    await context.addCookies(cookies.map(([name = "", value = ""]) => ({ name, value, url: server.url.href })));
    const page = await context.newPage();
    const complaints = complaintsOf(page);
    await app.service.runner.start();
    try {
      let clicks = 0;
      const click = async (role: "button" | "link", name: string | RegExp) => {
        clicks++;
        await page.getByRole(role, { name }).first().click();
      };
      await page.goto(server.url.href);
      await page.getByLabel("Docs URL").fill(`${site.url}/`);
      await page.getByLabel("Most common first task").fill("upload a file");
      await click("button", "Propose prompts");
      await page.locator('.proposals [name="only"]').first().waitFor();
      expect(await page.locator('.proposals [name="only"]:checked').count()).toBe(5);
      expect(await page.locator(".proposals blockquote").count()).toBeGreaterThanOrEqual(5);
      if (javaScriptEnabled) expect(await problemsOf(page, false)).toEqual([]);
      await click("button", "Create and run");
      await page.waitForURL(/\/runs$/);
      await page.locator('a[href*="/reports/"]').first().waitFor();
      clicks++;
      await page.locator('a[href*="/reports/"]').first().click();
      await page.locator(".score-line").waitFor();
      expect(clicks).toBe(3);
      expect(app.db.select().from(prompts).all()).toHaveLength(5);
      expect(complaints).toEqual([]);
    } finally {
      await context.close();
      await app.service.runner.stop(0);
      server.stop(true);
    }
  },
  60_000,
);

test("the command line prints proposals, and creates the prompts of a file or of numbers", async () => {
  await buildExecutable();
  const cwd = emptyFolder();
  const run = (...args: string[]) => call(args, { cwd, env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` } });
  const propose = ["prompt", "propose", `${site.url}/`];
  await run("org", "create", "Acme");
  const { stdout } = await run(...propose);
  expect(tasks.filter((title) => stdout.includes(title))).toEqual(tasks);
  expect(stdout).toContain(`${site.url}/guide-0:`);
  const set = await run(...propose, "--json");
  await Bun.write(`${cwd}/proposals.json`, set.stdout);
  const created = await run("prompt", "create", "--from", "proposals.json", "--only", "1,3");
  expect([created.code, created.stdout.trim().split("\n").length]).toEqual([0, 2]);
  const accepted = await run(...propose, "--accept", "2", "--json");
  expect(JSON.parse(accepted.stdout).prompts).toHaveLength(1);
  expect(JSON.parse((await run("prompt", "list", "--json")).stdout)).toHaveLength(3);
  const wrong = [
    ["--text", "x", "--from", "proposals.json"],
    ["--text", "x", "--only", "1"],
    ["--from", "missing.json"],
  ];
  for (const args of wrong) expect((await run("prompt", "create", ...args)).code).toBe(2);
}, 120_000);
