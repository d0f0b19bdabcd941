// What pages and commands call the results of a suite.
import { percent, rangeText } from "../grading/text.ts";
import type { ProductResult, SlotResult } from "./schema.ts";

const standingLabels: Record<NonNullable<ProductResult["standing"]>, string> = {
  best: "Best",
  tied: "Not distinguishable",
  behind: "Behind",
  too_few_runs: "Too few runs",
  not_comparable: "Not comparable",
};

/** The standing of a product among the products of its suite, in words; empty: unknown. */
export const standingText = (standing: ProductResult["standing"]): string =>
  standing === null ? "" : standingLabels[standing];

const stateLabels: Record<Exclude<SlotResult["state"], "judged">, string> = {
  not_judged: "not judged",
  no_runs: "no runs",
  changed: "changed",
  missing: "no prompt",
};

/** How many of the judged runs reached a slot, such as "3 of 4", or why this is unknown. */
export const slotText = ({ state, reached, judged }: SlotResult): string =>
  state === "judged" ? `${reached} of ${judged}` : stateLabels[state];

/** For example "25% (11.2% to 46.9%)". */
export const shareText = (share: ProductResult["share"]): string =>
  share === null ? "not judged" : percent(share.value) + rangeText(share, percent);
