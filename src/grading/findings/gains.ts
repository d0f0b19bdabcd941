import { pageKey } from "../../net/page-key.ts";
import { type Measurement, measure } from "../dimensions/dimensions.ts";
import { hasFailed } from "../events.ts";
import type { Facts } from "../facts.ts";
import type { GoalAnswer } from "../goal-answer.ts";
import type { LostPoints } from "../grade.ts";
import { readingChecks } from "../kinds.ts";
import { clamp, type Methodology, round1, standardMethodology } from "../methodology.ts";
import { type Cause, type Finding, joinCauses, noCause } from "./finding.ts";

/**
 * Points of the score that a cause cost, computed by grading the session again without it; null if it affected nothing
 * that was measured.
 */
export function gainOf(cause: Cause, facts: Facts, measured: Measurement, methodology: Methodology): number | null {
  if (measured.score === null) return null;
  const better = measure(withoutCause(cause, facts), methodology);
  const names = new Set([...Object.keys(measured.exactScores), ...Object.keys(better.exactScores)]);
  if ([...names].every((name) => measured.exactScores[name] === better.exactScores[name])) return null;
  return round1(Math.max(0, (better.score ?? 0) - measured.score));
}

/** The margin of a gain is the larger of a share of it and these points, because a new session on the fixed docs reads other pages. */
const margin = { share: 0.1, points: 0.3 };

/**
 * The minimum and maximum gain of a change. A check that was skipped because another check failed may fail once that one passes. A page that becomes
 * readable may be useless, or may explain what was missing. If the goal was not found, it is unknown how it would be found. The gain is never more
 * than what was lost.
 */
export function rangeOf(cause: Cause, facts: Facts, measured: Measurement, methodology: Methodology) {
  const gain = gainOf(cause, facts, measured, methodology);
  const { score } = measured;
  if (gain === null || score === null) return null;
  const unblocked = checksUnblockedBy(cause, facts);
  const factsWithNewFailures = {
    ...facts,
    checks: facts.checks.map((check) => (unblocked.has(check.key) ? { ...check, ...failing } : check)),
  };
  const scenarios = [withoutCause(cause, factsWithNewFailures), ...withPagesRead(cause, facts)];
  const gains = [gain, ...scenarios.map((scenario) => (measure(scenario, methodology).score ?? 0) - score)];
  const [minGain, maxGain] = [Math.min(...gains), Math.max(...gains)];
  const marginOf = (points: number) => Math.max(margin.points, margin.share * Math.abs(points));
  const high = round1(Math.min(maxGain + marginOf(maxGain), 100 - score));
  const isGoalUnclear = cause.goal && facts.goalAnswer?.state !== "likely";
  const low = isGoalUnclear ? Math.min(0, minGain) : minGain - marginOf(minGain);
  return { low: Math.min(round1(low), high), high };
}

/** The session if the pages that a cause made unreadable had been read: once if they were useless, and once with the best result. */
function withPagesRead(cause: Cause, facts: Facts): Facts[] {
  const requests = new Set(cause.requests);
  const unreadRequests = facts.taskRequests.filter(({ seq }) => requests.has(seq));
  const hasUnreadCheck = facts.checks.some(({ key, id }) => cause.checks.includes(key) && readingChecks.has(id));
  if (unreadRequests.length === 0 && !hasUnreadCheck) return [];
  const better = withoutCause(cause, facts);
  const factsWithPagesRead = {
    ...better,
    taskRequests: [
      ...better.taskRequests,
      // `withoutCause` removes the requests that failed.
      ...unreadRequests.filter(hasFailed).map((http) => ({ ...http, status: 200, error: null })),
    ],
    pages: [...facts.pages, ...unreadRequests.map(({ seq, url }) => ({ seq, url, title: null, chars: null }))],
  };
  const unexplained = facts.checks.filter(({ id, share }) => id === "prerequisite-explained" && share < 1);
  const allCauses = joinCauses(cause, { ...noCause, checks: unexplained.map(({ key }) => key), goal: true });
  const useful = new Set([...facts.pagesWithTerms, ...unreadRequests.map(({ url }) => pageKey(url))]);
  return [
    factsWithPagesRead,
    // The best result: they answer the goal, and explain what was missing.
    {
      ...withoutCause(allCauses, facts),
      pages: factsWithPagesRead.pages,
      taskRequests: factsWithPagesRead.taskRequests,
      pagesWithTerms: useful,
    },
  ];
}

const failing = { status: "fail", share: 0 } as const;

/** Checks of the same family that were skipped: "llms-txt-size", if "llms-txt-exists" failed. */
function checksUnblockedBy({ checks }: Cause, facts: Facts): Set<string> {
  const familyOf = (id: string) => id.split("-").slice(0, 2).join("-");
  const fixed = facts.checks.filter(({ key }) => checks.includes(key)).map(({ id }) => familyOf(id));
  const skipped = facts.checks.filter(({ status, id }) => status === "skip" && fixed.includes(familyOf(id)));
  return new Set(skipped.map(({ key }) => key));
}

