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

function failureDraft(failure: Failure, facts: Facts, hasReadNothing: boolean): FindingDraft | null {
  const request = facts.taskRequests.find((http) => http.seq === failure.seqs[0] && hasFailed(http));
  const requests = facts.taskRequests.filter(
    (http) => http === request || (http.id !== null && http.id === failure.id),
  );
  const isStartUrl =
    failure.url !== null && facts.startUrls.some((each) => normalizeUrl(each) === normalizeUrl(failure.url!));
  const blocksStart = hasReadNothing && isStartUrl;
  // If nothing could be read, this is also why the goal was not found.
  const cause = {
    ...noCause,
    failures: [failure.seqs[0]!],
    requests: requests.map((http) => http.seq),
    goal: blocksStart,
  };
  const common = { cause, events: failure.seqs, url: failure.url, phase: "discovery" as const };
  if (isWall(failure) && failure.url !== null)
    return {
      ...common,
      severity: blocksStart ? "critical" : "high",
      phase: "setup",
      category: "auth",
      subject: normalizeUrl(failure.url),
      title: `${checkFrictionOf({ id: failure.code === "sign_in" ? "open-access" : "challenge", group: "page" }).title}: ${shortUrl(failure.url, facts.startUrls[0])}`,
      description: sentence(failure.message),
      preconditions: [requestPrecondition(failure.url)],
      place: shortUrl(failure.url, facts.startUrls[0]),
      fix: "Make the docs readable without signing in.",
      remedy: { key: `auth ${URL.parse(failure.url)?.host}`, title: "Make the docs readable without signing in" },
    };
  if (request !== undefined)
    return isProbe(request)
      ? null
      : { ...requestDraft(request, failure, facts, blocksStart), cause, events: failure.seqs };
  const message = sentence(failure.message);
  if (failure.url === null)
    return {
      ...common,
      severity: "medium",
      phase: "execution",
      category: "other",
      subject: `${failure.tool} ${failure.message.replace(/\d+/g, "#")}`,
      title: `${failure.source === "tool" ? `The tool ${failure.tool} failed` : `Error in ${failure.tool}`}${message ? `: ${message}` : ""}`,
      description: message || "No reason given.",
      preconditions: [failure.source === "tool" ? `tool ${failure.tool}` : "run"],
      remedy: { key: `tool ${failure.tool}`, title: `Fix the failure of ${failure.tool}` },
    };
  const place = shortUrl(failure.url, facts.startUrls[0]);
  const isDisallowed = failure.code === "disallowed";
  return {
    ...common,
    severity: blocksStart ? "critical" : isDisallowed ? "medium" : "high",
    category: isDisallowed ? "auth" : failure.code === "soft_404" ? "silent_failure" : "unreadable_page",
    subject: normalizeUrl(failure.url),
    title: `${titleOfUnread(failure.code)}: ${place}`,
    description: message || "The page loaded, but it has no readable text.",
    preconditions: [requestPrecondition(failure.url)],
    place,
    evidence: evidenceOfRule(failure),
    fix: isDisallowed
      ? null
      : "Respond with HTML or Markdown that contains the text of the page, and set the matching content type.",
    remedy: isDisallowed
      ? { key: "robots", title: "Allow agents to read the docs in robots.txt" }
      : { key: "unreadable", title: "Make pages readable" },
  };
}

/** The rule of a robots.txt that forbids a page. */
const evidenceOfRule = ({ rule }: Failure): Finding["evidence"] =>
  rule
    ? {
        url: lineOrNull(rule.url, 2000),
        line: rule.line,
        found: lineOrNull(rule.text),
        expected: null,
        text: lineOrNull(rule.text),
        steps: [],
      }
    : null;

/** The check that reports the same problem of a page that was tested on purpose. */
const checkOfCode: Record<string, string> = {
  content_type: "content-type-readable",
  disallowed: "robots-allow",
  empty: "has-text",
  empty_shell: "text-without-scripts",
  soft_404: "missing-pages-say-so",
};

const titleOfUnread = (code: string | null): string =>
  checkFrictionOf({ id: checkOfCode[code ?? ""] ?? "page-readable", group: "page" }).title;

