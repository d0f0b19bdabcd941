import { type Entry, entryOf, severityOf } from "./catalogue.ts";
import { type Facts, failed, type SeenCheck } from "./facts.ts";
import { type Finding, fingerprint, inOrder, joinCauses, noCause, pageName, worst } from "./finding.ts";
import type { Friction } from "./score.ts";
import { wayFindings } from "./way.ts";
import { line, lineOrNull, sameAddress, samePage, sameSubject, sentence, shortAddress } from "./words.ts";

/** One finding for each thing, however many events tell of it; in the order in which they were first met. */
export function findingsOf(facts: Facts): Finding[] {
  const byPrint = new Map<string, Finding>();
  for (const finding of [...checkFindings(facts), ...wayFindings(facts)]) {
    const known = byPrint.get(finding.fingerprint);
    byPrint.set(finding.fingerprint, known === undefined ? finding : merge(known, finding));
  }
  return [...byPrint.values()];
}

function merge(a: Finding, b: Finding): Finding {
  return {
    ...a,
    severity: worst([a.severity, b.severity]),
    cause: joinCauses(a.cause, b.cause),
    events: inOrder([...a.events, ...b.events]),
    quote: a.quote ?? b.quote,
    url: a.url ?? b.url,
    fix: a.fix ?? b.fix,
  };
}

function checkFindings(facts: Facts): Finding[] {
  const standing = Map.groupBy(
    facts.checks.filter((check) => check.status !== "skip"),
    (check) => check.id,
  );
  return facts.checks
    .filter((check) => check.status === "fail" || check.status === "warn")
    .map((check) => {
      const entry = entryOf(check);
      const same = standing.get(check.id) ?? [];
      const everywhere = same.reduce((sum, each) => sum + each.share, 0) / same.length;
      return checkFinding(check, entry, severityOf(check, entry, everywhere), facts);
    });
}

function checkFinding(check: SeenCheck, entry: Entry, severity: Friction["severity"], facts: Facts): Finding {
  const isLink = check.group === "link";
  const keepFragment = isLink ? reached(check.subject, facts) : check.group !== "page" && check.group !== "discovery";
  const subject = `${check.id === "link-resolves" ? "" : `${check.id} `}${sameSubject(check.subject, keepFragment)}`;
  const address = sameAddress(check.subject);
  const requests = [...facts.tests, ...facts.way].filter(
    (http) => http.id === check.toolId && sameAddress(http.url) === address,
  );
  const { title, place } = titleOf(check, entry, facts);
  return {
    fingerprint: fingerprint(entry.category, subject),
    severity,
    phase: entry.phase,
    category: entry.category,
    title: line(title, 160),
    description: sentence(line(check.message, 500) || entry.title),
    quote: lineOrNull(check.quote),
    url: lineOrNull(check.url, 2000),
    events: inOrder([check.seq, ...requests.map((http) => http.seq)]),
    cause: { ...noCause, checks: [check.key] },
    remedy: remedyOf(check, entry, facts),
    place,
    fix: lineOrNull(check.fix, 500),
  };
}

/** The page is there, so what is dead is the fragment, which then tells one dead link from another. */
function reached(address: string, { tests, way }: Facts): boolean {
  const page = sameAddress(address);
  return [...tests, ...way].some((http) => !failed(http) && sameAddress(http.url) === page);
}

function titleOf(check: SeenCheck, entry: Entry, facts: Facts): { title: string; place: string } {
  const page = pageName(facts, check.url);
  const at = check.line === null ? "" : `, line ${check.line}`;
  if (check.group === "link") {
    const address = sameAddress(check.subject);
    const answer = [...facts.tests, ...facts.way].find((http) => sameAddress(http.url) === address && failed(http));
    const status = answer === undefined ? "" : ` (${answer.status ?? "no answer"})`;
    const place = `${shortAddress(check.subject, check.url)}${status}`;
    return { title: `${entry.title} on ${page}: ${place}`, place };
  }
  if (check.group === "sample") {
    if (check.id === "sample-labelled")
      return { title: `${entry.title}: ${page}`, place: `${page}${at.replace(",", "")}` };
    return {
      title: `${entry.title}: ${page}${at}`,
      place: check.line === null ? line(check.message, 80) : `line ${check.line}`,
    };
  }
  if (check.group === "declared") return { title: `${entry.title}: ${line(check.message, 110)}`, place: page };
  const ofOnePage = (URL.parse(check.subject)?.pathname ?? "/") !== "/";
  return { title: ofOnePage && check.group !== "discovery" ? `${entry.title}: ${page}` : entry.title, place: page };
}

function remedyOf(check: SeenCheck, entry: Entry, facts: Facts): Finding["remedy"] {
  const page = pageName(facts, check.url);
  if (check.group === "link")
    return { key: `links ${samePage(check.url)}`, title: `Mend dead links on ${page}`, kind: "links" };
  if (check.id === "sample-labelled") return { key: check.id, title: entry.remedy, kind: "labels" };
  if (check.group === "sample")
    return { key: `samples ${samePage(check.url)}`, title: `Mend code samples on ${page}`, kind: "samples" };
  if (check.group === "declared")
    return { key: check.key, title: `${entry.remedy}: ${shortAddress(check.url, facts.starts[0])}`, kind: "check" };
  return { key: check.id, title: entry.remedy, kind: "check" };
}
