import { formsOf, type Term } from "./goal.ts";

/** How much each word form says about a term, 0 to 1: 1 for the term itself. */
type TermForms = ReadonlyMap<string, number>;

/** The goal in wide words: its terms, their synonyms, and the words that docs often use for such a goal. */
export type WideIndex = {
  /** In the order of the terms. */
  formsByTerm: TermForms[];
  /** The number of pages that contain each form. */
  pagesByForm: Map<string, number>;
};

/** How much a section has of each form of a `WideIndex`, 0 to 1. Forms that don't occur are left out. */
export type WideStrengths = ReadonlyMap<string, number>;

/** How much a form says about a term: the term's own form, a synonym, and a related word that docs often use for such a goal. */
const formWeight = { own: 1, synonym: 0.6, related: 0.4 };
/** How much each further form of a term adds to the best one. */
const furtherForms = 0.3;
/** With its synonyms and related words, a term counts at most this many times as much as with its own word alone. */
const maxByOthers = 2;
/** The rarity of each term if no page contains any term of the goal. */
const unknownRarity = 1.5;

/** The wide words of a goal, before any page is counted. */
export function createWideIndex(terms: Term[]): WideIndex {
  const formsByTerm = terms.map(toTermForms);
  const pagesByForm = new Map(formsByTerm.flatMap((forms) => [...forms.keys()].map((form) => [form, 0])));
  return { formsByTerm, pagesByForm };
}

/** Counts the forms that a page has in its sections, each once. */
export function countForms({ pagesByForm }: WideIndex, sections: WideStrengths[]): void {
  const forms = new Set(sections.flatMap((strengths) => [...strengths.keys()]));
  for (const form of forms) pagesByForm.set(form, pagesByForm.get(form)! + 1);
}

const toTermForms = (term: Term): TermForms =>
  new Map([
    ...[...term.related].map((form) => [form, formWeight.related] as const),
    ...[...term.alternatives.keys()].map((form) => [form, formWeight.synonym] as const),
    ...formsOf(term).map((form) => [form, formWeight.own] as const),
  ]);

/** How much each form adds to each term, how much each term adds by its own word, and the total over all terms. */
export type FormWeights = { forms: TermForms[]; terms: number[]; total: number };

/** Weighs forms by how rare they are. A word that docs never contain is as rare as the others of the goal. */
export function toFormWeights({ formsByTerm, pagesByForm }: WideIndex, pageCount: number): FormWeights {
  const rarityOf = (form: string) => {
    const pages = pagesByForm.get(form)!;
    return pages === 0 ? 0 : Math.log(1 + (pageCount + 1) / (pages + 1));
  };
  // Only the forms of a term's own word have the weight `own`.
  const ownRarities = formsByTerm.map((forms) =>
    Math.max(0, ...[...forms].map(([form, weight]) => (weight === formWeight.own ? rarityOf(form) : 0))),
  );
  const seen = ownRarities.filter((rarity) => rarity > 0);
  const usual = seen.length === 0 ? unknownRarity : seen.reduce((sum, rarity) => sum + rarity, 0) / seen.length;
  const terms = ownRarities.map((rarity) => rarity || usual);
  return {
    forms: formsByTerm.map((forms) => new Map([...forms].map(([form, weight]) => [form, weight * rarityOf(form)]))),
    terms,
    total: terms.reduce((sum, weight) => sum + weight, 0) || 1,
  };
}

/** How much a section has of the goal in any words, 0 to about 1. The best form of each term counts, and further forms count a little. */
export function wideStrengthOf(strengths: WideStrengths, weights: FormWeights): number {
  let sum = 0;
  for (const [term, forms] of weights.forms.entries()) {
    let best = 0;
    let all = 0;
    for (const [form, strength] of strengths) {
      const value = strength * (forms.get(form) ?? 0);
      best = Math.max(best, value);
      all += value;
    }
    sum += Math.min(maxByOthers * weights.terms[term]!, best + furtherForms * (all - best));
  }
  return sum / weights.total;
}
