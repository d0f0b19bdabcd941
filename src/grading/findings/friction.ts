import type { Measurement } from "../dimensions/dimensions.ts";
import type { Facts } from "../facts.ts";
import type { Friction } from "../grade.ts";
import { type Methodology, maxFrictions, round1, severityRank } from "../methodology.ts";
import { count, list } from "../text.ts";
import { type Finding, fingerprint, sortedUnique, textOrder } from "./finding.ts";
import { gainOf } from "./gains.ts";

type Scoring = { measured: Measurement; methodology: Methodology };

/**
 * The findings with their cost, worst first; in points only with `scoring`. If there are more than a
 * report can hold, the last one summarizes the rest.
 */
export function frictionsOf(findings: Finding[], facts: Facts, scoring: Scoring | null = null): Friction[] {
  const causes = new Map(findings.map(({ fingerprint, cause }) => [fingerprint, cause]));
  const withLostPoints = (friction: Friction): Friction => {
    const cause = causes.get(friction.fingerprint);
    if (!scoring || !cause) return friction;
    return { ...friction, lostPoints: gainOf(cause, facts, scoring.measured, scoring.methodology) };
  };
  const all = findings.map((finding) => toFriction(finding, facts)).sort(byImportance);
  if (all.length <= maxFrictions) return all.map(withLostPoints);
  // What is known about the goal is always listed.
  const isOfGoal = ({ fingerprint }: Friction) => causes.get(fingerprint)?.goal === true;
  const mostImportant = [...all.filter(isOfGoal), ...all.filter((each) => !isOfGoal(each))];
  const listed = new Set(mostImportant.slice(0, maxFrictions - 1));
  const rest = all.filter((each) => !listed.has(each));
  return [...all.filter((each) => listed.has(each)).map(withLostPoints), summarizeRest(rest)];
}

/** A finding with its cost, as a report shows it. */
function toFriction(finding: Finding, facts: Facts): Friction {
  const { fingerprint, severity, phase, category, title, description, quote, url } = finding;
  const { onPath, events, preconditions } = finding;
  const kind = { fingerprint, severity, phase, category, title, description };
  const evidence = { quote, url, onPath, events, preconditions };
  return {
    ...kind,
    ...evidence,
    lostSeconds: secondsOf(events, facts),
    lostUsd: usdOf(events, facts),
    lostPoints: null,
  };
}

/**
 * Equally important ones stay in the order of the session. The order doesn't start with fingerprints, because they depend on the host: the same docs
 * on another host would get another order.
 */
const byImportance = (a: Friction, b: Friction): number =>
  severityRank[a.severity] - severityRank[b.severity] ||
  (b.lostUsd ?? 0) - (a.lostUsd ?? 0) ||
  (b.lostSeconds ?? 0) - (a.lostSeconds ?? 0) ||
  (a.events[0] ?? Number.POSITIVE_INFINITY) - (b.events[0] ?? Number.POSITIVE_INFINITY) ||
  textOrder(a.title, b.title) ||
  textOrder(a.fingerprint, b.fingerprint);

/** The fingerprint of the entry that summarizes what a report can't hold. */
export const restFingerprint = fingerprint("other", "more frictions");

/** As severe as the worst that it summarizes, so that the order stays correct. */
function summarizeRest(rest: Friction[]): Friction {
  const kinds = [...Map.groupBy(rest, (each) => each.category)]
    .map(([category, group]) => ({ label: `${group.length} × ${category.replaceAll("_", " ")}`, n: group.length }))
    .sort((a, b) => b.n - a.n || textOrder(a.label, b.label));
  const labels = kinds.map(({ label }) => label);
  return {
    fingerprint: restFingerprint,
    severity: rest[0]!.severity,
    phase: rest[0]!.phase,
    category: "other",
    title: `${count(rest.length, "more friction point")} not listed`,
    description: `A report lists at most ${maxFrictions - 1} friction points. Not listed: ${list(labels, 20)}.`,
    quote: null,
    url: null,
    onPath: rest.some(({ onPath }) => onPath),
    events: sortedUnique(rest.flatMap((each) => each.events)),
    lostSeconds: null,
    lostUsd: null,
    lostPoints: null,
    preconditions: ["run"],
  };
}

/** Time that the agent itself lost; checks cost it none. */
function secondsOf(events: number[], facts: Facts): number | null {
  const seqs = new Set(events);
  const requests = facts.taskRequests.filter((http) => seqs.has(http.seq));
  const callIds = new Set(requests.map((http) => http.id));
  const failedTools = facts.results.filter(({ seq, id, ok }) => seqs.has(seq) && ok === false && !callIds.has(id));
  if (requests.length + failedTools.length === 0) return null;
  let lostMs = 0;
  for (const { ms } of requests) lostMs += ms;
  for (const { id, tMs: endMs } of failedTools)
    lostMs += endMs - (facts.calls.find((call) => call.id === id)?.tMs ?? endMs);
  return round1(lostMs / 1000);
}

/** Model usage between an event of the evidence and the next tool call: the cost of reading it. */
function usdOf(events: number[], { usage, calls }: Facts): number | null {
  if (usage.length === 0 || usage.some((each) => each.costUsd === null)) return null;
  const spent = new Map<number, number>();
  for (const seq of events) {
    const next = calls.find((call) => call.seq > seq)?.seq ?? Number.POSITIVE_INFINITY;
    for (const each of usage) if (each.seq > seq && each.seq < next) spent.set(each.seq, each.costUsd ?? 0);
  }
  if (spent.size === 0) return null;
  return Math.round([...spent.values()].reduce((sum, usd) => sum + usd, 0) * 1e6) / 1e6;
}
