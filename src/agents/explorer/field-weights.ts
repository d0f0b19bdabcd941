import type { TermSet } from "./goal.ts";

/** Where a word of a section stands: in its own heading, in the title and the headings above, in links to its page, in its text. */
type FieldName = "name" | "headings" | "links" | "body";

/**
 * How much a word counts in each field, and how much of that is lost if the field is longer than usual (BM25F). The usual number of words is fixed,
 * so that the value of a section doesn't depend on what else the docs contain.
 */
const fields: Record<FieldName, { weight: number; dilution: number; usualLength: number }> = {
  name: { weight: 4, dilution: 0.6, usualLength: 4 },
  headings: { weight: 2, dilution: 0.5, usualLength: 8 },
  links: { weight: 1.5, dilution: 0.7, usualLength: 8 },
  body: { weight: 1, dilution: 0.4, usualLength: 150 },
};
const fieldNames = Object.keys(fields) as FieldName[];
/** From this weighted count of a word on, further occurrences add little. */
const saturation = 1.5;
/** Weight of a synonym relative to the word itself. */
const synonymWeight = 0.6;

/** How often each term of the goal occurs in a field, in the order of the terms, and how many words the field has. */
export type FieldHits = { counts: number[]; length: number };
/** How often the terms of a goal occur in each field of a section. */
export type Hits = Record<FieldName, FieldHits>;

/** The terms that a word form stands for, as a bit mask: bit n is term n. */
type TermsOfForm = ReadonlyMap<string, TermSet>;

/** Counts the terms in the word forms of a field. `termsOfForm` also has the terms of which a form is a synonym. `exactTermsOfForm` doesn't. */
export function toHits(
  forms: string[],
  termCount: number,
  termsOfForm: TermsOfForm,
  exactTermsOfForm: TermsOfForm,
): FieldHits {
  const counts: number[] = new Array(termCount).fill(0);
  for (const form of forms) {
    const set = termsOfForm.get(form);
    if (set === undefined) continue;
    const exactSet = exactTermsOfForm.get(form) ?? 0;
    for (let term = 0; term < termCount; term++)
      if (set & (1 << term)) counts[term]! += exactSet & (1 << term) ? 1 : synonymWeight;
  }
  return { counts, length: forms.length };
}

/** How much a section is about the goal, 0 to 1: each term by its weight, and by how often and where it occurs. */
export function strengthOf(hits: Hits, weights: number[]): number {
  let sum = 0;
  let total = 0;
  for (const [term, weight] of weights.entries()) {
    const frequency = weightedCountOf(term, hits);
    sum += weight * saturate(frequency);
    total += weight;
  }
  return total === 0 ? 0 : sum / total;
}

/** From 0 to 1: further occurrences add less and less. */
const saturate = (frequency: number): number => frequency / (saturation + frequency);

function weightedCountIn(name: FieldName, count: number, length: number): number {
  const { weight, dilution, usualLength } = fields[name];
  return (weight * count) / (1 - dilution + (dilution * length) / usualLength);
}

/** How often a term occurs in all fields, each count weighted by its field. The weight of a field is lower if the field is longer than usual. */
function weightedCountOf(term: number, hits: Hits): number {
  let sum = 0;
  for (const name of fieldNames) {
    const { counts, length } = hits[name];
    if (counts[term] === 0) continue;
    sum += weightedCountIn(name, counts[term]!, length);
  }
  return sum;
}

/** How much a section has of each of some word forms, 0 to 1: by how often and where they occur. Forms that don't occur are left out. */
export function strengthByForm(
  words: Record<Exclude<FieldName, "links">, string[]>,
  forms: { has(form: string): boolean },
): Map<string, number> {
  const frequencies = new Map<string, number>();
  for (const name of ["name", "headings", "body"] as const) {
    const count = weightedCountIn(name, 1, words[name].length);
    for (const form of words[name]) if (forms.has(form)) frequencies.set(form, (frequencies.get(form) ?? 0) + count);
  }
  return new Map(frequencies.entries().map(([form, frequency]) => [form, saturate(frequency)]));
}
