import { diffLines } from "diff";
import { hasFailed } from "../grading/events.ts";
import type { Facts } from "../grading/facts.ts";
import { pagesReadOf } from "../grading/findings/pages-read.ts";
import { pageKey } from "../net/page-key.ts";
import type { ChangedPage } from "./schema.ts";

/** The maximum number of changed pages to show, and the maximum length of their texts. */
const maxPages = 10;
const maxPageChars = 200_000;
/** The maximum number of removed and added lines in total. If pages were rewritten, with thousands of such lines, a comparison would take seconds. */
const maxDifferences = 400;
/** The number of unchanged lines to show around each changed line. */
const contextLines = 2;

/**
 * A session: its facts, and the texts of pages that are stored separately from its events. The key of a text is the `seq` of the event that says that
 * the page was read.
 */
type Session = { facts: Facts; pageTexts: ReadonlyMap<number, string> };

/**
 * The result of a page in a session. `text`: null if the session doesn't have it. `isTested`: only a success check requested the page, and the page
 * answered.
 */
type RequestedPage = ChangedPage["before"] & { url: string; text: string | null; isTested: boolean };

/**
 * The pages that two sessions requested with different results. Pages that only one session could read come first, then pages whose text differs. If
 * both sessions have the text, the lines that differ are included.
 */
export function findChangedPages(before: Session, after: Session): ChangedPage[] {
  const [pagesBefore, pagesAfter] = [requestedPagesOf(before), requestedPagesOf(after)];
  const pages = [...pagesAfter].flatMap(([key, later]): ChangedPage[] => {
    const earlier = pagesBefore.get(key);
    if (earlier === undefined || earlier.isTested || later.isTested) return [];
    if (!earlier.isRead && !later.isRead) return [];
    const texts = earlier.text === null || later.text === null ? null : ([earlier.text, later.text] as const);
    const isSame = texts === null ? earlier.chars === later.chars : texts[0] === texts[1];
    if (earlier.isRead === later.isRead && isSame) return [];
    const lines = texts === null ? [] : changedLines(...texts);
    return [{ url: later.url, before: sideOf(earlier), after: sideOf(later), lines }];
  });
  const isReadOnOneSide = ({ before, after }: ChangedPage) => before.isRead !== after.isRead;
  const [readOnOneSide, others] = [pages.filter(isReadOnOneSide), pages.filter((page) => !isReadOnOneSide(page))];
  return [...readOnOneSide, ...others].slice(0, maxPages);
}

const sideOf = ({ isRead, status, chars }: RequestedPage): ChangedPage["before"] => ({ isRead, status, chars });

/** The requested pages by page key. If any request for a page succeeded, the page counts as read. */
function requestedPagesOf({ facts, pageTexts }: Session): Map<string, RequestedPage> {
  const pages = new Map<string, RequestedPage>();
  const readUrls = new Set(facts.pages.map(({ url }) => pageKey(url)));
  for (const http of [...facts.taskRequests, ...facts.checkRequests]) {
    const key = pageKey(http.url);
    const isRead = readUrls.has(key);
    const isCheck = http.purpose === "check";
    if (http.method !== "GET" || (isRead && hasFailed(http))) continue;
    // A result that the agent itself got is more meaningful than the result of a check.
    if (isCheck && pages.has(key)) continue;
    const isTested = !isRead && isCheck && !hasFailed(http);
    pages.set(key, { url: http.url, isRead, status: http.status, chars: null, text: null, isTested });
  }
  // For pages that the explorer read, texts are stored separately. For pages that other agents read, they are in the results of the agents' tools.
  for (const { seq, url, chars } of facts.pages) {
    const page = pages.get(pageKey(url)) ?? { url, isRead: true, status: null, isTested: false };
    pages.set(pageKey(url), { ...page, chars, text: pageTexts.get(seq) ?? null });
  }
  for (const { url, text } of pagesReadOf(facts)) {
    const page = pages.get(pageKey(url)) ?? { url, status: null };
    const content = { chars: text.length, text: text.slice(0, maxPageChars) };
    pages.set(pageKey(url), { ...page, ...content, isRead: true, isTested: false });
  }
  return pages;
}

function changeOf({ added, removed }: { added: boolean; removed: boolean }): ChangedPage["lines"][number]["change"] {
  if (added) return "added";
  return removed ? "removed" : "none";
}

/** The lines that differ; empty if there are too many. */
function changedLines(before: string, after: string): ChangedPage["lines"] {
  const lines = (diffLines(before, after, { maxEditLength: maxDifferences }) ?? []).flatMap(
    ({ value, added, removed }) =>
      value
        .replace(/\n$/, "")
        .split("\n")
        .map((text) => ({ change: changeOf({ added, removed }), text })),
  );
  const isNearChange = (_: unknown, i: number) =>
    lines.slice(Math.max(0, i - contextLines), i + contextLines + 1).some(({ change }) => change !== "none");
  return lines.filter(isNearChange);
}
