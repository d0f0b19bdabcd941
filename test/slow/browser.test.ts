import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { testApp } from "../support/app.ts";
import { barriersOf, complaintsOf, openBrowser } from "../support/browser.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());

test("public pages are accessible, and the browser reports no problems", async () => {
  const { app } = testApp();
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.handle(request) });
  const page = await browser.newPage();
  const complaints = complaintsOf(page);
  for (const path of ["/", "/docs", "/docs/start", "/docs/api"]) {
    await page.goto(new URL(path, server.url).href);
    expect(await barriersOf(page)).toEqual([]);
  }
  expect(complaints).toEqual([]);
  await page.close();
  await server.stop(true);
});
