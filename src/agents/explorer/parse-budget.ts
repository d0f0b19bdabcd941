import { createForwardSearch } from "../forward-search.ts";

/**
 * Limits of the text of a page for parsers that take quadratic time for some texts: how deeply one line is nested, how many brackets are open at
 * once, how much white space is in a row, and how many characters have a meaning in Markdown. A parser keeps a few kilobytes for each such character.
 */
const maxNested = 200;
const maxBlank = 1000;
const maxMarks = 30_000;

const marks = new Set("\n<>[]()*_`~\\#|&!");
/** Elements whose content isn't text. */
const hiddenName = /(?:script|style|svg)(?=[\s/>])/iy;

/**
 * The part of a page that parsers read in linear time. It ends where a limit is exceeded, which no author's text does. This function itself takes
 * linear time. `isHtml`: tags, comments and scripts count as one mark each.
 */
export function cutToBudget(text: string, isHtml: boolean): string {
  const find = createForwardSearch(text);
  let used = 0;
  let blanks = 0;
  let openBrackets = 0;
  let openParentheses = 0;
  /** Number of containers at the start of the line; null after the first word of the line. */
  let nested: number | null = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    const isBlank = char === " " || char === "\n" || char === "\t" || char === "\r";
    blanks = isBlank ? blanks + 1 : 0;
    if (char === "\n") nested = 0;
    else if (nested !== null && !isBlank) {
      // The mark of a quote or of a list item. A number may precede the mark of a list item.
      if (char === ">" || (/[-*+.)]/.test(char) && /\s/.test(text[at + 1] ?? ""))) nested++;
      else if (!/\d/.test(char)) nested = null;
    }
    if (char === "[") openBrackets++;
    else if (char === "]") openBrackets = Math.max(0, openBrackets - 1);
    else if (char === "(") openParentheses++;
    else if (char === ")") openParentheses = Math.max(0, openParentheses - 1);
    if (marks.has(char)) used++;
    if (used > maxMarks || blanks > maxBlank || Math.max(openBrackets, openParentheses, nested ?? 0) > maxNested)
      return text.slice(0, at);
    if (isHtml && char === "<") at = endOfMarkup(text, at, find);
  }
  return text;
}

/** Where a tag, a comment or an element without text ends. It starts at `at`. Returns `at` if it has no end. */
function endOfMarkup(html: string, at: number, find: ReturnType<typeof createForwardSearch>): number {
  hiddenName.lastIndex = at + 1;
  const name = hiddenName.exec(html)?.[0].toLowerCase();
  const endOfTag = name === undefined ? ">" : `</${name}`;
  const end = find(html.startsWith("<!--", at) ? "-->" : endOfTag, at);
  return Math.max(at, end);
}
