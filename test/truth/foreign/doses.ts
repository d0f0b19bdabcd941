import { exploreForeign } from "./defect-measure.ts";
import { plant, type Round } from "./rounds.ts";

const sequence = [
  "dead_link",
  "api_field",
  "bracket_json",
  "sitemap_stale",
  "empty_page",
  "redirect_loop",
  "code_screenshot",
  "answer_removed",
];
const products = ["sdk-js", "rest", "sdk-python", "sdk-go"];
const sizes = [12, 20, 40];

/** Adds one defect after the other to each site, and prints whether each of them lowers the score. */
export async function measureDoses(round: Round, seeds: number[]): Promise<void> {
  const falls = { fell: 0, flat: 0, rose: 0 };
  const others: string[] = [];
  for (const seed of seeds) {
    const markup = round.markups[seed % round.markups.length]!;
    const options = { markup, kind: products[seed % products.length], size: sizes[seed % sizes.length] };
    const site = round.site(3000 + seed * 13, options);
    let before = (await exploreForeign(site)).score ?? 0;
    for (const kind of sequence) {
      plant(round, site, kind, seed);
      const after = (await exploreForeign(site)).score ?? 0;
      const change = after < before ? "fell" : after === before ? "flat" : "rose";
      falls[change]++;
      if (change !== "fell") others.push(`${seed} ${markup.name} ${kind}: ${change}, ${before} → ${after}`);
      before = after;
    }
  }
  console.log(`Scores after an added defect: ${falls.fell} fell, ${falls.flat} stayed, ${falls.rose} rose`);
  for (const other of others) console.log(`  ${other}`);
}
