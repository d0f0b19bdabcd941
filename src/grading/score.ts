import type { SessionEvent } from "../agents/agent.ts";
import { contextOf } from "./context.ts";
import { type Measurement, measure } from "./dimensions/dimensions.ts";
import type { EventOf } from "./events.ts";
import { exposureOf } from "./exposure.ts";
import { factsOf, isUngraded } from "./facts.ts";
import { findingsOf } from "./findings/findings.ts";
import { frictionsOf } from "./findings/friction.ts";
import { lostPointsOf } from "./findings/gains.ts";
import { recommendationsOf } from "./findings/recommendations.ts";
import { withReportedFriction } from "./findings/reported.ts";
import { wordingsOf } from "./goal-answer.ts";
import type { Grade } from "./grade.ts";
import { partsOf } from "./judge/evidence.ts";
import { readJudgment, splitJudging } from "./judge/judge.ts";
import { toJudgeSummary, withJudgeRatings } from "./judge/judge-ratings.ts";
import { type JudgePrompt, toJudgePrompt } from "./judge/rubric.ts";
import { gradeLetter, gradingMethodologyOf, type Methodology, standardMethodology } from "./methodology.ts";
import { metricsOf } from "./metrics.ts";
import { narrate } from "./narrative.ts";
import { uncheckedSamplesOf } from "./unchecked-samples.ts";

/** Grades a session purely by its events, including the judge's. The same events produce the same grade, bit for bit. */
export function gradeSession(events: SessionEvent[], methodology: Methodology = standardMethodology): Grade {
  const { session, judging } = splitJudging(events);
  const judgment = readJudgment(judging, session);
  const facts = factsOf(withoutHiddenPages(session), judgment);
  const measured = isUngraded(facts.outcome) ? nothingMeasured : measure(facts, methodology);
  const findingsOfRules = findingsOf(facts);
  const findingsWithReports = withReportedFriction(findingsOfRules, facts, session);
  const findings = withJudgeRatings(findingsWithReports, facts);
  // A friction point is a finding with its cost.
  const frictions = frictionsOf(findings, facts, { measured, methodology });
  const lost = lostPointsOf(findings, facts, measured, methodology);
  const recommendations = recommendationsOf(findings, frictions, facts, { measured, lost, methodology });
  const { dimensions, coverage, score } = measured;
  return {
    outcome: facts.outcome,
    score,
    scope: facts.scope,
    evidence: facts.evidence,
    grade: score === null || facts.scope !== "goal" ? null : gradeLetter(score),
    ...narrate(facts, measured, frictions),
    metrics: metricsOf(facts),
    dimensions,
    lost,
    wordings: wordingsOf(facts.goalAnswer),
    notChecked: facts.kind === "rules" ? uncheckedSamplesOf(facts.results) : [],
    coverage,
    methodology: gradingMethodologyOf(methodology, judgment),
    judge: judgment && toJudgeSummary(judgment, facts),
    frictions,
    recommendations,
    exposure: exposureOf(facts, session),
    context: contextOf(session),
  };
}

/** A session without requests for pages that the run itself hides. Neither the docs nor the agent is to blame when these requests fail. */
function withoutHiddenPages(session: SessionEvent[]): SessionEvent[] {
  const isHidden = (event: SessionEvent): event is EventOf<"http"> =>
    event.type === "http" && event.edit?.kind === "hidden";
  const urls = new Set<string | null>(session.filter(isHidden).map(({ url }) => url));
  return session.filter((event) => !isHidden(event) && !(event.type === "error" && urls.has(event.url)));
}

/** The judge's input: the task, the findings of the rules and the events. */
export function judgePromptOf(session: SessionEvent[], { text, goal }: { text: string; goal: string }): JudgePrompt {
  // The judge gets the whole session, so the findings are about all of it, with the hidden pages.
  const facts = factsOf(session);
  const findings = withReportedFriction(findingsOf(facts), facts, session);
  const frictions = frictionsOf(findings, facts);
  return toJudgePrompt(text, partsOf(goal), frictions, session);
}

const nothingMeasured: Measurement = { dimensions: [], exactScores: {}, coverage: 0, score: null };
