import { pageKey } from "../../net/page-key.ts";
import { type FieldHits, type Hits, strengthByForm, strengthOf, toHits } from "./field-weights.ts";
import { formsOf, type Term, type TermSet, toStems } from "./goal.ts";
import { ownText, type Section, type SectionKind, toSections } from "./page-sections.ts";
import type { ReadPage } from "./session.ts";
import {
  countForms,
  createWideIndex,
  type FormWeights,
  toFormWeights,
  type WideIndex,
  type WideStrengths,
  wideStrengthOf,
} from "./wide-matches.ts";
import { joinMeanings, type Meaning, meaningOf, meaningOfSection, similarityOf } from "./word-vectors.ts";

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
  /** How much it is about the goal, 0 to 1: by its headings, the links to its page and its text. */
  strength: number;
  /** How much its words speak for it: strength, share and the kind of section. */
  merit: number;
  /** How near its page is to the goal in meaning, -1 to 1. */
  similarity: number;
  /** The same for the section itself. */
  ownSimilarity: number;
  /** What sections are ordered by: merit, the words that docs often use for such a goal, and how near its page is in meaning. */
  rank: number;
  /** The same shares, for the score. Their weights ignore how rare a word is. */
  withoutRarity: { share: number; headingShare: number };
  terms: Term[];
  /** Terms in its title and headings. */
  headingTerms: Term[];
  missingTerms: Term[];
  /** Terms that occur only as a synonym. */
  synonyms: { word: string; synonym: string }[];
};

// The numbers below were tuned on the goals about real docs in test/truth/goals/tuning.json and field.json, and the weights beside merit also on
// those in held-out.json, unseen.json, fourth.json and fifth.json. `bun run truth --goals` measures how often the section that answers a goal
// comes first, also with the goals in third.json, sealed.json and sealed-second.json, on which nothing was tuned.

/** Words of a passage, about as many as a reader sees at a glance. Terms that are further apart count less. */
const passageWords = 200;
/** Weight of a term that occurs only as a synonym. */
const synonymWeight = 0.85;
/** A term in the titles of this share of the pages, of at least three, is the product's name. */
const productName = { minTitleShare: 0.7, minPages: 3, weight: 0.3 };
/**
 * Weights for the score: of a word that the docs never contain, and of a word with synonyms, such as most verbs. They ignore rarity, so that the
 * score of docs never rises because words were removed from other pages.
 */
const weightWithoutRarity = { unseen: 1.5, withSynonyms: 0.6 };
/** Further texts of links to one page add little. */
const maxLinkTexts = 20;
/** What a section gains in addition to its strength: for its best passage, its headings and a sample. */
const meritWeight = { share: 0.5, headings: 0.25, sample: 0.1 };
/** How much it counts beside merit that a section has the words that docs often use for such a goal. */
const wideWeight = 1.3;
/** How much it counts beside merit that the page of a section is near the goal in meaning. */
const similarityWeight = 1.8;
/** What a section loses by its kind. Kinds other than prose are named only if nothing else is near. */
const lostMerit: Record<SectionKind, number> = { prose: 0, index: 0.6, source: 0.6, changes: 0.6, translation: 1 };

/** A section with the terms of the goal in it. */
type IndexedSection = {
  section: Section;
  /** The terms of each passage. Passages whose terms are a subset of another passage's are left out. */
  passages: TermSet[];
  /** Terms in its title and headings. */
  headings: TermSet;
  /** Terms in its own heading. */
  name: TermSet;
  /** Terms that occur literally. */
  literalTerms: TermSet;
  /** Word forms of the goal's terms that occur in it. */
  forms: Set<string>;
  hits: Omit<Hits, "links">;
  wideStrengths: WideStrengths;
  meaning: Meaning;
  isMatch: boolean;
};

/** The sections of all pages read so far, with the terms of one goal in them. */
export type SectionIndex = {
  terms: Term[];
  /** What the terms mean together. */
  meaning: Meaning;
  /** How near the prose of each page is to the meaning of the terms, -1 to 1, by the page's URL. */
  similarities: Map<string, number>;
  /** The terms for which a word form stands, literally or as a synonym. */
  termsOfForm: Map<string, TermSet>;
  /** The terms for which a word form stands literally. */
  exactTermsOfForm: Map<string, TermSet>;
  /** The terms with the words that docs often use for such a goal. These words count only for `rank`. */
  wide: WideIndex;
  /** The language of the first page that states one. */
  language: string | null;
  /** The text of each page, without URLs. A page with several URLs, such as one for each version, counts once. */
  texts: Set<string>;
  /** In reading order. */
  sections: IndexedSection[];
  /** The word forms of each text of links to a page, by the page's key. */
  linkTexts: Map<string, Map<string, string[]>>;
  /** The keys of the addresses of a page, by its URL. */
  keysOfPage: Map<string, string[]>;
  pageCount: number;
  /** Number of pages that contain a term, and number of pages that have it in their title, by its stem. */
  pagesByTerm: Map<string, number>;
  titlesByTerm: Map<string, number>;
};

