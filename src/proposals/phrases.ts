import { anyOf, anyWordOf } from "./patterns.ts";

/** A task as a verb in its base form and what follows: `back up`, `a folder to S3`. */
export type Phrase = { verb: string; rest: string };

const verbs = new Set(
  `access activate add adjust allow append apply assign attach authenticate authorize avoid back-up batch block build bundle cache call cancel
  capture catch change check clean clear clone collect combine compare compile compress compute configure connect consume control convert copy
  create customize cut debug declare decode decrypt define delete deliver deploy detect disable discard discover display download drop dump embed
  emit enable encode encrypt enforce evaluate exclude execute expire export expose extend extract fetch filter find fix force format forward
  generate get give grant group handle hash hide host identify ignore implement import include inject insert inspect install integrate intercept
  invalidate invite invoke isolate limit link list listen load lock log make manage map match measure merge migrate mix mock modify monitor mount
  move normalize notify open optimize order organize override package parse pass pause pin pipe populate post prevent print process profile
  protect provide proxy prune publish pull push put query queue raise read rebuild receive recover redact redirect reduce refresh register reject
  reload remove rename render replace replay report request require reset resolve restart restore restrict retrieve retry return reuse revert
  revoke rewrite roll-back rotate route run sanitize save scale scan schedule scrape search secure select send separate serialize serve set
  set-up share show shut-down sign simulate skip sort specify split start stop store stream style submit subscribe switch sync tag test throttle
  trace track transform translate trigger trim truncate tune type uninstall unpack unsubscribe update upload use validate verify view wait watch
  wrap write`
    .split(/\s+/)
    .map((verb) => verb.replace("-", " ")),
);

/** Verbs that are also nouns. At the start of a heading, they are nouns more often. */
const nouns = new Set(
  `access batch block build bundle cache call change check clone control copy cut display download drop dump embed export filter fix force format
  group hash host import insert install limit link list load lock log map match measure mix mock monitor mount move order override package pass
  pause pin pipe post print process profile proxy pull push query queue release reload report request reset restart return rewrite route run save
  scale scan schedule search set share show sign sort split start stop store stream style submit switch sync tag test trace track trigger type
  update upload use view wait watch wrap`.split(/\s+/),
);

/** Gerunds that name a subject rather than an action, as in "Routing conventions". */
const nounGerunds = new Set(
  `batching binding building bundling caching clustering debugging embedding encoding filtering formatting grouping handling hashing hosting
  importing indexing licensing linking listing loading locking logging mapping matching mocking monitoring mounting ordering packaging parsing
  posting processing profiling pricing publishing querying queuing rendering reporting routing sampling scaling scheduling scoping scripting
  searching setting sharing signing sorting splitting staging storing streaming styling syncing tagging testing threading tracing tracking
  typing validating versioning`.split(/\s+/),
);

/** Verbs that say little unless two more words follow. */
const vagueVerbs = new Set(
  `access allow call change control define display get give handle include list load make manage open pass process provide put return select set
  show specify type use view`.split(/\s+/),
);

/** The verb of each gerund: `make` of `making`, `run` of `running`, `back up` of `backing up`. */
const gerunds = new Map(
  [...verbs].flatMap((verb) => {
    const [first = "", ...rest] = verb.split(" ");
    const base = /(ee|oe|ye)$/.test(first) ? first : first.replace(/e$/, "");
    // For example `running` and `submitting`.
    const doublesLetter = /^[^aeiou]*[aeiou][bdglmnprt]$|(mit|fer|rol)$/.test(first);
    const forms = doublesLetter ? [`${base}ing`, `${first}${first.at(-1)}ing`] : [`${base}ing`];
    return forms.map((form) => [[form, ...rest].join(" "), verb] as const);
  }),
);

const determiner = /^(a|an|the|your|all|any|only|each|every|multiple|several|to|from|into|in|on|as|with|without)$/;
/** Words that may follow the object of a verb. */
const preposition =
  /^(to|from|into|in|on|with|without|for|by|using|via|over|as|of|at|against|between|through|behind|under|inside|within|across|during|before|after)\b/;
