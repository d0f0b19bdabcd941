import type { AgentEvent } from "../agent.ts";
import { AgentFailure, pagesListed } from "../agent.ts";
import { type Cover, findCover, needed, notable } from "./cover.ts";
import { type Candidate, createFrontier, type Frontier } from "./frontier.ts";
import type { Term } from "./goal.ts";
import { readMap } from "./map.ts";
import { type Opened, openPage, readBefore } from "./reading.ts";
import { createSectionIndex, type Match, type SectionIndex } from "./sections.ts";
import { cut, type ReadPage, type Session, type Steps, thought, useTool } from "./session.ts";

/** Hosts whose robots.txt, llms.txt and sitemap are read. */
const maxOrigins = 3;

/** Reads its way from the starts to the section that covers the goal, or to the end of means. */
export async function* walk(session: Session): Steps {
  using index = createSectionIndex(session.terms);
  const frontier = createFrontier(session.terms, session.origins, index.rarity);
  const starts = yield* openStarts(session, frontier, index);
  yield* readMaps(session, frontier);
  const ended = yield* follow(session, frontier, index);
  failIfKeptFromAll(session, starts);
  yield* conclude(session, index, ended);
}

type Start = { url: string; result: Opened };

async function* openStarts(session: Session, frontier: Frontier, index: SectionIndex): Steps<Start[]> {
  const opened: Start[] = [];
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
  return opened;
}

/** Without one answer there is nothing to evaluate: the evaluation fails, not the docs. */
function failIfNothingAnswered(opened: Start[]): void {
  const tried = opened.filter(({ result }) => result.miss !== "cut");
  const broken = tried.filter(({ result }) => result.miss !== null || isServerTrouble(result.status));
  if (tried.length === 0 || broken.length < tried.length) return;
  const retryable = broken.some(
    ({ result: { miss, status } }) =>
      isServerTrouble(status) || miss === "dns" || miss === "unreachable" || miss === "timeout" || miss === "tls",
  );
  // All of them are asked again, so the longest of what they ask to wait counts.
  const retryAfterMs = Math.max(
    0,
    ...broken.map(({ result }) => ("retryAfterMs" in result && result.retryAfterMs) || 0),
  );
  const again = { retryable, ...(retryable && retryAfterMs > 0 && { retryAfterMs }) };
  throw unreadable(broken.find(wasRefused) ?? broken[0]!, broken.length - 1, again);
}

/** Where we may not go to a start and nothing else could be read, the docs are not to blame for it. */
function failIfKeptFromAll({ pages }: Session, opened: Start[]): void {
  const refused = opened.find(wasRefused);
  if (refused && pages.length === 0) throw unreadable(refused, opened.length - 1);
}

const wasRefused = ({ result }: Start) => result.miss === "refused";

function unreadable({ url, result }: Start, others: number, again?: AgentFailure["options"]): AgentFailure {
  const why = result.page === null ? result.message : `${url} answers with status ${result.status}`;
  const told = result.miss === "refused" ? `${url} is out of bounds: ${why}` : why;
  const more = others === 0 ? "" : ` None of the other ${others} start addresses could be read either.`;
  return new AgentFailure("infrastructure", `${told.replace(/\.$/, "")}.${more}`, again);
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
    for (const [by, lists] of [["llms.txt", fromLlmsTxt] as const, ["sitemap", fromSitemap] as const])
      for (const { at, links } of lists) {
        frontier.add(links, by, at);
        const urls = links.map(({ url }) => url);
        yield pagesListed(by, at, urls);
      }
    if (session.pages.length === 0) frontier.add([{ url: `${origin}/`, text: "start" }], "guessed", null);
  }
}

type Ended = "covered" | "no_words" | "pages" | "requests" | "wall_clock" | "links";

