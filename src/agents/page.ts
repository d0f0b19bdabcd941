import { type CodeBlock, withoutCallouts } from "./code-blocks.ts";
import { isErrorPage, problemOfErrorPage } from "./error-pages.ts";
import { codeLines, type Fence, findFences, swallowsFence } from "./fences.ts";
import { toMarkdown } from "./html-markdown.ts";
import { breakCodeLines, closeHead, expandEmptyTags, showShadowTrees } from "./html-source.ts";
import { markdownLinks, plainText } from "./markdown-links.ts";
import { type DocLink, readMarkup } from "./markup.ts";
import { findProblem, isFrameset, isPictured, isStub, isThin, type PageProblem } from "./page-problem.ts";
import { areMadeFromHeadings } from "./section-names.ts";
import { findRobotsLine, findTabsLine, type SourceLine } from "./source-lines.ts";
import { limitTags } from "./tag-limits.ts";

/** The level of the term of a definition. It is below the levels of all headings. */
const termLevel = 7;
/** A heading of a page, or the term of a definition; `line` is 1-based in the page's Markdown. */
type Heading = { level: number; text: string; line: number };

/**
 * A code block, which starts in the line after `line`. `language`: the page's name for it in lower case; null if missing. `isClosed`: false for an
 * unterminated fence. `isInOneLine`: all of its lines are in that one line, as in the cell of a table.
 */
export type CodeSample = CodeBlock & { line: number; isClosed: boolean; isInOneLine?: true };

/** The line of a page that has a line of a sample, both from 1. */
export const lineOfSample = ({ line, isInOneLine }: CodeSample, lineOfCode: number): number =>
  line + (isInOneLine ? 1 : lineOfCode);

/** The line of a page with the first occurrence of a text in a sample. If the text isn't in the sample, the first line of the sample. */
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
  /** Links with absolute URLs, including fragments. */
  links: DocLink[];
  samples: CodeSample[];
  /** Names that a fragment may refer to; null if its sections have no names, because a script may add them. */
  anchors: Set<string> | null;
  problem: PageProblem | null;
  /** Whether it says no more than an error page would. */
  isThin: boolean;
  /** Whether it has a form or a link to sign in, in addition to its content or instead of it. */
  asksToSignIn: boolean;
  /** Whether it tests that the reader is a person with a browser, in addition to its content or instead of it. */
  asksForProof: boolean;
  /** Where it sends its reader, if it has nothing else to say. */
  redirect: string | null;
  /** Whether it has a sentence or two, no picture, and at most one link. */
  isDeadEnd: boolean;
  /** Whether it has tools that readers use instead of reading, such as an editor, or another page in a frame. */
  hasTools: boolean;
  /** Whether it asks search engines not to list it. */
  isUnlisted: boolean;
  /**
   * Lines of its HTML, as it was sent, that its Markdown doesn't have: the rule for search engines, and the first tab. Null: there is no such line.
   */
  source: { robots: SourceLine | null; tabs: SourceLine | null };
  /** Number of pictures that show something, besides icons and badges. */
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
/** Markdown without samples that is shorter than this may be an error page, in characters. */
const maxThinMarkdown = 600;