/** Verbs that need no object before a preposition. With any other verb, as in "Verify in CI", only the title of the page names the object. */
const intransitiveVerbs = new Set(
  "authenticate connect deploy integrate listen log migrate publish respond sign subscribe switch wait".split(" "),
);
/** The end of a text that was cut off within a sentence. */
const openEnd = /\b(a|an|the|of|to|for|in|on|with|and|or|by|from|as|via|[a-z])$|\.\.\.|…/i;
/** Words for how well or how fast something is done. Only the page explains them. */
const adverbs = /\b(properly|quickly|simply|easily|correctly|just|ways|manually)\b|--\w/i;
const genericThings = /apis?|functionality|features?|objects?|items?|instances?|elements?|things?|information|data/;
const genericMembers = /types?|values?|names?|fields?|properties|property|methods?|parameters?|arguments?|states?/;
const genericSettings = /options?|settings?|configurations?|defaults?|modes?|versions?|behaviors?|changes/;
/** Objects that say nothing by themselves. */
const generic = new RegExp(
  `^${anyOf(genericThings, genericMembers, genericSettings, /results?|outputs?|inputs?/)}$`,
  "i",
);

const question = /how (?:to|do i|do you|can i|can you)/;
const label = /recipe:|task:|tutorial:|example:|guide:|step \d+[.:)]?/;
const sectionNumber = /\d+(?:\.\d+)*[.)]?/;
/** Texts that introduce a task: `How to`, `Step 2:`, `1.3`. */
const lead = new RegExp(`^${anyOf(question, label, sectionNumber)}\\s+`, "i");

const pronouns = /that|this|these|those|it|its|them|we|our|i|my|one|ones|everything|something|things/;
const places = /above|below|here|following|previous|next|same|more|other|another|again|further|later|also/;
const clauses = /why|what|when|which|is|are|was|will|should|would|does|doesn't|can|cannot|vs\.?|versus/;
const partsOfPages = /examples?|overview|introduction|conclusion|summary|basics|reference|details|advanced|continued/;
const partsOfGuides = /tips?|tricks|best practices|notes?|caveats?|step/;
/** Words that refer to the page, or name a part of it. */
const aboutPage = anyWordOf(pronouns, places, clauses, partsOfPages, partsOfGuides);
/** Tasks of people who work on the product itself. */
const contributors =
  /\b(source code|translations?|pull requests?|test suite|bugs?|documentation|docs|changelog|maintainers?|release notes|issues?|latest version|support|community|help|started)\b/i;
