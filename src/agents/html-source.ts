/** What may be in the head of a page, and which of it has content up to its end tag. */
const headElement =
  /<(?:(base|basefont|bgsound|link|meta)|(title|noscript|noframes|style|script|template))(?=[\s/>])/iy;
const skipped =
  /(?:\s|<!--[\s\S]*?(?:-->|$)|<!doctype[^>]*>|<html(?=[\s>])[^>]*>|<\/(?!head\b|body\b|html\b|br\b)[^>]*>)+/iy;

/**
 * HTML with the end tag of its head, which authors may leave out: browsers end the head before the first thing that it
 * can't contain.
 */
export function closeHead(html: string): string {
  const start = /<head(?=[\s>])[^>]*>/i.exec(html);
  if (!start) return html;
  let at = start.index + start[0].length;
  for (;;) {
    skipped.lastIndex = at;
    if (skipped.test(html)) at = skipped.lastIndex;
    headElement.lastIndex = at;
    const element = headElement.exec(html);
    if (!element) break;
    const end = endOfElement(html, headElement.lastIndex, element[2]);
    if (end < 0) return html;
    at = end;
  }
  return /^<\/head\b/i.test(html.slice(at, at + 10)) ? html : `${html.slice(0, at)}</head>${html.slice(at)}`;
}

/** Where an element ends, from the end of its name on; -1 if it doesn't. `name` is null for one without content. */
function endOfElement(html: string, at: number, name: string | undefined): number {
  const tagEnd = html.indexOf(">", at);
  if (tagEnd < 0 || name === undefined) return tagEnd < 0 ? -1 : tagEnd + 1;
  const endTag = new RegExp(`</${name}(?=[\\s/>])[^>]*>`, "gi");
  endTag.lastIndex = tagEnd;
  return endTag.test(html) ? endTag.lastIndex : -1;
}

const emptyTag = /^(?:area|base|br|col|embed|frame|hr|img|input|link|meta|param|source|track|wbr)$/i;

/** XHTML as HTML: in XML, any element may be closed by its own start tag. */
export const expandEmptyTags = (xhtml: string): string =>
  xhtml.replace(/<([a-z][\w:-]*)((?:\s[^<>]*)?)\/>/gi, (tag, name: string, attributes: string) =>
    emptyTag.test(name) ? tag : `<${name}${attributes}></${name}>`,
  );
