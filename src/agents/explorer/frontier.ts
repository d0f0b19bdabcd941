import type { Provenance } from "../agent.ts";
import { type Term, toStems } from "./goal.ts";
import { mayBePage, pageKey } from "./session.ts";

/** An address that was seen and not yet opened. */
type Candidate = {
  url: string;
  text: string;
  provenance: Provenance;
  foundOn: string | null;
  /** Words of the goal that its text or its address holds. */
  terms: string[];
  /** 0 to about 1: how much of the goal, weighted by rarity among all candidates. */
  score: number;
};

export type Found = { url: string; text: string; context?: string };

export type Frontier = {
  add(links: Found[], provenance: Provenance, foundOn: string | null): void;
  /** Takes the best candidate; ties in the order of discovery. Null when none is left. */
  take(): Candidate | null;
  /** Never to be offered again. */
  forget(url: string): void;
  size(): number;
};

/** How much a word counts by where it stands. */
const inText = 1;
const inPath = 0.8;
const inContext = 0.5;
/** A page that usually leads further is tried before one that tells nothing. */
const hubBonus = 0.05;
const hub =
  /\b(quick ?start|getting.started|get.started|tutorial|guides?|how.?to|examples?|reference|api|docs?|documentation|contents|overview|index|start)\b/i;
const maxCandidates = 5000;

/** Addresses seen on the way, to be opened best first. `origins` may grow while the way goes on. */
export function createFrontier(terms: Term[], origins: Set<string>, rarity: (term: Term) => number): Frontier {
  type Entry = Omit<Candidate, "terms" | "score"> & {
    key: string;
    order: number;
    hits: Map<string, number>;
    bonus: number;
  };
  const waiting = new Map<string, Entry>();
  const gone = new Set<string>();
  const counts = new Map<string, number>();
  const stems = new Map(terms.map((term) => [term.stem, term]));
  let order = 0;

  const hitsOf = ({ url, text, context = "" }: Found) => {
    const hits = new Map<string, number>();
    const mark = (words: string[], value: number) => {
      for (const stem of words) if (stems.has(stem)) hits.set(stem, Math.max(hits.get(stem) ?? 0, value));
    };
    const { pathname, search } = new URL(url);
    mark(toStems(context), inContext);
    mark(toStems(readable(pathname + search)), inPath);
    mark(toStems(text), inText);
    return hits;
  };

  /** Rare among what was read and among what could be read. */
  const weigh = () =>
    new Map(
      terms.map((term) => [
        term.stem,
        rarity(term) * Math.log(1 + (waiting.size + 1) / ((counts.get(term.stem) ?? 0) + 1)),
      ]),
    );

  return {
    add(links, provenance, foundOn) {
      for (const link of links) {
        if (!mayBePage(link.url, origins) || waiting.size >= maxCandidates) continue;
        const key = pageKey(link.url);
        if (gone.has(key)) continue;
        const known = waiting.get(key);
        const hits = hitsOf(link);
        for (const stem of hits.keys()) if (!known?.hits.has(stem)) counts.set(stem, (counts.get(stem) ?? 0) + 1);
        if (known) {
          for (const [stem, value] of hits) known.hits.set(stem, Math.max(known.hits.get(stem) ?? 0, value));
          known.text ||= link.text;
          continue;
        }
        const url = link.url.replace(/#.*$/s, "");
        const bonus = hub.test(link.text) || hub.test(readable(new URL(url).pathname)) ? hubBonus : 0;
        waiting.set(key, { url, text: link.text, provenance, foundOn, key, order: order++, hits, bonus });
      }
    },
    take() {
      const weights = weigh();
      const total = weights.values().reduce((sum, weight) => sum + weight, 0) || 1;
      let best: Entry | null = null;
      let bestScore = -1;
      for (const entry of waiting.values()) {
        let score = entry.bonus;
        for (const [stem, value] of entry.hits) score += (value * weights.get(stem)!) / total;
        if (score > bestScore + 1e-12) [best, bestScore] = [entry, score];
      }
      if (!best) return null;
      waiting.delete(best.key);
      gone.add(best.key);
      const { url, text, provenance, foundOn, hits } = best;
      const found = terms.filter(({ stem }) => hits.has(stem)).map(({ word }) => word);
      return { url, text, provenance, foundOn, terms: found, score: bestScore };
    },
    forget(url) {
      const key = pageKey(url);
      waiting.delete(key);
      gone.add(key);
    },
    size: () => waiting.size,
  };
}

/** The words of a path: percent-decoded, camel case and separators opened. */
function readable(path: string): string {
  let text = path;
  try {
    text = decodeURIComponent(path);
  } catch {
    // A stray percent sign: the path is read as it stands.
  }
  return text.replace(/[-_/.?=&+]+/g, " ").replace(/([a-z0-9])([A-Z])/g, "$1 $2");
}
