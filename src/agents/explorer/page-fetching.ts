import { toAddress } from "../../net/failure.ts";
import { maxRedirects } from "../../net/guarded.ts";
import { pageKey } from "../../net/page-key.ts";
import { problemOfErrorPage } from "../error-pages.ts";
import { isReadable, type Page, readPage } from "../page.ts";
import { type FetchRequest, type FetchResult, fetchUrl, findRefusal, type Log } from "./fetching.ts";
import { toStems } from "./goal.ts";
import { namesOf } from "./link-graph.ts";
import { isDeepForBrowsers } from "./nesting.ts";
import type { ReadPage, Session } from "./session.ts";

const pages = new WeakMap<FetchResult, Page>();

/** The page in a response, parsed once; null if the response isn't a page. */
function pageIn(fetchResult: FetchResult): Page | null {
  if (
    !fetchResult.ok ||
    fetchResult.response.status < 200 ||
    fetchResult.response.status > 299 ||
    !isReadable(fetchResult.contentType)
  )
    return null;
  const page =
    pages.get(fetchResult) ?? readPage(fetchResult.response.url, fetchResult.contentType, fetchResult.text());
  pages.set(fetchResult, page);
  return page;
}

/** Larger pages have content of their own. They aren't searched for a redirect, because parsing them would add to the measured response time. */
const maxStubBytes = 32_768;

/** Requests a page. Like a browser, it follows the redirects of pages that only send their reader elsewhere. */
export async function fetchPage({ fetcher }: Session, request: FetchRequest, log: Log): Promise<FetchResult> {
  let fetchResult = await fetchUrl(fetcher, request, log);
  const passed: string[] = [];
  const followed: string[] = [];
  for (;;) {
    const target = redirectOf(fetchResult);
    if (!fetchResult.ok || target === null) break;
    const { url, redirects } = fetchResult.response;
    passed.push(...redirects, url);
    followed.push(url);
    if (passed.includes(target) || followed.length > maxRedirects)
      return {
        ok: false,
        kind: "redirect",
        message: `${url} sends its reader to ${target}, which leads back to it`,
        address: toAddress(target),
      };
    const next = { ...request, url: target, foundOn: url };
    fetchResult = (await findRefusal(fetcher, target, log)) ?? (await fetchUrl(fetcher, next, log));
  }
  if (followed.length === 0 || !fetchResult.ok) return fetchResult;
  const { response } = fetchResult;
  return { ...fetchResult, response: { ...response, redirects: [...passed, ...response.redirects] }, followed };
}

