import type { Facts } from "../facts.ts";
import { table } from "../methodology.ts";
import { type Fate, recoveriesOf } from "../recoveries.ts";
import { linear, log } from "./curve.ts";
import { measured, type Part, unmeasured } from "./part.ts";

/** How the errors that the agent had to fix were resolved. */
export function recovery(facts: Facts): Part[] {
  const fates = recoveriesOf(facts).map(({ fate }) => fate);
  if (fates.length === 0) return [unmeasured("Recovery", 1)];
  const of = (fate: Fate) => fates.filter((each) => each === fate).length;
  const counts = {
    ...{ errors: fates.length, atOnce: of("fromMessage"), afterDocs: of("afterDocs") },
    ...{ later: of("later"), never: of("notAtAll") },
  };
  const value = fates.reduce((sum, fate) => sum + table.recovery[fate], 0) / fates.length / 100;
  return [measured("Recovery", 1, { value, unit: "share", curve: linear(1, 0), counts })];
}

export function autonomy(facts: Facts): Part[] {
  if (facts.calls.length === 0) return [unmeasured("Interruptions", 1)];
  const value = facts.interruptions.length;
  const curve = linear(0, table.autonomy.zeroAtInterruptions);
  return [measured("Interruptions", 1, { value, unit: "times", curve, counts: {} })];
}

/** Mean response time. */
export function responseTime(milliseconds: number[]): Part {
  const { weight, best, worst } = table.efficiency.seconds;
  if (milliseconds.length === 0) return unmeasured("Response time", weight);
  const value = milliseconds.reduce((sum, ms) => sum + ms, 0) / 1000 / milliseconds.length;
  return measured("Response time", weight, {
    ...{ value, unit: "seconds" as const, counts: { requests: milliseconds.length } },
    curve: log(best, worst),
  });
}

export function cost({ usage }: Facts): Part {
  const { weight, bestUsd, worstUsd } = table.efficiency.money;
  const costs = usage.map((each) => each.costUsd);
  if (costs.length === 0 || costs.some((each) => each === null)) return unmeasured("Cost", weight);
  const value = costs.reduce((sum: number, each) => sum + each!, 0);
  return measured("Cost", weight, {
    value,
    unit: "usd",
    curve: log(bestUsd, worstUsd),
    counts: { calls: costs.length },
  });
}
