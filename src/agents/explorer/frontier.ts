import { pageKey } from "../../net/page-key.ts";
import { decodePercent } from "../../net/percent.ts";
import type { Provenance } from "../agent.ts";
import { type Term, toStems } from "./goal.ts";
import { mayBePage } from "./session.ts";

/**
 * Why a URL is opened. `named`: its link text or URL contains words of the goal. `around`: only the text around the link does. `hub`: it is a page
 * that usually leads further.
 */
type Reason = "named" | "around" | "hub" | "none";

/** A URL that was found but not opened yet. */
export type Candidate = {
  url: string;
  text: string;
  provenance: Provenance;
  foundOn: string | null;
  reason: Reason;
  /** Words of the goal in its text or URL; if there are none, in its context. */
  terms: string[];
};

/**
 * A link on a page. `context`: the text around it; `heading`: the heading above it; `sectionFit`: how well its section matches the goal, 0
 * to 1.
 */
export type PageLink = { url: string; text: string; context?: string; heading?: string; sectionFit?: number };

export type Frontier = ReturnType<typeof createFrontier>;

// The numbers below were tuned on the goals about real docs in test/truth/goals/tuning.json. `bun run truth --goals` measures how often the explorer
// finds the page that answers a goal. It measures these goals and the goals in sealed.json, on which nothing was tuned.

/** Weight of a word of the goal by where it occurs, 1 being the link text. */
const wordWeight = { text: 1, path: 0.8, context: 0.4, heading: 0.2 };
/** A word that is a small part of a text keeps this share of its weight. A word that is the whole text keeps all of it. */
const minFocus = 0.6;
/** Weight of a synonym relative to the word itself. */
const synonymWeight = 0.7;
/** Words of a context up to this number count fully. In a longer context, each word counts less, by the square root of the length. */
const fullContextWords = 12;

/** Added for a link in the section that matches the goal best. */
const sectionBonus = 0.06;
/** Added each time the number of pages that link to a URL doubles. */
const incomingLinkBonus = 0.015;
/** Subtracted for each click between a start page and the page of the link. */
const clickPenalty = 0.015;

/**
 * Added for a hub, which is a page that usually leads further: a table of contents, a page whose whole name is that of a hub, or a page whose name
 * contains it. It is enough to precede links that match nothing, and links that share one common word.
 */
const hubBonus = { contents: 0.26, wholeName: 0.2, partOfName: 0.16 };
/** Each hub that was opened makes the next one this much less attractive. */
const decayPerOpenedHub = 0.75;
/** Each level below the start pages makes a hub this much less attractive, because it leads to something more specific. */
const decayPerLevel = 0.6;
/** A longer name is the name of one thing rather than of an entry page. */
const maxHubWords = 4;

const maxCandidates = 5000;

const contentsNames = "documentation|docs|(table of )?contents|toc|(site ?)?index";
const hubNames =
  "overview|introduction|guides?|(user.?s? )?manual|(api )?reference|tutorials?|getting.?started|get.?started|quick.?start|first.?steps|learn|examples|cook.?book|recipes|faq";
const wholeContentsName = new RegExp(`^(the )?(${contentsNames})$`, "i");
const wholeHubName = new RegExp(`^(the )?(${hubNames})$`, "i");
// Pages of common tasks are named like “Everyday commands”.
const partialHubName = new RegExp(`(?<![\\w-])(${contentsNames}|${hubNames})(?![\\w-])|tutorial|everyday`, "i");

/**
 * For each form, the terms of the goal that it stands for. A form is a stem that a text may have for a term: that of the term itself or of a synonym.
 * For example, the form “remov” may stand for the term “delet”. `stem`: the stem of the term itself. `weight`: 1, or less for a synonym.
 */
type TermForms = Map<string, { stem: string; weight: number }[]>;

/** The words of the goal in a link. */
type LinkMatch = {
  /** The weight of each term. */
  hits: Map<string, number>;
  /** Terms that occur in the text or the URL itself. */
  named: Set<string>;
  /** Number of matching words in the link text. */
  wordsInText: number;
};

/** A URL that waits to be opened. */
type Entry = Omit<Candidate, "terms" | "reason"> &
  LinkMatch & {
    key: string;
    /** Clicks from a start page. */
    depth: number;
    /** The bonus of a hub, less what its depth costs; 0 for other pages. */
    hubScore: number;
    sectionFit: number;
    linkedFrom: Set<string | null>;
  };

type State = {
  forms: TermForms;
  waiting: Map<string, Entry>;
  /** Depth of each URL that was opened or excluded, by its key. */
  closed: Map<string, number>;
  /** Number of URLs that each term was seen with. */
  counts: Map<string, number>;
  openedHubs: number;
};

