import type { Check } from "../agent.ts";
import { plainText } from "../markdown-links.ts";
import { rankSections, type SectionIndex } from "./sections.ts";
import { type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

type Rule = {
  id: string;
  share: number;
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

/** A page that search engines don't list, while they list others of the site. */
const listedRule: Rule = {
  id: "page-listed",
  share: 0.5,
  findFault: ({ url, isUnlisted }) =>
    isUnlisted
      ? {
          message: `${url} asks search engines not to list it, so agents that search don't find it`,
          fix: "Remove noindex from the page.",
        }
      : null,
};

/** Checks how pages are sent, and that they say in text what they have to say. */
export async function* checkPagesRead(session: Session, readPages: ReadPage[]): Steps {
  const pages = readPages.filter(({ problem }) => problem === null);
  if (pages.length === 0) return;
  const isSiteListed = [...session.pages, ...session.surveyed].some(({ isUnlisted }) => !isUnlisted);
  const applied = isSiteListed ? [...rules, listedRule] : rules;
  yield* useTool(session, "check_pages", { pages: pages.length }, async () => {
    const checks = pages.flatMap((page) => applied.flatMap((rule) => judge(page, rule, session)));
    return { ok: true, output: { pages: pages.length, faults: checks.length }, checks, value: undefined };
  });
}

/** A section with a picture and less text than this leaves the instructions to the picture, in characters. */
const maxCaption = 300;

/** Checks that the section nearest to the goal says in text, and not in a picture, how to reach it. */
export async function* checkPictures(session: Session, index: SectionIndex): Steps {
  const nearest = rankSections(index)[0]?.section;
  if (!nearest || nearest.hasSample || !/!\[[^\]]*\]\(/.test(nearest.text)) return;
  const prose = plainText(nearest.text.replace(/!\[[^\]]*\]\([^)]*\)|^#.*$/gm, "")).trim();
  const page = [...session.pages, ...session.surveyed].find(({ url }) => url === nearest.url);
  if (prose.length >= maxCaption || page?.hasOnlyImages) return;
  yield* useTool(session, "check_pictures", { url: nearest.url, heading: nearest.heading }, async () => ({
    ok: true,
    output: { chars: prose.length },
    checks: [
      toCheck({
        ...{ id: "text-instead-of-pictures", group: "page", status: "fail", subject: nearest.url, line: nearest.line },
        message: `The section “${nearest.heading}” of ${nearest.url} leaves its instructions to a picture`,
        fix: textInsteadOfPictures,
      }),
    ],
    value: undefined,
  }));
}

function judge(page: ReadPage, { id, share, findFault }: Rule, { neededUrls }: Session): Check[] {
  const fault = findFault(page);
  if (fault === null) return [];
  const needed = page.addresses.some((address) => neededUrls.has(address));
  const status = share === 0 ? "fail" : "warn";
  return [{ ...toCheck({ id, group: "page", status, share, subject: page.url, ...fault }), ...(needed && { needed }) }];
}
