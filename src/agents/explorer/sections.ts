import { Database } from "bun:sqlite";
import { type Term, toStems } from "./goal.ts";
import type { ReadPage } from "./session.ts";

/** A part of a page under one heading, limited in length. */
type Section = {
  url: string;
  heading: string;
  /** Title of the page and headings above, as shown to people. */
  path: string[];
  line: number;
  text: string;
  hasSample: boolean;
};

/**
 * A section compared with the goal. Shares are of the goal's terms, weighted by rarity, 0 to 1; a synonym counts
 * slightly less than the word itself.
 */
export type Match = {
  section: Section;
  /** Share found close together in one passage, including title and headings. */
  share: number;
  /** Share found in its title and headings. */
  headingShare: number;
  /** Share found in its own heading. */
  nameShare: number;
  /** Its bm25 score relative to the best section. */
  fit: number;
  /** The same shares by weights that don't depend on how many pages contain a word, for the score. */
  even: { share: number; headingShare: number };
  terms: Term[];
  /** Terms in its title and headings. */
  named: Term[];
  missing: Term[];
  /** Terms that occur only as a synonym. */
  synonyms: { word: string; synonym: string }[];
};

/** Maximum length of a section in characters; longer ones are split at blank lines. */
const maxSection = 3000;
/** Words of a passage, about as many as a reader sees at a glance. Terms that are further apart count less. */
const passage = 200;
/** Weight of a term that occurs only as a synonym. */
const asSynonym = 0.85;
/** Weight of the product's name relative to an equally common word. */
const productName = 0.3;
/**
 * Even weights: of a word that the docs never contain, and of one that has synonyms, like most verbs. They don't use
 * rarity, so that docs never score better because words were removed from other pages.
 */
const even = { unseen: 3, common: 0.6 };

/** Headings of sections for other readers, without samples to copy. */
export const notation = /^(\d+\.)*\s*synopsis$/i;

/** The heading above a sample; "" above the first heading. */
export const headingAbove = ({ headings }: Pick<ReadPage, "headings">, { line }: { line: number }): string =>
  headings.findLast((heading) => heading.line <= line)?.text ?? "";

/**
 * Splits a page at its headings. A section has a sample if it contains one, or if one follows under the same heading.
 */
