import type { Term } from "./goal.ts";
import type { Match, SectionIndex } from "./sections.ts";

/** Sections that cover the goal together, the one that says most first, with the terms that they hold and their share of the goal. */
export type Cover = { sections: Match[]; terms: Term[]; share: number };

/** Share of the goal from which a section is worth a word. */
export const notable = 0.4;
/** Part of the goal that title, headings and lead of a section must name, and what that makes together with what it holds: what is only mentioned in passing does not cover it. */
const inHeading = 0.15;
const heldAndNamed = 0.95;
/** A section whose own heading names a third of a goal of one part covers it with little more than half of its words. */
const inName = { named: 1 / 3, held: 0.55, both: 0.9 };
/** Sections that may cover a goal together, and what they must hold beyond what one would: words in many places prove less than in one. */
const maxSections = 3;
const together = 0.1;
/** Part of the goal that each of them must add to the others. */
const leastGain = 0.15;
/** Sections that are looked at, best first. */
const looked = 60;

/** The share of the goal, weighted by rarity, that one section must hold; a long goal is never found word for word. */
export const needed = (terms: number) => (terms <= 8 ? 0.65 : 0.55);

/**
 * The section that covers the goal: enough of its words together, some of them in a heading, and a sample to use. A goal of several parts
 * may be covered by as many sections: each like that for its own part, each with a word of the goal in its headings that the others lack.
 */
export function findCover(index: SectionIndex, { terms, parts }: { terms: Term[]; parts: number }): Cover | null {
  const fair = index
    .search(looked)
    .filter(({ share, headingShare, section }) => section.hasSample && share >= notable && headingShare >= inHeading)
    .sort((a, b) => merit(b) - merit(a));
  const least = needed(terms.length);
  const one = fair.find(
    ({ share, headingShare, nameShare }) =>
      (share >= least && share + headingShare >= heldAndNamed) ||
      (parts <= 1 && nameShare >= inName.named && share >= inName.held && share + nameShare >= inName.both),
  );
  if (one) return { sections: [one], terms: one.terms, share: one.share };
  const weights = new Map(terms.map((term) => [term, index.rarity(term)]));
  const total = weights.values().reduce((sum, weight) => sum + weight, 0) || 1;
  const shareOf = (some: Iterable<Term>) => [...some].reduce((sum, term) => sum + weights.get(term)!, 0) / total;
  for (const first of fair) {
    const sections = [first];
    while (sections.length < Math.min(parts, maxSections)) {
      const held = new Set(sections.flatMap((section) => section.terms));
      const gain = ({ terms: more }: Match) => shareOf(more.filter((term) => !held.has(term)));
      const names = ({ named }: Match) => named.some((term) => !held.has(term));
      const best = fair
        .filter((other) => names(other) && gain(other) >= leastGain)
        .reduce<Match | null>((top, other) => (top && gain(top) >= gain(other) ? top : other), null);
      if (!best) break;
      sections.push(best);
      const all = new Set(sections.flatMap((section) => section.terms));
      if (shareOf(all) < least + together) continue;
      return { sections, terms: terms.filter((term) => all.has(term)), share: shareOf(all) };
    }
  }
  return null;
}

/** What a section holds, what its own heading promises, and how well it fits by bm25 count alike. */
const merit = ({ share, nameShare, fit }: Match) => share + nameShare + fit;
