import type { Term } from "./goal.ts";
import { bestOfPages, type Match, rankSections, rarityOf, type SectionIndex, unseenTerms } from "./sections.ts";

// These thresholds were tuned like the numbers in sections.ts.

/** Minimum share of the goal for a section to be reported. */
export const minReportedShare = 0.4;
/** Merit from which a section clearly answers the goal, and the shares of the goal that it contains and that its headings name at least. */
const minOfClear = { merit: 1.2, inText: 0.7, inHeadings: 0.1 };
/** The probability from which an answer is likely. */
export const minProbability = 0.7;
/**
 * What speaks for the nearest section, as the logarithm of the odds that its page answers the goal: a logistic regression over the goals in
 * tuning.json, held-out.json, field.json, unseen.json, fourth.json and fifth.json. At `minProbability`, 92% were right of those left out of it.
 */
const logOdds = {
  constant: -2.65,
  merit: 1.02,
  share: 1.29,
  headingShare: 1.22,
  similarity: 0.89,
  /** Of how far its rank is ahead of the next page's, and of the fourth's. */
  leadOverNext: 0.48,
  leadOverFourth: 1.17,
  /** Of the share of the goal that occurs nowhere in the docs. */
  unseen: -4.36,
};
/** Sections with this much less rank than the best are about as likely to be the answer. */
const closeRank = 0.1;
/** Minimum shares of a part of the goal that the answer to it must contain in its text and name in its headings. */
const minOfOwnPart = { inText: 0.8, inHeadings: 0.3 };
/** Minimum shares of the whole goal that the answer to one part must contain and name. */
const minOfPart = { inText: 0.2, inHeadings: 0.1 };

/**
 * Where the answer to a goal is most likely to be. `likely`: `sections` contain it. `unclear`: no section does. `isClear`: their words alone make
 * it likely, whatever the other pages have. `nearest` is the best section of each page, best first, and the first `close` of them match about
 * equally well; `all` are the sections with a word of the goal.
 */
export type Answer = {
  state: "likely" | "unclear";
  isClear: boolean;
  sections: Match[];
  nearest: Match[];
  close: number;
  all: Match[];
};

/** Matches the sections against the goal. Matching words don't prove an answer, so `likely` is the strongest result. */
export function findAnswer(index: SectionIndex, { goalParts }: { goalParts: Term[][] }): Answer {
  const all = rankSections(index);
  const nearest = bestOfPages(all);
  const [best] = nearest;
  const close = best === undefined ? 0 : nearest.filter(({ rank }) => rank >= best.rank - closeRank).length;
  const single = { sections: best === undefined ? [] : [best], nearest, close, all };
  if (best !== undefined && isClear(best)) return { ...single, state: "likely", isClear: true };
  const parts = goalParts.length > 1 ? joinSections(all, index, goalParts) : [];
  if (parts.length > 0) {
    const pages = new Set(parts.map(({ section }) => section.url));
    const others = nearest.filter(({ section }) => !pages.has(section.url));
    return {
      state: "likely",
      isClear: true,
      sections: parts,
      nearest: [...parts, ...others],
      close: parts.length,
      all,
    };
  }
  if (probabilityOf(nearest, index) >= minProbability) return { ...single, state: "likely", isClear: false };
  return { ...single, state: "unclear", isClear: false, sections: [] };
}

const isClear = ({ merit, share, headingShare, section }: Match): boolean =>
  merit >= minOfClear.merit &&
  share >= minOfClear.inText &&
  headingShare >= minOfClear.inHeadings &&
  section.kind === "prose";

/** How probable it is that the first of the nearest sections answers the goal, 0 to 1. */
function probabilityOf([best, next, , fourth]: Match[], index: SectionIndex): number {
  if (best === undefined || best.section.kind !== "prose") return 0;
  const leadOver = (other: Match | undefined) => (other === undefined ? 0 : best.rank - other.rank);
  const odds = Math.exp(
    logOdds.constant +
      logOdds.merit * best.merit +
      logOdds.share * best.share +
      logOdds.headingShare * best.headingShare +
      logOdds.similarity * best.similarity +
      logOdds.leadOverNext * leadOver(next) +
      logOdds.leadOverFourth * leadOver(fourth) +
      logOdds.unseen * unseenShare(index),
  );
  return odds / (1 + odds);
}

/**
 * Sections of several pages that together answer a goal of several parts: each part has one that contains and names it.
 * Empty if a part has none.
 */
function joinSections(all: Match[], index: SectionIndex, parts: Term[][]): Match[] {
  // Every section counts: a better one of the same page that lacks a heading or a sample must not hide another.
  const candidates = all.filter(
    ({ share, headingShare, section }) =>
      section.kind === "prose" &&
      section.hasSample &&
      share >= minOfPart.inText &&
      headingShare >= minOfPart.inHeadings,
  );
  const matches = parts.map((part) => {
    const total = part.reduce((sum, term) => sum + rarityOf(term, index), 0) || 1;
    const shareOf = (matchTerms: Term[]) => {
      const stems = new Set(matchTerms.map(({ stem }) => stem));
      return part.reduce((sum, term) => sum + (stems.has(term.stem) ? rarityOf(term, index) : 0), 0) / total;
    };
    return candidates.find(
      (match) => shareOf(match.terms) >= minOfOwnPart.inText && shareOf(match.headingTerms) >= minOfOwnPart.inHeadings,
    );
  });
  if (matches.includes(undefined)) return [];
  const sections = [...new Set(matches)].filter((match) => match !== undefined);
  return sections.sort((a, b) => b.merit - a.merit);
}

/** The share of the goal that occurs in no section, 0 to 1, by rarity. */
function unseenShare(index: SectionIndex): number {
  const sumOf = (terms: Term[]) => terms.reduce((sum, term) => sum + rarityOf(term, index), 0);
  return sumOf(unseenTerms(index)) / (sumOf(index.terms) || 1);
}