/** Where a page without content sends its reader, without the fragment; null if nowhere else. */
function redirectOf(fetchResult: FetchResult): string | null {
  if (!fetchResult.ok || fetchResult.response.body.length > maxStubBytes) return null;
  if (!/html/i.test(fetchResult.contentType ?? "html") || !/http-equiv|location/i.test(fetchResult.text())) return null;
  const target = pageIn(fetchResult)?.redirect?.replace(/#.*$/s, "") ?? null;
  return target === fetchResult.response.url.replace(/#.*$/s, "") ? null : target;
}

/** The page that a request for `url` got, as the session knows it; null if the response isn't a page. */
export function toReadPage(session: Session, url: string, fetchResult: FetchResult): ReadPage | null {
  const page = withHeaders(pageIn(fetchResult), fetchResult);
  if (!fetchResult.ok || page === null) return null;
  const { redirects } = fetchResult.response;
  const addresses = [...new Set([url.replace(/#.*$/s, ""), ...redirects, page.url])];
  const problem = findProblemAmongOthers(session, page, addresses);
  const { contentType, wrongCharset, followed = [] } = fetchResult;
  const isTooDeep = isDeepForBrowsers(page.form === "html" ? fetchResult.text() : withoutSamples(page));
  const delivery = { contentType, wrongCharset: wrongCharset(), followed, isTooDeep };
  return { ...page, problem, addresses, delivery };
}

/** Markdown without its code, in which angle brackets may look like HTML elements. */
function withoutSamples({ markdown, samples }: Page): string {
  const lines = markdown.split("\n");
  for (const { line, code } of samples) lines.fill("", line - 1, line + code.split("\n").length);
  return lines.join("\n").replace(/`[^`\n]*`/g, "");
}

/** A page with the information that only the headers of its response have. */
function withHeaders(page: Page | null, fetchResult: FetchResult): Page | null {
  if (!fetchResult.ok || page === null) return null;
  const isUnlisted = page.isUnlisted || noIndex.test(fetchResult.response.headers.get("x-robots-tag") ?? "");
  const listed = { ...page, isUnlisted };
  // A page that asks search engines not to list it may be missing on purpose. Only the headers may say so.
  return page.problem === "soft_404" ? { ...listed, problem: problemOfErrorPage(listed) } : listed;
}

/** A rule of `X-Robots-Tag`. It is for all search engines, or for the search engine named before a colon. */
const noIndex = /^(?:[^,:]*:)?(?:[^:]*,)?\s*(noindex|none)\b/i;

/** The problem of a page. It depends on what the page shows, which URL was requested, and what other pages of its host show and say. */
function findProblemAmongOthers(session: Session, page: Page, addresses: string[]): Page["problem"] {
  if (page.problem === "sign_in" && isInTemplate(session, page, "asksToSignIn")) return null;
  if (page.problem === "challenge" && isInTemplate(session, page, "asksForProof"))
    return page.markdown === "" ? "empty_shell" : null;
  // If the text of a link is the page's title, the link leads here on purpose, even if the title looks like that of an error page.
  const isErrorPage = page.problem === "soft_404" || page.problem === "missing";
  if (isErrorPage && addresses.some((each) => isNamed(session, page, each))) return null;
  if (page.problem !== null) return page.problem;
  const isStart = addresses.some((address) =>
    session.task.startUrls.some((start) => pageKey(start) === pageKey(address)),
  );
  if (isStart) return null;
  const [requested] = addresses as [string, ...string[]];
  if (page.isThin && containsPathOf(page.url, requested)) return "sign_in";
  const missing = session.missingPages.get(new URL(page.url).origin);
  if (missing === undefined) return null;
  const urls = [missing.url, page.url];
  const looksMissing = textWithoutUrls(missing, urls) === textWithoutUrls(page, urls);
  return looksMissing ? problemOfErrorPage(page) : null;
}

/** Whether other pages of the host that have content show the same form or test. */
const isInTemplate = ({ pages, surveyed }: Session, { url }: Page, demand: "asksToSignIn" | "asksForProof"): boolean =>
  [...pages, ...surveyed].some(
    (other) =>
      other[demand] && other.problem === null && !other.isThin && new URL(other.url).origin === new URL(url).origin,
  );

/** Whether the text of a link to a URL is the title of its page. */
function isNamed({ graph }: Session, { title, headings }: Page, address: string): boolean {
  const inTitle = new Set(toStems(`${title} ${headings[0]?.text ?? ""}`));
  const names = namesOf(graph, address).map(toStems);
  return names.some((words) => words.length > 1 && words.every((word) => inTitle.has(word)));
}

/** Whether the query of a URL contains the path of another URL. Sign-in pages keep the place to return to in their query. */
function containsPathOf(address: string, requested: string): boolean {
  const { pathname } = new URL(requested);
  return (
    pathname !== "/" &&
    pageKey(address) !== pageKey(requested) &&
    new URL(address).searchParams.values().some((value) => value.includes(pathname))
  );
}

/** What differs between two error pages of a host: IDs of the request, times. */
const idOrNumber = /\b[\da-f-]{8,}\b|\d+/gi;

/** The text of a page without the given URLs, which an error page may repeat, and without IDs and numbers. */
function textWithoutUrls({ markdown }: Page, urls: string[]): string {
  let text = markdown;
  for (const url of urls) {
    const { pathname } = new URL(url);
    const lastPart = pathname.split("/").filter(Boolean).at(-1) ?? "";
    for (const name of [url, pathname, lastPart]) if (name.length > 1) text = text.replaceAll(name, "");
  }
  return text.replace(idOrNumber, "").replace(/\s+/g, " ");
}

/** The HTML of a page that was read as Markdown, as browsers get it; null if there is none, or none that can be read. */
export async function readHtmlVersion(session: Session, { url }: ReadPage, log: Log): Promise<ReadPage | null> {
  const address = url.replace(/(?:\/index)?\.mdx?$/i, "");
  if (await findRefusal(session.fetcher, address, log)) return null;
  const request = {
    url: address,
    provenance: "guessed",
    foundOn: null,
    purpose: "check",
    accept: "text/html",
  } as const;
  const page = toReadPage(session, address, await fetchPage(session, request, log));
  return page?.form === "html" && page.problem === null ? page : null;
}

/** Nobody has a page of this name. */
const missingName = "evald-no-such-page-7f3a";

/** Keeps the page that a host shows for a URL that doesn't exist, if its status is a success. Other pages that look like it are missing, too. */
export async function probeMissingPage(session: Session, start: string, log: Log): Promise<void> {
  const url = new URL(missingName, start).href;
  if (await findRefusal(session.fetcher, url, log)) return;
  const request = { url, provenance: "guessed" as const, foundOn: null, purpose: "check" as const };
  const fetchResult = await fetchPage(session, request, log);
  const page = withHeaders(pageIn(fetchResult), fetchResult);
  if (page) session.missingPages.set(new URL(url).origin, page);
}
