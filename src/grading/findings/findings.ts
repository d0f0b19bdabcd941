import { pageKey } from "../../net/page-key.ts";
import { hasFailed } from "../events.ts";
import { checkPrecondition } from "../exposure.ts";
import type { CheckResult, Facts } from "../facts.ts";
import type { Friction } from "../grade.ts";
import { readingChecks } from "../kinds.ts";
import { linkEvidence } from "../link-edits.ts";
import { severityRank, standardMethodology } from "../methodology.ts";
import {
  blockOrNull,
  count,
  lineOrNull,
  list,
  normalizeSubject,
  normalizeUrl,
  oneLine,
  sentence,
  shortUrl,
} from "../text.ts";
import { type CheckFriction, checkFrictionOf, conventions, severityOf } from "./catalogue.ts";
import { type Finding, fingerprint, joinCauses, noCause, pageName, sortedUnique, worstSeverity } from "./finding.ts";
import { conventionsKind } from "./finding-kinds.ts";
import { pathFindings } from "./page-findings.ts";
import { groupByCause } from "./shared-causes.ts";

/** One finding per problem, even if several events report it, in order of first occurrence. */
export function findingsOf(facts: Facts): Finding[] {
  const byFingerprint = new Map<string, Finding>();
  for (const finding of [...checkFindings(facts), ...pathFindings(facts)]) {
    const existing = byFingerprint.get(finding.fingerprint);
    byFingerprint.set(finding.fingerprint, existing === undefined ? finding : merge(existing, finding));
  }
  return withoutSummaries([...byFingerprint.values()]);
}

/** Checks of a whole site, each with the remedy keys of the findings about single pages that report the same defect. */
const remediesOfPages: ReadonlyMap<string, RegExp> = new Map([
  ["llms-txt-links-resolve", /^llms-entry-resolves /],
  ["auth-gate-detection", /^(open-access|challenge|auth) /],
  ["bot-protection-interference", /^(open-access|challenge|auth) /],
  ["rendering-strategy", /^(text-without-scripts|has-text|template text-without-scripts) /],
]);

/**
 * Merges a finding about a whole site with the findings about its pages that report the same defect. The finding about the site stays if it is more
 * severe than all others. Otherwise, the most severe finding about a page stays.
 */
function withoutSummaries(findings: Finding[]): Finding[] {
  let all = findings;
  for (const [siteCheck, remedyOfPage] of remediesOfPages) {
    const ofSite = all.find(({ remedy }) => remedy.key === siteCheck);
    const ofPages = all.filter(({ remedy }) => remedyOfPage.test(remedy.key));
    if (ofSite === undefined || ofPages.length === 0) continue;
    const worst = worstSeverity(ofPages.map(({ severity }) => severity));
    const isSiteWorse = severityRank[ofSite.severity] < severityRank[worst];
    const target = isSiteWorse ? ofSite : ofPages.find(({ severity }) => severity === worst)!;
    const merged = isSiteWorse ? ofPages : [ofSite];
    all = all
      .filter((each) => !merged.includes(each))
      .map((each) => (each === target ? merged.reduce(merge, target) : each));
  }
  return all;
}

function merge(a: Finding, b: Finding): Finding {
  return {
    ...a,
    severity: worstSeverity([a.severity, b.severity]),
    onPath: a.onPath || b.onPath,
    cause: joinCauses(a.cause, b.cause),
    events: sortedUnique([...a.events, ...b.events]),
    quote: a.quote ?? b.quote,
    url: a.url ?? b.url,
    fix: a.fix ?? b.fix,
    evidence: [a, b].find(({ evidence }) => evidence?.expected)?.evidence ?? a.evidence ?? b.evidence,
  };
}

function checkFindings(facts: Facts): Finding[] {
  const madeChecks = facts.checks.filter((check) => check.status !== "skip");
  const checksById = Map.groupBy(madeChecks, (check) => check.id);
  const failingChecks = facts.checks.filter((check) => check.status === "fail" || check.status === "warn");
  const isWorthReporting = ({ id, share }: CheckResult) =>
    id !== "sample-labelled" || share <= standardMethodology.quality.samplesLabelled.frictionUpTo;
  const findingOf = (check: CheckResult) => {
    const entry = checkFrictionOf(check);
    const sameChecks = checksById.get(check.id) ?? [];
    const passedShare = sameChecks.reduce((sum, each) => sum + each.share, 0) / sameChecks.length;
    return checkFinding(check, entry, severityOf(check, entry, passedShare), facts);
  };
  const missingConventions = failingChecks.filter((check) => conventions.has(check.id) && isWorthReporting(check));
  const otherChecks = failingChecks.filter((check) => !conventions.has(check.id));
  const groups = groupByCause(otherChecks, madeChecks);
  return [
    ...groups.map((group) =>
      group.length === 1 ? findingOf(group[0]!) : templateFinding(group, group.map(findingOf), facts),
    ),
    ...[...Map.groupBy(missingConventions, siteOf)].map(([site, checks]) => conventionsFinding(site, checks)),
  ];
}

