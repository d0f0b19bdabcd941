import { firstContentDefects } from "./first-content-defects.ts";
import { firstMarkups } from "./first-markups.ts";
import { firstSampleDefects } from "./first-sample-defects.ts";
import { firstSiteDefects } from "./first-site-defects.ts";
import { firstSite } from "./first-sites.ts";
import { firstSyntaxDefects } from "./first-syntax-defects.ts";
import { secondContentDefects } from "./second-content-defects.ts";
import { secondMarkups } from "./second-markups.ts";
import { secondSiteDefects } from "./second-site-defects.ts";
import { secondSite } from "./second-sites.ts";
import { secondSyntaxDefects } from "./second-syntax-defects.ts";
import type { Defect, ForeignSite, Markup, Planted } from "./site.ts";
import { thirdContentDefects } from "./third-content-defects.ts";
import { thirdMarkups } from "./third-markups.ts";
import { thirdSiteDefects } from "./third-site-defects.ts";
import { thirdSite } from "./third-sites.ts";
import { thirdSyntaxDefects } from "./third-syntax-defects.ts";

/** A generator of sites with the defects that it can plant, by kind. */
export type Round = {
  name: string;
  defects: Record<string, Defect>;
  markups: Markup[];
  site(seed: number, options: { markup: Markup; kind?: string; size?: number }): ForeignSite;
};

export const rounds: Round[] = [
  {
    name: "first",
    defects: { ...firstSiteDefects, ...firstSampleDefects, ...firstContentDefects, ...firstSyntaxDefects },
    markups: firstMarkups,
    site: firstSite,
  },
  {
    name: "second",
    defects: { ...secondSiteDefects, ...secondContentDefects, ...secondSyntaxDefects },
    markups: secondMarkups,
    site: secondSite,
  },
  {
    name: "third",
    defects: { ...thirdSiteDefects, ...thirdContentDefects, ...thirdSyntaxDefects },
    markups: thirdMarkups,
    site: thirdSite,
  },
];

const sizes = [12, 24, 40];
const hashOf = (text: string) => [...text].reduce((hash, each) => (hash * 31 + each.charCodeAt(0)) >>> 0, 7);

/** The nth site for a kind of defect, still clean. The same kind and number give the same site. */
export function siteFor(round: Round, kind: string, nth: number): ForeignSite {
  const { only, except = [], products } = round.defects[kind]!;
  const markups = round.markups.filter(({ name }) => (only ? only.includes(name) : !except.includes(name)));
  const hash = hashOf(kind);
  return round.site(700 + (hash % 400) + nth * 37, {
    markup: markups[(hash + nth * 5) % markups.length]!,
    size: sizes[nth % sizes.length]!,
    kind: products?.[nth % products.length],
  });
}

/** Plants a defect of that kind, and says what a report must name. */
export const plant = (round: Round, site: ForeignSite, kind: string, nth: number): Planted =>
  round.defects[kind]!.plant(site, nth);

/** The nth clean site, of each markup in turn and of any product and size. */
export const cleanSite = (round: Round, nth: number): ForeignSite =>
  round.site(nth + 101, { markup: round.markups[nth % round.markups.length]! });
