import { pageKey } from "../../net/page-key.ts";
import type { Provenance } from "../agent.ts";
import { type Term, toStems } from "./goal.ts";
import { mayBePage } from "./session.ts";

/** Where a URL's link contains words of the goal. `hub`: nowhere, but such pages usually lead further. */
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
 * `context` is the text around the link, `heading` the heading above it, `near` how well the link's section matches the
 * goal, 0 to 1.
 */
export type Found = { url: string; text: string; context?: string; heading?: string; near?: number };

export type Frontier = {
  add(links: Found[], provenance: Provenance, foundOn: string | null): void;
  /** Removes the best candidate; ties in order of discovery. Null if there is none left. */
  take(): Candidate | null;
  /** Excludes a URL for good. */
  forget(url: string): void;
  size(): number;
};

/** Weight of a word by where it occurs; in a link text, weighted by its share of the text. */
const inText = 1;
const inPath = 0.8;
const inContext = 0.4;
const inHeading = 0.2;
const unfocused = 0.6;
/** Weight of a synonym. */
const asSynonym = 0.7;
/** Number of context words that count fully; in longer contexts each counts less. */
const shortContext = 12;
/**
 * Bonus for a link in a matching section, bonus for a page with many incoming links, and penalty per click from the
 * start.
 */
const nearBonus = 0.06;
const linkedBonus = 0.015;
const depthCost = 0.015;
/**
 * Hubs are tried before links that match nothing, and before links that share a single common word; less so after each
 * one.
 */
const mapNames = "documentation|docs|(table of )?contents|toc|(site ?)?index";
const hubNames =
  "overview|introduction|guides?|(user.?s? )?manual|(api )?reference|tutorials?|getting.?started|get.?started|quick.?start|first.?steps|learn|examples|cook.?book|recipes|faq";
const mapHub = new RegExp(`^(the )?(${mapNames})$`, "i");
const wholeHub = new RegExp(`^(the )?(${hubNames})$`, "i");
const partHub = new RegExp(`(?<![\\w-])(${mapNames}|${hubNames})(?![\\w-])|tutorial|everyday`, "i");
const mapBonus = 0.26;
const wholeBonus = 0.2;
const partBonus = 0.16;
const hubDecay = 0.75;
/** A deeper hub leads to something more specific. */
const deeperHub = 0.6;
/** A longer text names one thing rather than an entry page. */
const maxHubWords = 4;
const maxCandidates = 5000;

