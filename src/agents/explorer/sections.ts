import { Database, type Statement } from "bun:sqlite";
import { blankMenus } from "../page.ts";
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
  /** The same shares by weights that ignore how rare a word is, for the score. */
  withoutRarity: { share: number; headingShare: number };
  terms: Term[];
  /** Terms in its title and headings. */
  headingTerms: Term[];
  missingTerms: Term[];
  /** Terms that occur only as a synonym. */
  synonyms: { word: string; synonym: string }[];
};

// The numbers below were tuned on the goals about real docs in test/truth/goals/tuning.json. `bun run truth --goals` measures how often the
// section that answers a goal comes first, with those goals and with the ones in held-out.json, on which nothing was tuned.

/** Maximum length of a section in characters; longer ones are split at blank lines. */
const maxSectionChars = 3000;
/** A sample this many lines below a part of a section still belongs to it. */
const sampleLines = 20;
/** Words of a passage, about as many as a reader sees at a glance. Terms that are further apart count less. */
const passageWords = 200;
/** Weight of a term that occurs only as a synonym. */
const synonymWeight = 0.85;
/** A term in the titles of this share of the pages, of at least three, is the product's name. */
const productName = { minTitleShare: 0.7, minPages: 3, weight: 0.3 };
/**
 * Weights for the score: of a word that the docs never contain, and of one that has synonyms, like most verbs. They ignore rarity, so that
 * docs never score better because words were removed from other pages.
 */
const weightWithoutRarity = { unseen: 3, withSynonyms: 0.6 };
/** What a section gains, next to its share and that of its headings: by its own heading, by bm25, and if it has a sample. */
const meritWeight = { name: 0.25, fit: 0.25, sample: 0.1 };

/** Headings of sections for other readers, without samples to copy. */
export const synopsisHeading = /^(\d+\.)*\s*synopsis$/i;

/** The heading above a sample; "" above the first heading. */
export const headingAbove = ({ headings }: ReadPage, { line }: { line: number }): string =>
  headings.findLast((heading) => heading.line <= line)?.text ?? "";

/**
 * Splits a page at its headings. A section has a sample if it contains one, or if one follows under the same heading.
 */
function toSections(page: ReadPage): Section[] {
  const lines = blankMenus(page.markdown).split("\n");
  const headings = [{ level: 0, text: page.title, line: 1 }, ...page.headings];
  const sections: Section[] = [];
  const ancestors: { level: number; text: string }[] = [];
  for (const [index, heading] of headings.entries()) {
    const end = headings[index + 1]?.line ?? lines.length + 1;
    while (ancestors.length > 0 && ancestors.at(-1)!.level >= heading.level) ancestors.pop();
    ancestors.push(heading);
    const path = ancestors.map(({ text }) => text);
    let partStart = heading.line;
    while (partStart < end) {
      let partEnd = partStart;
      let size = 0;
      while (
        partEnd < end &&
        (size < maxSectionChars || lines[partEnd - 1]!.trim() !== "") &&
        size < 2 * maxSectionChars
      )
        size += lines[partEnd++ - 1]!.length + 1;
      const text = lines.slice(partStart - 1, partEnd - 1).join("\n");
      const hasSample =
        !synopsisHeading.test(heading.text) &&
        page.samples.some(
          ({ line, code }) =>
            line >= partStart && line < Math.min(end, partEnd + sampleLines) && code.trim().length > 2,
        );
      if (text.trim() !== "")
        sections.push({
          url: page.url,
          heading: heading.text,
          path: path.filter((part, index) => part && part !== path[index - 1]),
          line: partStart,
          text,
          hasSample,
        });
      partStart = partEnd;
    }
  }
  return sections;
}

/** A set of the goal's terms: one bit each, in their order. */
type TermSet = number;

/** A section with the terms of the goal in it. */
type IndexedSection = {
  section: Section;
  /** The terms of each passage; those that are a subset of another's are dropped. */
  passages: TermSet[];
  /** Terms in its title and headings. */
  headings: TermSet;
  /** Terms in its own heading. */
  name: TermSet;
  /** Terms that occur literally. */
  literalTerms: TermSet;
  /** Word forms of the goal's terms that occur in it. */
  forms: Set<string>;
};

/** A searchable index of the sections of all pages read so far. */
export type SectionIndex = Disposable & {
  db: Database;
  insert: Statement<unknown, [number, string, string]>;
  /** The sections with a word of the goal, with their bm25 scores. */
  select: Statement<Row, [string]>;
  /** The full-text query for the word forms of the goal; empty if there are none. */
  query: string;
  terms: Term[];
  /** The terms for which a word form stands, literally or as a synonym. */
  termsOfForm: Map<string, TermSet>;
  /** The terms of which a word form is the word itself. */
  exactTermsOfForm: Map<string, TermSet>;
  /** In reading order; the rowid of a section in the full-text index is its position from 1. */
  sections: IndexedSection[];
  pageCount: number;
  /** Number of pages that contain a term, and of those that have it in their title, by its stem. */
  pagesByTerm: Map<string, number>;
  titlesByTerm: Map<string, number>;
};

