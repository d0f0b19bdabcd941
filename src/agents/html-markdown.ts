import { readFileSync } from "node:fs";
import { htmlToMarkdownResult, initSync } from "mdream/wasm";
import wasmPath from "mdream/wasm/mdream_edge_bg.wasm" with { type: "file" };
import { pageKey } from "../net/page-key.ts";
import { decodeEntities } from "./entities.ts";
import { flattenLayoutTables } from "./html-source.ts";
import { plainText } from "./markdown-links.ts";

/** Selectors of elements whose content nobody reads. */
const unreadElements = ["head", "script", "style", "template", "svg"];
const menus = ["nav", "footer", "[role=navigation]", "[role=contentinfo]", "[role=search]"];
/** Selectors of elements that surround the content of a page and are left out. If they are the content of a page, the next list applies. */
const surroundings = [[...menus, "aside", "form", "button"], menus, []];
/** If less text than this and less than half of the page's own text would remain, fewer surroundings are left out. */
const minMainChars = 200;

/** A link whose text is empty or only a sign such as ¶, unless it is an image or the whole heading. */
const emptyLink = /(?<!!|^#{1,6}) ?\[[¶#§]?\]\([^()\s]{0,500}(?: "[^"\n]{0,200}")?\)/gm;

let isInitialized = false;

/** HTML as Markdown with absolute links. If the conversion fails, returns the plain text. `ownChars`: characters of the page's own text. */
export function toMarkdown(html: string, url: string, ownChars: number): string {
  if (!isInitialized) initSync({ module: readFileSync(wasmPath) });
  isInitialized = true;
  const source = flattenLayoutTables(html);
  const minChars = Math.max(1, Math.min(minMainChars, ownChars / 2));
  try {
    return withoutPermalinks(convertMain(source, url, minChars), url)
      .replace(emptyLink, "")
      .trim();
  } catch {
    // The failure may have left the module in a broken state, so it is loaded again for the next conversion.
    isInitialized = false;
    return decodeEntities(html.replace(/<(script|style)\b[\s\S]*?<\/\1>/gi, "").replace(/<[^>]+>/g, " ")).trim() || url;
  }
}

/**
 * The page as Markdown, without the first list of `surroundings` after which at least `minChars` remain. If there is no such list, anything that
 * remains.
 */
function convertMain(source: string, url: string, minChars: number): string {
  const origin = new URL(".", url).href;
  let firstText = "";
  for (const selectors of surroundings) {
    const filter = { exclude: [...unreadElements, ...selectors] };
    const { markdown } = htmlToMarkdownResult(source, { origin, plugins: { filter } });
    const text = String(markdown ?? "")
      .replaceAll("\0", "")
      .trim();
    if (text.length >= minChars) return text;
    firstText ||= text;
  }
  return firstText;
}

const headingLine = /^#{1,6} .*$/gm;
const textWithPictures = String.raw`(?:!\[[^[\]\n]{0,200}\]|[^[\]\n]){0,200}`;
const urlPart = String.raw`[^()\s]{0,500}`;
const linkTitle = String.raw` "[^"\n]{0,200}"`;
/** `[text](page#section "title")`. The page may be missing. Groups: the text and the page. */
const sectionLink = new RegExp(String.raw`\[(${textWithPictures})\]\((${urlPart})#${urlPart}(?:${linkTitle})?\)`, "g");

/**
 * Markdown without links from its headings to sections of the page itself, at `url`. Builders add such a link around the text of a heading, or beside
 * it, with a sign or with words such as "Permalink to Install". A text inside the link stays.
 */
function withoutPermalinks(markdown: string, url: string): string {
  const isOwnPage = (target: string) => target === "" || pageKey(target) === pageKey(url);
  const headings = markdown.match(headingLine) ?? [];
  const linkTexts = headings.flatMap((heading) => [...heading.matchAll(sectionLink)].map((link) => link[1]!));
  const linksByText = Map.groupBy(linkTexts, (text) => text);
  return markdown.replace(headingLine, (heading) => {
    const textBeside = plainText(heading.replace(/^#+/, "").replace(sectionLink, "")).trim();
    const isTextOfHeading = (text: string) => {
      const isUnique = linksByText.get(text)?.length === 1;
      const hasWordsBeforePictures = /^[^!]*[\p{L}\p{N}]/u.test(text);
      const repeatsHeading = textBeside !== "" && text.includes(textBeside);
      return isUnique && hasWordsBeforePictures && !repeatsHeading;
    };
    return heading
      .replace(sectionLink, (link, text, target) => {
        if (!isOwnPage(target)) return link;
        return isTextOfHeading(text) ? text : "";
      })
      .trimEnd();
  });
}
