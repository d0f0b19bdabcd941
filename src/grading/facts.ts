import type { Check, Outcome, SessionEvent } from "../agents/agent.ts";
import type { LinkEdit } from "../agents/milestones.ts";
import { pageKey } from "../net/page-key.ts";
import {
  type EventOf,
  type Http,
  hasFailed,
  hasSucceeded,
  isRedirect,
  type MilestoneOf,
  milestonesOf,
  successCheckTool,
} from "./events.ts";
import { type Failure, failuresOf } from "./failures.ts";
import { type GoalAnswer, goalAnswerOf } from "./goal-answer.ts";
import type { EvidenceGrade, Scope } from "./grade.ts";
import { type Hosts, hostsOfSession } from "./hosts.ts";
import { type Judgment, outcomeOf } from "./judge/judge.ts";
import { evidenceGrades } from "./kinds.ts";
import { linkEditsOf } from "./link-edits.ts";
import { clamp } from "./methodology.ts";
import { hasTriedProduct } from "./product-trial.ts";
import { lineOrNull, normalizeUrl, oneLine } from "./text.ts";

/** The latest result of a check, with its event. */
export type CheckResult = Check & {
  key: string;
  seq: number;
  toolId: string;
  /** It is about a page on which the answer to the goal doesn't depend. */
  isOnUnrelatedPage: boolean;
  /** Its result before the agent started; null: not run then. */
  before: Check["status"] | null;
};
/** `chars`: length of its text; null: unknown. */
type PageRead = { seq: number; url: string; title: string | null; chars: number | null };

/** The facts in the events, without duplicates. The rest of grading uses only these. */
export type Facts = {
  kind: "rules" | "model" | null;
  model: string | null;
  goal: string | null;
  startUrls: string[];
  /** Tools that the agent didn't have, and why. */
  missingTools: string[];
  /** ID and version of a coding agent that evald was not tested with; null otherwise. */
  untestedAgent: string | null;
  /** How long the processes of an agent ran and waited for a CPU, in total, if the machine had too little CPU time for it; null otherwise. */
  cpuShortage: MilestoneOf<"cpu_shortage">["detail"] | null;
  /** The cost in USD that the agent itself reports; null if it doesn't. */
  claimedUsd: number | null;
  hosts: Hosts;
  /** The agent tried the product, and it answered. */
  hasTriedProduct: boolean;
  outcome: Outcome;
  scope: Scope;
  evidence: EvidenceGrade | null;
  judgment: Judgment | null;
  endReason: string | null;
  endSeq: number | null;
  /** What the agent said after its last call. */
  answer: string;
  /**
   * The time from when the agent began to work to the last event; null without events. If the milestone for the beginning is missing, it counts from
   * the start of the session.
   */
  elapsedMs: number | null;
  checks: CheckResult[];
  /** The checks that determine whether the goal was met. */
  successChecks: CheckResult[];
  /** Requests of the agent, without redirect hops and without successful tunnels, which programs keep open as long as they like. */
  taskRequests: Http[];
  /** Requests that check something, such as a link. */
  checkRequests: Http[];
  pages: PageRead[];
  /** Pages, by page key, whose text the agent had read at another URL. */
  repeatedPages: Set<string>;
  /** Pages read only by the survey. */
  surveyedPages: PageRead[];
  goalTerms: string[];
  /** Pages, by page key, that contain words of the goal. */
  pagesWithTerms: Set<string>;
  goalAnswer: GoalAnswer | null;
  /** How to correct dead links. */
  linkEdits: LinkEdit[];
  failures: Failure[];
  /** Calls of the agent, without the service's own tests. */
  calls: EventOf<"tool_call">[];
  results: EventOf<"tool_result">[];
  usage: EventOf<"usage">[];
  interruptions: EventOf<"interruption">[];
  limits: EventOf<"limit">[];
};

/** A blocked request says nothing about the target. */
const isRefusal = (event: SessionEvent): boolean =>
  event.type === "http"
    ? event.error?.kind === "refused"
    : event.type === "tool_result" && event.ok === false && event.output?.error === "refused";

/** The events of an agent with a model. Tool results are corrected, and requests for URLs that the agent asked for itself are marked. */
function correctModelEvents(events: SessionEvent[]): SessionEvent[] {
  const urlOfCall = new Map(
    events.flatMap((event) =>
      event.type === "tool_call" && typeof event.input?.url === "string"
        ? [[event.id, normalizeUrl(event.input.url)] as const]
        : [],
    ),
  );
  return events.map((event) => {
    if (event.type === "tool_result" && event.tool !== successCheckTool) return { ...event, ok: hasSucceeded(event) };
    const isAgentsOwn =
      event.type === "http" && event.id !== null && urlOfCall.get(event.id) === normalizeUrl(event.url);
    return isAgentsOwn ? { ...event, isAgentsOwn } : event;
  });
}

