import type { CheckGroup } from "../../agents/agent.ts";
import { siteDigestOf } from "../../agents/site/site-name.ts";
import type { DimensionName } from "../../config/weights.ts";
import { pageKey } from "../../net/page-key.ts";
import { type Http, hasFailed, isProbe } from "../events.ts";
import type { CheckResult, Facts } from "../facts.ts";
import type { Curve, Dimension, DimensionPart, PartName } from "../grade.ts";
import { readingChecks } from "../kinds.ts";
import { clamp, gradeLetter, type Methodology, round1, standardMethodology } from "../methodology.ts";
import { normalizeUrl } from "../text.ts";
import { autonomyParts, costPart, recoveryParts, responseTimePart } from "./conduct.ts";
import { linear, logarithmic, scoreOn, steepAtFirst } from "./curve.ts";
import { type Part, scoreByCurve, sharePart, toDimensionPart, withoutEvidence } from "./part.ts";
import { uselessPages } from "./useless-pages.ts";

/** A dimension before its score is rounded. */
type UnroundedDimension = { name: DimensionName; exactScore: number; parts: DimensionPart[]; unmeasured: PartName[] };
/** The result of all dimensions. `exactScores`: by dimension, not rounded. */
export type Measurement = {
  dimensions: Dimension[];
  exactScores: Record<string, number>;
  coverage: number;
  score: number | null;
};

/** Every dimension with evidence, and their weighted mean. */
export function measure(facts: Facts, { weights: weightByName, notMetCap, metFloor }: Methodology): Measurement {
  const measures = [
    measureGoal(facts),
    measureDiscoverability(facts),
    measureQuality(facts),
    facts.kind === "model" ? dimension("Error recovery", recoveryParts(facts)) : null,
    measureEfficiency(facts),
    facts.kind === "model" ? dimension("Autonomy", autonomyParts(facts)) : null,
  ].filter((each) => each !== null);
  const dimensions = measures.map(({ name, exactScore, parts, unmeasured }): Dimension => {
    const score = round1(exactScore);
    return { name, weight: weightByName[name] / 100, score, grade: gradeLetter(score), parts, unmeasured };
  });
  const weights = measures.reduce((sum, { name }) => sum + weightByName[name], 0);
  const points = measures.reduce((sum, { name, exactScore }) => sum + round1(exactScore) * weightByName[name], 0);
  const mean = weights === 0 ? null : round1(points / weights);
  return {
    dimensions,
    exactScores: Object.fromEntries(measures.map(({ name, exactScore }) => [name, exactScore])),
    coverage: weights / 100,
    score: mean === null ? null : round1(withinGoalBounds(mean, facts, notMetCap, metFloor)),
  };
}

/**
 * A session that missed its goal never scores above one that reached it. Nor does a session that wasn't judged, if its model never tried the product.
 */
function withinGoalBounds(
  mean: number,
  { outcome, kind, hasTriedProduct }: Facts,
  notMetCap: number,
  metFloor: number,
): number {
  if (outcome === "goal_not_met") return Math.min(mean, notMetCap);
  if (kind !== "model") return mean;
  if (outcome === "succeeded") return Math.max(mean, metFloor);
  return hasTriedProduct ? mean : Math.min(mean, notMetCap);
}

/** A dimension from its measured parts; null without any. */
function dimension(name: DimensionName, all: Part[]): UnroundedDimension | null {
  const measuredParts = all.filter((part) => part.exactScore !== null && part.weight > 0);
  if (measuredParts.length === 0) return null;
  const weights = measuredParts.reduce((sum, part) => sum + part.weight, 0);
  const exactScore = measuredParts.reduce((sum, part) => sum + part.weight * part.exactScore!, 0) / weights;
  return {
    name,
    exactScore: clamp(exactScore, 0, 100),
    parts: measuredParts.map((part) => toDimensionPart(part, weights)),
    unmeasured: all.filter((part) => part.exactScore === null).map((part) => part.name),
  };
}

