import { type Answer, findAnswer, minProbability, minReportedShare } from "./answer.ts";
import { goalPartsOf, type Term, toTerms } from "./goal.ts";
import { clicksTo } from "./link-graph.ts";
import {
  addLinkTexts,
  addPage,
  createSectionIndex,
  joinedShares,
  type Match,
  type SectionIndex,
  unseenTerms,
} from "./sections.ts";
import {
  cut,
  describedLinks,
  type ReadPage,
  type SearchEnd,
  type Session,
  type Steps,
  thoughtEvent,
  useTool,
} from "./session.ts";
import { findOtherScript } from "./writing-scripts.ts";

/** Headings match the goal fully from this share of the goal on. */
const fullHeadingShare = 0.3;
/** The words of a section count by this power of their share, because a section with half of the goal's words is far less than half of an answer. */
const shareExponent = 3;
/** How much headings and nearness in meaning add to the words of a section, which add up to 1. */
const fitWeight = { headings: 0.2, similarity: 0.5 };
/**
 * A section begins to fit the goal at the first sum, and fits fully from the second on. Tuned on the goals in tuning.json and held-out.json: nearly
 * all sections of docs without an answer are below the first sum. Most answers that have the words of the goal are above the second.
 */
const fitRange = { none: 0.64, full: 1.2 };
/** Factor for a section of a page without a sample. */
const withoutSample = 0.8;
/** The best section should have a sample if it matches this share of the goal. A section that matches less only comes close to an answer. */
const minShareForSample = 2 * minReportedShare;

const round = (share: number) => Math.round(share * 100) / 100;
/** The words of the terms of a goal. */
export const wordsOf = (terms: Term[]) => terms.map(({ word }) => word);

/** A section, as it appears in events. */
export const describeSection = ({ section, share, headingShare }: Match) => ({
  url: section.url,
  heading: cut(section.path.join(" > "), 200),
  line: section.line,
  share: round(share),
  headingShare: round(headingShare),
});

/** Maximum number of pages to report. */
const maxNearest = 3;
/** Maximum characters of a goal that is listed beside its other wordings. */
const maxGoal = 300;

/** Reports where the answer to the goal is likely to be, or what comes closest, over everything that was read. */
export async function* conclude(session: Session, index: SectionIndex, ended: SearchEnd): Steps {
  const { terms, pages, surveyed } = session;
  const all = [...pages, ...surveyed].filter(({ problem }) => problem === null);
  const words = wordsOf(terms);
  const answer = yield* useTool(session, "search_docs", { terms: words }, async () => {
    const value = findAnswer(index, session);
    const best = value.nearest
      .slice(0, 5)
      .map((match) => ({ ...describeSection(match), hasSample: match.section.hasSample }));
    return { ok: true, output: { sections: index.sections.length, best }, value };
  });
  const { state, sections } = answer;
  for (const { section } of sections) session.neededUrls.add(section.url);
  const nearest = answer.nearest.slice(0, Math.max(maxNearest, sections.length));
  const unseen = new Set(wordsOf(unseenTerms(index)));
  const noOverlap = terms.length > 0 && unseen.size === terms.length;
  const docsLanguage = noOverlap ? mostCommon(all.flatMap(({ language }) => language ?? [])) : null;
  const otherScript = findOtherScript(terms, unseen, all);
  const [best] = nearest;
  yield thoughtEvent(
    best === undefined
      ? `None of the ${all.length} pages read contains a word of the goal.`
      : `${state === "likely" ? "The likely answer is" : "No section clearly answers the goal. The closest is"} "${cut(best.section.path.join(" > "), 120)}", which contains ${wordsOf(best.terms).join(", ")}.`,
  );
  yield {
    type: "milestone",
    name: "goal_answer",
    detail: {
      state,
      sections: sections.length,
      nearest: nearest.map((match) => toNearest(session, match)),
      close: Math.min(answer.close, nearest.length),
      unseen: words.filter((word) => unseen.has(word)),
      fit: bestFit(answer, all, index),
      clicks: best ? clicksToPage(session, best.section.url) : null,
      noSample: best !== undefined && best.share >= minShareForSample && !best.section.hasSample,
      pages: pages.filter(({ problem }) => problem === null).length,
      budget: ended,
      wordings: compareWordings(session, all, { answer, index }),
      ...(noOverlap && { noOverlap, docsLanguage }),
      ...(otherScript && { otherScript }),
    },
  };
}

