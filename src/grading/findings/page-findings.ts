import { isOtherFile, isView } from "../../agents/non-pages.ts";
import { slowPageMs } from "../../agents/page-problem.ts";
import { pageKey } from "../../net/page-key.ts";
import { type EventOf, type Http, hasFailed, isProbe } from "../events.ts";
import { readPrecondition, requestPrecondition } from "../exposure.ts";
import type { Facts } from "../facts.ts";
import type { Failure } from "../failures.ts";
import { linkEvidence } from "../link-edits.ts";
import { count, duration, lineOrNull, list, normalizeUrl, oneLine, sentence, shortUrl } from "../text.ts";
import { checkFrictionOf } from "./catalogue.ts";
import { conductDrafts } from "./conduct-findings.ts";
import { type Finding, type FindingDraft, fingerprint, joinCauses, noCause, pageName } from "./finding.ts";
import { pathKinds } from "./finding-kinds.ts";
import { goalDrafts } from "./goal-findings.ts";

const toFinding = ({ subject, remedy, ...draft }: FindingDraft): Finding => ({
  cause: noCause,
  foundBy: "rules",
  fix: null,
  quote: null,
  owner: "fixes",
  evidence: null,
  onPath: true,
  ...draft,
  place: draft.place ?? oneLine(draft.title, 120),
  title: oneLine(draft.title, 160),
  description: oneLine(draft.description, 800),
  url: draft.url === null ? null : oneLine(draft.url, 2000),
  fingerprint: fingerprint(draft.category, subject),
  remedy: { kind: "other", ...remedy, title: oneLine(remedy.title, 160) },
});

/** Problems on the path of this session, apart from what was tested on purpose. */
export function pathFindings(facts: Facts): Finding[] {
  const hasReadNothing = facts.pages.length === 0;
  const drafts = [
    ...facts.failures.map((failure) =>
      failure.target === "docs" ? failureDraft(failure, facts, hasReadNothing) : null,
    ),
    ...conductDrafts(facts),
    ...facts.interruptions.map((interruption) => interruptionDraft(interruption, facts)),
    ...slowDrafts(facts),
    ...goalDrafts(facts.goalAnswer, facts),
    ...facts.limits.map((limit) => limitDraft(limit, facts)),
  ].filter((draft) => draft !== null);
  const isUnexplained =
    hasReadNothing && facts.taskRequests.length > 0 && !drafts.some(({ severity }) => severity === "critical");
  return [...drafts, ...(isUnexplained ? [nothingReadDraft(facts)] : [])].map(toFinding);
}

/** What is wrong, without the events of this session that show it. */
type Problem = Omit<FindingDraft, "cause" | "events">;

/** A failure to read the docs; null for a file that an agent looks for on its own, which no site needs to have. */
function failureDraft(failure: Failure, facts: Facts, hasReadNothing: boolean): FindingDraft | null {
  const { url, seqs } = failure;
  const request = facts.taskRequests.find((http) => http.seq === seqs[0] && hasFailed(http));
  if (request !== undefined && isProbe(request) && !isWall(failure)) return null;
  const requests = facts.taskRequests.filter(
    (http) => http === request || (http.id !== null && http.id === failure.id),
  );
  const isStartUrl = url !== null && facts.startUrls.some((each) => normalizeUrl(each) === normalizeUrl(url));
  if (!isStartUrl && isOnPurpose(failure)) return null;
  const blocksStart = hasReadNothing && isStartUrl;
  const problemOf = (): Problem => {
    if (url === null) return toolProblem(failure);
    const hasRequestFailed = request !== undefined && !isWall(failure);
    return hasRequestFailed
      ? requestProblem(request, failure, facts, blocksStart)
      : pageProblem(failure, url, facts, blocksStart);
  };
  // If nothing could be read, this is also why the goal was not found.
  const cause = {
    ...noCause,
    failures: [seqs[0]!],
    requests: requests.map((http) => http.seq),
    goal: blocksStart,
  };
  return { ...problemOf(), cause, events: seqs };
}

/** Whether docs mean to keep agents from what failed to be read: a view that robots.txt forbids, or a file that is no page. */
function isOnPurpose({ code, url }: Failure): boolean {
  if (url === null) return false;
  return (code === "disallowed" && isView(url)) || (code === "content_type" && isOtherFile(url));
}