/** The weighted share of checks that passed; skipped ones don't count. Null if there are none. */
function passedShare(checks: CheckResult[]): { share: number; totalWeight: number; count: number } | null {
  const counted = checks.filter((check) => check.status !== "skip" && check.weight > 0);
  const totalWeight = counted.reduce((sum, check) => sum + check.weight, 0);
  if (totalWeight === 0) return null;
  const share = counted.reduce((sum, check) => sum + check.weight * check.share, 0) / totalWeight;
  return { share, totalWeight, count: counted.length };
}

function checksPart(checks: CheckResult[], name: PartName, weight: number, curve?: Curve): Part {
  const passed = passedShare(checks);
  return passed
    ? sharePart(name, weight, passed.share, { checks: passed.count }, curve)
    : withoutEvidence(name, weight);
}

function groupPart(facts: Facts, group: CheckGroup, name: PartName, weight: number): Part {
  const checks = facts.checks.filter((check) => check.group === group);
  return checksPart(checks, name, weight);
}

/** Success checks take precedence over a judge. If a part of the goal couldn't be judged, the goal isn't measured. */
function measureGoal(facts: Facts): UnroundedDimension | null {
  const successChecks = checksPart(facts.successChecks, "Success checks", 1);
  if (successChecks.exactScore !== null) return dimension("Goal achievement", [successChecks]);
  if (facts.outcome === "not_judged" || facts.kind !== "model") return null;
  const parts = facts.judgment?.verdict?.parts ?? [];
  // Only the agent itself says that it missed the goal.
  const isMissedWithoutVerdict = facts.outcome === "goal_not_met" && !parts.some(({ met }) => met === "no");
  if (isMissedWithoutVerdict)
    return dimension("Goal achievement", [sharePart("Goal parts", 1, 0, { parts: Math.max(1, parts.length) })]);
  if (parts.length === 0) return null;
  const countParts = (verdict: string) => parts.filter(({ met }) => met === verdict).length;
  const counts = {
    parts: parts.length,
    met: countParts("yes"),
    missed: countParts("no"),
    unclear: countParts("unclear"),
  };
  return dimension("Goal achievement", [sharePart("Goal parts", 1, counts.met / counts.parts, counts)]);
}

function measureDiscoverability(facts: Facts): UnroundedDimension | null {
  return dimension("Docs discoverability", [
    pathPart(facts),
    failedRequestsPart(facts),
    groupPart(facts, "discovery", "Site checks", standardMethodology.discoverability.checks.weight),
  ]);
}

/** The number of clicks from the start page to the answer, and how well its section matches. */
function pathPart({ goalAnswer, pages, taskRequests }: Facts): Part {
  const { weight, bestClicks, worstClicks, floor } = standardMethodology.discoverability.path;
  // If docs that could be read are in another script, matching words says nothing.
  const hasReadMost = pages.length > 0 && taskRequests.filter(hasFailed).length <= pages.length;
  if (goalAnswer === null || (goalAnswer.otherScript !== null && hasReadMost))
    return withoutEvidence("Path to the goal", weight);
  const { state, fit, clicks } = goalAnswer;
  const distance = clicks === null ? floor : scoreOn(logarithmic(bestClicks, worstClicks, floor), clicks);
  const exactScore = pages.length === 0 && state === "unclear" ? 0 : distance * fit;
  const counts = { likely: Number(state === "likely"), linked: Number(clicks !== null), clicks: clicks ?? 0 };
  return { name: "Path to the goal", weight, value: fit, unit: "share", curve: null, counts, exactScore };
}

/** Requests for pages, and whether each returned one. Convention probes and requests to the product are left out. */
function pageRequests({ taskRequests, hosts, failures }: Facts): { http: Http; hasPage: boolean }[] {
  const failedIds = new Set(failures.filter(({ target }) => target === "docs").map(({ id }) => id));
  return taskRequests
    .filter((http) => !isProbe(http) && !hosts.isProduct(http))
    .map((http) => ({ http, hasPage: !hasFailed(http) && (http.id === null || !failedIds.has(http.id)) }));
}

/**
 * The share of page requests that failed: among all of them, or among those up to the nearest page, whichever is worse. Pages that an unsure agent
 * reads after the nearest page must not improve the share.
 */