/** A word, or a part of a hyphenated word, that has a capital letter only in titles. */
const titleWord = /(?<![^\s“"‘-])[A-Z][a-z]*(?![^\s”"’',-])/g;
/** Code, URLs and lists. No task in words contains them. */
const code = /[(){}<>=[\]|]|::|^\W|https?:|\s[+&/–—-]\s/;
/** The anchor of a heading: `{#back-up}`. */
const anchor = /\s*\{#[^}]*\}\s*$/;
const parenthesisAtEnd = /\s+\([^)]*\)$/;
const punctuationAtEnd = /[?.:!\s]+$/;
/** Markup of code and emphasis, but not the `_` within a name. */
const emphasis = /[`*]|(?<![\p{L}\p{N}_])_(?=\S)|(?<=\S)_(?![\p{L}\p{N}_])/gu;
/** Words without a meaning of their own. */
const functionWords = new Set(
  "a an the of to for in on with without and or by from as at be your you that if into using via through not its all any".split(
    " ",
  ),
);

/** The stems of the words that carry the meaning, in lower case, to compare tasks. */
export const contentStems = (text: string): string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}.+_-]*/gu) ?? [])
    .filter((word) => !functionWords.has(word))
    .map((word) => word.replace(/ies$/, "y").replace(/(ing|ed|es|s|e)$/, ""))
    // “Logging” and “log” have the same stem.
    .map((stem) => stem.replace(/([^aeiou\d])\1$/, "$1"));

/**
 * The task that a heading or a part of a sentence asks for, recognized by its first word; null if it asks for none. `isName` says whether a
 * capitalized word is a name.
 */
export function toPhrase(text: string, isName: (word: string) => boolean): Phrase | null {
  const words = text
    .replace(anchor, "")
    .replace(lead, "")
    .replace(emphasis, "")
    .replace(parenthesisAtEnd, "")
    .replace(punctuationAtEnd, "")
    .trim()
    .split(/\s+/);
  // A verb such as "back up" has two words.
  for (const length of [2, 1]) {
    const head = words.slice(0, length).join(" ").toLowerCase();
    const verb = gerunds.get(head) ?? (verbs.has(head) ? head : null);
    if (verb === null) continue;
    // "Creating and listing buckets" is "create and list buckets".
    const rest = words
      .slice(length)
      .map((word, i, all) => (all[i - 1] === "and" ? (gerunds.get(word.toLowerCase()) ?? word) : word));
    return isAction(head, rest) ? { verb, rest: withoutCapitals(rest, isName) } : null;
  }
  return null;
}

/** Whether these words are a task. A verb that is also a noun counts only before its object: "cache the results", but not "cache results". */
function isAction(head: string, rest: string[]): boolean {
  const [next = "", afterNext = ""] = rest;
  const isObject = determiner.test(next.toLowerCase()) || /^[a-z]+ed$/.test(next);
  const isPlural = /^[A-Za-z]?[a-z]{2,}s$/.test(next);
  const isPluralBeforePreposition = isPlural && preposition.test(afterNext);
  const isOnlyPlural = isPlural && rest.length === 1;
  if (nouns.has(head) && !isObject && !isPluralBeforePreposition) return false;
  if (nounGerunds.has(head) && !isObject && !isPluralBeforePreposition && !isOnlyPlural) return false;
  if (head === "access" && next === "to") return false;
  return !/^(and|or|&|\/|,|by|is|are|up|of|vs\.?)$/i.test(next);
}

const withoutCapitals = (words: string[], isName: (word: string) => boolean): string =>
  words
    .map((word) =>
      word === "I" ? word : word.replace(titleWord, (part) => (isName(part) ? part : part.toLowerCase())),
    )
    .map((word) => (word === "my" ? "your" : word))
    .join(" ");

/** Whether a second task follows the first one without a comma: "generate a client install protoc". */
export function hasSecondOrder({ rest }: Phrase): boolean {
  const words = rest.toLowerCase().split(" ");
  return words.some((word, i) => i > 1 && verbs.has(word) && !nouns.has(word) && !/^(to|and|or)$/.test(words[i - 1]!));
}

/** Whether a task says what is acted on, and can be understood without its page. */
export function isClear({ verb, rest }: Phrase): boolean {
  const stems = contentStems(rest);
  const object = rest.split(" ").filter((word) => !functionWords.has(word.toLowerCase()));
  if (object.length === 1 && generic.test(object[0]!)) return false;
  if (preposition.test(rest) && !intransitiveVerbs.has(verb)) return false;
  const min = vagueVerbs.has(verb) ? 2 : 1;
  return (
    stems.length >= min &&
    stems.length <= 9 &&
    rest.length <= 90 &&
    !openEnd.test(rest) &&
    !aboutPage.test(rest) &&
    !adverbs.test(rest) &&
    !contributors.test(rest) &&
    !code.test(rest)
  );
}

/** The share of the words of the shorter text that the other text also has, 0 to 1. */
export function overlapOf(first: string, second: string): number {
  const [a, b] = [new Set(contentStems(first)), new Set(contentStems(second))];
  const size = Math.min(a.size, b.size);
  return size === 0 ? 0 : a.intersection(b).size / size;
}

/** Returns a function that says whether a capitalized word is a name. It is a name if the docs capitalize it in most of their sentences. */
export function nameTest(pages: string[]): (word: string) => boolean {
  /** By word in lower case: how often it is capitalized, less how often it isn't. */
  const counts = new Map<string, number>();
  // Titles of sections and pages capitalize other words too.
  const sentences = (markdown: string) => markdown.replaceAll(/^#.*$|\[[^\]\n]*\]\(/gm, "");
  for (const markdown of pages)
    for (const [word] of sentences(markdown).matchAll(/(?<=[a-z,] )[A-Za-z][a-z]+\b/g)) {
      const key = word.toLowerCase();
      counts.set(key, (counts.get(key) ?? 0) + (word === key ? -1 : 1));
    }
  return (word) => (counts.get(word.toLowerCase()) ?? 0) > 0;
}
