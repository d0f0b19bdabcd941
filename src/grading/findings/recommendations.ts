import type { Measurement } from "../dimensions/dimensions.ts";
import type { Facts } from "../facts.ts";
import type { Friction, LostPoints, Recommendation } from "../grade.ts";
import { type Methodology, severityRank } from "../methodology.ts";
import { list, oneLine, sentence } from "../text.ts";
import { type Finding, joinCauses, noCause, textOrder, worstSeverity } from "./finding.ts";
import { gainOf, rangeOf, sharesOf } from "./gains.ts";

/**
 * One recommended fix for each change that would remove listed friction points: the most severe first, then the highest gain. A fix for inferred
 * problems counts one step less, and comes after fixes for problems that were seen. Site conventions come after everything that got in an agent's
 * way.
 */
export function recommendationsOf(
  findings: Finding[],
  frictions: Friction[],
  facts: Facts,
  { measured, lost, methodology }: { measured: Measurement; lost: LostPoints | null; methodology: Methodology },
): Recommendation[] {
  const listedFingerprints = new Set(frictions.map((friction) => friction.fingerprint));
  const groups = [...Map.groupBy(findings, (finding) => finding.remedy.key).values()]
    // The agent's own mistakes need no change in the docs.
    .filter((group) => group.some(({ fingerprint, owner }) => listedFingerprints.has(fingerprint) && owner !== "agent"))
    .map((group) => {
      const cause = group.map((finding) => finding.cause).reduce(joinCauses);
      const fix = {
        title: oneLine(titleOfGroup(group), 160),
        action: oneLine(actionOfGroup(group), 1200),
        url: group.find((finding) => finding.url !== null)?.url ?? null,
        gain: rangeOf(cause, facts, measured, methodology),
        evidence: evidenceOf(group),
        frictions: group.map(({ fingerprint }) => fingerprint).filter((each) => listedFingerprints.has(each)),
        expectedGain: gainOf(cause, facts, measured, methodology),
        isConvention: group.every(({ remedy }) => remedy.kind === "conventions"),
      };
      const severity = severityRank[worstSeverity(group.map((finding) => finding.severity))];
      return { group, fix, severity, isInferred: group.every((finding) => finding.isInferred) };
    })
    .sort(
      (a, b) =>
        Number(a.fix.isConvention) - Number(b.fix.isConvention) ||
        a.severity + Number(a.isInferred) - (b.severity + Number(b.isInferred)) ||
        Number(a.isInferred) - Number(b.isInferred) ||
        (b.fix.expectedGain ?? 0) - (a.fix.expectedGain ?? 0) ||
        textOrder(a.fix.title, b.fix.title),
    );
  // Only what the docs or the product could have prevented is shared among the fixes.
  const causes = groups.map(({ group }) =>
    group.filter(({ owner }) => owner === "fixes").reduce((all, { cause }) => joinCauses(all, cause), noCause),
  );
  const shares = lost === null ? [] : sharesOf(causes, lost.fixes, facts, measured, methodology);
  return groups.map(({ fix }, i) => ({ priority: i + 1, ...fix, lostPoints: shares[i] ?? null }));
}

/** The first evidence that says what to write instead, or else the first of all. */
function evidenceOf(group: Finding[]): Finding["evidence"] {
  const evidences = group.flatMap(({ evidence }) => evidence ?? []);
  return evidences.find(({ expected }) => expected !== null) ?? evidences[0] ?? null;
}

function titleOfGroup(group: Finding[]): string {
  const { title, kind } = group[0]!.remedy;
  return group.length > 1 && kind !== "labels" ? `${title} (${group.length})` : title;
}

/** What to change, from the fixes and places of findings with one remedy. */
function actionOfGroup(group: Finding[]): string {
  const first = group[0]!;
  const isOne = group.length === 1;
  const allPlaces = group.map(({ place }) => place);
  const places = list(allPlaces, 8);
  const fix = [...new Set(group.flatMap((finding) => finding.fix ?? []))].slice(0, 2).map(sentence).join(" ");
  const remedy = sentence(first.remedy.title);
  switch (first.remedy.kind) {
    case "links": {
      // Where the new target is known, there is nothing to choose.
      const isKnown = group.every(({ evidence }) => evidence?.expected);
      const choice = isKnown ? "" : ` ${fix || "Update each to the page's current URL, or remove it."}`;
      return `${isOne ? "Broken link" : `${group.length} broken links`}: ${places}.${choice}`;
    }
    case "labels":
      return `${places}. ${fix || "Add the language after each opening fence."}`;
    case "samples": {
      const problem = isOne ? first.description : `On ${first.url}: ${places}.`;
      return `${problem} ${fix || "Correct the samples so that they can be copied and run."}`;
    }
    case "check":
    case "conventions":
      return `${fix || `${remedy} ${first.description}`} ${affectedPages(group)}`;
    case "other": {
      const isPlaceInTitle = first.title.startsWith(first.place.replace(/…$/, ""));
      if (!isOne || (fix && !isPlaceInTitle)) return `${fix || remedy} Affected: ${places}.`;
      return fix || `${remedy} ${first.description}`;
    }
  }
}

function affectedPages(group: Finding[]): string {
  const urls = [...new Set(group.flatMap((finding) => finding.url ?? []))];
  return urls.length < 2 ? "" : `Affected: ${list(urls, 4)}.`;
}
