import type { CheckGroup } from "../agents/agent.ts";
import type { DimensionName } from "../weights.ts";
import { autonomy, recovery } from "./conduct.ts";
import { statePart } from "./curve.ts";
import { type Facts, failed, type Http, isProbe, type SeenCheck } from "./facts.ts";
import { clamp, fallingLine, letterOf, logCurve, type Methodology, round1, table } from "./methodology.ts";
import type { Dimension } from "./score.ts";
import { count, duration, lowerFirst, percent, sameAddress, samePage } from "./words.ts";

/** One thing measured inside a dimension; `score` is null without evidence. */
export type Part = { name: string; weight: number; score: number | null; text: string };
type Measure = { name: DimensionName; exact: number; desc: string };
export type Measured = {
  dimensions: Dimension[];
  exact: Record<string, number>;
  coverage: number;
  score: number | null;
};

/** Every dimension with evidence, and the weighted mean of those. */
export function measure(facts: Facts, { weights: all, notMetCap }: Methodology): Measured {
  const measures = [
    goal(facts),
    discoverability(facts),
    quality(facts),
    facts.kind === "model" ? dimension("Error recovery", recovery(facts)) : null,
    efficiency(facts),
    facts.kind === "model" ? dimension("Autonomy", autonomy(facts)) : null,
  ].filter((each) => each !== null);
  const dimensions = measures.map(({ name, exact, desc }) => {
    const score = round1(exact);
    return { name, weight: `${all[name]}%`, score, grade: letterOf(score), desc };
  });
  const weights = measures.reduce((sum, { name }) => sum + all[name], 0);
  const points = dimensions.reduce((sum, each, i) => sum + each.score * all[measures[i]!.name], 0);
  const mean = weights === 0 ? null : round1(points / weights);
  return {
    dimensions,
    exact: Object.fromEntries(measures.map(({ name, exact }) => [name, exact])),
    coverage: weights / 100,
    score: mean !== null && facts.outcome === "goal_not_met" ? Math.min(mean, notMetCap) : mean,
  };
}

function dimension(name: DimensionName, parts: Part[]): Measure | null {
  const measured = parts.filter((part) => part.score !== null && part.weight > 0);
  if (measured.length === 0) return null;
  const weights = measured.reduce((sum, part) => sum + part.weight, 0);
  const exact = measured.reduce((sum, part) => sum + part.weight * part.score!, 0) / weights;
  const left = parts.filter((part) => part.score === null).map((part) => lowerFirst(part.name));
  const texts = measured.map((part) =>
    statePart({ ...part, share: percent(part.weight / weights), score: round1(part.score!) }),
  );
  if (left.length > 0) texts.push(`Not measured, weight spread over the rest: ${left.join(", ")}.`);
  return { name, exact: clamp(exact, 0, 100), desc: texts.join(" ") };
}

/** The share of some checks that is in order, by weight; those that could not be tested count neither way. */
function checkedPart(checks: SeenCheck[], name: string, weight: number, words: string): Part {
  const counted = checks.filter((check) => check.status !== "skip" && check.weight > 0);
  const total = counted.reduce((sum, check) => sum + check.weight, 0);
  if (total === 0) return { name, weight, score: null, text: "" };
  const share = counted.reduce((sum, check) => sum + check.weight * check.share, 0) / total;
  const text = `${percent(share)} ${words} (100 if all, 0 if none)`;
  return { name, weight, score: 100 * share, text };
}

function checked(facts: Facts, group: CheckGroup, name: string, weight: number, words: string): Part {
  return checkedPart(
    facts.checks.filter((check) => check.group === group),
    name,
    weight,
    words,
  );
}

/** Checks that a person declared go before what a judge says. Parts that nobody could judge leave the goal unmeasured. */
function goal(facts: Facts): Measure | null {
  const declared = checked(facts, "declared", "Declared checks", 1, "of the declared checks passed, by weight");
  const parts = facts.judgement?.verdict?.parts ?? [];
  if (declared.score !== null || facts.outcome === "not_judged" || parts.length === 0)
    return dimension("Goal achievement", [declared]);
  const told = parts.map(({ met, events }, i) =>
    met === "unclear" ? `${i + 1} unclear` : `${i + 1} ${met} (event ${events[0]})`,
  );
  const reached = parts.filter(({ met }) => met === "yes").length;
  const text = `${reached} of ${count(parts.length, "part")} reached, judged by ${facts.judgement?.model}: ${told.join(", ")} (100 if all, 0 if none)`;
  return dimension("Goal achievement", [
    { name: "Parts of the end goal", weight: 1, score: (100 * reached) / parts.length, text },
  ]);
}

