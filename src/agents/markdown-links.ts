import { decodeEntities } from "./entities.ts";
import type { DocLink } from "./markup.ts";

/** Only this many characters of a line are searched for links. No author writes longer lines. */
const maxLine = 20_000;
const maxLinks = 3000;

const withoutBrackets = String.raw`\\.|[^[\]\\]`;
const textWithBrackets = String.raw`(?:\[(?:${withoutBrackets})*\]|${withoutBrackets})*`;
const targetWithParentheses = String.raw`<[^<>]*>|[^()<>]*(?:\([^()]*\)[^()]*)?`;
/** A link or a picture. Its text may have brackets, escaped or in pairs. Its target may have a pair of parentheses. */
const inlineLink = new RegExp(String.raw`!?\[(${textWithBrackets})\]\((?:${targetWithParentheses})\)`, "g");

/** The `(target)` of a link or picture, as the source of a regular expression. It may contain pairs of parentheses. */
export const linkTarget = String.raw`\((?:[^()]|\([^()]*\))*\)`;

/** Markdown as one line of plain text. */
export const plainText = (markdown: string) =>
  decodeEntities(
    markdown
      .slice(0, 500)
      .replace(inlineLink, "$1")
      // A picture in a link.
      .replace(inlineLink, "$1")
      .replace(/[`*]|<[^>]+>/g, "")
      .replace(/\\([!-/:-@[-`{-~])/g, "$1"),
  )
    .replace(/\s+/g, " ")
    .trim();

/** The links of a Markdown page outside of code. `inCode` contains line numbers. */
export function markdownLinks(
  markdown: string,
  inCode: Set<number>,
  headings: { text: string; line: number }[],
  url: string,
): DocLink[] {
  const lines = markdown.split("\n").map((line, index) => (inCode.has(index + 1) ? "" : line));
  const links: DocLink[] = [];
  const headingsByLine = new Map(headings.map(({ line, text }) => [line, text]));
  let heading = "";
  const add = (target: string, text: string, context: string) => {
    const address = decodeEntities(target.replace(/^<|>$/g, ""));
    if (!address || !URL.canParse(address, url)) return;
    links.push({ url: new URL(address, url).href, text: plainText(text), context: plainText(context), heading });
  };
  const componentsByLine = Map.groupBy(componentLinks(lines), ({ index }) => index);
  for (const [index, raw] of lines.entries()) {
    if (links.length >= maxLinks) break;
    heading = headingsByLine.get(index + 1) ?? heading;
    const line = raw.slice(0, maxLine).replace(/(`{1,3})[^`]{1,500}\1/g, (code) => code.replace(/[[\]()<>]/g, " "));
    const contextAt = (at: number) => contextOf(lines, index, at);
    for (const { text, target, at } of inlineLinks(line)) add(target, text, contextAt(at));
    for (const match of line.matchAll(/<a\s[^<>]{0,300}?href="([^"]{1,2000})"[^<>]{0,300}>([^<]{0,300})/gi))
      add(match[1]!, match[2]!, contextAt(match.index));
    for (const { target, text, context } of componentsByLine.get(index) ?? []) add(target, text, context);
    for (const match of line.matchAll(/<(https?:\/\/[^\s<>]{1,2000})>/g)) add(match[1]!, "", contextAt(match.index));
    const reference = /^ {0,3}\[([^\]^]{1,300})\]:\s*(\S{1,2000})/.exec(line);
    if (reference) add(reference[2]!, reference[1]!, "");
  }
  return links;
}

/** Links in components, which may span lines: `<Card title="Start" href="/start">How to begin</Card>`. */
function componentLinks(lines: string[]): { index: number; target: string; text: string; context: string }[] {
  const text = lines.map((line) => line.slice(0, maxLine)).join("\n");
  let index = 0;
  let scannedChars = 0;
  return [...text.matchAll(/<([A-Z]\w{0,40})\s[^<>]{0,500}?href="([^"{\n]{1,2000})"/g)].map((match) => {
    const [tag, name, target = ""] = match;
    index += text.slice(scannedChars, match.index).split("\n").length - 1;
    scannedChars = match.index;
    const component = text.slice(match.index, match.index + 1000);
    const isEmpty = /^[^<>]*\/>/.test(component.slice(tag.length));
    const end = isEmpty ? -1 : component.indexOf(`</${name}>`);
    const context = component.slice(tag.length, Math.max(tag.length, end)).replace(/^[^<>]*>/, "");
    return { index, target, text: /title="([^"]{1,300})"/.exec(component)?.[1] ?? "", context };
  });
}

/** Lines that start a block. */
const blockStart = /^\s*([-*+|]|\d+[.)]|#|<\/?[A-Z]|$)/;
const contextReach = 200;

/** The context of a position: its line and, in a wrapped paragraph, the adjacent lines. */
function contextOf(lines: string[], index: number, at: number): string {
  const line = lines[index]!;
  if (line.length > 2 * contextReach) return line.slice(Math.max(0, at - contextReach), at + contextReach);
  const lineAbove = lines[index - 1] ?? "";
  const before = blockStart.test(line) || /^\s*[#<|]/.test(lineAbove) ? "" : lineAbove;
  const after = /^\s*\|/.test(line) || blockStart.test(lines[index + 1] ?? "") ? "" : lines[index + 1]!;
  return `${before.slice(-contextReach)} ${line} ${after.slice(0, contextReach)}`;
}

const maxTextChars = 500;
const maxTargetChars = 2000;

/**
 * `[text](target)`. The text may contain images; images themselves aren't links. Searches backwards for the opening
 * bracket, within limits.
 */
function* inlineLinks(line: string): Generator<{ text: string; target: string; at: number }> {
  for (let close = line.indexOf("]("); close >= 0; close = line.indexOf("](", close + 2)) {
    let depth = 1;
    let open = close - 1;
    for (const last = Math.max(0, close - maxTextChars); open >= last; open--) {
      if (line[open] === "]") depth++;
      else if (line[open] === "[" && --depth === 0) break;
    }
    if (depth > 0 || line[open - 1] === "!") continue;
    const rest = line.slice(close + 2, close + 2 + maxTargetChars).trimStart();
    const target = rest.startsWith("<") ? /^<([^<>]*)>/.exec(rest)?.[1] : /^(?:[^\s()]|\([^\s()]*\))*/.exec(rest)?.[0];
    if (target) yield { text: line.slice(open + 1, close), target, at: open };
  }
}
