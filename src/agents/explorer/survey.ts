import { pageKey } from "../../net/page-key.ts";
import { readerAccept } from "../../net/user-agent.ts";
import type { AgentEvent, Check, Provenance } from "../agent.ts";
import type { DocLink } from "../markup.ts";
import { isBesideDocs, isInDocs } from "./docs-folders.ts";
import { type FetchResult, findRefusal, type Log } from "./fetching.ts";
import type { Frontier } from "./frontier.ts";
import { isPrivate, lineOf, toEntryFault } from "./links.ts";
import { fetchPage, toReadPage } from "./page-fetching.ts";
import { findFaultOfNeeded, findPageFault, findResponseFault } from "./page-health.ts";
import type { Section } from "./page-sections.ts";
import { toPageRead } from "./reading.ts";
import { rankSections, type SectionIndex } from "./sections.ts";
import {
  cut,
  type Listing,
  mapInOrder,
  mayBePage,
  type ReadPage,
  type Session,
  type Steps,
  thoughtEvent,
  useTool,
} from "./session.ts";
import { addPageToSearch } from "./walk.ts";

/** Maximum number of pages to read after the search. */
const maxPages = 80;
/**
 * Number of pages that are chosen per round, from what is known then. Half of them are chosen because their link matches the goal, so they may answer
 * it better.
 */
const pagesPerRound = 8;
const maxPrerequisites = 6;
const concurrency = 4;

/** Titles of pages that readers need first. */
const prerequisite =
  /\b(install(ation|ing)?|set-?up|quick-?start|getting-?started|get-?started|authenticat(ion|e)|authori[sz](ation|e)|api-?(keys?|tokens?)|credentials?|prerequisites?|requirements?)\b/i;

/** A page to read, and whether the answer to the goal depends on it. */
type SurveyCandidate = { url: string; provenance: Provenance; foundOn: string; text: string; needed: boolean };

/**
 * Continues reading after the search: pages that the goal needs, linked pages, and entries of llms.txt and sitemaps. It stays in the folder of the
 * docs, except for pages that the goal needs. Nothing that it reads is part of the agent's path to the goal. Problems of pages become checks.
 * `needed` marks the checks of pages on which the answer depends.
 */
export async function* surveySite(session: Session, frontier: Frontier, index: SectionIndex): Steps {
  const chosenKeys = new Set([
    ...session.pages.flatMap(({ addresses }) => addresses.map(pageKey)),
    ...session.listings.map(({ url }) => pageKey(url)),
  ]);
  let remaining = maxPages;
  yield thoughtEvent("Next, I check what the answer depends on, then other pages that the docs link to or list.");
  for (let isFirstRound = true; remaining > 0; isFirstRound = false) {
    const maxCandidates = Math.min(remaining, pagesPerRound);
    const candidates = chooseCandidates(session, frontier, index, chosenKeys, { maxCandidates, isFirstRound });
    if (candidates.length === 0) return;
    remaining -= candidates.length;
    const answers = await fetchAll(session, candidates);
    for (const [position, candidate] of candidates.entries()) {
      session.context.signal.throwIfAborted();
      const { fetchResult, events } = answers[position]!;
      if (!fetchResult.ok && fetchResult.kind === "cut") return;
      const page = yield* readCandidate(session, candidate, fetchResult, events);
      if (page) yield* addPageToSearch(session, frontier, index, page);
    }
  }
}

/**
 * Chooses pages in order of value: needed pages, pages that may answer the goal, then other links and list entries, spread over the site. Adds to
 * `chosenKeys`.
 */
