import { pageKey } from "../../net/page-key.ts";
import { linkTarget, plainText } from "../markdown-links.ts";
import { isLeftToPictures } from "../page-problem.ts";
import { toStems, toTerms } from "./goal.ts";
import { type LinkGraph, menuOf, namesOf } from "./link-graph.ts";
import { depthMessage } from "./nesting.ts";
import { ownText } from "./page-sections.ts";
import type { ReadPage, Session } from "./session.ts";

/** What can be wrong with a page that can be read. `share`: how much of the page is still right, from 0 to 1. */
export type PageRule = {
  id: string;
  share: number;
  /** Whether the rule also applies to this page if the answer doesn't depend on it. Default: it does. */
  appliesUnneeded?(page: ReadPage, site: SiteContent): boolean;
  /** Whether readers don't get the content of the page. */
  hidesContent?: true;
  /** Why the page fails; null if it doesn't. */
  findFault(
    page: ReadPage,
    site: SiteContent,
  ): { message: string; fix: string; line?: number | null; quote?: string | null } | null;
};

/** What the pages of a session have in common. */
export type SiteContent = {
  /** How many of the `pages` contain a line of Markdown, by its pattern. */
  lines: Map<string, number>;
  pages: number;
  graph: LinkGraph;
  /** Keys of the start URLs. */
  starts: Set<string>;
  /** The pages that were opened on the way to the answer, besides the start pages. */
  path: Set<ReadPage>;
  /** The stems of the goal's words. */
  goal: Set<string>;
};

/** A page with more characters doesn't fit into one answer to a model. */
const maxReadableChars = 500_000;
/** From this many bytes of text on, a page has content. Its headings don't count, nor does what other pages say as well. */
const minContentBytes = 80;
/** The shortest sentence. A page with less has no content. */
const minSentenceBytes = 12;
/** A page with no more text than this besides its title is empty, whatever the task. */
const maxStubBytes = 30;
/** An error page says no more than this. */
const maxErrorBytes = 300;
/** With more headings, a page has sections, and error pages have none. */
const maxErrorHeadings = 2;
/** A link in Markdown. */
const linkOfLine = new RegExp(String.raw`\[[^[\]]*\]${linkTarget}`, "g");
/** From this number of pages on, a line that most of them have belongs to their template. */
const minPagesOfTemplate = 3;

export function contentOf({ pages: opened, surveyed, graph, task, terms }: Session): SiteContent {
  const starts = new Set(task.startUrls.map(pageKey));
  const path = new Set(opened.filter(({ addresses }) => !addresses.some((address) => starts.has(pageKey(address)))));
  const lines = new Map<string, number>();
  const pages = [...opened, ...surveyed];
  for (const { markdown } of pages)
    for (const line of new Set(markdown.split("\n").map(toPattern))) lines.set(line, (lines.get(line) ?? 0) + 1);
  return { lines, pages: pages.length, graph, starts, path, goal: new Set(terms.map(({ stem }) => stem)) };
}

/**
 * A line in a form that is the same on pages with other links, dates and numbers: "Next: [Install](…)". A line with nothing but links stays as it is.
 */
function toPattern(line: string): string {
  const pattern = line.replace(linkOfLine, "[]").replace(/\d+/g, "0");
  return /\p{L}/u.test(pattern) ? pattern : line;
}

/** The lines of a page that most pages of the site don't have. */
export const ownLinesOf = ({ markdown }: ReadPage, { lines, pages }: SiteContent): string[] =>
  markdown.split("\n").filter((line) => pages < minPagesOfTemplate || lines.get(toPattern(line))! <= pages / 2);

const withoutHeadings = (lines: string[]): string => lines.filter((line) => !line.startsWith("#")).join("\n");

const isBlank = (page: ReadPage, site: SiteContent): boolean =>
  page.samples.length === 0 && ownLinesOf(page, site).every((line) => line.trim() === "");

/** The first characters of the text in Markdown: `plainText` cuts it. The longest markup is removed before, so that it takes no room. */
const startOfText = (markdown: string): string =>
  plainText(
    markdown
      .replace(/\[([^[\]]*)\]\([^()]*\)/g, "$1")
      .replace(/<[^<>]+>/g, "")
      .replace(/\s+/g, " "),
  );

