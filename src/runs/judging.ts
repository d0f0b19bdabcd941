import { and, desc, eq, sql } from "drizzle-orm";
import type { Outcome, SessionEvent } from "../agents/agent.ts";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import type { Context, OrgId } from "../context.ts";
import { orgs } from "../db/tables/orgs.ts";
import { type runs, sessionEvents } from "../db/tables/runs.ts";
import { AppError } from "../errors.ts";
import { familyOf, splitJudging } from "../grading/judge/judge.ts";
import { rubricHash } from "../grading/judge/rubric.ts";
import { isLeaseHeld, type Lease } from "../jobs/queue.ts";
import { getModel, listModelSecrets } from "../models/models.ts";
import { secretsOf } from "../net/mapping.ts";
import { readSessionInTurns, type SessionId } from "../reports/session-events.ts";
import { createJudgeCall, type JudgeCallParts, type Tell } from "./judge-call.ts";
import { createRedaction } from "./redaction.ts";
import { openSession, storable } from "./session.ts";
import { budgetOfRun } from "./spending.ts";

/** Outcomes of sessions with nothing to judge. */
const unmade: Outcome[] = ["no_creds", "excluded", "scoring_failed"];

type Parts = JudgeCallParts & {};
export type Judging = ReturnType<typeof createJudging>;

/**
 * Lets a model judge stored sessions. Its request, answer and cost are stored as session events, after the agent's own and with
 * the source `runner`, so a session can be graded again from its events alone, and no agent can forge them.
 */
