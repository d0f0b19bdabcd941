import axe from "axe-core";
import { type BrowserContextOptions, chromium, type Page } from "playwright-core";

const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];

/** Debian's headless Chromium. End it with `close()`. */
export const openBrowser = () => chromium.launch({ executablePath: "/usr/bin/chromium", args });

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

/** WCAG 2.2 AA violations of the current page, of all rules or some: the rule and the elements. Keeps the page's CSP. */
export async function barriersOf(page: Page, only?: string[]): Promise<string[]> {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe.source);
  const violations = await page.evaluate(async (rules) => {
    const { axe } = globalThis as unknown as { axe: typeof import("axe-core") };
    // The only rule of level AA that is off by default.
    const options = rules ? { runOnly: rules } : { rules: { "target-size": { enabled: true } } };
    const { violations } = await axe.run(document, { ...options, resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => ({ id, html: nodes.map((node) => node.html) }));
  }, only ?? null);
  return violations.map(({ id, html }) => `${page.url()}: ${id}: ${html.join(" ")}`);
}

/** The rules that depend on the width of the page or on its colors. */
const ofLayout = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"];

/** What doesn't fit on the current page from the narrowest phone to the widest screen: the page itself, and on a phone tables whose buttons are out of sight. */
async function overflowsOf(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const width of [320, 390, 1440, 2560]) {
    await page.setViewportSize({ width, height: 844 });
    const { beyond, hiding } = await page.evaluate(() => ({
      beyond: document.documentElement.scrollWidth - window.innerWidth,
      hiding: [...document.querySelectorAll(".scroll-area:is(:has(button), :has(.stacked))")]
        .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
        .map((area) => area.getAttribute("aria-label")),
    }));
    if (beyond > 0) found.push(`${width}: ${page.url()} is ${beyond}px wider than the page`);
    if (width === 390) found.push(...hiding.map((table) => `${width}: ${page.url()} hides a part of ${table}`));
  }
  return found;
}

/**
 * What is wrong with the current page, by axe at both widths and in both color schemes if `isLong`, else each width in one scheme, and in width. On a phone, all
 * its parts are open and all rules are checked; elsewhere, those that may have another result.
 */
export async function problemsOf(page: Page, isLong = false): Promise<string[]> {
  const found: string[] = [];
  for (const width of [1440, 390])
    for (const colorScheme of ["light", "dark"] as const) {
      const isDiagonal = (width === 1440) === (colorScheme === "light");
      if (!isDiagonal && !isLong) continue;
      await page.setViewportSize({ width, height: 844 });
      await page.emulateMedia({ colorScheme });
      if (width === 390)
        await page.evaluate(() => {
          for (const each of document.querySelectorAll<HTMLDetailsElement>("main details")) each.open = true;
        });
      const isWhole = isLong ? isDiagonal : width === 390;
      const barriers = await barriersOf(page, isWhole ? undefined : ofLayout);
      found.push(...barriers.map((each) => `${width} ${colorScheme}: ${each}`));
    }
  return [...found, ...(await overflowsOf(page))];
}
