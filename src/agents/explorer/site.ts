import type { CheckContext, CheckResult } from "afdocs";
import type { Check } from "../agent.ts";
import { isHtmlText } from "../page.ts";
import type { PageProblem } from "../page-problem.ts";
import { limitTags } from "../tag-limits.ts";
import { advice } from "./advice.ts";
import {
  type Fetcher,
  type FetchRequest,
  type FetchResult,
  fetchUrl,
  findLimit,
  findRefusal,
  type Log,
} from "./fetching.ts";
import { depthMessage, isDeepForBrowsers, isNestedTooDeeply } from "./nesting.ts";
import { cutToBudget } from "./parse-budget.ts";
import { cut, mapInOrder, type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** Maximum number of pages per site for static checks, and of llms.txt links that they follow. */
const maxPages = 8;
const maxLinks = 40;
const concurrency = 4;
const maxSites = 2;
/** Maximum characters of one page for afdocs, well above any size that it calls too large. */
const maxPageChars = 1_000_000;

/** IDs of checks of how pages are discovered; all others are about the pages themselves. */
const discoveryChecks = new Set([
  "llms-txt-coverage",
  "http-status-codes",
  "redirect-behavior",
  "bot-protection-interference",
]);

/**
 * The static checks of the Agent-Friendly Docs Spec, run by the afdocs package through our own network access on the
 * pages that were read.
 */
export async function* checkSites(session: Session): Steps {
  const { site } = session.task;
  // Only a build of the sources adds what these checks look for.
  const sourcesOrigin = site?.form === "markdown" ? new URL(site.at).origin : null;
  const sites = Map.groupBy(session.pages, ({ url }) => new URL(url).origin);
  sites.delete(sourcesOrigin ?? "");
  for (const [origin, allPages] of [...sites].slice(0, maxSites)) {
    const pages = allPages.slice(0, maxPages);
    const urls = pages.map(({ url }) => url);
    yield* useTool(session, "check_site", { origin, pages: urls.length }, async (log) => {
      const base = baseOf(session, urls);
      const afdocs = await createCheckContext(base, urls);
      if (afdocs === null) return { ok: false, output: { origin, message: blockedMessage(origin) }, value: undefined };
      const checks = await runChecks(session, afdocs, base, pages, log);
      const count = (status: Check["status"]) => checks.filter((check) => check.status === status).length;
      const output = { origin, pass: count("pass"), warn: count("warn"), fail: count("fail"), skip: count("skip") };
      return { ok: true, output, checks, value: undefined };
    });
  }
}

const blockedMessage = (origin: string) =>
  `The site was not checked, because fetch blocks port ${new URL(origin).port}. Serve the docs on another port.`;

/** null: fetch blocks the port of the site. */
async function createCheckContext(base: string, urls: string[]): Promise<CheckContext | null> {
  const { createContext } = await import("afdocs");
  try {
    return createContext(base, {
      requestDelay: 0,
      maxConcurrency: concurrency,
      maxLinksToTest: maxLinks,
      samplingStrategy: "curated",
      curatedPages: urls,
      networkContext: "cloud",
    });
  } catch (caught) {
    // afdocs marks this error only by its text.
    if (caught instanceof Error && caught.message.includes("blocked-port list")) return null;
    throw caught;
  }
}

async function runChecks(
  session: Session,
  afdocs: CheckContext,
  base: string,
  pages: ReadPage[],
  log: Log,
): Promise<Check[]> {
  const urls = pages.map(({ url }) => url);
  const { getChecksSorted } = await import("afdocs");
  const { getCheckProportion, CHECK_WEIGHTS } = await import("afdocs/scoring");
  const { fetcher, context } = session;
  const { origin } = new URL(base);
  const { site: folderSite } = session.task;
  const site: CheckedSite = {
    pages,
    isFolder: folderSite !== undefined && new URL(folderSite.at).origin === origin,
    isMarkdown: await servesMarkdown(fetcher, urls, log),
    suggestsPages: session.missingPages.get(origin)?.problem === "missing",
  };
  const checks: Check[] = [];
  const deepUrls = new Set<string>();
  for (const definition of getChecksSorted()) {
    context.signal.throwIfAborted();
    const weight = CHECK_WEIGHTS[definition.id];
    if (!weight) continue;
    const checkFields = { id: definition.id, category: definition.category };
    const checkLog: Log = { id: log.id, events: [] };
    const missingResponses: MissingResponses = new Set();
    afdocs.http = toHttp(fetcher, afdocs, checkLog, { missingResponses, deepUrls });
    const preventedBefore = fetcher.preventedCount;
    const skip = (message: string): CheckResult => ({ ...checkFields, status: "skip", message });
    const dependencies = [...toGroups(definition.dependsOn), ...(extraDependencies[definition.id] ?? [])];
    const runCheck = async () => {
      if (findLimit(fetcher)) return skip(limitMessage);
      if (!areDependenciesMet(dependencies, afdocs)) return skip("A check that this one depends on did not pass");
      return definition.run(afdocs).catch((error) => skip(`The check failed: ${error}`));
    };
    const result = await runCheck();
    context.signal.throwIfAborted();
    log.events.push(...inFixedOrder(checkLog.events));
    // A check reports a page as broken if its request wasn't sent, so that result is discarded.
    const missing = fetcher.preventedCount > preventedBefore ? limitMessage : describeMissing(missingResponses);
    const reliableResult = missing === null ? result : skip(missing);
    afdocs.previousResults.set(definition.id, reliableResult);
    const share = getCheckProportion(reliableResult, weight);
    const reason =
      reasonToSkip(definition.id, reliableResult, site) ?? (share?.tested === 0 ? reliableResult.message : null);
    const reportedResult = reason === null ? reliableResult : skip(reason);
    checks.push(toSiteCheck(reportedResult, share?.proportion ?? 0, weight.weight, base, urls));
  }
  return [...checks, ...[...deepUrls].sort().map(toDepthCheck)];
}

/** `isFolder`: evald serves the site from a folder. `suggestsPages`: pages for missing URLs say that they are missing, and suggest other pages. */
type CheckedSite = { pages: ReadPage[]; isFolder: boolean; isMarkdown: boolean; suggestsPages: boolean };

/** Why the result of a check isn't reported; null if it is. */
function reasonToSkip(id: string, result: CheckResult, site: CheckedSite): string | null {
  if (site.isMarkdown && htmlSiteChecks.has(id)) return "The pages are always Markdown";
  if (site.suggestsPages && id === "http-status-codes") return "Missing pages say so, and suggest others";
  if (site.isFolder && id === "cache-header-hygiene") return "Only the host of the site sets its headers";
  if (result.status !== "pass" && isDisproved(id, site.pages)) return "The pages could be read";
  if (hasOnlyDeadLinks(result)) return "Links are absolute; those that are dead are reported one by one";
  if (result.status === "fail" && id === "markdown-code-fence-validity")
    return "Fences that are not closed are reported page by page";
  return hasNothingToCheck(result) ? result.message : null;
}

/** The events of requests in a fixed order. The requests ran at once, so their own order depends on timing. */
function inFixedOrder(events: Log["events"]): Log["events"] {
  const keyOf = (event: Log["events"][number]) =>
    event.type === "http" ? `${event.url} ${event.method} ${event.contentType}` : "";
  return events.toSorted((a, b) => Number(keyOf(a) > keyOf(b)) - Number(keyOf(a) < keyOf(b)));
}

const limitMessage = "Not fully tested: the run reached a limit";

/** Dependencies that afdocs doesn't declare. Without an llms.txt, nothing can link to it, and its absence should count only once. */
const extraDependencies: Record<string, string[][]> = {
  "llms-txt-directive-html": [["llms-txt-exists"]],
  "llms-txt-directive-md": [["llms-txt-exists"]],
};

/**
 * Checks that repeat other results for a site without HTML, or that test something that such a site already does. They still run, because others
 * depend on them.
 */
const htmlSiteChecks = new Set([
  "markdown-url-support",
  "content-negotiation",
  "page-size-html",
  "llms-txt-directive-html",
  "markdown-content-parity",
]);

/** Checks that guess from the HTML that a page can't be read, with the problems that such a page has if the guess is right. */
const guessedProblems: Record<string, PageProblem[]> = {
  "rendering-strategy": ["empty_shell", "empty"],
  "auth-gate-detection": ["sign_in"],
};

/** Whether all pages could be read, although a check guesses that they can't. */
function isDisproved(id: string, pages: ReadPage[]): boolean {
  const guessed = guessedProblems[id];
  return guessed !== undefined && !pages.some(({ problem }) => problem !== null && guessed.includes(problem));
}

/** Whether a client without an Accept header gets Markdown. */
async function servesMarkdown(fetcher: Fetcher, urls: string[], log: Log): Promise<boolean> {
  const request = { provenance: "given" as const, foundOn: null, purpose: "check" as const };
  const answers = await mapInOrder(urls, concurrency, log, (url, urlLog) =>
    fetchUrl(fetcher, { ...request, url }, urlLog),
  );
  return answers.every((answer) => answer.ok && /markdown|text\/plain/i.test(answer.contentType ?? ""));
}

/** The dependencies of a check as groups. In each group, one check must have passed. */
const toGroups = (dependsOn: string[] | string[][]) =>
  dependsOn.map((need) => (typeof need === "string" ? [need] : need));

const areDependenciesMet = (groups: string[][], { previousResults }: CheckContext) =>
  groups.every((group) => group.some((id) => /^(pass|warn)$/.test(previousResults.get(id)?.status ?? "")));

/** Whether the check of relative links in Markdown failed only because of links that are dead, which other checks report. */
function hasOnlyDeadLinks({ id, status, details }: CheckResult): boolean {
  if (id !== "markdown-link-portability" || status !== "fail") return false;
  const { broken, ...otherReasons } = (details?.reasons ?? {}) as Record<string, number>;
  return broken !== undefined && Object.values(otherReasons).every((count) => count === 0);
}

/** Whether a check had nothing to test. Checks of tabs and of the headings in them pass if there are no tabs, which says nothing about the pages. */
function hasNothingToCheck({ id, status, details }: CheckResult): boolean {
  if (status !== "pass") return false;
  if (id === "tabbed-content-serialization") return !details?.totalGroupsFound;
  const headings = details?.analyses;
  return id === "section-header-quality" && (!Array.isArray(headings) || headings.length === 0);
}

/** Why a check got no response to a request. */
type MissingResponses = Set<
  "robots.txt disallows" | "this service may not reach" | "elements are nested too deeply at"
>;

const describeMissing = (responses: MissingResponses): string | null =>
  responses.size > 0 ? `Not tested: ${[...responses].join(" and ")} a URL that this check needs` : null;

/** The options that afdocs passes with a request. */
type RequestOptions = NonNullable<Parameters<CheckContext["http"]["fetch"]>[1]>;

async function fetchAllowed(
  fetcher: Fetcher,
  url: string,
  { method, headers = {}, redirect }: RequestOptions,
  log: Log,
): Promise<FetchResult> {
  const refusal = await findRefusal(fetcher, url, log);
  if (refusal) return refusal;
  const accept = Object.entries(headers).find(([name]) => name.toLowerCase() === "accept")?.[1];
  const request: FetchRequest = {
    url,
    provenance: "guessed",
    foundOn: null,
    purpose: "check",
    method: method === "HEAD" ? "HEAD" : "GET",
    ...(accept && { accept }),
    follow: redirect !== "manual",
  };
  return fetchUrl(fetcher, request, log);
}

/**
 * Our network access in the interface of afdocs. `missingResponses` receives the reason for each missing response. `deepUrls` receives the URLs of
 * pages that would take too long to parse.
 */
function toHttp(
  fetcher: Fetcher,
  { fetchLedger }: CheckContext,
  log: Log,
  { missingResponses, deepUrls }: { missingResponses: MissingResponses; deepUrls: Set<string> },
): CheckContext["http"] {
  return {
    fetch: async (url, options = {}) => {
      const fetchResult = await fetchAllowed(fetcher, url, options, log);
      const record = { seq: fetchLedger?.records.length ?? 0, url };
      if (!fetchResult.ok) {
        const { kind, message } = fetchResult;
        if (kind === "disallowed") missingResponses.add("robots.txt disallows");
        if (kind === "refused") missingResponses.add("this service may not reach");
        if (kind !== "cut" && kind !== "disallowed")
          fetchLedger?.onRecord({ ...record, status: null, outcome: "fetch-error", error: message });
        throw new Error(message);
      }
      const { response, contentType } = fetchResult;
      const { status } = response;
      const retryAfter = response.headers.get("retry-after");
      const blocked = status === 403 || status === 503 || (status === 429 && !retryAfter);
      const responseRecord = {
        ...record,
        status,
        outcome: "ok" as const,
        ...(blocked && { blocked }),
        ...(status === 429 && retryAfter && { retryAfter }),
      };
      fetchLedger?.onRecord(responseRecord);
      const text = parsableText(fetchResult.text(), contentType);
      if (isNestedTooDeeply(text)) {
        missingResponses.add("elements are nested too deeply at");
        if (isDeepForBrowsers(text)) deepUrls.add(url);
        throw new Error(depthMessage(url));
      }
      fetchLedger?.onBody(responseRecord, text, contentType ?? "");
      return {
        ok: status >= 200 && status < 300,
        status,
        statusText: "",
        headers: response.headers,
        url: response.url,
        redirected: response.redirects.length > 0,
        text: async () => text,
        body: async () => ({ text, bytes: response.body.length }),
      };
    },
  };
}

/** As much of a response as afdocs can parse in a short time. */
function parsableText(text: string, contentType: string | null): string {
  const start = text.slice(0, maxPageChars);
  const isHtml = isHtmlText(contentType, start);
  return cutToBudget(isHtml ? limitTags(start) : start, isHtml);
}

function toSiteCheck(result: CheckResult, share: number, weight: number, base: string, urls: string[]): Check {
  const { id, message, category } = result;
  const status = result.status === "error" ? "skip" : result.status;
  return toCheck({
    id,
    group: category === "content-discoverability" || discoveryChecks.has(id) ? "discovery" : "page",
    status,
    ...(status !== "pass" && status !== "skip" && { share, fix: advice[id] ?? null }),
    weight,
    subject: new URL(base).origin,
    url: findWorstPage(result, urls) ?? base,
    message: cut(message, 400),
  });
}

const toDepthCheck = (url: string): Check =>
  toCheck({
    id: "nesting-depth",
    group: "page",
    status: "fail",
    subject: url,
    message: depthMessage(url),
    fix: "Close every element, and put fewer elements inside each other.",
  });

/** The worst page, for a check that looks at several pages. */
function findWorstPage({ details }: CheckResult, urls: string[]): string | null {
  const results = (details?.pageResults ?? details?.tabbedPages) as
    | { url?: string; status?: string; supported?: boolean }[]
    | undefined;
  if (!Array.isArray(results)) return null;
  const worst =
    results.find(({ status, supported }) => status === "fail" || supported === false) ??
    results.find(({ status }) => status === "warn");
  return worst?.url && urls.includes(worst.url) ? worst.url : null;
}

/** The folder where the llms.txt of the docs would be, without a trailing slash. */
function baseOf({ docsFolders }: Session, urls: string[]): string {
  const { origin } = new URL(urls[0]!);
  const [folder, ...others] = docsFolders.get(origin) ?? [];
  return folder === undefined || others.length > 0 || folder === `${origin}/`
    ? commonFolder(urls)
    : folder.replace(/\/$/, "");
}

/** The deepest folder that contains all pages, without a trailing slash. */
function commonFolder(urls: string[]): string {
  const folders = urls.map((url) => new URL(".", url).pathname.split("/"));
  const first = folders[0] ?? [];
  let depth = 0;
  while (depth < first.length && folders.every((folder) => folder[depth] === first[depth])) depth++;
  return new URL(urls[0]!).origin + first.slice(0, depth).join("/").replace(/\/$/, "");
}
