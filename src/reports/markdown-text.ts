import { oneLine } from "../grading/text.ts";
import { httpUrl } from "../schema.ts";

/** A Markdown table with padded columns, so that it lines up in a terminal. */
export function table(rows: string[][]): string {
  const cells = rows.map((row) => row.map((cell) => text(cell).replaceAll("|", "\\|")));
  const widths = cells[0]?.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0))) ?? [];
  const last = widths.length - 1;
  const row = (cellText: (column: number) => string) =>
    `| ${widths.map((_, column) => cellText(column)).join(" | ")} |`;
  const lines = cells.map((each) =>
    row((column) => (column === last ? (each[column] ?? "") : (each[column] ?? "").padEnd(widths[column] ?? 0))),
  );
  lines.splice(
    1,
    0,
    row((column) => (column === last ? "---" : "-".repeat(widths[column] ?? 3))),
  );
  return lines.join("\n");
}

/** Escapes text to one line without inline or block markup. */
export function text(value: string, max = 1000): string {
  return oneLine(value, max)
    .replace(/[`*[~]|<(?=[a-z/!?])|\\(?=[!-/:-@[-`{-~]|$)/gi, "\\$&")
    .replace(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, "\\_")
    .replace(/&(?=[#\w]+;)/g, "\\&")
    .replace(/^([#+=|>-])/, "\\$1")
    .replace(/^(\d+)([.)])(?=\s|$)/, "$1\\$2");
}

/** Text in a code span. The fence is longer than any run of backticks in the text. */
export function code(value: string): string {
  const flat = oneLine(value);
  const longest = Math.max(0, ...(flat.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  const padding = /^`|`$|^ .* $/.test(flat) ? " " : "";
  return `${fence}${padding}${flat}${padding}${fence}`;
}

/** An autolink for http(s) URLs, a code span for anything else. */
export function autolink(url: string): string {
  const href = httpUrl(url)?.href;
  return href === undefined ? code(url) : `<${href.replaceAll("<", "%3C").replaceAll(">", "%3E")}>`;
}

/** Lines in a code block. The fence is longer than any run of backticks in them. */
export function codeBlock(language: string, lines: string): string {
  const longest = Math.max(2, ...(lines.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${lines}\n${fence}`;
}
