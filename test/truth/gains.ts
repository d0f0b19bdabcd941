import { type DefectKind, defectKinds, names, type Place, places, plant } from "./defects.ts";
import { type DocsSite, generateSite } from "./docs-site.ts";
import { serveDocs } from "./server.ts";
import { type Explored, explore } from "./session.ts";

/** A fix that a report recommends, the points that it promises, and the points that it brought. */
export type Gain = { what: string; promised: { low: number; high: number }; measured: number; kept: boolean };

const atOnce = 3;
/** Two rounded scores may differ by up to this without any real difference. */
const rounding = 0.1;

export async function exploreSite(site: DocsSite): Promise<Explored> {
  const { start, stop } = serveDocs(site);
  try {
    return await explore(start, site.goal);
  } finally {
    stop();
  }
}

/** Applies one recommended fix on each of the sites: its defect is removed, and a second one stays. */
export async function measureGains(wanted: number): Promise<Gain[]> {
  const gains: Gain[] = [];
  const waiting = Array.from({ length: wanted }, (_, seed) => seed + 1).values();
  const worker = async () => {
    for (const seed of waiting) gains.push(...(await fixOne(seed)));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return gains.sort((a, b) => (a.what < b.what ? -1 : 1));
}

async function fixOne(seed: number): Promise<Gain[]> {
  const turns = places.flatMap((place) => defectKinds.map((kind) => ({ kind, place })));
  // The remaining defect is on another page than the removed one.
  const other = { kind: defectKinds[(seed * 7 + 3) % defectKinds.length]!, place: "elsewhere" as const };
  const build = (...defects: { kind: DefectKind; place: Place }[]) => {
    const site = generateSite(seed);
    const planted = defects.map(({ kind, place }, nth) => plant(site, kind, place, seed + nth));
    return { site, planted };
  };
  // From this seed's turn on, the first kind for which the site has a place.
  for (let at = 0; at < turns.length; at++) {
    const { kind, place } = turns[(seed * 5 + at) % turns.length]!;
    if (kind === other.kind) continue;
    const broken = build(other, { kind, place });
    const planted = broken.planted.at(-1);
    if (!planted || planted.path === broken.planted[0]?.path) continue;
    const before = (await exploreSite(broken.site)).grade;
    const friction = before.frictions.find((each) => names(each, planted));
    const advice = before.recommendations.find(({ frictions }) => frictions.includes(friction?.fingerprint ?? ""));
    if (!advice?.gain || advice.frictions.length > 1) continue;
    const after = (await exploreSite(build(other).site)).grade;
    const measured = Math.round(10 * ((after.score ?? 0) - (before.score ?? 0))) / 10;
    const { low, high } = advice.gain;
    const kept = measured >= low - rounding && measured <= high + rounding;
    return [{ what: `seed ${seed}, ${kind} ${place}: ${advice.title}`, promised: advice.gain, measured, kept }];
  }
  return [];
}

export function printGains(gains: Gain[]): void {
  for (const { what, promised, measured, kept } of gains)
    console.log(
      `${kept ? "  " : "✗ "}${what.padEnd(100)} promised ${promised.low} to ${promised.high}, brought ${measured}`,
    );
  console.log(`Fixes that brought what was promised: ${gains.filter(({ kept }) => kept).length} of ${gains.length}`);
}