/** An empty index for the terms of one goal. */
export function createSectionIndex(terms: Term[]): SectionIndex {
  const termsOfForm = new Map<string, TermSet>();
  const exactTermsOfForm = new Map<string, TermSet>();
  const add = (map: Map<string, TermSet>, form: string, term: number) =>
    map.set(form, (map.get(form) ?? 0) | (1 << term));
  for (const [index, term] of terms.entries()) {
    for (const form of formsOf(term)) add(exactTermsOfForm, form, index);
    for (const form of new Set([...formsOf(term), ...term.alternatives.keys()])) add(termsOfForm, form, index);
  }
  return {
    terms,
    meaning: meaningOf(terms.map(({ stem }) => stem)),
    similarities: new Map(),
    termsOfForm,
    exactTermsOfForm,
    wide: createWideIndex(terms),
    language: null,
    texts: new Set(),
    sections: [],
    linkTexts: new Map(),
    keysOfPage: new Map(),
    pageCount: 0,
    pagesByTerm: new Map(terms.map(({ stem }) => [stem, 0])),
    titlesByTerm: new Map(terms.map(({ stem }) => [stem, 0])),
  };
}

/** The language of a tag such as `pt-br`. */
const baseOf = (language: string): string => language.split(/[-_]/)[0]!;

/** Adds the sections of a page and the texts of its links. Returns the sections, the largest share of the goal first. */
export function addPage(index: SectionIndex, page: ReadPage): Match[] {
  const { language } = page;
  index.language ??= language;
  const isTranslation = language !== null && index.language !== null && baseOf(language) !== baseOf(index.language);
  const sections = toSections(page)
    .map((section): Section => (isTranslation ? { ...section, kind: "translation" } : section))
    .map((section) => indexSection(section, index));
  addLinkTexts(index, page.links);
  const prose = sections.filter(({ section }) => section.kind === "prose");
  index.similarities.set(page.url, similarityOf(index.meaning, joinMeanings(prose.map(({ meaning }) => meaning))));
  const text = ownText(page.markdown);
  if (!index.texts.has(text)) {
    index.texts.add(text);
    index.sections.push(...sections);
    index.keysOfPage.set(page.url, [...new Set([page.url, ...page.addresses].map(pageKey))]);
    countTerms(page, sections, index);
  }
  const weighting = toWeighting(index, sections);
  return sections
    .map((section) => toMatch(section, weighting, index))
    .sort((a, b) => b.share - a.share || Number(b.section.hasSample) - Number(a.section.hasSample));
}

/** Remembers what links and lists say about the pages to which they lead. A link to a part of a page doesn't describe the whole page. */
export function addLinkTexts(index: SectionIndex, links: { url: string; text: string }[]): void {
  for (const { url, text } of links) {
    if (url.includes("#") || text === "") continue;
    const key = pageKey(url);
    const texts = index.linkTexts.get(key) ?? new Map<string, string[]>();
    if (texts.size >= maxLinkTexts || texts.has(text)) continue;
    texts.set(text, toStems(text));
    index.linkTexts.set(key, texts);
  }
}

/** All sections with a word of the goal, by rank; ties in reading order. */
export function rankSections(index: SectionIndex): Match[] {
  const sections = index.sections.filter(({ isMatch }) => isMatch);
  const weighting = toWeighting(index, sections);
  return sections.map((section) => toMatch(section, weighting, index)).sort((a, b) => b.rank - a.rank);
}

/** How well each section of a page matches, by heading, 0 to 1. */
export function strengthByHeading(matches: Match[]): Map<string, number> {
  const strengths = new Map<string, number>();
  for (const { section, strength } of matches)
    strengths.set(section.heading, Math.max(strengths.get(section.heading) ?? 0, strength));
  return strengths;
}

/** Terms that occur in no section. */
export const unseenTerms = ({ terms, pagesByTerm }: SectionIndex): Term[] =>
  terms.filter(({ stem }) => !pagesByTerm.get(stem));

