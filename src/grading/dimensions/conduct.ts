import type { Facts } from "../facts.ts";
import { standardMethodology } from "../methodology.ts";
import { type Fate, recoveriesOf } from "../recoveries.ts";
import { linear, log } from "./curve.ts";
import { type Part, scoreByCurve, withoutEvidence } from "./part.ts";

/** How the errors that the agent had to fix were resolved. */
export function recovery(facts: Facts): Part[] {
  const fates = recoveriesOf(facts).map(({ fate }) => fate);
  if (fates.length === 0) return [withoutEvidence("Recovery", 1)];
  const of = (fate: Fate) => fates.filter((each) => each === fate).length;
  const counts = {
    ...{ errors: fates.length, atOnce: of("fromMessage"), afterDocs: of("afterDocs") },
    ...{ later: of("later"), never: of("notAtAll") },
  };
  const value = fates.reduce((sum, fate) => sum + standardMethodology.recovery[fate], 0) / fates.length / 100;
  return [scoreByCurve("Recovery", 1, { value, unit: "share", curve: linear(1, 0), counts })];
}

export function autonomy(facts: Facts): Part[] {
  if (facts.calls.length === 0) return [withoutEvidence("Interruptions", 1)];
  const value = facts.interruptions.length;
  const curve = linear(0, standardMethodology.autonomy.zeroAtInterruptions);
  return [scoreByCurve("Interruptions", 1, { value, unit: "times", curve, counts: {} })];
}

/** Mean response time. */
export function responseTime(milliseconds: number[]): Part {
  const { weight, best, worst } = standardMethodology.efficiency.seconds;
  if (milliseconds.length === 0) return withoutEvidence("Response time", weight);
  const value = milliseconds.reduce((sum, ms) => sum + ms, 0) / 1000 / milliseconds.length;
  return scoreByCurve("Response time", weight, {
    ...{ value, unit: "seconds" as const, counts: { requests: milliseconds.length } },
    curve: log(best, worst),
  });
}

export function cost({ usage }: Facts): Part {
  const { weight, bestUsd, worstUsd } = standardMethodology.efficiency.money;
  const costs = usage.map((each) => each.costUsd);
  if (costs.length === 0 || costs.some((each) => each === null)) return withoutEvidence("Cost", weight);
  const value = costs.reduce((sum: number, each) => sum + each!, 0);
  return scoreByCurve("Cost", weight, {
    value,
    unit: "usd",
    curve: log(bestUsd, worstUsd),
    counts: { calls: costs.length },
  });
}
