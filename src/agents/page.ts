import { readFileSync } from "node:fs";
import { htmlToMarkdownResult, initSync } from "mdream/wasm";
import wasmPath from "mdream/wasm/mdream_edge_bg.wasm" with { type: "file" };
import { type CodeBlock, wrongMark } from "./code-blocks.ts";
import { decodeEntities } from "./entities.ts";
import { markdownLinks, plainText } from "./markdown-links.ts";
import { type DocLink, readMarkup } from "./markup.ts";

/** A heading of a page, or the term of a definition (level 7); `line` is 1-based in the page's Markdown. */
type Heading = { level: number; text: string; line: number };

/**
 * A code block. `language` is the page's name for it in lower case, null if missing; `isClosed` is false for an
 * unterminated fence.
 */
export type CodeSample = CodeBlock & { line: number; isClosed: boolean };

/** A page as an agent reads it. All line numbers refer to `markdown`. */
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
  /** Names that a fragment may refer to; null if unknown. */
  anchors: Set<string> | null;
  /**
   * `empty`: no text. `empty_shell`: no content without JavaScript. `soft_404`: an error page with a success status.
   * `sign_in`: a password form instead of the page.
   */
  problem: "empty" | "empty_shell" | "soft_404" | "sign_in" | null;
};

/** Longer HTML is cut before conversion, in characters. */
const maxHtmlChars = 4_000_000;
/** Maximum headings, samples and links of one page, each. */
const maxParts = 3000;
/** A page with scripts and less text than this counts as an empty shell. */
const maxShellChars = 200;
/** A page with more text than this has content besides its password form. */
const maxSignInChars = 1000;

let isInitialized = false;

