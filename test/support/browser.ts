import axe from "axe-core";
import { type BrowserContextOptions, chromium, type Page } from "playwright-core";

const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];

/** Debian's chromium without a window. End it with `close()`. */
export const openBrowser = () => chromium.launch({ executablePath: "/usr/bin/chromium", args });

/** Widths at which every page must be good to look at. */
export const widths = [1440, 768, 390];

/** How a person looks: the width in CSS pixels and the colours that their system asks for. */
export const looking = (width: number, colorScheme: "light" | "dark"): BrowserContextOptions => ({
  viewport: { width, height: width < 500 ? 844 : 900 },
  colorScheme,
});

/** Everything that the browser complains about from now on, as it comes: errors and warnings of the console (what the CSP refused is one) and of scripts. */
export function complaintsOf(page: Page): string[] {
  const told: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) told.push(`${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => told.push(`${page.url()}: ${error.message}`));
  return told;
}

/** What keeps people from using a page as it stands, by WCAG 2.2 AA: the rule and the elements. The CSP of the page is left alone. */
export async function barriersOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: typeof import("axe-core") };
    return (await axe.run(document)).violations.map(({ id, nodes }) => ({ id, html: nodes.map((node) => node.html) }));
  });
  return violations.map(({ id, html }) => `${page.url()}: ${id}: ${html.join(" ")}`);
}