/** Reads a page from a response body. Never throws: unreadable content yields an empty page. */
export function readPage(url: string, contentType: string | null, text: string): Page {
  const clean = text.replaceAll("\r\n", "\n").replaceAll("\0", "");
  if (!isHtmlText(contentType, clean)) return readMarkdown(url, clean);
  const html = limitTags(clean.slice(0, maxHtmlChars));
  const complete = showShadowTrees(closeHead(/xhtml/i.test(contentType ?? "") ? expandEmptyTags(html) : html));
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

const xmlDeclaration = String.raw`<\?xml\b[^>]*>\s*`;
const comment = String.raw`<!--(?:(?!-->)[\s\S]){0,2000}-->\s*`;
const htmlStart = new RegExp(String.raw`^\s*(?:${xmlDeclaration})?(?:${comment})?(?:<!doctype html|<html[\s>])`, "i");

/** Whether a text starts like HTML, after what XHTML may have before it. */
export const startsLikeHtml = (text: string): boolean => htmlStart.test(text);

/** `sent`: the same HTML with the lines that it was sent with. */
function readHtml(url: string, html: string, sent: string): Page {
  const markup = readMarkup(html, url);
  const markdown = toMarkdown(html, url, markup.own.textLength);
  const headings = findHeadings(markdown, findFences(markdown));
  const samples = locateSamples(markup.preformatted, markdown);
  const title = markup.title || headings[0]?.text || "";
  const { own, scriptCount, asksForScript, hasAlternative } = markup;
  const content = { own, samples: samples.length, scripts: scriptCount, asksForScript, hasAlternative };
  const problem = findProblem(content);
  const redirect = isStub(content) ? markup.redirect : null;
  const redirectLinks = redirect === null ? [] : [{ url: redirect, text: "redirect", context: "", heading: "" }];
  // What a page shows in its frames is a page of its own if it is all that it shows.
  const pageLinks = isFrameset(content) ? markup.links.map(({ isEmbedded, ...link }) => link) : markup.links;
  const links = [...redirectLinks, ...pageLinks];
  const namesSections = markup.hasHeadingIds || !hasSections(headings) || areMadeFromHeadings(markup.anchors, headings);
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
    hasTools: own.tools + own.frames > 0,
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

/** The preformatted blocks of a page. `line` of each is the line before it in the page's Markdown. */
function locateSamples(blocks: CodeBlock[], markdown: string): CodeSample[] {
  // A block may be in a quote, and the prompt of an interactive session looks like one.
  const stripQuote = (line: string) => withoutCallouts(line.replace(/^[\s>]+/, "")).trim();
  const lines = markdown.split("\n").map(stripQuote);
  let from = 0;
  return blocks.slice(0, maxParts).map((block) => {
    const code = block.code.split("\n").map(stripQuote);
    const place = findBlock(lines, code, from) ?? findWithin(lines, code, from);
    if (place) from = place.lastIndex + 1;
    const isInOneLine = place?.isInOneLine ?? false;
    return {
      ...block,
      line: Math.max(1, place?.line ?? from),
      isClosed: !swallowsFence(block),
      ...(isInOneLine && { isInOneLine }),
    };
  });
}

/** Where a block is: `line` is the number of the line before it, as in a sample, and `lastIndex` the index of its last line. */
type Place = { line: number; lastIndex: number; isInOneLine: boolean };

/** Where a block is, searched from an index on, if its lines are lines of the page; null if they aren't. */
function findBlock(lines: string[], code: string[], from: number): Place | null {
  const firstLine = code.findIndex((line) => line !== "");
  const blankLines = Math.max(0, firstLine);
  const firstIndex = lines.indexOf(code[blankLines]!, from);
  if (firstIndex < 0) return null;
  const start = firstIndex - blankLines;
  // The place ends at the first line that differs, because the next block may start there.
  const differing = code.findIndex((line, i) => i >= blankLines && lines[start + i] !== line);
  const sameLines = differing < 0 ? code.length : differing;
  return { line: start, lastIndex: start + sameLines - 1, isInOneLine: false };
}

/** Minimum length of a block's line that is searched for within other lines, and how many such lines are tried. */
const longLines = { minChars: 8, tried: 5 };

/** Where a block is if each of its lines has a number before it, or if the whole block is in one table cell; null if it is nowhere. */
function findWithin(lines: string[], code: string[], from: number): Place | null {
  const longest = code
    .map((text, linesBefore) => ({ text, linesBefore }))
    .filter(({ text }) => text.length >= longLines.minChars)
    .sort((a, b) => b.text.length - a.text.length)
    .slice(0, longLines.tried);
  for (const part of longest) {
    const index = lines.findIndex((line, i) => i >= from && line.includes(part.text));
    if (index < 0) continue;
    const isInOneLine = longest.some((other) => other !== part && lines[index]!.includes(other.text));
    return { line: isInOneLine ? index : index - part.linesBefore, lastIndex: index, isInOneLine };
  }
  return null;
}

/** A picture outside of a link. Badges are pictures in links. */
const pictureInMarkdown = /(?<!\[)!\[[^\]\n]*\]\(/g;

function readMarkdown(url: string, text: string): Page {
  const { body, title: frontTitle, description } = splitFrontMatter(text);
  const fences = findFences(body);
  const headings = findHeadings(body, fences);
  const page: Page = {
    url,
    form: "markdown",
    title: frontTitle || headings[0]?.text || "",
    lead: description || firstParagraph(body),
    language: null,
    markdown: body,
    headings,
    links: markdownLinks(body, codeLines(fences), headings, url).slice(0, maxParts),
    samples: fences.slice(0, maxParts).map(({ sample }) => sample),
    anchors: null,
    problem: null,
    isThin: fences.length === 0 && body.length < maxThinMarkdown,
    asksToSignIn: false,
    asksForProof: false,
    redirect: null,
    isDeadEnd: false,
    hasTools: false,
    isUnlisted: false,
    source: { robots: null, tabs: null },
    pictures: body.match(pictureInMarkdown)?.length ?? 0,
    hasOnlyImages: false,
    emptyTabs: 0,
  };
  if (isErrorPage(page)) return { ...page, problem: problemOfErrorPage(page) };
  return body.trim() === "" ? { ...page, problem: "empty" } : page;
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

const leadChars = { min: 25, max: 300 };

/** The first line of prose near the top of a page. */
function firstParagraph(markdown: string): string {
  const isProse = (line: string) => {
    const isCodeOrItem = /^\s*(```|\* |\d+[.)])/.test(line);
    return /^\s*[\p{L}\p{N}*_`]/u.test(line) && !isCodeOrItem && plainText(line).length >= leadChars.min;
  };
  const prose = markdown.slice(0, 10_000).split("\n").find(isProse);
  return plainText(prose ?? "").slice(0, leadChars.max);
}

function findHeadings(markdown: string, fences: Fence[]): Heading[] {
  const inCode = codeLines(fences);
  const headings = markdown.split("\n").flatMap((text, index) => {
    const heading = inCode.has(index + 1) ? null : readHeading(text.slice(0, 500));
    const title = plainText(heading?.text ?? "");
    return heading && title ? [{ level: heading.level, text: title.slice(0, 150), line: index + 1 }] : [];
  });
  return headings.slice(0, maxParts);
}

function readHeading(line: string): { level: number; text: string } | null {
  const [, marks = "", text = ""] = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/.exec(line) ?? [];
  // Markdown allows marks behind the text as well.
  if (marks) return { level: marks.length, text: text.trimEnd().replace(/(^|[ \t])#{1,50}$/, "") };
  const term = /<dt>(.{1,200}?)<\/dt>/.exec(line)?.[1];
  return term === undefined ? null : { level: termLevel, text: term };
}
