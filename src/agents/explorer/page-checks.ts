import type { Check } from "../agent.ts";
import { plainText } from "../markdown-links.ts";
import { rankSections, type SectionIndex } from "./sections.ts";
import { type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

type Rule = {
  id: string;
  share: number;
  /** Whether it says something only about a page on which the answer depends. */
  onlyIfNeeded?: true;
  /** Why the page fails; null if it doesn't. */
  findFault(page: ReadPage): { message: string; fix: string } | null;
};

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
    findFault: ({ url, hasOnlyImages }) =>
      hasOnlyImages
        ? {
            message: `${url} has pictures and almost no text, so agents that read text learn nothing`,
            fix: textInsteadOfPictures,
          }
        : null,
  },
  {
    id: "tabs-have-content",
    share: 0,
    findFault: ({ url, emptyTabs }) =>
      emptyTabs > 0
        ? {
            message: `${url} has ${emptyTabs} ${emptyTabs === 1 ? "tab" : "tabs"} whose content scripts load, so readers without a browser don't get it`,
            fix: "Include the content of all tabs in the HTML that the server sends.",
          }
        : null,
  },
  {
    id: "page-has-content",
    share: 0.5,
    onlyIfNeeded: true,
    findFault: ({ url, title, isDeadEnd }) =>
      isDeadEnd
        ? {
            message: `${url} (“${title.slice(0, 100)}”) has a sentence or two and leads nowhere, like an error page`,
            fix: "Restore the page, or return status 404 and remove the links to it.",
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

/** Checks how pages are sent, and that they say in text what they have to say. */
export async function* checkPagesRead(session: Session, readPages: ReadPage[]): Steps {
  const pages = readPages.filter(({ problem }) => problem === null);
  if (pages.length === 0) return;
  yield* useTool(session, "check_pages", { pages: pages.length }, async () => {
    const checks = pages.flatMap((page) => rules.flatMap((rule) => checkRule(page, rule, session)));
    return { ok: true, output: { pages: pages.length, faults: checks.length }, checks, value: undefined };
  });
}

/** Checks that search engines may list what was read: pages of the path, or, if they list none, the whole site. */
export async function* checkNoindex(session: Session): Steps {
  const pages = [...session.pages, ...session.surveyed].filter(({ problem }) => problem === null);
  const unlisted = pages.filter(({ isUnlisted }) => isUnlisted);
  const isWholeSite = unlisted.length === pages.length;
  const reported = isWholeSite ? unlisted.slice(0, 1) : unlisted.filter((page) => session.pages.includes(page));
  if (reported.length === 0) return;
  yield* useTool(session, "check_listed", { pages: pages.length }, async () => {
    const checks = reported.map(({ url }) =>
      toCheck({
        id: "page-listed",
        group: "page",
        status: "warn",
        share: 0.5,
        subject: url,
        message: `${isWholeSite ? "Every page that was read, such as" : "A page on the way to the answer,"} ${url}, asks search engines not to list it (noindex), so agents that search don't find it`,
        fix: "Remove noindex from the page.",
      }),
    );
    return { ok: true, output: { unlisted: unlisted.length }, checks, value: undefined };
  });
}

/** A page with less text than this beside its pictures leaves the instructions to them, in characters. */
const maxCaption = 300;
/** A sentence with a colon announces what follows, in any language. */
const announcedPicture = /[:：]\s*\n\s*!\[/;

/** Checks that the page nearest to the goal says in text, and not in a picture, how to reach it. */
export async function* checkPictures(session: Session, index: SectionIndex): Steps {
  const nearest = rankSections(index)[0]?.section;
  const page = [...session.pages, ...session.surveyed].find(({ url }) => url === nearest?.url);
  if (!nearest || !page || page.samples.length > 0 || page.hasOnlyImages || !page.markdown.includes("![")) return;
  const prose = plainText(page.markdown.replace(/!\[[^\]]*\]\([^)]*\)|^#.*$/gm, "")).trim();
  if (prose.length >= maxCaption && !announcedPicture.test(page.markdown)) return;
  yield* useTool(session, "check_pictures", { url: page.url }, async () => ({
    ok: true,
    output: { chars: prose.length },
    checks: [
      toCheck({
        id: "text-instead-of-pictures",
        group: "page",
        status: "fail",
        subject: page.url,
        line: nearest.line,
        message: `${page.url} leaves to a picture how to reach the goal`,
        fix: textInsteadOfPictures,
      }),
    ],
    value: undefined,
  }));
}

function checkRule(page: ReadPage, { id, share, onlyIfNeeded, findFault }: Rule, { neededUrls }: Session): Check[] {
  const fault = findFault(page);
  const needed = page.addresses.some((address) => neededUrls.has(address));
  if (fault === null || (onlyIfNeeded && !needed)) return [];
  const status = share === 0 ? "fail" : "warn";
  return [{ ...toCheck({ id, group: "page", status, share, subject: page.url, ...fault }), ...(needed && { needed }) }];
}