/** URLs found so far, opened best first. `origins` may grow meanwhile. */
export function createFrontier(terms: Term[], origins: Set<string>, rarity: (term: Term) => number) {
  const state: State = {
    forms: toForms(terms),
    waiting: new Map(),
    closed: new Map(),
    counts: new Map(),
    openedHubs: 0,
  };
  return {
    add(links: PageLink[], provenance: Provenance, foundOn: string | null): void {
      for (const link of links)
        if (mayBePage(link.url, origins) && state.waiting.size < maxCandidates)
          addLink(state, link, provenance, foundOn);
    },
    /** Removes the best candidate; ties in order of discovery. Null if there is none left. */
    take: () => takeBest(state, terms, rarity),
    /** Excludes a URL for good. */
    exclude(url: string): void {
      const key = pageKey(url);
      if (state.closed.has(key)) return;
      // A URL without an entry was not found by a link, so it is a start URL.
      state.closed.set(key, state.waiting.get(key)?.depth ?? 0);
      state.waiting.delete(key);
    },
  };
}

function toForms(terms: Term[]): TermForms {
  const forms: TermForms = new Map();
  for (const { stem, alternatives } of terms) {
    const add = (form: string, weight: number) => forms.set(form, [...(forms.get(form) ?? []), { stem, weight }]);
    add(stem, 1);
    for (const form of alternatives.keys()) add(form, synonymWeight);
  }
  return forms;
}