/** The points missing to 100, by who can fix their causes. The causes of each owner are removed after the causes of the owners before it. */
export function lostPointsOf(
  findings: Finding[],
  facts: Facts,
  { score }: Measurement,
  methodology: Methodology,
): LostPoints | null {
  if (score === null) return null;
  const causeOf = (owner: Finding["owner"]) =>
    findings.filter((finding) => finding.owner === owner).reduce((all, { cause }) => joinCauses(all, cause), noCause);
  /** Points missing to 100 in tenths, which add up without rounding errors. */
  const missing = (points: number | null) => Math.round((100 - (points ?? score)) * 10);
  const missingWithout = (cause: Cause, session: Facts) =>
    missing(measure(withoutCause(cause, session), methodology).score);
  const fixes = causeOf("fixes");
  const fixesAndNetwork = joinCauses(fixes, causeOf("network"));
  const all = joinCauses(fixesAndNetwork, causeOf("agent"));
  const total = missing(score);
  const afterFixes = clamp(missingWithout(fixes, facts), 0, total);
  const afterNetwork = clamp(missingWithout(fixesAndNetwork, facts), 0, afterFixes);
  const afterAgent = clamp(missingWithout(all, withoutOwnFaults(facts)), 0, afterNetwork);
  return {
    total: total / 10,
    fixes: (total - afterFixes) / 10,
    agent: (afterNetwork - afterAgent) / 10,
    network: (afterFixes - afterNetwork) / 10,
    unmeasured: afterAgent / 10,
  };
}

/**
 * How many of the points that fixes would gain each cause accounts for, after the causes before it, one decimal. The shares add up to at most
 * `fixes`. A cause that gains more than the causes right before it divides the points equally with them, so shares never rise.
 */
export function sharesOf(
  causes: Cause[],
  fixes: number,
  facts: Facts,
  { score }: Measurement,
  methodology: Methodology,
): number[] {
  let removedCauses = noCause;
  let best = Math.round((score ?? 0) * 10);
  let remaining = Math.round(fixes * 10);
  const shares = causes.map((cause) => {
    removedCauses = joinCauses(removedCauses, cause);
    const better = Math.round((measure(withoutCause(removedCauses, facts), methodology).score ?? 0) * 10);
    const share = clamp(better - best, 0, remaining);
    best = Math.max(best, better);
    remaining -= share;
    return share;
  });
  return evenOut(shares).map((share) => share / 10);
}

/**
 * Replaces integers that rise from one to the next by their mean, so that none is larger than the one before it; the sum
 * stays the same (pool adjacent violators).
 */
function evenOut(shares: number[]): number[] {
  const groups: { sum: number; n: number }[] = [];
  const isBelow = (a: { sum: number; n: number }, b: { sum: number; n: number }) => a.sum * b.n < b.sum * a.n;
  for (const share of shares) {
    let group = { sum: share, n: 1 };
    for (let before = groups.at(-1); before && isBelow(before, group); before = groups.at(-1)) {
      groups.pop();
      group = { sum: before.sum + group.sum, n: before.n + group.n };
    }
    groups.push(group);
  }
  // Integers with this sum that differ by at most 1.
  const split = ({ sum, n }: { sum: number; n: number }) =>
    Array.from({ length: n }, (_, i) => Math.floor((sum + i) / n));
  return groups.flatMap(split).sort((a, b) => b - a);
}

/** The session without what is only the agent's own fault: repeated calls, and questions to people. */
function withoutOwnFaults(facts: Facts): Facts {
  const keys = new Set<string>();
  const calls = facts.calls.map((call) => {
    const key = `${call.tool} ${JSON.stringify(call.input)}`;
    const isRepeat = keys.has(key);
    keys.add(key);
    // With another input, it counts as another call.
    return isRepeat ? { ...call, input: { ...call.input, again: call.seq } } : call;
  });
  return { ...facts, calls, interruptions: [] };
}

/** The session as if these causes had not occurred. */
function withoutCause(cause: Cause, facts: Facts): Facts {
  const checks = new Set(cause.checks);
  const requests = new Set(cause.requests);
  const callIds = new Set(facts.taskRequests.filter((http) => requests.has(http.seq)).map((http) => http.id));
  const best = standardMethodology.efficiency.seconds.best * 1000;
  const { goalAnswer } = facts;
  const pass = <T extends { key: string }>(check: T): T =>
    checks.has(check.key) ? { ...check, status: "pass", share: 1 } : check;
  return {
    ...facts,
    checks: facts.checks.map(pass),
    successChecks: facts.successChecks.map(pass),
    taskRequests: facts.taskRequests
      .filter((http) => !requests.has(http.seq) || !hasFailed(http))
      .map((http) => (requests.has(http.seq) ? { ...http, ms: Math.min(http.ms, best) } : http)),
    results: facts.results.map((result) => (callIds.has(result.id) ? { ...result, ok: true } : result)),
    failures: facts.failures.filter((failure) => !cause.failures.includes(failure.seqs[0]!)),
    interruptions: facts.interruptions.filter((each) => !cause.interruptions.includes(each.seq)),
    goalAnswer: cause.goal && goalAnswer ? toNearAnswer(goalAnswer) : goalAnswer,
  };
}

/** An unclear goal, as if its answer were clear and near; a likely one, as if it were near. */
const toNearAnswer = (answer: GoalAnswer): GoalAnswer => ({
  ...answer,
  state: "likely",
  fit: answer.state === "likely" ? answer.fit : 1,
  clicks: Math.min(
    answer.clicks ?? standardMethodology.discoverability.path.bestClicks,
    standardMethodology.discoverability.path.bestClicks,
  ),
});
