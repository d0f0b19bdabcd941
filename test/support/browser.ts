import { type BrowserContextOptions, chromium } from "playwright-core";

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