function toSections(page: ReadPage): Section[] {
  const lines = page.markdown.split("\n");
  const bounds = [{ level: 0, text: page.title, line: 1 }, ...page.headings];
  const sections: Section[] = [];
  const above: { level: number; text: string }[] = [];
  for (const [index, heading] of bounds.entries()) {
    const end = bounds[index + 1]?.line ?? lines.length + 1;
    while (above.length > 0 && above.at(-1)!.level >= heading.level) above.pop();
    above.push(heading);
    const path = above.map(({ text }) => text);
    let start = heading.line;
    while (start < end) {
      let stop = start;
      let size = 0;
      while (stop < end && (size < maxSection || lines[stop - 1]!.trim() !== "") && size < 2 * maxSection)
        size += lines[stop++ - 1]!.length + 1;
      const text = lines.slice(start - 1, stop - 1).join("\n");
      const hasSample =
        !notation.test(heading.text) &&
        page.samples.some(
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

/** A searchable index of the sections of all pages read so far. */
export type SectionIndex = {
  add(page: ReadPage): Match[];
  /** The best sections, by bm25; ties in reading order. */
  search(limit: number): Match[];
  /** All sections with a word of the goal, best first; ties in reading order. */
  rank(): Match[];
  /** How well each section of a page matches, by heading: its bm25 score relative to the best of all pages. */
  nearness(page: ReadPage): Map<string, number>;
  size(): number;
  /**
   * How much a term distinguishes, above 0: little if most pages contain it, almost nothing if most titles do, like the
   * name of the product.
   */
  rarity(term: Term): number;
  /** Terms that occur in no section. */
  unseen(): string[];
};

/** A full-text index (SQLite FTS5, bm25, headings count four times) of the terms of one goal. */
export function createSectionIndex(terms: Term[]): SectionIndex & Disposable {
  const db = new Database(":memory:");
  db.run("CREATE VIRTUAL TABLE sections USING fts5(heading, body, tokenize = 'unicode61 remove_diacritics 0')");
  const insert = db.prepare("INSERT INTO sections(rowid, heading, body) VALUES (?, ?, ?)");
  const forms = new Set(terms.flatMap(({ stem, alternatives }) => [stem, ...alternatives.keys()]));
  const query = [...forms].map((stem) => `"${stem.replaceAll('"', "")}"`).join(" OR ");
  const find = db.prepare<{ rowid: number; score: number }, [string, number]>(
    "SELECT rowid, bm25(sections, 4.0, 1.0) AS score FROM sections WHERE sections MATCH ? ORDER BY bm25(sections, 4.0, 1.0), rowid LIMIT ?",
  );
  const score = db.prepare<{ rowid: number; score: number }, [string]>(
    "SELECT rowid, bm25(sections, 4.0, 1.0) AS score FROM sections WHERE sections MATCH ?",
  );
  /**
   * One bit per term of a passage; passages whose terms are a subset of another's are dropped. `exact`: the terms that
   * occur literally.
   */
  const all: {
    section: Section;
    passages: number[];
    headings: number;
    name: number;
    exact: number;
    /** Forms of the goal's words that occur in it. */
    held: Set<string>;
  }[] = [];
  const exactBits = new Map(terms.map(({ stem }, index) => [stem, 1 << index]));
  const bits = new Map<string, number>();
  for (const [index, { stem, alternatives }] of terms.entries())
    for (const form of [stem, ...alternatives.keys()]) bits.set(form, (bits.get(form) ?? 0) | (1 << index));
  const maskOf = (stems: Iterable<string>, of = bits) => {
    let mask = 0;
    for (const stem of stems) mask |= of.get(stem) ?? 0;
    return mask;
  };
  const termsIn = (mask: number) => terms.filter((_, index) => mask & (1 << index));
  /** Number of pages that contain a term, and that have it in their title. */
  const inPages = new Map<string, number>(terms.map(({ stem }) => [stem, 0]));
  const inTitles = new Map<string, number>(terms.map(({ stem }) => [stem, 0]));
  let pages = 0;

  function rarity({ stem }: Term): number {
    return Math.log(1 + (pages + 1) / (inPages.get(stem)! + 1)) * nameFactor(stem);
  }

  const nameFactor = (stem: string) => (pages >= 3 && inTitles.get(stem)! >= 0.7 * pages ? productName : 1);

  const evenWeight = ({ stem, alternatives }: Term) =>
    (inPages.get(stem) ? 1 : even.unseen) * (alternatives.size > 0 ? even.common : 1) * nameFactor(stem);

  /** Compares sets of terms with the goal by the weights of its terms; those in `exact` occur literally. */
  function compareBy(weights: number[], exact: number) {
    const total = weights.reduce((sum, weight) => sum + weight, 0) || 1;
    const worth = weights.map((weight, index) => weight * (exact & (1 << index) ? 1 : asSynonym));
    const shareOf = (mask: number) =>
      worth.reduce((sum, weight, index) => sum + (mask & (1 << index) ? weight : 0), 0) / total;
    const bestOf = (masks: number[]) =>
      masks.reduce((top, mask) => (shareOf(mask) > shareOf(top) ? mask : top), masks[0] ?? 0);
    return { shareOf, bestOf };
  }

  function toMatch({ section, passages, headings, name, exact, held }: (typeof all)[number], fit: number): Match {
    const { shareOf, bestOf } = compareBy(terms.map(rarity), exact);
    const best = bestOf(passages);
    const evenly = compareBy(terms.map(evenWeight), exact);
    return {
      section,
      share: shareOf(best),
      headingShare: shareOf(headings),
      nameShare: shareOf(name),
      fit,
      even: { share: evenly.shareOf(evenly.bestOf(passages)), headingShare: evenly.shareOf(headings) },
      terms: termsIn(best),
      named: termsIn(headings),
      missing: termsIn(~best),
      synonyms: termsIn(best & ~exact).flatMap(({ word, alternatives }) => {
        const synonym = alternatives.entries().find(([form]) => held.has(form))?.[1];
        return synonym === undefined ? [] : [{ word, synonym }];
      }),
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
          const headings = maskOf(heading);
          const found = headings | maskOf(body);
          const exact = maskOf([...heading, ...body], exactBits);
          const held = new Set([...heading, ...body].filter((stem) => forms.has(stem)));
          const bitsOf = body.map((stem) => bits.get(stem) ?? 0);
          const name = maskOf(toStems(section.heading));
          all.push({ section, passages: passagesOf(bitsOf, headings), headings, name, exact, held });
          for (const { stem } of termsIn(found)) inPage.add(stem);
          if (found !== 0) insert.run(all.length, heading.join(" "), body.join(" "));
        }
      })();
      pages++;
      for (const { stem } of terms) {
        if (inPage.has(stem)) inPages.set(stem, inPages.get(stem)! + 1);
        if (title.has(stem)) inTitles.set(stem, inTitles.get(stem)! + 1);
      }
      return all
        .slice(begin)
        .map((one) => toMatch(one, 0))
        .sort((a, b) => b.share - a.share || Number(b.section.hasSample) - Number(a.section.hasSample));
    },
    search(limit) {
      const rows = query === "" ? [] : find.all(query, limit);
      return rows.map(({ rowid, score }) => toMatch(all[rowid - 1]!, score / rows[0]!.score));
    },
    rank() {
      const scores = query === "" ? [] : score.all(query);
      const least = scores.reduce((low, row) => Math.min(low, row.score), 0) || -1;
      return scores
        .map((row) => toMatch(all[row.rowid - 1]!, row.score / least))
        .sort((a, b) => meritOf(b) - meritOf(a));
    },
    nearness(page) {
      const near = new Map<string, number>();
      if (query === "") return near;
      const scores = score.all(query);
      const best = scores.reduce((least, row) => Math.min(least, row.score), 0) || -1;
      for (const row of scores) {
        const { url, heading } = all[row.rowid - 1]!.section;
        if (url === page.url) near.set(heading, Math.max(near.get(heading) ?? 0, row.score / best));
      }
      return near;
    },
    size: () => all.length,
    rarity,
    unseen: () => terms.filter(({ stem }) => !inPages.get(stem)).map(({ word }) => word),
    [Symbol.dispose]: () => db.close(),
  };
}

/** The best section of each page, from sections in order of merit. */
export const bestOfPages = (ranked: Match[]): Match[] => [
  ...Map.groupBy(ranked, ({ section }) => section.url)
    .values()
    .map(([best]) => best!),
];

/** Score of a section: its terms, its headings, the last of them once more and, with a small weight, bm25. */
export const meritOf = ({ share, headingShare, nameShare, fit, section }: Match): number =>
  share + headingShare + 0.25 * nameShare + 0.25 * fit + (section.hasSample ? 0.1 : 0);

/**
 * The terms of each passage of a text, including those in its headings, without passages whose terms are a subset of
 * another's.
 */
function passagesOf(words: number[], named: number): number[] {
  const held = words.flatMap((mask, at) => (mask === 0 ? [] : [{ mask, at }]));
  const masks = new Set<number>([named]);
  for (let first = 0, last = 0; first < held.length; first++) {
    while (last < held.length && held[last]!.at < held[first]!.at + passage) last++;
    masks.add(held.slice(first, last).reduce((sum, { mask }) => sum | mask, named));
  }
  return [...masks].filter((mask) => ![...masks].some((other) => other !== mask && (mask & other) === mask));
}