const linkedAddress = /\]\(<?([^()\s<>]+)/g;

/**
 * Whether Markdown of a page links to pages other than itself, the start and the menu of the site. Links into the page's own folder count in any
 * case.
 */
function leadsFurther(content: string, { url, addresses }: ReadPage, { graph, starts }: SiteContent): boolean {
  const own = new Set(addresses.map(pageKey));
  const known = new Set([...starts, ...menuOf(graph)]);
  const folders = addresses.flatMap((address) => folderOf(address) ?? []);
  return [...content.matchAll(linkedAddress)].some(([, address]) => {
    const target = URL.parse(address!, url)?.href;
    if (target === undefined || own.has(pageKey(target))) return false;
    return !known.has(pageKey(target)) || folders.some((folder) => target.startsWith(folder));
  });
}

/** The folder of which a page is the index; null if its URL is the URL of a single page. */
const folderOf = (address: string): string | null =>
  /^[^?#]*\/(?=(?:index\.\w+)?(?:[?#]|$))/.exec(address)?.[0] ?? null;

/** Whether readers start at a page. Such a page only has to lead them elsewhere. */
const isEntrance = ({ addresses, links }: ReadPage, { starts }: SiteContent): boolean =>
  addresses.some((address) => starts.has(pageKey(address))) &&
  links.some(({ url }) => !addresses.some((address) => pageKey(address) === pageKey(url)));

/** An index has more links. */
const maxLinksOfStub = 2;

/** Whether Markdown is only a list of links, even if the menu has the same links. */
function isIndex(content: string): boolean {
  const lines = content.split("\n").filter((line) => line.trim() !== "");
  const listed = lines.filter((line) => linkLine.test(line));
  return listed.length > maxLinksOfStub && lines.every((line) => line.includes("]("));
}

/** The texts of the links to a page, and its names in its URLs. */
const namesOfPage = ({ addresses }: ReadPage, { graph }: SiteContent): string[] =>
  addresses.flatMap((address) => [...namesOf(graph, address), nameInPath(address)]);

/** Whether a page doesn't mention its name, which is in the links to it and in its URL. */
function lacksName(page: ReadPage, site: SiteContent): boolean {
  const own = new Set(toStems(`${page.title} ${ownLinesOf(page, site).join(" ")}`));
  const words = namesOfPage(page, site).flatMap(toTerms);
  return words.length > 0 && !words.some(({ stem }) => own.has(stem));
}

/** Whether a page has hardly more than its title, or only a sentence or two that don't mention its name. */
function lacksContent(page: ReadPage, site: SiteContent): boolean {
  if (page.samples.length > 0 || page.hasTools || isEntrance(page, site)) return false;
  const own = ownLinesOf(page, site);
  const content = withoutHeadings(own);
  // A list of links is the content of an index.
  if (isIndex(content)) return false;
  // With a link to another page, only an error page has no content.
  if (leadsFurther(content, page, site)) return page.isDeadEnd && lacksName(page, site);
  const beside = own.filter((line) => !line.startsWith("#") && line.trim() !== page.title);
  const text = startOfText(ownText(beside.join("\n"))).trim();
  const bytes = Buffer.byteLength(text);
  const hasSections = own.filter((line) => line.startsWith("#")).length > maxErrorHeadings;
  const isShort = bytes < (hasSections ? minSentenceBytes : minContentBytes);
  const hasCode = /`[^`]+`/.test(content);
  const isTitle = isShort && !hasCode && !saysName(text, page, site);
  // On fewer pages, the lines of the template are unknown.
  if (isTitle && site.pages >= minPagesOfTemplate) return true;
  // A sentence or two about something else.
  return bytes < maxErrorBytes && !hasSections && lacksName(page, site);
}

/** Whether a text has a word of the page's name, which is in the links to the page and in its URL. */
function saysName(text: string, page: ReadPage, site: SiteContent): boolean {
  const words = new Set(toStems(text));
  return namesOfPage(page, site)
    .flatMap(toStems)
    .some((stem) => words.has(stem));
}

/** Whether a page has a title, but only a word or two in place of its content that don't mention its name. */
function isStubOfPage(page: ReadPage, site: SiteContent): boolean {
  const own = ownLinesOf(page, site);
  const headings = own.filter((line) => /^#{1,6} /.test(line));
  const text = startOfText(ownText(withoutHeadings(own))).trim();
  return (
    headings.length === 1 &&
    Buffer.byteLength(text) <= maxStubBytes &&
    page.pictures === 0 &&
    !saysName(text, page, site)
  );
}

/**
 * What a page has in place of its content. `sentence`: a sentence or two that don't mention its name, so they must be about something else. `title`:
 * hardly more than its title. null: it has content, has no text at all, or looks like an error page.
 */
function insteadOfContent(page: ReadPage, site: SiteContent): "sentence" | "title" | null {
  if (!lacksContent(page, site) || looksLikeErrorPage(page, site)) return null;
  const text = startOfText(withoutHeadings(ownLinesOf(page, site))).trim();
  if (lacksName(page, site) && Buffer.byteLength(text) >= minSentenceBytes) return "sentence";
  return isBlank(page, site) ? null : "title";
}

/** Whether a page was opened on the way to the answer because links to it name the goal, but it isn't an index of other pages. */
const leadsNowhere = (page: ReadPage, site: SiteContent): boolean =>
  site.path.has(page) &&
  withoutHeadings(ownLinesOf(page, site)).split("](").length - 1 <= maxLinksOfStub &&
  namesOfPage(page, site).some((name) => toStems(name).some((stem) => site.goal.has(stem)));

/** A link with nothing around it. */
const linkLine = /^\s*(?:[-*] )?\[[^[\]]*\]\([^()\s]*\)\s*$/;
/** A link whose text is no picture. */
const textLink = /(?<!!)\[[^[\]]+\]\(/g;

/** Whether a page, apart from its template, shows only pictures with few words about them. */
function showsOnlyPictures(page: ReadPage, site: SiteContent): boolean {
  if (page.samples.length > 0 || site.pages < minPagesOfTemplate || page.pictures === 0) return false;
  const own = ownLinesOf(page, site);
  const isInTemplate = (mark: string) => page.markdown.includes(mark) && !own.some((line) => line.includes(mark));
  if (isInTemplate("![")) return false;
  const rest = own.filter((line) => !linkLine.test(line));
  const linkCount = own.join("\n").match(textLink)?.length ?? 0;
  return linkCount <= page.pictures && isLeftToPictures(proseOf(rest.join("\n")).length, page.pictures);
}

const restoreOrRemove = "Restore the page, or return status 404 and remove the links to it.";
export const textInsteadOfPictures = "Write the instructions and the code as text, and keep the pictures beside it.";

export const pageRules: PageRule[] = [
  {
    id: "charset-matches",
    share: 0,
    findFault: ({ url, delivery: { wrongCharset } }) =>
      wrongCharset && {
        message: `${url} is garbled: it is declared as ${wrongCharset.declared}, but encoded as ${wrongCharset.actual}`,
        fix: `Send the page in UTF-8, and declare that in its content type.`,
      },
  },
  {
    id: "content-type-matches",
    share: 0,
    findFault: ({ url, form, delivery: { contentType } }) =>
      form === "html" && contentType !== null && !/html/i.test(contentType)
        ? {
            message: `${url} is HTML, but its content type is ${contentType}, so readers see the source`,
            fix: "Set the content type text/html.",
          }
        : null,
  },
  {
    id: "text-instead-of-pictures",
    share: 0,
    hidesContent: true,
    findFault: (page, site) =>
      page.hasOnlyImages || showsOnlyPictures(page, site)
        ? {
            message: `${page.url} has pictures and almost no text, so agents that read text learn nothing`,
            fix: textInsteadOfPictures,
            line: lineOfPicture(page),
          }
        : null,
  },
  {
    id: "tabs-have-content",
    share: 0,
    hidesContent: true,
    findFault: ({ url, emptyTabs, source: { tabs } }) =>
      emptyTabs > 0
        ? {
            line: tabs?.line ?? null,
            quote: tabs?.text ?? null,
            message: `${url} has ${emptyTabs} ${emptyTabs === 1 ? "tab" : "tabs"} whose content scripts load, so readers without a browser don't get it`,
            fix: "Include the content of all tabs in the HTML that the server sends.",
          }
        : null,
  },
  {
    id: "nesting-depth",
    share: 0,
    findFault: ({ url, delivery: { isTooDeep } }) =>
      isTooDeep
        ? { message: depthMessage(url), fix: "Close every element, and put fewer elements inside each other." }
        : null,
  },
  {
    id: "markdown-code-fence-validity",
    share: 0,
    findFault({ url, samples }) {
      const open = samples.find(({ isClosed }) => !isClosed);
      return open
        ? {
            message: `The code fence in line ${open.line} of ${url} is never closed, so readers take what follows for code`,
            fix: "Close the fence after the code.",
            line: open.line,
          }
        : null;
    },
  },
  {
    id: "page-size",
    share: 0.5,
    appliesUnneeded: (page, { path }) => path.has(page),
    findFault: ({ url, markdown: { length } }) =>
      length >= maxReadableChars
        ? {
            message: `${url} has ${Math.round(length / 1000).toLocaleString("en")},000 characters, more than most agents read of a page`,
            fix: "Divide the page, and link its parts.",
          }
        : null,
  },
  {
    id: "has-text",
    share: 0,
    hidesContent: true,
    appliesUnneeded: () => false,
    findFault: (page, site) =>
      isBlank(page, site)
        ? {
            message: `${page.url} has no text besides what all pages of the site say`,
            fix: "Restore the content of the page, or remove the links to it.",
          }
        : null,
  },
  {
    id: "missing-pages-say-so",
    share: 0,
    hidesContent: true,
    findFault: (page, site) =>
      looksLikeErrorPage(page, site)
        ? {
            message: `${page.url} (“${page.title.slice(0, 100)}”) looks like an error page: it has no menu, and nothing of what the links to it say`,
            fix: restoreOrRemove,
          }
        : null,
  },
  {
    id: "missing-pages-say-so",
    share: 0.5,
    hidesContent: true,
    appliesUnneeded: leadsNowhere,
    findFault: (page, site) =>
      insteadOfContent(page, site) === "sentence"
        ? {
            message: `${page.url} (“${page.title.slice(0, 100)}”) has a sentence or two that say nothing of what the links to it say, like an error page`,
            fix: restoreOrRemove,
          }
        : null,
  },
  {
    id: "page-has-content",
    share: 0.5,
    hidesContent: true,
    appliesUnneeded: (page, site) => isStubOfPage(page, site) || leadsNowhere(page, site),
    findFault: (page, site) =>
      insteadOfContent(page, site) === "title"
        ? {
            message: `${page.url} (“${page.title.slice(0, 100)}”) has hardly any text besides its title`,
            fix: restoreOrRemove,
          }
        : null,
  },
  {
    id: "redirects-by-status",
    share: 0.75,
    findFault: ({ url, delivery: { followed } }) =>
      followed.length > 0
        ? {
            message: `${followed.join(" and ")} sends readers to ${url} by HTML or JavaScript, which many don't follow`,
            fix: "Redirect with status 301 or 308.",
          }
        : null,
  },
];

/** Whether a page leads nowhere, doesn't mention its name and lacks the menu of its site. */
function looksLikeErrorPage(page: ReadPage, site: SiteContent): boolean {
  if (!page.isDeadEnd || !lacksName(page, site)) return false;
  const targets = new Set(page.links.map(({ url }) => pageKey(url)));
  const menu = menuOf(site.graph);
  return menu.length > 1 && menu.some((key) => !targets.has(key));
}

const nameInPath = (address: string): string =>
  (new URL(address).pathname.split("/").filter(Boolean).at(-1) ?? "").replace(/\.\w+$/, "").replace(/[-_]/g, " ");

/** The line of the first picture of a page from a line on; null if none is in its Markdown. */
export function lineOfPicture({ markdown }: ReadPage, fromLine = 1): number | null {
  const index = markdown.split("\n").findIndex((line, at) => at + 1 >= fromLine && line.includes("!["));
  return index < 0 ? null : index + 1;
}

const picture = new RegExp(String.raw`!\[([^\]]*)\]${linkTarget}`, "g");

/** What Markdown says besides its headings, with the texts of its pictures. */
export const proseOf = (markdown: string): string =>
  startOfText(markdown.replace(picture, "$1").replace(/^#.*$/gm, ""));