function requestDraft(http: Http, failure: Failure, facts: Facts, blocksStart: boolean): FindingDraft {
  const answer = http.status === null ? "no answer" : http.isMissing ? "not found" : String(http.status);
  const place = `${shortUrl(http.url, facts.startUrls[0])} (${answer})`;
  const host = URL.parse(http.url)?.host ?? http.url;
  const linkNote = http.foundOn === null ? "" : ` The link is on ${http.foundOn}.`;
  const description = `${http.method} ${http.url}: ${sentence(failure.message)}${linkNote}`;
  const base = {
    phase: "discovery" as const,
    description,
    url: http.foundOn ?? http.url,
    subject: normalizeUrl(http.url),
    place,
    // After a link is fixed, nobody requests the old URL; a guess can be repeated.
    preconditions: [
      http.foundOn === null || http.provenance === "guessed"
        ? requestPrecondition(http.url)
        : readPrecondition(http.foundOn),
    ],
    events: [],
  };
  if (http.status === 401 || http.status === 402 || http.status === 403 || http.status === 407)
    return {
      ...base,
      severity: blocksStart ? "critical" : "high",
      phase: "setup",
      category: "auth",
      title: `${pathKinds.refused.title}: ${place}`,
      remedy: { key: `auth ${host}`, title: `Make ${host} readable without signing in` },
    };
  if (failure.code === "redirect")
    return {
      ...base,
      severity: blocksStart ? "critical" : "high",
      category: "dead_link",
      title: `Redirect loop: ${shortUrl(http.url, facts.startUrls[0])}`,
      remedy: { key: `redirect ${normalizeUrl(http.url)}`, title: "Fix the redirect loop", kind: "links" },
    };
  if (http.status === 429 || failure.code === "timeout")
    return {
      ...base,
      severity: blocksStart ? "critical" : "medium",
      category: "slow",
      title: `${http.status === 429 ? pathKinds.rateLimit.title : pathKinds.timeout.title}: ${place}`,
      remedy: { key: `host ${host}`, title: `Make ${host} respond to every request` },
    };
  if (failure.code === "too_large")
    return {
      ...base,
      severity: blocksStart ? "critical" : "high",
      category: "unreadable_page",
      title: `Page is too large to read: ${shortUrl(http.url, facts.startUrls[0])}`,
      fix: "Divide the page, and link its parts.",
      remedy: { key: "page-size", title: "Divide large pages" },
    };
  if (isUnreadableAnswer(failure) && !blocksStart && hasAnswered(http, facts))
    return {
      ...base,
      severity: "high",
      category: "unreadable_page",
      title: `${checkFrictionOf({ id: "page-readable", group: "page" }).title}: ${place}`,
      remedy: { key: "unreadable", title: "Make pages readable" },
    };
  if (http.status === null || http.status >= 500)
    return {
      ...base,
      severity: blocksStart ? "critical" : "high",
      category: "other",
      title: `Server error: ${place}`,
      remedy: { key: `host ${host}`, title: `Make ${host} respond to every request` },
    };
  if (http.provenance === "guessed" || http.provenance === "search")
    return {
      ...base,
      severity: "low",
      category: "missing_docs",
      title: `Page not found at a URL that was ${http.provenance === "guessed" ? "guessed" : "found by search"}: ${place}`,
      remedy: { key: "guessed", title: "Redirect the URLs that agents try" },
    };
  const linkPlace = http.foundOn === null ? "in the start URLs" : `on ${pageName(facts, http.foundOn)}`;
  const key = `links ${pageKey(http.foundOn ?? http.url)}`;
  // An entry of an llms.txt or sitemap shares its fix with the check that tests all of its entries.
  const listCheckId = { "llms.txt": "llms-entry-resolves", sitemap: "sitemap-entry-resolves" }[String(http.provenance)];
  const listRemedyKey = listCheckId !== undefined && http.foundOn !== null && `${listCheckId} ${pageKey(http.foundOn)}`;
  return {
    ...base,
    severity: blocksStart ? "critical" : http.provenance === "given" ? "high" : "medium",
    category: "dead_link",
    title: `${listCheckId === undefined ? "Dead link" : checkFrictionOf({ id: listCheckId, group: "link" }).title} ${linkPlace}: ${place}`,
    place: `${shortUrl(http.url, facts.startUrls[0])} returns ${answer}`,
    evidence: linkEvidence(http.url, http.foundOn, facts),
    remedy: listRemedyKey
      ? { key: listRemedyKey, title: checkFrictionOf({ id: listCheckId, group: "link" }).remedy, kind: "links" }
      : { key, title: `Fix broken links ${linkPlace}`, kind: "links" },
  };
}

const isUnreadableAnswer = ({ code }: Failure): boolean => code === "protocol" || code === "unreachable";

/** Whether the host of a request responded to another one. */
const hasAnswered = ({ url }: Http, { taskRequests }: Facts): boolean =>
  taskRequests.some((other) => other.status !== null && URL.parse(other.url)?.host === URL.parse(url)?.host);

const isWall = ({ code }: Failure): boolean => code === "sign_in" || code === "challenge";

const isAt = (failure: Failure, url: string): boolean =>
  failure.url !== null && normalizeUrl(failure.url) === normalizeUrl(url);

/** A person was needed, to grant access or for anything else. */
function interruptionDraft({ seq, url, question }: EventOf<"interruption">, facts: Facts): FindingDraft {
  const refusedRequest =
    url !== null && facts.taskRequests.find((http) => normalizeUrl(http.url) === normalizeUrl(url) && hasFailed(http));
  const failure = refusedRequest && facts.failures.find((each) => each.seqs[0] === refusedRequest.seq);
  const cause = { ...noCause, interruptions: [seq] };
  const wall = url === null ? undefined : facts.failures.find((each) => isWall(each) && isAt(each, url));
  const wallDraft = wall && failureDraft(wall, facts, facts.pages.length === 0);
  if (wallDraft)
    return { ...wallDraft, cause: joinCauses(cause, wallDraft.cause ?? noCause), events: [...wallDraft.events, seq] };
  if (refusedRequest && failure) {
    const draft = requestDraft(refusedRequest, failure, facts, false);
    if (draft.category === "auth") return { ...draft, cause, events: [seq], quote: null };
  }
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

const isSlow = (http: Http): boolean => !hasFailed(http) && http.ms > slowPageMs;

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
      severity: http.ms > 10_000 ? "medium" : "low",
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
  return {
    severity: "critical",
    phase: "discovery",
    category: "unreadable_page",
    subject: `start ${facts.startUrls
      .map((start) => normalizeUrl(start))
      .sort()
      .join(" ")}`,
    title: pathKinds.nothingRead.title,
    description: `${count(facts.taskRequests.length, "request")} returned no readable page. Start URLs: ${starts}.`,
    url: facts.startUrls[0] ?? null,
    events: facts.taskRequests.map((http) => http.seq),
    preconditions: facts.startUrls.slice(0, 1).map(requestPrecondition),
    remedy: { key: "unreadable", title: "Make pages readable" },
  };
}
