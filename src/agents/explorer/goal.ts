import { lazy } from "../../once.ts";
import { everydayPhrases } from "./everyday-phrases.ts";
import { phrases, synonyms } from "./synonyms.ts";

/** A word of the goal, or several that name one thing. */
export type Term = {
  /** As the goal writes it. */
  word: string;
  /** The form to search for. */
  stem: string;
  /** Its synonyms, by their stems. */
  alternatives: ReadonlyMap<string, string>;
  /** The stems of words that docs often use for what the goal says around it. */
  related: ReadonlySet<string>;
};

/** A set of the goal's terms: one bit each, in their order. */
export type TermSet = number;

/** Further terms add little and cost time. At most 31 fit into a `TermSet`. */
const maxTerms = 24;

/** Stop words of the languages in which most prompts are written. */
const stopWords = new Set(
  `a about after all also am an and any anything are as at be because been before being below between both but by can cannot
could did do does doing done down each either else etc every everything few following for from further get gets give given go had
has have having he her here hers him his how however i if in into is it its itself just let like ll made make makes making many may
me might mine more most must my need needs new no nor not now of off on once one only or other our ours out over own per please same
see shall she should so some something such sure than that the their theirs them then there these they this those through thus to
too try under until up upon us use used user users uses using very via want was way we well were what when where whether which
while who whom why will with within without would yes yet you your yours yourself
agent agents able developer developers doc docs documentation end explain figure find goal guide learn official page pages read
show site task tell understand website work works
aber als am an auch auf aus bei bin bis das dass dem den der des die dies diese dieser doch du durch ein eine einem einen einer eines
er es für gegen hat ich ihr im in ist kann man mein mit muss nach nicht noch oder ohne sein sich sie sind so soll über um und uns
unter vom von vor war was wenn werden wie wir wird zu zum zur
au aux avec ce ces cette comme dans de des du elle en est et il ils je la le les leur mais nous on ou où par pas plus pour qu que qui
sa se ses son sont sur un une vous
al con cómo como cual de del el ella en entre es esta este esto hay la las lo los más mi muy no nos o para pero por que se sin sobre
su sus también un una y ya
com da das do dos e em é mais mas na nas não no nos os ou para pela pelo por que se sem seu sua um uma
che chi ci con da dal dei del della di e è gli ha il in la le lo ma mi nel non o per più si sono su tra un una uno
の に は を が で と も から まで こと これ それ する した して です ます ない
的 了 在 是 和 与 及 或 我 你 他 我们 一个 如何 怎么 使用`.split(/\s+/),
);

const numberWords = new Set(
  `two three four five six seven eight nine ten eleven twelve twenty zwei drei vier fünf sechs sieben acht neun zehn deux trois quatre
cinq six sept huit neuf dix dos tres cuatro cinco siete ocho nueve diez`.split(/\s+/),
);
/** Whether a word is a small number, which docs may write as digits. It says little about what a text is about. */
const isSmallNumber = (word: string): boolean => /^\d{1,2}$/.test(word) || numberWords.has(word);

/** Scripts that are written without spaces between words. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}\p{Script=Lao}\p{Script=Myanmar}]/u;
const segmenter = new Intl.Segmenter("und", { granularity: "word" });

/** Verbs that docs write as one word or as two: `back up` and `backup`, `log in` and `login`. */
const phrasalVerbs = [
  ["back|set|clean|start|look|sign|scale", "up"],
  ["log|sign|check|scale", "in|out"],
  ["log|sign", "on|off"],
  ["roll|fall|call", "back"],
  ["roll|time", "out"],
  ["shut|break|scale", "down"],
] as const;
const spaceInPhrasalVerb = new RegExp(
  phrasalVerbs.map(([verbs, particles]) => `(?<=\\b(?:${verbs})) (?=(?:${particles})\\b)`).join("|"),
  "g",
);

