import { type Measured, measure } from "../dimensions/dimensions.ts";
import { failed } from "../events.ts";
import type { Facts } from "../facts.ts";
import type { GoalFound } from "../goal-found.ts";
import type { LostPoints } from "../grade.ts";
import { type Methodology, round1, table } from "../methodology.ts";
import { type Cause, type Finding, joinCauses, noCause } from "./finding.ts";

/** Points of the score that a cause took, by grading the session again without it; null where it took from nothing that was measured. */
export function gainOf(cause: Cause, facts: Facts, measured: Measured, methodology: Methodology): number | null {
  if (measured.score === null) return null;
  const better = measure(without(cause, facts), methodology);
  const names = new Set([...Object.keys(measured.exact), ...Object.keys(better.exact)]);
  if ([...names].every((name) => measured.exact[name] === better.exact[name])) return null;
  return round1(Math.max(0, (better.score ?? 0) - measured.score));
}

/**
 * The least and the most that a change would bring. Checks that could not be made as long as another failed may fail in their turn; where a
 * goal was not found, nobody knows how it would be found. Never more than is lost.
 */
export function rangeOf(cause: Cause, facts: Facts, measured: Measured, methodology: Methodology) {
  const gain = gainOf(cause, facts, measured, methodology);
  if (gain === null || measured.score === null) return null;
  const high = Math.min(gain, round1(100 - measured.score));
  const opened = openedBy(cause, facts);
  const worse = {
    ...facts,
    checks: facts.checks.map((check) => (opened.has(check.key) ? { ...check, ...failing } : check)),
  };
  const worst = measure(without(cause, worse), methodology).score ?? 0;
  const low = cause.goal && facts.goalFound?.state !== "likely" ? 0 : round1(worst - measured.score);
  return { low: Math.min(low, high), high };
}

const failing = { status: "fail", share: 0 } as const;

/** Checks of the same kind that were skipped: "llms-txt-size", where there is no llms.txt. */
function openedBy({ checks }: Cause, facts: Facts): Set<string> {
  const familyOf = (id: string) => id.split("-").slice(0, 2).join("-");
  const mended = facts.checks.filter(({ key }) => checks.includes(key)).map(({ id }) => familyOf(id));
  const skipped = facts.checks.filter(({ status, id }) => status === "skip" && mended.includes(familyOf(id)));
  return new Set(skipped.map(({ key }) => key));
}

/** The points that a score lacks to 100, by who can do something about them: each owner's causes are taken away after those before. */
export function lostPointsOf(
  findings: Finding[],
  facts: Facts,
  { score }: Measured,
  methodology: Methodology,
): LostPoints | null {
  if (score === null) return null;
  const causeOf = (owner: Finding["owner"]) =>
    findings.filter((finding) => finding.owner === owner).reduce((all, { cause }) => joinCauses(all, cause), noCause);
  const tenths = (value: number) => Math.round(value * 10);
  const total = tenths(100 - score);
  let left = total;
  let cause = noCause;
  let graded = facts;
  const next = (more: Cause, change: (facts: Facts) => Facts = (same) => same): number => {
    cause = joinCauses(cause, more);
    graded = change(graded);
    const better = tenths(100 - (measure(without(cause, graded), methodology).score ?? score));
    const own = Math.max(0, left - Math.max(0, better));
    left -= own;
    return own / 10;
  };
  const fixes = next(causeOf("fixes"));
  const network = next(causeOf("network"));
  const agent = next(causeOf("agent"), withoutRepeats);
  return { total: total / 10, fixes, agent, network, unmeasured: left / 10 };
}

/** The session as if no call had been made twice, and nobody had been asked. */
function withoutRepeats(facts: Facts): Facts {
  const seen = new Set<string>();
  const calls = facts.calls.map((call) => {
    const key = `${call.tool} ${JSON.stringify(call.input)}`;
    const again = seen.has(key);
    seen.add(key);
    return again ? { ...call, input: { ...call.input, again: call.seq } } : call;
  });
  return { ...facts, calls, interruptions: [] };
}

/** The session as it would have been had these things gone well. */
function without(cause: Cause, facts: Facts): Facts {
  const checks = new Set(cause.checks);
  const requests = new Set(cause.requests);
  const asked = new Set(facts.way.filter((http) => requests.has(http.seq)).map((http) => http.id));
  const best = table.efficiency.seconds.best * 1000;
  const found = facts.goalFound;
  const pass = <T extends { key: string }>(check: T): T =>
    checks.has(check.key) ? { ...check, status: "pass", share: 1 } : check;
  return {
    ...facts,
    checks: facts.checks.map(pass),
    declared: facts.declared.map(pass),
    way: facts.way
      .filter((http) => !requests.has(http.seq) || !failed(http))
      .map((http) => (requests.has(http.seq) ? { ...http, ms: Math.min(http.ms, best) } : http)),
    results: facts.results.map((result) => (asked.has(result.id) ? { ...result, ok: true } : result)),
    failures: facts.failures.filter((failure) => !cause.failures.includes(failure.seqs[0]!)),
    interruptions: facts.interruptions.filter((each) => !cause.interruptions.includes(each.seq)),
    goalFound: cause.goal && found ? asFound(found) : found,
  };
}

/** An unclear goal, as if its answer were plain and near; a likely one, as if it were near. */
const asFound = (found: GoalFound): GoalFound => ({
  ...found,
  state: "likely",
  fit: found.state === "likely" ? found.fit : 1,
  clicks: Math.min(found.clicks ?? table.discoverability.way.bestClicks, table.discoverability.way.bestClicks),
});
