/** Takes screenshots of one page at three widths, light and dark: `bun test/support/shot.ts URL FOLDER NAME [API key or cookie]`. */
import { looking, openBrowser, widths } from "./browser.ts";

const [url = "", folder = ".", name = "page", credential] = process.argv.slice(2);
const headers: Record<string, string> = !credential
  ? {}
  : credential.startsWith("evals_")
    ? { authorization: `Bearer ${credential}` }
    : { cookie: credential };
const browser = await openBrowser();
for (const width of widths)
  for (const scheme of ["light", "dark"] as const) {
    const context = await browser.newContext({ ...looking(width, scheme), extraHTTPHeaders: headers });
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && console.error(`console: ${message.text()}`));
    await page.goto(url);
    await page.screenshot({ path: `${folder}/${name}-${width}-${scheme}.png`, fullPage: true });
    await context.close();
  }
await browser.close();
