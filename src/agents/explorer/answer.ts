import type { Term } from "./goal.ts";
import { bestOfPages, type Match, rankSections, rarityOf, type SectionIndex } from "./sections.ts";

// These thresholds were tuned like the numbers in sections.ts.

/** Minimum share of the goal for a section to be reported. */
export const minReportedShare = 0.4;
/** Merit from which a section is likely to answer the goal, and the shares of the goal that it contains and that its headings name at least. */
const minOfLikely = { merit: 1.2, inText: 0.7, inHeadings: 0.1 };
/** Sections with this much less rank than the best are about as likely to be the answer. */
const closeRank = 0.1;
/** Minimum shares of a part of the goal that the answer to it must contain in its text and name in its headings. */
const minOfOwnPart = { inText: 0.8, inHeadings: 0.3 };
/** Minimum shares of the whole goal that the answer to one part must contain and name. */
const minOfPart = { inText: 0.2, inHeadings: 0.1 };

/**
 * Where the answer to a goal is most likely to be. `likely`: `sections` contain it. `unclear`: no section does. `nearest` is the best section
 * of each page, best first, and the first `close` of them match about equally well; `all` are the sections with a word of the goal.
 */
export type Answer = {
  state: "likely" | "unclear";
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
  if (best !== undefined && isLikely(best)) return { state: "likely", sections: [best], nearest, close, all };
  const parts = goalParts.length > 1 ? joinSections(all, index, goalParts) : [];
  if (parts.length === 0) return { state: "unclear", sections: [], nearest, close, all };
  const pages = new Set(parts.map(({ section }) => section.url));
  const others = nearest.filter(({ section }) => !pages.has(section.url));
  return { state: "likely", sections: parts, nearest: [...parts, ...others], close: parts.length, all };
}

const isLikely = ({ merit, share, headingShare, section }: Match): boolean =>
  merit >= minOfLikely.merit &&
  share >= minOfLikely.inText &&
  headingShare >= minOfLikely.inHeadings &&
  section.kind === "prose";

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
