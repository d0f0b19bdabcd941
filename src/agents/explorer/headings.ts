import type { Check } from "../agent.ts";
import { withoutFences } from "../fences.ts";
import { linkTarget } from "../markdown-links.ts";
import { type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** Pages with at least this much prose need headings, in characters. */
const longProse = 3000;
/** A heading divides the page if this many characters of text are above it and below it. Less text is a breadcrumb, an author's line or a menu. */
const someText = 100;

/** Checks that long pages have headings besides their titles. */
export async function* checkHeadings(session: Session, pages: ReadPage[]): Steps {
  const longPages = pages.filter((page) => page.problem === null && isLong(page.markdown.split("\n")));
  if (longPages.length === 0) return;
  yield* useTool(session, "check_headings", { pages: longPages.length }, async () => {
    const checks = longPages.map(toHeadingsCheck);
    const without = checks.filter(({ status }) => status === "warn").length;
    return { ok: true, output: { pages: longPages.length, without }, checks, value: undefined };
  });
}

const endOfLink = new RegExp(String.raw`\]${linkTarget}`, "g");
const linkOrLabel = new RegExp(String.raw`\[[^[\]]*\](${linkTarget})?`, "g");

/** Whether lines of a page have much text besides code, tables and link URLs. */
function isLong(lines: string[]): boolean {
  const prose = withoutFences(lines.join("\n"))
    .replace(/^[^\S\n]*\|.*$/gm, "")
    .replace(endOfLink, "]");
  return prose.length >= longProse;
}

/** The headings of a page include the terms of its definition lists, on a level of their own. */
const isTerm = ({ level }: { level: number }) => level > 6;

const normalizeTitle = (text: string) =>
  text
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim()
    .toLowerCase();

/**
 * Whether a heading divides the page. The titles of the page and of its manual don't, because they stand above all of its text, or are in the
 * document's title. Headings of menus below the text don't either.
 */
function hasDividingHeading({ title, markdown, headings }: ReadPage): boolean {
  const titles = new Set([title, ...title.split(/\s[|·•–—-]\s|:\s/)].map(normalizeTitle));
  const lines = markdown.split("\n");
  // How many lines from the start, and from the end of the page, contain `someText`.
  const minAbove = lengthOfSomeText(lines.map(proseOfLine));
  const minFromHere = lengthOfSomeText(lines.map(textOf).reverse());
  return headings.some((heading) => {
    const linesAbove = heading.line - 1;
    const isInText = linesAbove >= minAbove && lines.length - linesAbove >= minFromHere;
    return isInText && !isTerm(heading) && !titles.has(normalizeTitle(heading.text));
  });
}

/** The text of a line without links, which are often navigation. */
const textOf = (line: string) => line.replace(linkOrLabel, "").trim();
/** The same without headings and without tables, which old pages use for their menus. */
const proseOfLine = (line: string) => (/^\s*[#|]/.test(line) ? "" : textOf(line));

/** How many lines, from the first one, contain `someText`; Infinity if all lines together have less. */
function lengthOfSomeText(lines: string[]): number {
  let chars = 0;
  for (const [index, line] of lines.entries()) {
    chars += line.length;
    if (chars >= someText) return index + 1;
  }
  return Number.POSITIVE_INFINITY;
}

/** Whether a page is a glossary: no part between two terms of definitions is long. */
function isDividedByTerms({ markdown, headings }: ReadPage): boolean {
  const lines = markdown.split("\n");
  const terms = headings.filter(isTerm).map(({ line }) => line);
  const ends = [...terms, lines.length];
  return terms.length > 0 && [0, ...terms].every((start, part) => !isLong(lines.slice(start, ends[part])));
}

function toHeadingsCheck(page: ReadPage): Check {
  const base = { id: "long-page-has-headings", group: "page" as const, subject: page.url };
  if (hasDividingHeading(page) || isDividedByTerms(page))
    return toCheck({ ...base, status: "pass", message: "The page has headings" });
  return toCheck({
    ...base,
    status: "warn",
    weight: 3,
    message: "The page is long and has no headings",
    fix: "Add headings that describe each part of the page.",
  });
}