function failedRequestsPart(facts: Facts): Part {
  const { weight, guessFactor, zeroAtShare } = standardMethodology.discoverability.missed;
  const requests = pageRequests(facts);
  if (requests.length === 0) return withoutEvidence("Failed page requests", weight);
  const isGuess = ({ http }: (typeof requests)[number]) => http.provenance === "guessed";
  const weightedCount = (group: typeof requests) =>
    group.reduce((sum, each) => sum + (isGuess(each) ? guessFactor : 1), 0);
  const withoutPage = (group: typeof requests) => group.filter(({ hasPage }) => !hasPage);
  const missedShare = (group: typeof requests) =>
    facts.kind === "model"
      ? withoutPage(group).length / Math.max(facts.calls.length, group.length)
      : weightedCount(withoutPage(group)) / weightedCount(group);
  const nearest = facts.kind === "model" ? undefined : facts.goalAnswer?.nearest[0];
  const nearestIndex = requests.findIndex(
    ({ http }) => nearest && normalizeUrl(http.url) === normalizeUrl(nearest.url),
  );
  const untilNearest = nearestIndex < 0 ? requests : requests.slice(0, nearestIndex + 1);
  const countedRequests = missedShare(untilNearest) > missedShare(requests) ? untilNearest : requests;
  const failedRequests = withoutPage(countedRequests);
  const counts = {
    requests: countedRequests.length,
    failed: failedRequests.length,
    guessed: failedRequests.filter(isGuess).length,
  };
  return scoreByCurve("Failed page requests", weight, {
    value: missedShare(countedRequests),
    unit: "share",
    curve: linear(0, zeroAtShare),
    counts,
  });
}

/** The share of links that lead to a page. A followed link counts as much as a tested one; broken ones that `pagesPart` counts are left out. */
function linksPart(facts: Facts): Part {
  const followed = facts.taskRequests.filter((http) => http.provenance === "link" && !hasFailed(http));
  const followedPages = new Set(followed.map((http) => normalizeUrl(http.url))).size;
  const broken = pagesTried(facts).filter(({ share }) => share < 1);
  const countedElsewhere = new Set(broken.map(({ address }) => address));
  const testedLinks = passedShare(
    facts.checks.filter(({ group, subject }) => group === "link" && !countedElsewhere.has(normalizeUrl(subject))),
  );
  const { weight } = standardMethodology.quality.links;
  if (testedLinks === null) return withoutEvidence("Links", weight);
  const share =
    (testedLinks.share * testedLinks.totalWeight + followedPages) / (testedLinks.totalWeight + followedPages);
  return sharePart("Links", weight, share, { tested: testedLinks.totalWeight, followed: followedPages }, steepAtFirst);
}

/** Pages that a rule-based agent tried to read; `share` is 1 if it could. Pages that the answer depends on have a larger weight. */
function pagesTried(facts: Facts): { address: string; weight: number; share: number }[] {
  const pages = new Map<string, { address: string; weight: number; share: number }>();
  const add = (url: string, weight: number, share: number) => {
    const address = normalizeUrl(url);
    pages.set(address, { address, weight, share });
  };
  for (const { http, hasPage } of facts.kind === "rules" ? pageRequests(facts) : [])
    if (http.provenance !== "guessed") add(http.url, 1, Number(hasPage));
  for (const { group, id, subject, share, needed } of facts.checks)
    if (group === "page" && readingChecks.has(id))
      add(subject, needed ? standardMethodology.quality.pages.neededFactor : 1, share);
  return [...pages.values()];
}

/**
 * The weight of what passed in full, divided by its sum with the weight that was lost, 0 to 1; 1 without items. An item that passed in part adds
 * only to what was lost, so that one more problem never raises the share, as it could in a mean.
 */
function shareWithoutLosses(items: { weight: number; share: number }[]): number {
  const passed = items.reduce((sum, { weight, share }) => sum + (share === 1 ? weight : 0), 0);
  const lost = items.reduce((sum, { weight, share }) => sum + weight * (1 - share), 0);
  return lost === 0 ? 1 : passed / (passed + lost);
}

