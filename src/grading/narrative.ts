import type { Measurement } from "./dimensions/dimensions.ts";
import type { Facts } from "./facts.ts";
import { pageName } from "./findings/finding.ts";
import { restFingerprint } from "./findings/friction.ts";
import type { Friction } from "./grade.ts";
import { gradeLetter, standardMethodology } from "./methodology.ts";
import { count, list, oneLine, percent, sentence } from "./text.ts";

/** Sentences about the results. Every statement is counted from events; none is guessed. */
export function narrate(facts: Facts, measured: Measurement, frictions: Friction[]) {
  const nullNotice = nullNoticeOf(facts, measured);
  const judgeTexts = facts.judgment?.verdict?.texts;
  const withJudgeText = (ruleText: string, judgeText: string | undefined) =>
    judgeText ? `${ruleText} The judge: ${sentence(judgeText)}` : ruleText;
  return {
    nullNotice,
    keyFinding: oneLine(nullNotice ?? (judgeTexts?.keyFinding || keyFindingOf(facts, frictions)), 300),
    verdict: oneLine(nullNotice ?? withJudgeText(verdictOf(facts, measured), judgeTexts?.verdict), 900),
    summary: {
      whatWorked: oneLine(withJudgeText(describeSuccesses(facts, measured), judgeTexts?.summary.whatWorked), 2000),
      whatDidnt: oneLine(withJudgeText(describeFailures(frictions, facts), judgeTexts?.summary.whatDidnt), 2000),
    },
  };
}

function nullNoticeOf({ outcome, endReason, judgment }: Facts, { score }: Measurement): string | null {
  if (outcome === "scoring_failed" && judgment?.reason)
    return `Not measured: ${judgment.model} could not judge the session: ${sentence(oneLine(judgment.reason, 300))}`;
  const reason = endReason === null ? "" : ` ${sentence(oneLine(endReason, 200))}`;
  if (outcome === "no_creds") return `Not measured: required credentials were missing.${reason}`;
  if (outcome === "excluded") return `Not measured: the evaluation failed.${reason}`;
  if (outcome === "scoring_failed") return `Not measured: the session could not be graded.${reason}`;
  return score === null ? "Not measured: nothing could be measured." : null;
}

function keyFindingOf(facts: Facts, frictions: Friction[]): string {
  const listed = frictions.filter(({ fingerprint }) => fingerprint !== restFingerprint);
  const [first] = listed;
  if (first?.severity === "critical") return sentence(first.title);
  const { goalAnswer } = facts;
  if (goalAnswer?.state === "likely") return sentence(describeAnswer(facts)!);
  if (goalAnswer?.state === "unclear") {
    const goalFriction = listed.find((friction) => friction.events.includes(goalAnswer.seq));
    if (goalFriction) return sentence(goalFriction.title);
  }
  return first ? sentence(first.title) : "No friction found.";
}

function describeAnswer(facts: Facts): string | null {
  const answer = facts.goalAnswer;
  if (answer?.state !== "likely") return null;
  const places = [...answer.sections, ...answer.alternatives].map(({ url, heading }) => {
    const page = url === null ? null : pageName(facts, url);
    if (heading === null) return page;
    return page === null || heading === page ? `“${heading}”` : `“${heading}” on ${page}`;
  });
  const placeList = list(places.filter((place) => place !== null)) || "in the docs";
  const choice = answer.alternatives.length > 0 ? ` in one of ${places.length} places` : "";
  return `Likely answer${choice}: ${placeList}${describeDistance(answer.clicks)}`;
}

function describeDistance(clicks: number | null): string {
  if (clicks === null) return "";
  return clicks === 0 ? ", on the start page" : `, ${count(clicks, "click")} from the start page`;
}

function verdictOf(facts: Facts, { score, coverage, dimensions }: Measurement): string {
  const scores = dimensions.map((each) => `${each.name} ${each.score}`);
  const basis = coverage < 1 ? `, based on ${percent(coverage)} of the scoring weight` : "";
  const letter = facts.scope === "goal" ? ` (${gradeLetter(score!)})` : "";
  const scoreText = `${score} of 100${letter}${basis}: ${list(scores, 6)}.`;
  const goal = describeGoal(facts);
  if (facts.kind === "model") return `${scoreText} ${goal}.`;
  if (facts.outcome === "not_judged") return `${scoreText} ${goal}: a rule-based explorer read the docs.`;
  return `${scoreText} ${goal}; a rule-based explorer read the docs, so understanding was not measured.`;
}

function describeGoal({ outcome, kind, successChecks }: Facts): string {
  if (outcome === "goal_not_met")
    return `The goal was not reached, so the score is at most ${standardMethodology.notMetCap}`;
  if (outcome !== "succeeded") return "Goal not tested";
  return kind !== "model" || successChecks.some((check) => check.status === "pass")
    ? "The goal counts as reached because the success checks passed"
    : "The goal was reached: every part is proven";
}

function describeSuccesses(facts: Facts, { dimensions }: Measurement): string {
  const runChecks = facts.checks.filter((check) => check.status !== "skip");
  const inGroup = (group: string) => runChecks.filter((check) => check.group === group);
  const siteChecks = [...inGroup("discovery"), ...inGroup("page")];
  const passed = siteChecks.filter((check) => check.status === "pass").length;
  const weights = (items: { weight: number }[]) => items.reduce((sum, each) => sum + each.weight, 0);
  const links = inGroup("link").filter((check) => check.id === "link-resolves");
  const workingLinks = weights(links.filter((check) => check.status === "pass"));
  const declared = inGroup("declared").filter((check) => check.status === "pass").length;
  const highDimensions = dimensions.filter((each) => each.score >= 90).map((each) => each.name);
  return (
    [
      describeAnswer(facts),
      facts.pages.length > 0 && `${count(facts.pages.length, "page")} read on the path to the goal`,
      passed > 0 && `${passed} of ${count(siteChecks.length, "static check")} of the site passed`,
      workingLinks > 0 && `${percent(workingLinks / weights(links))} of the tested links work`,
      declared > 0 && `${declared} of ${count(inGroup("declared").length, "success check")} passed`,
      highDimensions.length > 0 && `90 points or more: ${list(highDimensions)}`,
    ]
      .filter((each) => typeof each === "string")
      .map(sentence)
      .join(" ") || "None of the measured parts worked."
  );
}

/** Friction points that a summary names. */
const maxListed = 3;
const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;

function describeFailures(frictions: Friction[], { missingTools, untestedAgent, cpuShortage }: Facts): string {
  const missingNote =
    missingTools.length === 0
      ? ""
      : ` Not available to the agent: ${list(missingTools.map((each) => oneLine(each, 200)))}.`;
  const untestedNote =
    untestedAgent === null ? "" : ` evald was not tested with ${untestedAgent}, so events may be missing.`;
  const shortageNote =
    cpuShortage === null
      ? ""
      : ` The machine was short of CPU time: the agent's processes waited ${seconds(cpuShortage.waitedMs)} for a processor and ran ${seconds(cpuShortage.ranMs)}, so it was slower than usual.`;
  const notes = missingNote + untestedNote + shortageNote;
  if (frictions.length === 0) return `No friction found.${notes}`;
  const bySeverity = [...Map.groupBy(frictions, (each) => each.severity)].map(
    ([severity, group]) => `${group.length} ${severity}`,
  );
  const worst = frictions.slice(0, maxListed).map((each) => sentence(each.title));
  const intro = frictions.length > maxListed ? "Most severe: " : "";
  return `${count(frictions.length, "friction point")} (${bySeverity.join(", ")}). ${intro}${worst.join(" ")}${notes}`;
}
