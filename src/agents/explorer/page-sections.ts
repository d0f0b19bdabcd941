import { namesOfSample } from "../languages.ts";
import type { CodeSample } from "../page.ts";
import type { ReadPage } from "./session.ts";

/**
 * What a section is, by its structure. Only prose answers a goal. `index`: nothing but links to other places. `source`: a listing of code. `changes`:
 * an entry of a changelog. `translation`: it is on a page in another language than the start page.
 */
export type SectionKind = "prose" | "index" | "source" | "changes" | "translation";

/** A part of a page under one heading, limited in length. */
export type Section = {
  url: string;
  heading: string;
  /** Title of the page and headings above, as shown to people. */
  path: string[];
  line: number;
  text: string;
  hasSample: boolean;
  /** What its samples are called, such as “python code” or “request”. */
  sampleNames: string[];
  kind: SectionKind;
};

/** Maximum length of a section in characters. Longer sections are split at blank lines. */
const maxSectionChars = 3000;
/** A sample this many lines below a part of a section still belongs to it. */
const sampleLines = 20;
/** If links are at least this share of a line, the line is an entry of a list or a menu. */
const minLinkShare = 0.8;
/**
 * A page is a listing if one block of code is this share of it and has at least this many lines, and this share of the lines has the syntax of code.
 */
const source = { minShare: 0.8, minLines: 60, minSyntaxShare: 0.25 };
/** From this number of headings with a version or a date on, a page is a changelog. */
const minReleases = 3;

/** Headings of sections for other readers, without samples to copy. */
export const synopsisHeading = /^(\d+\.)*\s*synopsis$/i;

/** The heading above a sample; "" above the first heading. */
export const headingAbove = ({ headings }: ReadPage, { line }: { line: number }): string =>
  headings.findLast((heading) => heading.line <= line)?.text ?? "";

const letters = (text: string): number => text.replace(/[^\p{L}\p{N}]/gu, "").length;

/**
 * What Markdown says by itself: without the URLs of its links, and without lines of links to other places, because their words describe those places.
 */