async function* follow(session: Session, frontier: Frontier, index: SectionIndex): Steps<Ended> {
  const { task, fetching, pages } = session;
  if (session.terms.length === 0) return "no_words";
  for (;;) {
    if (findCover(index, session)) return "covered";
    if (pages.length >= task.limits.maxPages) return "pages";
    const next = frontier.take();
    if (!next) return "links";
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

function why({ url, text, provenance, foundOn, reason, terms }: Candidate): string {
  const name = text ? `"${cut(text, 80)}" (${url})` : url;
  const from =
    provenance === "guessed"
      ? "which nothing named"
      : `from ${provenance === "link" ? "a link on" : provenance === "llms.txt" ? "" : "the sitemap"} ${foundOn ?? ""}`
          .replace(/\s+/g, " ")
          .trim();
  if (reason === "hub")
    return `Little speaks for any one page yet. I try ${name}, ${from}: pages like it lead further.`;
  if (reason === "none") return `Nothing left names a word of the goal. I try ${name}, ${from}.`;
  const words = terms.join(", ");
  return `Next I open ${name}, ${from}: ${reason === "named" ? `it speaks of ${words}` : `what stands around the link speaks of ${words}`}.`;
}

/** Takes in a page: its sections to the index, its links to the frontier. */
async function* digest(frontier: Frontier, index: SectionIndex, page: ReadPage): Steps {
  for (const address of page.addresses) frontier.forget(address);
  if (page.problem !== null) return;
  const matches = index.add(page);
  const near = index.nearness(page);
  const links = page.links.map((link) => ({ ...link, near: near.get(link.heading) ?? 0 }));
  frontier.add(links, "link", page.url);
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

const round = (share: number) => Math.round(share * 100) / 100;
const wordsOf = (terms: Term[]) => terms.map(({ word }) => word);

const place = ({ section, terms, share, headingShare }: Match) => ({
  url: section.url,
  heading: cut(section.path.join(" > "), 200),
  line: section.line,
  terms: wordsOf(terms),
  share: round(share),
  headingShare: round(headingShare),
});

async function* conclude(session: Session, index: SectionIndex, ended: Ended): Steps {
  const { task, terms, pages, fetching } = session;
  if (ended === "pages") yield { type: "limit", limit: "pages", value: task.limits.maxPages, unit: "pages" };
  const read = pages.filter(({ problem }) => problem === null).length;
  const words = wordsOf(terms);
  const matches = yield* useTool(session, "search_docs", { terms: words }, async () => {
    const found = index.search(5);
    const output = {
      sections: index.size(),
      best: found.map((match) => ({ ...place(match), hasSample: match.section.hasSample })),
    };
    return { ok: true, output, value: found };
  });
  const cover = findCover(index, session);
  if (cover) {
    yield thought(found(cover));
    const sections = cover.sections.map(place);
    yield milestone("goal_covered", {
      ...sections[0],
      terms: wordsOf(cover.terms),
      share: round(cover.share),
      sections,
      pages: read,
    });
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
    covered: wordsOf(best?.terms ?? []),
    missing: best ? wordsOf(best.missing) : words,
    unseen: words.filter((word) => unseen.has(word)),
    pages: read,
    budget: ended,
    bestSection: best ? place(best) : null,
    noSample: best !== null && best.share >= needed(terms.length) && !best.section.hasSample,
    ...(noOverlap && { noOverlap, docsLanguage }),
  });
  if (fetching.cut() === null && ended !== "pages") yield thought(ending[ended]);
}

function found({ sections }: Cover): string {
  const told = sections.map(
    ({ section, terms }) => `"${cut(section.path.join(" > "), 120)}" holds ${wordsOf(terms).join(", ")}`,
  );
  const [one, ...more] = told;
  return more.length === 0
    ? `The section ${one} and a sample to use: I take the goal as covered by the docs.`
    : `The goal has several parts. The section ${told.join("; the section ")}. Each has a sample to use: I take the goal as covered by the docs.`;
}

const ending: Record<Exclude<Ended, "pages">, string> = {
  covered: "",
  no_words: "The goal holds no word to look for.",
  requests: "",
  wall_clock: "",
  links: "There is no link left that I may open.",
};

function mostCommon(values: string[]): string | null {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
