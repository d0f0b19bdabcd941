import type { AgentEvent, Provenance } from "../agent.ts";
import { AgentFailure } from "../agent.ts";
import { createFrontier, type Frontier } from "./frontier.ts";
import { readMap } from "./map.ts";
import { type Opened, openPage, readBefore } from "./reading.ts";
import { createSectionIndex, type Match, type SectionIndex } from "./sections.ts";
import { cut, type ReadPage, type Session, type Steps, thought, useTool } from "./session.ts";

/** Pages in a row, opened with little hope, after which the way is given up. */
const maxBarren = 5;
/** A candidate under this share of the goal is opened with little hope: it names the product at most. */
const hope = 0.1;
/** Hosts whose robots.txt, llms.txt and sitemap are read. */
const maxOrigins = 3;
/** Share of the goal from which a section is worth a word. */
const notable = 0.4;
/** Part of the goal that title and headings of a section must name: what is only mentioned in passing does not cover it. */
const inHeading = 0.15;

/** The share of the goal, weighted by rarity, that one section must hold; a long goal is never found word for word. */
const needed = (terms: number) => (terms <= 8 ? 0.65 : 0.55);

/** Reads its way from the starts to the section that covers the goal, or to the end of means. */
export async function* walk(session: Session): Steps {
  using index = createSectionIndex(session.terms);
  const frontier = createFrontier(session.terms, session.origins, index.rarity);
  yield* openStarts(session, frontier, index);
  yield* readMaps(session, frontier);
  const ended = yield* follow(session, frontier, index);
  yield* conclude(session, index, ended);
}

async function* openStarts(session: Session, frontier: Frontier, index: SectionIndex): Steps {
  const opened: { url: string; result: Opened }[] = [];
  for (const url of session.task.startUrls) {
    if (session.pages.length >= session.task.limits.maxPages) break;
    frontier.forget(url);
    const result = yield* openPage(session, { url, provenance: "given", foundOn: null });
    opened.push({ url, result });
    if (result.page) {
      session.origins.add(new URL(result.page.url).origin);
      yield* digest(frontier, index, result.page);
    }
    if (result.miss === "cut") break;
  }
  failIfNothingAnswered(opened);
}

/** Without one answer there is nothing to evaluate: the evaluation fails, not the docs. */
function failIfNothingAnswered(opened: { url: string; result: Opened }[]): void {
  const tried = opened.filter(({ result }) => result.miss !== "cut");
  const broken = tried.filter(({ result }) => result.miss !== null || isServerTrouble(result.status));
  if (tried.length === 0 || broken.length < tried.length) return;
  const { url, result } = broken[0]!;
  const message = result.page === null ? result.message : `${url} answers with status ${result.status}`;
  const others =
    broken.length > 1 ? ` None of the other ${broken.length - 1} start addresses could be read either.` : "";
  const retryable = broken.some(
    ({ result: { miss, status } }) =>
      isServerTrouble(status) || miss === "dns" || miss === "unreachable" || miss === "timeout" || miss === "tls",
  );
  throw new AgentFailure("infrastructure", `${message.replace(/\.$/, "")}.${others}`, { retryable });
}

const isServerTrouble = (status: number | null) => status !== null && (status >= 500 || status === 429);

async function* readMaps(session: Session, frontier: Frontier): Steps {
  const origins = new Map<string, string>();
  for (const address of [...session.pages.map(({ url }) => url), ...session.task.startUrls])
    if (/^https?:/i.test(address)) {
      const { origin } = new URL(address);
      if (!origins.has(origin)) origins.set(origin, address);
    }
  for (const [origin, start] of [...origins].slice(0, maxOrigins)) {
    if (!session.fetching.open()) return;
    const { fromLlmsTxt, fromSitemap } = yield* readMap(session, origin, start);
    for (const { at, links } of fromLlmsTxt) frontier.add(links, "llms.txt", at);
    for (const { at, links } of fromSitemap) frontier.add(links, "sitemap", at);
    if (session.pages.length === 0) frontier.add([{ url: `${origin}/`, text: "start" }], "guessed", null);
  }
}

type Ended = "covered" | "no_words" | "pages" | "requests" | "wall_clock" | "links" | "barren";

async function* follow(session: Session, frontier: Frontier, index: SectionIndex): Steps<Ended> {
  const { task, fetching, pages } = session;
  if (session.terms.length === 0) return "no_words";
  let barren = 0;
  for (;;) {
    if (findCover(session, index)) return "covered";
    if (pages.length >= task.limits.maxPages) return "pages";
    const next = frontier.take();
    if (!next) return "links";
    if (next.score >= hope) barren = 0;
    else if (++barren > maxBarren) return "barren";
    yield thought(why(next));
    const { url, provenance, foundOn } = next;
    const opened = yield* openPage(session, { url, provenance, foundOn });
    if (opened.miss === "cut") return fetching.cut()?.limit ?? "requests";
    if (!opened.page) continue;
    frontier.forget(opened.page.url);
    if (readBefore(session, opened.page)) {
      pages.splice(pages.indexOf(opened.page), 1);
      continue;
    }
    yield* digest(frontier, index, opened.page);
  }
}