export function ownText(markdown: string): string {
  const lines = markdown.split("\n").map((line) => {
    if (!line.includes("](")) return line;
    const linkTexts = [...line.matchAll(/\[([^[\]]*)\]\([^()\s]*(?: "[^"]*")?\)/g)].map((match) => match[1]!);
    const text = line.replace(/\]\([^()\s]*(?: "[^"]*")?\)/g, "]");
    return letters(linkTexts.join("")) >= minLinkShare * letters(text) ? "" : text;
  });
  return lines.join("\n");
}

/** Whether a section has nothing but links to other places. */
function isIndex(text: string): boolean {
  if (!text.includes("](")) return false;
  const body = text.replace(/^#.*$/gm, "");
  return letters(ownText(body)) <= (1 - minLinkShare) * letters(body.replace(/\]\([^()\s]*\)/g, "]"));
}

/** Splits a page at its headings. A section has a sample if it contains one, or if one follows under the same heading. */
export function toSections(page: ReadPage): Section[] {
  const lines = page.markdown.split("\n");
  const headings = [{ level: 0, text: page.title, line: 1 }, ...page.headings];
  const isSource = isListing(page);
  const isChangelog = headings.filter(({ text }) => isRelease(text)).length >= minReleases;
  const sections: Section[] = [];
  const ancestors: { level: number; text: string }[] = [];
  for (const [position, heading] of headings.entries()) {
    const end = headings[position + 1]?.line ?? lines.length + 1;
    while (ancestors.length > 0 && ancestors.at(-1)!.level >= heading.level) ancestors.pop();
    ancestors.push(heading);
    const path = ancestors.map(({ text }) => text);
    const isChange = path.some((part) => (isChangelog ? isRelease(part) : isDate(part)));
    const kindOf = (text: string): SectionKind => {
      if (isSource) return "source";
      if (isChange) return "changes";
      return isIndex(text) ? "index" : "prose";
    };
    for (const { start, text } of partsOf(lines, heading.line, end)) {
      const last = Math.min(end, start + text.split("\n").length + sampleLines);
      const samples = samplesIn(page, heading.text, start, last);
      sections.push({
        url: page.url,
        heading: heading.text,
        path: path.filter((part, depth) => part && part !== path[depth - 1]),
        line: start,
        text,
        hasSample: samples.length > 0,
        sampleNames: [...new Set(samples.flatMap(namesOf))],
        kind: kindOf(text),
      });
    }
  }
  // The text above the entries of a changelog belongs to the changelog.
  const isMostlyChanges = sections.filter(({ kind }) => kind === "changes").length >= sections.length / 2;
  return isMostlyChanges ? sections.map((section) => ({ ...section, kind: "changes" })) : sections;
}

/** The lines from `from` to before `end`, in parts of limited length. */
function partsOf(lines: string[], from: number, end: number): { start: number; text: string }[] {
  const parts = [{ start: from, text: "" }];
  for (const [index, line] of lines.slice(from - 1, end - 1).entries()) {
    const part = parts.at(-1)!;
    // A part ends before a blank line. If there is no blank line for long, it ends anywhere.
    const maxChars = line.trim() === "" ? maxSectionChars : 2 * maxSectionChars;
    if (part.text.length < maxChars) part.text += `${line}\n`;
    else parts.push({ start: from + index, text: `${line}\n` });
  }
  return parts.filter(({ text }) => text.trim() !== "").map(({ start, text }) => ({ start, text: text.slice(0, -1) }));
}

const samplesIn = ({ samples }: ReadPage, heading: string, start: number, end: number): CodeSample[] =>
  synopsisHeading.test(heading)
    ? []
    : samples.filter(({ line, code }) => line >= start && line < end && code.trim().length > 2);

const httpRequest = /\bcurl\s|^(?:GET|POST|PUT|PATCH|DELETE) \//m;
const namesOf = ({ language, code }: CodeSample): string[] => [
  ...(language === null ? [] : namesOfSample(language)),
  ...(httpRequest.test(code) ? ["request"] : []),
];

/** A page that is one block of code, such as the source of a class. A manual in one plain block has no code language. */
function isListing({ markdown, samples }: ReadPage): boolean {
  const longest = samples.reduce(
    (best, sample) => (sample.code.length > (best?.code.length ?? 0) ? sample : best),
    samples[0],
  );
  if (longest === undefined) return false;
  const isCode = longest.language !== null || isNumbered(longest.code) || hasSyntax(longest.code);
  return (
    isCode &&
    longest.code.length >= source.minShare * markdown.length &&
    longest.code.split("\n").length >= source.minLines
  );
}

/** A line that is common in programs and rare in prose: it ends with a bracket, a semicolon or a colon, or calls something. */
const codeLine = /[;:{}([]\s*$|\w\(.*\)/;

/** Whether many lines of a text are code. */
function hasSyntax(text: string): boolean {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.filter((line) => codeLine.test(line)).length >= source.minSyntaxShare * lines.length;
}

/** Whether the lines of a text count up. */
function isNumbered(text: string): boolean {
  const numbers = text.split("\n").flatMap((line) => /^\s*(\d+)/.exec(line)?.[1] ?? []);
  return numbers.length >= source.minLines && numbers.every((number, at) => Number(number) === Number(numbers[0]) + at);
}

const version = /\bv?\d+(\.\d+){1,3}([-.]?(a|b|rc|alpha|beta|dev|post)\.?\d*)?\b/i;
const months = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec";
/** `2026-11-05`, `November 5, 2026` and `5 Nov. 2026`. */
const dates = [
  "\\d{4}-\\d{2}-\\d{2}",
  `(${months})[a-z]*\\.? \\d{1,2}(, |\\w{0,2} )\\d{4}`,
  `\\d{1,2} (${months})[a-z]*\\.? \\d{4}`,
];
const date = new RegExp(`\\b(${dates.join("|")})\\b`, "i");

const wordsIn = (text: string): number => text.match(/\p{L}{2,}/gu)?.length ?? 0;
/** A heading that is a date. */
const isDate = (heading: string): boolean => date.test(heading) && wordsIn(heading.replace(date, "")) <= 2;
/** A heading that names a release: a version or a date, with a word or two. */
const isRelease = (heading: string): boolean =>
  isDate(heading) || (version.test(heading) && wordsIn(heading.replace(version, "").replace(date, "")) <= 2);