/** The words of a text in lower case, in order, in any script. */
export function toWords(text: string): string[] {
  const lower = text
    .normalize("NFKC")
    .toLowerCase()
    .replace(spaceInPhrasalVerb, "")
    .replace(/\be-mail/g, "email");
  const words = lower.match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? [];
  return words.flatMap((word) =>
    unspaced.test(word)
      ? [...segmenter.segment(word)].filter((part) => part.isWordLike).map((part) => part.segment)
      : word,
  );
}

/** Suffixes to remove, with the minimum number of remaining letters. */
const endings = [
  [/ation$/, 5],
  [/ing$/, 3],
  [/ed$/, 3],
  [/ion$/, 4],
  [/ment$/, 5],
] as const;

/** What remains of a short verb before an ending that took its last letter, as in `moved`; and the mark in place of that letter. */
const shortRoot = /^[^aeiouy][aeiouy][^aeiouwxy]$/;
const lostE = "~";

const stems = new Map<string, string>();
const maxStems = 50_000;

function toStem(word: string): string {
  const cached = stems.get(word);
  if (cached !== undefined) return cached;
  if (stems.size >= maxStems) stems.clear();
  const stem = findStem(word);
  stems.set(word, stem);
  return stem;
}

/** A simple stemmer: enough to map `configure`, `configuring` and `configuration` to one form. */
function findStem(word: string): string {
  if (!/^[a-z]{4,}$/.test(word)) return word;
  let stem = word;
  if (/ies$/.test(stem) && stem.length > 4) stem = `${stem.slice(0, -3)}y`;
  else if (/(ss|x|ch|sh|z)es$/.test(stem)) stem = stem.slice(0, -2);
  else if (/[^sui]s$/.test(stem)) stem = stem.slice(0, -1);
  let hasVerbEnding = stem.endsWith("ate");
  for (const [ending, minLength] of endings) {
    const root = stem.replace(ending, "");
    if (root === stem || root.length < minLength || !/[aeiouy]/.test(root)) continue;
    const isDoubled = /([bdgmnprt])\1$/.test(root);
    if (isDoubled) stem = root.slice(0, -1);
    else stem = shortRoot.test(root) ? root + lostE : root;
    hasVerbEnding = !isDoubled && stem.endsWith("at");
    break;
  }
  // What is left of `migrate`, `migrating` and `migration` is `migr`.
  if (hasVerbEnding && stem.replace(/ate?$/, "").length >= 4) stem = stem.replace(/ate?$/, "");
  return stem.length > 4 ? stem.replace(/e$/, "") : stem;
}

/** The stems of a term: its own stem and, for a short verb, also the stem with or without its last letter, as in `move` and `moved`. */
export function formsOf({ stem }: Term): string[] {
  if (stem.endsWith(lostE)) return [stem, stem.replace(lostE, "e")];
  return stem.endsWith("e") && shortRoot.test(stem.slice(0, -1)) ? [stem, stem.slice(0, -1) + lostE] : [stem];
}

/** The stems of the words of a text, in their order. */
export const toStems = (text: string): string[] => toWords(text).map(toStem);

/**
 * The terms of each thing that a goal requires. These things are joined by a comma or by words like "and" and "then". Each has at least two terms.
 */
export function goalPartsOf(goal: string): Term[][] {
  const parts = goal.split(/[,;]\s|\n|\s(?:and|then|und|dann|et|puis|y|e)\s|、|并|和/i);
  return parts.map(toTerms).filter((terms) => terms.length >= 2);
}

/**
 * The synonyms of a name, by their stems. Synonyms of several words are left out, because texts are searched word by word. `stem`: the stem of the
 * name; empty for a phrase.
 */
function alternativesOf(name: string, stem: string): Map<string, string> {
  const forms = new Map<string, string>();
  const names = [...synonyms.keys()].filter((key) => key === name || toStems(key).join(" ") === stem);
  for (const other of names.flatMap((key) => synonyms.get(key)!)) {
    const [form, ...otherWords] = toStems(other);
    if (form !== undefined && otherWords.length === 0 && form !== stem) forms.set(form, other);
  }
  return forms;
}