/** The share of pages that could be read, times the share of page checks that passed. */
function pagesPart(facts: Facts): Part {
  const { weight } = standardMethodology.quality.pages;
  const checks = facts.checks.filter(
    ({ group, id, status }) => group === "page" && status !== "skip" && !readingChecks.has(id),
  );
  const pages = pagesTried(facts);
  if (checks.length === 0 && pages.length === 0) return withoutEvidence("Pages", weight);
  const unreadable = pages.filter(({ share }) => share === 0).length;
  const counts = { checks: checks.length, pages: pages.length, unreadable };
  const value = shareWithoutLosses(checks);
  const exactScore = scoreOn(steepAtFirst, shareWithoutLosses(pages)) * value;
  return { name: "Pages", weight, value, unit: "share", curve: null, counts, exactScore };
}

function measureQuality(facts: Facts): UnroundedDimension | null {
  const { samplesParse, samplesLabelled, contract } = standardMethodology.quality;
  const samples = facts.checks.filter((check) => check.group === "sample");
  const labelChecks = samples.filter(({ id }) => id === "sample-labelled");
  const parseChecks = samples.filter(({ id }) => id !== "sample-labelled");
  return dimension("Docs quality", [
    pagesPart(facts),
    linksPart(facts),
    checksPart(parseChecks, "Code samples", samplesParse.weight, steepAtFirst),
    checksPart(labelChecks, "Sample labels", samplesLabelled.weight),
    groupPart(facts, "contract", "API description", contract.weight),
  ]);
}

function measureEfficiency(facts: Facts): UnroundedDimension | null {
  const isModel = facts.kind === "model";
  if (!isModel && facts.pages.length === 0) return null;
  // A folder says nothing about the server that will publish it.
  const isOfFolder = ({ mappedUrl }: Http) => mappedUrl !== null && siteDigestOf(mappedUrl) !== null;
  const responseTimes = facts.taskRequests
    .filter((http) => !hasFailed(http) && !isProbe(http) && !isOfFolder(http))
    .map(({ ms }) => ms);
  return dimension("Efficiency", [
    isModel ? wastedCalls(facts) : wastedFetches(facts),
    responseTimePart(responseTimes),
    ...(isModel ? [costPart(facts)] : []),
  ]);
}

/**
 * The share of page requests that didn't help, because they failed, repeated an earlier request or were useless. If the nearest section lacks a share
 * of the goal, the same share of the other requests counts as well.
 */
function wastedFetches(facts: Facts): Part {
  const { weight, zeroAtShare } = standardMethodology.efficiency.waste;
  const { goalAnswer } = facts;
  const addresses = new Set<string>();
  const fetches = pageRequests(facts).map(({ http, hasPage }) => {
    const address = `${http.method} ${pageKey(http.url)}`;
    const isRepeat = addresses.has(address) || (hasPage && facts.repeatedPages.has(pageKey(http.url)));
    addresses.add(address);
    return { hasPage, isRepeat };
  });
  if (fetches.length === 0) return withoutEvidence("Wasted requests", weight);
  const counts = {
    repeats: fetches.filter(({ isRepeat }) => isRepeat).length,
    failed: fetches.filter(({ hasPage }) => !hasPage).length,
    useless: uselessPages(facts).length,
    requests: fetches.length,
  };
  const wasted = (counts.repeats + counts.failed + counts.useless) / counts.requests;
  const goalFit = goalAnswer === null || goalAnswer.otherScript !== null ? 1 : goalAnswer.fit;
  const value = 1 - Math.max(0, 1 - wasted) * goalFit;
  return scoreByCurve("Wasted requests", weight, { value, unit: "share", curve: linear(0, zeroAtShare), counts });
}

function wastedCalls(facts: Facts): Part {
  const { weight, zeroAtShare } = standardMethodology.efficiency.waste;
  const { calls, failures } = facts;
  if (calls.length === 0) return withoutEvidence("Wasted calls", weight);
  // Failed calls count under recovery, or under the docs.
  const failedIds = new Set(failures.map(({ id }) => id));
  const successes = calls
    .filter(({ id }) => !failedIds.has(id))
    .map((call) => `${call.tool} ${JSON.stringify(call.input)}`);
  const repeats = successes.length - new Set(successes).size;
  const counts = { repeats, useless: uselessPages(facts).length, calls: calls.length };
  const value = (counts.repeats + counts.useless) / counts.calls;
  return scoreByCurve("Wasted calls", weight, { value, unit: "share", curve: linear(0, zeroAtShare), counts });
}
