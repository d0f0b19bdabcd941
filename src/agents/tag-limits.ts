/** Limits for parsers of HTML, far above what authors write: the tags of a page, and the attributes of a tag. */
const maxTags = 100_000;
const maxAttributes = 100;

const startTag = /<(?:!--|\/?[a-z][^\s/>]*)/gi;
/** An attribute, matched from the end of the last one. A quotation mark that isn't closed doesn't start a value. */
const attribute = /[\s/]*[^\s/>][^\s/>=]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|(?!["'])[^\s>]*))?/y;
/** Start tags of elements whose content is text. */
const rawName = /^<(?:script|style|textarea|title|xmp)$/i;

/**
 * HTML with at most 100 attributes per tag, up to its 100,000th tag. Parsers take quadratic time for a tag with more attributes, and too long for a
 * page with more tags. This function takes linear time.
 */
export function limitTags(html: string): string {
  const parts: string[] = [];
  let copiedUntil = 0;
  let tags = 0;
  startTag.lastIndex = 0;
  for (let tag = startTag.exec(html); tag; tag = startTag.exec(html)) {
    if (++tags > maxTags) return parts.join("") + html.slice(copiedUntil, tag.index);
    const [name] = tag;
    if (name === "<!--") {
      const end = html.indexOf("-->", startTag.lastIndex);
      if (end < 0) break;
      startTag.lastIndex = end;
      continue;
    }
    const { kept, end } = readAttributes(html, startTag.lastIndex);
    if (kept < end) {
      parts.push(html.slice(copiedUntil, kept));
      copiedUntil = end;
    }
    startTag.lastIndex = end;
    if (!rawName.test(name)) continue;
    const endTag = new RegExp(`</${name.slice(1)}(?=[\\s/>])`, "gi");
    endTag.lastIndex = end;
    if (!endTag.test(html)) break;
    startTag.lastIndex = endTag.lastIndex;
  }
  return parts.join("") + html.slice(copiedUntil);
}

/** Where the attributes of a tag end, and where the attributes that are kept end. `start`: the end of the tag's name. */
function readAttributes(html: string, start: number): { kept: number; end: number } {
  attribute.lastIndex = start;
  let kept = start;
  let end = start;
  for (let count = 1; attribute.test(html); count++) {
    end = attribute.lastIndex;
    if (count <= maxAttributes) kept = end;
  }
  return { kept, end };
}
