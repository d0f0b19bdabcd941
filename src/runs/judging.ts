import { and, desc, eq, sql } from "drizzle-orm";
import type { AgentEvent, Outcome, SessionEvent } from "../agents/agent.ts";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import type { Context, OrgId } from "../context.ts";
import { orgs } from "../db/tables/orgs.ts";
import { sessionEvents } from "../db/tables/runs.ts";
import { AppError } from "../errors.ts";
import { splitJudging, vendorOf } from "../grading/judge/judge.ts";
import { rubricHash } from "../grading/judge/rubric.ts";
import { isLeaseHeld, type Lease } from "../jobs/queue.ts";
import { getModel, listModelSecrets } from "../models/models.ts";
import { secretsOf } from "../net/mapping.ts";
import { createRedaction } from "../redaction/redaction.ts";
import { readSessionInBatches, type SessionId, toSessionEvent } from "../reports/session-events.ts";
import { callJudge, type JudgeCall } from "./judge-call.ts";
import type { RunRow } from "./run-row.ts";
import { openSession, toStoredFields } from "./session.ts";
import { budgetOfRun } from "./spending.ts";

// A model judges stored sessions. Its request, answer and cost are stored as session events after the agent's own events. So a session can be graded
// again from its events alone. These events have the source `runner`, so no agent can forge them.

const maxGoalChars = 8000;
/** Outcomes of sessions with nothing to judge. */
const unjudgeable: Outcome[] = ["no_creds", "excluded", "scoring_failed"];

const whereStartOfJudging = and(
  sql`${sessionEvents.type} = 'milestone' and ${sessionEvents.source} = 'runner'`,
  sql`json_extract(${sessionEvents.data}, '$.name') = 'judging'`,
);

/** The attempt with a complete session that was about to be judged; null if there is none. The agent need not run again. */
export function findStartedJudging({ db }: Context, runId: string): number | null {
  const row = db
    .select({ attempt: sessionEvents.attempt })
    .from(sessionEvents)
    .where(and(eq(sessionEvents.runId, runId), whereStartOfJudging))
    .orderBy(desc(sessionEvents.attempt))
    .limit(1)
    .get();
  return row?.attempt ?? null;
}

/** Judges the session if there is a judge and something to judge. Throws a JobFailure if a retry may help. */
export async function judgeSession(
  ctx: Context,
  run: RunRow,
  session: SessionId,
  lease: Lease,
  stop: AbortSignal,
): Promise<void> {
  const judge = findJudge(ctx, run.orgId as OrgId, run.model);
  if (judge === null) return;
  const events = await readSessionInBatches(ctx, session);
  const end = splitJudging(events).session.findLast((event) => event.type === "end");
  if (end === undefined || unjudgeable.includes(end.outcome)) return;
  if (events.some((event) => event.source === "runner" && event.type === "milestone" && event.name === "judged"))
    return;

  const mayWrite = () => isLeaseHeld(ctx, lease);
  const writer = openSession(ctx, session, { secrets: secretsFor(ctx, run), mayWrite, lastEvent: events.at(-1) });
  const { totalUsd } = budgetOfRun(ctx, run.orgId, run.task.limits, run.reservedUsd);
  const usd = totalUsd === null ? null : totalUsd - paidUsd(events, session.attempt, lease.attempt);
  const task = { ...toTask(run, writer.clean), usd, mustHavePrice: usd !== null };
  const store = (event: AgentEvent) => writer.append(event, "runner");
  store({ type: "milestone", name: "judging", detail: toJudgingDetail(judge.model, task.goal) });
  // This is stored before money is spent: from here on, the agent does not run again.
  await writer.close(stop);
  // The session may belong to an earlier attempt, which didn't pay for this.
  const onEvent = (event: AgentEvent) =>
    store(event.type === "usage" && lease.attempt !== session.attempt ? { ...event, paidBy: lease.attempt } : event);
  try {
    store(await requestJudgment(ctx, judge, { session, task, onEvent, lease, stop }, writer.clean));
  } finally {
    await writer.close(stop);
  }
}

export type Rejudging = {
  run: RunRow;
  session: SessionId;
  /** The last event of the agent. */
  lastAgentEvent: SessionEvent;
  /** The judge. It need not be one of the organization's judges. */
  model: string;
  maxUsd: number;
  /** Called with the usage of each call. */
  onModelCall: (usage: Extract<AgentEvent, { type: "usage" }>) => void;
  lease: Lease;
  stop: AbortSignal;
};

