import { readFileSync } from "node:fs";
import { htmlToMarkdownResult, initSync } from "mdream/wasm";
import wasmPath from "mdream/wasm/mdream_edge_bg.wasm" with { type: "file" };
import { pageKey } from "../net/page-key.ts";
import { type CodeBlock, wrongMark } from "./code-blocks.ts";
import { decodeEntities } from "./entities.ts";
import { isErrorPage, problemOfErrorPage } from "./error-pages.ts";
import { breakCodeLines, closeHead, expandEmptyTags, flattenLayoutTables } from "./html-source.ts";
import { markdownLinks, plainText } from "./markdown-links.ts";
import { type DocLink, readMarkup } from "./markup.ts";
import { readOwnContent } from "./own-content.ts";
import { findProblem, isPictured, isStub, isThin, type PageProblem } from "./page-problem.ts";
import { nameHeadings } from "./section-names.ts";
import { findRobotsLine, findTabsLine, type SourceLine } from "./source-lines.ts";
import { limitTags } from "./tag-limits.ts";

/** A heading of a page, or the term of a definition (level 7); `line` is 1-based in the page's Markdown. */
type Heading = { level: number; text: string; line: number };

/**
 * A code block, which starts in the line after `line`. `language` is the page's name for it in lower case, null if missing; `isClosed` is false for an
 * unterminated fence, and `isInOneLine` is set if all of its lines are in that line, as in the cell of a table.
 */
export type CodeSample = CodeBlock & { line: number; isClosed: boolean; isInOneLine?: true };

/** The line of a page that has a line of a sample, both from 1. */
export const lineOfSample = ({ line, isInOneLine }: CodeSample, lineOfCode: number): number =>
  line + (isInOneLine ? 1 : lineOfCode);

/** The line of a page in which a text first is in a sample. */
export const lineInSample = (sample: CodeSample, text: string): number =>
  lineOfSample(sample, sample.code.slice(0, Math.max(0, sample.code.indexOf(text))).split("\n").length);

/** A page as an agent reads it. Line numbers refer to `markdown`, except in `source`. */
export type Page = {
  url: string;
  form: "markdown" | "html";
  title: string;
  /** The page's own description, or else its first paragraph. */
  lead: string;
  /** The declared language of the page, in lower case. */
  language: string | null;
  markdown: string;
  headings: Heading[];
  /** Absolute URLs, with fragments. */
  links: DocLink[];
  samples: CodeSample[];
  /** Names that a fragment may refer to; null if its sections have none, because a script may add them. */
  anchors: Set<string> | null;
  problem: PageProblem | null;
  /** Whether it says no more than an error page would. */
  isThin: boolean;
  /** Whether it has a form or a link to sign in, beside its content or instead of it. */
  asksToSignIn: boolean;
  /** Whether it tests that the reader is a person with a browser, beside its content or instead of it. */
  asksForProof: boolean;
  /** Where it sends its reader, if it has nothing else to say. */
  redirect: string | null;
  /** Whether it has a sentence or two and no link that leads further. */
  isDeadEnd: boolean;
  /** Whether it asks search engines not to list it. */
  isUnlisted: boolean;
  /** Where its HTML has what its Markdown hasn't, as it was sent: the rule for search engines, and the first tab. Null if nowhere. */
  source: { robots: SourceLine | null; tabs: SourceLine | null };
  /** Number of pictures in its HTML that show something, besides icons. */
  pictures: number;
  /** Whether it shows pictures where a reader expects text. */
  hasOnlyImages: boolean;
  /** Number of tabs whose content isn't in the page. */
  emptyTabs: number;
};

/** Longer HTML is cut before conversion, in characters. */
const maxHtmlChars = 4_000_000;
/** Maximum headings, samples and links of one page, each. */
const maxParts = 3000;
/** If a page has less text than this, and less than half of its own, forms and asides belong to it, or else its menus. */
const minMainChars = 200;

