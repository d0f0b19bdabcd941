import { pageKey } from "../../net/page-key.ts";
import type { AgentEvent, Check, Provenance } from "../agent.ts";
import { type FetchResult, fetchUrl, findRefusal, type Log, readerAccept } from "./fetching.ts";
import type { Frontier } from "./frontier.ts";
import { isPrivate, lineOf, ofEntry } from "./links.ts";
import { judgePage, judgeResponse } from "./page-health.ts";
import { pageIn } from "./reading.ts";
import { rankSections, type SectionIndex } from "./sections.ts";
import { cut, mayBePage, type ReadPage, type Session, type Steps, thoughtEvent, useTool } from "./session.ts";
import { digest } from "./walk.ts";

/** Maximum number of pages to read after the search. */
const maxPages = 80;
/**
 * Number of pages chosen per round, from what is chosenKeys then. Half are chosen because their link matches the goal: they
 * may answer it better.
 */
const perRound = 8;
const maxNeeded = 6;
const atOnce = 4;

/** Titles of pages that readers need first. */
const prerequisite =
  /\b(install(ation|ing)?|set-?up|quick-?start|getting-?started|get-?started|authenticat(ion|e)|authori[sz](ation|e)|api-?(keys?|tokens?)|credentials?|prerequisites?|requirements?)\b/i;

/** A page to read, and whether the answer to the goal depends on it. */
type Stop = { url: string; provenance: Provenance; foundOn: string; text: string; needed: boolean };

/**
 * Continues reading after the search: pages that the goal needs, linked pages, and entries of llms.txt and sitemaps.
 * None of it is part of the agent's path to the goal. Problems of pages become checks; `needed` marks those of pages on
 * which the answer depends.
 */
export async function* survey(session: Session, frontier: Frontier, index: SectionIndex): Steps {
  const chosenKeys = new Set(session.pages.flatMap(({ addresses }) => addresses.map(pageKey)));
  let left = maxPages;
  yield thoughtEvent("Next, I check what the answer depends on, then other pages that the docs link to or list.");
  for (let isFirstRound = true; left > 0; isFirstRound = false) {
    const stops = chooseStops(session, frontier, index, chosenKeys, Math.min(left, perRound), isFirstRound);
    if (stops.length === 0) return;
    left -= stops.length;
    const answers = await fetchAll(session, stops);
    for (const [at, stop] of stops.entries()) {
      session.context.signal.throwIfAborted();
      const { fetchResult, events } = answers[at]!;
      if (!fetchResult.ok && fetchResult.kind === "cut") return;
      const page = yield* readStop(session, stop, fetchResult, events);
      if (page) yield* digest(session, frontier, index, page);
    }
  }
}

/**
 * In order of value: needed, likely to answer, then other links and list entries, spread over the site. Adds to
 * `chosenKeys`.
 */
