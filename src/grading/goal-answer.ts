import type { MilestoneOf } from "./events.ts";
import type { Wordings } from "./grade.ts";
import { lineOrNull, oneLine } from "./text.ts";

/** A section of a page; `heading` is its own, without those above it. */
type Section = { url: string; heading: string | null };

/** Where the explorer found the answer: `likely` in `sections`, or `unclear`. */
export type GoalAnswer = {
  state: "likely" | "unclear";
  seq: number;
  /** The sections that answer it together, the main one first; empty if unclear. */
  sections: Section[];
  /** The best section of each page, nearest first: usually three pages. */
  nearest: Section[];
  /** Other sections that match the goal about as well as the nearest. */
  alternatives: Section[];
  /** The nearest section contains most of the goal by weight, and a sample. */
  isCovered: boolean;
  /** Words of the goal that the nearest section contains, that it lacks, and that occur nowhere in what was read. */
  covered: string[];
  missing: string[];
  unseen: string[];
  /** 0 to 1: how well the nearest section matches, by its text and headings. */
  fit: number;
  /** Clicks from the start page to the nearest page; null: no path was found. */
  clicks: number | null;
  /** How many pages were read, and whether none of them has a word of the goal. */
  pages: number;
  noOverlap: boolean;
  /** The scripts of the goal and of the docs if they differ, such as "Cyrillic" and "Latin": words can't be compared then. */
  otherScript: { goal: string; docs: string } | null;
  /** The nearest section contains the words, but no sample. */
  noSample: boolean;
  /** What each wording of the goal finds, the goal itself first. */
  wordings: Wordings["results"];
};

/** The share of the goal from which a section contains most of it. */
const mostOfGoal = 2 / 3;

/** Headings are paths, "Guide > Install > npm"; the last part names the section. */
const lastHeading = (path: string) => lineOrNull(path.split(" > ").at(-1), 80);

/** What the explorer found out about the goal, with the texts of the target on one line and of limited length. */
export function goalAnswerOf({ seq, detail }: MilestoneOf<"goal_answer">): GoalAnswer {
  const { state, unseen, fit, clicks, pages, noSample, noOverlap = false, otherScript } = detail;
  const { sections: sectionCount, close: closeCount = 1 } = detail;
  const [best] = detail.nearest;
  const nearest = detail.nearest.map(({ url, heading }) => ({ url, heading: lastHeading(heading) }));
  return {
    state,
    seq,
    nearest,
    unseen,
    fit,
    clicks,
    pages,
    noSample,
    noOverlap,
    sections: state === "likely" ? nearest.slice(0, sectionCount) : [],
    // `nearest` begins with the sections that answer the goal together, or else with the nearest section. Sections that are about as close come next.
    alternatives: nearest.slice(Math.max(1, sectionCount), closeCount),
    isCovered: best !== undefined && best.share >= mostOfGoal && best.hasSample,
    covered: best?.terms ?? [],
    missing: best?.missing ?? [],
    otherScript: otherScript ? { goal: oneLine(otherScript.goal, 20), docs: oneLine(otherScript.docs, 20) } : null,
    wordings: detail.wordings.map(({ text, state, fit, url }) => ({
      text: oneLine(text, 300),
      state,
      fit,
      url: lineOrNull(url, 2000),
    })),
  };
}

/** The results for several wordings of the goal, and how much they differ; null with only one. */
export function wordingsOf(answer: GoalAnswer | null): Wordings | null {
  const results = answer?.wordings ?? [];
  if (results.length < 2) return null;
  const fits = results.map(({ fit }) => fit);
  return { spread: Math.round(100 * (Math.max(...fits) - Math.min(...fits))) / 100, results };
}