function addLink(state: State, link: PageLink, provenance: Provenance, foundOn: string | null): void {
  const { waiting, closed } = state;
  const key = pageKey(link.url);
  if (closed.has(key)) return;
  const known = waiting.get(key);
  const match = matchLink(link, state.forms);
  countTerms(state, match, known);
  const depth = foundOn === null ? 0 : (closed.get(pageKey(foundOn)) ?? 0) + 1;
  const entry: Entry = {
    url: link.url.replace(/#.*$/s, ""),
    text: link.text,
    provenance,
    foundOn,
    key,
    depth,
    ...match,
    hubScore: hubBonusOf(link) * decayPerLevel ** Math.max(0, depth - 1),
    sectionFit: link.sectionFit ?? 0,
    linkedFrom: new Set([foundOn]),
  };
  if (known) mergeEntries(known, entry);
  else waiting.set(key, entry);
}

/** Counts the terms that a URL wasn't seen with before. */
function countTerms({ counts }: State, { hits }: LinkMatch, known: Entry | undefined): void {
  for (const stem of hits.keys()) if (!known?.hits.has(stem)) counts.set(stem, (counts.get(stem) ?? 0) + 1);
}

/** Adds another link to the same URL. It keeps the depth of the first. */
function mergeEntries(known: Entry, other: Entry): void {
  for (const [stem, weight] of other.hits) known.hits.set(stem, Math.max(known.hits.get(stem) ?? 0, weight));
  for (const stem of other.named) known.named.add(stem);
  known.sectionFit = Math.max(known.sectionFit, other.sectionFit);
  known.hubScore = Math.max(known.hubScore, other.hubScore);
  for (const page of other.linkedFrom) known.linkedFrom.add(page);
  // A URL is described by its best link text.
  if (other.text && (other.wordsInText > known.wordsInText || !known.text)) {
    known.text = other.text;
    known.wordsInText = other.wordsInText;
  }
}

function matchLink({ url, text, context = "", heading = "" }: PageLink, termForms: TermForms): LinkMatch {
  const { pathname, search } = new URL(url);
  const textForms = toStems(text);
  const contextForms = toStems(context);
  const pathForms = toStems(textOfPath(pathname));
  const lastSegmentForms = toStems(textOfPath(lastSegmentOf(pathname) + search));
  const contextShare = Math.min(1, fullContextWords / Math.max(1, contextForms.length)) ** 0.5;
  const hits = new Map<string, number>();
  const addHits = (forms: string[], weight: number) => {
    for (const form of forms)
      for (const term of termForms.get(form) ?? [])
        hits.set(term.stem, Math.max(hits.get(term.stem) ?? 0, weight * term.weight));
  };
  addHits(toStems(heading), wordWeight.heading);
  addHits(contextForms, wordWeight.context * contextShare);
  addHits(pathForms, wordWeight.path * minFocus);
  addHits(lastSegmentForms, wordWeight.path * focusOf(lastSegmentForms, termForms));
  addHits(textForms, wordWeight.text * focusOf(textForms, termForms));
  const named = new Set([...pathForms, ...lastSegmentForms, ...textForms].flatMap((form) => stemsOf(form, termForms)));
  return { hits, named, wordsInText: countMatches(textForms, termForms) };
}

const stemsOf = (form: string, termForms: TermForms): string[] => (termForms.get(form) ?? []).map(({ stem }) => stem);

const countMatches = (forms: string[], termForms: TermForms): number =>
  forms.filter((form) => termForms.has(form)).length;

/** How much of a text consists of words of the goal: from `minFocus` for none to 1 for all of it. */
const focusOf = (forms: string[], termForms: TermForms): number =>
  minFocus + (1 - minFocus) * (countMatches(forms, termForms) / Math.max(1, forms.length));

/** Removes and returns the entry with the highest score. Among equal scores, it is the entry that was found first. */
function takeBest(state: State, terms: Term[], rarity: (term: Term) => number): Candidate | null {
  const { waiting, closed } = state;
  const weights = weighTerms(state, terms, rarity);
  const hubDecay = decayPerOpenedHub ** state.openedHubs;
  let best: Entry | null = null;
  let bestScore = Number.NEGATIVE_INFINITY;
  for (const entry of waiting.values()) {
    const score =
      wordScoreOf(entry, weights) +
      entry.hubScore * hubDecay +
      sectionBonus * entry.sectionFit +
      incomingLinkBonus * Math.log2(entry.linkedFrom.size) -
      clickPenalty * entry.depth;
    // Equal scores may differ by an error of rounding.
    if (score > bestScore + 1e-12) [best, bestScore] = [entry, score];
  }
  if (!best) return null;
  waiting.delete(best.key);
  closed.set(best.key, best.depth);
  if (best.hubScore > 0) state.openedHubs++;
  const { url, text, provenance, foundOn } = best;
  const isMainlyHub = best.hubScore * hubDecay > wordScoreOf(best, weights);
  return { url, text, provenance, foundOn, ...reasonFor(best, terms, isMainlyHub) };
}

function reasonFor({ named, hits }: Entry, terms: Term[], isMainlyHub: boolean): Pick<Candidate, "reason" | "terms"> {
  const namedWords = wordsOf(terms, named);
  const words = namedWords.length > 0 ? namedWords : wordsOf(terms, hits);
  if (isMainlyHub) return { reason: "hub", terms: words };
  if (namedWords.length > 0) return { reason: "named", terms: words };
  return { reason: words.length > 0 ? "around" : "none", terms: words };
}

/** How much of the goal each term is: more for a term that is rare in the pages that were read and in the links that were found. */
function weighTerms({ waiting, counts }: State, terms: Term[], rarity: (term: Term) => number): Map<string, number> {
  const weights = new Map(
    terms.map((term) => [
      term.stem,
      rarity(term) * Math.log(1 + (waiting.size + 1) / ((counts.get(term.stem) ?? 0) + 1)),
    ]),
  );
  const total = weights.values().reduce((sum, weight) => sum + weight, 0) || 1;
  return new Map(weights.entries().map(([stem, weight]) => [stem, weight / total]));
}

const wordScoreOf = ({ hits }: Entry, weights: Map<string, number>): number =>
  hits.entries().reduce((sum, [stem, weight]) => sum + weight * weights.get(stem)!, 0);

const wordsOf = (terms: Term[], stems: { has(stem: string): boolean }): string[] =>
  terms.filter(({ stem }) => stems.has(stem)).map(({ word }) => word);

/**
 * The bonus of a hub. A page is recognized as one by the link text, the last path segment without extension, or a sentence that sends beginners
 * there.
 */
function hubBonusOf({ url, text, context = "" }: PageLink): number {
  const names = [text, lastSegmentOf(new URL(url).pathname).replace(/\.\w+$/, "")];
  const shortNames = names.map((name) => name.trim()).filter((name) => name.split(/\s+/).length <= maxHubWords);
  const isAny = (pattern: RegExp) => shortNames.some((name) => pattern.test(name));
  if (isAny(wholeContentsName)) return hubBonus.contents;
  if (isAny(partialHubName) && /\b(to get started|start here|new to)\b/i.test(context)) return hubBonus.contents;
  if (isAny(wholeHubName)) return hubBonus.wholeName;
  return isAny(partialHubName) ? hubBonus.partOfName : 0;
}

const lastSegmentOf = (path: string) => path.split("/").filter(Boolean).at(-1) ?? "";

/** The words of a path, percent-decoded and split at separators and camel case. */
function textOfPath(path: string): string {
  return (decodePercent(path) ?? path)
    .replace(/\.(html?|mdx?|php|aspx?|txt)$/i, "")
    .replace(/[-_/.?=&+]+/g, " ")
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2");
}
