import { type Entry, entryOf, severityOf } from "./catalogue.ts";
import { type Facts, failed, type SeenCheck } from "./facts.ts";
import { type Finding, fingerprint, inOrder, joinCauses, noCause, pageName, worst } from "./finding.ts";
import { table } from "./methodology.ts";
import { checkOf, testedOn } from "./reach.ts";
import type { Friction } from "./score.ts";
import { wayFindings } from "./way.ts";
import { count, line, lineOrNull, list, sameAddress, samePage, sameSubject, sentence, shortAddress } from "./words.ts";

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
  const bad = facts.checks.filter((check) => check.status === "fail" || check.status === "warn");
  const labels = bad.filter((check) => check.id === "sample-labelled");
  const unlabelled = labels.filter((check) => check.share <= table.quality.samplesLabelled.frictionUpTo);
  return [
    ...bad
      .filter((check) => !labels.includes(check))
      .map((check) => {
        const entry = entryOf(check);
        const same = standing.get(check.id) ?? [];
        const everywhere = same.reduce((sum, each) => sum + each.share, 0) / same.length;
        return checkFinding(check, entry, severityOf(check, entry, everywhere), facts);
      }),
    ...[...Map.groupBy(unlabelled, siteOf)].map(([site, checks]) => labelsFinding(site, checks, facts)),
  ];
}

const siteOf = ({ subject }: SeenCheck) => (URL.canParse(subject) ? new URL(subject).origin : subject);

/** One finding for a site, whatever pages a session met: the habit is the same on all of them. */
function labelsFinding(site: string, checks: SeenCheck[], facts: Facts): Finding {
  const [first] = checks as [SeenCheck, ...SeenCheck[]];
  const entry = entryOf(first);
  const pages = checks.map((check) => ({ check, name: pageName(facts, check.url) }));
  const told = pages.map(({ check, name }) => `${name} (${line(check.message, 60).replace(/ code samples.*/, "")})`);
  const where = checks.length === 1 ? pages[0]!.name : count(checks.length, "page");
  const title = `${entry.title} on ${where}`;
  return {
    fingerprint: fingerprint(entry.category, `${first.id} ${sameAddress(site)}`),
    severity: worst(checks.map((check) => severityOf(check, entry, check.share))),
    phase: entry.phase,
    category: entry.category,
    title: line(title, 160),
    description: line(`Code samples that name their language, of all on the page: ${list(told, 12)}.`, 800),
    quote: lineOrNull(first.quote),
    url: lineOrNull(first.url, 2000),
    events: inOrder(checks.map((check) => check.seq)),
    cause: { ...noCause, checks: checks.map((check) => check.key) },
    remedy: { key: `${first.id} ${site}`, title: `${entry.remedy} on ${where}`, kind: "labels" },
    place: list(
      pages.map(({ check, name }) => `${name}${check.line === null ? "" : ` line ${check.line}`}`),
      8,
    ),
    fix: checks.map((check) => lineOrNull(check.fix, 500)).find((fix) => fix !== null) ?? null,
    grounds: [...new Set(checks.map((check) => testedOn(check.url)))],
  };
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
    grounds: [isLink || check.group === "sample" ? testedOn(check.url) : checkOf(check)],
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
  if (check.group === "sample")
    return { key: `samples ${samePage(check.url)}`, title: `Mend code samples on ${page}`, kind: "samples" };
  if (check.group === "declared")
    return { key: check.key, title: `${entry.remedy}: ${shortAddress(check.url, facts.starts[0])}`, kind: "check" };
  return { key: check.id, title: entry.remedy, kind: "check" };
}