const termsIn = (set: TermSet, { terms }: SectionIndex): Term[] => terms.filter((_, index) => set & (1 << index));

const unionOf = (forms: Iterable<string>, termsOfForm: Map<string, TermSet>): TermSet =>
  Iterator.from(forms).reduce((set, form) => set | (termsOfForm.get(form) ?? 0), 0);

/** A section with the terms of the goal in it. */
function indexSection(section: Section, index: SectionIndex): IndexedSection {
  const { terms, termsOfForm, exactTermsOfForm, wide } = index;
  const pathForms = toStems(section.path.join(" "));
  const nameForms = toStems(section.heading);
  const outerForms = toStems(section.path.filter((part) => part !== section.heading).join(" "));
  const body = toStems(ownText(section.text));
  const sampleForms = toStems(section.sampleNames.join(" "));
  const bodyForms = [...body, ...sampleForms];
  const forms = new Set([...pathForms, ...bodyForms].filter((form) => termsOfForm.has(form)));
  const headings = unionOf(pathForms, termsOfForm);
  const setsInBody = body.map((form) => termsOfForm.get(form) ?? 0);
  const hitsIn = (words: string[]) => toHits(words, terms.length, termsOfForm, exactTermsOfForm);
  return {
    section,
    // The kind of code that a section has counts for each passage, because readers see it wherever the words of the passage are.
    passages: passagesOf(setsInBody, headings | unionOf(sampleForms, exactTermsOfForm)),
    headings,
    name: unionOf(nameForms, termsOfForm),
    literalTerms: unionOf(forms, exactTermsOfForm),
    forms,
    hits: { name: hitsIn(nameForms), headings: hitsIn(outerForms), body: hitsIn(bodyForms) },
    wideStrengths: strengthByForm({ name: nameForms, headings: outerForms, body: bodyForms }, wide.pagesByForm),
    meaning: meaningOfSection({ name: nameForms, path: outerForms, body }),
    isMatch: [...pathForms, ...body].some((form) => termsOfForm.has(form)),
  };
}

/** The terms in the texts of links to a page. */
function linkHitsOf(url: string, index: SectionIndex): FieldHits {
  const { terms, linkTexts, keysOfPage, termsOfForm, exactTermsOfForm } = index;
  const forms = (keysOfPage.get(url) ?? []).flatMap((key) => [...(linkTexts.get(key)?.values() ?? [])].flat());
  return toHits(forms, terms.length, termsOfForm, exactTermsOfForm);
}

/** Counts the terms of a page, each once. */
function countTerms(page: ReadPage, sections: IndexedSection[], index: SectionIndex): void {
  const { terms, pagesByTerm, titlesByTerm, wide } = index;
  const pageTerms = sections.reduce((set, { forms }) => set | unionOf(forms, index.termsOfForm), 0);
  const title = new Set(toStems(page.title));
  index.pageCount++;
  for (const { stem } of termsIn(pageTerms, index)) pagesByTerm.set(stem, pagesByTerm.get(stem)! + 1);
  for (const { stem } of terms) if (title.has(stem)) titlesByTerm.set(stem, titlesByTerm.get(stem)! + 1);
  countForms(
    wide,
    sections.map(({ wideStrengths }) => wideStrengths),
  );
}

/**
 * How much a term distinguishes sections, above 0: little if most pages contain it, and almost nothing if most titles do, such as the name of the
 * product. A term that occurs nowhere counts as much as the other terms on average, because its rarity is unknown.
 */
export function rarityOf(term: Term, index: SectionIndex): number {
  const seen = index.terms.filter(({ stem }) => index.pagesByTerm.get(stem)! > 0);
  if (seen.length === 0) return 1;
  if (index.pagesByTerm.get(term.stem)! > 0) return rarityOfSeen(term, index);
  return seen.reduce((sum, each) => sum + rarityOfSeen(each, index), 0) / seen.length;
}

const rarityOfSeen = (term: Term, index: SectionIndex): number =>
  Math.log(1 + (index.pageCount + 1) / (index.pagesByTerm.get(term.stem)! + 1)) * nameFactor(term, index);

const weightWithoutRarityOf = (term: Term, index: SectionIndex): number =>
  (index.pagesByTerm.get(term.stem) ? 1 : weightWithoutRarity.unseen) *
  (term.alternatives.size > 0 ? weightWithoutRarity.withSynonyms : 1) *
  nameFactor(term, index);