/** A failure that no URL belongs to. */
function toolProblem({ source, tool, message: text }: Failure): Problem {
  const message = sentence(text);
  const isTool = source === "tool";
  return {
    severity: "medium",
    phase: "execution",
    category: "other",
    subject: `${tool} ${text.replace(/\d+/g, "#")}`,
    title: `${isTool ? `The tool ${tool} failed` : `Error in ${tool}`}${message ? `: ${message}` : ""}`,
    description: message || "No reason given.",
    url: null,
    preconditions: [isTool ? `tool ${tool}` : "run"],
    remedy: { key: `tool ${tool}`, title: `Fix the failure of ${tool}` },
  };
}

/** The check that reports the same problem of a page that was tested on purpose. */
const checkOfCode: Record<string, string> = {
  content_type: "content-type-readable",
  sign_in: "open-access",
  challenge: "challenge",
  disallowed: "robots-allow",
  empty: "has-text",
  empty_shell: "text-without-scripts",
  soft_404: "missing-pages-say-so",
};

/** The problem with a page that could not be read although its request did not fail, or in whose place something else came. */
function pageProblem(failure: Failure, url: string, facts: Facts, blocksStart: boolean): Problem {
  const { code, message } = failure;
  const { title } = checkFrictionOf({ id: checkOfCode[code ?? ""] ?? "page-readable", group: "page" });
  const place = shortUrl(url, facts.startUrls[0]);
  const common = {
    severity: blocksStart ? ("critical" as const) : ("high" as const),
    phase: "discovery" as const,
    subject: normalizeUrl(url),
    title: `${title}: ${place}`,
    description: sentence(message) || "The page loaded, but it has no readable text.",
    url,
    preconditions: [requestPrecondition(url)],
    place,
    evidence: evidenceOfRule(failure),
  };
  if (isWall(failure))
    return {
      ...common,
      phase: "setup",
      category: "auth",
      description: sentence(message),
      fix: "Make the docs readable without signing in.",
      remedy: { key: `auth ${URL.parse(url)?.host}`, title: "Make the docs readable without signing in" },
    };
  if (code === "disallowed")
    return {
      ...common,
      severity: blocksStart ? "critical" : "medium",
      category: "auth",
      remedy: { key: "robots", title: "Allow agents to read the docs in robots.txt" },
    };
  return {
    ...common,
    category: code === "soft_404" ? "silent_failure" : "unreadable_page",
    fix: "Respond with HTML or Markdown that contains the text of the page, and set the matching content type.",
    remedy: { key: "unreadable", title: "Make pages readable" },
  };
}

/** The rule of a robots.txt that forbids a page. */
function evidenceOfRule({ rule }: Failure): Finding["evidence"] {
  if (!rule) return null;
  const text = lineOrNull(rule.text);
  return { url: lineOrNull(rule.url, 2000), line: rule.line, found: text, expected: null, text, steps: [] };
}

/** Whether the host of a request responded to another request. */
const hasAnswered = ({ url }: Http, { taskRequests }: Facts): boolean =>
  taskRequests.some((other) => other.status !== null && URL.parse(other.url)?.host === URL.parse(url)?.host);

/** Why a request failed, by the first reason that applies. */
function reasonOf(http: Http, { code }: Failure, facts: Facts, blocksStart: boolean) {
  const { status, provenance } = http;
  if (status !== null && [401, 402, 403, 407].includes(status)) return "refused";
  if (code === "redirect") return "redirectLoop";
  if (status === 429) return "rateLimit";
  if (code === "timeout") return "timeout";
  if (code === "too_large") return "tooLarge";
  const isUnreadable = code === "protocol" || code === "unreachable";
  if (isUnreadable && !blocksStart && hasAnswered(http, facts)) return "unreadable";
  if (status === null || status >= 500) return "serverError";
  return provenance === "guessed" || provenance === "search" ? "guessedUrl" : "deadLink";
}

