import { afterAll, expect, test } from "bun:test";
import { testApp } from "../support/app.ts";
import { complaintsOf, openBrowser, problemsOf } from "../support/browser.ts";
import { demo } from "../support/demo.ts";
import { everyPage, type Shown } from "../support/every-page.ts";

/** Checks all four combinations of width and color scheme: `EVERY_PAGE=long bun test test/slow/every-page.test.ts`. */
const isLong = process.env.EVERY_PAGE === "long";

const app = await demo();
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 60,
  fetch: (request) => app.app.handle(request),
});
/** A service on which nobody has an account yet. */
const unused = testApp();
const unusedServer = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => unused.app.handle(request) });
const browser = await openBrowser();
afterAll(async () => {
  await browser.close();
  server.stop(true);
  unusedServer.stop(true);
  await Promise.all([app.stop(), unused.service.stop(0)]);
});

/** The statuses of the error pages that were checked. */
const errors = new Set<number>();

/** A tab for the pages of one person. They share it, because a new one would load and compile axe again. */
async function openTab(cookie: string) {
  const context = await browser.newContext({ extraHTTPHeaders: { cookie } });
  const page = await context.newPage();
  const elsewhere: string[] = [];
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (![server, unusedServer].some(({ url }) => url.origin === origin)) elsewhere.push(request.url());
  });
  return { page, elsewhere, complaints: complaintsOf(page) };
}

/** Opens pages one after the other. */
async function visit(pages: Shown[]): Promise<string[]> {
  const wrong: string[] = [];
  const tabs = new Map<string, Awaited<ReturnType<typeof openTab>>>();
  for (let next = pages.shift(); next; next = pages.shift()) {
    const { path, cookie } = next;
    const tab = tabs.get(cookie) ?? (await openTab(cookie));
    tabs.set(cookie, tab);
    const { page } = tab;
    const response = await page.goto(new URL(path, server.url).href);
    const status = response?.status() ?? 0;
    // Error pages of one status are the same.
    const isNew = status < 400 || !errors.has(status);
    if (status >= 400) errors.add(status);
    if (isNew) wrong.push(...(await problemsOf(page, isLong)));
    wrong.push(...tab.elsewhere.splice(0).map((url) => `${path} requests ${url}`));
    // Chromium reports the status of an error page.
    const complaints = tab.complaints.splice(0);
    wrong.push(...complaints.filter((each) => status < 400 || !each.includes("Failed to load resource")));
  }
  return wrong;
}

test("no page has barriers, overflows, complaints or requests to another host, in light and dark, on desktops and phones", async () => {
  const pages = await everyPage(app);
  for (const path of ["/", "/sign-in"]) pages.push({ path: new URL(path, unusedServer.url).href, cookie: "" });
  expect(pages.length).toBeGreaterThan(50);
  expect((await Promise.all([visit(pages), visit(pages)])).flat()).toEqual([]);
}, 600_000);
