import { Database, type Statement } from "bun:sqlite";
import { allDocs, toHtml } from "./docs.ts";
import type { Site } from "./site.ts";

/**
 * A section that contains the searched words. `heading` and `anchor`: null for the text before the first heading. `snippet`: the words in their
 * context, each between U+0001 and U+0002.
 */
export type SearchHit = { slug: string; title: string; heading: string | null; anchor: string | null; snippet: string };

const maxHits = 20;
/** Maximum number of searched words, and their maximum length. Hundreds of short words would take seconds, and anyone can search. */
const maxWords = 12;
const maxWordChars = 50;

/** The plain text of rendered HTML. Tags and buttons are removed, and entities are unescaped. */
const toText = (html: string): string =>
  html
    .replace(/<button.*?<\/button>|<[^>]+>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&")
    .replace(/\s+/g, " ")
    .trim();

let preparedSearch: Statement<SearchHit, [string]> | undefined;

/** Indexes all sections in memory, and prepares the query that searches them. */
function prepareSearch(site: Site): Statement<SearchHit, [string]> {
  const db = new Database(":memory:");
  db.run(
    "CREATE VIRTUAL TABLE sections USING fts5(title, heading, text, slug UNINDEXED, anchor UNINDEXED, tokenize = 'porter unicode61')",
  );
  const insert = db.prepare("INSERT INTO sections (title, heading, text, slug, anchor) VALUES (?, ?, ?, ?, ?)");
  for (const doc of allDocs()) {
    const [opening = "", ...sections] = toHtml(doc, site).split(/<h[23] id="/);
    insert.run(doc.title, null, `${doc.description} ${toText(opening)}`, doc.slug, null);
    for (const section of sections) {
      const [, anchor = "", heading = "", text = ""] = /^([^"]*)">(.*?)<\/h[23]>([\s\S]*)$/.exec(section) ?? [];
      insert.run(doc.title, toText(heading), toText(text), doc.slug, anchor);
    }
  }
  // A snippet has at most 24 words. A word in a title counts 6 times as much as a word in the text, and a word in a heading counts 4 times as much.
  return db.prepare<SearchHit, [string]>(
    `SELECT slug, title, heading, anchor, snippet(sections, 2, char(1), char(2), ' … ', 24) AS snippet
     FROM sections WHERE sections MATCH ? ORDER BY bm25(sections, 6, 4, 1) LIMIT ${maxHits}`,
  );
}

/** Question words and the most frequent English words. They say nothing about the topic of a search. */
const stopWords = new Set(
  "a an and are as at be but by can could did do does for from get getting has have how i if in into is it its me my no not of on or our should so some than that the their them then there these they this those to us was we were what when where which while who why will with would you your".split(
    " ",
  ),
);

function wordsOf(text: string): string[] {
  const matches = text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  const words = [...new Set(matches.map((word) => word.slice(0, maxWordChars)))];
  const tellingWords = words.filter((word) => !stopWords.has(word));
  return (tellingWords.length > 0 ? tellingWords : words).slice(0, maxWords);
}

/**
 * Searches the sections of the documentation for the first 12 meaningful words of `text`, in any form. Sections with all words come first, then
 * sections with some of them. A word that is in no section matches all words that start with it. Returns at most 20 sections.
 */
export function searchDocs(text: string, site: Site): SearchHit[] {
  preparedSearch ??= prepareSearch(site);
  const find = preparedSearch;
  const terms = wordsOf(text).map((word) => (find.get(`"${word}"`) ? `"${word}"` : `"${word}"*`));
  if (terms.length === 0) return [];
  const hits = [...find.all(terms.join(" ")), ...find.all(terms.join(" OR "))];
  return [...new Map(hits.map((hit) => [`${hit.slug}#${hit.anchor}`, hit])).values()].slice(0, maxHits);
}
