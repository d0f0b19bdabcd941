import { createForwardSearch } from "../forward-search.ts";

/** Browsers stop at this depth. Docs pages rarely have more than 50 elements inside each other. */
const maxNesting = 512;

const names = (text: string) => new Set(text.split(" "));

/** Elements without an end tag. */
const empty = names("area base br col embed hr img input link meta param source track wbr");
/** Elements that end when one of these starts. */
const endedByStart: Record<string, Set<string>> = {
  li: names("li"),
  p: names("p div"),
  b: names("div"),
  td: names("td th"),
  th: names("td th"),
  ...Object.fromEntries([1, 2, 3, 4, 5, 6].map((level) => [`h${level}`, names(`h${level}`)])),
};
/** Elements that end when one of these ends. */
const endedByEnd: Record<string, Set<string>> = {
  li: names("ul ol"),
  td: names("tr table"),
  th: names("tr table"),
  a: names("div"),
  b: names("div"),
  i: names("div"),
  p: names("div"),
};
/** Elements whose content is text. */
const raw = new Set(["script", "style", "noscript", "pre"]);
const nameAt = /[a-z][-.:\w]*/iy;

/**
 * Whether more than `maxNesting` elements and comments of an HTML page are open at once, because they are nested or never closed. Parsers take
 * quadratic time for such pages, while this takes linear time. It counts like node-html-parser, which afdocs uses: if an end tag isn't that of the
 * innermost element, it is ignored.
 */
export function isNestedTooDeeply(html: string): boolean {
  const open: string[] = [];
  const find = createForwardSearch(html);
  for (let at = html.indexOf("<"); at >= 0; at = html.indexOf("<", at + 1)) {
    if (open.length > maxNesting) return true;
    if (html.startsWith("<!--", at)) {
      const end = find("-->", at);
      if (end < 0) open.push("!--");
      else at = end;
      continue;
    }
    const isEnd = html[at + 1] === "/";
    nameAt.lastIndex = at + (isEnd ? 2 : 1);
    const name = nameAt.exec(html)?.[0].toLowerCase();
    if (name === undefined || (empty.has(name) && find(">", at) >= 0)) continue;
    if (isEnd) {
      while (endedByEnd[open.at(-1) ?? ""]?.has(name)) open.pop();
      if (open.at(-1) === name) open.pop();
      continue;
    }
    const end = find(">", nameAt.lastIndex);
    if (html[end - 1] === "/") continue;
    const close = raw.has(name) ? find(`</${name}`, at) : -1;
    if (close >= 0) {
      at = close;
      continue;
    }
    if (endedByStart[open.at(-1) ?? ""]?.has(name)) open.pop();
    open.push(name);
  }
  return open.length > maxNesting;
}

/** Elements whose end tags authors may leave out: browsers add them. */
const withOptionalEnd =
  /<\/?(?:p|li|dt|dd|tr|td|th|thead|tbody|tfoot|caption|colgroup|option|optgroup|rp|rt)\b[^<>]*>/gi;

/** Whether a page is nested too deeply even for browsers, which end elements whose end tags authors may leave out. */
export const isDeepForBrowsers = (html: string): boolean =>
  isNestedTooDeeply(html) && isNestedTooDeeply(html.replace(withOptionalEnd, ""));

/** The message about a page that is nested too deeply. */
export const depthMessage = (url: string): string =>
  `${url} has more than ${maxNesting} elements that are inside each other or never closed, so programs may fail to read it`;
