import { Database } from "bun:sqlite";
import type { Page } from "./page.ts";

type Found = { url: string; heading: string; excerpt: string };

function openIndex() {
  const db = new Database(":memory:");
  db.run("CREATE VIRTUAL TABLE sections USING fts5(url UNINDEXED, heading, body, tokenize = 'porter unicode61')");
  return {
    db,
    insert: db.query<null, [string, string, string]>("INSERT INTO sections VALUES (?, ?, ?)"),
    find: db.query<Found, [string]>(
      "SELECT url, heading, snippet(sections, 2, '', '', ' … ', 40) AS excerpt FROM sections WHERE sections MATCH ? ORDER BY bm25(sections, 0, 4, 1) LIMIT 8",
    ),
  };
}

/** The sections that a session has read, with a full-text search. */
export function createLibrary() {
  let index: ReturnType<typeof openIndex> | undefined;
  /** Opened with the first page, so that it does not delay the start of the session. */
  const sections = () => (index ??= openIndex());
  const pages = new Map<string, Page>();
  const asked = new Set<string>();
  const listed = new Set<string>();

  return {
    get: (url: string): Page | null => pages.get(url) ?? null,
    /** The first page whose text contains the words; null if none does. */
    mentioning: (text: string): string | null =>
      pages.values().find(({ markdown }) => markdown.includes(text))?.url ?? null,
    /** Whether it was requested before; marks it as requested. */
    asked(url: string): boolean {
      const before = asked.has(url);
      asked.add(url);
      return before;
    },
    add(page: Page): void {
      if (pages.has(page.url)) return;
      pages.set(page.url, page);
      const lines = page.markdown.split("\n");
      const starts = [{ text: page.title, line: 1 }, ...page.headings];
      const { db, insert } = sections();
      db.transaction(() => {
        for (const [i, { text, line }] of starts.entries()) {
          const body = lines.slice(line - 1, (starts[i + 1]?.line ?? lines.length + 1) - 1).join("\n");
          if (body.trim() !== "") insert.run(page.url, text, body);
        }
      })();
    },
    /** Adds a URL that a page lists, with its description. */
    list(url: string, text: string): void {
      if (listed.has(url)) return;
      listed.add(url);
      sections().insert.run(url, text, "");
    },
    /** The best sections for a query: those with all of its words, or else with any. */
    search(query: string): Found[] {
      const words = (query.match(/[\p{L}\p{N}_]+/gu) ?? []).slice(0, 20).map((word) => `"${word}"`);
      if (words.length === 0) return [];
      const all = sections().find.all(words.join(" "));
      return all.length > 0 ? all : sections().find.all(words.join(" OR "));
    },
  };
}
