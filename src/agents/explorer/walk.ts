import { toAddress } from "../../net/failure.ts";
import { AgentFailure } from "../agent.ts";
import type { FailedCode } from "../failure.ts";
import { toPagesListedEvent } from "../milestones.ts";
import { findAnswer, minReportedShare } from "./answer.ts";
import { describeSection, wordsOf } from "./conclusion.ts";
import { findDocsFolder, isInDocs } from "./docs-folders.ts";
import { type FetchFailureKind, findLimit } from "./fetching.ts";
import type { Candidate, Frontier } from "./frontier.ts";
import { toStems } from "./goal.ts";
import { addToGraph } from "./link-graph.ts";
import { type OpenResult, openPage, wasReadBefore } from "./reading.ts";
import { addLinkTexts, addPage, type SectionIndex, strengthByHeading } from "./sections.ts";
import {
  cut,
  describedLinks,
  type Listing,
  type ReadPage,
  type SearchEnd,
  type Session,
  type Steps,
  thoughtEvent,
} from "./session.ts";
import { readSiteListings } from "./site-listings.ts";

/** Maximum number of hosts whose robots.txt, llms.txt and sitemap are read. */
const maxOrigins = 3;

/** Reads from the start URLs until a section is likely to answer the goal, or a limit is reached. */
export async function* walk(session: Session, frontier: Frontier, index: SectionIndex): Steps<SearchEnd> {
  const starts = yield* openStarts(session, frontier, index);
  yield* readAllListings(session, frontier, index);
  const searchEnd = yield* follow(session, frontier, index);
  failIfKeptFromAll(session, starts);
  if (searchEnd === "pages")
    yield { type: "limit", limit: "pages", value: session.task.limits.maxPages, unit: "pages" };
  return searchEnd;
}

type StartPage = { url: string; result: OpenResult };

async function* openStarts(session: Session, frontier: Frontier, index: SectionIndex): Steps<StartPage[]> {
  const starts: StartPage[] = [];
  for (const url of session.task.startUrls) {
    if (session.pages.length >= session.task.limits.maxPages) break;
    frontier.exclude(url);
    const result = yield* openPage(session, { url, provenance: "given", foundOn: null });
    starts.push({ url, result });
    if (result.page) {
      addDocsOf(session, result.page);
      yield* addPageToSearch(session, frontier, index, result.page);
    }
    if (result.fetchFailure === "cut") break;
  }
  failIfNothingAnswered(session, starts);
  return starts;
}

function addDocsOf({ origins, docsFolders }: Session, page: ReadPage): void {
  const { origin } = new URL(page.url);
  origins.add(origin);
  if (page.problem !== null) return;
  docsFolders.set(origin, (docsFolders.get(origin) ?? new Set()).add(findDocsFolder(page)));
}

/**
 * If no start URL responds, or if all ask to come back later, there is nothing to evaluate, so the run fails and not the docs. An error page or a
 * redirect loop is a response, so it becomes a finding.
 */
function failIfNothingAnswered({ fetcher }: Session, starts: StartPage[]): void {
  const tried = starts.filter(({ result }) => result.fetchFailure !== "cut");
  const broken = tried.filter(({ result: { fetchFailure, status } }) =>
    fetchFailure === null ? isTemporary(status) : fetchFailure !== "redirect",
  );
  if (tried.length === 0 || broken.length < tried.length) return;
  const late = broken.find(({ result }) => result.fetchFailure === "timeout");
  if (late && findLimit(fetcher)?.limit === "wall_clock")
    throw new AgentFailure("server_time_limit", `${late.url} did not respond before the run reached its time limit`);
  const retryable = broken.some(
    ({ result: { fetchFailure } }) => fetchFailure === null || temporaryFailures.has(fetchFailure),
  );
  // The retry requests all of them, so it waits as long as the longest Retry-After.
  const pausesMs = broken.flatMap(({ result }) => ("retryAfterMs" in result ? (result.retryAfterMs ?? []) : []));
  const retryAfterMs = Math.max(0, ...pausesMs);
  const retry = { retryable, ...(retryable && retryAfterMs > 0 && { retryAfterMs }) };
  throw unreadable(broken.find(wasRefused) ?? broken[0]!, broken.length - 1, retry);
}

