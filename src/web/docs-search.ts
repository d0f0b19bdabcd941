import { Database, type Statement } from "bun:sqlite";
import { docs, toHtml } from "./docs.ts";
import type { Site } from "./site.ts";

/** A section that contains the words. `heading` and `anchor`: null for the text before the first heading. `snippet`: the words in their context, each between U+0001 and U+0002. */
export type SearchHit = { slug: string; title: string; heading: string | null; anchor: string | null; snippet: string };

const maxHits = 20;
/** Words that are searched for, and their length. Hundreds of short ones would take seconds, and anyone can search. */
const maxWords = 12;
const maxWordChars = 50;

/** The plain text of rendered HTML: without tags and buttons, and unescaped. */
const toText = (html: string): string =>
  html
    .replace(/<button.*?<\/button>|<[^>]+>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&")
    .replace(/\s+/g, " ")
    .trim();

let searchStatement: Statement<SearchHit, [string]> | undefined;

/** Indexes all sections in memory, and prepares the query for them. */
function prepareSearch(site: Site): Statement<SearchHit, [string]> {
  const db = new Database(":memory:");
  db.run(
    "CREATE VIRTUAL TABLE sections USING fts5(title, heading, text, slug UNINDEXED, anchor UNINDEXED, tokenize = 'porter unicode61')",
  );
  const insert = db.prepare("INSERT INTO sections (title, heading, text, slug, anchor) VALUES (?, ?, ?, ?, ?)");
  for (const doc of docs) {
    const [opening = "", ...sections] = toHtml(doc, site).split(/<h[23] id="/);
    insert.run(doc.title, null, `${doc.description} ${toText(opening)}`, doc.slug, null);
    for (const section of sections) {
      const [, anchor = "", heading = "", text = ""] = /^([^"]*)">(.*?)<\/h[23]>([\s\S]*)$/.exec(section) ?? [];
      insert.run(doc.title, toText(heading), toText(text), doc.slug, anchor);
    }
  }
  return db.prepare(
    `SELECT slug, title, heading, anchor, snippet(sections, 2, char(1), char(2), ' … ', 24) AS snippet
     FROM sections WHERE sections MATCH ? ORDER BY bm25(sections, 6, 4, 1) LIMIT ${maxHits}`,
  );
}

/** The sections of the documentation that contain each of the first 12 words of `text`, or a word that starts with it, best first. At most 20. */
export function searchDocs(text: string, site: Site): SearchHit[] {
  const allWords = text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  const words = [...new Set(allWords.map((word) => word.slice(0, maxWordChars)))].slice(0, maxWords);
  if (words.length === 0) return [];
  searchStatement ??= prepareSearch(site);
  return searchStatement.all(words.map((word) => `"${word}"*`).join(" "));
}
