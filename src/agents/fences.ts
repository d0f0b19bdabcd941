import { type CodeBlock, wrongMark } from "./code-blocks.ts";

/**
 * A fenced code block. Its code starts in the line after `line`. `endLine` is the line that closes it or, if nothing does, the last line of its code.
 */
export type Fence = { sample: CodeBlock & { line: number; isClosed: boolean }; endLine: number };

const quoteMarks = String.raw`(?:>\s?)*`;
const itemMarks = String.raw`(?:(?:[-*+]|\d+[.)])\s+)*`;
const fenceMark = "`{3,20}|~{3,20}";
/** The line that opens a block. Groups: what is before its mark, such as `> ` or `1. `, the mark, and the info string, such as `ts title="a.ts"`. */
const openingLine = new RegExp(String.raw`^(\s*${quoteMarks}${itemMarks})(${fenceMark})([^${"`"}~].*)?$`);

/** How builders mark removed lines by their numbers. */
const diffMark = /\sdel=/;

type Opening = { prefix: string; mark: string; info: string };

/** The fenced code blocks of a text, without the indentation that they have in a list or a quote. */
export function findFences(markdown: string): Fence[] {
  const lines = markdown.split("\n");
  const fences: Fence[] = [];
  for (let index = 0; index < lines.length; index++) {
    const commentEnd = endOfComment(lines, index);
    if (commentEnd !== null) {
      index = commentEnd;
      continue;
    }
    const opening = readOpening(lines[index]!);
    if (!opening) continue;
    const { end, isClosed } = findEnd(lines, index + 1, opening);
    const prefix = prefixInBlock(opening);
    const code = withoutRemovedLines(lines.slice(index + 1, end).map((line) => line.replace(prefix, "")));
    const isWrong = wrongMark.test(opening.info);
    const isDiff = diffMark.test(opening.info);
    fences.push({
      sample: {
        language: toLanguage(opening.info),
        code: code.join("\n"),
        line: index + 1,
        isClosed,
        ...(isWrong && { isWrong }),
        ...(isDiff && { isDiff }),
      },
      endLine: isClosed ? end + 1 : end,
    });
    // A line that opens the next block is read again.
    index = isClosed ? end : end - 1;
  }
  return fences;
}

/** A comment that marks a line, or so many lines from it on, as removed: `// [!code --]`. */
const removedMark = /\[!code --(?::(\d{1,4}))?\]/;

/** Code whose removed lines, which highlighters show beside the new ones, are blank. */
function withoutRemovedLines(code: string[]): string[] {
  let removed = 0;
  return code.map((line) => {
    const mark = removedMark.exec(line);
    if (mark) removed = Number(mark[1] ?? 1);
    return removed-- > 0 ? "" : line;
  });
}

/** The opening line of a fence with a language, and the line that closes a fence. */
const labelledFence = /^\s*(?:`{3,20}|~{3,20})\s*[\w{][^`~]*$/;
const bareFence = /^\s*(?:`{3,20}|~{3,20})\s*$/;
/** Languages in which a fence is text like any other. */
const languageWithFences = /^(?:md|mdx|markdown|mdc|rst|myst|qmd|rmd)$/;

/**
 * Whether a block contains the fence that opens the next block, because the fence that should close it is missing. An example of Markdown closes each
 * fence that it opens.
 */
export function swallowsFence({ language, code }: CodeBlock): boolean {
  if (languageWithFences.test(language ?? "")) return false;
  const lines = code.split("\n");
  const firstOpening = lines.findIndex((line) => labelledFence.test(line));
  if (firstOpening <= 0 || firstOpening === lines.length - 1) return false;
  return lines.slice(firstOpening + 1).every((line) => !bareFence.test(line));
}

/** The block that a line opens; null if it opens none, such as a sentence with inline code. */
function readOpening(line: string): Opening | null {
  const match = openingLine.exec(line.slice(0, 1000));
  if (!match) return null;
  const [, prefix = "", mark = "", info = ""] = match;
  return mark.startsWith("`") && info.includes("`") ? null : { prefix, mark, info };
}

/**
 * Index of the line after the code of a block. If a block isn't closed, a line that opens another block with a language ends it. Code that contains
 * such a line needs a longer fence.
 */
function findEnd(lines: string[], start: number, { prefix, mark }: Opening): { end: number; isClosed: boolean } {
  const markOrLonger = `${mark[0]}{${mark.length},}`;
  const closing = new RegExp(`^[\\s>]*${markOrLonger}\\s*$`);
  // Markdown allows up to 3 more spaces.
  const nextOpening = new RegExp(`^[\\s>]{0,${prefix.length + 3}}${markOrLonger}\\s*[\\w{][^\`~]*$`);
  let end = start;
  while (end < lines.length && !closing.test(lines[end]!) && !nextOpening.test(lines[end]!)) end++;
  return { end, isClosed: end < lines.length && closing.test(lines[end]!) };
}

/** What a quote or a list puts before each line of a block: the marks of the quote, and at most the indentation of the first line. */
function prefixInBlock({ prefix }: Opening): RegExp {
  const quotes = prefix.split(">").length - 1;
  const indentation = prefix.replace(/>\s?/g, "").length;
  return new RegExp(`^(?:\\s*>\\s?){0,${quotes}}\\s{0,${indentation}}`);
}

/** Index of the last line of a comment that starts with a line; null if none does. Readers don't see the code in it. */
function endOfComment(lines: string[], start: number): number | null {
  const mark = /^\s*(<!--|\{\/\*)/.exec(lines[start]!)?.[1];
  if (mark === undefined) return null;
  const end = mark === "<!--" ? "-->" : "*/}";
  const last = lines.findIndex((line, index) => index >= start && line.includes(end));
  return last < 0 ? null : last;
}

/** The language in an info string: `ts title="a.ts"`, `{.python}`, `js{1,3}`, `language-sh`; null if it names none. */
function toLanguage(info: string): string | null {
  const word =
    info
      .trim()
      .replace(/^\{?\s*\.?/, "")
      .replace(/^language-/, "")
      .replace(/#\w.*$/, "")
      .split(/[\s,{}:]/)[0] ?? "";
  return word === "" || word.includes("=") ? null : word.toLowerCase();
}

/** Numbers of the lines of blocks, including the lines that open and close them. */
export const codeLines = (fences: Fence[]): Set<number> =>
  new Set(
    fences.flatMap(({ sample: { line }, endLine }) => Array.from({ length: endLine - line + 1 }, (_, i) => line + i)),
  );

/** A text without its fenced code blocks. One that is never closed is kept. */
export function withoutFences(markdown: string): string {
  const lineNumbers = codeLines(findFences(markdown).filter(({ sample }) => sample.isClosed));
  return markdown
    .split("\n")
    .filter((_, index) => !lineNumbers.has(index + 1))
    .join("\n");
}