/** Markdown without samples that is shorter than this may be an error page, in characters. */
const maxThinMarkdown = 600;

/** A link to a section whose text is empty or only a sign such as ¶, unless it is an image or the whole heading. */
const emptyLink = /(?<!!|^#{1,6}) ?\[[¶#§]?\]\([^()\s]{0,500}(?: "[^"\n]{0,200}")?\)/gm;

let isInitialized = false;

/** HTML as Markdown with absolute links. If the conversion fails, returns the plain text. */
export function toMarkdown(html: string, url: string, ownChars = readOwnContent(html).textLength): string {
  if (!isInitialized) initSync({ module: readFileSync(wasmPath) });
  isInitialized = true;
  const source = flattenLayoutTables(html);
  const convert = (exclude: string[]) =>
    String(
      htmlToMarkdownResult(source, { origin: new URL(".", url).href, plugins: { filter: { exclude } } }).markdown ?? "",
    ).replaceAll("\0", "");
  const ignoredTags = ["head", "script", "style", "template", "svg"];
  try {
    const menus = ["nav", "footer", "[role=navigation]", "[role=contentinfo]", "[role=search]"];
    const attempts = [[...menus, "aside", "form", "button"], menus, []].map(
      (tags) => () => convert([...ignoredTags, ...tags]),
    );
    const text = firstLongEnough(attempts, Math.min(minMainChars, ownChars / 2));
    return withoutPermalinks(text, url).replace(emptyLink, "").trim();
  } catch {
    // The failure may have left the module in a broken state, so the next conversion loads it again.
    isInitialized = false;
    return decodeEntities(html.replace(/<(script|style)\b[\s\S]*?<\/\1>/gi, "").replace(/<[^>]+>/g, " ")).trim() || url;
  }
}

/**
 * Markdown whose headings have no links to sections of their page, at `url`. Of texts of such links, those stay that only
 * one heading has, unless they repeat the rest of it.
 */
function withoutPermalinks(markdown: string, url: string): string {
  const permalink =
    /\[((?:!\[[^[\]\n]{0,200}\]|[^[\]\n]){0,200})\]\(([^()\s]{0,500})#[^()\s]{0,500}(?: "[^"\n]{0,200}")?\)/g;
  const isOwn = (target: string) => target === "" || pageKey(target) === pageKey(url);
  const headings = markdown.match(/^#{1,6} .*$/gm) ?? [];
  const uses = Map.groupBy(
    headings.flatMap((heading) => [...heading.matchAll(permalink)].map(([, text]) => text)),
    String,
  );
  return markdown.replace(/^#{1,6} .*$/gm, (heading) => {
    const rest = plainText(heading.replace(/^#+/, "").replace(permalink, "")).trim();
    const isName = (text: string) =>
      uses.get(text)?.length === 1 && /^[^!]*[\p{L}\p{N}]/u.test(text) && (rest === "" || !text.includes(rest));
    return heading
      .replace(permalink, (link, text, target) => (isOwn(target) ? (isName(text) ? text : "") : link))
      .trimEnd();
  });
}

/** The first text that is long enough, or else the first that isn't empty. */
function firstLongEnough(attempts: (() => string)[], minChars: number): string {
  const texts: string[] = [];
  for (const attempt of attempts) {
    const text = attempt().trim();
    if (text.length >= Math.max(1, minChars)) return text;
    texts.push(text);
  }
  return texts.find((text) => text !== "") ?? "";
}

/** Reads a page from a response body. Never throws: unreadable content yields an empty page. */
export function readPage(url: string, contentType: string | null, text: string): Page {
  const clean = text.replaceAll("\r\n", "\n").replaceAll("\0", "");
  if (!isHtmlText(contentType, clean)) return readMarkdown(url, clean);
  const html = limitTags(clean.slice(0, maxHtmlChars));
  const complete = closeHead(/xhtml/i.test(contentType ?? "") ? expandEmptyTags(html) : html);
  return readHtml(url, breakCodeLines(complete), html);
}

/** Whether a response is a text document, by its content type. */
export function isReadable(contentType: string | null): boolean {
  return (
    contentType === null ||
    !contentType.includes("/") ||
    /^\s*(text\/(html|markdown|x-markdown|plain|mdx)|application\/xhtml)/i.test(contentType)
  );
}

/** Whether a page is HTML, by its content type or its start. */
export const isHtmlText = (contentType: string | null, text: string): boolean =>
  /html/i.test(contentType ?? "") || startsLikeHtml(text);

/** Whether a text starts like HTML, after what XHTML may have before it. */
export const startsLikeHtml = (text: string): boolean =>
  /^\s*(?:<\?xml\b[^>]*>\s*)?(?:<!--(?:(?!-->)[\s\S]){0,2000}-->\s*)?(?:<!doctype html|<html[\s>])/i.test(text);

/** `sent`: the same HTML with the lines that it was sent with. */
function readHtml(url: string, html: string, sent: string): Page {
  const markup = readMarkup(html, url);
  const markdown = toMarkdown(html, url, markup.own.textLength);
  const headings = findHeadings(markdown, findFences(markdown));
  const samples = locateSamples(markup.preformatted, markdown);
  const title = markup.title || headings[0]?.text || "";
  const { own, scriptCount: scripts, asksForScript } = markup;
  const content = { own, samples: samples.length, scripts, asksForScript };
  const problem = findProblem(content);
  const redirect = isStub(content) ? markup.redirect : null;
  const ownLinks = redirect === null ? [] : [{ url: redirect, text: "redirect", context: "", heading: "" }];
  const links = [...ownLinks, ...markup.links];
  const namesSections = markup.hasHeadingIds || !hasSections(headings) || nameHeadings(markup.anchors, headings);
  const page: Page = {
    url,
    form: "html",
    title,
    lead: markup.description || firstParagraph(markdown),
    language: markup.language,
    markdown,
    headings,
    links: links.slice(0, maxParts),
    samples,
    anchors: problem === "empty_shell" || !namesSections ? null : markup.anchors,
    problem,
    isThin: isThin(content),
    asksToSignIn: own.asksToSignIn || own.mayAskToSignIn,
    asksForProof: own.asksForProof || (isThin(content) && own.mayAskForProof),
    redirect,
    isDeadEnd: isStub(content) && own.images === 0 && links.length <= 1,
    isUnlisted: /\b(noindex|none)\b/.test(markup.robots),
    source: {
      robots: markup.robots === "" ? null : findRobotsLine(sent),
      tabs: own.tabs + own.emptyPanels === 0 ? null : findTabsLine(sent),
    },
    pictures: own.images,
    hasOnlyImages: isPictured(content),
    emptyTabs: Math.max(own.tabs - own.tabPanels, own.emptyPanels),
  };
  return problem === null && isErrorPage(page) ? { ...page, problem: problemOfErrorPage(page) } : page;
}

const hasSections = (headings: Heading[]) => headings.some(({ level }) => level > 1);

/** The preformatted blocks of a page, with the lines before them in its Markdown. */
function locateSamples(blocks: CodeBlock[], markdown: string): CodeSample[] {
  // A block may be in a quote, and the prompt of an interactive session looks like one.
  const stripQuote = (line: string) => line.replace(/^[\s>]+/, "").trim();
  const lines = markdown.split("\n").map(stripQuote);
  let from = 0;
  return blocks.slice(0, maxParts).map((block) => {
    const code = block.code.split("\n").map(stripQuote);
    const first = code.findIndex((line) => line !== "");
    const index = lines.indexOf(code[first] ?? "", from);
    const place =
      index >= 0
        ? { line: index - Math.max(0, first), last: endOf(lines, index, code.slice(first)) }
        : findWithin(lines, code, from);
    if (place !== null) from = place.last + 1;
    const isInOneLine = place !== null && "isInOneLine" in place;
    return { ...block, line: Math.max(1, place?.line ?? from), isClosed: true, ...(isInOneLine && { isInOneLine }) };
  });
}

/** The last of the lines from `start` that a block has too: another block may start with one of them. */
function endOf(lines: string[], start: number, code: string[]): number {
  const differing = code.findIndex((text, at) => lines[start + at] !== text);
  return start + (differing < 0 ? code.length : differing) - 1;
}

/** Lines of a block that are long enough to be found within another line, and how many of them are tried. */
const longLines = { minChars: 8, tried: 5 };

/** Where a block is if each of its lines has a number before it, or if all of it is in one cell of a table; null if it is nowhere. */
function findWithin(lines: string[], code: string[], from: number) {
  const longest = code
    .flatMap((text, at) => (text.length >= longLines.minChars ? [{ text, at }] : []))
    .sort((a, b) => b.text.length - a.text.length)
    .slice(0, longLines.tried);
  for (const { text, at } of longest) {
    const last = lines.findIndex((line, index) => index >= from && line.includes(text));
    if (last < 0) continue;
    const isInOneLine = longest.some((other) => other.at !== at && lines[last]!.includes(other.text));
    return isInOneLine ? { line: last, last, isInOneLine } : { line: last - at, last };
  }
  return null;
}

function readMarkdown(url: string, text: string): Page {
  const { body, title: frontTitle, description } = splitFrontMatter(text);
  const blocks = findFences(body);
  const headings = findHeadings(body, blocks);
  const page: Page = {
    url,
    form: "markdown",
    title: frontTitle || headings[0]?.text || "",
    lead: description || firstParagraph(body),
    language: null,
    markdown: body,
    headings,
    links: markdownLinks(body, codeLines(blocks), headings, url).slice(0, maxParts),
    samples: blocks.slice(0, maxParts).map(({ endLine: _, ...sample }) => sample),
    anchors: null,
    problem: null,
    isThin: blocks.length === 0 && body.length < maxThinMarkdown,
    asksToSignIn: false,
    asksForProof: false,
    redirect: null,
    isDeadEnd: false,
    isUnlisted: false,
    source: { robots: null, tabs: null },
    pictures: 0,
    hasOnlyImages: false,
    emptyTabs: 0,
  };
  return { ...page, problem: isErrorPage(page) ? "soft_404" : body.trim() === "" ? "empty" : null };
}

/** Front matter is blanked rather than removed, so that line numbers stay the same. */
function splitFrontMatter(text: string): { body: string; title: string; description: string } {
  const match = /^---[ \t]*\n([\s\S]*?)\n---[ \t]*(?=\n|$)/.exec(text);
  if (!match) return { body: text, title: "", description: "" };
  const head = match[1]!.slice(0, 5000);
  const readField = (key: RegExp) => (key.exec(head)?.[2] ?? "").trim();
  return {
    body: "\n".repeat(match[0].split("\n").length - 1) + text.slice(match[0].length),
    title: readField(/^title:[ \t]*(["']?)(.{1,300}?)\1[ \t]*$/m),
    description: readField(/^description:[ \t]*(["']?)(.{1,300}?)\1[ \t]*$/m),
  };
}

/** The first line of prose near the top of a page. */
function firstParagraph(markdown: string): string {
  const prose = markdown
    .slice(0, 10_000)
    .split("\n")
    .find(
      (line) =>
        /^\s*[\p{L}\p{N}*_`]/u.test(line) && !/^\s*(```|\* |\d+[.)])/.test(line) && plainText(line).length >= 25,
    );
  return plainText(prose ?? "").slice(0, 300);
}

type Fence = CodeSample & { endLine: number };

/**
 * Fenced code blocks. Blocks in a list or a quote lose their indentation. A line that opens another block with a language ends one that isn't
 * closed: code with such a line needs a longer fence.
 */
function findFences(markdown: string): Fence[] {
  const lines = markdown.split("\n");
  const blocks: Fence[] = [];
  for (let i = 0; i < lines.length; i++) {
    const comment = endOfComment(lines, i);
    if (comment !== null) {
      i = comment;
      continue;
    }
    const opening = /^(\s*(?:>\s?)*(?:(?:[-*+]|\d+[.)])\s+)*)(`{3,20}|~{3,20})([^`~].*)?$/.exec(
      lines[i]!.slice(0, 1000),
    );
    if (!opening || (opening[2]?.startsWith("`") && opening[3]?.includes("`"))) continue;
    const [, prefix = "", mark = "", info = ""] = opening;
    const close = new RegExp(`^[\\s>]*${mark[0]}{${mark.length},}\\s*$`);
    const next = new RegExp(`^[\\s>]{0,${prefix.length + 3}}${mark[0]}{${mark.length},}\\s*[\\w{][^\`~]*$`);
    let end = i + 1;
    while (end < lines.length && !close.test(lines[end]!) && !next.test(lines[end]!)) end++;
    const isClosed = end < lines.length && close.test(lines[end]!);
    const quotes = prefix.split(">").length - 1;
    const strip = new RegExp(`^(?:\\s*>\\s?){0,${quotes}}\\s{0,${prefix.replace(/>\s?/g, "").length}}`);
    const code = lines.slice(i + 1, end).map((line) => line.replace(strip, ""));
    blocks.push({
      language: toLanguage(info),
      code: code.join("\n"),
      line: i + 1,
      endLine: isClosed ? end + 1 : end,
      isClosed,
      ...(wrongMark.test(info) && { isWrong: true as const }),
    });
    i = isClosed ? end : end - 1;
  }
  return blocks;
}

/** A text without its fenced code blocks. One that is never closed is kept. */
export function withoutFences(markdown: string): string {
  const code = codeLines(findFences(markdown).filter(({ isClosed }) => isClosed));
  return markdown
    .split("\n")
    .filter((_, index) => !code.has(index + 1))
    .join("\n");
}

/** The last line of a comment that starts with a line; null if none does. Readers don't see the code in it. */
function endOfComment(lines: string[], start: number): number | null {
  const mark = /^\s*(<!--|\{\/\*)/.exec(lines[start]!)?.[1];
  if (mark === undefined) return null;
  const end = mark === "<!--" ? "-->" : "*/}";
  const last = lines.findIndex((line, index) => index >= start && line.includes(end));
  return last < 0 ? null : last;
}

/** The language in an info string: ```` ```ts title="a.ts" ````, `{.python}`, `js{1,3}`, `language-sh`. */
function toLanguage(info: string): string | null {
  const word =
    info
      .trim()
      .replace(/^\{?\s*\.?/, "")
      .replace(/^language-/, "")
      .replace(/#\w.*$/, "")
      .split(/[\s,{}:]/)[0] ?? "";
  return word === "" || word.includes("=") ? null : word.toLowerCase();
}

function findHeadings(markdown: string, blocks: Fence[]): Heading[] {
  const codeLineNumbers = codeLines(blocks);
  const headings = markdown.split("\n").flatMap((text, index) => {
    if (codeLineNumbers.has(index + 1)) return [];
    const match = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/.exec(text.slice(0, 500));
    const term = match ? null : /<dt>(.{1,200}?)<\/dt>/.exec(text.slice(0, 500))?.[1];
    const title = plainText(match ? match[2]!.trimEnd().replace(/(^|[ \t])#{1,50}$/, "") : (term ?? ""));
    return title ? [{ level: match ? match[1]!.length : 7, text: title.slice(0, 150), line: index + 1 }] : [];
  });
  return headings.slice(0, maxParts);
}

const codeLines = (blocks: Fence[]) =>
  new Set(blocks.flatMap(({ line, endLine }) => Array.from({ length: endLine - line + 1 }, (_, i) => line + i)));
