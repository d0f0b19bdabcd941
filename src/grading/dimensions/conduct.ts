import type { Facts } from "../facts.ts";
import { standardMethodology } from "../methodology.ts";
import { type Resolution, recoveriesOf } from "../recoveries.ts";
import { linear, logarithmic } from "./curve.ts";
import { type Part, scoreByCurve, withoutEvidence } from "./part.ts";

/** How the errors that the agent had to fix were resolved. */
export function recoveryParts(facts: Facts): Part[] {
  const resolutions = recoveriesOf(facts).map(({ resolution }) => resolution);
  if (resolutions.length === 0) return [withoutEvidence("Recovery", 1)];
  const countOf = (resolution: Resolution) => resolutions.filter((each) => each === resolution).length;
  const counts = {
    errors: resolutions.length,
    atOnce: countOf("fromMessage"),
    afterDocs: countOf("afterDocs"),
    later: countOf("later"),
    never: countOf("notAtAll"),
  };
  const value =
    resolutions.reduce((sum, resolution) => sum + standardMethodology.recovery[resolution], 0) /
    resolutions.length /
    100;
  return [scoreByCurve("Recovery", 1, { value, unit: "share", curve: linear(1, 0), counts })];
}

/** How often the agent interrupted its work to ask a person. */
export function autonomyParts(facts: Facts): Part[] {
  if (facts.calls.length === 0) return [withoutEvidence("Interruptions", 1)];
  const value = facts.interruptions.length;
  const curve = linear(0, standardMethodology.autonomy.zeroAtInterruptions);
  return [scoreByCurve("Interruptions", 1, { value, unit: "times", curve, counts: {} })];
}

/** The mean response time of requests. `milliseconds`: of each request. */
export function responseTimePart(milliseconds: number[]): Part {
  const { weight, best, worst } = standardMethodology.efficiency.seconds;
  if (milliseconds.length === 0) return withoutEvidence("Response time", weight);
  const value = milliseconds.reduce((sum, ms) => sum + ms, 0) / 1000 / milliseconds.length;
  return scoreByCurve("Response time", weight, {
    value,
    unit: "seconds" as const,
    counts: { requests: milliseconds.length },
    curve: logarithmic(best, worst),
  });
}

/** The cost of the agent's model calls. Without evidence if it is unknown for one of them. */
export function costPart({ usage }: Facts): Part {
  const { weight, bestUsd, worstUsd } = standardMethodology.efficiency.money;
  const costs = usage.map((each) => each.costUsd);
  if (costs.length === 0 || costs.some((each) => each === null)) return withoutEvidence("Cost", weight);
  const value = costs.reduce((sum: number, each) => sum + each!, 0);
  return scoreByCurve("Cost", weight, {
    value,
    unit: "usd",
    curve: logarithmic(bestUsd, worstUsd),
    counts: { calls: costs.length },
  });
}
