import type { EventOf } from "./events.ts";
import type { Wordings } from "./grade.ts";
import { clamp } from "./methodology.ts";
import { line, lineOrNull } from "./text.ts";

/** A page that is near the goal, by its best section. */
type NearPage = {
  url: string;
  title: string | null;
  heading: string | null;
  line: number | null;
  /** 0 to 1: share of the goal in the section. */
  share: number;
  missing: string[];
  /** Words of the goal that occur only as a synonym. */
  synonyms: { word: string; found: string }[];
  clicks: number | null;
};

/** Where the explorer found the answer: `likely` in `sections`, or `unclear`. */
export type GoalFound = {
  state: "likely" | "unclear";
  seq: number;
  tMs: number;
  /** The sections that answer it together, the main one first; empty if unclear. */
  sections: { url: string | null; heading: string | null }[];
  /** At most three pages, nearest first. */
  nearest: NearPage[];
  /** Words of the goal that the nearest section contains, that it lacks, and that occur nowhere in what was read. */
  covered: string[];
  missing: string[];
  unseen: string[];
  /** 0 to 1: how well the nearest section matches, by its text and headings. */
  fit: number;
  /** Clicks from the start page to the nearest page; null: no path was found. */
  clicks: number | null;
  pages: number;
  noOverlap: boolean;
  /** The scripts of the goal and of the docs if they differ, such as "Cyrillic" and "Latin": words can't be compared then. */
  otherScript: { goal: string; docs: string } | null;
  /** The nearest section contains the words, but no sample. */
  noSample: boolean;
  /** What each wording of the goal finds, the goal itself first. */
  wordings: Wordings["results"];
};

export const strings = (value: unknown) =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
export const stringOrNull = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
export const numberOr = (value: unknown, otherwise: number) => (typeof value === "number" ? value : otherwise);

/** Headings are paths, "Guide > Install > npm"; the last part names the section. */
const lastHeading = (path: unknown) =>
  lineOrNull(
    String(path ?? "")
      .split(" > ")
      .at(-1),
    80,
  );

/** Other sections in a milestone; the main one is repeated as the first. */
export const sectionsOf = ({ sections }: Record<string, unknown>): Record<string, unknown>[] =>
  Array.isArray(sections) ? sections.filter((each) => typeof each === "object" && each !== null) : [];

/** Reads a milestone about the goal; `pagesRead` is used if it doesn't contain the number of pages read. */
export function goalOf(said: EventOf<"milestone"> | undefined, pagesRead: number): GoalFound | null {
  if (said === undefined) return null;
  const { seq, tMs, detail } = said;
  const pages = numberOr(detail.pages, pagesRead);
  const base = {
    ...{ seq, tMs, pages, noOverlap: detail.noOverlap === true, noSample: detail.noSample === true },
    otherScript: otherScriptOf(detail.otherScript),
    wordings: resultsOf(detail.wordings),
  };
  if (said.name === "goal_answer") {
    const nearest = nearestOf(detail.nearest);
    const state = detail.state === "likely" ? "likely" : "unclear";
    const [best] = Array.isArray(detail.nearest) ? (detail.nearest as Record<string, unknown>[]) : [];
    return {
      ...base,
      state,
      sections: state === "likely" ? nearest.slice(0, numberOr(detail.sections, 1)) : [],
      nearest,
      covered: strings(best?.terms),
      missing: strings(best?.missing),
      unseen: strings(detail.unseen),
      fit: clamp(numberOr(detail.fit, 0), 0, 1),
      clicks: typeof detail.clicks === "number" ? detail.clicks : null,
    };
  }
  // Older sessions: opened pages are used in place of clicks, and how well a section matches is unknown.
  if (said.name === "goal_covered") {
    const [, ...more] = sectionsOf(detail);
    const sections = [detail, ...more].map(({ url, heading }) => ({
      url: stringOrNull(url),
      heading: lastHeading(heading),
    }));
    const known = { nearest: [], covered: [], missing: [], unseen: [] };
    return { ...base, ...known, state: "likely", sections, fit: 1, clicks: pages };
  }
  const covered = strings(detail.covered);
  const missing = strings(detail.missing);
  const words = covered.length + missing.length;
  return {
    ...base,
    state: "unclear",
    sections: [],
    nearest: nearestOf([detail.bestSection]),
    covered,
    missing,
    unseen: strings(detail.unseen),
    fit: words === 0 ? 0 : covered.length / words,
    clicks: null,
  };
}

function resultsOf(said: unknown): Wordings["results"] {
  const all = Array.isArray(said) ? said.filter((each) => typeof each === "object" && each !== null) : [];
  return (all as Record<string, unknown>[]).map(({ text, state, fit, url }) => ({
    text: line(text, 300),
    state: state === "likely" ? "likely" : "unclear",
    fit: clamp(numberOr(fit, 0), 0, 1),
    url: lineOrNull(url, 2000),
  }));
}

/** The results for several wordings of the goal, and how much they differ; null with only one. */
export function wordingsOf(found: GoalFound | null): Wordings | null {
  const results = found?.wordings ?? [];
  if (results.length < 2) return null;
  const fits = results.map(({ fit }) => fit);
  return { spread: Math.round(100 * (Math.max(...fits) - Math.min(...fits))) / 100, results };
}

function otherScriptOf(said: unknown): GoalFound["otherScript"] {
  const { goal, docs } = Object(said) as Record<string, unknown>;
  return typeof goal === "string" && typeof docs === "string" ? { goal: line(goal, 20), docs: line(docs, 20) } : null;
}

function nearestOf(said: unknown): NearPage[] {
  const all = Array.isArray(said) ? said.filter((each) => typeof each === "object" && each !== null) : [];
  return (all as Record<string, unknown>[]).flatMap((each) => {
    if (typeof each.url !== "string") return [];
    const synonyms = Array.isArray(each.synonyms) ? (each.synonyms as Record<string, unknown>[]) : [];
    return [
      {
        url: each.url,
        title: lineOrNull(each.title, 80),
        heading: lastHeading(each.heading),
        line: typeof each.line === "number" ? each.line : null,
        share: clamp(numberOr(each.share, 0), 0, 1),
        missing: strings(each.missing),
        synonyms: synonyms.map(({ word, found }) => ({ word: line(word, 40), found: line(found, 40) })),
        clicks: typeof each.clicks === "number" ? each.clicks : null,
      },
    ];
  });
}
