/** Minimum words of a quote. Shorter quotes prove little. */
const minWords = 5;
/** If words of a quote are left out, the minimum words of each part. */
const minPartWords = 3;

const linkAddress = /\]\([^)\s]*(?:\s+"[^"]*")?\)/g;
const htmlTag = /<[^<>\n]{1,200}>/g;

/** The words of a text in lower case, separated by one blank, without markup and addresses of links. */
const essenceOf = (text: string): string =>
  (
    text
      .normalize("NFKC")
      .replace(linkAddress, " ")
      .replace(htmlTag, " ")
      .replace(/n['’]t\b/g, " not")
      .match(/[\p{L}\p{N}]+/gu) ?? []
  )
    .join(" ")
    .toLowerCase();

const countWords = (essence: string): number => essence.split(" ").filter((word) => word !== "").length;

type QuoteMatch = { line: number } | { reason: "no_quote" | "quote_too_short" | "quote_not_on_page" };

/**
 * Where a quote is on a page: the line of its first word, counted from 1, or why it isn't there. All of its words must be on the page in their order.
 * `…` stands for words that were left out.
 */
export function findQuote(markdown: string, quote: string): QuoteMatch {
  const parts = quote
    .split(/…|\[?\.\.\.\]?/)
    .map(essenceOf)
    .filter((part) => part !== "");
  if (parts.length === 0) return { reason: "no_quote" };
  if (countWords(parts.join(" ")) < minWords) return { reason: "quote_too_short" };
  if (parts.length > 1 && parts.some((part) => countWords(part) < minPartWords)) return { reason: "quote_too_short" };
  const page = ` ${essenceOf(markdown)} `;
  let from = 0;
  let start = -1;
  for (const part of parts) {
    const index = page.indexOf(` ${part} `, from);
    if (index < 0) return { reason: "quote_not_on_page" };
    if (start < 0) start = index;
    from = index + part.length + 1;
  }
  return { line: lineOfWord(markdown, countWords(page.slice(0, start))) };
}

/** The line, counted from 1, of the word at this index of the page. */
function lineOfWord(markdown: string, wordIndex: number): number {
  const lines = markdown.split("\n");
  let words = 0;
  for (const [index, line] of lines.entries()) {
    words += countWords(essenceOf(line));
    if (words > wordIndex) return index + 1;
  }
  return lines.length;
}
