import { readFileSync } from "node:fs";
import fontPath from "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2" with { type: "file" };
import { bundle } from "./bundle.ts" with { type: "macro" };
import base from "./styles/base.css" with { type: "text" };
import compare from "./styles/compare.css" with { type: "text" };
import home from "./styles/home.css" with { type: "text" };
import palette from "./styles/palette.css" with { type: "text" };
import people from "./styles/people.css" with { type: "text" };
import prompts from "./styles/prompts.css" with { type: "text" };
import reference from "./styles/reference.css" with { type: "text" };
import report from "./styles/report.css" with { type: "text" };
import runs from "./styles/runs.css" with { type: "text" };
import session from "./styles/session.css" with { type: "text" };
import settings from "./styles/settings.css" with { type: "text" };
import shell from "./styles/shell.css" with { type: "text" };

const withDigest = (name: string, content: string | Uint8Array) => `/${name}?v=${Bun.hash(content).toString(36)}`;

/** Inter with the Latin characters, in all weights, as WOFF2. */
export const font = readFileSync(fontPath);

const fontPathWithDigest = withDigest("inter.woff2", font);

// The URL is relative to the stylesheet, which has the same base path. The range lists the characters that the font file contains.
const fontFace = `@font-face {
  font-family: "Inter Variable";
  font-weight: 100 900;
  font-display: swap;
  src: url(".${fontPathWithDigest}") format("woff2");
  unicode-range: U+0000-00FF, U+0131, U+0152-0153, U+02BB-02BC, U+02C6, U+02DA, U+02DC, U+2000-206F, U+20AC, U+2122, U+2191, U+2193, U+2212, U+2215, U+FEFF, U+FFFD;
}`;

/** The stylesheet: shared rules first, then one file for each kind of page. */
const styles = [
  fontFace,
  base,
  shell,
  home,
  palette,
  prompts,
  runs,
  people,
  reference,
  settings,
  report,
  session,
  compare,
];
export const css = styles.join("\n");

export const js: string = bundle("./client.ts");

/** Paths of the assets, without the base. The digest makes them cacheable forever. */
export const assetPaths = {
  css: withDigest("style.css", css),
  js: withDigest("client.js", js),
  font: fontPathWithDigest,
};
