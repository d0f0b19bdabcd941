import axe from "axe-core";
import { type BrowserContextOptions, chromium, type Page } from "playwright-core";

const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];

/** Debian's headless Chromium. End it with `close()`. */
export const openBrowser = () => chromium.launch({ executablePath: "/usr/bin/chromium", args });

/** Widths at which every page must look right. */
export const widths = [1440, 768, 390];

/** A viewport: its width in CSS pixels and the preferred color scheme. */
export const looking = (width: number, colorScheme: "light" | "dark"): BrowserContextOptions => ({
  viewport: { width, height: width < 500 ? 844 : 900 },
  colorScheme,
});

/** All problems that the browser reports from now on: console errors and warnings (including CSP violations) and script errors. */
export function complaintsOf(page: Page): string[] {
  const told: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) told.push(`${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => told.push(`${page.url()}: ${error.message}`));
  return told;
}

/** WCAG 2.2 AA violations of the current page: the rule and the elements. Keeps the page's CSP. */
export async function barriersOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: typeof import("axe-core") };
    return (await axe.run(document)).violations.map(({ id, nodes }) => ({ id, html: nodes.map((node) => node.html) }));
  });
  return violations.map(({ id, html }) => `${page.url()}: ${id}: ${html.join(" ")}`);
}
