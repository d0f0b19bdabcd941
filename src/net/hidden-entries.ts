/** Whether a URL, as a listing writes it, belongs to a hidden page. */
type IsHidden = (url: string) => boolean;

/** Files that list the pages of a site or repeat their texts: llms.txt, sitemaps and search indexes. */
export const isListing = ({ pathname }: URL): boolean => /\.(txt|xml)$|(search|index)[^/]*\.json$/i.test(pathname);

/** The members in which entries of search indexes hold the URL of a page. */
const urlMembers = "url uri u href link loc location path permalink relpermalink route".split(" ");
/** The line with which llms-full.txt names the page of a section, such as `Source: https://docs.example.com/a`. It is one of the first lines. */
const sourceLine = /^\W*(?:source|url|link|page)\W*:\W*?([\w./:?#][^\s>"')]*)/i;
const sourceLines = 6;
const sourceChars = 500;
const fence = /^\s*(`{3,}|~{3,})/;
const heading = /^#\s/;
const listItem = /^(\s*)(?:[-*+]|\d+[.)])\s/;
const bareUrl = /https?:\/\/[^\s"'`<>()[\]{}]+/gi;

/** The text of a listing at `url` without the entries of hidden pages, and without their texts in llms-full.txt and search indexes. */
export function withoutHiddenEntries(text: string, { href, origin, pathname }: URL, isHiddenUrl: IsHidden): string {
  const isHidden = (url: string) => URL.canParse(url, href) && isHiddenUrl(new URL(url, href).href);
  if (/\.json$/i.test(pathname)) {
    // Search indexes name pages relative to the root of the site or of the docs, wherever the index itself is.
    const bases = [href, new URL("..", href).href, origin];
    return withoutJsonEntries(text, (url) =>
      bases.some((base) => URL.canParse(url, base) && isHiddenUrl(new URL(url, base).href)),
    );
  }
  if (/<(urlset|sitemapindex)[\s>]/i.test(text.slice(0, 4096))) return withoutXmlEntries(text, isHidden);
  if (!/\.txt$/i.test(pathname)) return text;
  const sections = toSections(text.split("\n")).filter((lines) => !isSectionOfHidden(lines, isHidden));
  return withoutLines(sections.flat(), isHidden).join("\n");
}

/** Searches only for fixed texts, because regular expressions take too long for hostile files. */
function withoutXmlEntries(xml: string, isHidden: IsHidden): string {
  const parts: string[] = [];
  const opening = /<(url|sitemap)>/gi;
  let end = 0;
  for (let match = opening.exec(xml); match !== null; match = opening.exec(xml)) {
    const closing = `</${match[1]}>`;
    const close = xml.indexOf(closing, match.index);
    if (close < 0) break;
    opening.lastIndex = close + closing.length;
    if (!isHidden(locationOf(xml.slice(match.index, close)))) continue;
    parts.push(xml.slice(end, match.index));
    end = opening.lastIndex;
  }
  return end === 0 ? xml : parts.join("") + xml.slice(end);
}

function locationOf(entry: string): string {
  const [, rest = ""] = entry.split(/<loc>/i, 2);
  const [url = ""] = rest.split(/<\/loc>/i, 1);
  return url.replace("<![CDATA[", "").replace("]]>", "").replaceAll("&amp;", "&").trim();
}

function withoutJsonEntries(text: string, isHidden: IsHidden): string {
  try {
    const index: unknown = JSON.parse(text);
    let removed = 0;
    const edited = JSON.stringify(index, (_, value: unknown) => {
      if (!Array.isArray(value)) return value;
      const entries = value.filter((entry) => !isEntryOfHidden(entry, isHidden));
      removed += value.length - entries.length;
      return entries;
    });
    return removed === 0 ? text : edited;
  } catch {
    return text;
  }
}

const isEntryOfHidden = (entry: unknown, isHidden: IsHidden): boolean =>
  typeof entry === "object" &&
  entry !== null &&
  Object.entries(entry).some(
    ([name, value]) => urlMembers.includes(name.toLowerCase()) && typeof value === "string" && isHidden(value),
  );

/** The sections of llms-full.txt. Each begins with a heading of the first level, or with front matter that names its page. */
function toSections(lines: string[]): string[][] {
  const sections: string[][] = [[]];
  let openFence: string | null = null;
  /** Whether the section begins with front matter, whose heading comes later. */
  let awaitsHeading = false;
  for (const [i, line] of lines.entries()) {
    const [, mark = ""] = fence.exec(line) ?? [];
    const startsFrontMatter = line.trim() === "---" && sourceLine.test((lines[i + 1] ?? "").slice(0, sourceChars));
    const isHeading = heading.test(line);
    const startsSection = startsFrontMatter || (isHeading && !awaitsHeading);
    if (openFence === null && startsSection) sections.push([]);
    awaitsHeading = startsFrontMatter || (awaitsHeading && !isHeading);
    if (openFence === null) openFence = mark || null;
    else if (mark.startsWith(openFence)) openFence = null;
    sections.at(-1)?.push(line);
  }
  return sections;
}

/** Whether a section belongs to a hidden page: its heading or one of its first lines has the URL. */
function isSectionOfHidden(lines: string[], isHidden: IsHidden): boolean {
  const [first = ""] = lines;
  if (!heading.test(first) && !first.startsWith("---")) return false;
  const sources = lines.slice(0, sourceLines).flatMap((line) => sourceLine.exec(line.slice(0, sourceChars))?.[1] ?? []);
  return [...urlsIn(first), ...sources].some(isHidden);
}

/** A link in Markdown: its text, its URL, and where it begins and ends in the line. */
type Link = { name: string; url: string; start: number; end: number };

function linksIn(line: string): Link[] {
  const links: Link[] = [];
  // `[` begins the text of a link; `](` ends it and begins the URL.
  const marks = /\[|\]\(/g;
  let start = -1;
  for (let mark = marks.exec(line); mark !== null; mark = marks.exec(line)) {
    if (mark[0] === "[") {
      start = mark.index;
      continue;
    }
    if (start < 0) continue;
    const close = line.indexOf(")", mark.index);
    if (close < 0) break;
    const [url = ""] = line
      .slice(mark.index + 2, close)
      .trim()
      .replace(/^</, "")
      .split(/[\s>]/, 1);
    links.push({ name: line.slice(start + 1, mark.index), url, start, end: close + 1 });
    marks.lastIndex = close + 1;
    start = -1;
  }
  return links;
}

/** A line with its links replaced. `replace` returns null for a link that stays. */
function replaceLinks(line: string, replace: (link: Link) => string | null): string {
  let end = 0;
  const parts = linksIn(line).flatMap((link) => {
    const replacement = replace(link);
    if (replacement === null) return [];
    const before = line.slice(end, link.start);
    end = link.end;
    return [before, replacement];
  });
  return parts.join("") + line.slice(end);
}

const trimUrl = (url: string): string => url.replace(/[.,;:!?]$/, "");

const urlsIn = (line: string): string[] => [
  ...linksIn(line).map(({ url }) => url),
  ...line.matchAll(bareUrl).map(([url]) => trimUrl(url)),
];

/** Removes list items and lines that are only about hidden pages. From other lines, it removes only the link. */
function withoutLines(lines: string[], isHidden: IsHidden): string[] {
  /** Indentation of the removed list item. Lines with more indentation belong to it. */
  let removedIndent: number | null = null;
  return lines.flatMap((line) => {
    const indent = /^\s*/.exec(line)?.[0].length ?? 0;
    if (removedIndent !== null && line.trim() !== "" && indent > removedIndent) return [];
    removedIndent = null;
    if (!urlsIn(line).some(isHidden)) return [line];
    if (listItem.test(line)) {
      removedIndent = indent;
      return [];
    }
    const textBesideUrls = replaceLinks(line, () => "").replace(bareUrl, "");
    if (textBesideUrls.trim() === "") return [];
    return [
      replaceLinks(line, ({ name, url }) => (isHidden(url) ? name : null)).replace(bareUrl, (url) =>
        isHidden(trimUrl(url)) ? "" : url,
      ),
    ];
  });
}
