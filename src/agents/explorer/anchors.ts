import { pageKey } from "../../net/page-key.ts";
import { decodePercent } from "../../net/percent.ts";
import type { Check } from "../agent.ts";
import type { DocLink } from "../markup.ts";
import { namesSection } from "../section-names.ts";
import type { Log } from "./fetching.ts";
import { lineOf } from "./links.ts";
import { readHtmlVersion } from "./page-fetching.ts";
import { type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** Maximum number of pages that are requested as HTML in one step, because their Markdown doesn't name its sections. */
const maxHtmlVersions = 20;
/** Fragments that may be the ID of an element. Others, such as `/guide?tab=2`, are for the scripts of a page. */
const testedFragment = /^[\w%.:@~()$,*+-]+$/;
/** Fragments that browsers or viewers of source code understand by themselves. */
const reservedFragment = /^(top|:~:|\d+(-\d+)?$)/i;
/** A line of a file of source code, as viewers of it understand. */
const lineNumber = /^L\d+/i;

type SectionLink = { link: DocLink; page: ReadPage; target: ReadPage; fragment: string };

/** Tests the fragments of the links of some pages, over all pages that were read. */
export async function* checkAnchors(session: Session, readPages: ReadPage[]): Steps {
  const pages = readPages.filter(({ problem }) => problem === null);
  if (pages.length === 0) return;
  yield* useTool(session, "check_anchors", { pages: pages.length }, async (log) => {
    const checks = (await findWrongLinks(session, pages, log)).map(toAnchorCheck);
    return { ok: true, output: { missing: checks.length }, checks, value: undefined };
  });
}

/** Links to sections that don't exist, of sites whose pages name their sections. */
async function findWrongLinks(session: Session, pages: ReadPage[], log: Log): Promise<SectionLink[]> {
  const targets = [...session.pages, ...session.surveyed].filter(({ problem }) => problem === null);
  const byKey = new Map(targets.flatMap((page) => page.addresses.map((address) => [pageKey(address), page] as const)));
  const namingOrigins = new Set(targets.filter(({ anchors }) => anchors?.size).map(({ url }) => new URL(url).origin));
  const links = pages.flatMap((page) => sectionLinksOf(page, byKey)).filter(({ target }) => isOwn(session, target));
  const unique = [...new Map(links.map((each) => [each.link.url, each])).values()];
  const inHtml = unique.filter(({ target, fragment }) => !hasAnchor(target, fragment));
  const inMarkdown = unique.filter(({ target, fragment }) => isMarkdown(target) && !namesSection(target, fragment));
  return [
    ...inHtml.filter(({ target }) => namingOrigins.has(new URL(target.url).origin)),
    ...(await missingInHtml(session, inMarkdown, log)),
  ];
}

const isOwn = ({ origins }: Session, { url }: ReadPage) => origins.has(new URL(url).origin);
const isMarkdown = ({ form }: ReadPage) => form === "markdown";

function sectionLinksOf(page: ReadPage, byKey: Map<string, ReadPage>): SectionLink[] {
  return page.links.flatMap((link) => {
    const [address = "", fragment = ""] = link.url.split(/#(.*)/s);
    const target = byKey.get(pageKey(address));
    if (!target || !testedFragment.test(fragment) || reservedFragment.test(fragment)) return [];
    return lineNumber.test(fragment) && isFile(target) ? [] : [{ link, page, target, fragment }];
  });
}

/** Whether a page is named like a file that isn't HTML. A viewer of source code may show such a file. */
const isFile = ({ url }: ReadPage): boolean => /\.(?!html?$)\w+$/.test(new URL(url).pathname);

/** Whether a page has an anchor. Also true if the HTML of the page is unknown. */
const hasAnchor = ({ anchors }: ReadPage, fragment: string): boolean =>
  anchors === null || anchors.has(fragment) || anchors.has(decodePercent(fragment) ?? fragment);

/** Returns the links whose section is missing in the HTML of the target page, too. Pages without HTML aren't judged. */
async function missingInHtml(session: Session, links: SectionLink[], log: Log): Promise<SectionLink[]> {
  const missing: SectionLink[] = [];
  const byTarget = [...Map.groupBy(links, ({ target }) => target)].slice(0, maxHtmlVersions);
  for (const [target, all] of byTarget) {
    const page = await readHtmlVersion(session, target, log);
    if (page?.anchors?.size) missing.push(...all.filter(({ fragment }) => !hasAnchor(page, fragment)));
  }
  return missing;
}

function toAnchorCheck({ link, page, target, fragment }: SectionLink): Check {
  return toCheck({
    id: "anchor-resolves",
    group: "link",
    status: "warn",
    share: 0.5,
    subject: link.url,
    url: page.url,
    line: lineOf(page.markdown, link.url),
    message: `A link points to "#${decodePercent(fragment) ?? fragment}" on ${target.url}, but no element on that page has this ID`,
    fix: "Add this ID to the element, or fix the link.",
    quote: link.text || link.url,
  });
}
