import type { Check } from "../agent.ts";
import { isOtherFile, isView } from "../non-pages.ts";
import { isReadable, type Page, readPage, startsLikeHtml } from "../page.ts";
import { type FetchResult, maxBytes } from "./fetching.ts";

/** If a document is HTML, it says so within these first bytes. */
const maxDoctypeBytes = 3000;
/** A test of the browser has little besides its scripts. */
const maxChallengeChars = 100_000;

/** What is wrong with a page, as the result of a check. `place`: where to fix it; absent: on the page that links to it. */
export type PageFault = {
  id: string;
  status: Check["status"];
  share: Check["share"];
  message: string;
  fix: string;
  place?: Pick<Check, "url" | "line" | "quote">;
};

/** A request with a response. */
type Answered = Extract<FetchResult, { ok: true }>;

const failure = (id: string, message: string, fix: string): PageFault => ({
  id,
  status: "fail",
  share: 0,
  message,
  fix,
});

/** Pages of other sites that need sign-in or are only meant for maintainers. */
const personalPath = /\/(account|settings|edit|issues\/new|new\/choose|compare|dashboard)(\/|$)/i;
export const isPersonal = (url: string): boolean => personalPath.test(new URL(url).pathname);
/** The same for the site of the docs, whose folders may have pages with these names. */
const ownPersonalPath = /^\/(account|settings|dashboard)(\/|$)|\/(edit|issues\/new|new\/choose|compare)(\/|$)/i;
const isPersonalOnOwnSite = (url: string): boolean => ownPersonalPath.test(new URL(url).pathname);

/**
 * Why a page couldn't be read, by the response to its request; null if it could, or if the cause can't be determined
 * here.
 */
export function findResponseFault(url: string, fetchResult: FetchResult): PageFault | null {
  if (!fetchResult.ok) {
    if (fetchResult.kind === "redirect")
      return failure(
        "redirect-ends",
        `${url} redirects endlessly: ${fetchResult.message}`,
        "Redirect the URL directly to the page.",
      );
    if (fetchResult.kind === "timeout")
      return failure(
        "answers-in-time",
        `${url} did not respond in time`,
        "Find out why the page is slow, or serve it from a cache.",
      );
    // If a host responds to other requests, it exists. The page may exist, too.
    if (fetchResult.kind === "protocol" || (fetchResult.kind === "unreachable" && fetchResult.hostResponds))
      return failure(
        "page-readable",
        `${url} has no response that can be read: ${fetchResult.message}`,
        "Make the server send complete responses in the encoding that they declare.",
      );
    if (fetchResult.kind === "unreachable")
      return failure(
        "link-resolves",
        `${url} cannot be reached: ${fetchResult.message}`,
        "Restore the page, or remove the links to it.",
      );
    if (fetchResult.kind === "too_large")
      return failure(
        "page-size",
        `${url} is larger than ${maxBytes / 1024 / 1024} MiB, the most that evald reads of a page`,
        "Divide the page, and link its parts.",
      );
    return null;
  }
  const { status, ms, edit } = fetchResult.response;
  // The run hides the page, so the site isn't to blame.
  if (edit?.kind === "hidden") return null;
  if (status >= 400 && isChallenge(url, fetchResult)) return challengeFault(url);
  if (status === 401 || status === 402 || status === 403 || status === 407)
    return isPersonalOnOwnSite(url)
      ? null
      : failure(
          "open-access",
          `${url} returned status ${status}: it requires sign-in or blocks programs`,
          "Make the docs readable without signing in.",
        );
  if (status === 404 || status === 410)
    return failure(
      "link-resolves",
      `${url} does not exist (status ${status})`,
      "Link to the page's current URL, or redirect the old URL to it.",
    );
  if (status >= 500)
    return failure("page-answers", `${url} returned status ${status}`, "Make the server return this page.");
  if (status < 300 && isPageAsFile(fetchResult)) return unreadableType(url, fetchResult.contentType);
  if (fetchResult.isSlow)
    return {
      id: "answers-in-time",
      status: "warn",
      share: 0.5,
      message: `${url} took ${(ms / 1000).toFixed(1)} s to respond`,
      fix: "Find out why the page is slow, or serve it from a cache.",
    };
  return null;
}