function chooseCandidates(
  session: Session,
  frontier: Frontier,
  index: SectionIndex,
  chosenKeys: Set<string>,
  { maxCandidates, isFirstRound }: { maxCandidates: number; isFirstRound: boolean },
): SurveyCandidate[] {
  const candidates: SurveyCandidate[] = [];
  const add = (candidate: SurveyCandidate, limit = maxCandidates) => {
    if (candidates.length >= limit) return;
    const url = candidate.url.replace(/#.*$/s, "");
    const key = pageKey(url);
    // The answer also depends on pages that were read before, and on pages that can't be read.
    if (candidate.needed) session.neededUrls.add(url);
    if (chosenKeys.has(key) || !mayBePage(url, session.origins) || isPrivate(candidate, true)) return;
    if (!candidate.needed && !isInDocs(session, url)) return;
    chosenKeys.add(key);
    candidates.push({ ...candidate, url });
  };
  const readablePages = [...session.pages, ...session.surveyed].filter(({ problem }) => problem === null);
  const [best] = rankSections(index);
  const answer = readablePages.find(({ url }) => url === best?.section.url);
  const orderedPages = [...(answer ? [answer] : []), ...readablePages.filter((page) => page !== answer)];
  if (isFirstRound) {
    // Needed pages: pages named like a first step, links in the answer's section, and links in sentences of the sections around it.
    for (const page of orderedPages)
      for (const link of linksOf(page))
        if (isPrerequisite(link)) add(linkedCandidate(page, link, true), maxPrerequisites);
    if (answer)
      for (const link of linksOf(answer)) if (isNeededBy(link, best!.section)) add(linkedCandidate(answer, link, true));
  }
  // Half of the remaining places are for links that match the goal. The other half is for a link of each page and an entry of each list in turn.
  const goalShare = candidates.length + Math.ceil((maxCandidates - candidates.length) / 2);
  while (candidates.length < goalShare) {
    const link = frontier.take();
    if (!link) break;
    const { url, text, provenance, foundOn } = link;
    add({ url, text, provenance, foundOn: foundOn ?? url, needed: false });
  }
  const candidateLists = [
    ...orderedPages.map((page) => linksOf(page).map((link) => linkedCandidate(page, link, false))),
    ...session.listings.map(listedCandidates),
  ];
  for (const candidate of inTurn(candidateLists)) {
    if (candidates.length >= maxCandidates) break;
    add(candidate);
  }
  return candidates;
}

/** Links to pages, without what is only shown within the page. */
const linksOf = ({ links }: ReadPage): DocLink[] => links.filter(({ isEmbedded }) => !isEmbedded);

const linkedCandidate = ({ url: foundOn }: ReadPage, { url, text }: DocLink, needed: boolean): SurveyCandidate => ({
  url,
  text,
  needed,
  provenance: "link",
  foundOn,
});

const listedCandidates = ({ url: foundOn, kind, links }: Listing): SurveyCandidate[] =>
  links.map(({ url, text }) => ({ url, text, needed: false, provenance: kind, foundOn }));

/** The first item of each list, then the second of each, and so on. */
function* inTurn<T>(lists: T[][]): Generator<T> {
  const maxLength = Math.max(0, ...lists.map(({ length }) => length));
  for (let position = 0; position < maxLength; position++)
    for (const list of lists) if (position < list.length) yield list[position]!;
}

/** Whether a link is in a section, or in a sentence of a section that surrounds it. */
function isNeededBy({ heading, text, context }: DocLink, section: Section): boolean {
  // The heading of a link may end with the text of a permalink.
  const isUnder = (name: string) => toName(name) !== "" && toName(heading).startsWith(toName(name));
  return isUnder(section.heading) || (context.length > text.length && section.path.some(isUnder));
}

const toName = (heading: string): string => heading.replace(/[^\p{L}\p{N}]/gu, "").toLowerCase();

function isPrerequisite({ url, text }: { url: string; text: string }): boolean {
  const name = URL.canParse(url) ? (new URL(url).pathname.split("/").filter(Boolean).at(-1) ?? "") : "";
  return prerequisite.test(name.replace(/[_.]/g, " ")) || (text.length <= 60 && prerequisite.test(text));
}

/** Requests all candidates. Each response comes with its own events, because each candidate is a separate tool call. */
function fetchAll(
  session: Session,
  candidates: SurveyCandidate[],
): Promise<{ fetchResult: FetchResult; events: Log["events"] }[]> {
  return mapInOrder(candidates, concurrency, { id: null, events: [] }, async ({ url, provenance, foundOn }, log) => {
    const request = { url, provenance, foundOn, accept: readerAccept, purpose: "check" as const };
    const fetchResult = (await findRefusal(session.fetcher, url, log)) ?? (await fetchPage(session, request, log));
    return { fetchResult, events: log.events };
  });
}

async function* readCandidate(
  session: Session,
  candidate: SurveyCandidate,
  fetchResult: FetchResult,
  events: AgentEvent[],
): Steps<ReadPage | null> {
  const { url, foundOn, needed } = candidate;
  return yield* useTool<ReadPage | null>(session, "survey_page", { url, foundOn, needed }, async (log) => {
    log.events.push(...events.map((event) => (event.type === "http" ? { ...event, id: log.id } : event)));
    const responseFault = findResponseFault(url, fetchResult) ?? (needed ? findFaultOfNeeded(url, fetchResult) : null);
    const page = toReadPage(session, url, fetchResult);
    const pageFault = page && findPageFault(page);
    const isInProduct = !needed && isBesideDocs(session, url);
    const checks = [responseFault, pageFault]
      .filter((fault) => fault !== null)
      .filter(({ id }) => !(isInProduct && id === "open-access"))
      .map(
        ({ place, ...fault }): Check => ({
          ...toEntryFault(fault, candidate.provenance),
          ...subjectOf(session, candidate),
          ...place,
          ...(needed && { needed }),
        }),
      );
    if (checks.length === 0 && page)
      checks.push({ ...readableCheck, ...subjectOf(session, candidate), ...(needed && { needed }) });
    if (page) session.surveyed.push(page);
    const ok = page !== null && pageFault === null;
    return {
      ok: true,
      output: {
        url,
        needed,
        status: fetchResult.ok ? fetchResult.response.status : fetchResult.kind,
        ...(page && { title: cut(page.title, 200) }),
      },
      checks,
      laterEvents: ok ? [toPageRead(session, page.url, page)] : [],
      value: ok ? page : null,
    };
  });
}

const readableCheck = {
  id: "page-readable",
  status: "pass",
  share: 1,
  message: "The page can be read",
  fix: null,
} as const;

/** The page or list that links to a candidate, with the line of the link. */
const subjectOf = (session: Session, { url, foundOn, text }: SurveyCandidate) => {
  const page = [...session.pages, ...session.surveyed].find((each) => each.url === foundOn);
  const list = session.listings.find((each) => each.url === foundOn);
  const markdown = page?.markdown ?? list?.text;
  return {
    group: "page" as const,
    weight: 1,
    subject: url,
    url: foundOn,
    line: markdown === undefined ? null : lineOf(markdown, url),
    quote: text || null,
  };
};
