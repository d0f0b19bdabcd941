import { isMadeFrom } from "../agents/section-names.ts";
import type { Context } from "../context.ts";
import { invalidField } from "../errors.ts";
import type { Edits } from "../net/edits.ts";
import { createGuard, type Guard, GuardError } from "../net/guarded.ts";

/** Maximum length of a section that can be hidden, in characters. An edit replaces no longer text. */
const maxSectionChars = 20_000;

/**
 * Replaces each hidden section, such as https://docs.acme.example/guide#install, with replacements that remove its current text from the HTML and the
 * Markdown of its page. `field`: the path of the edits in the request. Throws bad_request, which names the URL, if neither version has the section.
 */
export async function resolveSections(
  ctx: Context,
  { hidden, replacements }: Edits,
  urlMap: Record<string, string>,
  field: string,
): Promise<Edits> {
  const isSection = (url: string) => url.includes("#") && URL.canParse(url);
  const removals = await Promise.all(
    hidden.map((url, i) => (isSection(url) ? listRemovals(ctx, url, urlMap, `${field}.hidden.${i}`) : [])),
  );
  return { hidden: hidden.filter((url) => !isSection(url)), replacements: [...replacements, ...removals.flat()] };
}

/** The replacements that remove a section from the versions of its page. */
async function listRemovals(ctx: Context, sectionUrl: string, urlMap: Record<string, string>, field: string) {
  const hashAt = sectionUrl.indexOf("#");
  const pageUrl = sectionUrl.slice(0, hashAt);
  const fragment = sectionUrl.slice(hashAt + 1);
  // For /guide, /guide/ and /guide.html, this is /guide.md.
  const markdownUrl = `${pageUrl.replace(/(\/|\.html?|\.md)$/, "")}.md`;
  const guard = createGuard({ allow: ctx.allow(), urlMap, now: ctx.now, keepsAlive: false });
  const versions = await Promise.all([
    readPage(guard, pageUrl, "text/html", ctx.stopping),
    readPage(guard, pageUrl, "text/markdown", ctx.stopping),
    readPage(guard, markdownUrl, "text/markdown", ctx.stopping),
  ]);
  const removals = versions.flatMap(({ url, source }) => {
    const find = findSection(source, fragment);
    return find === null ? [] : [{ url, find, replacement: "" }];
  });
  if (removals.length === 0) throw invalidField(field, `the page ${pageUrl} has no section ${fragment}`);
  if (removals.some(({ find }) => find.length > maxSectionChars))
    throw invalidField(field, `the section ${fragment} has more than ${maxSectionChars} characters`);
  // Versions with the same URL and text need one replacement.
  return [...new Map(removals.map((removal) => [`${removal.url} ${removal.find}`, removal])).values()];
}

/** The source of a page; empty if the response isn't a page. */
async function readPage(guard: Guard, url: string, accept: string, signal: AbortSignal) {
  try {
    const response = await guard.request(url, { headers: { accept }, signal });
    return { url, source: response.status === 200 ? guard.text(response) : "" };
  } catch (error) {
    if (error instanceof GuardError) return { url, source: "" };
    throw error;
  }
}

/** A heading in the source of a page. `level`: 1 to 6. `at`: where it begins. `isNamed`: whether the fragment names it. */
type Heading = { level: number; at: number; isNamed: boolean };

/** The source from the heading that a fragment names to the next heading of the same or a higher level; null: there is no such heading. */
export function findSection(source: string, fragment: string): string | null {
  const headings = /<h[1-6][\s>]/i.test(source) ? htmlHeadings(source, fragment) : markdownHeadings(source, fragment);
  const index = headings.findIndex(({ isNamed }) => isNamed);
  const heading = headings[index];
  if (heading === undefined) return null;
  const next = headings.slice(index + 1).find(({ level }) => level <= heading.level);
  const contentEnd = source.slice(heading.at).search(/<\/(main|article|body)>/i);
  const end = next?.at ?? (contentEnd < 0 ? source.length : heading.at + contentEnd);
  return source.slice(heading.at, end);
}

function htmlHeadings(source: string, fragment: string): Heading[] {
  const id = new RegExp(`\\bid=(["']?)${RegExp.escape(fragment)}\\1[\\s>]`);
  return [...source.matchAll(/<h([1-6])(?=[\s>])/gi)].map(({ 1: level, index }) => {
    const end = source.indexOf("</h", index);
    return { level: Number(level), at: index, isNamed: id.test(source.slice(index, end < 0 ? undefined : end)) };
  });
}

/** Lines that begin with # in a code block are no headings. */
function markdownHeadings(source: string, fragment: string): Heading[] {
  const headings: Heading[] = [];
  let isCode = false;
  let at = 0;
  for (const line of source.split("\n")) {
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode;
    const [, marks, text = ""] = /^(#{1,6})\s+(.*)/.exec(line) ?? [];
    const isNamed = isMadeFrom(fragment, text) || text.includes(`{#${fragment}}`);
    if (marks !== undefined && !isCode) headings.push({ level: marks.length, at, isNamed });
    at += line.length + "\n".length;
  }
  return headings;
}
