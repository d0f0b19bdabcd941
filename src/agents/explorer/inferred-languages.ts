import type { LanguageFamily } from "../languages.ts";
import type { CodeSample } from "../page.ts";
import { type GrammarName, grammarNames, grammars, openingOf } from "./grammars.ts";

/** Longer samples have no language, prompts or calls: some patterns would take long on them. */
export const maxSampleChars = 10_000;
/** Every parser reads this many characters of a sample. The parsers of the likely languages then read up to `maxChars`. */
const probeChars = 400;
const maxChars = 2000;
/** A sample in its language has at most one error, plus one for each of this many tokens. */
const tokensPerError = 10;

/** How well a parser reads a sample: its errors, its tokens, and how many different keywords it has. */
type Reading = { language: GrammarName; errors: number; tokens: number; keywords: number };

/** The likely language of a sample without a label. `rivals`: other languages that could be meant, so only what is wrong in all of them is wrong. */
type Inference = { language: LanguageFamily; isCertain: boolean; rivals: GrammarName[] };

/** The language of a sample by its label or, without a label, as inferred; "" if unknown. */
export function languageOf({ language, code }: CodeSample): string {
  if (language !== null) return language;
  const inference = inferLanguage(code);
  if (!inference?.isCertain) return "";
  const { language: family } = inference;
  // These two families have no label of their own name. A session is a transcript of a terminal.
  if (family === "script") return "js";
  return family === "session" ? "console" : family;
}

/**
 * Results of earlier samples by their hash, because docs repeat many samples and several checks need each result. Large docs have a few thousand
 * samples.
 */
const inferences = new Map<number | bigint, Inference | null>();
const maxCached = 20_000;

/** The likely language of a sample without a label; null if it is unknown, or if the sample is too long. */
export function inferLanguage(code: string): Inference | null {
  if (code.length > maxSampleChars) return null;
  const hash = Bun.hash(code);
  const known = inferences.get(hash);
  if (known !== undefined) return known;
  const inference = infer(code);
  if (inferences.size >= maxCached) inferences.clear();
  inferences.set(hash, inference);
  return inference;
}

function infer(code: string): Inference | null {
  const language = dataFormatOf(code);
  if (language !== null) return { language, isCertain: true, rivals: [] };
  return isOtherText(code) ? null : inferProgram(code);
}

/** The format of a sample that isn't a program. */
export function dataFormatOf(code: string): LanguageFamily | null {
  if (isJsonText(code)) return "json";
  if (isYamlText(code)) return "yaml";
  if (isSession(code)) return "session";
  return isCommands(code) ? "shell" : null;
}

const jsonString = String.raw`"(?:[^"\\\n]|\\.)*"`;
const jsonNumber = String.raw`-?\d[\d.eE+-]*(?![\d.eE+-])`;
/** A part of a line of JSON: a key, values, or both. It must match a text in only one way, because trying several would take exponential time. */
const jsonPart = new RegExp(
  String.raw`^(?:${jsonString}\s*:)?(?:${jsonString}|${jsonNumber}|true|false|null|[\s{}[\],])*$`,
);