const nameFactor = ({ stem }: Term, { pageCount, titlesByTerm }: SectionIndex): number =>
  pageCount >= productName.minPages && titlesByTerm.get(stem)! >= productName.minTitleShare * pageCount
    ? productName.weight
    : 1;

/** The data with which all sections are compared at one time: the weights of the terms, and what links say about each page. */
type Weighting = {
  rarities: number[];
  evenWeights: number[];
  linkHits: Map<string, FieldHits>;
  formWeights: FormWeights;
};

function toWeighting(index: SectionIndex, sections: IndexedSection[]): Weighting {
  const urls = new Set(sections.map(({ section }) => section.url));
  return {
    rarities: index.terms.map((term) => rarityOf(term, index)),
    evenWeights: index.terms.map((term) => weightWithoutRarityOf(term, index)),
    linkHits: new Map([...urls].map((url) => [url, linkHitsOf(url, index)])),
    formWeights: toFormWeights(index.wide, index.pageCount),
  };
}

function toMatch(indexed: IndexedSection, weighting: Weighting, index: SectionIndex): Match {
  const { rarities, evenWeights, linkHits, formWeights } = weighting;
  const { section, passages, headings, name, literalTerms, forms, wideStrengths, meaning } = indexed;
  const hits = { ...indexed.hits, links: linkHits.get(section.url)! };
  const weights = toWeights(rarities, literalTerms);
  const best = bestPassage(passages, weights);
  const share = shareOf(best, weights);
  const headingShare = shareOf(headings, weights);
  const strength = strengthOf(hits, rarities);
  const even = toWeights(evenWeights, literalTerms);
  const merit = meritOf(section, strength, share, headingShare);
  const similarity = index.similarities.get(section.url)!;
  return {
    section,
    share,
    headingShare,
    nameShare: shareOf(name, weights),
    strength,
    merit,
    similarity,
    ownSimilarity: similarityOf(index.meaning, meaning),
    rank: merit + wideWeight * wideStrengthOf(wideStrengths, formWeights) + similarityWeight * similarity,
    withoutRarity: { share: shareOf(bestPassage(passages, even), even), headingShare: shareOf(headings, even) },
    terms: termsIn(best, index),
    headingTerms: termsIn(headings, index),
    missingTerms: termsIn(~best, index),
    synonyms: termsIn(best & ~literalTerms, index).flatMap(({ word, alternatives }) => {
      const synonym = alternatives.entries().find(([form]) => forms.has(form))?.[1];
      return synonym === undefined ? [] : [{ word, synonym }];
    }),
  };
}

const meritOf = ({ hasSample, kind }: Section, strength: number, share: number, headingShare: number): number =>
  strength +
  meritWeight.share * share +
  meritWeight.headings * headingShare +
  (hasSample ? meritWeight.sample : 0) -
  lostMerit[kind];

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

/** What several sections contain and name together, by weights that ignore how rare a word is. */
export function joinedShares(matches: Match[], index: SectionIndex): Match["withoutRarity"] {
  const weights = index.terms.map((term) => weightWithoutRarityOf(term, index));
  const total = weights.reduce((sum, weight) => sum + weight, 0) || 1;
  const shareIn = (termsOf: (match: Match) => Term[]) => {
    const stems = new Set(matches.flatMap(termsOf).map(({ stem }) => stem));
    return weights.reduce((sum, weight, i) => sum + (stems.has(index.terms[i]!.stem) ? weight : 0), 0) / total;
  };
  return { share: shareIn(({ terms }) => terms), headingShare: shareIn(({ headingTerms }) => headingTerms) };
}

/** The best section of each page, from sections in order of rank. */
export const bestOfPages = (matches: Match[]): Match[] => [
  ...Map.groupBy(matches, ({ section }) => section.url)
    .values()
    .map(([best]) => best!),
];

/** The terms of each passage of a text, including the terms in its headings. Passages whose terms are a subset of another passage's are left out. */
function passagesOf(words: TermSet[], headings: TermSet): TermSet[] {
  const matches = words.flatMap((set, position) => (set === 0 ? [] : [{ set, position }]));
  const passages = new Set<TermSet>([headings]);
  for (let first = 0, end = 0; first < matches.length; first++) {
    while (end < matches.length && matches[end]!.position < matches[first]!.position + passageWords) end++;
    passages.add(matches.slice(first, end).reduce((union, { set }) => union | set, headings));
  }
  return [...passages].filter((set) => ![...passages].some((other) => other !== set && (set & other) === set));
}
