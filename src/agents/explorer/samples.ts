import { ownMember } from "../../schema.ts";
import type { Check } from "../agent.ts";
import { familyOf, isTextLabel, type LanguageFamily } from "../languages.ts";
import { type CodeSample, lineOfSample } from "../page.ts";
import {
  bracketLanguages,
  checkBrackets,
  hasNoSyntaxError,
  type ParseResult,
  withOpenQuote,
  withoutPrompts,
} from "./bracket-samples.ts";
import { findConflict } from "./conflicts.ts";
import { dataFormatOf, inferLanguage, isOtherText, isValidSomewhere, maxSampleChars } from "./inferred-languages.ts";
import { parseJsonSample } from "./json-samples.ts";
import { headingAbove, synopsisHeading } from "./page-sections.ts";
import { parseScript, validResult } from "./script-samples.ts";
import { cut, type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";
import { commandsOf, parseCommands, parseTerminalSession } from "./shell-samples.ts";
import { checkTokens, countKeywords, keywordLanguages, tokenizedLanguages } from "./token-samples.ts";
import { parseToml } from "./toml-samples.ts";
import { isShownAsWrong } from "./wrong-samples.ts";
import { parseYaml, withoutQuotedTemplates } from "./yaml-samples.ts";

/** More deeply nested samples are not parsed. */
const maxDepth = 200;
/** Maximum number of broken samples to report, over all pages. */
const maxBroken = 50;

/** How a sample with this label is checked; null: not at all. */
export function checkOfLanguage(label: string): "grammar" | "brackets" | null {
  const family = familyOf(label);
  if (family === undefined) return null;
  return [...bracketLanguages, ...tokenizedLanguages].some((each) => each === family) ? "brackets" : "grammar";
}

/** Marks of a sample that isn't meant to parse. Only punctuation counts, not the words of the sample. */
const nonCodeMarks = [
  // Something is left out: `{ .. }`, `...`, `[...]`.
  /\{ ?\.\. ?\}/,
  /(^|\s)\.\.\s/m,
  /(^|[^.\w)\]'"`])\.\.\.(\d|[^\w[({'"`.$]|$)/m,
  /…|\[\.\.\.\]/,
  // A template or a placeholder: `{{ name }}`, `{% if %}`, `<your name>`.
  /\{\{[^{}]*\}\}|\{%/,
  /(?<!\w)<[a-z][\w |-]*>/i,
  // A diff or a conflict.
  /^\+\s|^@@ |^[<>=]{7}/m,
  // A prompt, and the status line of a response.
  /^[ \t]*>>> |^> |^[ \t]*\$ |^HTTP\/\d/im,
  // Two numbered lines.
  /^\s*\d+\s.*\n\s*\d+\s/m,
  // Intentionally wrong.
  /❌|🚫/u,
];
const isNotMeantAsCode = (text: string): boolean => nonCodeMarks.some((mark) => mark.test(text));
/** A removed line of a diff. In YAML, it is a list item. */
const removedLine = /^-\s/m;

/** How many samples of each language can't be checked, because there is no parser for it. */
function countUnparsable(samples: CodeSample[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { language } of samples)
    if (language !== null && familyOf(language) === undefined && !isTextLabel(language))
      counts[language] = (ownMember(counts, language) ?? 0) + 1;
  return counts;
}

/**
 * Parses a sample in its declared language, or else in the one that it must be. Reports it as broken only if it is invalid in
 * every reading; null: it can't be judged.
 */
export async function parseSample({ language, code, isClosed, isWrong, isDiff }: CodeSample): Promise<ParseResult> {
  if (!isClosed || isWrong || isDiff || code.trim() === "" || code.length > maxSampleChars || depthOf(code) > maxDepth)
    return null;
  if (language !== null) return parseAs(familyOf(language), code);
  if (dataFormatOf(code) === null && isValidSomewhere(code)) return validResult;
  const inference = inferLanguage(code);
  if (inference === null) return isOtherText(code) || isNotMeantAsCode(code) ? null : checkInEveryLanguage(code);
  const result = await parseAs(inference.language, code);
  if (!result?.broken) return result;
  // Code may have objects that only look like JSON.
  if (inference.language === "json")
    return hasNoSyntaxError("script", `(${code.trim().replace(/;$/, "")})`) ? null : result;
  // The grammar of a language that can't be parsed may differ, but its brackets match as well.
  const rivals = inference.language === "script" ? ["script" as const, ...inference.rivals] : inference.rivals;
  return rivals.every((rival) => checkBrackets(rival, code)?.broken) ? result : null;
}

/** A text is a program if it has this many keywords, and most of its lines also have a call, an assignment or a block. */
const minKeywords = 2;
const minCodeLines = 0.75;
const codeMark = /[\w)\]]\(|[={};]|\w\.\w|^\s*[)\]]/;

