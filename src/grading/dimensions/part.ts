import type { Curve, Dimension, DimensionPart, PartName } from "../grade.ts";
import { round1 } from "../methodology.ts";
import { count, duration, list, lowerFirst, percent } from "../text.ts";
import { allOrNone, scoreOn } from "./curve.ts";

/** A part before its weight is converted to a share of its dimension; `exact` is its score without rounding, null without evidence. */
export type Part = Omit<DimensionPart, "score"> & { exact: number | null };

/** A part that is scored by a curve. */
export const measured = (
  name: PartName,
  weight: number,
  measurement: Omit<Part, "name" | "weight" | "exact"> & { curve: Curve },
): Part => ({ name, weight, ...measurement, exact: scoreOn(measurement.curve, measurement.value) });

/** A part that is a share: by default 100 for all, 0 for none. */
export const shareOf = (
  name: PartName,
  weight: number,
  value: number,
  counts: Record<string, number>,
  curve = allOrNone,
): Part => measured(name, weight, { value, unit: "share", curve, counts });

export const unmeasured = (name: PartName, weight: number): Part => ({
  ...{ name, weight, value: 0, unit: "share", curve: null, counts: {}, exact: null },
});

/** A value with its unit: "0.5 s", "2 pages", "80%". */
export function amount(value: number, unit: DimensionPart["unit"]): string {
  if (unit === "share") return percent(value);
  if (unit === "seconds") return duration(value);
  if (unit === "usd") return `$${value.toFixed(2)}`;
  return count(value, unit === "pages" ? "page" : "time");
}

type Sentence = (part: DimensionPart) => string;

/** A missing count is 0. */
const at =
  (name: string) =>
  ({ counts }: DimensionPart): number =>
    counts[name] ?? 0;
const share =
  (words: string): Sentence =>
  ({ value }) =>
    `${percent(value)} ${words}`;

const sentences: Record<PartName, Sentence> = {
  "Success checks": share("of the success checks passed, by weight"),
  "Goal parts": (part) => {
    const open = at("unclear")(part);
    return `${at("met")(part)} of ${count(at("parts")(part), "part")} of the goal proven${open > 0 ? `, ${open} unclear` : ""}`;
  },
  "Path to the goal": (part) => {
    if (part.unit === "pages") return `the goal was found after ${count(part.value, "page")}`;
    const fit = `matches ${percent(part.value)} of the goal`;
    if (at("likely")(part) === 0) return `no section clearly answers the goal; the closest ${fit}`;
    const clicks =
      at("linked")(part) === 0
        ? "isn't linked from any page that was read"
        : `is ${count(at("clicks")(part), "click")} from the start page`;
    return `the likely answer ${clicks} and ${fit}`;
  },
  "Failed page requests": (part) =>
    `${at("failed")(part)} of ${count(at("requests")(part), "page request")} failed, ${at("guessed")(part)} of them at guessed URLs`,
  "Site checks": share("of the site checks passed, by weight"),
  Pages: (part) => {
    const [pages, unreadable] = [at("pages")(part), at("unreadable")(part)];
    const readable = pages === 0 ? "" : `${pages - unreadable} of ${count(pages, "page")} could be read; `;
    return `${readable}${percent(part.value)} of the page checks passed, by weight`;
  },
  Links: share("of the links tested or followed lead to a page"),
  "Code samples": share("of the code samples that can be parsed are valid, by weight"),
  "Sample labels": share("of the code samples name their language"),
  "API description": share("of the API description is valid, by weight"),
  Recovery: (part) =>
    `of ${count(at("errors")(part), "error")}, ${at("atOnce")(part)} fixed on the next attempt, ${at("afterDocs")(part)} after reading the docs, ${at("later")(part)} after more attempts, ${at("never")(part)} not fixed`,
  "Wasted requests": (part) =>
    `${count(at("repeats")(part), "repeated request")}, ${count(at("failed")(part), "failed request")} and ${count(at("useless")(part), "page")} that did not lead to the goal, of ${count(at("requests")(part), "request")}; by how well the closest section matches the goal, ${percent(part.value)} were wasted`,
  "Wasted calls": (part) =>
    `${count(at("repeats")(part), "repeated call")} and ${count(at("useless")(part), "page")} that did not lead to the goal, of ${count(at("calls")(part), "tool call")}`,
  "Response time": (part) => `${duration(part.value)} per request`,
  Cost: (part) => `$${part.value.toFixed(2)} for the session`,
  Interruptions: (part) => `the agent needed a person ${count(part.value, "time")}`,
};

/** What a part measured, as a phrase without a period. */
export const describePart = (part: DimensionPart): string => sentences[part.name](part);

/** The end points of a curve: "100 at 2 pages, 40 at 32 pages or more, logarithmic". */
export function describeCurve({ curve, unit }: DimensionPart): string {
  if (curve === null) return "";
  const [best, worst] = [amount(curve.best, unit), amount(curve.worst, unit)];
  const isMore = curve.worst > curve.best;
  const scale = { linear: "", log: ", logarithmic", root: ", by the square root of the rest" }[curve.scale];
  return `100 at ${best}, ${curve.floor} at ${worst}${isMore ? " or more" : ""}${scale}`;
}

/** One sentence per part: what was measured, its value, and which values score 100 and 0. */
export function describeDimension({ parts, unmeasured: left }: Dimension): string {
  const sentences = parts.map((part) => {
    const curve = describeCurve(part);
    const ends = curve === "" ? "" : ` (${curve})`;
    return `${part.name} (${percent(part.weight)}): ${describePart(part)}${ends} = ${part.score}.`;
  });
  const names = list(
    left.map((name) => lowerFirst(name)),
    20,
  );
  return [...sentences, ...(left.length > 0 ? [`Not measured: ${names}. The other parts share the weight.`] : [])].join(
    " ",
  );
}

/** A part as it is stored, with its share of everything measured. */
export const toDimensionPart = ({ exact, ...part }: Part, weights: number): DimensionPart => ({
  ...part,
  weight: part.weight / weights,
  score: round1(exact ?? 0),
});
