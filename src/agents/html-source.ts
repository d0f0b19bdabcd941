import { onContent } from "./code-blocks.ts";
import { isLanguageName } from "./languages.ts";

/**
 * Elements that may be in the head of a page. The first group has elements without content. The second has elements with content up to their end
 * tags.
 */
const headElement =
  /<(?:(base|basefont|bgsound|link|meta)|(title|noscript|noframes|style|script|template))(?=[\s/>])/iy;
/** What browsers skip in a head: space, comments, the doctype, `<html>`, and most end tags. */
const skipped =
  /(?:\s|<!--[\s\S]*?(?:-->|$)|<!doctype[^>]*>|<html(?=[\s>])[^>]*>|<\/(?!head\b|body\b|html\b|br\b)[^>]*>)+/iy;

/**
 * HTML with the end tag of its head, which authors may leave out: browsers end the head before the first thing that it
 * can't contain.
 */
export function closeHead(html: string): string {
  const start = /<head(?=[\s>])[^<>]*>/i.exec(html);
  if (!start) return html;
  let at = start.index + start[0].length;
  for (;;) {
    skipped.lastIndex = at;
    if (skipped.test(html)) at = skipped.lastIndex;
    headElement.lastIndex = at;
    const element = headElement.exec(html);
    if (!element) break;
    const end = endOfElement(html, headElement.lastIndex, element[2]);
    if (end < 0) return html;
    at = end;
  }
  return /^<\/head\b/i.test(html.slice(at, at + 10)) ? html : `${html.slice(0, at)}</head>${html.slice(at)}`;
}

/** Where an element ends; -1 if it doesn't. The search starts at the end of its name. `name` is undefined for an element without content. */
function endOfElement(html: string, at: number, name: string | undefined): number {
  const tagEnd = html.indexOf(">", at);
  if (tagEnd < 0) return -1;
  if (name === undefined) return tagEnd + 1;
  const endTag = new RegExp(`</${name}(?=[\\s/>])[^<>]*>`, "gi");
  endTag.lastIndex = tagEnd;
  return endTag.test(html) ? endTag.lastIndex : -1;
}

const emptyTag = /^(?:area|base|br|col|embed|frame|hr|img|input|link|meta|param|source|track|wbr)$/i;

/** XHTML as HTML. In XML, the start tag of any element may also close it. */
export const expandEmptyTags = (xhtml: string): string =>
  xhtml.replace(/<([a-z][\w:-]*)((?:\s[^<>]*)?)\/>/gi, (tag, name: string, attributes: string) =>
    emptyTag.test(name) ? tag : `<${name}${attributes}></${name}>`,
  );

/** HTML with the roots of declared shadow trees as elements, which readers see like any others. */
export function showShadowTrees(html: string): string {
  if (!/<template\s[^<>]*\bshadowrootmode\b/i.test(html)) return html;
  const open: boolean[] = [];
  return html.replace(/<(\/?)template(?=[\s>])([^<>]*)>/gi, (tag, slash: string, attributes: string) => {
    if (slash === "") open.push(/\sshadowrootmode\b/i.test(attributes));
    const isShown = slash === "" ? open.at(-1) : open.pop();
    return isShown ? `<${slash}div${attributes}>` : tag;
  });
}

/** At least one number, and otherwise only space and tags. `tableTags`: names of the tags that end the cell. */
function numbersUpTo(tableTags: string): string {
  const otherTag = String.raw`<(?!\/?(?:${tableTags})\b)[^<>]*>`;
  return String.raw`(?:\s|${otherTag})*\d(?:[\s\d]|${otherTag})*`;
}

/** The first of several cells of a row, if it has only numbers. Group: what precedes the cell. */
const gutterCell = new RegExp(
  String.raw`(<tr\b[^<>]*>\s*)<t[dh]\b[^<>]*>${numbersUpTo("t[dhr]")}<\/t[dh]>(?=\s*<t[dh]\b)`,
  "gi",
);

const cellTags = "td|tr|table";
const insideCell = String.raw`(?!<\/?(?:${cellTags})\b)[\s\S]`;
/** A table of one row with two cells: numbers, and a block of code. Group: the block of code. */
const numberedBlock = new RegExp(
  [
    String.raw`<table\b[^<>]*>(?:\s|<(?:thead|tbody|tr)\b[^<>]*>)*`,
    String.raw`<td\b[^<>]*>${numbersUpTo(cellTags)}<\/td>\s*`,
    String.raw`<td\b[^<>]*>((?:${insideCell})*?<pre\b(?:${insideCell})*)<\/td>\s*`,
    String.raw`<\/tr>\s*(?:<\/(?:thead|tbody)>\s*)?<\/table>`,
  ].join(""),
  "gi",
);