/** One finding for the same problem on several pages, which has one cause, such as a template. */
function templateFinding(checks: CheckResult[], findings: Finding[], facts: Facts): Finding {
  const [first, check] = [findings[0]!, checks[0]!];
  const pages = [...new Set(checks.map(({ url }) => url))];
  const onPages = `on ${count(pages.length, "page")}`;
  const label = check.group === "link" && check.quote !== null ? ` “${oneLine(check.quote, 60)}”` : "";
  const error = check.group === "sample" ? oneLine(check.message) : "";
  const { title, remedy } = checkFrictionOf(check);
  const names = pages.map((url) => pageName(facts, url));
  return {
    ...findings.reduce(merge),
    fingerprint: fingerprint(first.category, `template ${check.id} ${siteOf(check)} ${label || error}`),
    title: oneLine(`${title}${label} ${onPages}`, 160),
    description: oneLine(`${first.description} The same problem is ${onPages}: ${list(names, 12)}.`, 800),
    place: oneLine(`${first.place} and ${count(pages.length - 1, "more page")}`, 120),
    remedy: {
      ...first.remedy,
      key: `template ${check.id} ${siteOf(check)}${label}`,
      title: oneLine(`${remedy}${label} ${onPages}`, 160),
    },
    fix: first.fix ?? "Correct it once in the template or the text that these pages share.",
  };
}

const siteOf = ({ subject }: CheckResult) => (URL.canParse(subject) ? new URL(subject).origin : subject);

/** One list per site, regardless of the pages read: missing conventions that would help agents but block none. */
function conventionsFinding(site: string, checks: CheckResult[]): Finding {
  const kinds = [...Map.groupBy(checks, ({ id }) => id)];
  const names = kinds.map(([id, checksOfKind]) => {
    const pages = new Set(checksOfKind.map(({ url }) => url)).size;
    return `${conventions.get(id)}${pages > 1 ? ` (${count(pages, "page")})` : ""}`;
  });
  const fixes = kinds.flatMap(([, checksOfKind]) => checksOfKind.flatMap(({ fix }) => fix ?? []).slice(0, 1));
  return {
    fingerprint: fingerprint("other", `hygiene ${normalizeUrl(site)}`),
    severity: "low",
    phase: "discovery",
    category: "other",
    title: oneLine(`${conventionsKind.title}: ${list(names, 2)}`, 160),
    description: oneLine(`Optional, but helpful for agents: ${list(names, 12)}.`, 800),
    quote: null,
    url: lineOrNull(site, 2000),
    onPath: checks.some(({ isOnUnrelatedPage }) => !isOnUnrelatedPage),
    events: sortedUnique(checks.map((check) => check.seq)),
    cause: { ...noCause, checks: checks.map((check) => check.key) },
    foundBy: "rules",
    remedy: { key: `conventions ${site}`, title: "Adopt conventions that help agents", kind: "conventions" },
    owner: "fixes",
    evidence: null,
    place: shortUrl(site),
    fix: lineOrNull(fixes.map(sentence).join(" "), 500),
    preconditions: [...new Set(checks.map(checkPrecondition))],
  };
}

function checkFinding(check: CheckResult, entry: CheckFriction, severity: Friction["severity"], facts: Facts): Finding {
  // An unreadable page is one finding, whether it was found on the path, in the survey or by the link check.
  const isTooLarge = check.id === "page-size" && check.share === 0;
  const isPage = isTooLarge || (readingChecks.has(check.id) && !check.id.endsWith("-entry-resolves"));
  const subject = `${isPage ? "" : `${check.id} `}${normalizeSubject(check.subject, dependsOnFragment(check, facts))}`;
  const address = normalizeUrl(check.subject);
  const requests = [...facts.checkRequests, ...facts.taskRequests].filter(
    (http) => http.id === check.toolId && normalizeUrl(http.url) === address,
  );
  const { title, place } = titleOf(check, entry, facts);
  return {
    fingerprint: fingerprint(entry.category, subject),
    severity,
    phase: entry.phase,
    category: entry.category,
    title: oneLine(title, 160),
    description: `${sentence(oneLine(check.message, 500) || entry.title)}${check.isOnUnrelatedPage ? " This doesn't affect the answer to the goal." : ""}`,
    quote: lineOrNull(check.quote),
    url: lineOrNull(check.url, 2000),
    onPath: !check.isOnUnrelatedPage,
    events: sortedUnique([check.seq, ...requests.map((http) => http.seq)]),
    cause: { ...noCause, checks: [check.key] },
    foundBy: "rules",
    isInferred: check.id === "prerequisite-explained",
    remedy: remedyOf(check, entry, facts),
    place,
    owner: "fixes",
    evidence: linkEvidence(check.subject, check.url, facts) ?? evidenceOf(check),
    fix: lineOrNull(check.fix, 500),
    preconditions: [checkPrecondition(check)],
  };
}

