import { Database } from "bun:sqlite";
import type { Page } from "./page.ts";

type SectionMatch = { url: string; heading: string; excerpt: string };

/** The sections that a session has read, with a full-text search. */
export type PagesRead = {
  pages: Map<string, Page>;
  /** URLs that a page lists. */
  listedUrls: Set<string>;
  /** Opened with the first page, so that it does not delay the start of the session. */
  index: ReturnType<typeof openIndex> | null;
};

function openIndex() {
  const db = new Database(":memory:");
  db.run("CREATE VIRTUAL TABLE sections USING fts5(url UNINDEXED, heading, body, tokenize = 'porter unicode61')");
  return {
    db,
    insert: db.query<null, [string, string, string]>("INSERT INTO sections VALUES (?, ?, ?)"),
    find: db.query<SectionMatch, [string]>(
      // Excerpts have 40 words from column 2, the body. A word in a heading weighs 4 times as much as a word in the body.
      "SELECT url, heading, snippet(sections, 2, '', '', ' … ', 40) AS excerpt FROM sections WHERE sections MATCH ? ORDER BY bm25(sections, 0, 4, 1) LIMIT 8",
    ),
  };
}

const indexOf = (pagesRead: PagesRead) => (pagesRead.index ??= openIndex());

/** The first page whose text contains the whole path; null if none does. */
export const findPageWithPath = ({ pages }: PagesRead, path: string): string | null =>
  pages.values().find(({ markdown }) => hasPath(markdown.replaceAll("\\_", "_"), path))?.url ?? null;

/** Longest host or name of a variable before a path, in characters. */
const maxOriginChars = 300;
/** What may stand before a whole path: the beginning, a host, a variable, or anything that isn't part of a path. */
const beforePath = /(^|[^\w.~%/-]|\/\/[\w.-]+(:\d+)?|\$\w+)$/;
/** Characters that continue a path, so that what was found is only its beginning: `/x`, `-x`, `.x`. */
const restOfPath = /^(\/?[\w~%{:<$-]|\.\w)/;

/** Whether a text contains the path by itself, not as a part of a longer one: `/v1/notes` doesn't contain `/notes` or `/v1`. */
function hasPath(text: string, path: string): boolean {
  for (let at = text.indexOf(path); at >= 0; at = text.indexOf(path, at + 1)) {
    const end = at + path.length;
    if (restOfPath.test(text.slice(end, end + 3))) continue;
    if (beforePath.test(text.slice(Math.max(0, at - maxOriginChars), at))) return true;
  }
  return false;
}

/** Adds the sections of a page. */
export function addPage(pagesRead: PagesRead, page: Page): void {
  if (pagesRead.pages.has(page.url)) return;
  pagesRead.pages.set(page.url, page);
  const lines = page.markdown.split("\n");
  const starts = [{ text: page.title, line: 1 }, ...page.headings];
  const { db, insert } = indexOf(pagesRead);
  db.transaction(() => {
    for (const [i, { text, line }] of starts.entries()) {
      const body = lines.slice(line - 1, (starts[i + 1]?.line ?? lines.length + 1) - 1).join("\n");
      if (body.trim() !== "") insert.run(page.url, text, body);
    }
  })();
}

/** Adds a URL that a page lists, with its description. */
export function addListedUrl(pagesRead: PagesRead, url: string, text: string): void {
  if (pagesRead.listedUrls.has(url)) return;
  pagesRead.listedUrls.add(url);
  indexOf(pagesRead).insert.run(url, text, "");
}

/** The best sections for a query. They have all of its words or, if no section does, any of them. */
export function searchPagesRead(pagesRead: PagesRead, query: string): SectionMatch[] {
  const words = (query.match(/[\p{L}\p{N}_]+/gu) ?? []).slice(0, 20).map((word) => `"${word}"`);
  if (words.length === 0) return [];
  const { find } = indexOf(pagesRead);
  const matches = find.all(words.join(" "));
  return matches.length > 0 ? matches : find.all(words.join(" OR "));
}
