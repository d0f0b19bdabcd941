import { type GrammarName, grammars, openingOf } from "./grammars.ts";

/** What is wrong with a sample. `line` is 1-based within it. */
type SyntaxProblem = { broken: true; message: string; line: number };
/** A parser's result for a sample. `null`: unknown. */
export type ParseResult = { broken: false } | SyntaxProblem | null;

/** The line of an index in a text, from 1. */
export const lineAt = (code: string, index: number) => code.slice(0, index).split("\n").length;

/** The line where something is missing before an index. If the value at the index starts a line, it is the last line of code above. */
export function lineOfMissing(code: string, index: number): number {
  const line = lineAt(code, index);
  const lines = code.split("\n");
  const startsLine = code.slice(code.lastIndexOf("\n", index - 1) + 1, index).trim() === "";
  const isValue = /^\s*[\w"'`$[{(@]/.test(lines[line - 1]!);
  if (!startsLine || !isValue) return line;
  const previous = lines.findLastIndex((each, at) => at < line - 1 && !/^\s*(?:\/\/.*)?$/.test(each));
  return previous < 0 ? line : previous + 1;
}

/** The line after the longest valid start of a text, from 1. It is the first invalid line. */
export function lineAfterValidStart(text: string, isValid: (start: string) => boolean): number {
  const lines = text.split("\n");
  for (let count = lines.length - 1; count > 0; count--)
    if (isValid(lines.slice(0, count).join("\n"))) return count + 1;
  return 1;
}

/** Languages of which only brackets and quotes are checked, because samples often leave out code or contain output. */
export const bracketLanguages = ["cpp", "go", "java", "php", "python", "rust"] as const;

const closing = new Map([
  ["(", ")"],
  ["[", "]"],
  ["{", "}"],
]);

/** Spaces in place of a text, on as many lines. */
const blank = (text: string) => text.replace(/[^\n]/g, " ");

/** How many more brackets a line opens than it closes. */
const depthChange = (line: string) => line.split(/[([{]/).length - line.split(/[)\]}]/).length;

/** Nodes whose text contains no code, such as the text of a PHP template. */
const opaque = /^Text$|String|Comment|Char|Rune|TextBlock|Heredoc|RegExp/;

/** A quote outside of all strings. A single quote may be an apostrophe, a lifetime or part of a number. */
const unclosedQuote = /"|(?<=[([{,=:]\s*)'(?![a-z]\w*\b(?!'))/;

/**
 * Checks whether the brackets and quotes of a sample match. Other syntax errors are ignored. The parser only tells code from strings and comments.
 * After an error of its own, how it matches brackets says nothing.
 */
export function checkBrackets(language: GrammarName, code: string): ParseResult {
  const tag = openingOf(language, code);
  const source = `${tag}${code}\n`;
  const { text: wholeText, hasError } = codeOf(language, source);
  if (!hasError) {
    const problem = findTypographicQuote(wholeText, source);
    return problem ?? (language === "python" ? checkIndentation(code, wholeText) : { broken: false });
  }
  const text = language === "cpp" ? withoutDirectives(wholeText) : wholeText;
  const quote = unclosedQuote.exec(text)?.index;
  if (quote !== undefined)
    return { broken: true, message: `${text[quote]} is never closed`, line: lineAt(source, quote) };
  const result = checkMatching(text, tag.length);
  // If the parser found an error, matching brackets don't make the sample valid. Nothing is known then.
  if (result?.broken) return result;
  const parameters = language === "go" ? goBlockInParameters.exec(text) : null;
  if (parameters) {
    const line = lineAt(source, parameters.index + parameters[0].length - 1);
    return { broken: true, message: "the parameters of a function are not closed before its block", line };
  }
  return findTypographicQuote(text, source) ?? (language === "python" ? findMissingComma(code, text) : null);
}

const goReceiver = String.raw`\([^()]*\)`;
/** Types of parameters may have brackets of their own. */
const goParameters = String.raw`(?:[^(){}]|\([^(){}]*\)|\b(?:struct|interface)\s*\{[^{}]*\})*`;
/** A function of Go whose parameters are still open where its block starts. */
const goBlockInParameters = new RegExp(
  String.raw`\bfunc(?:\s*${goReceiver})?(?:\s+\w+)?\s*\(${goParameters}(?<!\b(?:struct|interface)\s*)\{`,
);

/** Words of Python with which a line may begin or end in the middle of an expression. */
const pythonOperator = /^(?:and|as|async|await|else|for|from|if|in|is|lambda|not|or|yield)$/;

/**
 * Finds a missing comma in Python: within brackets, a line ends with a value, and the next line begins with a name. `text`: the code with its strings
 * and comments blanked.
 */
function findMissingComma(code: string, text: string): SyntaxProblem | null {
  const lines = code.split("\n");
  let depth = 0;
  let lastLine: { index: number; word: string } | null = null;
  for (const [index, line] of text.split("\n").entries()) {
    const [, firstWord = ""] = /^\s*([A-Za-z_]\w*)/.exec(line) ?? [];
    const startsHere = firstWord !== "" && line.search(/\S/) === (lines[index] ?? "").search(/\S/);
    if (depth > 0 && lastLine && startsHere && !pythonOperator.test(firstWord) && !pythonOperator.test(lastLine.word))
      return { broken: true, message: "a comma is missing at the end of the line", line: lastLine.index + 1 };
    depth += depthChange(line);
    if (line.trim() === "" && (lines[index] ?? "").trim() === "") continue;
    // A line that ends with a string or before a comment is skipped.
    const endsHere = line.trimEnd().length === (lines[index] ?? "").trimEnd().length;
    const [, word = ""] = /(\w+|[)\]}])$/.exec(endsHere ? line.trimEnd() : "") ?? [];
    lastLine = word === "" ? null : { index, word };
  }
  return null;
}