function why({
  url,
  text,
  provenance,
  foundOn,
  terms,
}: {
  url: string;
  text: string;
  provenance: Provenance;
  foundOn: string | null;
  terms: string[];
}): string {
  const name = text ? `"${cut(text, 80)}" (${url})` : url;
  const from =
    provenance === "guessed"
      ? "which nothing named"
      : `from ${provenance === "link" ? "a link on" : provenance === "llms.txt" ? "" : "the sitemap"} ${foundOn ?? ""}`
          .replace(/\s+/g, " ")
          .trim();
  return terms.length > 0
    ? `Next I open ${name}, ${from}: it speaks of ${terms.join(", ")}.`
    : `Nothing left names a word of the goal. I try ${name}, ${from}.`;
}

/** Takes in a page: its sections to the index, its links to the frontier. */
async function* digest(frontier: Frontier, index: SectionIndex, page: ReadPage): Steps {
  for (const address of page.addresses) frontier.forget(address);
  if (page.problem !== null) return;
  const matches = index.add(page);
  frontier.add(page.links, "link", page.url);
  const best = matches[0];
  if (best && best.share >= notable)
    yield milestone("section_matched", { ...place(best), hasSample: best.section.hasSample });
}

const milestone = (
  name: Extract<AgentEvent, { type: "milestone" }>["name"],
  detail: Record<string, unknown>,
): AgentEvent => ({
  type: "milestone",
  name,
  detail,
});

const place = ({ section, terms, share, headingShare }: Match) => ({
  url: section.url,
  heading: cut(section.path.join(" > "), 200),
  line: section.line,
  terms,
  share: Math.round(share * 100) / 100,
  headingShare: Math.round(headingShare * 100) / 100,
});

/** The section that covers the goal: enough of its words, one of them in a heading, and a sample to use. */
function findCover(session: Session, index: SectionIndex): Match | null {
  const least = needed(session.terms.length);
  return (
    index
      .search(10)
      .find(({ share, headingShare, section }) => share >= least && headingShare >= inHeading && section.hasSample) ??
    null
  );
}

async function* conclude(session: Session, index: SectionIndex, ended: Ended): Steps {
  const { task, terms, pages, fetching } = session;
  if (ended === "pages") yield { type: "limit", limit: "pages", value: task.limits.maxPages, unit: "pages" };
  const read = pages.filter(({ problem }) => problem === null).length;
  const words = terms.map(({ word }) => word);
  const matches = yield* useTool(session, "search_docs", { terms: words }, async () => {
    const found = index.search(5);
    const output = {
      sections: index.size(),
      best: found.map((match) => ({ ...place(match), hasSample: match.section.hasSample })),
    };
    return { ok: true, output, value: found };
  });
  const cover = findCover(session, index);
  if (cover) {
    yield thought(
      `The section "${cut(cover.section.path.join(" > "), 120)}" holds ${cover.terms.join(", ")} and a sample to use: I take the goal as covered by the docs.`,
    );
    yield milestone("goal_covered", { ...place(cover), pages: read });
    return;
  }
  const best = matches.reduce<Match | null>((top, match) => (top && top.share >= match.share ? top : match), null);
  const unseen = new Set(index.unseen());
  const noOverlap = terms.length > 0 && unseen.size === terms.length;
  const docsLanguage = mostCommon(pages.flatMap(({ language }) => language ?? []));
  if (noOverlap && read > 0)
    yield thought(
      `No word of the goal occurs in the ${read} pages read${docsLanguage ? `, whose language is ${docsLanguage}` : ""}. I go by words alone, so a goal in another language or in other terms is beyond me.`,
    );
  yield milestone("goal_not_covered", {
    covered: best?.terms ?? [],
    missing: best?.missing ?? words,
    unseen: words.filter((word) => unseen.has(word)),
    pages: read,
    budget: ended,
    bestSection: best ? place(best) : null,
    noSample: best !== null && best.share >= needed(terms.length) && !best.section.hasSample,
    ...(noOverlap && { noOverlap, docsLanguage }),
  });
  if (fetching.cut() === null && ended !== "pages") yield thought(ending[ended]);
}

const ending: Record<Exclude<Ended, "pages">, string> = {
  covered: "",
  no_words: "The goal holds no word to look for.",
  requests: "",
  wall_clock: "",
  links: "There is no link left that I may open.",
  barren: "The links that are left name no word of the goal; I stop here.",
};

function mostCommon(values: string[]): string | null {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
