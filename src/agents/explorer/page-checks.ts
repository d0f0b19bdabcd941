import type { Check } from "../agent.ts";
import { isLeftToPictures } from "../page-problem.ts";
import { readHtmlVersion } from "./page-fetching.ts";
import {
  contentOf,
  lineOfPicture,
  ownLinesOf,
  type PageRule,
  pageRules,
  proseOf,
  type SiteContent,
  textInsteadOfPictures,
} from "./page-rules.ts";
import { toSections } from "./page-sections.ts";
import { rankSections, type SectionIndex } from "./sections.ts";
import { faultWeight, type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** Checks how pages are sent, and whether they say what they have to say as text. */
export async function* checkPagesRead(session: Session, readPages: ReadPage[]): Steps {
  const pages = readPages.filter(({ problem }) => problem === null);
  if (pages.length === 0) return;
  yield* useTool(session, "check_pages", { pages: pages.length }, async () => {
    const site = contentOf(session);
    const checks = pages.flatMap((page) => pageRules.flatMap((rule) => checkRule(page, rule, session, site)));
    return { ok: true, output: { pages: pages.length, faults: checks.length }, checks, value: undefined };
  });
}

/** Maximum number of pages whose HTML is requested because it may say what their Markdown can't. */
const maxHtmlVersions = 8;

/**
 * Checks that search engines may list the pages that the answer needs. If they may not list any page that was read, a single check reports it for all
 * pages.
 */
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

/** A sentence with a colon announces what follows, in any language. A picture after it has only a short text, which is its name. */
const announcedPicture = /[:：]\s*\n\s*!\[[^\]]{0,39}\]/;
/** Maximum characters of a section that only announces a picture. A longer section says in words what the picture shows. */
const maxAnnouncement = 300;

/** Whether pictures stand where a text or a sample belongs. */
const hasPicturesOnly = (markdown: string): boolean =>
  isLeftToPictures(proseOf(markdown).length, markdown.split("![").length - 1);

/** Whether Markdown announces a picture, and says little else. */
const isAnnouncement = (markdown: string): boolean =>
  announcedPicture.test(markdown) && proseOf(markdown).length < maxAnnouncement;

/** Checks that the page nearest to the goal says in text, and not in a picture, how to reach it. */
export async function* checkPictures(session: Session, index: SectionIndex): Steps {
  const nearest = rankSections(index)[0]?.section;
  const page = [...session.pages, ...session.surveyed].find(({ url }) => url === nearest?.url);
  if (!nearest || !page || page.hasOnlyImages || !page.markdown.includes("![")) return;
  const isWholePage = page.samples.length === 0 && hasPicturesOnly(ownLinesOf(page, contentOf(session)).join("\n"));
  const isInNearest = (path: string[]) => nearest.path.every((name, depth) => name === path[depth]);
  const part = toSections(page).find(
    ({ path, hasSample, text }) => !hasSample && isInNearest(path) && (hasPicturesOnly(text) || isAnnouncement(text)),
  );
  if (!isWholePage && part === undefined) return;
  session.incompletePages.add(page);
  yield* useTool(session, "check_pictures", { url: page.url }, async () => ({
    ok: true,
    output: { whole: isWholePage },
    checks: [
      toCheck({
        id: "text-instead-of-pictures",
        group: "page",
        ...(isWholePage ? { status: "fail" } : { status: "warn", share: 0.5 }),
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
  { id, share, appliesUnneeded, hidesContent, findFault }: PageRule,
  { neededUrls, incompletePages }: Session,
  site: SiteContent,
): Check[] {
  const needed = page.addresses.some((address) => neededUrls.has(address));
  const applies = needed || appliesUnneeded === undefined || appliesUnneeded(page, site);
  const fault = applies ? findFault(page, site) : null;
  if (fault === null) return [];
  if (hidesContent) incompletePages.add(page);
  const status = share === 0 ? "fail" : "warn";
  return [
    {
      ...toCheck({ id, group: "page", status, share, weight: faultWeight, subject: page.url, ...fault }),
      ...(needed && { needed }),
    },
  ];
}