/**
 * How well a section fits the goal, 0 to 1: by its words, its headings and its meaning. The fit doesn't depend on other pages, so it doesn't rise if
 * something is removed there.
 */
function fitOf({ share, headingShare }: Match["withoutRarity"], similarity: number): number {
  const sum =
    share ** shareExponent +
    fitWeight.headings * Math.min(1, headingShare / fullHeadingShare) +
    fitWeight.similarity * Math.max(0, similarity);
  return Math.min(1, Math.max(0, (sum - fitRange.none) / (fitRange.full - fitRange.none)));
}

/**
 * The best fit of all sections of prose, or of the sections that answer the parts of the goal together. Sections of pages without a sample fit less.
 * The nearest section may not have the best fit, because its rank depends on more. A likely answer fits at least as well as it is probable.
 */
function bestFit({ state, all, sections }: Answer, pages: ReadPage[], index: SectionIndex): number {
  const sampled = new Set(pages.flatMap(({ url, samples }) => (samples.length > 0 ? [url] : [])));
  const fits = all.flatMap(({ withoutRarity, ownSimilarity, section }) =>
    section.kind === "prose"
      ? fitOf(withoutRarity, ownSimilarity) * (sampled.has(section.url) ? 1 : withoutSample)
      : [],
  );
  // Only sections with a sample answer a part.
  const nearest = Math.max(0, ...sections.map(({ ownSimilarity }) => ownSimilarity));
  const joined = sections.length > 1 ? fitOf(joinedShares(sections, index), nearest) : 0;
  const leastFit = Math.max(joined, state === "likely" ? minProbability : 0);
  return round(fits.reduce((best, fit) => Math.max(best, fit), leastFit));
}

function clicksToPage({ graph, task, pages, surveyed }: Session, url: string): number | null {
  const page = [...pages, ...surveyed].find(({ addresses }) => addresses.includes(url));
  const clicks = (page?.addresses ?? [url]).flatMap((address) => clicksTo(graph, address, task.startUrls) ?? []);
  return clicks.length === 0 ? null : Math.min(...clicks);
}

const toNearest = (session: Session, match: Match) => ({
  ...describeSection(match),
  title: cut(match.section.path[0] ?? "", 200),
  terms: wordsOf(match.terms),
  missing: wordsOf(match.missingTerms),
  synonyms: match.synonyms,
  hasSample: match.section.hasSample,
  clicks: clicksToPage(session, match.section.url),
});

type Comparison = { answer: Answer; index: SectionIndex };

/** Tests the other wordings of the goal against what was read, to show how much depends on the wording. */
function compareWordings({ task, listings }: Session, pages: ReadPage[], own: Comparison) {
  const toWording = (text: string, { answer, index }: Comparison) => ({
    text,
    state: answer.state,
    fit: bestFit(answer, pages, index),
    url: answer.nearest[0]?.section.url ?? null,
  });
  const goal = (task.endGoal ?? task.text).trim();
  const others = new Set(task.wordings?.map((text) => text.trim()));
  others.delete(goal);
  const compared = [...others].flatMap((text) => {
    const terms = toTerms(text);
    if (terms.length === 0) return [];
    const index = createSectionIndex(terms);
    addLinkTexts(index, listings.flatMap(describedLinks));
    for (const page of pages) addPage(index, page);
    return [toWording(text, { answer: findAnswer(index, { goalParts: goalPartsOf(text) }), index })];
  });
  return [toWording(cut(goal, maxGoal), own), ...compared];
}

function mostCommon(values: string[]): string | null {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
