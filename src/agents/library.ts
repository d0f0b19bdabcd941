import { Database } from "bun:sqlite";
import type { Page } from "./page.ts";

type SectionMatch = { url: string; heading: string; excerpt: string };

/** The sections that a session has read, with a full-text search. */
export type Library = {
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
      "SELECT url, heading, snippet(sections, 2, '', '', ' … ', 40) AS excerpt FROM sections WHERE sections MATCH ? ORDER BY bm25(sections, 0, 4, 1) LIMIT 8",
    ),
  };
}

/** The first page whose text contains the words; null if none does. */
export const findPageWith = ({ pages }: Library, text: string): string | null =>
  pages.values().find(({ markdown }) => markdown.includes(text))?.url ?? null;

/** Adds the sections of a page. */
export function addPage(library: Library, page: Page): void {
  if (library.pages.has(page.url)) return;
  library.pages.set(page.url, page);
  const lines = page.markdown.split("\n");
  const starts = [{ text: page.title, line: 1 }, ...page.headings];
  library.index ??= openIndex();
  const { db, insert } = library.index;
  db.transaction(() => {
    for (const [i, { text, line }] of starts.entries()) {
      const body = lines.slice(line - 1, (starts[i + 1]?.line ?? lines.length + 1) - 1).join("\n");
      if (body.trim() !== "") insert.run(page.url, text, body);
    }
  })();
}

/** Adds a URL that a page lists, with its description. */
export function addListedUrl(library: Library, url: string, text: string): void {
  if (library.listedUrls.has(url)) return;
  library.listedUrls.add(url);
  library.index ??= openIndex();
  library.index.insert.run(url, text, "");
}

/** The best sections for a query: those with all of its words, or else with any. */
export function searchLibrary(library: Library, query: string): SectionMatch[] {
  const words = (query.match(/[\p{L}\p{N}_]+/gu) ?? []).slice(0, 20).map((word) => `"${word}"`);
  if (words.length === 0) return [];
  library.index ??= openIndex();
  const { find } = library.index;
  const matches = find.all(words.join(" "));
  return matches.length > 0 ? matches : find.all(words.join(" OR "));
}
