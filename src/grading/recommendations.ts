import { type Measured, measure } from "./dimensions.ts";
import { type Facts, failed, type GoalFound } from "./facts.ts";
import { type Cause, type Finding, joinCauses, worst } from "./finding.ts";
import { type Methodology, round1, severityRank, table } from "./methodology.ts";
import type { Friction, Recommendation } from "./score.ts";
import { line, list, sentence } from "./words.ts";

/** One piece of advice for each change that would mend listed frictions, the one that gains most first. */
export function recommendationsOf(
  findings: Finding[],
  frictions: Friction[],
  facts: Facts,
  measured: Measured,
  methodology: Methodology,
): Recommendation[] {
  const listed = new Set(frictions.map((friction) => friction.fingerprint));
  return [...Map.groupBy(findings, (finding) => finding.remedy.key).values()]
    .filter((group) => group.some((finding) => listed.has(finding.fingerprint)))
    .map((group) => ({
      title: line(titleOf(group), 160),
      action: line(actionOf(group), 1200),
      url: group.find((finding) => finding.url !== null)?.url ?? null,
      frictions: group.map((finding) => finding.fingerprint).filter((print) => listed.has(print)),
      expectedGain: gainOf(group.map((finding) => finding.cause).reduce(joinCauses), facts, measured, methodology),
      severity: severityRank[worst(group.map((finding) => finding.severity))],
    }))
    .sort(
      (a, b) =>
        (b.expectedGain ?? 0) - (a.expectedGain ?? 0) ||
        a.severity - b.severity ||
        (a.title < b.title ? -1 : a.title > b.title ? 1 : 0),
    )
    .map(({ severity: _severity, ...advice }, index) => ({ priority: index + 1, ...advice }));
}

function titleOf(group: Finding[]): string {
  const { title, kind } = group[0]!.remedy;
  return group.length > 1 && kind !== "labels" ? `${title} (${group.length})` : title;
}

function actionOf(group: Finding[]): string {
  const { kind } = group[0]!.remedy;
  const first = group[0]!;
  const places = list(
    group.map((finding) => finding.place),
    8,
  );
  const fix = [...new Set(group.flatMap((finding) => finding.fix ?? []))].slice(0, 2).map(sentence).join(" ");
  const placed = !first.title.startsWith(first.place.replace(/…$/, ""));
  const texts = {
    links: `${first.url === null ? "Links" : `On ${first.url}, links`} that lead nowhere: ${places}. ${fix || "Point each to where its page is now, or drop it."}`,
    labels: `${places}. ${fix || "Write the language after each opening fence."}`,
    samples: `On ${first.url}: ${places}. ${fix || "Correct the samples so that they can be copied and run."}`,
    check: `${fix || `${sentence(first.remedy.title)} ${first.description}`} ${seenAt(group)}`,
    way: `${fix || sentence(first.remedy.title)} ${group.length > 1 || (fix && placed) ? `Concerned: ${places}.` : fix ? "" : first.description}`,
  };
  return texts[kind];
}

function seenAt(group: Finding[]): string {
  const urls = [...new Set(group.flatMap((finding) => finding.url ?? []))];
  return urls.length === 0 ? "" : `See ${list(urls, 4)}.`;
}

/** Points of the score that a cause took; null where it took from nothing that was measured. */
export function gainOf(cause: Cause, facts: Facts, measured: Measured, methodology: Methodology): number | null {
  if (measured.score === null) return null;
  const better = measure(without(cause, facts), methodology);
  const names = new Set([...Object.keys(measured.exact), ...Object.keys(better.exact)]);
  if ([...names].every((name) => measured.exact[name] === better.exact[name])) return null;
  return round1(Math.max(0, (better.score ?? 0) - measured.score));
}

/** The session as it would have been had these things gone well. */
function without(cause: Cause, facts: Facts): Facts {
  const checks = new Set(cause.checks);
  const requests = new Set(cause.requests);
  const asked = new Set(facts.way.filter((http) => requests.has(http.seq)).map((http) => http.id));
  const best = table.efficiency.seconds.best * 1000;
  const found = facts.goalFound;
  return {
    ...facts,
    checks: facts.checks.map((check) => (checks.has(check.key) ? { ...check, status: "pass", share: 1 } : check)),
    way: facts.way
      .filter((http) => !requests.has(http.seq) || !failed(http))
      .map((http) => (requests.has(http.seq) ? { ...http, ms: Math.min(http.ms, best) } : http)),
    results: facts.results.map((result) => (asked.has(result.id) ? { ...result, ok: true } : result)),
    failures: facts.failures.filter((failure) => !cause.failures.includes(failure.seqs[0]!)),
    interruptions: facts.interruptions.filter((each) => !cause.interruptions.includes(each.seq)),
    goalFound: cause.goal && found ? asFound(found) : found,
  };
}

/** A goal that was missed, as if it had been found after as many pages; one that was found, as if the way had been short. */
const asFound = (found: GoalFound): GoalFound =>
  found.state === "covered"
    ? { ...found, pages: Math.min(found.pages, table.discoverability.way.bestPages) }
    : { state: "covered", seq: found.seq, tMs: 0, sections: [], pages: Math.max(1, found.pages) };