/** A request for a page that failed. */
function requestProblem(http: Http, failure: Failure, facts: Facts, blocksStart: boolean): Problem {
  const status = http.isMissing ? "not found" : String(http.status);
  const answer = http.status === null ? "no answer" : status;
  const path = shortUrl(http.url, facts.startUrls[0]);
  const place = `${path} (${answer})`;
  const host = URL.parse(http.url)?.host ?? http.url;
  const linkNote = http.foundOn === null ? "" : ` The link is on ${http.foundOn}.`;
  const respond = { key: `host ${host}`, title: `Make ${host} respond to every request` };
  type Details = Pick<Problem, "severity" | "category" | "title" | "remedy"> & Partial<Problem>;
  const problems: Record<ReturnType<typeof reasonOf>, Details> = {
    refused: {
      severity: "high",
      phase: "setup",
      category: "auth",
      title: `${pathKinds.refused.title}: ${place}`,
      remedy: { key: `auth ${host}`, title: `Make ${host} readable without signing in` },
    },
    redirectLoop: {
      severity: "high",
      category: "dead_link",
      title: `Redirect loop: ${path}`,
      remedy: { key: `redirect ${normalizeUrl(http.url)}`, title: "Fix the redirect loop", kind: "links" },
    },
    rateLimit: {
      severity: "medium",
      category: "slow",
      title: `${pathKinds.rateLimit.title}: ${place}`,
      remedy: respond,
    },
    timeout: { severity: "medium", category: "slow", title: `${pathKinds.timeout.title}: ${place}`, remedy: respond },
    tooLarge: {
      severity: "high",
      category: "unreadable_page",
      title: `Page is too large to read: ${path}`,
      fix: "Divide the page, and link its parts.",
      remedy: { key: "page-size", title: "Divide large pages" },
    },
    unreadable: {
      severity: "high",
      category: "unreadable_page",
      title: `${checkFrictionOf({ id: "page-readable", group: "page" }).title}: ${place}`,
      remedy: { key: "unreadable", title: "Make pages readable" },
    },
    serverError: { severity: "high", category: "other", title: `Server error: ${place}`, remedy: respond },
    guessedUrl: {
      severity: "low",
      category: "missing_docs",
      title: `Page not found at a URL that was ${http.provenance === "guessed" ? "guessed" : "found by search"}: ${place}`,
      remedy: { key: "guessed", title: "Redirect the URLs that agents try" },
    },
    deadLink: { category: "dead_link", place: `${path} returns ${answer}`, ...deadLinkProblem(http, place, facts) },
  };
  const problem = problems[reasonOf(http, failure, facts, blocksStart)];
  return {
    phase: "discovery",
    description: `${http.method} ${http.url}: ${sentence(failure.message)}${linkNote}`,
    url: http.foundOn ?? http.url,
    subject: normalizeUrl(http.url),
    place,
    // After a link is fixed, nobody requests the old URL; a guess can be repeated.
    preconditions: [
      http.foundOn === null || http.provenance === "guessed"
        ? requestPrecondition(http.url)
        : readPrecondition(http.foundOn),
    ],
    ...problem,
    severity: blocksStart && problem.severity !== "low" ? "critical" : problem.severity,
  };
}

function deadLinkProblem(
  { url, foundOn, provenance }: Http,
  place: string,
  facts: Facts,
): Pick<Problem, "severity" | "title" | "evidence" | "remedy"> {
  const linkPlace = foundOn === null ? "in the start URLs" : `on ${pageName(facts, foundOn)}`;
  // An entry of an llms.txt or sitemap shares its fix with the check that tests all of its entries.
  const listCheckId = { "llms.txt": "llms-entry-resolves", sitemap: "sitemap-entry-resolves" }[String(provenance)];
  const listCheck = listCheckId === undefined ? null : checkFrictionOf({ id: listCheckId, group: "link" });
  const remedy =
    listCheck !== null && foundOn !== null
      ? { key: `${listCheckId} ${pageKey(foundOn)}`, title: listCheck.remedy }
      : { key: `links ${pageKey(foundOn ?? url)}`, title: `Fix broken links ${linkPlace}` };
  return {
    severity: provenance === "given" ? "high" : "medium",
    title: `${listCheck?.title ?? "Dead link"} ${linkPlace}: ${place}`,
    evidence: linkEvidence(url, foundOn, facts),
    remedy: { ...remedy, kind: "links" },
  };
}

/** Whether a sign-in, or a test of the browser, came in place of the page. */
const isWall = ({ code }: Failure): boolean => code === "sign_in" || code === "challenge";

const isAt = (failure: Failure, url: string): boolean =>
  failure.url !== null && normalizeUrl(failure.url) === normalizeUrl(url);

/** A person was needed, to grant access or for anything else. */
function interruptionDraft({ seq, url, question }: EventOf<"interruption">, facts: Facts): FindingDraft {
  const cause = { ...noCause, interruptions: [seq] };
  const wall = url === null ? undefined : facts.failures.find((each) => isWall(each) && isAt(each, url));
  const wallDraft = wall && failureDraft(wall, facts, facts.pages.length === 0);
  if (wallDraft)
    return { ...wallDraft, cause: joinCauses(cause, wallDraft.cause ?? noCause), events: [...wallDraft.events, seq] };
  const refusal = url === null ? null : refusalOf(url, facts);
  if (refusal) return { ...refusal, cause, events: [seq] };
  const request = oneLine(question, 120);
  return {
    severity: "high",
    phase: "execution",
    category: "needs_human",
    subject: url === null ? request.toLowerCase().replace(/\d+/g, "#") : normalizeUrl(url),
    title: `Agent needed a person: ${request}`,
    description: `The agent asked: ${sentence(oneLine(question, 500))}`,
    url,
    cause,
    events: [seq],
    preconditions: [url === null ? "run" : requestPrecondition(url)],
    remedy: { key: `human ${request}`, title: "Make this step possible without a person" },
  };
}