export function createJudging(ctx: Context, { gateway, grader }: Parts) {
  const { db, config, now, log, signals } = ctx;
  const ask = createJudgeCall(ctx, { gateway, grader });
  const isMark = and(
    sql`${sessionEvents.type} = 'milestone' and ${sessionEvents.source} = 'runner'`,
    sql`json_extract(${sessionEvents.data}, '$.name') = 'judging'`,
  );

  /** What must not appear in the judge's events, in its prompt or in the log. */
  const secretsFor = ({ orgId, urlMap }: typeof runs.$inferSelect) => [
    ...listModelSecrets(ctx, orgId as OrgId),
    ...secretsOf(urlMap),
  ];

  /** Access to the judge, or why it is not available. */
  function accessOf(org: OrgId, model: string): ModelAccess | { reason: string } {
    try {
      return getModel(ctx, org, model);
    } catch (error) {
      if (error instanceof AppError) return { reason: error.detail };
      throw error;
    }
  }

  /** The judge of a session: the first available one of another model family than the agent's, else the first available. */
  function judgeOf(org: OrgId, agentModel: string | null) {
    const own = db.select({ judges: orgs.judgeModels }).from(orgs).where(eq(orgs.id, org)).get()?.judges;
    const all = (own ?? config.judgeModels).map((model) => ({ model, access: accessOf(org, model) }));
    const callable = all.filter(({ access }) => !("reason" in access));
    const isOther = ({ model }: { model: string }) => agentModel === null || familyOf(model) !== familyOf(agentModel);
    return callable.find(isOther) ?? callable[0] ?? all[0] ?? null;
  }

  return {
    /** The attempt with a complete session that was about to be judged, so the agent need not run again; null if none. */
    findStarted(runId: string): number | null {
      const row = db
        .select({ attempt: sessionEvents.attempt })
        .from(sessionEvents)
        .where(and(eq(sessionEvents.runId, runId), isMark))
        .orderBy(desc(sessionEvents.attempt))
        .limit(1)
        .get();
      return row?.attempt ?? null;
    },

    /** Judges the session if there is a judge and something to judge. Throws a JobFailure if a retry may help. */
    async judge(run: typeof runs.$inferSelect, id: SessionId, lease: Lease, stop: AbortSignal): Promise<void> {
      const judge = judgeOf(run.orgId as OrgId, run.model);
      if (judge === null) return;
      const events = await readSessionInTurns(db, id);
      const { session } = splitJudging(events);
      const end = session.findLast((event) => event.type === "end");
      if (end === undefined || unmade.includes(end.outcome)) return;
      const { model, access } = judge;
      if (events.some((event) => event.source === "runner" && event.type === "milestone" && event.name === "judged"))
        return;

      const writer = openSession(
        { db, now, secrets: secretsFor(run) },
        id,
        () => isLeaseHeld(ctx, lease),
        () => {},
        events.at(-1),
      );
      const tell: Tell = (event) => writer.append(event, "runner");
      const usd = leftFor(events, id.attempt, lease.attempt, budgetOfRun(ctx, run).totalUsd);
      const task = { ...toTask(run, writer.clean), usd, mustHavePrice: usd !== null };
      const about = { model, rubric: rubricHash, goal: task.goal };
      tell({ type: "milestone", name: "judging", detail: about });
      // Store this before spending money: from here on the agent does not run again.
      await writer.close(stop);
      const spend: Tell = (event) =>
        tell(event.type === "usage" && lease.attempt !== id.attempt ? { ...event, paidBy: lease.attempt } : event);
      try {
        const said =
          task.usd !== null && task.usd <= 0
            ? { reason: "the organization's budget for this run or month is spent" }
            : "reason" in access
              ? access
              : await ask(access, id, task, spend, lease, stop);
        if ("reason" in said)
          log.warn({ run: run.id, model, reason: writer.clean(String(said.reason)) }, "could not judge session");
        signals.runJudged.emit(!("reason" in said));
        tell({ type: "milestone", name: "reason" in said ? "not_judged" : "judged", detail: { ...about, ...said } });
      } finally {
        await writer.close(stop);
      }
    },

    /**
     * Judges a stored session again, by any judge, within a USD limit. `last`: the last event of the agent. Returns the new events, which
     * are not stored with the session. `onSpent` is called with the cost of each call. Throws like `judge`.
     */
    async judgeAgain(
      run: typeof runs.$inferSelect,
      { id, last }: { id: SessionId; last: SessionEvent },
      { model, maxUsd }: { model: string; maxUsd: number },
      lease: Lease,
      stop: AbortSignal,
      onSpent: (costUsd: number | null) => void,
    ): Promise<SessionEvent[]> {
      const { clean } = createRedaction(secretsFor(run));
      const task = { ...toTask(run, (text) => clean(text)), usd: maxUsd, mustHavePrice: false };
      const events: SessionEvent[] = [];
      const tell: Tell = ({ type, ...fields }) => {
        const { data } = storable(fields, clean);
        const place = { seq: last.seq + 1 + events.length, at: now(), tMs: last.tMs, source: "runner" };
        events.push({ ...data, type, ...place } as SessionEvent);
      };
      const about = { model, rubric: rubricHash, goal: task.goal };
      tell({ type: "milestone", name: "judging", detail: about });
      const spend: Tell = (event) => {
        tell(event);
        if (event.type === "usage") onSpent(event.costUsd);
      };
      const access = accessOf(task.org, model);
      const said = "reason" in access ? access : await ask(access, id, task, spend, lease, stop);
      if ("reason" in said)
        log.warn({ run: run.id, model, reason: clean(String(said.reason)) }, "could not judge session again");
      signals.runJudged.emit(!("reason" in said));
      tell({ type: "milestone", name: "reason" in said ? "not_judged" : "judged", detail: { ...about, ...said } });
      return events;
    },
  };
}

/** The task as the judge reads it. It is cleaned like the stored events, so that the stored goal has the parts that were judged. */
const toTask = ({ orgId, task }: typeof runs.$inferSelect, clean: (text: string) => string) => ({
  org: orgId as OrgId,
  text: clean(task.text),
  goal: clean((task.endGoal ?? task.text).slice(0, 8000)),
});

/** Whether a session can be judged: an agent with a model did something and ended. */
export function isJudgeable(session: SessionEvent[]): boolean {
  const end = session.findLast((event) => event.type === "end");
  const isModel = session.some(
    (event) => event.type === "milestone" && event.name === "started" && event.detail.kind === "model",
  );
  return isModel && end !== undefined && !unmade.includes(end.outcome);
}

/** Remaining budget of an attempt, by its events; null: no limit. */
function leftFor(events: SessionEvent[], own: number, attempt: number, totalUsd: number | null): number | null {
  if (totalUsd === null) return null;
  const paid = events.map((event) =>
    event.type === "usage" && (event.paidBy ?? own) === attempt ? (event.costUsd ?? 0) : 0,
  );
  return totalUsd - paid.reduce((sum, usd) => sum + usd, 0);
}
