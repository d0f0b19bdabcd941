import type { SessionEvent } from "../agents/agent.ts";
import { suggestLinkEdits } from "../agents/link-edits.ts";
import type { LinkEdit } from "../agents/milestones.ts";
import { milestonesOf } from "./events.ts";
import type { TextChange } from "./grade.ts";
import { lineOrNull, normalizeUrl, oneLine } from "./text.ts";

/** The corrections of dead links: those that the explorer reports, or those found in the pages that a model read. */
export function linkEditsOf(events: SessionEvent[], isModel: boolean): LinkEdit[] {
  if (!isModel) return milestonesOf(events, "dead_links").flatMap(({ detail }) => detail.edits);
  const pagesRead = events.flatMap((event) => {
    if (event.type !== "tool_result" || event.tool !== "fetch_page" || event.ok === false) return [];
    const { url, answeredBy, title, text } = event.output ?? {};
    const address = answeredBy ?? url;
    if (typeof address !== "string" || !URL.canParse(address) || typeof text !== "string") return [];
    return [{ url: address, title: typeof title === "string" ? title : "", markdown: text }];
  });
  const deadLinks = events.flatMap((event) => {
    if (event.type !== "http" || event.foundOn === null || !URL.canParse(event.url)) return [];
    return event.status === 404 || event.status === 410 ? [{ url: event.url, foundOn: event.foundOn }] : [];
  });
  return suggestLinkEdits(deadLinks, pagesRead, []);
}

/** Where to correct a dead link, and how; null if the session doesn't show it. */
export function linkEvidence(
  target: string,
  page: string | null,
  { linkEdits }: { linkEdits: LinkEdit[] },
): TextChange | null {
  if (page === null) return null;
  const edit = linkEdits.find(
    (each) => normalizeUrl(each.target) === normalizeUrl(target) && normalizeUrl(each.url) === normalizeUrl(page),
  );
  if (edit === undefined) return null;
  const { url, line: at, text, found, expected } = edit;
  return {
    url: oneLine(url, 2000),
    line: at,
    found: oneLine(found, 2000),
    expected: oneLine(expected, 2000),
    text: lineOrNull(text, 1000),
    steps: [],
  };
}