/** The refusal of a request for a URL; null if it failed for another reason, or not at all. */
function refusalOf(url: string, facts: Facts): Problem | null {
  const request = facts.taskRequests.find((http) => normalizeUrl(http.url) === normalizeUrl(url) && hasFailed(http));
  const failure = facts.failures.find(({ seqs }) => seqs[0] === request?.seq);
  if (!request || !failure) return null;
  const problem = requestProblem(request, failure, facts, false);
  return problem.category === "auth" ? problem : null;
}

const isSlow = (http: Http): boolean => !hasFailed(http) && http.ms > slowPageMs;
const verySlowPageMs = 10_000;

/** The explorer requests a slow page again, because its machine or the network may have been slow. Other agents can't be asked to. */
function slowDrafts(facts: Facts): FindingDraft[] {
  const repeats = facts.checkRequests.filter(isSlow);
  const repeatOf = ({ url, seq }: Http) => repeats.find((each) => each.url === url && each.seq > seq);
  return facts.taskRequests
    .filter((http) => isSlow(http) && (facts.kind === "model" || repeatOf(http) !== undefined))
    .map((first) => {
      const again = repeatOf(first);
      const http = again && again.ms < first.ms ? { ...first, ms: again.ms } : first;
      return { http, events: again ? [first.seq, again.seq] : [first.seq] };
    })
    .map(({ http, events }) => ({
      severity: http.ms > verySlowPageMs ? "medium" : "low",
      phase: "discovery",
      category: "slow",
      subject: normalizeUrl(http.url),
      title: `Slow page: ${pageName(facts, http.url)} took ${duration(http.ms / 1000)}`,
      description: `${http.method} ${http.url} took ${duration(http.ms / 1000)}; pages should respond within ${slowPageMs / 1000} s.`,
      url: http.url,
      cause: { ...noCause, requests: [http.seq] },
      fix: `Respond to each page request within ${slowPageMs / 1000} s.`,
      place: `${shortUrl(http.url, facts.startUrls[0])} (${duration(http.ms / 1000)})`,
      events,
      preconditions: [requestPrecondition(http.url)],
      remedy: { key: "slow", title: "Make pages faster" },
    }));
}

function limitDraft({ seq, limit, value, unit }: EventOf<"limit">, facts: Facts): FindingDraft {
  const isAnswered = facts.goalAnswer?.state === "likely" || facts.outcome === "succeeded";
  const goal = facts.kind === "model" ? "the goal was reached" : "a likely answer was found";
  const amount = unit === "ms" ? duration(value / 1000) : `${value} ${oneLine(unit, 20)}`;
  const name = oneLine(limit, 40).replaceAll("_", " ");
  return {
    severity: isAnswered || limit === "pages" ? "low" : "medium",
    phase: "discovery",
    category: "other",
    subject: `limit ${name}`,
    title: `Stopped at a limit: ${name}, ${amount}`,
    description: `The run reached its limit of ${amount}${isAnswered ? ` after ${goal}, so some tests did not run` : ` before ${goal}`}.`,
    url: null,
    fix: isAnswered
      ? "Raise the limit to run all tests."
      : "Shorten the path from the start page to the goal, or raise the limit.",
    events: [seq],
    preconditions: ["run"],
    remedy: { key: "limit", title: "Make the goal reachable within the limits of a run" },
  };
}

function nothingReadDraft(facts: Facts): FindingDraft {
  const starts = list(facts.startUrls.map((url) => oneLine(url, 200)));
  const addresses = facts.startUrls.map((url) => normalizeUrl(url)).sort();
  return {
    severity: "critical",
    phase: "discovery",
    category: "unreadable_page",
    subject: `start ${addresses.join(" ")}`,
    title: pathKinds.nothingRead.title,
    description: `${count(facts.taskRequests.length, "request")} returned no readable page. Start URLs: ${starts}.`,
    url: facts.startUrls[0] ?? null,
    events: facts.taskRequests.map((http) => http.seq),
    preconditions: facts.startUrls.slice(0, 1).map(requestPrecondition),
    remedy: { key: "unreadable", title: "Make pages readable" },
  };
}