/**
 * Finds a typographic quote, as word processors write it. No language accepts it around a string. `text`: the code without its strings and comments.
 */
export function findTypographicQuote(text: string, source: string): SyntaxProblem | null {
  const index = text.search(/[“”]/);
  return index < 0
    ? null
    : { broken: true, message: `${text[index]} is no quote of the language`, line: lineAt(source, index) };
}

/**
 * Checks whether each line of Python that ends a block returns to the column of an outer block. Parsers for editors don't check this. `text`: the
 * code with its strings and comments blanked. Lines that start with a string or a comment, and lines that continue another line, may have any column.
 */
function checkIndentation(code: string, text: string): ParseResult {
  if (code.includes("\t")) return { broken: false };
  const columnOf = (line: string) => line.search(/\S/);
  const lines = code.split("\n");
  /** The columns of the open blocks, the outermost first. */
  let columns: number[] = [];
  let isContinued = false;
  let depth = 0;
  for (const [index, line] of text.split("\n").entries()) {
    const column = columnOf(line);
    const isStatement = column >= 0 && column === columnOf(lines[index]!) && depth <= 0 && !isContinued;
    if (isStatement) {
      const outer = columns.filter((each) => each <= column);
      const endsBlock = outer.length < columns.length;
      // Without an outer block, the sample began inside a block.
      const outerColumn = outer.at(-1) ?? column;
      if (endsBlock && outerColumn < column)
        return { broken: true, message: "the indentation matches no line above", line: index + 1 };
      columns = [...new Set([...outer, column])];
    }
    depth += depthChange(line);
    isContinued = line.endsWith("\\");
  }
  return { broken: false };
}

/** Whether the brackets of a text match from an index on. Null if nothing follows an open bracket, because the sample is the head of a block. */
export function checkMatching(text: string, from = 0): ParseResult {
  const open: number[] = [];
  for (let index = from; index < text.length; index++) {
    const mark = text[index]!;
    const last = open.at(-1);
    if (closing.has(mark)) open.push(index);
    else if (last !== undefined && closing.get(text[last]!) === mark) open.pop();
    else if (/[)\]}]/.test(mark)) {
      // A bracket that closes an outer bracket leaves the last one open.
      const isForOther = open.some((at) => closing.get(text[at]!) === mark);
      return isForOther
        ? { broken: true, message: `${text[last!]} is never closed`, line: lineAt(text, last!) }
        : { broken: true, message: `${mark} is unexpected`, line: lineAt(text, index) };
    }
  }
  const unclosed = open.at(-1);
  if (unclosed === undefined) return { broken: false };
  return text.slice(unclosed + 1).trim() === ""
    ? null
    : { broken: true, message: `${text[unclosed]} is never closed`, line: lineAt(text, unclosed) };
}

/** The quote that a line opens where a text may start and doesn't close; null if it closes all of its quotes. */
function openQuoteOf(line: string): string | null {
  let quote: string | null = null;
  for (const { 0: match, index } of line.matchAll(/\\.|["'`]/g)) {
    if (match.length > 1) continue;
    if (quote === match) quote = null;
    else if (quote === null && /^$|[\s([{,=:+]/.test(line.charAt(index - 1))) quote = match;
  }
  return quote;
}

/** A quote that is never closed also leaves the bracket before it open. In this case, the quote is the problem to report. */
export function withOpenQuote(result: SyntaxProblem, code: string): SyntaxProblem {
  const quote = /^[([{)\]}] is/.test(result.message) ? openQuoteOf(code.split("\n")[result.line - 1] ?? "") : null;
  return quote === null ? result : { ...result, message: `${quote} is never closed` };
}

/** Whether a parser finds no error in a sample. */
export const hasNoSyntaxError = (language: GrammarName, code: string): boolean => !codeOf(language, code).hasError;

/** From `#else` or `#elif` to `#endif`. */
const otherAlternatives = /^[ \t]*#[ \t]*el(?:se|if)[\s\S]*?(?=^[ \t]*#[ \t]*endif)/gm;
const directive = /^[ \t]*#(?:.*\\\n)*.*/gm;

/** Code of C with one alternative of each condition and without directives, whose brackets need not match. */
const withoutDirectives = (text: string) => text.replace(otherAlternatives, blank).replace(directive, blank);

/** A sample with its strings and comments blanked, and whether the parser found an error in it. */
function codeOf(language: GrammarName, source: string): { text: string; hasError: boolean } {
  let text = "";
  let end = 0;
  let hasError = false;
  grammars[language].parse(source).iterate({
    enter({ type, name, from, to }) {
      hasError ||= type.isError;
      if (!opaque.test(name)) return true;
      text += source.slice(end, from) + blank(source.slice(from, to));
      end = to;
      return false;
    },
  });
  return { text: text + source.slice(end), hasError };
}

/**
 * The input of an interactive Python session without prompts and output; any other sample unchanged. A line without a
 * prompt continues the input while a bracket is open.
 */
export function withoutPrompts(code: string): string {
  const lines = code.split("\n");
  if (!lines.some((line) => /^\s*>>> /.test(line))) return code;
  let depth = 0;
  return lines
    .flatMap((line) => {
      const input = /^\s*(?:>>>|\.\.\.)(?: ?(.*))$/.exec(line)?.[1] ?? (depth > 0 ? line : null);
      if (input === null) return [];
      if (/^\s*>>>/.test(line)) depth = 0;
      depth += depthChange(input);
      return [input];
    })
    .join("\n");
}
