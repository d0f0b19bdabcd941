import type { Check } from "../agent.ts";
import { linkTarget } from "../markdown-links.ts";
import { withoutFences } from "../page.ts";
import { type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** Pages with at least this much prose need headings, in characters. */
const longProse = 3000;
/** Prose above a heading, in characters, from which it divides the page. Less is a breadcrumb or an author's line. */
const someProse = 100;

/** Checks that long pages have headings besides their titles. */
export async function* checkHeadings(session: Session, pages: ReadPage[]): Steps {
  const long = pages.filter((page) => page.problem === null && proseOf(page).length >= longProse);
  if (long.length === 0) return;
  yield* useTool(session, "check_headings", { pages: long.length }, async () => {
    const checks = long.map(toHeadingsCheck);
    const without = checks.filter(({ status }) => status === "warn").length;
    return { ok: true, output: { pages: long.length, without }, checks, value: undefined };
  });
}

const endOfLink = new RegExp(String.raw`\]${linkTarget}`, "g");
const linkOrLabel = new RegExp(String.raw`\[[^[\]]*\](${linkTarget})?`, "g");

/** The text of a page without code, tables and link URLs. */
const proseOf = ({ markdown }: ReadPage) =>
  withoutFences(markdown)
    .replace(/^[^\S\n]*\|.*$/gm, "")
    .replace(endOfLink, "]");

const normalizeTitle = (text: string) =>
  text
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim()
    .toLowerCase();

/**
 * Whether a heading divides the page. The titles of the page and of its manual don't: they stand above all of its
 * text, or are in the document's title.
 */
function hasDividingHeading({ title, markdown, headings }: ReadPage): boolean {
  const titles = new Set([title, ...title.split(/\s[|·•–—-]\s|:\s/)].map(normalizeTitle));
  const lines = markdown.split("\n");
  let prose = 0;
  let lineIndex = 0;
  return headings.some(({ level, text, line }) => {
    for (; lineIndex < line - 1; lineIndex++) prose += textOf(lines[lineIndex]!).length;
    return level <= 6 && prose >= someProse && !titles.has(normalizeTitle(text));
  });
}

/** The text of a line without headings, tables and links, which are often navigation. */
const textOf = (line: string) => (/^\s*[#|]/.test(line) ? "" : line.replace(linkOrLabel, "").trim());

function toHeadingsCheck(page: ReadPage): Check {
  const base = { id: "long-page-has-headings", group: "page" as const, subject: page.url };
  if (hasDividingHeading(page)) return toCheck({ ...base, status: "pass", message: "The page has headings" });
  return toCheck({
    ...base,
    status: "warn",
    weight: 3,
    message: "The page is long and has no headings",
    fix: "Add headings that describe each part of the page.",
  });
}
