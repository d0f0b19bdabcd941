import { pageKey } from "../net/page-key.ts";
import { markdownLinks } from "./markdown-links.ts";
import type { LinkEdit } from "./milestones.ts";

/** A text with links: a page as Markdown, an llms.txt or a sitemap. */
export type LinkSource = { url: string; title: string; markdown: string };

/** A link whose target doesn't exist, and the page that contains it. */
export type DeadLink = { url: string; foundOn: string };

/** A longer line is not shown as a diff. */
const maxLineChars = 1000;
/** Maximum number of edits of one session. */
const maxEdits = 50;
/** Words that name no page. */
const vagueText =
  /^(here|this|this page|link|docs|documentation|home|next|previous|back|more|details|page|(read|learn|see) more|click here)$/i;
/** The target of a link as it is written, without its title: in Markdown, in HTML, as `[name]: target`, or in a sitemap. */
const rawTarget = /(?:\]\(\s*<?|href="|<|^ {0,3}\[[^\]]{1,300}\]:\s*<?|<loc>)([^\s()<>"]{1,2000})/g;

/**
 * How to correct dead links, if the texts that were read show where they should lead. `pages`: the pages that could be read. `listings`: other texts
 * with links.
 */
export function suggestLinkEdits(deadLinks: DeadLink[], pages: LinkSource[], listings: LinkSource[]): LinkEdit[] {
  if (deadLinks.length === 0) return [];
  const links = pages.flatMap(listLinks);
  const pagesByKey = new Map(pages.map((page) => [pageKey(page.url), page]));
  // Most dead links have no correction.
  const edits = deadLinks.slice(0, maxEdits * 4).flatMap(({ url, foundOn }): LinkEdit[] => {
    const source = [...pages, ...listings].find((each) => pageKey(each.url) === pageKey(foundOn));
    const rawLink = source && findRawLink(url, source);
    if (!rawLink) return [];
    const linkTexts = listLinks(source).filter((link) => isSame(link.url, url));
    const page = findIntendedPage(url, new Set(linkTexts.map(({ text }) => normalizeText(text))), pagesByKey, links);
    return page === null
      ? []
      : [{ ...rawLink, url: source.url, target: url, expected: toLinkForm(page, rawLink.found, source.url) }];
  });
  return edits.filter(({ found, expected }) => found !== expected).slice(0, maxEdits);
}

/** All links of a text, including links in code. */
const listLinks = ({ markdown, url }: LinkSource) => markdownLinks(markdown, new Set(), [], url);

const isSame = (a: string, b: string) => pageKey(a.replace(/#.*$/s, "")) === pageKey(b.replace(/#.*$/s, ""));

/** The line that links to a URL, with the target as it is written there, without its fragment. */
function findRawLink(url: string, { markdown, url: base }: LinkSource) {
  for (const [index, line] of markdown.split("\n").entries()) {
    if (line.length > maxLineChars) continue;
    for (const [, raw = ""] of line.matchAll(rawTarget)) {
      const found = raw.replace(/#.*$/s, "");
      const target = found && URL.parse(found.replaceAll("&amp;", "&"), base)?.href;
      if (target && isSame(target, url)) return { line: index + 1, text: line.trim(), found };
    }
  }
  return null;
}

/**
 * The page that a dead link should lead to; null if no page or more than one qualifies. Other links with the same text lead to this page, or it has
 * this title, or it has the same name in another folder, or nearly the same name in the same folder.
 */
function findIntendedPage(
  deadUrl: string,
  linkTexts: Set<string>,
  pagesByKey: Map<string, LinkSource>,
  links: { url: string; text: string }[],
): string | null {
  const dead = partsOf(deadUrl);
  const hasLinkText = (text: string) => {
    const words = normalizeText(text);
    return linkTexts.has(words) && !vagueText.test(words) && words.length > 2;
  };
  const pageParts = [...pagesByKey.values()].map(({ url, title }) => ({ url, title, parts: partsOf(url) }));
  const similarPages = pageParts.filter(({ parts }) => parts.origin === dead.origin && dead.name.length > 3);
  const maxDifferences = dead.name.length < 8 ? 1 : 2;
  const hasSimilarName = ({ folder, name }: typeof dead) =>
    folder === dead.folder && isSimilar(name, dead.name, maxDifferences);
  const matchesByKind: { url: string }[][] = [
    links.filter(({ url, text }) => hasLinkText(text) && !isSame(url, deadUrl)),
    pageParts.filter(({ title }) => hasLinkText(title) || hasLinkText(title.split(/\s+[|–—·-]\s+/)[0] ?? "")),
    similarPages.filter(({ parts }) => parts.name === dead.name),
    similarPages.filter(({ parts }) => hasSimilarName(parts)),
  ];
  for (const matches of matchesByKind) {
    const candidates = new Set(
      matches.flatMap(({ url }) => pagesByKey.get(pageKey(url.replace(/#.*$/s, "")))?.url ?? []),
    );
    const [onlyUrl] = candidates;
    if (onlyUrl !== undefined && candidates.size === 1 && !isSame(onlyUrl, deadUrl)) return onlyUrl;
  }
  return null;
}

const normalizeText = (text: string) => text.replace(/\s+/g, " ").trim().toLowerCase();

/** Origin, folder and name of a page, without its extension. */
function partsOf(url: string): { origin: string; folder: string; name: string } {
  const { origin, pathname } = new URL(url);
  const path = pathname.replace(/\/(index(\.\w+)?)?$/i, "");
  const nameStart = path.lastIndexOf("/") + 1;
  const fileName = path.slice(nameStart).toLowerCase();
  return { origin, folder: path.slice(0, nameStart), name: fileName.replace(/\.(html?|mdx?)$/, "") };
}

/** Whether two words differ in at most `maxDifferences` letters that were added, removed or replaced (Levenshtein distance). */
function isSimilar(a: string, b: string, maxDifferences: number): boolean {
  if (Math.abs(a.length - b.length) > maxDifferences) return false;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]! <= maxDifferences;
}

/** A URL in the form of the link that it replaces: absolute, relative to the root, or relative to the page. */
function toLinkForm(url: string, found: string, page: string): string {
  const { origin, pathname, search } = new URL(url);
  const path = pathname + search;
  if (/^[a-z][\w+.-]*:/i.test(found) || origin !== new URL(page).origin) return url;
  const folder = new URL(".", page).pathname;
  const isRelative = !found.startsWith("/") && path.startsWith(folder) && path.length > folder.length;
  if (!isRelative) return path;
  return (found.startsWith("./") ? "./" : "") + path.slice(folder.length);
}