/**
 * Checks the brackets and quotes of a program whose language is unknown. It is broken only if they don't match in any language. The line is then the
 * one for the language with the most keywords in it.
 */
async function checkInEveryLanguage(code: string): Promise<ParseResult> {
  const lines = code.split("\n").filter((line) => line.trim() !== "");
  if (lines.filter((line) => codeMark.test(line)).length < minCodeLines * lines.length) return null;
  const [best, ...others] = keywordLanguages
    .map((language) => ({ language, keywords: countKeywords(language, code) }))
    .sort((a, b) => b.keywords - a.keywords);
  if (best!.keywords < minKeywords) return null;
  const result = checkTokens(best!.language, code);
  if (!result?.broken) return null;
  const isBrokenInOthers =
    others.every(({ language }) => checkTokens(language, code)?.broken) &&
    bracketLanguages.every((language) => checkBrackets(language, code)?.broken) &&
    (await parseCommands(code))?.broken !== false;
  return isBrokenInOthers ? result : null;
}

async function parseAs(family: LanguageFamily | undefined, code: string): Promise<ParseResult> {
  if (family === undefined) return null;
  const input = family === "python" ? withoutPrompts(code) : code;
  const result = await parseFamily(family, input);
  if (!result?.broken) return result;
  // The prompts and the output of a terminal session say nothing about its commands.
  const source = family === "session" ? (commandsOf(code) ?? code) : input;
  // The angle brackets of C and C++ are no placeholders, and the dots of a fragment of GraphQL leave out nothing.
  const withoutMarks = source.replace(/^[ \t]*#[ \t]*include\b.*$|\btemplate\s*<[^>]*>|\.{3}(?=\s+on\b)/gm, "");
  const judged = family === "yaml" ? withoutQuotedTemplates(withoutMarks) : withoutMarks;
  if (isNotMeantAsCode(judged) || (family !== "yaml" && removedLine.test(source))) return null;
  // A sample without its prompts has other line numbers.
  return input === code ? withOpenQuote(result, code) : { ...result, line: 1 };
}

function parseFamily(family: LanguageFamily, code: string): ParseResult | Promise<ParseResult> {
  if (family === "script") return parseScript(code);
  if (family === "json") return parseJsonSample(code);
  if (family === "yaml") return parseYaml(code);
  if (family === "toml") return parseToml(code);
  const language = bracketLanguages.find((each) => each === family);
  if (language) return checkBrackets(language, code);
  const tokenized = tokenizedLanguages.find((each) => each === family);
  if (tokenized) return checkTokens(tokenized, code);
  if (family === "session") return parseTerminalSession(code);
  return parseCommands(code);
}

function depthOf(code: string): number {
  let depth = 0;
  let deepest = 0;
  for (const char of code) {
    if ("([{<".includes(char)) deepest = Math.max(deepest, ++depth);
    else if (")]}>".includes(char)) depth = Math.max(0, depth - 1);
  }
  return deepest;
}

/** Checks the code blocks of every page that was read: whether they declare their language and parse in it. */
export async function* checkSamples(session: Session, pages: ReadPage[]): Steps {
  const seenSamples = new Set<string>();
  let reported = 0;
  for (const page of pages.filter(({ problem, samples }) => problem === null && samples.length > 0)) {
    session.context.signal.throwIfAborted();
    yield* useTool(session, "check_samples", { url: page.url }, async () => {
      const { checks, output, broken } = await checkPage(page, seenSamples, maxBroken - reported);
      reported += broken;
      return { ok: true, output, checks, value: undefined };
    });
  }
}

async function checkPage(page: ReadPage, seenSubjects: Set<string>, remaining: number) {
  const samples = page.samples.filter(({ code }) => code.trim() !== "");
  const checks: Check[] = [];
  let parsedCount = 0;
  let brokenCount = 0;
  for (const sample of samples) {
    const digest = new Bun.CryptoHasher("sha256").update(sample.code).digest("hex").slice(0, 12);
    const subject = `${page.url}#${digest}`;
    if (seenSubjects.has(subject)) continue;
    seenSubjects.add(subject);
    const result = isShownAsWrong(page, sample) ? null : (findConflict(page, sample) ?? (await parseSample(sample)));
    if (!result) continue;
    if (result.broken) {
      if (brokenCount < remaining) checks.push(toBrokenCheck(page, sample, subject, result));
      brokenCount++;
    } else parsedCount++;
  }
  if (parsedCount > 0)
    checks.unshift(
      toCheck({
        id: "sample-parses",
        group: "sample",
        status: "pass",
        weight: parsedCount,
        subject: page.url,
        message: `${parsedCount} of the code samples on this page ${parsedCount === 1 ? "is" : "are"} valid`,
      }),
    );
  const codeSamples = samples.filter((sample) => !sample.isPlain && !synopsisHeading.test(headingAbove(page, sample)));
  const labelledCount = codeSamples.filter(({ language }) => language !== null).length;
  if (codeSamples.length > 0) checks.unshift(toLabelCheck(page, codeSamples, labelledCount));
  const notChecked = countUnparsable(samples);
  const languages = Object.entries(notChecked).map(([language, count]) => `${count} in ${language}`);
  if (languages.length > 0)
    checks.push(
      toCheck({
        id: "sample-language-parsable",
        group: "sample",
        status: "skip",
        subject: page.url,
        message: `Samples that are not checked, because there is no parser for their language: ${languages.join(", ")}`,
      }),
    );
  return {
    checks,
    broken: brokenCount,
    output: {
      url: page.url,
      samples: codeSamples.length,
      labelled: labelledCount,
      parsed: parsedCount,
      broken: brokenCount,
      notChecked,
    },
  };
}

function toLabelCheck(page: ReadPage, samples: CodeSample[], labelledCount: number): Check {
  const firstUnlabelled = samples.find(({ language }) => language === null);
  const message = `${labelledCount} of ${samples.length} code samples name their language`;
  const base = { id: "sample-labelled", group: "sample", subject: page.url, weight: samples.length, message } as const;
  if (firstUnlabelled === undefined) return toCheck({ ...base, status: "pass" });
  return toCheck({
    ...base,
    status: labelledCount > 0 ? "warn" : "fail",
    share: labelledCount / samples.length,
    line: firstUnlabelled.line,
    fix: "Label every code block with its language, so that readers know whether it is a command, code, configuration or output.",
    quote: cut(firstUnlabelled.code.trim(), 200),
  });
}

const toBrokenCheck = (
  page: ReadPage,
  sample: CodeSample,
  subject: string,
  result: { message: string; line: number },
): Check => {
  const { language, code } = sample;
  return toCheck({
    id: "sample-parses",
    group: "sample",
    status: "fail",
    subject,
    url: page.url,
    line: lineOfSample(sample, result.line),
    message: `${describeLanguage(sample)}: ${result.message}`,
    fix:
      language === null
        ? "Fix the sample, or label it with its language if it is another one. Anyone who copies it gets a syntax error."
        : "Fix the sample or its label. Anyone who copies it gets a syntax error.",
    quote: cut(code.trim(), 300),
  });
};

/** Why a sample is broken, by how its language is known. */
function describeLanguage({ language, code }: CodeSample): string {
  if (language !== null) return `The sample is labeled ${language}, but does not parse as such`;
  const inference = inferLanguage(code);
  return inference === null
    ? "The sample has no label, and its brackets or quotes match in no language"
    : `The sample has no label and looks like ${nameOf(inference.language)}, but does not parse as such`;
}

const familyNames: Partial<Record<LanguageFamily, string>> = {
  script: "JavaScript or TypeScript",
  json: "JSON",
  yaml: "YAML",
  shell: "shell commands",
  session: "a terminal session",
  cpp: "C or C++",
  php: "PHP",
};
const nameOf = (family: LanguageFamily): string => familyNames[family] ?? family[0]!.toUpperCase() + family.slice(1);
