import { pageKey } from "../../net/page-key.ts";
import { readerAccept } from "../../net/user-agent.ts";
import type { Check, Provenance } from "../agent.ts";
import { suggestLinkEdits } from "../link-edits.ts";
import { isBesideDocs } from "./docs-folders.ts";
import { type FetchFailureKind, type FetchResult, fetchUrl, findRefusal, type Log } from "./fetching.ts";
import { fetchPage, toReadPage } from "./page-fetching.ts";
import { findResponseFault, findWorstFault, isPersonal, type PageFault } from "./page-health.ts";
import {
  type Listing,
  mapInOrder,
  mayBePage,
  type ReadPage,
  type Session,
  type Steps,
  toCheck,
  useTool,
} from "./session.ts";

/** Maximum number of link targets to test in one run, and how many of them may be on other sites. */
const maxTargets = 150;
const maxOtherSiteTargets = 30;
const atOnce = 4;
/** Timeout of one request to another site, and how long new requests to other sites may be started, in ms. */
const otherSiteRequestMs = 4000;
const otherSitesMs = 6000;
const signInPath = /\/(login|signin|sign-in|signup|sign-up)(\/|$)/i;
const signInText = /^(sign|log)[ -]?(in|up|on)$/i;
/** Reserved example names (RFC 2606), and addresses of the reader's own machine and network. */
const exampleHosts = [
  /(^|\.)(example(\.(com|org|net))?|test|invalid|local|localhost|internal)$/i,
  /^(127\.|0\.0\.0\.0|\[::1?\]|10\.|192\.168\.)/,
];
const isExampleHost = (hostname: string): boolean => exampleHosts.some((host) => host.test(hostname));

/** Where a link occurs: a page, an llms.txt or a sitemap. */
type LinkSource = { url: string; markdown: string; provenance: "link" | Listing["kind"] };
type Link = { url: string; foundOn: LinkSource; text: string; isEmbedded: boolean };
/** `isOwnPage`: a page of the site that may be read. Other targets on the site are files of other kinds. */
type Target = Link & { isOwnSite: boolean; isOwnPage: boolean };
type Answer = { target: Target; fetchResult: FetchResult };
/** `failure`: why there was no response; null: there was one. */
type Finding = {
  target: Target;
  state: "alive" | "bad" | "unknown";
  failure: FetchFailureKind | null;
  fault?: PageFault;
};

/** Tests the targets of page links, each target once per session, and the site's own first. Adds to `tested`. */
export async function* checkLinks(session: Session, readPages: ReadPage[], tested: Set<string>): Steps {
  const pages = readPages.filter(({ problem }) => problem === null);
  if (pages.length === 0) return;
  const links = pages.flatMap((page) =>
    page.links.map(({ url, text, isEmbedded = false }) => ({
      url,
      text,
      isEmbedded,
      foundOn: { url: page.url, markdown: page.markdown, provenance: "link" as const },
    })),
  );
  // Links from survey pages to other sites aren't worth the wait.
  const maxOthers = readPages === session.surveyed ? 0 : maxOtherSiteTargets;
  yield* useTool(session, "check_links", { pages: pages.length }, (log) =>
    testLinks(session, links, tested, maxOthers, log),
  );
}

/** Tests the targets of entries in llms.txt files and sitemaps. */
export async function* checkListingLinks(session: Session, tested: Set<string>): Steps {
  for (const { url: listUrl, kind, text, links } of session.listings) {
    const entries = links.map(({ url, text: name }) => ({
      url,
      text: name,
      isEmbedded: false,
      foundOn: { url: listUrl, markdown: text, provenance: kind },
    }));
    yield* useTool(session, "check_links", { list: listUrl }, (log) => testLinks(session, entries, tested, 0, log));
  }
}

async function testLinks(session: Session, links: Link[], tested: Set<string>, maxOthers: number, log: Log) {
  const { ownTargets, otherTargets, untestedCount } = collectTargets(session, links, tested, maxOthers);
  const answers = await mapInOrder(ownTargets, atOnce, log, (target, targetLog) =>
    testTarget(session, target, targetLog),
  );
  const hosts = [...Map.groupBy(otherTargets, ({ url }) => new URL(url).host).values()];
  const untilMs = session.context.now() + otherSitesMs;
  const otherFindings = await mapInOrder(hosts, atOnce, log, (host, targetLog) =>
    testHost(session, host, untilMs, targetLog),
  );
  const findings = [...answers.map((answer) => toFinding(session, answer)), ...otherFindings.flat()];
  const cutCount = findings.filter(({ failure }) => failure === "cut").length;
  const count = (state: Finding["state"]) => findings.filter((finding) => finding.state === state).length;
  const output = {
    targets: ownTargets.length + otherTargets.length,
    alive: count("alive"),
    dead: findings.filter(({ fault }) => fault?.status === "fail").length,
    notJudged: count("unknown"),
    notTried: untestedCount + cutCount,
  };
  return { ok: true, output, checks: toChecks(findings), value: undefined };
}

