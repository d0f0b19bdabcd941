import { decodeEntities } from "../../agents/entities.ts";

/** Limits of the work for one text: the number of its decoded forms, of rounds of decoding, and of words that it may be joined from. */
const maxForms = 24;
const maxRounds = 3;
const maxPieces = 5;

const tokenPattern = /[\p{L}\p{N}]+(?:[-_.][\p{L}\p{N}]+)*/gu;

/** Words and IDs of a text, with the hyphens, dots and underscores inside them. */
export const tokensOf = (text: string): string[] =>
  text
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .match(tokenPattern) ?? [];

/** The letters and digits of a text in lower case, without accents, spaces, punctuation and invisible characters. */
export const lettersAndDigitsOf = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/[^\p{L}\p{N}]/gu, "")
    .toLowerCase();

const isPrintable = (text: string) => text !== "" && !/[\p{Cc}\ufffd]/u.test(text.replace(/[\t\r\n]/g, ""));

function decodeBytes(encoded: string, encoding: "base64" | "hex"): string {
  const text = Buffer.from(encoded, encoding).toString();
  return isPrintable(text) ? text : encoded;
}

/** Replaces what is encoded in a text; each returns the text unchanged if it has none of its kind. */
const decoders: ((text: string) => string)[] = [
  (text) => text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll("%", ""), "hex").toString()),
  (text) =>
    text
      .replace(/\\u\{?([0-9a-f]{4}|(?<=\{)[0-9a-f]{1,6})\}?/gi, (_, hex) => characterOf(Number.parseInt(hex, 16)))
      .replace(/\\x([0-9a-f]{2})/gi, (_, hex) => characterOf(Number.parseInt(hex, 16)))
      .replace(/\\([0-7]{3})/g, (_, octal) => characterOf(Number.parseInt(octal, 8))),
  decodeEntities,
  (text) => text.replace(/[\w+/-]{6,}={0,2}/g, (run) => decodeBytes(run, "base64")),
  (text) => text.replace(/\b(?:[0-9a-f]{2}){3,}\b/gi, (run) => decodeBytes(run, "hex")),
];

const characterOf = (code: number) => (code <= 0x10ffff ? String.fromCodePoint(code) : "");

/** A text as it is, and in every form that decoding makes of it. */
function formsOf(text: string): string[] {
  const forms = new Set([text]);
  let newForms = [text];
  for (let round = 0; round < maxRounds && newForms.length > 0; round++) {
    newForms = newForms.flatMap((form) => decoders.map((decode) => decode(form))).filter((form) => !forms.has(form));
    for (const form of newForms) if (forms.size < maxForms) forms.add(form);
  }
  return [...forms];
}

/** The letters and digits of a text in each form of `formsOf`, and its words, to look up whether a token repeats it. */
type Source = { forms: string[]; words: Set<string> };

const sources = new Map<string, Source>();
const maxSources = 2000;

function sourceOf(text: string): Source {
  const existing = sources.get(text);
  if (existing) return existing;
  const forms = formsOf(text);
  const words = forms.flatMap(tokensOf).flatMap((each) => [each, ...each.split(/[-_.]/)]);
  const source = { forms: forms.map(lettersAndDigitsOf), words: new Set(words.map(lettersAndDigitsOf)) };
  if (sources.size >= maxSources) sources.clear();
  sources.set(text, source);
  return source;
}

const minContainedChars = 4;
const reverse = (text: string) => [...text].reverse().join("");

/** Whether a word is in a set, or is joined from words in it that have two or more characters. */
function isJoined(word: string, words: Set<string>, pieces = maxPieces): boolean {
  if (words.has(word)) return true;
  if (pieces === 1) return false;
  for (let end = 2; end < word.length - 1; end++)
    if (words.has(word.slice(0, end)) && isJoined(word.slice(end), words, pieces - 1)) return true;
  return false;
}

/**
 * Whether a token can be derived from texts, in any encoding and case: it is in one of them, forwards or backwards, or is joined from their
 * words. Short tokens must be whole words there.
 */
export function repeats(token: string, texts: string[]): boolean {
  const all = texts.map(sourceOf);
  const words = new Set(all.flatMap((source) => [...source.words]));
  return formsOf(token)
    .map(lettersAndDigitsOf)
    .filter((form) => form !== "")
    .some((form) => {
      if (isJoined(form, words)) return true;
      // Shorter ones occur in any text.
      if (form.length < minContainedChars) return false;
      const directions = [form, reverse(form)];
      return directions.some((each) => all.some(({ forms }) => forms.some((source) => source.includes(each))));
    });
}

/** Whether pages show a token as a word. */
export const isShown = (token: string, pages: string[]): boolean =>
  pages.some((page) => sourceOf(page).words.has(lettersAndDigitsOf(token)));

/** Letters of several scripts in one word imitate another word. */
const isImitation = (text: string) => /\p{Script=Latin}/u.test(text) && /(?!\p{Script=Latin})\p{L}/u.test(text);

/** Words of a language have no digits, and no hyphens, dots, underscores or capitals inside. */
const isIdentifier = (text: string) => /\p{N}|[-_.]|\p{Ll}\p{Lu}/u.test(text);

/** Words that any response may have. */
const isConstant = (value: unknown) => value === null || typeof value === "boolean";

/**
 * The tokens of a response that may be values of the product, with only their letters and digits. Of a JSON text, these are its values, but not its
 * keys and sentences; of any other text, the identifiers in it.
 */
export function valuesOf(body: string): Set<string> {
  const values = new Set<string>();
  const add = (text: string, isValue: boolean) => {
    const tokens = tokensOf(text);
    for (const each of tokens)
      if (!isImitation(each) && (isIdentifier(each) || (isValue && tokens.length === 1)))
        values.add(lettersAndDigitsOf(each));
  };
  const gather = (value: unknown): void => {
    if (isConstant(value)) return;
    if (typeof value === "object") for (const each of Object.values(value as object)) gather(each);
    else add(String(value), true);
  };
  const json = parseJson(body);
  if (json !== undefined) gather(json);
  else add(body.replace(/"[^"\n]{0,200}"\s*:/g, " ").replace(/<[^<>]{0,2000}>/g, " "), false);
  return values;
}

/** undefined: it isn't JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