type Row = { rowid: number; score: number };

/** A full-text index (SQLite FTS5, bm25, headings count four times) of the terms of one goal. */
export function createSectionIndex(terms: Term[]): SectionIndex {
  const db = new Database(":memory:");
  db.run("CREATE VIRTUAL TABLE sections USING fts5(heading, body, tokenize = 'unicode61 remove_diacritics 0')");
  const termsOfForm = new Map<string, TermSet>();
  for (const [index, { stem, alternatives }] of terms.entries())
    for (const form of [stem, ...alternatives.keys()])
      termsOfForm.set(form, (termsOfForm.get(form) ?? 0) | (1 << index));
  return {
    db,
    insert: db.prepare("INSERT INTO sections(rowid, heading, body) VALUES (?, ?, ?)"),
    select: db.prepare("SELECT rowid, bm25(sections, 4.0, 1.0) AS score FROM sections WHERE sections MATCH ?"),
    query: [...termsOfForm.keys()].map((form) => `"${form.replaceAll('"', "")}"`).join(" OR "),
    terms,
    termsOfForm,
    exactTermsOfForm: new Map(terms.map(({ stem }, index) => [stem, 1 << index])),
    sections: [],
    pageCount: 0,
    pagesByTerm: new Map(terms.map(({ stem }) => [stem, 0])),
    titlesByTerm: new Map(terms.map(({ stem }) => [stem, 0])),
    [Symbol.dispose]: () => db.close(),
  };
}

/** Adds the sections of a page. Returns them, those with the largest share of the goal first. */
export function addPage(index: SectionIndex, page: ReadPage): Match[] {
  const sections = toSections(page).map((section) => indexSection(section, index));
  index.db.transaction(() => {
    for (const { indexedSection, heading, body, isMatch } of sections) {
      index.sections.push(indexedSection);
      if (isMatch) index.insert.run(index.sections.length, heading.join(" "), body.join(" "));
    }
  })();
  countTerms(page, sections, index);
  return sections
    .map(({ indexedSection }) => toMatch(indexedSection, 0, index))
    .sort((a, b) => b.share - a.share || Number(b.section.hasSample) - Number(a.section.hasSample));
}

/** All sections with a word of the goal, best first; ties in reading order. */
export const rankSections = (index: SectionIndex): Match[] =>
  scoreAll(index)
    .map(({ indexedSection, fit }) => toMatch(indexedSection, fit, index))
    .sort((a, b) => meritOf(b) - meritOf(a));

/** How well each section of a page matches, by heading: its bm25 score relative to the best of all pages. */
export function fitByHeading(index: SectionIndex, page: ReadPage): Map<string, number> {
  const fits = new Map<string, number>();
  for (const { indexedSection, fit } of scoreAll(index)) {
    const { url, heading } = indexedSection.section;
    if (url === page.url) fits.set(heading, Math.max(fits.get(heading) ?? 0, fit));
  }
  return fits;
}

/** Terms that occur in no section. */
export const unseenTerms = ({ terms, pagesByTerm }: SectionIndex): string[] =>
  terms.filter(({ stem }) => !pagesByTerm.get(stem)).map(({ word }) => word);

/** All sections that match. `fit`: the bm25 score relative to the best one, which is the lowest. */
function scoreAll({ query, select, sections }: SectionIndex): { indexedSection: IndexedSection; fit: number }[] {
  const rows = query === "" ? [] : select.all(query);
  const best = rows.reduce((lowest, { score }) => Math.min(lowest, score), 0) || -1;
  return rows.map(({ rowid, score }) => ({ indexedSection: sections[rowid - 1]!, fit: score / best }));
}

const termsIn = (set: TermSet, { terms }: SectionIndex): Term[] => terms.filter((_, index) => set & (1 << index));

const unionOf = (forms: string[], termsOfForm: Map<string, TermSet>): TermSet =>
  forms.reduce((set, form) => set | (termsOfForm.get(form) ?? 0), 0);

/** A section with its terms, and the word forms of its headings and its text. */
function indexSection(section: Section, { termsOfForm, exactTermsOfForm }: SectionIndex) {
  const heading = toStems(section.path.join(" "));
  const body = toStems(section.text);
  const forms = [...heading, ...body];
  const headings = unionOf(heading, termsOfForm);
  const setsInBody = body.map((form) => termsOfForm.get(form) ?? 0);
  const indexedSection: IndexedSection = {
    section,
    passages: passagesOf(setsInBody, headings),
    headings,
    name: unionOf(toStems(section.heading), termsOfForm),
    literalTerms: unionOf(forms, exactTermsOfForm),
    forms: new Set(forms.filter((form) => termsOfForm.has(form))),
  };
  const termsInSection = unionOf(forms, termsOfForm);
  return { indexedSection, heading, body, termsInSection, isMatch: termsInSection !== 0 };
}

