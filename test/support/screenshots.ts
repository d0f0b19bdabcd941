/** `bun run screenshots [FOLDER]`: takes the screenshot of the README, the report of the first start. */
import { looking, openBrowser } from "./browser.ts";
import { buildExecutable, emptyFolder, serve } from "./executable.ts";

const folder = process.argv[2] ?? "src/web/docs";
await buildExecutable();
const service = await serve({ cwd: emptyFolder(), env: { EVALD_WELCOME: "1" } });
const [key] = await service.printed(/^evals_\w+$/m);
const [, path = ""] = await service.said(/Read it\s+http:\/\/[^/]+(\/\S+)/);

const browser = await openBrowser();
const context = await browser.newContext({
  ...looking(1440, "light"),
  // Down to the recommended fixes.
  viewport: { width: 1440, height: 1700 },
  extraHTTPHeaders: { authorization: `Bearer ${key}` },
});
const page = await context.newPage();
await page.goto(service.url + path);
await page.screenshot({ path: `${folder}/report.png` });
await browser.close();
await service.stop();
