import { oneLine } from "../grading/text.ts";
import { httpUrl } from "../schema.ts";

/** A Markdown table with padded columns, so that it lines up in a terminal. */
export function table(rows: string[][]): string {
  const cells = rows.map((row) => row.map((cell) => text(cell).replaceAll("|", "\\|")));
  const widths = cells[0]?.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0))) ?? [];
  // The last column has no padding, because its texts may be long.
  const paddings = [...widths.slice(0, -1), 0];
  const toLine = (row: string[]) =>
    `| ${paddings.map((width, column) => (row[column] ?? "").padEnd(width)).join(" | ")} |`;
  const divider = paddings.map((width) => (width === 0 ? "---" : "-".repeat(width)));
  const [header = "", ...lines] = cells.map(toLine);
  return [header, toLine(divider), ...lines].join("\n");
}

/** Escapes text to one line without inline or block markup. */
export function text(value: string, maxChars = 1000): string {
  return oneLine(value, maxChars)
    .replace(/\\(?=[!-/:-@[-`{-~]|$)|[`*[~]|<(?=[a-z/!?])/gi, "\\$&") // \ before ASCII punctuation, `code`, *emphasis*, [link], ~~deleted~~ and <b>
    .replace(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, "\\_") // _emphasis_, but not snake_case
    .replace(/&(?=[#\w]+;)/g, "\\&") // &amp; and &#38;
    .replace(/^([#+=|>-])/, "\\$1") // "# Heading", "> quote" and "- item"
    .replace(/^(\d+)([.)])(?=\s|$)/, "$1\\$2"); // "1. item"
}

/** Text in a code span. The fence is longer than any run of backticks in the text. */
export function code(value: string): string {
  const flat = oneLine(value);
  const longest = Math.max(0, ...(flat.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  // Backticks at either end would be lost, and so would spaces at both ends.
  const padding = /^`|`$|^ .* $/.test(flat) ? " " : "";
  return `${fence}${padding}${flat}${padding}${fence}`;
}

/** An autolink for http(s) URLs, a code span for anything else. */
export function autolink(url: string): string {
  const href = httpUrl(url)?.href;
  return href === undefined ? code(url) : `<${href.replaceAll("<", "%3C").replaceAll(">", "%3E")}>`;
}

/** Lines in a code block. The fence is longer than any run of backticks in the lines. */
export function codeBlock(language: string, lines: string): string {
  const longest = Math.max(2, ...(lines.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${lines}\n${fence}`;
}