/** Whether a text is a JSON object or array, line by line. Of six or more lines, one line may be something else. */
function isJsonText(code: string): boolean {
  if (!/^\s*[{[]/.test(code) || !/"\s*:/.test(code)) return false;
  const lines = code.split("\n");
  const others = lines.filter((line) => !isJsonLine(line)).length;
  return others === 0 || (others === 1 && lines.length >= 6);
}

/** A line may have several keys. */
const isJsonLine = (line: string): boolean =>
  line
    .trim()
    .split(/(?<=[,{[])\s*(?=")/)
    .every((part) => jsonPart.test(part));

/** A key without a value, and a key or an item in the next line. */
const yamlKeyAboveOthers = /^[ \t]*(?:- )?["']?[\w./-]+["']?:[ \t]*\n[ \t]*(?:- )?["']?[\w./-]+/m;
/** The lines of YAML: a blank line, a separator of documents, a comment, a key, and an item. */
const yamlLines = [/^\s*$/, /^---$/, /^\s*#/, /^\s*(?:- )*["']?[\w./@$-]+["']?:(?:\s.*)?$/, /^\s*- \S/];
/** A line of CSS or a program, which has a colon too. */
const endsLikeProgram = /^\s*[\w./-]+\s*:.*[;{(]\s*$/m;

/** Whether a text has nothing but keys, items and comments, and some of them are below others. */
const isYamlText = (code: string): boolean =>
  yamlKeyAboveOthers.test(code) &&
  !hasRepeatedKey(code) &&
  code.split("\n").every((line) => yamlLines.some((form) => form.test(line))) &&
  !endsLikeProgram.test(code);

function hasRepeatedKey(code: string): boolean {
  const keys = [...code.matchAll(/^[\w./-]+(?=:)/gm)].map(String);
  return new Set(keys).size < keys.length && !/^---$/m.test(code);
}

/** Whether a text starts like a transcript of a terminal: with a prompt and a command. */
const isSession = (code: string): boolean => /^\s*(?:[\w.-]+@[\w.-]\S* ?)?[$❯] \w/.test(code);

/** `npm install --save-dev acme`: a command with an option. */
const commandWithOption = /^(?:sudo )?[a-z][\w./-]*(?:\s+[^\s=:(){};]\S*)*\s+--?[a-z][\w-]*(?:[ =]|$)/;

/** Whether a text is a script, or only commands with options. A synopsis or a sentence is neither. */
function isCommands(code: string): boolean {
  const lines = code
    .replace(/\\\n/g, " ")
    .split("\n")
    .filter((line) => !/^\s*(?:#.*)?$/.test(line));
  return /^#!.*sh\b/.test(code) || (lines.length > 0 && lines.every((line) => commandWithOption.test(line)));
}

/** A tag at the start of a line. */
const firstTag = /^[^\S\n]*<(?!\?php)[!?a-z][^>]*>/im;
/** A line of a diff that was added or removed, or the header of its lines. */
const diffLine = /^[+-][^+\n-].*\n|^@@ /m;
/** A prompt of another program, such as Python. */
const programPrompt = /^(?:>|>>>|In \[\d+\]:) /im;

/** Markup, a diff, and the prompts of other programs. */
export function isOtherText(code: string): boolean {
  const tag = firstTag.exec(code);
  const isMarkup = tag !== null && code.includes("</", tag.index + tag[0].length);
  return isMarkup || diffLine.test(code) || programPrompt.test(code);
}

/** The language whose parser reads a sample best. All parsers read its start. Those with few errors there then read more of it. */
function inferProgram(code: string): Inference | null {
  if (!/[([{;]/.test(code)) return null;
  let readings = readAll(grammarNames, headOf(code, probeChars));
  // Cutting the sample may add an error.
  if (code.length > probeChars && readings[0]!.errors <= maxErrors(readings[0]!) + 1)
    readings = readAll(candidatesOf(readings), headOf(code, maxChars));
  const best = readings[0]!;
  if (best.keywords === 0 || best.errors > maxErrors(best)) return null;
  const rivals = candidatesOf(readings).slice(1);
  const isCertain = (readings[1]?.errors ?? Number.POSITIVE_INFINITY) >= clearlyMoreErrors(best);
  return isCertain || best.keywords > 1 ? { language: best.language, isCertain, rivals } : null;
}

/** Whether a language reads a sample without an error. */
export const isValidIn = (language: GrammarName, code: string): boolean =>
  hasNoErrorIn(language, headOf(code, maxChars));

/** Whether some language reads the whole sample without an error. Then nothing in it counts as wrong. */
export const isValidSomewhere = (code: string): boolean =>
  grammarNames.some((language) => hasNoErrorIn(language, code));

/** Parsers that stop at the first error, because reading on after an error takes most of the time. */
const strictGrammars = new Map(
  grammarNames.map((language) => [language, grammars[language].configure({ strict: true })]),
);

function hasNoErrorIn(language: GrammarName, code: string): boolean {
  try {
    strictGrammars.get(language)!.parse(openingOf(language, code) + code);
    return true;
  } catch {
    return false;
  }
}

const headOf = (code: string, chars: number): string =>
  code.length <= chars ? code : code.slice(0, Math.max(code.lastIndexOf("\n", chars), 1));

const maxErrors = ({ tokens }: Reading): number => 1 + tokens / tokensPerError;

/** With this many errors in the second-best language, the best one is certain. */
const clearlyMoreErrors = ({ errors }: Reading): number => 2 + 2 * errors;
/** From this many errors on, a language isn't meant, because the best one has far fewer. */
const tooManyErrors = ({ errors }: Reading): number => 4 + 4 * errors;

/** The best language of a sample, then the languages in which it has few more errors. */
const candidatesOf = (readings: Reading[]): GrammarName[] =>
  readings.filter(({ errors }) => errors < tooManyErrors(readings[0]!)).map(({ language }) => language);

/** The readings of a sample, the best one first. If a parser leaves out most of a sample after an error, its reading doesn't count. */
function readAll(languages: GrammarName[], code: string): Reading[] {
  const readings = languages.map((language) => read(language, code));
  const tokens = Math.max(...readings.map((reading) => reading.tokens));
  return readings
    .filter((reading) => reading.errors === 0 || reading.tokens * 2 >= tokens)
    .sort((a, b) => a.errors - b.errors);
}

function read(language: GrammarName, code: string): Reading {
  const keywords = new Set<string>();
  let errors = 0;
  let tokens = 0;
  grammars[language].parse(openingOf(language, code) + code).iterate({
    enter({ type, name, node }) {
      if (type.isError) errors++;
      else if (node.firstChild === null) {
        tokens++;
        // Parsers name a keyword by the keyword itself, and anything else by a word of their own.
        if (/^[a-z]+$/.test(name)) keywords.add(name);
      }
    },
  });
  return { language, errors, tokens, keywords: keywords.size };
}
