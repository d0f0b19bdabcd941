import type { Outcome, SessionEvent } from "../agents/agent.ts";
import { type Measured, measure } from "./dimensions.ts";
import { partsOf } from "./evidence.ts";
import { factsOf } from "./facts.ts";
import { findingsOf } from "./findings.ts";
import { frictionsOf } from "./friction.ts";
import { readJudgement, splitJudging } from "./judge.ts";
import { type Judged, judgedBy, withJudged } from "./judged.ts";
import type { frictionCategories, phases, severities } from "./kinds.ts";
import { letterOf, type Methodology, stampOf, table } from "./methodology.ts";
import { metricsOf } from "./metrics.ts";
import { narrate } from "./narrative.ts";
import { type Grounds, type Reach, reachOf } from "./reach.ts";
import { recommendationsOf } from "./recommendations.ts";
import { withReported } from "./reported.ts";
import { type JudgePrompt, toJudgePrompt } from "./rubric.ts";

/** One thing that stood in an agent's way, with the events that prove it. */
export type Friction = {
  /** 16 hex; the same thing in another run has the same one. */
  fingerprint: string;
  severity: (typeof severities)[number];
  phase: (typeof phases)[number];
  category: (typeof frictionCategories)[number];
  title: string;
  description: string;
  /** The target's own words, untrusted; at most 300 characters. */
  quote: string | null;
  url: string | null;
  /** Sequence numbers of events; never empty. */
  events: number[];
  lostSeconds: number | null;
  lostUsd: number | null;
  /** Points of the score that it cost, one decimal; null where it cost no measured number. */
  lostPoints: number | null;
  /** Where it stands; a session that never came there says nothing about it. */
  grounds: Grounds;
};

export type Recommendation = {
  /** 1..n without gaps, 1 first. */
  priority: number;
  title: string;
  /** What to change, and where. */
  action: string;
  url: string | null;
  /** Fingerprints; never empty. */
  frictions: string[];
  /** Points of the score that its frictions cost, one decimal; null where they cost no measured number. */
  expectedGain: number | null;
};

/** The fields of report.metrics in the specification, to the letter. */
export type Metrics = {
  time: string;
  timeDetail: string;
  timeSeconds: number | null;
  errors: number;
  errorsDetail: string;
  toolCalls: number;
  toolCallsDetail: string;
  cost: string;
  costDetail: string;
  costUsd: number | null;
  interruptions: number;
};

/** `weight` is a text like "20%"; `desc` states what was measured, its value, and what would be 100 and what 0. */
export type Dimension = { name: string; weight: string; score: number; grade: string; desc: string };

/** Everything that a session's events say about the target; the same events give the same object. */
export type Grade = {
  outcome: Outcome;
  score: number | null;
  grade: string | null;
  /** Why there is no score; null where there is one. */
  nullNotice: string | null;
  keyFinding: string;
  verdict: string;
  summary: { whatWorked: string; whatDidnt: string };
  metrics: Metrics;
  dimensions: Dimension[];
  /** 0 to 1: the share of the weights that was measured. */
  coverage: number;
  methodology: { id: string; hash: string; judge: string | null };
  /** What a model said of the session, apart from what the run itself did and cost; null: none was asked. */
  judge: Judged | null;
  frictions: Friction[];
  recommendations: Recommendation[];
  reach: Reach;
};

/** Grades a session by its events alone, those of its judging among them. The same events give the same grade, to the bit. */
export function gradeSession(events: SessionEvent[], methodology: Methodology = table): Grade {
  const { session, judging } = splitJudging(events);
  const judgement = readJudgement(judging, session);
  const facts = factsOf(session, judgement);
  const unmade = facts.outcome === "no_creds" || facts.outcome === "excluded" || facts.outcome === "scoring_failed";
  const measured = unmade ? nothingMeasured : measure(facts, methodology);
  const findings = withJudged(withReported(findingsOf(facts), facts, session), facts);
  const frictions = frictionsOf(findings, facts, { measured, methodology });
  const recommendations = recommendationsOf(findings, frictions, facts, measured, methodology);
  const { dimensions, coverage, score } = measured;
  return {
    outcome: facts.outcome,
    score,
    grade: score === null ? null : letterOf(score),
    ...narrate(facts, measured, frictions, recommendations),
    metrics: metricsOf(facts),
    dimensions,
    coverage,
    methodology: stampOf(methodology, judgement),
    judge: judgement && judgedBy(judgement, facts),
    frictions,
    recommendations,
    reach: reachOf(facts, session),
  };
}

/** What a judge is asked of a session: what was to be done, what rules found, and the events. */
export function judgePromptOf(session: SessionEvent[], { text, goal }: { text: string; goal: string }): JudgePrompt {
  const facts = factsOf(session);
  const findings = frictionsOf(withReported(findingsOf(facts), facts, session), facts);
  return toJudgePrompt({ task: text, parts: partsOf(goal), findings, events: session });
}

/** An evaluation that was not made says nothing about the target, not even in part. */
const nothingMeasured: Measured = { dimensions: [], exact: {}, coverage: 0, score: null };
