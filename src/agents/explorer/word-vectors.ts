import { readFileSync } from "node:fs";
import { lazy } from "../../once.ts";
import vectorsPath from "./word-vectors.bin.gz" with { type: "file" };

// What words mean, learned from public docs of developer tools by `bun run truth:words`: a heading is near the text below it. None of the docs
// on which the explorer is measured are among them.

/** The numbers of a vector. */
export const dimensions = 64;
/** Numbers are stored in 4 bits each. A stored number is 1 to 15, which is this much more than the number itself, -7 to 7. */
export const numberOffset = 8;
export const maxNumber = 7;
/**
 * A long text is compared in windows of this many words, which start this far apart. A rest at the end that is shorter than `minWords` is no window.
 */
const window = { words: 80, step: 60, minWords: 20 };
/** Weight of the title and the headings above a section, relative to its own heading and to its text. */
const pathWeight = 0.5;

/** Where the vector of each known stem starts in `numbers`. */
type WordVectors = { starts: Map<string, number>; numbers: Float32Array };

/** Reads the vectors. In the file: the stems in one line, the scale of each as a float, then the numbers, two in a byte. */
const loadVectors = lazy((): WordVectors => {
  const file = Buffer.from(Bun.gunzipSync(readFileSync(vectorsPath)));
  const scalesStart = file.indexOf("\n") + 1;
  const stems = file.toString("utf8", 0, scalesStart - 1).split(" ");
  const pairsStart = scalesStart + stems.length * Float32Array.BYTES_PER_ELEMENT;
  const numbers = new Float32Array(stems.length * dimensions);
  for (const position of stems.keys()) {
    const scale = file.readFloatLE(scalesStart + position * Float32Array.BYTES_PER_ELEMENT) / maxNumber;
    const start = position * dimensions;
    for (let i = start; i < start + dimensions; i += 2) {
      const pair = file[pairsStart + i / 2]!;
      numbers[i] = ((pair >> 4) - numberOffset) * scale;
      numbers[i + 1] = ((pair & 15) - numberOffset) * scale;
    }
  }
  return { starts: new Map(stems.map((stem, position) => [stem, position * dimensions])), numbers };
});

/** What a text means: a vector with `dimensions` numbers, all 0 if no word of it is known. */
export type Meaning = Float32Array;

/** What stems mean together: the sum of their vectors, each once, with length 1. */
export function meaningOf(stems: readonly string[]): Meaning {
  const { starts, numbers } = loadVectors();
  const sum = new Float32Array(dimensions);
  for (const stem of new Set(stems)) {
    const start = starts.get(stem);
    if (start !== undefined) addTo(sum, numbers, 1, start);
  }
  return toUnit(sum);
}

/**
 * What a section means: the sum of its windows, each with length 1. `name`: the stems of its heading. `path`: the stems of the title and the headings
 * above. `body`: the stems of its text.
 */
export function meaningOfSection(section: { name: string[]; path: string[]; body: string[] }): Meaning {
  const headings = meaningOf(section.name);
  addTo(headings, meaningOf(section.path), pathWeight);
  const sum = new Float32Array(dimensions);
  for (let start = 0; start === 0 || start + window.minWords < section.body.length; start += window.step) {
    const meaning = meaningOf(section.body.slice(start, start + window.words));
    addTo(meaning, headings, 1);
    addTo(sum, toUnit(meaning), 1);
  }
  return sum;
}

/** The sum of meanings. */
export function joinMeanings(meanings: Meaning[]): Meaning {
  const sum = new Float32Array(dimensions);
  for (const meaning of meanings) addTo(sum, meaning, 1);
  return sum;
}

/** How near two meanings are, -1 to 1: the cosine of their vectors, 0 if one of them is unknown. */
export function similarityOf(a: Meaning, b: Meaning): number {
  const lengths = Math.sqrt(dotProduct(a, a) * dotProduct(b, b));
  return lengths === 0 ? 0 : dotProduct(a, b) / lengths;
}

function addTo(sum: Meaning, numbers: Float32Array, weight: number, start = 0): void {
  for (let i = 0; i < dimensions; i++) sum[i]! += weight * numbers[start + i]!;
}

function dotProduct(a: Meaning, b: Meaning): number {
  let sum = 0;
  for (let i = 0; i < dimensions; i++) sum += a[i]! * b[i]!;
  return sum;
}

function toUnit(vector: Meaning): Meaning {
  const length = Math.sqrt(dotProduct(vector, vector));
  return length === 0 ? vector : vector.map((number) => number / length);
}