/** The events. Requests whose page says that there is no such page are marked. */
function markMissingPages(events: SessionEvent[]): SessionEvent[] {
  const urlsOfCall = new Map(
    events.flatMap((event) =>
      event.type === "tool_result" && event.output?.problem === "missing"
        ? [[event.id, [event.output.url, event.output.answeredBy]] as const]
        : [],
    ),
  );
  if (urlsOfCall.size === 0) return events;
  return events.map((event) =>
    event.type === "http" && urlsOfCall.get(event.id ?? "")?.includes(event.url)
      ? { ...event, isMissing: true }
      : event,
  );
}

function lastMessages(events: SessionEvent[]): EventOf<"message">[] {
  const lastCall = events.findLastIndex(({ type }) => type === "tool_call");
  return events.slice(lastCall + 1).filter((event): event is EventOf<"message"> => event.type === "message");
}

/** The facts in the events of a session; `judgment` is the judge's result. */
export function factsOf(sessionEvents: SessionEvent[], judgment: Judgment | null = null): Facts {
  const ordered = markMissingPages(
    sessionEvents.filter((event) => !isRefusal(event)).toSorted((a, b) => a.seq - b.seq),
  );
  const milestones = ordered.filter(({ type }) => type === "milestone");
  const started = milestonesOf(milestones, "started").at(-1)?.detail;
  const kind = started?.kind ?? null;
  const isModel = kind === "model";
  const events = isModel ? correctModelEvents(ordered) : ordered;
  const eventsOfType = <T extends SessionEvent["type"]>(type: T) =>
    events.filter((e): e is EventOf<T> => e.type === type);
  const end = eventsOfType("end").at(-1);
  const claimedUsd = milestonesOf(milestones, "agent_usage").at(-1)?.detail.costUsd ?? 0;
  const http = eventsOfType("http");
  const checks = lastChecks(eventsOfType("tool_result"));
  const pagesRead = Map.groupBy(milestonesOf(milestones, "page_read"), ({ phase }) => phase ?? "task");
  const pages = (pagesRead.get("task") ?? []).map(toPageRead);
  const beganMs = milestonesOf(milestones, "work_began")[0]?.tMs ?? 0;
  const mcpServers = milestonesOf(milestones, "workspace_prepared").at(-1)?.detail.mcpServers ?? [];
  const goalAnswer = milestonesOf(milestones, "goal_answer").at(-1);
  const taskRequests = http.filter(
    (e) => e.purpose === "task" && !isRedirect(e) && (e.method !== "CONNECT" || hasFailed(e)),
  );
  const hosts = hostsOfSession(ordered, taskRequests);
  const failures = failuresOf(events, hosts, isModel);
  const successChecks = successChecksOf(checks, kind);
  const outcome = verifiedOutcome(end?.outcome ?? "excluded", kind, successChecks, judgment);
  return {
    kind,
    model: started?.model ?? null,
    goal: started?.goal || null,
    startUrls: started?.starts ?? [],
    missingTools: started?.missing ?? [],
    untestedAgent: started?.isTested === false ? oneLine(`${started.agent} ${started.version}`, 100) : null,
    cpuShortage: milestonesOf(milestones, "cpu_shortage").at(-1)?.detail ?? null,
    // Agents that know no price of their model report 0.
    claimedUsd: claimedUsd > 0 ? claimedUsd : null,
    hosts,
    hasTriedProduct: hasTriedProduct({
      mcpServers: mcpServers.map(({ name }) => name),
      calls: eventsOfType("tool_call"),
      results: eventsOfType("tool_result"),
      requests: http,
      hosts,
      failedIds: new Set(failures.map(({ id }) => id)),
    }),
    outcome,
    scope: scopeOf(kind, outcome),
    evidence: evidenceOf(outcome, successChecks, judgment),
    judgment,
    endReason: end === undefined ? "The session was not finished" : lineOrNull(end.reason),
    endSeq: (end ?? events.at(-1))?.seq ?? null,
    answer: [...lastMessages(events).map(({ text }) => text), end?.reason ?? ""].join("\n"),
    elapsedMs: events.length === 0 ? null : Math.max(...events.map((each) => each.tMs)) - beganMs,
    checks,
    successChecks,
    taskRequests,
    checkRequests: http.filter((e) => e.purpose === "check"),
    pages,
    repeatedPages: new Set(milestonesOf(milestones, "page_repeated").map(({ detail }) => pageKey(detail.url))),
    surveyedPages: (pagesRead.get("survey") ?? []).map(toPageRead),
    goalTerms: milestonesOf(milestones, "goal_terms").at(-1)?.detail.terms ?? [],
    pagesWithTerms: new Set(milestonesOf(milestones, "section_matched").map(({ detail }) => pageKey(detail.url))),
    goalAnswer: goalAnswer ? goalAnswerOf(goalAnswer) : null,
    linkEdits: linkEditsOf(events, isModel),
    failures,
    calls: eventsOfType("tool_call").filter(({ tool }) => !isModel || tool !== successCheckTool),
    results: eventsOfType("tool_result").filter(({ tool }) => !isModel || tool !== successCheckTool),
    usage: eventsOfType("usage"),
    interruptions: eventsOfType("interruption"),
    limits: eventsOfType("limit").filter(({ near }) => !near),
  };
}

