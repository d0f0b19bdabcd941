import type { Term } from "./goal.ts";
import {
  bestOfPages,
  type Match,
  meritOf,
  rankSections,
  rarityOf,
  type SectionIndex,
  unseenTerms,
} from "./sections.ts";

// These thresholds were tuned like the numbers in sections.ts.

/** Minimum share of the goal for a section to be reported. */
export const minReportedShare = 0.4;
/** Minimum shares of the goal that a likely answer must contain in its text and name in its headings, and of both together. */
const minOfGoal = { inText: 0.7, inHeadings: 0.25, together: 1 };
/** The same for one of its parts, which has fewer words. */
const minOfOwnPart = { inText: 0.8, inHeadings: 0.3 };
/** Minimum share that the section's own heading must name, so that a section doesn't match because of its page title. */
const minOwnHeading = 0.1;
/** Minimum shares of the whole goal that the answer to one part must contain and name. */
const minOfPart = { inText: 0.2, inHeadings: 0.1 };

/**
 * Where the answer to a goal is most likely to be. `likely`: `sections` contain it, each with a sample. `unclear`: no
 * section does, or a word of the goal occurs nowhere. `nearest` is the best section of each page, best first; `all` are
 * the sections with a word of the goal.
 */
export type Answer = { state: "likely" | "unclear"; sections: Match[]; nearest: Match[]; all: Match[] };

/** Matches the sections against the goal. Matching words don't prove an answer, so `likely` is the strongest result. */
export function findAnswer(index: SectionIndex, { terms, goalParts }: { terms: Term[]; goalParts: Term[][] }): Answer {
  const matches = rankSections(index);
  const bestMatches = bestOfPages(matches);
  const unclearAnswer: Answer = { state: "unclear", sections: [], nearest: bestMatches, all: matches };
  if (terms.length === 0 || unseenTerms(index).length > 0) return unclearAnswer;
  // Every section counts: a better one of the same page that lacks a heading or a sample must not hide another.
  const candidates = matches.filter(
    ({ share, headingShare, section }) =>
      section.hasSample && share >= minOfPart.inText && headingShare >= minOfPart.inHeadings,
  );
  const completeMatch = candidates.find(
    ({ share, headingShare, nameShare }) =>
      share >= minOfGoal.inText &&
      headingShare >= minOfGoal.inHeadings &&
      share + headingShare >= minOfGoal.together &&
      nameShare >= minOwnHeading,
  );
  const sections = completeMatch
    ? [completeMatch]
    : goalParts.length > 1
      ? joinSections(candidates, index, goalParts)
      : [];
  if (sections.length === 0) return unclearAnswer;
  const pages = new Set(sections.map(({ section }) => section.url));
  return {
    state: "likely",
    sections,
    nearest: [...sections, ...bestMatches.filter(({ section }) => !pages.has(section.url))],
    all: matches,
  };
}

/**
 * Sections of several pages that together answer a goal of several parts: each part has one that contains and names it.
 * Empty if a part has none.
 */
function joinSections(candidates: Match[], index: SectionIndex, parts: Term[][]): Match[] {
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
  const sections = [...new Set(matches)].filter((match) => match !== undefined);
  return matches.includes(undefined) ? [] : sections.sort((a, b) => meritOf(b) - meritOf(a));
}
