import { pageKey } from "../net/page-key.ts";
import { type CodeBlock, onCodeBlocks, onContent } from "./code-blocks.ts";
import { decodeEntities, oneLine } from "./entities.ts";
import { type OwnContent, readOwnContent } from "./own-content.ts";

/**
 * `context` is the sentence, list item, table row or definition around a link, `heading` the heading above it; empty if
 * there is none. `isEmbedded`: its target is shown within the page, and need not be a page of its own.
 */
export type DocLink = { url: string; text: string; context: string; heading: string; isEmbedded?: true };

/** What an HTML page contains besides its prose. */
export type Markup = {
  title: string;
  description: string;
  language: string | null;
  links: DocLink[];
  preformatted: CodeBlock[];
  /** Values of `id`, and of `name` on anchors. */
  anchors: Set<string>;
  /** Whether the HTML itself names a heading or section. If not, scripts may create all names. */
  hasHeadingIds: boolean;
  scriptCount: number;
  asksForScript: boolean;
  /** Whether readers without scripts are told where else to read. */
  hasAlternative: boolean;
  own: OwnContent;
  /** Where the page sends its reader: the URL of a `meta refresh`, or a URL that a script opens. */
  redirect: string | null;
  /** The content of `meta robots`, in lower case. */
  robots: string;
};

/** A page while it is read. */
type State = {
  page: Markup;
  url: string;
  /** The URL that relative links refer to. */
  base: string;
  isTitleOpen: boolean;
  /** Text of the scripts in the page, limited in length. */
  scripts: string;
  /** Text of the noscript element that is read, limited in length. */
  noscript: string;
  /** Open elements whose text isn't shown. */
  hidden: number;
  link: { href: string; text: string; label: string; start: number } | null;
  block: Block;
};

/** The block of text that is read, to find the context of each link. */
type Block = {
  text: string;
  /** The heading above it. */
  heading: string;
  isHeading: boolean;
  /** The start of its last element, as a position in its text. */
  lastStart: number;
  /** The last item, definition or cell in it. If it has none, the element that it began with. */
  lastTag: string;
  /** Links in it, with the start and the end of their texts. */
  links: { link: DocLink; start: number; end: number }[];
};

/** Reads an HTML page in one pass. `url` is its URL. */
export function readMarkup(html: string, url: string): Markup {
  const rewriter = new HTMLRewriter();
  const page: Markup = {
    title: "",
    description: "",
    language: null,
    links: [],
    preformatted: [],
    anchors: new Set(),
    hasHeadingIds: false,
    scriptCount: 0,
    asksForScript: false,
    hasAlternative: false,
    own: readOwnContent(html),
    redirect: null,
    robots: "",
  };
  const block: Block = { text: "", heading: "", isHeading: false, lastStart: 0, lastTag: "", links: [] };
  const state: State = {
    page,
    url,
    base: url,
    isTitleOpen: true,
    scripts: "",
    noscript: "",
    hidden: 0,
    link: null,
    block,
  };
  for (const [selector, read] of Object.entries(elementReaders))
    rewriter.on(selector, { element: (element) => read(state, element) });
  for (const [selector, read] of Object.entries(textReaders))
    rewriter.on(selector, { text: (chunk) => read(state, chunk) });
  onCodeBlocks(rewriter, page.preformatted);
  rewriter.onDocument({ text: (chunk) => addText(state, chunk.text) }).transform(html);
  endLink(state);
  endBlock(block);
  page.title = oneLine(page.title);
  page.redirect ??= scriptTarget(state);
  return page;
}

const blockTags = "p, li, dt, dd, tr, td, th, h1, h2, h3, h4, h5, h6, pre, div, section, blockquote, ul, ol, dl, table";

