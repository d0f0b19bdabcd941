import type { Term } from "./goal.ts";
import { bestOfPages, type Match, meritOf, type SectionIndex } from "./sections.ts";

/** Minimum share of the goal for a section to be reported. */
export const notable = 0.4;
/**
 * Minimum shares of the goal that a likely answer must contain in its text and name in its headings, and that several
 * sections must contain together.
 */
const held = 0.8;
export const named = 0.3;
/** Minimum share that the section's own heading must name, so that a section doesn't match because of its page title. */
const ownName = 0.1;
const together = { held: 0.9, named: 0.15, gain: 0.15, sections: 3 };

/**
 * Where the answer to a goal is most likely to be. `likely`: `sections` contain it, each with a sample. `unclear`: no
 * section does, or a word of the goal occurs nowhere. `nearest` is the best section of each page, best first; `all` are
 * the sections with a word of the goal.
 */
export type Answer = { state: "likely" | "unclear"; sections: Match[]; nearest: Match[]; all: Match[] };

/** Matches the sections against the goal. Matching words don't prove an answer, so `likely` is the strongest result. */
export function findAnswer(index: SectionIndex, { terms, parts }: { terms: Term[]; parts: number }): Answer {
  const all = index.rank();
  const ranked = bestOfPages(all);
  const unclear: Answer = { state: "unclear", sections: [], nearest: ranked, all };
  if (terms.length === 0 || index.unseen().length > 0) return unclear;
  // Every section counts: a better one of the same page that lacks a heading or a sample must not hide another.
  const fair = all.filter(
    ({ share, headingShare, section }) => section.hasSample && share >= notable && headingShare >= together.named,
  );
  const one = fair.find(
    ({ share, headingShare, nameShare }) => share >= held && headingShare >= named && nameShare >= ownName,
  );
  const sections = one ? [one] : parts > 1 ? joinSections(fair, index, terms, parts) : [];
  if (sections.length === 0) return unclear;
  const pages = new Set(sections.map(({ section }) => section.url));
  return {
    state: "likely",
    sections,
    nearest: [...sections, ...ranked.filter(({ section }) => !pages.has(section.url))],
    all,
  };
}

/**
 * Sections of several pages that together contain a goal of several parts. Each has a word in its headings that the
 * others lack. Empty if there are none.
 */
function joinSections(fair: Match[], index: SectionIndex, terms: Term[], parts: number): Match[] {
  const weights = new Map(terms.map((term) => [term, index.rarity(term)]));
  const total = weights.values().reduce((sum, weight) => sum + weight, 0) || 1;
  const shareOf = (some: Iterable<Term>) => [...some].reduce((sum, term) => sum + weights.get(term)!, 0) / total;
  for (const first of fair) {
    const sections = [first];
    while (sections.length < Math.min(parts, together.sections)) {
      const known = new Set(sections.flatMap((section) => section.terms));
      const gain = ({ terms: more }: Match) => shareOf(more.filter((term) => !known.has(term)));
      const best = fair
        .filter((other) => !sections.some(({ section }) => section.url === other.section.url))
        .filter((other) => other.named.some((term) => !known.has(term)) && gain(other) >= together.gain)
        .reduce<Match | null>((top, other) => (top && gain(top) >= gain(other) ? top : other), null);
      if (!best) break;
      sections.push(best);
      if (shareOf(new Set(sections.flatMap((section) => section.terms))) >= together.held)
        return sections.sort((a, b) => meritOf(b) - meritOf(a));
    }
  }
  return [];
}