function collectTargets(
  session: Session,
  links: Link[],
  tested: Set<string>,
  maxOthers: number,
): { ownTargets: Target[]; otherTargets: Target[]; untestedCount: number } {
  const pages = [...session.pages, ...session.surveyed];
  const seenKeys = new Set([...tested, ...pages.flatMap(({ addresses }) => addresses.map(pageKey))]);
  const own: Target[] = [];
  const others: Target[] = [];
  // What one page embeds may be a page to which another one leads.
  for (const link of links.toSorted((a, b) => Number(a.isEmbedded) - Number(b.isEmbedded))) {
    if (!URL.canParse(link.url)) continue;
    const url = link.url.replace(/#.*$/s, "");
    const isOwnSite = session.origins.has(new URL(url).origin);
    if (seenKeys.has(pageKey(url)) || !mayBeTested(url, isOwnSite) || isPrivate(link, isOwnSite)) continue;
    seenKeys.add(pageKey(url));
    const isOwnPage = isOwnSite && !link.isEmbedded && mayBePage(url, session.origins);
    (isOwnSite ? own : others).push({ ...link, url, isOwnSite, isOwnPage });
  }
  const otherTargets = others.slice(0, maxOthers);
  const ownTargets = own.slice(0, Math.max(0, maxTargets - tested.size - otherTargets.length));
  for (const { url } of [...ownTargets, ...otherTargets]) tested.add(pageKey(url));
  const untestedCount = own.length + others.length - ownTargets.length - otherTargets.length;
  return { ownTargets, otherTargets, untestedCount };
}

const silentKinds = new Set<FetchFailureKind | null>(["dns", "unreachable", "timeout", "tls", "refused"]);

/** Tests links to one other host, one after another. If the host doesn't respond once, the rest of its links is skipped. */
async function testHost(session: Session, targets: Target[], untilMs: number, log: Log): Promise<Finding[]> {
  const findings: Finding[] = [];
  let isSilent = false;
  for (const target of targets) {
    const isCut = isSilent || session.context.now() >= untilMs;
    const finding: Finding = isCut
      ? { target, state: "unknown", failure: "cut" }
      : toFinding(session, await testTarget(session, target, log));
    isSilent ||= silentKinds.has(finding.failure);
    findings.push(finding);
  }
  return findings;
}

function mayBeTested(address: string, isOwnSite: boolean): boolean {
  if (!/^https?:\/\//i.test(address) || /[<>{}$]|%7B|%3C/i.test(address)) return false;
  const { hostname, username } = new URL(address);
  return username === "" && (isOwnSite || !isExampleHost(hostname));
}

/** Whether a link leads to a sign-in or, on another site, to a place behind one. Such places on the site itself may be pages of the docs. */
export const isPrivate = ({ url, text }: { url: string; text: string }, isOwnSite: boolean): boolean =>
  signInPath.test(new URL(url).pathname) || signInText.test(text.trim()) || (!isOwnSite && isPersonal(url));

/**
 * Pages of the site are read, which also finds pages that can't be read. For other targets, a HEAD request comes first, and a target is dead only if
 * a GET request confirms it. An unreachable host proves nothing, unless it is the site's own host.
 */
async function testTarget(session: Session, target: Target, log: Log): Promise<Answer> {
  const { fetcher } = session;
  const refusal = target.isOwnSite ? await findRefusal(fetcher, target.url, log) : null;
  if (refusal) return { target, fetchResult: refusal };
  const request = {
    url: target.url,
    provenance: target.foundOn.provenance,
    foundOn: target.foundOn.url,
    purpose: "check" as const,
    accept: readerAccept,
    ...(!target.isOwnSite && { timeoutMs: otherSiteRequestMs }),
  };
  if (target.isOwnPage) return { target, fetchResult: await fetchPage(session, request, log) };
  const head = await fetchUrl(fetcher, { ...request, method: "HEAD" }, log);
  const isUnclear = head.ok
    ? head.response.status >= 400
    : head.kind === "protocol" || (target.isOwnSite && (head.kind === "timeout" || head.kind === "unreachable"));
  return { target, fetchResult: isUnclear ? await fetchUrl(fetcher, request, log) : head };
}

/** Parses pages of the site itself, so it runs after all requests to it: otherwise their response times would include it. */
function toFinding(session: Session, { target, fetchResult }: Answer): Finding {
  const { fault, ...finding } = judge(session, { target, fetchResult });
  const isOfProduct = fault?.id === "open-access" && isBesideDocs(session, target.url);
  if (isOfProduct && !session.neededUrls.has(target.url)) return { ...finding, state: "unknown" };
  return { ...finding, ...(fault && { fault }) };
}

function judge(session: Session, { target, fetchResult }: Answer): Finding {
  const failure = fetchResult.ok ? null : fetchResult.kind;
  if (fetchResult.ok && fetchResult.response.status < 400) {
    // The response to a HEAD request, which other targets get, has no text.
    const page = target.isOwnPage ? toReadPage(session, target.url, fetchResult) : null;
    const fault = target.isOwnSite ? findWorstFault(target.url, fetchResult, page) : null;
    return fault === null ? { target, state: "alive", failure } : { target, state: "bad", failure, fault };
  }
  if (failure === "too_large" && !target.isOwnSite) return { target, state: "alive", failure };
  const doesNotExist = fetchResult.ok && (fetchResult.response.status === 404 || fetchResult.response.status === 410);
  // Another site may be down or refuse strangers. That says nothing about these docs.
  const fault = target.isOwnSite || doesNotExist ? findResponseFault(target.url, fetchResult) : null;
  return fault === null ? { target, state: "unknown", failure } : { target, state: "bad", failure, fault };
}

function toChecks(findings: Finding[]): Check[] {
  const failures = findings.flatMap(toFailedChecks);
  const alive = Map.groupBy(
    findings.filter(({ state }) => state === "alive"),
    ({ target }) => target.foundOn.url,
  );
  const passes = [...alive].map(([url, { length }]) => {
    const links = length === 1 ? "1 link first seen here leads" : `${length} links first seen here lead`;
    const message = `${links} to a page that exists`;
    return toCheck({ id: "link-resolves", group: "link", status: "pass", weight: length, subject: url, message });
  });
  return [...failures, ...passes];
}

const entryChecks: Partial<Record<Provenance, { id: string; message: string }>> = {
  "llms.txt": { id: "llms-entry-resolves", message: "An entry of llms.txt is dead: " },
  sitemap: { id: "sitemap-entry-resolves", message: "An entry of the sitemap is dead: " },
};

/** A problem of a page as a problem of the llms.txt or sitemap entry that lists it. */
export function toEntryFault(fault: PageFault, provenance: Provenance): PageFault {
  const list = entryChecks[provenance];
  return list && fault.id === "link-resolves"
    ? { ...fault, id: list.id, message: list.message + fault.message }
    : fault;
}

function toFailedChecks({ target: { url, foundOn, text }, fault }: Finding): Check[] {
  if (!fault) return [];
  return [
    {
      ...toEntryFault(fault, foundOn.provenance),
      group: "link",
      weight: 1,
      subject: url,
      url: foundOn.url,
      line: lineOf(foundOn.markdown, url),
      quote: text || url,
    },
  ];
}

/** Reports how to correct the dead links, as far as the pages that were read show it. */
export async function* suggestLinkTargets({ fetcher, pages, surveyed, listings }: Session): Steps {
  const readablePages = [...pages, ...surveyed].filter(({ problem }) => problem === null);
  const lists = listings.map(({ url, text }) => ({ url, title: "", markdown: text }));
  // Links are tested several at a time, so their order depends on the responses.
  const deadLinks = [...fetcher.deadLinks].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, link]) => link);
  const edits = suggestLinkEdits(deadLinks, readablePages, lists);
  if (edits.length > 0) yield { type: "milestone", name: "dead_links", detail: { edits } };
}

/** The line of a page's Markdown that contains a link to the URL; null if unknown. */
export function lineOf(markdown: string, address: string): number | null {
  const { pathname, hash } = new URL(address);
  const name = pathname.split("/").filter(Boolean).at(-1);
  const lines = markdown.split("\n");
  // Pages may write a link as a whole URL, from the root of the site, or relative to themselves.
  for (const part of hash ? [address, hash] : [address, pathname, name]) {
    if (!part || part === "/") continue;
    // The address of another page may start with the address of this one.
    const whole = new RegExp(`${RegExp.escape(part)}(?![\\w%/-])`);
    const wholeIndex = lines.findIndex((line) => whole.test(line));
    const index = wholeIndex >= 0 ? wholeIndex : lines.findIndex((line) => line.includes(part));
    if (index >= 0) return index + 1;
  }
  return null;
}