/** Judges a stored session again. Returns the new events without storing them in the session. Throws like `judgeSession`. */
export async function rejudgeSession(ctx: Context, rejudging: Rejudging): Promise<SessionEvent[]> {
  const { run, session, lastAgentEvent: last, model, maxUsd, onModelCall, lease, stop } = rejudging;
  const { clean } = createRedaction(secretsFor(ctx, run));
  const task = { ...toTask(run, (text) => clean(text)), usd: maxUsd, mustHavePrice: false };
  const events: SessionEvent[] = [];
  const add = ({ type, ...fields }: AgentEvent) => {
    const { data } = toStoredFields(fields, clean);
    const seq = last.seq + 1 + events.length;
    events.push(toSessionEvent({ seq, at: ctx.now(), tMs: last.tMs, type, source: "runner", data }));
  };
  add({ type: "milestone", name: "judging", detail: toJudgingDetail(model, task.goal) });
  const onEvent = (event: AgentEvent) => {
    add(event);
    if (event.type === "usage") onModelCall(event);
  };
  const judge = { model, access: accessOf(ctx, task.org, model) };
  add(await requestJudgment(ctx, judge, { session, task, onEvent, lease, stop }, clean));
  return events;
}

type Judge = { model: string; access: ModelAccess | { reason: string } };

/** The milestone with the judge's answer, or with the reason for none. Throws a JobFailure if a retry may help. */
async function requestJudgment(
  ctx: Context,
  { model, access }: Judge,
  call: Omit<JudgeCall, "access">,
  clean: (text: string) => string,
): Promise<AgentEvent> {
  const { session, task } = call;
  const isBudgetSpent = task.usd !== null && task.usd <= 0;
  const objection = isBudgetSpent ? { reason: "the organization's budget for this run or month is spent" } : null;
  const result = objection ?? ("reason" in access ? access : await callJudge(ctx, { ...call, access }));
  const isJudged = "answer" in result;
  if (!isJudged) ctx.log.warn({ run: session.runId, model, reason: clean(result.reason) }, "could not judge session");
  ctx.signals.runJudged.emit(isJudged);
  const assignment = toJudgingDetail(model, task.goal);
  return isJudged
    ? { type: "milestone", name: "judged", detail: { ...assignment, answer: result.answer } }
    : { type: "milestone", name: "not_judged", detail: { ...assignment, reason: String(result.reason) } };
}

const toJudgingDetail = (model: string, goal: string) => ({ model, rubric: rubricHash, goal });

/** Secrets that must not appear in the judge's events, in its prompt or in the log. */
const secretsFor = (ctx: Context, { orgId, urlMap }: RunRow) => [
  ...listModelSecrets(ctx, orgId as OrgId),
  ...secretsOf(urlMap),
];

/** Access to the judge, or why it is not available. */
function accessOf(ctx: Context, org: OrgId, model: string): ModelAccess | { reason: string } {
  try {
    return getModel(ctx, org, model);
  } catch (error) {
    if (error instanceof AppError) return { reason: error.detail };
    throw error;
  }
}

/** The models that may judge the sessions of an organization, in order. */
export const judgeModelsOf = ({ db, config }: Context, org: OrgId): string[] =>
  db.select({ judges: orgs.judgeModels }).from(orgs).where(eq(orgs.id, org)).get()?.judges ?? config.judgeModels;

/**
 * The first available judge whose model family differs from the agent's. If there is none, the first available judge. If no judge is available, the
 * first one with the reason. null: there is no judge.
 */
function findJudge(ctx: Context, org: OrgId, agentModel: string | null): Judge | null {
  const judges = judgeModelsOf(ctx, org).map((model) => ({ model, access: accessOf(ctx, org, model) }));
  const callable = judges.filter(({ access }) => !("reason" in access));
  const isOtherFamily = ({ model }: Judge) => agentModel === null || vendorOf(model) !== vendorOf(agentModel);
  return callable.find(isOtherFamily) ?? callable[0] ?? judges[0] ?? null;
}

/** The task as the judge reads it. It is cleaned like the stored events, so that the parts of the stored goal are the parts that were judged. */
const toTask = ({ orgId, promptId, task }: RunRow, clean: (text: string) => string) => ({
  org: orgId as OrgId,
  promptId,
  text: clean(task.text),
  goal: clean((task.endGoal ?? task.text).slice(0, maxGoalChars)),
});

/** Whether a session can be judged: an agent with a model did something and ended. */
export function isJudgeable(session: SessionEvent[]): boolean {
  const end = session.findLast((event) => event.type === "end");
  const isModel = session.some(
    (event) => event.type === "milestone" && event.name === "started" && event.detail.kind === "model",
  );
  return isModel && end !== undefined && !unjudgeable.includes(end.outcome);
}

/** What an attempt has paid so far for the session of `sessionAttempt`, in USD. That may be an earlier attempt. */
function paidUsd(events: SessionEvent[], sessionAttempt: number, attempt: number): number {
  const usages = events.filter((event) => event.type === "usage");
  return usages
    .filter(({ paidBy = sessionAttempt }) => paidBy === attempt)
    .reduce((sum, { costUsd, estimate }) => sum + (costUsd ?? estimate?.costUsd ?? 0), 0);
}
