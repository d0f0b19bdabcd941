import type { Edits } from "../net/edits.ts";

type Replacement = Edits["replacements"][number];

/** The texts before and after the target of a link in HTML, Markdown and XML. */
const aroundLinks: readonly (readonly [before: string, after: string])[] = [
  ['"', '"'],
  ['"', "#"],
  ["'", "'"],
  ["(", ")"],
  ["(", "#"],
  ["(<", ">"],
  ["<", ">"],
  [": ", "\n"],
];

/** The texts that can follow a path or URL in a command, a sentence or code. There, a host or a variable may precede it. */
const afterPaths: readonly string[] = [" ", "\n", "`", "'", '"', "?", "<", "\\"];

/**
 * The replacements that make a change in the source of a page. Only the page's text as an agent reads it is known. A URL or path is replaced as a
 * whole: in links as an absolute or a relative target, and in commands as it is. Any other text is replaced as it is, and escaped for HTML.
 */
export function toReplacements(url: string, find: string, replacement: string): Replacement[] {
  const pairs = isLinkTarget(find, replacement) ? linkPairs(url, find, replacement) : textPairs(find, replacement);
  return [...new Map(pairs)].map(([find, replacement]) => ({ url, find, replacement }));
}

const isLinkTarget = (...texts: string[]): boolean =>
  texts.every((text) => /^(https?:\/\/|\.{0,2}\/|[^\s/]+\/)\S*$|^\S+\.(md|mdx|html?)$/.test(text));

const textPairs = (find: string, replacement: string): [string, string][] => [
  [find, replacement],
  [Bun.escapeHTML(find), Bun.escapeHTML(replacement)],
];

function linkPairs(page: string, find: string, replacement: string): [string, string][] {
  const [from, to] = [URL.parse(find, page), URL.parse(replacement, page)];
  if (!from || !to) return textPairs(find, replacement);
  const spellings: [string, string][] = [
    [find, replacement],
    [from.href, to.href],
  ];
  if (from.origin === to.origin) spellings.push([toPath(from), toPath(to)], ...relativePairs(page, from, to));
  const inLinks = spellings.flatMap(([before, after]) =>
    aroundLinks.map(([start, end]): [string, string] => [start + before + end, start + after + end]),
  );
  // The name of a file may also be the end of another name.
  const isWhole = /^(https?:\/)?\//.test(find);
  const inCommands = isWhole ? afterPaths.map((end): [string, string] => [find + end, replacement + end]) : [];
  return [...inLinks, ...inCommands];
}

const toPath = ({ pathname, search }: URL): string => pathname + search;

/** The target relative to the folder of the page, if both targets are in it. */
function relativePairs(page: string, from: URL, to: URL): [string, string][] {
  const folder = new URL(".", page).pathname;
  const [before, after] = [toPath(from), toPath(to)];
  if (!before.startsWith(folder) || !after.startsWith(folder)) return [];
  const [name, newName] = [before.slice(folder.length), after.slice(folder.length)];
  if (name === "") return [];
  return [
    [name, newName],
    [`./${name}`, `./${newName}`],
  ];
}