const toPageRead = ({ seq, detail: { url, title, chars } }: MilestoneOf<"page_read">): PageRead => ({
  seq,
  url,
  chars,
  title: lineOrNull(title, 60),
});

/**
 * Success checks that say something about the goal: checks that failed before the agent started, and invariants. Rule-based agents change nothing, so
 * only invariants count for them. Checks that couldn't run before don't count.
 */
function successChecksOf(checks: CheckResult[], kind: Facts["kind"]): CheckResult[] {
  const successChecks = checks.filter((check) => check.group === "declared");
  return successChecks.filter((check) => check.invariant || (kind === "model" && check.before === "fail"));
}

/** Whether a run failed, so that it says nothing about the target, not even in part. */
export const isUngraded = (outcome: Outcome): boolean =>
  outcome === "no_creds" || outcome === "excluded" || outcome === "scoring_failed";

/**
 * An agent's claim counts only against it: if it says that it failed, that outranks an undecided judge. Proof of
 * success requires success checks, which take precedence, or a judge whose claims the events confirm.
 */
function verifiedOutcome(
  claimed: Outcome,
  kind: Facts["kind"],
  successChecks: CheckResult[],
  judgment: Judgment | null,
): Outcome {
  if (isUngraded(claimed)) return claimed;
  const statuses = successChecks.map(({ status }) => status);
  if (statuses.some((status) => status !== "pass" && status !== "skip")) return "goal_not_met";
  if (statuses.length > 0 && !statuses.includes("skip")) return "succeeded";
  if (kind !== "model") return "not_judged";
  const judgedOutcome = judgment?.verdict ? outcomeOf(judgment.verdict) : null;
  if (judgedOutcome && judgedOutcome !== "not_judged") return judgedOutcome;
  if (claimed === "goal_not_met") return claimed;
  return judgment && !judgment.verdict ? "scoring_failed" : "not_judged";
}

/** A goal was tested if success checks or a judge decided it, or if the agent itself says that it missed it. */
function scopeOf(kind: Facts["kind"], outcome: Outcome): Scope {
  if (outcome === "succeeded" || outcome === "goal_not_met") return "goal";
  return kind === "model" ? "conduct_only" : "docs_only";
}

/** Success checks decide before a judge does. The agent's own word that it missed the goal needs no evidence. */
function evidenceOf(outcome: Outcome, successChecks: CheckResult[], judgment: Judgment | null): EvidenceGrade | null {
  const isTested = outcome === "succeeded" || outcome === "goal_not_met";
  if (isTested && successChecks.some(({ status }) => status !== "skip")) return "verified";
  const parts = judgment?.verdict?.parts ?? [];
  const decisiveParts = outcome === "goal_not_met" ? parts.filter(({ met }) => met === "no") : parts;
  if (decisiveParts.some(({ evidence }) => evidence === null)) return null;
  // The weakest of their grades.
  return evidenceGrades.findLast((grade) => decisiveParts.some(({ evidence }) => evidence === grade)) ?? null;
}

/** Whether a check has the numbers that its result is computed from. A check in a stored session may lack these numbers. */
const isMeasured = ({ share, weight }: Check): boolean => Number.isFinite(share) && Number.isFinite(weight);

function lastChecks(results: EventOf<"tool_result">[]): CheckResult[] {
  const byKey = new Map<string, Omit<CheckResult, "before">>();
  const statusesBefore = new Map<string, Check["status"]>();
  for (const result of results) {
    // A stored list may be cut.
    for (const check of Array.isArray(result.checks) ? result.checks.filter(isMeasured) : []) {
      const key = `${check.group}\n${check.id}\n${check.subject}`;
      if (result.output?.when === "before") {
        statusesBefore.set(key, check.status);
        continue;
      }
      byKey.set(key, {
        ...check,
        share: clamp(check.share, 0, 1),
        weight: Math.max(0, check.weight),
        key,
        seq: result.seq,
        toolId: result.id,
        isOnUnrelatedPage: result.phase === "survey" && check.needed !== true,
      });
    }
  }
  return [...byKey.values()].map((check) => ({ ...check, before: statusesBefore.get(check.key) ?? null }));
}
