/**
 * Takes screenshots of every page of a service with three weeks of data, at two widths, in light and dark:
 * `bun test/support/shot.ts FOLDER [PATTERN]`. The pattern selects paths.
 */
import { join } from "node:path";
import { looking, openBrowser } from "./browser.ts";
import { demo } from "./demo.ts";
import { everyPage } from "./every-page.ts";

const [folder = ".", pattern = ""] = process.argv.slice(2);
/** Taller pages are cut off. */
const maxHeight = 4000;

const app = await demo();
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.app.handle(request) });
const browser = await openBrowser();
const pages = (await everyPage(app)).filter(({ path }) => new RegExp(pattern).test(path));
for (const width of [1440, 390])
  for (const scheme of ["light", "dark"] as const)
    for (const [i, { path, cookie }] of pages.entries()) {
      const context = await browser.newContext({ ...looking(width, scheme), extraHTTPHeaders: { cookie } });
      const page = await context.newPage();
      await page.goto(new URL(path, server.url).href);
      const height = Math.min(maxHeight, await page.evaluate(() => document.documentElement.scrollHeight));
      const name = `${String(i).padStart(2, "0")}${path.replace(/\W+/g, "-").slice(0, 40)}-${width}-${scheme}.png`;
      await page.screenshot({ path: join(folder, name), fullPage: true, clip: { x: 0, y: 0, width, height } });
      await context.close();
    }
await browser.close();
server.stop(true);
await app.stop();