function chooseStops(
  session: Session,
  frontier: Frontier,
  index: SectionIndex,
  chosenKeys: Set<string>,
  maxStops: number,
  isFirstRound: boolean,
): Stop[] {
  const stops: Stop[] = [];
  const add = (stop: Stop, limit = maxStops) => {
    const key = pageKey(stop.url);
    if (stops.length >= limit || chosenKeys.has(key) || !mayBePage(stop.url, session.origins) || isPrivate(stop))
      return;
    chosenKeys.add(key);
    stops.push({ ...stop, url: stop.url.replace(/#.*$/s, "") });
  };
  const linkStop = (page: ReadPage, { url, text }: { url: string; text: string }, needed: boolean): Stop => ({
    url,
    text,
    needed,
    provenance: "link",
    foundOn: page.url,
  });
  const readablePages = [...session.pages, ...session.surveyed].filter(({ problem }) => problem === null);
  const [best] = rankSections(index);
  const answer = readablePages.find(({ url }) => url === best?.section.url);
  const ordered = [...(answer ? [answer] : []), ...readablePages.filter((page) => page !== answer)];
  if (isFirstRound) {
    // Links in the answer's section, and anything named like a first step.
    for (const page of ordered)
      for (const link of page.links) if (isPrerequisite(link)) add(linkStop(page, link, true), maxNeeded);
    if (answer)
      for (const link of answer.links.filter(({ heading }) => heading === best?.section.heading))
        add(linkStop(answer, link, true));
  }
  const goalShare = stops.length + Math.ceil((maxStops - stops.length) / 2);
  while (stops.length < goalShare) {
    const next = frontier.take();
    if (!next) break;
    const { url, text, provenance, foundOn } = next;
    add({ url, text, provenance, foundOn: foundOn ?? url, needed: false });
  }
  const lists = [
    ...ordered.map((page) => page.links.map((link) => linkStop(page, link, false))),
    ...session.listings.map(({ url: listUrl, kind, links }) =>
      links.map(({ url, text }): Stop => ({ url, text, provenance: kind, foundOn: listUrl, needed: false })),
    ),
  ];
  for (let at = 0; stops.length < maxStops && lists.some((list) => at < list.length); at++)
    for (const list of lists) if (list[at]) add(list[at]!);
  return stops;
}

function isPrerequisite({ url, text }: { url: string; text: string }): boolean {
  const name = URL.canParse(url) ? (new URL(url).pathname.split("/").filter(Boolean).at(-1) ?? "") : "";
  return prerequisite.test(name.replace(/[_.]/g, " ")) || (text.length <= 60 && prerequisite.test(text));
}

async function fetchAll(
  session: Session,
  stops: Stop[],
): Promise<{ fetchResult: FetchResult; events: Log["events"] }[]> {
  const { fetcher } = session;
  const answers: { fetchResult: FetchResult; events: Log["events"] }[] = new Array(stops.length);
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < stops.length; at = next++) {
      const { url, provenance, foundOn } = stops[at]!;
      const log: Log = { id: null, events: [] };
      const request = { url, provenance, foundOn, accept: readerAccept, purpose: "check" as const };
      const fetchResult = (await findRefusal(fetcher, url, log)) ?? (await fetchUrl(fetcher, request, log));
      answers[at] = { fetchResult, events: log.events };
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return answers;
}

async function* readStop(
  session: Session,
  stop: Stop,
  fetchResult: FetchResult,
  events: AgentEvent[],
): Steps<ReadPage | null> {
  const { url, foundOn, needed } = stop;
  return yield* useTool<ReadPage | null>(session, "survey_page", { url, foundOn, needed }, async (log) => {
    log.events.push(...events.map((event) => (event.type === "http" ? { ...event, id: log.id } : event)));
    const responseHealth = judgeResponse(url, fetchResult);
    const parsedPage = pageIn(fetchResult);
    const page: ReadPage | null =
      fetchResult.ok && parsedPage
        ? { ...parsedPage, addresses: [...new Set([url, ...fetchResult.response.redirects, fetchResult.response.url])] }
        : null;
    const problem = page && judgePage(page);
    const checks = [responseHealth, problem]
      .filter((health) => health !== null)
      .map(
        (health): Check => ({
          ...ofEntry(health, stop.provenance),
          ...subjectOf(session, stop),
          ...(needed && { needed }),
        }),
      );
    if (checks.length === 0 && page)
      checks.push({ ...readable, ...subjectOf(session, stop), ...(needed && { needed }) });
    if (page) session.surveyed.push(page);
    const ok = page !== null && problem === null;
    const detail = page && { url: page.url, chars: page.markdown.length, form: page.form, title: cut(page.title, 200) };
    return {
      ok: true,
      output: {
        url,
        needed,
        status: fetchResult.ok ? fetchResult.response.status : fetchResult.kind,
        ...(page && { title: cut(page.title, 200) }),
      },
      checks,
      laterEvents: ok && detail ? [{ type: "milestone", name: "page_read", detail }] : [],
      value: ok ? page : null,
    };
  });
}

const readable = {
  id: "page-readable",
  status: "pass",
  share: 1,
  message: "The page can be read",
  fix: null,
} as const;

/** The page or list that links to the stop, with the line of the link. */
const subjectOf = (session: Session, { url, foundOn, text }: Stop) => {
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