/** Why a page can't be used although nothing is wrong with its response. This is reported only if the answer depends on the page. */
export function findFaultOfNeeded(url: string, fetchResult: FetchResult): PageFault | null {
  if (!fetchResult.ok) {
    if (fetchResult.kind !== "disallowed" || isView(url)) return null;
    const fault = failure(
      "robots-allow",
      `${url} is disallowed by the host's robots.txt, but the answer depends on it`,
      "Allow agents to read the page in robots.txt.",
    );
    const { rule } = fetchResult;
    return rule ? { ...fault, place: { url: rule.url, line: rule.line, quote: rule.text } } : fault;
  }
  const { response, contentType } = fetchResult;
  const isPage = response.status < 300 && !isOtherFile(url) && !isDownload(fetchResult);
  return isPage && !isReadable(contentType) ? unreadableType(url, contentType) : null;
}

const unreadableType = (url: string, contentType: string | null): PageFault =>
  failure(
    "content-type-readable",
    `${url} has the content type ${contentType}, which readers don't open as a page`,
    "Set the content type of the page, such as text/html or text/markdown.",
  );

/** A Content-Disposition header with a file name. It means that the file should be saved. */
const namedDownload = /^\s*attachment\s*;.*\bfilename\b/i;
const isDownload = ({ response }: Answered): boolean =>
  namedDownload.test(response.headers.get("content-disposition") ?? "");

/** Whether a page is sent as a file of another kind without being offered as a download. The page is HTML, or it is Markdown by its name. */
function isPageAsFile(answered: Answered): boolean {
  const { body, url } = answered.response;
  if (isReadable(answered.contentType) || isDownload(answered)) return false;
  if (/\.(?:mdx?|markdown)$/i.test(new URL(url).pathname)) return true;
  return startsLikeHtml(new TextDecoder().decode(body.subarray(0, maxDoctypeBytes)));
}

/** A page, with all of its URLs if it has several. */
type CheckedPage = Page & { addresses?: string[] };

/** The worst problem of a response and of the page in it; null if they have none. */
export function findWorstFault(url: string, fetchResult: FetchResult, page: CheckedPage | null): PageFault | null {
  const responseFault = findResponseFault(url, fetchResult);
  if (responseFault?.status === "fail" || page === null) return responseFault;
  return findPageFault(page) ?? responseFault;
}

const challengeFault = (url: string): PageFault =>
  failure(
    "challenge",
    `${url} tests the reader's browser instead of showing the page`,
    "Let agents through the bot protection.",
  );

/** Whether an error page tests the reader's browser. If the page says little, a script may load the test. */
function isChallenge(url: string, { contentType, text }: Answered): boolean {
  if (!isReadable(contentType)) return false;
  const page = readPage(url, contentType, text().slice(0, maxChallengeChars));
  return page.problem === "challenge" || (page.isThin && page.asksForProof);
}

/** Why the text of a page with a success status couldn't be read; null if it could. */
export function findPageFault({ url, title, problem, addresses = [url] }: CheckedPage): PageFault | null {
  if (problem === "empty")
    return failure("has-text", `${url} has no text`, "Restore the content of the page, or remove the links to it.");
  if (problem === "empty_shell")
    return failure(
      "text-without-scripts",
      `${url} has no text until its scripts have run`,
      "Include the text in the HTML that the server sends.",
    );
  if (problem === "soft_404")
    return failure(
      "missing-pages-say-so",
      `${url} says that it does not exist (“${title.slice(0, 100)}”), but returned a success status`,
      "Restore the page, or return status 404 and remove the links to it.",
    );
  if (problem === "missing")
    return failure(
      "link-resolves",
      `${url} does not exist, as its page says (“${title.slice(0, 100)}”)`,
      "Link to the page's current URL, or redirect the old URL to it.",
    );
  if (problem === "challenge") return challengeFault(url);
  if (problem === "sign_in" && !addresses.some(isPersonalOnOwnSite))
    return failure(
      "open-access",
      `${url} shows a sign-in form instead of the page`,
      "Make the docs readable without signing in.",
    );
  return null;
}