/** HTML without the tables that put a number before each line of a sample. */
const withoutLineNumbers = (html: string): string => html.replace(numberedBlock, "$1");

const blockEnd = String.raw`<\/(?:div|li|tr)>`;
/** Several end tags in a row, such as `</div></li>`, which end a line without a line break before or after them. */
const blockEnds = new RegExp(
  String.raw`(?<!${blockEnd})(?<!\n(?:<\/\w+>){0,4})(?:${blockEnd})+(?!${blockEnd}|[ \t]*\n)`,
  "gi",
);

const emptySpan = /<span[^<>]*><\/span>/gi;

/**
 * A sample whose lines are broken by line breaks in its text, not by elements. mdream takes a line break next to an empty element for a space, so
 * empty elements are removed. This is done twice, because some contain only other empty elements.
 */
const asLines = (block: string) =>
  block
    .replace(gutterCell, "$1")
    .replace(blockEnds, "\n$&")
    .replace(/<(\/?)(?:div|li|table|thead|tbody|tr|td|th)(?=[\s>])/gi, "<$1span")
    .replace(emptySpan, "")
    .replace(emptySpan, "");

/** A `<div>` with only text and an attribute that says how it is shown: as code of a language, or with the lines of its source. */
const preformattedText = new RegExp(
  String.raw`<div(?=\s)([^<>]*\s(?:data-lang(?:uage)?=["']?(?<language>[\w+#-]+)|role=["']?code\b|style=["'][^"'<>]*\bwhite-space:\s*pre(?![\w-]))[^<>]*)>` +
    String.raw`((?:(?!<\/?(?:div|pre|p|ul|ol|table|h[1-6]|section|button|img)[\s>])[\s\S])*)<\/div>`,
  "gi",
);
/** Characters in the first line of code that the name of a language or of a tab doesn't have. */
const codeSign = /[/@$({"'=;]|\s-|&(?:lt|gt|quot|amp|#)/;

/** HTML in which such a `<div>` is a `<pre>`, because browsers show it like one. */
const withPreformatted = (html: string): string =>
  html.replace(preformattedText, (whole, attributes: string, language: string | undefined, text: string) => {
    const isCode = language === undefined || isLanguageName(language.toLowerCase());
    const code = text.replace(/<[^<>]*>/g, "").trim();
    return isCode && (code.includes("\n") || codeSign.test(code)) ? `<pre${attributes}>${text}</pre>` : whole;
  });

/**
 * HTML in which the line breaks of samples are text. If each line of a sample is a separate element, only the end of that element breaks the line.
 * Doxygen writes samples as such elements without a `<pre>` around them.
 */
export const breakCodeLines = (html: string): string =>
  withPreformatted(withoutLineNumbers(html))
    .replace(/<div class="fragment">/g, '<pre class="fragment code">')
    .replace(/<\/div>(?=<!-- fragment -->)/g, "</pre>")
    .split(/(?=<pre[\s>])/i)
    .map((part, index) => {
      // The first part is what comes before all samples.
      const end = index === 0 ? -1 : part.search(/<\/pre\b/i);
      return end < 0 ? part : asLines(part.slice(0, end)) + part.slice(end);
    })
    .join("");

/**
 * HTML without tables that only arrange the page. Such a table has headings or other tables in it. Its cells become blocks like any others, and are
 * no longer the cells of a row.
 */
export function flattenLayoutTables(html: string): string {
  if (!/<table[\s>][\s\S]*?<(h[1-6]|table)[\s>]/i.test(html)) return html;
  const layouts = findLayoutTables(html);
  if (layouts.size === 0) return html;
  const open: boolean[] = [];
  let count = 0;
  return new HTMLRewriter()
    .on("table, thead, tbody, tfoot, tr, td, th", {
      element(element) {
        if (element.tagName === "table") {
          const isLayout = layouts.has(count++);
          onContent(
            element,
            () => open.push(isLayout),
            () => void open.pop(),
          );
          if (isLayout) element.tagName = "div";
        } else if (open.at(-1)) element.tagName = "div";
      },
    })
    .transform(html);
}

/** The positions of the tables that have a heading or another table in them. */
function findLayoutTables(html: string): Set<number> {
  const layouts = new Set<number>();
  const open: number[] = [];
  let count = 0;
  new HTMLRewriter()
    .on("table, h1, h2, h3, h4, h5, h6", {
      element(element) {
        // A table is added only together with the tables around it, or after them.
        for (let at = open.length - 1; at >= 0 && !layouts.has(open[at]!); at--) layouts.add(open[at]!);
        if (element.tagName !== "table") return;
        const table = count++;
        onContent(
          element,
          () => open.push(table),
          () => void open.pop(),
        );
      },
    })
    .transform(html);
  return layouts;
}
