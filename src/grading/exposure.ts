import type { SessionEvent } from "../agents/agent.ts";
import { pageKey } from "../net/page-key.ts";
import { hasFailed, isNotFound, isProbe, milestonesOf } from "./events.ts";
import { type CheckResult, type Facts, isUngraded } from "./facts.ts";
import type { Exposure, ListedPage, Preconditions, Visit } from "./grade.ts";
import { normalizeUrl } from "./text.ts";

/** The syntax of `Preconditions`: what a session must have done to meet a friction point. */
export const requestPrecondition = (url: string) => `requested ${pageKey(url)}`;
export const readPrecondition = (url: string) => `read ${pageKey(url)}`;
const testPrecondition = (url: string) => `tested ${pageKey(url)}`;
/** Links and samples are checked wherever their page is tested. */
const isCheckOfPart = ({ group }: CheckResult) => group === "link" || group === "sample";
export const checkPrecondition = (check: CheckResult) =>
  isCheckOfPart(check) ? testPrecondition(check.url) : `check ${check.id} ${normalizeUrl(check.subject)}`;

/** Whether a session would have met a friction point with these preconditions, if it still existed. */
export function hasReached(
  { visits, done, isComplete }: Omit<Exposure, "listed">,
  preconditions: Preconditions,
): boolean {
  return preconditions.every((precondition) => {
    if (done.includes(precondition)) return true;
    const [, relation, page] = /^(requested|read|tested) (.*)$/s.exec(precondition) ?? [];
    const visit = visits.find((each) => each.page === page);
    if (visit === undefined) return false;
    if (relation === "requested") return true;
    // An agent that tests pages tests all that it reads, unless a limit ends the run.
    return visit.reads > 0 && (relation === "read" || isComplete);
  });
}

/** The pages that were requested or listed, according to the events. A session that failed reached nothing. */
export function exposureOf(facts: Facts, events: SessionEvent[]): Exposure {
  const base = { isComplete: facts.limits.length === 0, byRules: facts.kind !== "model" };
  if (isUngraded(facts.outcome)) return { visits: [], listed: [], done: [], ...base };
  const checks = facts.checks.filter((check) => check.status !== "skip" && !isCheckOfPart(check));
  const done = [
    "run",
    ...(facts.goalAnswer ? ["goal"] : []),
    ...checks.map(checkPrecondition),
    ...facts.results.map(({ tool }) => `tool ${tool}`),
    ...facts.surveyedPages.map(({ url }) => testPrecondition(url)),
  ];
  return { visits: visitsOf(facts), listed: listedPagesOf(facts, events), done: [...new Set(done)], ...base };
}

function visitsOf({ taskRequests, pages, failures }: Facts): Visit[] {
  const visits = new Map<string, Visit>();
  const visitOf = (url: string): Visit => {
    const page = pageKey(url);
    const visit = visits.get(page) ?? { page, url, reads: 0, misses: 0, guesses: 0, errors: 0, found: {} };
    visits.set(page, visit);
    return visit;
  };
  for (const http of taskRequests.filter((each) => !isProbe(each))) {
    const visit = visitOf(http.url);
    if (!hasFailed(http)) visit.found[http.provenance] = (visit.found[http.provenance] ?? 0) + 1;
    else {
      visit.misses++;
      if (http.provenance === "guessed" && isNotFound(http)) visit.guesses++;
    }
  }
  pages.forEach(({ url, seq }, i) => {
    const next = pages[i + 1]?.seq ?? Number.POSITIVE_INFINITY;
    const visit = visitOf(url);
    visit.reads++;
    if (failures.some(({ seqs }) => seqs[0]! > seq && seqs[0]! < next)) visit.errors++;
  });
  return [...visits.values()];
}

/** Pages on the hosts of the start URLs. */
function listedPagesOf({ startUrls, checkRequests }: Facts, events: SessionEvent[]): ListedPage[] {
  const origins = new Set(startUrls.flatMap((start) => URL.parse(start)?.origin ?? []));
  const listings = [
    ...milestonesOf(events, "pages_listed").flatMap(({ detail: { by, urls } }) => urls.map((url) => ({ url, by }))),
    ...checkRequests
      .filter((http) => http.provenance === "link" && http.foundOn !== null && !hasFailed(http))
      .map(({ url }) => ({ url, by: "link" as const })),
  ];
  const listed = new Map<string, ListedPage>();
  for (const { url, by } of listings) {
    if (!origins.has(URL.parse(url)?.origin ?? "") || !mayBePage(url)) continue;
    const page = pageKey(url);
    listed.set(`${by} ${page}`, { page, url: url.replace(/#.*$/s, ""), by });
  }
  return [...listed.values()];
}

/** Files that aren't docs pages. */
const otherFiles = [
  /\.(png|jpe?g|gif|svg|webp|ico|css|m?js|json|ya?ml|xml|rss|atom|zip|t?gz|pdf|mp4|woff2?|ttf)([?#]|$)/i,
  /\/(llms(-full)?|robots)\.txt$/i,
];
const mayBePage = (url: string) => !otherFiles.some((file) => file.test(url));
