/** One part of a dimension, as its description states it: what was measured and what that is worth. */
export type StatedPart = {
  name: string;
  /** Of the dimension, in percent: "28.6%". */
  share: string;
  measured: string;
  score: number;
  /** null: the part is no curve of one value. */
  curve: Curve | null;
};

/** From the value that is worth 100 to the one that is worth `floor`, with their words. */
export type Curve = {
  best: number;
  bestWords: string;
  worst: number;
  worstWords: string;
  floor: number;
  /** The same loss for every doubling; otherwise for every step. */
  isLog: boolean;
};

/** The sentence that states one part: `readParts` is its inverse, so that a report of any age or origin can be drawn. */
export const statePart = (part: { name: string; share: string; text: string; score: number }): string =>
  `${part.name} (${part.share}): ${part.text} = ${part.score}.`;

const statement = /([A-Z][\p{L} ]*) \(([\d.]+%)\): (.+?) = (\d+(?:\.\d)?)\.(?=\s|$)/gu;
const withCurve = /^(.*) \((100 (?:at|if) [^()]+)\)$/;
const ends = /^100 (?:at|if) (.+?), (\d+) (?:at|if) ([^,]+?)( on a log scale)?(?:, .*)?$/;

/** The parts that the description of a dimension states, in their order; empty for a text of another kind. */
export function readParts(desc: string): StatedPart[] {
  return [...desc.matchAll(statement)].map(([, name = "", share = "", text = "", score]) => {
    const [, measured = text, curve = ""] = withCurve.exec(text) ?? [];
    return { name, share, measured, score: Number(score), curve: readCurve(curve) };
  });
}

function readCurve(text: string): Curve | null {
  const [, bestWords, floor, worstWords, log] = ends.exec(text) ?? [];
  if (bestWords === undefined || worstWords === undefined) return null;
  const [best, worst] = [readValue(bestWords), readValue(worstWords)];
  const isLog = log !== undefined;
  if (best === null || worst === null || best === worst || (isLog && best * worst <= 0)) return null;
  return { best, bestWords, worst, worstWords, floor: Number(floor), isLog };
}

/** "all" of what was looked at is 100 percent of it. */
function readValue(words: string): number | null {
  if (words === "none") return 0;
  if (words === "all") return 100;
  const digits = /\d+(\.\d+)?/.exec(words);
  return digits ? Number(digits[0]) : null;
}

/** What a value between the ends of a curve is worth. */
export function scoreOn({ best, worst, floor, isLog }: Curve, value: number): number {
  const way = isLog ? Math.log(value / best) / Math.log(worst / best) : (value - best) / (worst - best);
  return 100 - (100 - floor) * Math.min(1, Math.max(0, way));
}

/** The value between the ends of a curve that is worth a score. */
export function valueWorth({ best, worst, floor, isLog }: Curve, score: number): number {
  const way = Math.min(1, Math.max(0, (100 - score) / (100 - floor)));
  return isLog ? best * (worst / best) ** way : best + (worst - best) * way;
}