/** Checks whose quote is the text of a link. */
const linkChecks = new Set(["link-resolves", "anchor-resolves"]);

/** The text with the problem. A link comes with its target, and code keeps its lines. */
function textOf({ id, url, quote, group, subject }: CheckResult): string | null {
  if (linkChecks.has(id) && quote !== null) return `[${oneLine(quote)}](${shortUrl(subject, url)})`;
  return group === "sample" ? blockOrNull(quote) : lineOrNull(quote);
}

const evidenceOf = (check: CheckResult): Finding["evidence"] => ({
  url: lineOrNull(check.url, 2000),
  line: check.line,
  found: lineOrNull(check.quote) ?? lineOrNull(check.message),
  expected: null,
  text: textOf(check),
  steps: [],
});

/** Whether the fragment of a check's subject distinguishes it: not for a page, nor for a link to a page that doesn't exist. */
function dependsOnFragment({ group, subject }: CheckResult, { checkRequests, taskRequests }: Facts): boolean {
  if (group !== "link") return group !== "page" && group !== "discovery";
  const page = normalizeUrl(subject);
  return [...checkRequests, ...taskRequests].some((http) => !hasFailed(http) && normalizeUrl(http.url) === page);
}

function titleOf(check: CheckResult, entry: CheckFriction, facts: Facts): { title: string; place: string } {
  const page = pageName(facts, check.url);
  const target = shortUrl(check.subject, check.url);
  if (check.id === "openapi-valid") return { title: `${entry.title}: ${target}`, place: target };
  if (check.id === "prerequisite-explained" || check.group === "declared")
    return { title: `${entry.title}: ${oneLine(check.message, 110)}`, place: page };
  if (check.group === "sample")
    return {
      title: `${entry.title}: ${page}${check.line === null ? "" : `, line ${check.line}`}`,
      place: check.line === null ? oneLine(check.message, 80) : `line ${check.line}`,
    };
  if (check.group === "link" || (readingChecks.has(check.id) && check.subject !== check.url)) {
    const address = normalizeUrl(check.subject);
    const answer = [...facts.checkRequests, ...facts.taskRequests].find(
      (http) => normalizeUrl(http.url) === address && hasFailed(http),
    );
    const status = answer?.status ?? null;
    const answerNote = status === null ? "" : ` returns ${status}`;
    const lineNote = check.line === null ? "" : ` (line ${check.line})`;
    const edit = linkEvidence(check.subject, check.url, facts);
    const editNote = edit === null ? "" : `, use ${edit.expected}`;
    return {
      title: `${entry.title} on ${page}: ${target}${status === null ? "" : ` (${status})`}`,
      place: `${target}${answerNote}${lineNote}${editNote}`,
    };
  }
  const isAboutOnePage = (URL.parse(check.subject)?.pathname ?? "/") !== "/";
  return {
    title: isAboutOnePage && check.group !== "discovery" ? `${entry.title}: ${page}` : entry.title,
    place: page,
  };
}

function remedyOf(check: CheckResult, entry: CheckFriction, facts: Facts): Finding["remedy"] {
  const page = pageName(facts, check.url);
  if (linkChecks.has(check.id))
    return { key: `links ${pageKey(check.url)}`, title: `Fix broken links on ${page}`, kind: "links" };
  if (check.group === "link" || check.id.endsWith("-entry-resolves"))
    return { key: `${check.id} ${pageKey(check.url)}`, title: entry.remedy, kind: "links" };
  if (check.id === "sample-parses")
    return { key: `samples ${pageKey(check.url)}`, title: `Fix code samples on ${page}`, kind: "samples" };
  if (check.group === "declared")
    return {
      key: check.key,
      // A command or file has no URL.
      title: `${entry.remedy}: ${check.url === "" ? oneLine(check.message, 100) : shortUrl(check.url, facts.startUrls[0])}`,
      kind: "check",
    };
  if (readingChecks.has(check.id) || check.group === "sample")
    return {
      key: `${check.id} ${pageKey(check.group === "sample" ? check.url : check.subject)}`,
      title: `${entry.remedy}: ${page}`,
      kind: "check",
    };
  return { key: check.id, title: entry.remedy, kind: "check" };
}