/** URLs found so far, opened best first. `origins` may grow meanwhile. */
export function createFrontier(terms: Term[], origins: Set<string>, rarity: (term: Term) => number): Frontier {
  type Entry = Omit<Candidate, "terms" | "reason"> & {
    key: string;
    order: number;
    depth: number;
    /** Score of the link text alone, to describe a URL by its best link text. */
    said: number;
    hits: Map<string, number>;
    /** Words that occur in the text or the URL itself. */
    named: Set<string>;
    hub: number;
    near: number;
    linkedFrom: Set<string | null>;
  };
  const waiting = new Map<string, Entry>();
  const gone = new Map<string, number>();
  const counts = new Map<string, number>();
  /** The terms that a word form matches, with its weight for each. */
  const forms = new Map<string, { stem: string; worth: number }[]>();
  for (const { stem, alternatives } of terms)
    for (const [form, worth] of [
      [stem, 1] as const,
      ...[...alternatives.keys()].map((each) => [each, asSynonym] as const),
    ])
      forms.set(form, [...(forms.get(form) ?? []), { stem, worth }]);
  let order = 0;
  let hubs = 0;

  const hitsOf = ({ url, text, context = "", heading = "" }: Found) => {
    const hits = new Map<string, number>();
    const named = new Set<string>();
    const mark = (words: string[], value: number) => {
      for (const form of words)
        for (const { stem, worth } of forms.get(form) ?? [])
          hits.set(stem, Math.max(hits.get(stem) ?? 0, value * worth));
    };
    const { pathname, search } = new URL(url);
    const focused = (words: string[], value: number) => {
      const held = words.filter((form) => forms.has(form)).length;
      mark(words, value * (unfocused + (1 - unfocused) * (held / Math.max(1, words.length))));
      return held;
    };
    const name = toStems(readable(lastOf(pathname) + search));
    const folders = toStems(readable(pathname));
    const words = toStems(text);
    mark(toStems(heading), inHeading);
    const around = toStems(context);
    mark(around, inContext * Math.min(1, shortContext / Math.max(1, around.length)) ** 0.5);
    mark(folders, inPath * unfocused);
    focused(name, inPath);
    const said = focused(words, inText);
    for (const form of [...folders, ...name, ...words]) for (const { stem } of forms.get(form) ?? []) named.add(stem);
    return { hits, named, said };
  };

  /** Rare both in what was read and in the links found. */
  const weigh = () =>
    new Map(
      terms.map((term) => [
        term.stem,
        rarity(term) * Math.log(1 + (waiting.size + 1) / ((counts.get(term.stem) ?? 0) + 1)),
      ]),
    );

  return {
    add(links, provenance, foundOn) {
      const depth = foundOn === null ? 0 : (gone.get(pageKey(foundOn)) ?? 0) + 1;
      for (const link of links) {
        if (!mayBePage(link.url, origins) || waiting.size >= maxCandidates) continue;
        const key = pageKey(link.url);
        if (gone.has(key)) continue;
        const known = waiting.get(key);
        const { hits, named, said } = hitsOf(link);
        for (const stem of hits.keys()) if (!known?.hits.has(stem)) counts.set(stem, (counts.get(stem) ?? 0) + 1);
        const near = link.near ?? 0;
        const hub = hubOf(link) * deeperHub ** Math.max(0, depth - 1);
        if (known) {
          for (const [stem, value] of hits) known.hits.set(stem, Math.max(known.hits.get(stem) ?? 0, value));
          for (const stem of named) known.named.add(stem);
          known.near = Math.max(known.near, near);
          known.hub = Math.max(known.hub, hub);
          known.linkedFrom.add(foundOn);
          if (link.text && (said > known.said || !known.text)) [known.text, known.said] = [link.text, said];
          continue;
        }
        const url = link.url.replace(/#.*$/s, "");
        const { text } = link;
        const linkedFrom = new Set([foundOn]);
        const entry = { url, text, provenance, foundOn, key, order: order++, depth, said, hits, named, hub, near };
        waiting.set(key, { ...entry, linkedFrom });
      }
    },
    take() {
      const weights = weigh();
      const total = weights.values().reduce((sum, weight) => sum + weight, 0) || 1;
      const wordsOf = ({ hits }: Entry) =>
        hits.entries().reduce((sum, [stem, value]) => sum + (value * weights.get(stem)!) / total, 0);
      const scoreOf = (entry: Entry) =>
        wordsOf(entry) +
        entry.hub * hubDecay ** hubs +
        nearBonus * entry.near +
        linkedBonus * Math.log2(entry.linkedFrom.size) -
        depthCost * entry.depth;
      let best: Entry | null = null;
      let bestScore = Number.NEGATIVE_INFINITY;
      for (const entry of waiting.values()) {
        const score = scoreOf(entry);
        if (score > bestScore + 1e-12) [best, bestScore] = [entry, score];
      }
      if (!best) return null;
      waiting.delete(best.key);
      gone.set(best.key, best.depth);
      if (best.hub > 0) hubs++;
      const { url, text, provenance, foundOn } = best;
      const wordsIn = (stems: { has(stem: string): boolean }) =>
        terms.filter(({ stem }) => stems.has(stem)).map(({ word }) => word);
      const named = wordsIn(best.named);
      const around = wordsIn(best.hits);
      const byHub = best.hub * hubDecay ** (hubs - 1) > wordsOf(best);
      const reason = byHub ? "hub" : named.length > 0 ? "named" : around.length > 0 ? "around" : "none";
      return { url, text, provenance, foundOn, reason, terms: named.length > 0 ? named : around };
    },
    forget(url) {
      const key = pageKey(url);
      gone.set(key, waiting.get(key)?.depth ?? gone.get(key) ?? 0);
      waiting.delete(key);
    },
    size: () => waiting.size,
  };
}

/** By the link text, the last path segment without extension, or a sentence that sends beginners there. */
function hubOf({ url, text, context = "" }: Found): number {
  const names = [text, lastOf(new URL(url).pathname).replace(/\.\w+$/, "")];
  const short = names.map((name) => name.trim()).filter((name) => name.split(/\s+/).length <= maxHubWords);
  const has = (hub: RegExp) => short.some((name) => hub.test(name));
  if (has(partHub) && /\b(to get started|start here|new to)\b/i.test(context)) return mapBonus;
  return has(mapHub) ? mapBonus : has(wholeHub) ? wholeBonus : has(partHub) ? partBonus : 0;
}

const lastOf = (path: string) => path.split("/").filter(Boolean).at(-1) ?? "";

/** The words of a path, percent-decoded and split at separators and camel case. */
function readable(path: string): string {
  let text = path;
  try {
    text = decodeURIComponent(path);
  } catch {
    // An invalid percent sign: use the path as it is.
  }
  return text
    .replace(/\.(html?|mdx?|php|aspx?|txt)$/i, "")
    .replace(/[-_/.?=&+]+/g, " ")
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2");
}
