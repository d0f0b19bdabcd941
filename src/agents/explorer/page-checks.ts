import { pageKey } from "../../net/page-key.ts";
import type { Check } from "../agent.ts";
import { linkTarget, plainText } from "../markdown-links.ts";
import { isLeftToPictures } from "../page-problem.ts";
import { toStems, toTerms } from "./goal.ts";
import { type LinkGraph, menuOf, namesOf } from "./link-graph.ts";
import { readHtmlVersion } from "./page-fetching.ts";
import { ownText, toSections } from "./page-sections.ts";
import { rankSections, type SectionIndex } from "./sections.ts";
import { faultWeight, type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

type Rule = {
  id: string;
  share: number;
  /** Whether it says something only about a page on which the answer depends. */
  onlyIfNeeded?: true;
  /** Whether it says something about this page even if the answer doesn't depend on it. */
  isForAll?(page: ReadPage, site: SiteContent): boolean;
  /** Why the page fails; null if it doesn't. */
  findFault(
    page: ReadPage,
    site: SiteContent,
  ): { message: string; fix: string; line?: number | null; quote?: string | null } | null;
};

/** The number of pages of the session that contain a line of Markdown, and the links between them. */
type SiteContent = { lines: Map<string, number>; pages: number; graph: LinkGraph };

/** A page of this many characters is more than what fits into one answer to a model. */
const maxReadableChars = 500_000;
/** Bytes of text of a page, besides its headings and what other pages say as well, from which it has content. */
const minContentBytes = 80;
/** The shortest sentence. A page with less has no content. */
const minSentenceBytes = 12;
/** A page with no more text than this besides its title is empty, whatever the task. */
const maxStubBytes = 30;
/** An error page says no more than this. */
const maxErrorBytes = 300;
/** Pages from which on a line of most of them belongs to their template. */
const minPagesOfTemplate = 3;

function contentOf({ pages: path, surveyed, graph }: Session): SiteContent {
  const lines = new Map<string, number>();
  const pages = [...path, ...surveyed];
  for (const { markdown } of pages)
    for (const line of new Set(markdown.split("\n"))) lines.set(line, (lines.get(line) ?? 0) + 1);
  return { lines, pages: pages.length, graph };
}

/** What a page says besides what most pages of the site say. */
const ownLinesOf = ({ markdown }: ReadPage, { lines, pages }: SiteContent): string[] =>
  markdown.split("\n").filter((line) => pages < minPagesOfTemplate || lines.get(line)! <= pages / 2);

const withoutHeadings = (lines: string[]): string => lines.filter((line) => !line.startsWith("#")).join("\n");

const isBlank = (page: ReadPage, site: SiteContent): boolean =>
  page.samples.length === 0 && ownLinesOf(page, site).every((line) => line.trim() === "");

/** The first characters of what Markdown says. Its markup, of any length, doesn't count. */
const startOfText = (markdown: string): string =>
  plainText(
    markdown
      .replace(/\[([^[\]]*)\]\([^()]*\)/g, "$1")
      .replace(/<[^<>]+>/g, "")
      .replace(/\s+/g, " "),
  );

const linkedAddress = /\]\(<?([^()\s<>]+)/g;

/** Whether Markdown of a page links what neither the page itself nor the menu of the site does. */
function leadsFurther(content: string, { url, addresses }: ReadPage, { graph }: SiteContent): boolean {
  const known = new Set([...addresses.map(pageKey), ...menuOf(graph)]);
  return [...content.matchAll(linkedAddress)].some(
    ([, address]) => URL.canParse(address!, url) && !known.has(pageKey(new URL(address!, url).href)),
  );
}

/** Whether a page has hardly more than its title, or a sentence or two that say nothing of its name. */
function lacksContent(page: ReadPage, site: SiteContent): boolean {
  if (page.samples.length > 0) return false;
  const content = withoutHeadings(ownLinesOf(page, site));
  if (leadsFurther(content, page, site)) return page.isDeadEnd && lacksName(page, site);
  const bytes = Buffer.byteLength(startOfText(ownText(content)).trim());
  const isTitle = bytes < minContentBytes && site.pages >= minPagesOfTemplate;
  return isTitle || (bytes < maxErrorBytes && lacksName(page, site));
}

/** Whether a page has a title, and a word or two where its content belongs. */
function isStubOfPage(page: ReadPage, site: SiteContent): boolean {
  const own = ownLinesOf(page, site);
  const headings = own.filter((line) => /^#{1,6} /.test(line));
  const bytes = Buffer.byteLength(startOfText(ownText(withoutHeadings(own))).trim());
  return headings.length === 1 && bytes <= maxStubBytes && page.pictures === 0;
}

/** Whether a page has a sentence or two in place of its content, and nothing of its name: it says that something else is the case. */
const saysSomethingElse = (page: ReadPage, site: SiteContent): boolean =>
  lacksContent(page, site) &&
  lacksName(page, site) &&
  Buffer.byteLength(startOfText(withoutHeadings(ownLinesOf(page, site))).trim()) >= minSentenceBytes;

/** A link with nothing around it. */
const linkLine = /^\s*(?:[-*] )?\[[^[\]]*\]\([^()\s]*\)\s*$/;

/** Whether all that a page says besides its template are pictures, and few words about them. */
function showsOnlyPictures(page: ReadPage, site: SiteContent): boolean {
  if (page.samples.length > 0 || site.pages < minPagesOfTemplate || page.pictures === 0) return false;
  const own = ownLinesOf(page, site);
  const rest = own.filter((line) => !linkLine.test(line));
  const linkCount = own.length - rest.length;
  return linkCount <= page.pictures && isLeftToPictures(wordsOf(rest.join("\n")).length, page.pictures);
}

const restoreOrRemove = "Restore the page, or return status 404 and remove the links to it.";
const textInsteadOfPictures = "Write the instructions and the code as text, and keep the pictures beside it.";

/** What can be wrong with a page that can be read. */
const rules: Rule[] = [
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
    onlyIfNeeded: true,
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
    onlyIfNeeded: true,
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
    onlyIfNeeded: true,
    findFault: (page, site) =>
      saysSomethingElse(page, site) && !looksLikeErrorPage(page, site)
        ? {
            message: `${page.url} (“${page.title.slice(0, 100)}”) has a sentence or two that say nothing of what the links to it say, like an error page`,
            fix: restoreOrRemove,
          }
        : null,
  },
  {
    id: "page-has-content",
    share: 0.5,
    onlyIfNeeded: true,
    isForAll: isStubOfPage,
    findFault: (page, site) => {
      const { url, title } = page;
      return lacksContent(page, site) &&
        !isBlank(page, site) &&
        !saysSomethingElse(page, site) &&
        !looksLikeErrorPage(page, site)
        ? {
            message: `${url} (“${title.slice(0, 100)}”) has hardly any text besides its title`,
            fix: restoreOrRemove,
          }
        : null;
    },
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

/** Whether a page says nothing of what the links to it and its URL say. */
function lacksName(page: ReadPage, site: SiteContent): boolean {
  const own = new Set(toStems(`${page.title} ${ownLinesOf(page, site).join(" ")}`));
  const names = page.addresses.flatMap((address) => [...namesOf(site.graph, address), nameInPath(address)]);
  const words = names.flatMap(toTerms);
  return words.length > 0 && !words.some(({ stem }) => own.has(stem));
}

/** Whether a page leads nowhere, says nothing of its name and lacks the menu of its site. */
function looksLikeErrorPage(page: ReadPage, site: SiteContent): boolean {
  if (!page.isDeadEnd || !lacksName(page, site)) return false;
  const targets = new Set(page.links.map(({ url }) => pageKey(url)));
  const menu = menuOf(site.graph);
  return menu.length > 1 && menu.some((key) => !targets.has(key));
}

const nameInPath = (address: string): string =>
  (new URL(address).pathname.split("/").filter(Boolean).at(-1) ?? "").replace(/\.\w+$/, "").replace(/[-_]/g, " ");

/** Checks how pages are sent, and that they say in text what they have to say. */
export async function* checkPagesRead(session: Session, readPages: ReadPage[]): Steps {
  const pages = readPages.filter(({ problem }) => problem === null);
  if (pages.length === 0) return;
  yield* useTool(session, "check_pages", { pages: pages.length }, async () => {
    const site = contentOf(session);
    const checks = pages.flatMap((page) => rules.flatMap((rule) => checkRule(page, rule, session, site)));
    return { ok: true, output: { pages: pages.length, faults: checks.length }, checks, value: undefined };
  });
}

/** Maximum number of pages whose HTML is requested because it may say what their Markdown can't. */
const maxHtmlVersions = 8;

/** Checks that search engines may list what was read: pages that the answer needs, or, if they list none, the whole site. */
export async function* checkNoindex(session: Session, index: SectionIndex): Steps {
  const pages = [...session.pages, ...session.surveyed].filter(({ problem }) => problem === null);
  if (pages.length === 0) return;
  const nearest = rankSections(index)[0]?.section.url;
  const needed = pages.filter(
    ({ url, addresses }) => url === nearest || addresses.some((address) => session.neededUrls.has(address)),
  );
  const inMarkdown = needed.filter(({ form, isUnlisted }) => form === "markdown" && !isUnlisted);
  yield* useTool(session, "check_listed", { pages: pages.length }, async (log) => {
    const ruleOfUnlisted = new Map(
      pages.filter(({ isUnlisted }) => isUnlisted).map((page) => [page, page.source.robots]),
    );
    for (const page of inMarkdown.slice(0, maxHtmlVersions)) {
      const htmlVersion = await readHtmlVersion(session, page, log);
      if (htmlVersion?.isUnlisted) ruleOfUnlisted.set(page, htmlVersion.source.robots);
    }
    const unlisted = [...ruleOfUnlisted];
    const isWholeSite = unlisted.length === pages.length;
    const reported = isWholeSite ? unlisted.slice(0, 1) : unlisted.filter(([page]) => needed.includes(page));
    const checks = reported.map(([{ url }, rule]) =>
      toCheck({
        id: "page-listed",
        group: "page",
        status: isWholeSite ? "warn" : "fail",
        share: 0.5,
        weight: faultWeight,
        subject: url,
        line: rule?.line ?? null,
        quote: rule?.text ?? null,
        message: `${isWholeSite ? "Every page that was read, such as" : "A page that the answer needs,"} ${url}, asks search engines not to list it (noindex), so agents that search don't find it`,
        fix: "Remove noindex from the page.",
      }),
    );
    return { ok: true, output: { unlisted: unlisted.length }, checks, value: undefined };
  });
}

/** A sentence with a colon announces what follows, in any language; a short text beside the picture is only its name. */
const announcedPicture = /[:：]\s*\n\s*!\[[^\]]{0,39}\]/;
/** A longer section says in words what an announced picture shows, in characters. */
const maxAnnouncement = 300;

/** The line of the first picture of a page from a line on; null if none is in its Markdown. */
function lineOfPicture({ markdown }: ReadPage, fromLine = 1): number | null {
  const index = markdown.split("\n").findIndex((line, at) => at + 1 >= fromLine && line.includes("!["));
  return index < 0 ? null : index + 1;
}

const picture = new RegExp(String.raw`!\[([^\]]*)\]${linkTarget}`, "g");

/** What Markdown says besides its headings, with the texts of its pictures. */
const wordsOf = (markdown: string): string => startOfText(markdown.replace(picture, "$1").replace(/^#.*$/gm, ""));

/** Whether pictures stand where a text or a sample belongs. */
const hasPicturesOnly = (markdown: string): boolean =>
  isLeftToPictures(wordsOf(markdown).length, markdown.split("![").length - 1);

/** Whether Markdown announces a picture, and says little else. */
const isAnnouncement = (markdown: string): boolean =>
  announcedPicture.test(markdown) && wordsOf(markdown).length < maxAnnouncement;

/** Checks that the page nearest to the goal says in text, and not in a picture, how to reach it. */
export async function* checkPictures(session: Session, index: SectionIndex): Steps {
  const nearest = rankSections(index)[0]?.section;
  const page = [...session.pages, ...session.surveyed].find(({ url }) => url === nearest?.url);
  if (!nearest || !page || page.hasOnlyImages || !page.markdown.includes("![")) return;
  const isLeft = page.samples.length === 0 && hasPicturesOnly(ownLinesOf(page, contentOf(session)).join("\n"));
  const parts = toSections(page).filter(
    ({ path, hasSample }) => !hasSample && nearest.path.every((name, at) => name === path[at]),
  );
  const part = parts.find(({ text }) => hasPicturesOnly(text) || isAnnouncement(text));
  if (!isLeft && part === undefined) return;
  yield* useTool(session, "check_pictures", { url: page.url }, async () => ({
    ok: true,
    output: { whole: isLeft },
    checks: [
      toCheck({
        id: "text-instead-of-pictures",
        group: "page",
        ...(isLeft ? { status: "fail" } : { status: "warn", share: 0.5 }),
        subject: page.url,
        line: lineOfPicture(page, (part ?? nearest).line),
        message: `${page.url} leaves to an image how to reach the goal`,
        fix: textInsteadOfPictures,
      }),
    ],
    value: undefined,
  }));
}

function checkRule(
  page: ReadPage,
  { id, share, onlyIfNeeded, isForAll, findFault }: Rule,
  { neededUrls }: Session,
  site: SiteContent,
): Check[] {
  const needed = page.addresses.some((address) => neededUrls.has(address));
  const applies = needed || !onlyIfNeeded || isForAll?.(page, site);
  const fault = applies ? findFault(page, site) : null;
  if (fault === null) return [];
  const status = share === 0 ? "fail" : "warn";
  return [
    {
      ...toCheck({ id, group: "page", status, share, weight: faultWeight, subject: page.url, ...fault }),
      ...(needed && { needed }),
    },
  ];
}
