import type { Curve, Dimension, DimensionPart, PartName } from "../grade.ts";
import { round1 } from "../methodology.ts";
import { capitalize, count, duration, list, lowerFirst, percent } from "../text.ts";
import { proportional, scoreOn } from "./curve.ts";

/** A part before its weight is converted to a share of its dimension; `exactScore` is its score without rounding, null without evidence. */
export type Part = Omit<DimensionPart, "score"> & { exactScore: number | null };

/** A part that is scored by a curve. */
export const scoreByCurve = (
  name: PartName,
  weight: number,
  measurement: Omit<Part, "name" | "weight" | "exactScore"> & { curve: Curve },
): Part => ({ name, weight, ...measurement, exactScore: scoreOn(measurement.curve, measurement.value) });

/** A part that is a share: by default 100 for all, 0 for none. */
export const sharePart = (
  name: PartName,
  weight: number,
  value: number,
  counts: Record<string, number>,
  curve = proportional,
): Part => scoreByCurve(name, weight, { value, unit: "share", curve, counts });

/** A part that the session has no evidence for. It has no score. */
export const withoutEvidence = (name: PartName, weight: number): Part => ({
  name,
  weight,
  value: 0,
  unit: "share",
  curve: null,
  counts: {},
  exactScore: null,
});

/** A value with its unit: "0.5 s", "2 pages", "80%". */
export function formatAmount(value: number, unit: DimensionPart["unit"]): string {
  if (unit === "share") return percent(value);
  if (unit === "seconds") return duration(value);
  if (unit === "usd") return `$${value.toFixed(2)}`;
  return count(value, unit === "pages" ? "page" : "time");
}

type Sentence = (part: DimensionPart) => string;

/** A missing count is 0. */
const countOf = ({ counts }: DimensionPart, name: string): number => counts[name] ?? 0;
const describeShare =
  (words: string): Sentence =>
  ({ value }) =>
    `${percent(value)} ${words}`;

const wastedRequests = { failed: "failed", repeats: "repeated an earlier one", useless: "did not lead to the goal" };
const wastedCalls = { repeats: "repeated an earlier one", useless: "did not lead to the goal" };

/** "1 of 5 requests failed and 2 repeated an earlier one", without kinds that did not occur. `kinds`: what happened, by the name of its count. */
function describeKinds(part: DimensionPart, all: string, kinds: Record<string, string>): string {
  const phrases = Object.entries(kinds).flatMap(([name, happened]) => {
    const n = countOf(part, name);
    return n > 0 ? [{ n, happened }] : [];
  });
  const [first, ...others] = phrases;
  if (!first) return `none of ${all} was wasted`;
  return list([`${first.n} of ${all} ${first.happened}`, ...others.map(({ n, happened }) => `${n} ${happened}`)]);
}

const sentences: Record<PartName, Sentence> = {
  "Success checks": describeShare("of the success checks passed"),
  "Goal parts": (part) => {
    const [met, unclear] = [countOf(part, "met"), countOf(part, "unclear")];
    const unclearNote = unclear > 0 ? `, ${unclear} unclear` : "";
    return `${met} of ${count(countOf(part, "parts"), "part")} of the goal ${met === 1 ? "is" : "are"} proven${unclearNote}`;
  },
  "Path to the goal": (part) => {
    if (part.unit === "pages") return `the goal was found after ${count(part.value, "page")}`;
    const fit = `matches ${percent(part.value)} of the goal`;
    if (countOf(part, "likely") === 0) return `no section clearly answers the goal; the closest ${fit}`;
    if (countOf(part, "linked") === 0) return `the likely answer isn't linked from any page that was read and ${fit}`;
    const clicks = countOf(part, "clicks");
    return `the likely answer is ${clicks === 0 ? "on" : `${count(clicks, "click")} from`} the start page and ${fit}`;
  },
  "Failed page requests": (part) => {
    const guessed = countOf(part, "guessed");
    return `${countOf(part, "failed")} of ${count(countOf(part, "requests"), "page request")} failed${guessed > 0 ? `, ${guessed} of them at guessed URLs` : ""}`;
  },
  "Site checks": describeShare("of the site checks passed"),
  Pages: (part) => {
    const [pages, unreadable] = [countOf(part, "pages"), countOf(part, "unreadable")];
    const readable = pages === 0 ? "" : `${pages - unreadable} of ${count(pages, "page")} could be read; `;
    return `${readable}${percent(part.value)} of the page checks passed`;
  },
  Links: describeShare("of the links tested or followed lead to a page"),
  "Code samples": describeShare("of the code samples that evald can parse are valid"),
  "Sample labels": describeShare("of the code samples name their language"),
  "API description": describeShare("of the API description is valid"),
  Recovery: (part) =>
    describeKinds(part, count(countOf(part, "errors"), "error"), {
      atOnce: "fixed on the next attempt",
      afterDocs: "fixed after reading the docs",
      later: "fixed after more attempts",
      never: "not fixed",
    }),
  "Wasted requests": (part) => {
    const requests = countOf(part, "requests");
    const wasted = Object.keys(wastedRequests).reduce((sum, kind) => sum + countOf(part, kind), 0) / requests;
    // The value is 1 - (1 - wasted) * fit: what wasn't wasted counts as far as the closest section matches the goal.
    const fit = wasted < 1 ? (1 - part.value) / (1 - wasted) : 1;
    const closest = fit < 0.995 ? `; the closest section matches ${percent(fit)} of the goal` : "";
    return describeKinds(part, count(requests, "request"), wastedRequests) + closest;
  },
  "Wasted calls": (part) => describeKinds(part, count(countOf(part, "calls"), "tool call"), wastedCalls),
  "Response time": (part) => `a request took ${duration(part.value)}`,
  Cost: (part) => `the session cost $${part.value.toFixed(2)}`,
  Interruptions: (part) => `the agent needed a person ${count(part.value, "time")}`,
};

/** What a part measured, as a phrase without a period. */
export const describePart = (part: DimensionPart): string => sentences[part.name](part);

/** The end points of a curve: "100 at 2 pages, 40 at 32 pages or more, logarithmic". */
export function describeCurve({ curve, unit }: DimensionPart): string {
  if (curve === null) return "";
  const [best, worst] = [formatAmount(curve.best, unit), formatAmount(curve.worst, unit)];
  const isLowerBetter = curve.worst > curve.best;
  const scale = { linear: "", log: ", logarithmic", root: ", by the square root of the rest" }[curve.scale];
  return `100 at ${best}, ${curve.floor} at ${worst}${isLowerBetter ? " or more" : ""}${scale}`;
}

/** One sentence per part: what was measured, its score, and its share of the dimension. */
export function describeDimension({ parts, unmeasured }: Dimension): string {
  const sentences = parts.map(
    (part) =>
      `${capitalize(describePart(part))}: ${part.score} (${lowerFirst(part.name)}, weight ${percent(part.weight)}).`,
  );
  const names = list(unmeasured.map(lowerFirst), 20);
  return [
    ...sentences,
    ...(unmeasured.length > 0 ? [`Not measured: ${names}. The other parts share the weight.`] : []),
  ].join(" ");
}

/** A part as it is stored, with its share of everything measured. */
export const toDimensionPart = ({ exactScore, ...part }: Part, weights: number): DimensionPart => ({
  ...part,
  weight: part.weight / weights,
  score: round1(exactScore ?? 0),
});
