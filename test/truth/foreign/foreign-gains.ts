import type { Friction } from "../../../src/grading/grade.ts";
import { exploreForeign } from "./defect-measure.ts";
import { plant, type Round, siteFor } from "./rounds.ts";

/** Two rounded scores may differ by up to this without any real difference. */
const rounding = 0.15;
const numbers = [1, 2];

/** Plants two defects, corrects one of them, and prints whether the score gains what the report promised for that. */
export async function measureForeignGains(round: Round, wanted: RegExp): Promise<void> {
  let [kept, promised] = [0, 0];
  for (const kind of Object.keys(round.defects).filter((each) => round.defects[each]!.promised && wanted.test(each)))
    for (const nth of numbers) {
      const gain = await gainOf(round, kind, nth);
      if (!gain) continue;
      promised++;
      if (gain.measured >= gain.low - rounding && gain.measured <= gain.high + rounding) kept++;
      else console.log(`  ${kind} ${nth}: promised ${gain.low} to ${gain.high}, brought ${gain.measured}`);
    }
  console.log(`Fixes that brought what was promised: ${kept} of ${promised}`);
}

/** null if no fix is about the defect. */
async function gainOf(round: Round, kind: string, nth: number) {
  const other = kind === "sitemap_stale" ? "llms_stale" : "sitemap_stale";
  const build = (...kinds: string[]) => {
    const site = siteFor(round, kind, nth);
    for (const each of kinds) plant(round, site, each, nth);
    return site;
  };
  const defective = await exploreForeign(build(other, kind));
  const corrected = await exploreForeign(build(other));
  const nameOf = ({ category, title }: Friction) => category + title;
  const remaining = new Set(corrected.frictions.map(nameOf));
  const gone = defective.frictions.filter((each) => !remaining.has(nameOf(each)) && !/conventions/i.test(each.title));
  const fingerprints = new Set(gone.map(({ fingerprint }) => fingerprint));
  const fixes = defective.recommendations.filter(({ frictions }) => frictions.some((each) => fingerprints.has(each)));
  if (fixes.length === 0) return null;
  const sum = (bound: "low" | "high") =>
    Math.round(10 * fixes.reduce((total, { gain }) => total + (gain?.[bound] ?? 0), 0)) / 10;
  const measured = Math.round(10 * ((corrected.score ?? 0) - (defective.score ?? 0))) / 10;
  return { low: sum("low"), high: sum("high"), measured };
}
