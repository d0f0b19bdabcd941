import { Database } from "bun:sqlite";
import { type Term, toStems } from "./goal.ts";
import type { ReadPage } from "./session.ts";

/** A part of a page under one heading, at most some thousand characters of it. */
type Section = {
  url: string;
  heading: string;
  /** Title of the page and headings above, for people. */
  path: string[];
  line: number;
  text: string;
  hasSample: boolean;
};

/** A section held against the goal. Both shares are of the goal's terms, weighted by rarity, 0 to 1. */
export type Match = {
  section: Section;
  /** Of what stands in the section, its title and headings included. */
  share: number;
  /** Of what its title and headings alone say. */
  headingShare: number;
  terms: string[];
  missing: string[];
};

/** Longest section, in characters; longer ones are split at blank lines. */
const maxSection = 3000;
/** What the name of the product counts, compared with a word that is as common. */
const productName = 0.3;

/** Splits a page at its headings. A section has a sample if one stands in it or right after it under the same heading. */
function toSections(page: ReadPage): Section[] {
  const lines = page.markdown.split("\n");
  const bounds = [{ level: 0, text: page.title, line: 1 }, ...page.headings];
  const sections: Section[] = [];
  const path: string[] = [page.title];
  for (const [index, heading] of bounds.entries()) {
    const end = bounds[index + 1]?.line ?? lines.length + 1;
    if (heading.level > 0) {
      path.length = Math.min(path.length, heading.level);
      path.push(heading.text);
    }
    let start = heading.line;
    while (start < end) {
      let stop = start;
      let size = 0;
      while (stop < end && (size < maxSection || lines[stop - 1]!.trim() !== "") && size < 2 * maxSection)
        size += lines[stop++ - 1]!.length + 1;
      const text = lines.slice(start - 1, stop - 1).join("\n");
      const hasSample = page.samples.some(
        ({ line, code }) => line >= start && line < Math.min(end, stop + 20) && code.trim().length > 2,
      );
      if (text.trim() !== "")
        sections.push({
          url: page.url,
          heading: heading.text,
          path: path.filter((part, at) => part && part !== path[at - 1]),
          line: start,
          text,
          hasSample,
        });
      start = stop;
    }
  }
  return sections;
}

/** The sections of all pages read so far, to be searched by words. */
export type SectionIndex = {
  add(page: ReadPage): Match[];
  /** The sections that fit best, best first; ties in the order of reading. */
  search(limit: number): Match[];
  size(): number;
  /** How much a term tells, above 0: little if most pages hold it, next to nothing if most titles do, as they do the name of the product. */
  rarity(term: Term): number;
  /** Terms that occur in no section. */
  unseen(): string[];
};

/** An index over SQLite's FTS5 with bm25, headings counting four times, held against the terms of one goal. */
export function createSectionIndex(terms: Term[]): SectionIndex & Disposable {
  const db = new Database(":memory:");
  db.run("CREATE VIRTUAL TABLE sections USING fts5(heading, body, tokenize = 'unicode61 remove_diacritics 0')");
  const insert = db.prepare("INSERT INTO sections(rowid, heading, body) VALUES (?, ?, ?)");
  const query = terms.map(({ stem }) => `"${stem.replaceAll('"', "")}"`).join(" OR ");
  const find = db.prepare<{ rowid: number }, [string, number]>(
    "SELECT rowid FROM sections WHERE sections MATCH ? ORDER BY bm25(sections, 4.0, 1.0), rowid LIMIT ?",
  );
  const all: { section: Section; found: Set<string>; named: Set<string> }[] = [];
  /** Pages that hold a term anywhere, and in their title. */
  const inPages = new Map<string, number>(terms.map(({ stem }) => [stem, 0]));
  const inTitles = new Map<string, number>(terms.map(({ stem }) => [stem, 0]));
  let pages = 0;

  function rarity({ stem }: Term): number {
    const product = pages >= 3 && inTitles.get(stem)! >= 0.7 * pages;
    return Math.log(1 + (pages + 1) / (inPages.get(stem)! + 1)) * (product ? productName : 1);
  }

  function toMatch({ section, found, named }: (typeof all)[number]): Match {
    const total = terms.reduce((sum, term) => sum + rarity(term), 0);
    const share = (has: Set<string>) =>
      total === 0 ? 0 : terms.reduce((sum, term) => sum + (has.has(term.stem) ? rarity(term) : 0), 0) / total;
    const has = terms.filter(({ stem }) => found.has(stem));
    return {
      section,
      share: share(found),
      headingShare: share(named),
      terms: has.map(({ word }) => word),
      missing: terms.filter((term) => !has.includes(term)).map(({ word }) => word),
    };
  }

  return {
    add(page) {
      const begin = all.length;
      const inPage = new Set<string>();
      const title = new Set(toStems(page.title));
      db.transaction(() => {
        for (const section of toSections(page)) {
          const heading = toStems(section.path.join(" "));
          const body = toStems(section.text);
          const words = new Set([...heading, ...body]);
          const found = new Set(terms.map(({ stem }) => stem).filter((stem) => words.has(stem)));
          const named = new Set(heading.filter((stem) => found.has(stem)));
          all.push({ section, found, named });
          for (const stem of found) inPage.add(stem);
          if (found.size > 0) insert.run(all.length, heading.join(" "), body.join(" "));
        }
      })();
      pages++;
      for (const { stem } of terms) {
        if (inPage.has(stem)) inPages.set(stem, inPages.get(stem)! + 1);
        if (title.has(stem)) inTitles.set(stem, inTitles.get(stem)! + 1);
      }
      return all
        .slice(begin)
        .map(toMatch)
        .sort((a, b) => b.share - a.share || Number(b.section.hasSample) - Number(a.section.hasSample));
    },
    search: (limit) => (query === "" ? [] : find.all(query, limit).map(({ rowid }) => toMatch(all[rowid - 1]!))),
    size: () => all.length,
    rarity,
    unseen: () => terms.filter(({ stem }) => !inPages.get(stem)).map(({ word }) => word),
    [Symbol.dispose]: () => db.close(),
  };
}
