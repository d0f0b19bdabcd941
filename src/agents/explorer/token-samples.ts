import { csharp, dart, kotlin, scala } from "@codemirror/legacy-modes/mode/clike";
import { lua } from "@codemirror/legacy-modes/mode/lua";
import { protobuf } from "@codemirror/legacy-modes/mode/protobuf";
import { ruby } from "@codemirror/legacy-modes/mode/ruby";
import { swift } from "@codemirror/legacy-modes/mode/swift";
import { type StreamParser, StringStream } from "@codemirror/streamparser";
import { findOpenBlock } from "./block-samples.ts";
import { graphql, hcl } from "./brace-languages.ts";
import { checkMatching, findTypographicQuote, type ParseResult } from "./bracket-samples.ts";

/** Tokenizers of editors, which tell code from strings and comments, line by line. */
const programs = { csharp, dart, kotlin, lua, protobuf, ruby, scala, swift } satisfies Record<
  string,
  StreamParser<unknown>
>;
const tokenizers = { ...programs, graphql, hcl };
export type TokenizedLanguage = keyof typeof tokenizers;
export const tokenizedLanguages = Object.keys(tokenizers) as TokenizedLanguage[];
/** Languages whose keywords identify a sample without a label. */
export const keywordLanguages = Object.keys(programs) as TokenizedLanguage[];

/** A text between a line with `<<~NAME` and the line `NAME`. */
const heredoc =
  /<<[-~]?(?<quote>["'`]?)(?<name>[A-Za-z_]\w*)\k<quote>(?<rest>.*\n)(?<text>[\s\S]*?\n|)[^\S\n]*\k<name>\b/g;
/** Replaces a heredoc by an empty string and as many lines as the heredoc has. */
const blankLines = (_: string, _quote: string, _name: string, rest: string, text: string): string =>
  `""${rest}${text.replace(/[^\n]/g, "")}`;

type Token = { style: string; from: number; to: number };
type Tokenizer = StreamParser<unknown>;

const indentUnit = 2;
const tabSize = 4;
/** A word after a line. It is a name in code, but text in a string that isn't closed. */
const probe = " zq";
const isString = (style: string) => /\bstring/.test(style);

/** Checks whether the brackets and quotes of a sample match, by the tokens of its language. */
export function checkTokens(language: TokenizedLanguage, code: string): ParseResult {
  // The tokenizer of C# doesn't know raw strings.
  if (language === "csharp" && code.includes('"""')) return null;
  // The tokenizer of Ruby knows a heredoc only if its start is at the end of a line.
  const source = language === "ruby" ? code.replace(heredoc, blankLines) : code;
  const tokenizer = tokenizers[language] as Tokenizer;
  const state = tokenizer.startState?.(indentUnit);
  /** The line that starts the open string of several lines; null while none is open. */
  let openedIn: number | null = null;
  let text = "";
  /** The code with strings as words, because an `if` after a string doesn't start a block. */
  let textOfBlocks = "";
  for (const [index, line] of source.split("\n").entries()) {
    // Reading changes the state, so each attempt gets a copy.
    const before = copyOf(tokenizer, state);
    const tokens = readLine(tokenizer, line, state);
    text += `${blankTexts(line, tokens)}\n`;
    textOfBlocks += `${blankTexts(line, tokens, "_")}\n`;
    const isOpenAtEnd = line !== "" && endsInString(tokenizer, line, before);
    const isOpenInNext = endsInString(tokenizer, "", copyOf(tokenizer, state));
    if (isOpenAtEnd && !isOpenInNext)
      return { broken: true, message: `${quoteIn(line, tokens)} is never closed`, line: index + 1 };
    openedIn = isOpenInNext ? (openedIn ?? index + 1) : null;
  }
  if (openedIn !== null) return { broken: true, message: "a string is never closed", line: openedIn };
  const result = checkMatching(text);
  if (result?.broken) return result;
  return findTypographicQuote(text, text) ?? findOpenBlock(language, textOfBlocks) ?? result;
}

/** The number of different keywords of a language in a sample. */
export function countKeywords(language: TokenizedLanguage, code: string): number {
  const tokenizer = tokenizers[language] as Tokenizer;
  const state = tokenizer.startState?.(indentUnit);
  const words = code.split("\n").flatMap((line) =>
    readLine(tokenizer, line, state)
      .filter(({ style }) => /\bkeyword\b/.test(style))
      .map(({ from, to }) => line.slice(from, to)),
  );
  return new Set(words).size;
}

/** Reads a line to its end, and changes the state. */
function readLine(tokenizer: Tokenizer, line: string, state: unknown): Token[] {
  const tokens: Token[] = [];
  if (line === "") tokenizer.blankLine?.(state, indentUnit);
  const stream = new StringStream(line, tabSize, indentUnit);
  for (let idle = 0; !stream.eol() && idle < 10; ) {
    stream.start = stream.pos;
    const style = tokenizer.token(stream, state) ?? "";
    if (stream.pos === stream.start) idle++;
    else tokens.push({ style, from: stream.start, to: stream.pos });
  }
  return tokens;
}

/** Whether a word after a line would be in a string. */
function endsInString(tokenizer: Tokenizer, line: string, state: unknown): boolean {
  const tokens = readLine(tokenizer, line + probe, state);
  return isString(tokens.at(-1)?.style ?? "");
}

/** The quote that opens the last string of a line. */
function quoteIn(line: string, tokens: Token[]): string {
  const first = tokens.findLastIndex(({ style }) => !isString(style)) + 1;
  return line.slice(tokens[first]?.from ?? 0).trim()[0] ?? "a string";
}

/** A line with spaces in place of its comments, and with `inText` in place of each character of its strings. */
const blankTexts = (line: string, tokens: Token[], inText = " "): string =>
  tokens
    .map(({ style, from, to }) => {
      if (/\bcomment/.test(style)) return " ".repeat(to - from);
      return /\b(?:string|regexp|character)/.test(style) ? inText.repeat(to - from) : line.slice(from, to);
    })
    .join("");

/** A copy of a state. Like in editors, only its arrays are copied, too. */
function copyOf(tokenizer: Tokenizer, state: unknown): unknown {
  if (tokenizer.copyState) return tokenizer.copyState(state);
  if (typeof state !== "object" || state === null) return state;
  return Object.fromEntries(
    Object.entries(state).map(([key, value]) => [key, Array.isArray(value) ? value.slice() : value]),
  );
}
