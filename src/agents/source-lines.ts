/** A line of HTML, from 1, and the start of its text. */
export type SourceLine = { line: number; text: string };

/** Characters that are kept of a line. */
const maxLineChars = 300;

/** The line of the first match in HTML; null if there is none. */
function findLine(html: string, pattern: RegExp): SourceLine | null {
  const index = html.search(pattern);
  if (index < 0) return null;
  const start = html.lastIndexOf("\n", index) + 1;
  const text = html
    .slice(start, start + maxLineChars)
    .split("\n")[0]!
    .trim();
  return { line: html.slice(0, start).split("\n").length, text };
}

/** The line with the rule for search engines. */
export const findRobotsLine = (html: string): SourceLine | null =>
  findLine(html, /<meta\b[^>]*\bname\s*=\s*["']?robots\b/i);

/** The line in which tabs start. It has a role, or a class or an element for the content of a tab. */
export const findTabsLine = (html: string): SourceLine | null =>
  findLine(html, /\brole\s*=\s*["']?tab|\btab[_-]?(?:content|panel|pane|body)\b|<(?:[a-z]+-)+tab\b|<tab-/i);
