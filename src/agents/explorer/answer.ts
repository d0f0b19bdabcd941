import type { Term } from "./goal.ts";
import { bestOfPages, type Match, rankSections, rarityOf, type SectionIndex, unseenTerms } from "./sections.ts";

// These thresholds were tuned like the numbers in sections.ts.

/** Minimum share of the goal for a section to be reported. */
export const minReportedShare = 0.4;
/** A section clearly answers the goal from this merit on, and from these shares of the goal in its text and in its headings. */
const minOfClear = { merit: 1.2, inText: 0.7, inHeadings: 0.1 };
/** The probability from which an answer is likely. */
export const minProbability = 0.7;
/**
 * How much each value counts for the nearest section, as the logarithm of the odds that its page answers the goal. It is a logistic regression over
 * the goals in tuning.json, held-out.json, field.json, unseen.json, fourth.json and fifth.json. At `minProbability`, 92% of the goals that were left
 * out of the regression were right.
 */
const logOdds = {
  constant: -2.65,
  merit: 1.02,
  share: 1.29,
  headingShare: 1.22,
  similarity: 0.89,
  /** For how far the section's rank is ahead of the next page's, and of the fourth page's. */
  leadOverNext: 0.48,
  leadOverFourth: 1.17,
  /** For the share of the goal that occurs nowhere in the docs. */
  unseen: -4.36,
};
/** Sections with this much less rank than the best are about as likely to be the answer. */
const closeRank = 0.1;
/** If a goal has several parts, the answer to a part must have at least these shares of the part in its text and in its headings. */
const minOfOwnPart = { inText: 0.8, inHeadings: 0.3 };
/** It must also have at least these shares of the whole goal in its text and in its headings. */
const minOfPart = { inText: 0.2, inHeadings: 0.1 };

/**
 * Where the answer to a goal is most likely to be. `likely`: `sections` contain it. `unclear`: no section does. `isClear`: the words of the sections
 * alone make it likely, whatever the other pages have. `nearest`: the best section of each page, best first. The first `close` of them match about
 * equally well. `all`: the sections with a word of the goal.
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
 * Sections of several pages that together answer a goal of several parts. For each part, one section contains and names it. Empty if a part has no
 * such section.
 */
function joinSections(all: Match[], index: SectionIndex, parts: Term[][]): Match[] {
  // Every section counts, not only the best one of its page: that one may lack a heading or a sample.
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

/** The share of the goal that occurs in no section, 0 to 1. Rare terms count more. */
function unseenShare(index: SectionIndex): number {
  const sumOf = (terms: Term[]) => terms.reduce((sum, term) => sum + rarityOf(term, index), 0);
  return sumOf(unseenTerms(index)) / (sumOf(index.terms) || 1);
}