/** If a start URL is disallowed and nothing else could be read, the docs are not to blame. */
function failIfKeptFromAll({ pages }: Session, starts: StartPage[]): void {
  const refused = starts.find(wasRefused);
  if (refused && pages.length === 0) throw unreadable(refused, starts.length - 1);
}

const wasRefused = ({ result }: StartPage) => result.fetchFailure === "refused";

/** A URL without its user name and password, which may be secret. */
const withoutUserInfo = (url: string) => url.replace(/\/\/[^/?#]*@/, "//");

/** The failure of a run that could read none of its start URLs. `others`: the number of start URLs besides this one. */
function unreadable({ url, result }: StartPage, others: number, retry?: AgentFailure["options"]): AgentFailure {
  const cause = result.page === null ? result.message : `${url} returned status ${result.status}`;
  const message = wasRefused({ url, result }) ? `${withoutUserInfo(url)} is not allowed: ${cause}` : cause;
  const more = others === 0 ? "" : ` None of the other ${others} start URLs could be read either.`;
  const { code, subject } = codeOf(url, result);
  return new AgentFailure(code, `${message.replace(/\.$/, "")}.${more}`, { retryable: false, ...retry, subject });
}

/** The code of a start URL that could not be read, and the address or host that it is about. */
function codeOf(url: string, result: OpenResult): { code: FailedCode; subject: string } {
  if (result.fetchFailure === null) return { code: "site_unavailable", subject: toAddress(url) };
  const { fetchFailure, address } = result;
  switch (fetchFailure) {
    case "refused": {
      const { protocol = "", username, password } = URL.parse(url) ?? {};
      const isPossible = /^https?:$/.test(protocol) && !username && !password;
      return { code: isPossible ? "address_not_allowed" : "url_not_allowed", subject: address };
    }
    case "dns":
      return { code: "name_not_resolved", subject: address.replace(/:\d+$/, "") };
    case "tls":
      return { code: "certificate_invalid", subject: address };
    case "unreachable":
    case "timeout":
      return { code: "site_unreachable", subject: address };
    default:
      return { code: "site_response_invalid", subject: address };
  }
}

/** Too many requests, a gateway without its server, or maintenance. */
const isTemporary = (status: number) => [429, 502, 503, 504].includes(status);
const temporaryFailures = new Set<FetchFailureKind>(["dns", "unreachable", "timeout", "tls"]);

async function* readAllListings(session: Session, frontier: Frontier, index: SectionIndex): Steps {
  const origins = new Map<string, string>();
  for (const address of [...session.pages.map(({ url }) => url), ...session.task.startUrls])
    if (/^https?:/i.test(address)) {
      const { origin } = new URL(address);
      if (!origins.has(origin)) origins.set(origin, address);
    }
  for (const [origin, start] of [...origins].slice(0, maxOrigins)) {
    if (findLimit(session.fetcher)) return;
    const { fromLlmsTxt, fromSitemap } = yield* readSiteListings(session, origin, start);
    for (const file of fromLlmsTxt) yield* addListing(session, frontier, index, { ...file, kind: "llms.txt" }, start);
    for (const file of fromSitemap) yield* addListing(session, frontier, index, { ...file, kind: "sitemap" }, start);
    if (session.pages.length === 0) frontier.add([{ url: `${origin}/`, text: "start" }], "guessed", null);
  }
}

/** Adds the entries of a list that belong to the docs to what can be read. `start`: the page that agents read before the list. */
async function* addListing(
  session: Session,
  frontier: Frontier,
  index: SectionIndex,
  file: Listing,
  start: string,
): Steps {
  const { url, kind } = file;
  const links = docsLinksIn(session, file);
  if (links.length === 0) return;
  // All entries are tested if most of them belong to the docs, even those that lead to other docs.
  const testedLinks = links.length * 2 > file.links.length ? file.links : links;
  const listing: Listing = { ...file, links: testedLinks };
  session.listings.push(listing);
  frontier.add(links, kind, url);
  // The entries are tested as entries of the list, not as links of a page.
  frontier.exclude(url);
  addLinkTexts(index, describedLinks(listing));
  if (kind === "llms.txt") {
    addToGraph(session.graph, start, [{ url }]);
    addToGraph(session.graph, url, links);
  }
  const urls = links.map((link) => link.url);
  yield toPagesListedEvent(kind, url, urls);
}

/** The entries of a list that belong to the docs. In a list of these docs, all of them do. A list of the whole host also leads to other docs. */
function docsLinksIn(session: Session, { url, text, links }: Omit<Listing, "kind">): Listing["links"] {
  const linksIntoDocs = links.filter((link) => isInDocs(session, link.url));
  const isOwnList = isInDocs(session, url) || (linksIntoDocs.length === 0 && isNamedLikeDocs(session, text));
  return isOwnList ? links : linksIntoDocs;
}

/** Whether the heading of a list is in the title of a start page. Such a list belongs to these docs, wherever its entries lead. */
function isNamedLikeDocs({ pages }: Session, list: string): boolean {
  const name = toStems(/^#[ \t]+(.+)$/m.exec(list)?.[1] ?? "");
  return (
    name.length > 0 &&
    pages.slice(0, 1).some(({ title, headings }) => {
      const words = new Set(toStems(`${title} ${headings[0]?.text ?? ""}`));
      return name.every((word) => words.has(word));
    })
  );
}

async function* follow(session: Session, frontier: Frontier, index: SectionIndex): Steps<SearchEnd> {
  const { task, fetcher, pages } = session;
  if (session.terms.length === 0) return "no_words";
  // The start pages count as candidates at first, however little of the goal they have.
  let bestShare = 1;
  while (true) {
    // A page that barely matches the goal can't make an answer likely.
    if (bestShare >= minReportedShare && findAnswer(index, session).isClear) return "found";
    if (pages.length >= task.limits.maxPages) return "pages";
    const next = frontier.take();
    if (!next) return "links";
    yield thoughtEvent(describeChoice(next));
    const { url, provenance, foundOn } = next;
    bestShare = 0;
    const result = yield* openPage(session, { url, provenance, foundOn });
    if (result.fetchFailure === "cut") return fetcher.firstLimit?.limit ?? "requests";
    if (!result.page) continue;
    frontier.exclude(result.page.url);
    if (wasReadBefore(session, result.page)) {
      pages.splice(pages.indexOf(result.page), 1);
      yield { type: "milestone", name: "page_repeated", detail: { url: result.page.url } };
      continue;
    }
    bestShare = yield* addPageToSearch(session, frontier, index, result.page);
  }
}

function describeOrigin({ provenance, foundOn }: Candidate): string {
  if (provenance === "guessed") return "which is a guess";
  if (provenance === "link") return `from a link on ${foundOn}`;
  return provenance === "llms.txt" ? `from ${foundOn}` : `from the sitemap ${foundOn}`;
}

function describeChoice(candidate: Candidate): string {
  const { url, text, reason, terms } = candidate;
  const name = text ? `"${cut(text, 80)}" (${url})` : url;
  const from = describeOrigin(candidate);
  if (reason === "hub")
    return `No page stands out yet. I try ${name}, ${from}, because such pages often link to others.`;
  if (reason === "none") return `No remaining link mentions a word of the goal. I try ${name}, ${from}.`;
  const words = terms.join(", ");
  return `Next I open ${name}, ${from}: ${reason === "named" ? `it mentions ${words}` : `the text around the link mentions ${words}`}.`;
}

/** Adds a page to what is searched: its sections to the index, its links to the frontier. Returns the goal's share in its best section. */
export async function* addPageToSearch(
  session: Session,
  frontier: Frontier,
  index: SectionIndex,
  page: ReadPage,
): Steps<number> {
  for (const address of page.addresses) {
    frontier.exclude(address);
    addToGraph(session.graph, address, page.links);
  }
  if (page.problem !== null) return 0;
  const matches = addPage(index, page);
  const fits = strengthByHeading(matches);
  const links = page.links
    .filter(({ isEmbedded }) => !isEmbedded)
    .map((link) => ({ ...link, sectionFit: fits.get(link.heading) ?? 0 }));
  frontier.add(links, "link", page.url);
  const best = matches[0];
  if (best && best.share >= minReportedShare)
    yield {
      type: "milestone",
      name: "section_matched",
      detail: { ...describeSection(best), terms: wordsOf(best.terms), hasSample: best.section.hasSample },
    };
  return best?.share ?? 0;
}