/** HTML as Markdown with absolute links. If the conversion fails, returns the plain text. */
export function toMarkdown(html: string, url: string): string {
  if (!isInitialized) initSync({ module: readFileSync(wasmPath) });
  isInitialized = true;
  const convert = (exclude: string[]) =>
    String(
      htmlToMarkdownResult(html, { origin: new URL(".", url).href, plugins: { filter: { exclude } } }).markdown ?? "",
    ).replaceAll("\0", "");
  const ignoredTags = ["head", "script", "style", "template", "svg"];
  try {
    const main = convert([...ignoredTags, "nav", "footer", "aside", "form", "button"]);
    const text = main.trim().length >= maxShellChars ? main : convert(ignoredTags);
    return text.replace(/ ?\[[¶#§]?\]\([^()\s]{0,500}(?: "[^"\n]{0,200}")?\)/g, "").trim();
  } catch {
    // The failure may have left the module in a broken state, so the next conversion loads it again.
    isInitialized = false;
    return decodeEntities(html.replace(/<(script|style)\b[\s\S]*?<\/\1>/gi, "").replace(/<[^>]+>/g, " ")).trim() || url;
  }
}

/** Reads a page from a response body. Never throws: unreadable content yields an empty page. */
export function readPage(url: string, contentType: string | null, text: string): Page {
  const clean = text.replaceAll("\r\n", "\n").replaceAll("\0", "");
  return isHtml(contentType, clean) ? readHtml(url, clean.slice(0, maxHtmlChars)) : readMarkdown(url, clean);
}

/** Whether a response is a text document, by its content type. */
export function isReadable(contentType: string | null): boolean {
  return (
    contentType === null || /^\s*(text\/(html|markdown|x-markdown|plain|mdx)|application\/xhtml)/i.test(contentType)
  );
}

function isHtml(contentType: string | null, text: string): boolean {
  if (/html/i.test(contentType ?? "")) return true;
  return contentType === null && /^\s*(<!doctype html|<html)/i.test(text);
}

function readHtml(url: string, html: string): Page {
  const markup = readMarkup(html, url);
  const markdown = toMarkdown(html, url);
  const headings = findHeadings(markdown, findFences(markdown));
  const samples = locateSamples(markup.preformatted, markdown);
  const title = markup.title || headings[0]?.text || "";
  const textLength = markup.textLength;
  const isEmptyShell =
    textLength < maxShellChars &&
    markup.scriptCount > 0 &&
    (markup.hasMountPoint || markup.asksForScript || html.length > 5000);
  const page: Page = {
    url,
    form: "html",
    title,
    lead: markup.description || firstParagraph(markdown),
    language: markup.language,
    markdown,
    headings,
    links: markup.links.slice(0, maxParts),
    samples,
    anchors: isEmptyShell || !markup.hasHeadingIds ? null : markup.anchors,
    problem: null,
  };
  const isSignIn = markup.asksForPassword && textLength < maxSignInChars && samples.length === 0;
  const problem = isEmptyShell
    ? "empty_shell"
    : isSignIn
      ? "sign_in"
      : looksLikeError(page)
        ? "soft_404"
        : markdown === ""
          ? "empty"
          : null;
  return { ...page, problem };
}

/** The preformatted blocks of a page, with their lines in its Markdown. */
function locateSamples(blocks: CodeBlock[], markdown: string): CodeSample[] {
  // A block may be in a quote, and the prompt of an interactive session looks like one.
  const stripQuote = (line: string) => line.replace(/^[\s>]+/, "").trim();
  const lines = markdown.split("\n").map(stripQuote);
  let from = 0;
  return blocks.slice(0, maxParts).map((block) => {
    const first = block.code
      .split("\n")
      .map(stripQuote)
      .find((line) => line !== "");
    const index = lines.indexOf(first ?? "", from);
    if (index >= 0) from = index + 1;
    return { ...block, line: index >= 0 ? index + 1 : Math.max(1, from), isClosed: true };
  });
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
  };
  return { ...page, problem: looksLikeError(page) ? "soft_404" : body.trim() === "" ? "empty" : null };
}

/** Front matter is blanked rather than removed, so that line numbers stay the same. */
function splitFrontMatter(text: string): { body: string; title: string; description: string } {
  const match = /^---\n([\s\S]*?)\n---(?=\n|$)/.exec(text);
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

/** Fenced code blocks. Blocks in a list or a quote lose their indentation. */
function findFences(markdown: string): Fence[] {
  const lines = markdown.split("\n");
  const blocks: Fence[] = [];
  for (let i = 0; i < lines.length; i++) {
    const opening = /^(\s*(?:>\s?)*(?:(?:[-*+]|\d+[.)])\s+)*)(`{3,20}|~{3,20})([^`~].*)?$/.exec(
      lines[i]!.slice(0, 1000),
    );
    if (!opening || (opening[2]?.startsWith("`") && opening[3]?.includes("`"))) continue;
    const [, prefix = "", mark = "", info = ""] = opening;
    const close = new RegExp(`^[\\s>]*${mark[0]}{${mark.length},}\\s*$`);
    let end = i + 1;
    while (end < lines.length && !close.test(lines[end]!)) end++;
    const quotes = prefix.split(">").length - 1;
    const strip = new RegExp(`^(?:\\s*>\\s?){0,${quotes}}\\s{0,${prefix.replace(/>\s?/g, "").length}}`);
    const code = lines.slice(i + 1, end).map((line) => line.replace(strip, ""));
    blocks.push({
      language: toLanguage(info),
      code: code.join("\n"),
      line: i + 1,
      endLine: end + 1,
      isClosed: end < lines.length,
      ...(wrongMark.test(info) && { isWrong: true as const }),
    });
    i = end;
  }
  return blocks;
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

/** Titles of error pages in common languages; must match the whole title or first heading. */
const errorTitle =
  /^\W*(error\W*)?404\W*$|^\W*(error\W*)?404\b.{0,12}\b(not found|error)\W*$|^\W*(the )?(page|seite|document|file)( was| could| you requested (was|could))? ?(not|nicht)( be)? (found|gefunden)\b|^\W*not found\W*$|page (doesn.t|does not|no longer) exists?|(can|could)( ?not|n.t) (find|be found)|^page introuvable|^p[aá]gina no encontrada|^pagina non trovata|^ページが見つかりません|^(页面|頁面)(不存在|未找到|找不到)|^找不到(页面|頁面)/i;

function looksLikeError(page: Page): boolean {
  if (page.samples.length > 0 || page.markdown.length > 3000) return false;
  const titles = [page.title.slice(0, 200).split(/\s[|·–—-]\s/)[0] ?? "", page.headings[0]?.text ?? ""];
  return titles.some((title) => errorTitle.test(title.trim()));
}
