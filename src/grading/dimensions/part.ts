import type { Curve, Dimension, DimensionPart, PartName } from "../grade.ts";
import { round1 } from "../methodology.ts";
import { count, duration, list, lowerFirst, percent } from "../text.ts";
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
const countOf =
  (name: string) =>
  ({ counts }: DimensionPart): number =>
    counts[name] ?? 0;
const describeShare =
  (words: string): Sentence =>
  ({ value }) =>
    `${percent(value)} ${words}`;

const sentences: Record<PartName, Sentence> = {
  "Success checks": describeShare("of the success checks passed, by weight"),
  "Goal parts": (part) => {
    const unclear = countOf("unclear")(part);
    return `${countOf("met")(part)} of ${count(countOf("parts")(part), "part")} of the goal proven${unclear > 0 ? `, ${unclear} unclear` : ""}`;
  },
  "Path to the goal": (part) => {
    if (part.unit === "pages") return `the goal was found after ${count(part.value, "page")}`;
    const fit = `matches ${percent(part.value)} of the goal`;
    if (countOf("likely")(part) === 0) return `no section clearly answers the goal; the closest ${fit}`;
    const clicks =
      countOf("linked")(part) === 0
        ? "isn't linked from any page that was read"
        : `is ${count(countOf("clicks")(part), "click")} from the start page`;
    return `the likely answer ${clicks} and ${fit}`;
  },
  "Failed page requests": (part) =>
    `${countOf("failed")(part)} of ${count(countOf("requests")(part), "page request")} failed, ${countOf("guessed")(part)} of them at guessed URLs`,
  "Site checks": describeShare("of the site checks passed, by weight"),
  Pages: (part) => {
    const [pages, unreadable] = [countOf("pages")(part), countOf("unreadable")(part)];
    const readable = pages === 0 ? "" : `${pages - unreadable} of ${count(pages, "page")} could be read; `;
    return `${readable}${percent(part.value)} of the page checks passed, by weight`;
  },
  Links: describeShare("of the links tested or followed lead to a page"),
  "Code samples": describeShare("of the code samples that can be parsed are valid, by weight"),
  "Sample labels": describeShare("of the code samples name their language"),
  "API description": describeShare("of the API description is valid, by weight"),
  Recovery: (part) =>
    `of ${count(countOf("errors")(part), "error")}, ${countOf("atOnce")(part)} fixed on the next attempt, ${countOf("afterDocs")(part)} after reading the docs, ${countOf("later")(part)} after more attempts, ${countOf("never")(part)} not fixed`,
  "Wasted requests": (part) =>
    `${count(countOf("repeats")(part), "repeated request")}, ${count(countOf("failed")(part), "failed request")} and ${count(countOf("useless")(part), "page")} that did not lead to the goal, of ${count(countOf("requests")(part), "request")}; by how well the closest section matches the goal, ${percent(part.value)} were wasted`,
  "Wasted calls": (part) =>
    `${count(countOf("repeats")(part), "repeated call")} and ${count(countOf("useless")(part), "page")} that did not lead to the goal, of ${count(countOf("calls")(part), "tool call")}`,
  "Response time": (part) => `${duration(part.value)} per request`,
  Cost: (part) => `$${part.value.toFixed(2)} for the session`,
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

/** One sentence per part: what was measured, its value, and which values score 100 and 0. */
export function describeDimension({ parts, unmeasured }: Dimension): string {
  const sentences = parts.map((part) => {
    const curve = describeCurve(part);
    const curveNote = curve === "" ? "" : ` (${curve})`;
    return `${part.name} (${percent(part.weight)}): ${describePart(part)}${curveNote} = ${part.score}.`;
  });
  const names = list(
    unmeasured.map((name) => lowerFirst(name)),
    20,
  );
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