function discoverability(facts: Facts): Measure | null {
  const curves = table.discoverability;
  return dimension("Docs discoverability", [
    wayPart(facts),
    missedPart(facts),
    checked(facts, "discovery", "Site checks", curves.checks.weight, "of what was checked is in order, by weight"),
  ]);
}

function wayPart({ goalFound, pages }: Facts): Part {
  const { weight, bestPages, worstPages, floor } = table.discoverability.way;
  const part = { name: "Way to the goal", weight };
  if (goalFound === null || (goalFound.state === "missed" && goalFound.noOverlap && pages.length > 0))
    return { ...part, score: null, text: "" };
  const curve = `100 at ${bestPages} pages or fewer, ${floor} at ${worstPages} or more on a log scale, under ${floor} if not covered`;
  if (goalFound.state === "covered") {
    const found = `the words of the goal were covered after ${count(goalFound.pages, "page")}`;
    return { ...part, score: logCurve(goalFound.pages, bestPages, worstPages, floor), text: `${found} (${curve})` };
  }
  const covered = goalFound.covered.length;
  const terms = covered + goalFound.missing.length;
  const share = terms === 0 || pages.length === 0 ? 0 : covered / terms;
  const found = `${covered} of ${count(terms, "word")} of the goal covered after ${count(goalFound.pages, "page")}`;
  return { ...part, score: floor * share, text: `${found} (${curve}, 0 if no word is)` };
}

/** A dead link that was tested is charged to Docs quality, a probe for a convention to the site checks. */
function missedPart(facts: Facts): Part {
  const { weight, guessFactor, zeroAtShare } = table.discoverability.missed;
  const part = { name: "Missed addresses", weight };
  const charged = new Set(linkChecks(facts).map((check) => sameAddress(check.subject)));
  const tried = facts.way.filter((http) => !isProbe(http));
  if (tried.length === 0) return { ...part, score: null, text: "" };
  const total = (of: Http[]) => of.reduce((sum, http) => sum + (http.provenance === "guessed" ? guessFactor : 1), 0);
  const barren = new Set(facts.results.filter((result) => !result.ok).map((result) => result.id));
  const brought = (http: Http) => !failed(http) && (http.id === null || !barren.has(http.id));
  const missed = tried.filter((http) => !brought(http));
  const misses = missed.filter((http) => !charged.has(sameAddress(http.url)));
  const guesses = misses.filter((http) => http.provenance === "guessed").length;
  const links = missed.length - misses.length;
  const elsewhere = links === 0 ? "" : `; ${count(links, "dead link")} charged to Docs quality instead`;
  const text = `${misses.length} of ${count(tried.length, "request")} brought no page, ${guesses} of those guessed and counted ${guessFactor} times${elsewhere} (100 at none, 0 at ${percent(zeroAtShare)} or more)`;
  return { ...part, score: fallingLine(total(misses) / total(tried), zeroAtShare), text };
}

const linkChecks = ({ checks }: Facts) => checks.filter((check) => check.group === "link" && check.status !== "skip");

/** Links that were followed to a page count as well as those that were tested for their own sake. */
function linksPart(facts: Facts): Part {
  const followed = facts.way.filter((http) => http.provenance === "link" && !failed(http));
  const good = new Set(followed.map((http) => sameAddress(http.url))).size;
  const tested = linkChecks(facts);
  const part = { name: "Links", weight: table.quality.links.weight };
  const total = tested.reduce((sum, check) => sum + check.weight, 0);
  if (total === 0) return { ...part, score: null, text: "" };
  const share = (tested.reduce((sum, check) => sum + check.weight * check.share, 0) + good) / (total + good);
  return {
    ...part,
    score: 100 * share,
    text: `${percent(share)} of the links tested or followed lead somewhere (100 if all, 0 if none)`,
  };
}