/**
 * What to search for: the meaningful words of the goal, in order, without duplicates and URLs. Single letters count
 * only if they are the languages C and R.
 */
export function toTerms(goal: string): Term[] {
  const text = goal.replace(/https?:\/\/\S+/gi, " ");
  const terms = termsOf(text.replace(proofPhrase, " "));
  return withRelated(terms.length > 0 ? terms : termsOf(text), toStems(text));
}

/** Words about how a result is proven, which docs don't contain: "its ID was printed". */
const proofPhrase = /\b(is|are|was|were|been) (then |also )?(printed|displayed|shown)\b/gi;

function termsOf(text: string): Term[] {
  const terms = new Map<string, Term>();
  const letters = new Set(text.match(/(?<=\S\s)[CR]\b(?![-'’])/g)?.map((letter) => letter.toLowerCase()));
  for (const part of splitPhrases(text)) {
    if (terms.size >= maxTerms) break;
    if (multiWordPhrases.includes(part)) {
      // A phrase is found only by its synonyms of one word.
      const alternatives = alternativesOf(part, "");
      const [stem = part] = alternatives.keys();
      if (!terms.has(stem)) terms.set(stem, { word: part, stem, alternatives, related: new Set() });
      continue;
    }
    for (const word of toWords(part)) {
      const stem = toStem(word);
      if (stopWords.has(word) || stopWords.has(stem) || isSmallNumber(word)) continue;
      if (word.length < 2 && !unspaced.test(word) && !letters.has(word)) continue;
      if (!terms.has(stem))
        terms.set(stem, { word, stem, alternatives: alternativesOf(word, stem), related: new Set() });
      if (terms.size === maxTerms) break;
    }
  }
  return withCompounds([...terms.values()]);
}

/** Words in a row may be one word in the docs: "file upload" and "fileupload". */
function withCompounds(terms: Term[]): Term[] {
  const compounds = terms.map((term, index) => {
    const next = terms[index + 1];
    return next && [term, next].every(({ word }) => /^[a-z]{3,}$/.test(word)) ? term.stem + next.stem : null;
  });
  return terms.map((term, index) => {
    const compoundForms = [compounds[index - 1], compounds[index]].flatMap((form) => form ?? []);
    return {
      ...term,
      alternatives: new Map([...term.alternatives, ...compoundForms.map((form) => [form, form] as const)]),
    };
  });
}

/** The stems of each everyday phrase and of the words of docs for it, by the first stem of the phrase. */
const loadPhrases = lazy(() =>
  Map.groupBy(
    everydayPhrases.map(({ phrase, words }) => ({ stems: toStems(phrase), related: toStems(words) })),
    ({ stems }) => stems[0],
  ),
);

/** Gives the terms of each everyday phrase in a goal the words that docs use for the phrase. A phrase of only stop words has no term. */
function withRelated(terms: Term[], goal: string[]): Term[] {
  const phrasesInGoal = goal.flatMap((stem, start) =>
    (loadPhrases().get(stem) ?? []).filter(({ stems }) => stems.every((each, offset) => goal[start + offset] === each)),
  );
  return terms.map((term) => ({
    ...term,
    related: new Set(phrasesInGoal.flatMap(({ stems, related }) => (stems.includes(term.stem) ? related : []))),
  }));
}

/** Phrasal verbs are already one word. Only names that `toWords` would split have to be kept together. */
const multiWordPhrases = phrases.filter((phrase) => toWords(phrase).length > 1);
const phrasePattern = new RegExp(`\\b(${multiWordPhrases.join("|")})\\b`, "i");

const splitPhrases = (text: string): string[] =>
  text
    .normalize("NFKC")
    .split(phrasePattern)
    .map((part) => (multiWordPhrases.includes(part.toLowerCase()) ? part.toLowerCase() : part));
