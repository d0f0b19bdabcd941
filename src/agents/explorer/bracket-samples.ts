import { parser as cpp } from "@lezer/cpp";
import { parser as go } from "@lezer/go";
import { parser as java } from "@lezer/java";
import { parser as php } from "@lezer/php";
import { parser as python } from "@lezer/python";
import { parser as rust } from "@lezer/rust";

/** A parser's result for a sample. `line` is 1-based within the sample. `null`: unknown. */
export type ParseResult = { broken: false } | { broken: true; message: string; line: number } | null;

/** The line of an index in a text, from 1. */
export const lineAt = (code: string, index: number) => code.slice(0, index).split("\n").length;

/** Languages of which only brackets and quotes are checked, because samples often leave out code or contain output. */
const parsers = { cpp, go, java, php, python, rust };
export type BracketLanguage = keyof typeof parsers;
export const bracketLanguages = Object.keys(parsers) as BracketLanguage[];

const closing = new Map([
  ["(", ")"],
  ["[", "]"],
  ["{", "}"],
]);

/** Nodes whose text contains no code. */
const opaque = /String|Comment|Char|Rune|TextBlock|Heredoc/;

/** Macros of several lines, and listings with line numbers: the parsers don't know them. */
const beyondParser = /\\$|^\s*\d+\s.*\n\s*\d+\s/m;

/** Checks whether the brackets and quotes of a sample match. Other syntax errors are ignored. */
export function judgeBrackets(language: BracketLanguage, code: string): ParseResult {
  const open: { mark: string; index: number }[] = [];
  const strays: { mark: string; index: number }[] = [];
  let hasError = false;
  // Without a tag, PHP would be text.
  const tag = language === "php" && !code.includes("<?") ? "<?php " : "";
  parsers[language].parse(`${tag}${code}\n`).iterate({
    enter({ type, name, from: start, to: end }) {
      const [from, to] = [start - tag.length, end - tag.length];
      hasError ||= type.isError;
      if (opaque.test(name)) return false;
      const mark = type.isError ? code.slice(from, to) : name;
      const last = open.at(-1);
      if (closing.has(mark)) open.push({ mark, index: from });
      else if (last && closing.get(last.mark) === mark) open.pop();
      else if (/^[)\]}"']$/.test(mark)) strays.push({ mark, index: from });
      return true;
    },
  });
  if (!hasError) return { broken: false };
  if (language !== "python" && beyondParser.test(code)) return null;
  const [stray] = strays;
  const unclosed = open.at(-1);
  if (stray) return { broken: true, message: `${stray.mark} is unexpected`, line: lineAt(code, stray.index) };
  if (unclosed)
    return { broken: true, message: `${unclosed.mark} is never closed`, line: lineAt(code, unclosed.index) };
  return null;
}

/** The input of an interactive Python session without prompts and output; any other sample unchanged. */
export function withoutPrompts(code: string): string {
  const lines = code.split("\n");
  if (!lines.some((line) => /^\s*>>> /.test(line))) return code;
  return lines.flatMap((line) => /^\s*(?:>>>|\.\.\.)(?: (.*))?$/.exec(line)?.[1] ?? []).join("\n");
}