/** Counts the terms of a page, each once. */
function countTerms(page: ReadPage, sections: { termsInSection: TermSet }[], index: SectionIndex): void {
  const { terms, pagesByTerm, titlesByTerm } = index;
  const pageTerms = sections.reduce((set, { termsInSection }) => set | termsInSection, 0);
  const title = new Set(toStems(page.title));
  index.pageCount++;
  for (const { stem } of termsIn(pageTerms, index)) pagesByTerm.set(stem, pagesByTerm.get(stem)! + 1);
  for (const { stem } of terms) if (title.has(stem)) titlesByTerm.set(stem, titlesByTerm.get(stem)! + 1);
}

/**
 * How much a term distinguishes, above 0: little if most pages contain it, almost nothing if most titles do, like the
 * name of the product.
 */
export const rarityOf = (term: Term, index: SectionIndex): number =>
  Math.log(1 + (index.pageCount + 1) / (index.pagesByTerm.get(term.stem)! + 1)) * nameFactor(term, index);

const weightWithoutRarityOf = (term: Term, index: SectionIndex): number =>
  (index.pagesByTerm.get(term.stem) ? 1 : weightWithoutRarity.unseen) *
  (term.alternatives.size > 0 ? weightWithoutRarity.withSynonyms : 1) *
  nameFactor(term, index);

const nameFactor = ({ stem }: Term, { pageCount, titlesByTerm }: SectionIndex): number =>
  pageCount >= productName.minPages && titlesByTerm.get(stem)! >= productName.minTitleShare * pageCount
    ? productName.weight
    : 1;

function toMatch(
  { section, passages, headings, name, literalTerms, forms }: IndexedSection,
  fit: number,
  index: SectionIndex,
): Match {
  const rarityWeights = toWeights(
    index.terms.map((term) => rarityOf(term, index)),
    literalTerms,
  );
  const evenWeights = toWeights(
    index.terms.map((term) => weightWithoutRarityOf(term, index)),
    literalTerms,
  );
  const best = bestPassage(passages, rarityWeights);
  return {
    section,
    share: shareOf(best, rarityWeights),
    headingShare: shareOf(headings, rarityWeights),
    nameShare: shareOf(name, rarityWeights),
    fit,
    withoutRarity: {
      share: shareOf(bestPassage(passages, evenWeights), evenWeights),
      headingShare: shareOf(headings, evenWeights),
    },
    terms: termsIn(best, index),
    headingTerms: termsIn(headings, index),
    missingTerms: termsIn(~best, index),
    synonyms: termsIn(best & ~literalTerms, index).flatMap(({ word, alternatives }) => {
      const synonym = alternatives.entries().find(([form]) => forms.has(form))?.[1];
      return synonym === undefined ? [] : [{ word, synonym }];
    }),
  };
}

/** What each term of the goal contributes to a share, and what all of them contribute without synonyms. */
type Weights = { perTerm: number[]; total: number };

/** `literalTerms`: the terms that occur literally; the others occur as a synonym. */
const toWeights = (weights: number[], literalTerms: TermSet): Weights => ({
  perTerm: weights.map((weight, index) => weight * (literalTerms & (1 << index) ? 1 : synonymWeight)),
  total: weights.reduce((sum, weight) => sum + weight, 0) || 1,
});

/** The share of the goal that a set of terms covers, 0 to 1. */
const shareOf = (set: TermSet, { perTerm, total }: Weights): number =>
  perTerm.reduce((sum, weight, index) => sum + (set & (1 << index) ? weight : 0), 0) / total;

const bestPassage = (sets: TermSet[], weights: Weights): TermSet =>
  sets.reduce((best, set) => (shareOf(set, weights) > shareOf(best, weights) ? set : best), sets[0] ?? 0);

/** The best section of each page, from sections in order of merit. */
export const bestOfPages = (matches: Match[]): Match[] => [
  ...Map.groupBy(matches, ({ section }) => section.url)
    .values()
    .map(([best]) => best!),
];

/** Score of a section: its terms, its headings, the last of them once more and, with a small weight, bm25. */
export const meritOf = ({ share, headingShare, nameShare, fit, section }: Match): number =>
  share +
  headingShare +
  meritWeight.name * nameShare +
  meritWeight.fit * fit +
  (section.hasSample ? meritWeight.sample : 0);

/**
 * The terms of each passage of a text, including those in its headings, without passages whose terms are a subset of
 * another's.
 */
function passagesOf(words: TermSet[], headings: TermSet): TermSet[] {
  const matches = words.flatMap((set, position) => (set === 0 ? [] : [{ set, position }]));
  const passages = new Set<TermSet>([headings]);
  for (let first = 0, end = 0; first < matches.length; first++) {
    while (end < matches.length && matches[end]!.position < matches[first]!.position + passageWords) end++;
    passages.add(matches.slice(first, end).reduce((union, { set }) => union | set, headings));
  }
  return [...passages].filter((set) => ![...passages].some((other) => other !== set && (set & other) === set));
}