/** What each element says about the page, by selector. */
const elementReaders: Record<string, (state: State, element: HTMLRewriterTypes.Element) => void> = {
  html({ page }, element) {
    page.language = element.getAttribute("lang")?.toLowerCase() || null;
  },
  "base[href]": (state, element) => {
    state.base = URL.parse(decodeEntities(element.getAttribute("href") ?? ""), state.url)?.href ?? state.base;
  },
  "script, style, noscript, template, svg, head, title": (state, element) => {
    if (element.tagName === "script") state.page.scriptCount++;
    onContent(
      element,
      () => state.hidden++,
      () => state.hidden--,
    );
  },
  'meta[name="description"]': ({ page }, element) => {
    page.description ||= oneLine(element.getAttribute("content") ?? "").slice(0, 300);
  },
  'meta[name="robots" i]': ({ page }, element) => {
    page.robots += (element.getAttribute("content") ?? "").toLowerCase();
  },
  'meta[http-equiv="refresh" i]': (state, element) => {
    const content = decodeEntities(element.getAttribute("content") ?? "");
    const target = /^\s*\d[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?['"]?([^'"]+)/i.exec(content)?.[1]?.trim();
    if (target) state.page.redirect ??= toTarget(target, state.base);
  },
  "body[onload]": (state, element) => {
    state.scripts += decodeEntities(element.getAttribute("onload") ?? "").slice(0, maxScriptChars);
  },
  "frame[src], iframe[src]": ({ page, base }, element) => {
    const url = URL.parse(decodeEntities(element.getAttribute("src") ?? ""), base);
    const text = oneLine(element.getAttribute("title") ?? element.getAttribute("name") ?? "");
    const isEmbedded = element.tagName === "iframe";
    if (url) page.links.push({ url: url.href, text, context: "", heading: "", ...(isEmbedded && { isEmbedded }) });
  },
  "[id], a[name]": ({ page }, element) => {
    for (const name of [element.getAttribute("id"), element.tagName === "a" ? element.getAttribute("name") : null])
      if (name) page.anchors.add(decodeEntities(name).replace(/^user-content-/, ""));
    if (/^(h[1-6]|section|dt|a|article|tr|p|span|li)$/.test(element.tagName)) page.hasHeadingIds = true;
  },
  "a[href]": (state, element) => {
    endLink(state);
    const label = decodeEntities(element.getAttribute("aria-label") ?? element.getAttribute("title") ?? "");
    state.link = { href: element.getAttribute("href") ?? "", text: "", label, start: state.block.text.length };
    if (element.canHaveContent) element.onEndTag(() => endLink(state));
    else endLink(state);
  },
  [blockTags]: ({ block }, { tagName }) => enterBlock(block, tagName),
};

/** What the text of some elements says about the page, by selector. */
const textReaders: Record<string, (state: State, chunk: HTMLRewriterTypes.Text) => void> = {
  title(state, chunk) {
    if (state.isTitleOpen) state.page.title += chunk.text;
    if (chunk.lastInTextNode) state.isTitleOpen = state.page.title.trim() === "";
  },
  noscript(state, chunk) {
    const { page } = state;
    page.asksForScript ||= /javascript/i.test(chunk.text);
    state.noscript = state.noscript.slice(-maxScriptChars) + chunk.text;
    if (chunk.lastInTextNode) addAlternatives(state);
  },
  script(state, chunk) {
    if (state.scripts.length < maxScriptChars) state.scripts += chunk.text;
  },
  "a[href]": ({ link }, chunk) => {
    if (link) link.text += chunk.text;
  },
};

const linkInText = /<a\s[^<>]*?\bhref\s*=\s*["']?([^"'\s<>]+)[^<>]*>([^<>]*)/gi;

/** Adds the links to the same host that only readers without scripts see. The parser reads the content of noscript as text. */
function addAlternatives(state: State): void {
  const { page, url, base, block, noscript } = state;
  state.noscript = "";
  for (const [, href = "", text = ""] of noscript.matchAll(linkInText)) {
    const target = URL.parse(decodeEntities(href), base);
    if (target?.origin !== new URL(url).origin || pageKey(target.href) === pageKey(url)) continue;
    page.hasAlternative = true;
    page.links.push({ url: target.href, text: oneLine(text), context: "", heading: block.heading });
  }
}

/** The script of a page that only redirects is short, so longer scripts aren't searched. */
const maxScriptChars = 5000;
const location = String.raw`(?<![\w.$])(?:(?:window|document|self|top|parent)\.)?location(?:\.href)?`;
const opens = String.raw`(?:=\s*|\.(?:replace|assign)\(\s*)`;
/** The rest of a URL that a script computes. A rest that is the query or fragment of this page doesn't count. */
const computedRest = String.raw`\s*\+(?!\s*(?:\w+\.)?location\.(?:hash|search))`;
/** `location = "/new"`, `window.location.replace('/new')`. The URL is the second group. */
const opensUrl = new RegExp(String.raw`${location}\s*${opens}(["'${"`"}])([^"'${"`"}\s]+)\1(?!${computedRest})`);

/** The URL that a script opens in any case. */
function scriptTarget({ scripts, base }: State): string | null {
  const match = opensUrl.exec(scripts);
  return !match || /\bif\b|&&|\?/.test(scripts.slice(0, match.index)) ? null : toTarget(match[2]!, base);
}

function toTarget(href: string, base: string): string | null {
  const url = URL.parse(href, base);
  return url !== null && /^https?:$/.test(url.protocol) ? url.href : null;
}

function endLink(state: State): void {
  if (!state.link) return;
  const { page, base, block } = state;
  const { href, text, label, start } = state.link;
  state.link = null;
  const url = URL.parse(decodeEntities(href).trim(), base);
  if (!url) return;
  const link = { url: url.href, text: oneLine(text) || oneLine(label), context: "", heading: block.heading };
  page.links.push(link);
  block.links.push({ link, start: Math.min(start, block.text.length), end: block.text.length });
}

/** The first element in one of these belongs to the same block, such as the first paragraph of a list item. */
const containerTag = /^(li|dd|tr|td|th)$/;
/** Limits in characters: how much of a block's text is searched for links, and how far from a link its sentence may extend. */
const maxBlock = 20_000;
const contextChars = 200;

function addText({ hidden, block }: State, text: string): void {
  if (hidden > 0) return;
  if (block.text.length < maxBlock) block.text += text;
}

/**
 * Whether a block continues in an element. It does in a definition after its term, in the cells of a row, and in the first element of an item or a
 * cell.
 */
function continuesIn({ lastTag, text, lastStart }: Block, tag: string): boolean {
  if (tag === "li" || tag === "dt" || tag === "tr") return false;
  if (tag === "dd") return lastTag !== "dd";
  if (tag === "td" || tag === "th") return true;
  return containerTag.test(lastTag) && text.slice(lastStart).trim() === "";
}

/** Starts another block, or goes on with this one. */
function enterBlock(block: Block, tag: string): void {
  const continues = continuesIn(block, tag);
  if (!continues) endBlock(block);
  else if (block.text.length < maxBlock) block.text += " ";
  block.isHeading ||= /^h[1-6]$/.test(tag);
  if (!continues || containerTag.test(tag)) block.lastTag = tag;
  block.lastStart = block.text.length;
}

/** Gives the links of a block their contexts, and clears it. */
function endBlock(block: Block): void {
  for (const { link, start, end } of block.links) link.context = sentenceAround(block.text, start, end);
  if (block.isHeading) block.heading = oneLine(block.text.slice(0, 300));
  block.text = "";
  block.isHeading = false;
  block.links = [];
}

function sentenceAround(text: string, start: number, end: number): string {
  const before = text.slice(Math.max(0, start - contextChars), start);
  const after = text.slice(end, end + contextChars);
  const begin = before.search(/[.!?。][\s)][^.!?。]*$/);
  const stop = after.search(/[.!?。](\s|$)/);
  const sentenceStart = begin < 0 ? before : before.slice(begin + 1);
  const sentenceEnd = stop < 0 ? after : after.slice(0, stop + 1);
  return oneLine(sentenceStart + text.slice(start, end).slice(0, contextChars) + sentenceEnd);
}