function quality(facts: Facts): Measure | null {
  const { pages, samplesParse, samplesLabelled, contract } = table.quality;
  const samples = facts.checks.filter((check) => check.group === "sample");
  const labels = (check: SeenCheck) => check.id === "sample-labelled";
  return dimension("Docs quality", [
    checked(facts, "page", "Pages", pages.weight, "of what was checked is in order, by weight"),
    linksPart(facts),
    checkedPart(
      samples.filter((check) => !labels(check)),
      "Code samples",
      samplesParse.weight,
      "of the samples that could be parsed are in order, by weight",
    ),
    checkedPart(samples.filter(labels), "Sample labels", samplesLabelled.weight, "of the samples name their language"),
    checked(facts, "contract", "API description", contract.weight, "is valid, by weight"),
  ]);
}

function efficiency(facts: Facts): Measure | null {
  const { seconds, money } = table.efficiency;
  if (facts.kind !== "model" && facts.pages.length === 0) return null;
  const answered = facts.way.filter((http) => !failed(http) && !isProbe(http));
  const mean = answered.reduce((sum, http) => sum + http.ms, 0) / 1000 / answered.length;
  const costs = facts.usage.map((each) => each.costUsd);
  const spent =
    costs.length > 0 && costs.every((each) => each !== null) ? costs.reduce((sum, each) => sum + each!, 0) : null;
  const parts: Part[] = [
    facts.kind === "model" ? repeatedCalls(facts) : wastedFetches(facts),
    {
      name: "Waiting",
      weight: seconds.weight,
      score: answered.length === 0 ? null : logCurve(mean, seconds.best, seconds.worst),
      text: `${duration(mean)} for each request answered on the way (100 at ${seconds.best} s or less, 0 at ${seconds.worst} s or more on a log scale)`,
    },
  ];
  if (facts.kind === "model")
    parts.push({
      name: "Money",
      weight: money.weight,
      score: spent === null ? null : logCurve(spent, money.bestUsd, money.worstUsd),
      text: `$${spent?.toFixed(2)} for the session (100 at $${money.bestUsd.toFixed(2)} or less, 0 at $${money.worstUsd.toFixed(2)} or more on a log scale)`,
    });
  return dimension("Efficiency", parts);
}

/** Failed requests are charged elsewhere; asking again is a waste here. */
function wastedFetches(facts: Facts): Part {
  const { weight, zeroAtShare } = table.efficiency.waste;
  const seen = new Set<string>();
  const repeats: Http[] = [];
  const fetches = facts.way.filter((http) => {
    const address = `${http.method} ${sameAddress(http.url)}`;
    const again = seen.has(address);
    seen.add(address);
    if (again) repeats.push(http);
    return !isProbe(http) && (again || !failed(http));
  });
  const useless = uselessPages(facts).length;
  const share = (repeats.length + useless) / fetches.length;
  const text = `${count(repeats.length, "repeated request")} and ${count(useless, "page")} without a section on the goal or a link to one, of ${count(fetches.length, "request")} (100 at none, 0 at ${percent(zeroAtShare)} or more)`;
  return { name: "Waste", weight, score: fetches.length === 0 ? null : fallingLine(share, zeroAtShare), text };
}

/** Pages, by their one spelling, that neither had a section on the goal nor led to one. */
export function uselessPages({ goalTerms, goalFound, pages, pagesWithTerms, way }: Facts): string[] {
  if (goalTerms.length === 0 || (goalFound?.state === "missed" && goalFound.noOverlap)) return [];
  const foundOn = new Map(way.map((http) => [samePage(http.url), http.foundOn]));
  const useful = new Set(pagesWithTerms);
  const given = new Set(way.filter((http) => http.provenance === "given").map((http) => samePage(http.url)));
  const inOrder = [...new Set(pages.map((page) => samePage(page.url)))];
  // A page is read after the page that led to it: backwards, each one is settled before what led to it.
  for (const page of inOrder.toReversed()) {
    const parent = foundOn.get(page);
    if (useful.has(page) && parent) useful.add(samePage(parent));
  }
  return inOrder.filter((page) => !useful.has(page) && !given.has(page));
}

function repeatedCalls({ calls }: Facts): Part {
  const { weight, zeroAtShare } = table.efficiency.waste;
  const different = new Set(calls.map((call) => `${call.tool} ${JSON.stringify(call.input)}`)).size;
  const repeats = calls.length - different;
  const text = `${repeats} of ${count(calls.length, "tool call")} repeated an earlier one word for word (100 at none, 0 at ${percent(zeroAtShare)} or more)`;
  return {
    name: "Waste",
    weight,
    score: calls.length === 0 ? null : fallingLine(repeats / calls.length, zeroAtShare),
    text,
  };
}
