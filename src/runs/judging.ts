import { and, desc, eq, sql } from "drizzle-orm";
import type { AgentEvent, AgentFailure, Outcome, SessionEvent } from "../agents/agent.ts";
import type { GatewayOpener } from "../agents/gateway/opener.ts";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import { orgs, type runs, sessionEvents } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { AppError } from "../errors.ts";
import { familyOf, objectIn, readAnswer, splitJudging } from "../grading/judge.ts";
import { Answer, rubricHash } from "../grading/rubric.ts";
import { judgePromptOf } from "../grading/score.ts";
import type { Lease, Queue } from "../jobs/queue.ts";
import { JobFailure } from "../jobs/runner.ts";
import type { createModels } from "../models/models.ts";
import { readRetryAfter } from "../net/retryafter.ts";
import { createRedaction } from "./redaction.ts";
import { openSession, readSession, type SessionId, storable } from "./session.ts";
import type { Money } from "./spending.ts";

/** One call, and one more with what was wrong. */
const limits = { calls: 2, tokens: 400_000 };
const maxOutputTokens = 16_000;
/** Faults around a run after which it is not judged any more; a job ends at five. */
const maxFaults = 3;
/** How long an answer that nobody waits for any more is read on, to know its cost. */
const drainMs = 3_000;

/** Ends of a session in which nothing was tried that could be judged. */
const unmade: Outcome[] = ["no_creds", "excluded", "scoring_failed"];

type Parts = {
  models: ReturnType<typeof createModels>;
  queue: Queue;
  money: Pick<Money, "grantOf">;
  gateway: GatewayOpener;
};
/** `usd`: what may be spent on it; null: no bound. */
type Asked = { org: OrgId; text: string; goal: string; usd: number | null; mustHavePrice: boolean };
type Tell = (event: AgentEvent) => void;

export type Judging = ReturnType<typeof createJudging>;

/**
 * Has a model judge stored sessions. What it is asked, says and costs is stored as events of the session, after the agent's own and from
 * the source `runner`: a session is then graded from its events alone, however often, and no agent can say such things.
 */
export function createJudging({ db, config, now, log }: Deps, { models, queue, money, gateway }: Parts) {
  const isMark = and(
    sql`${sessionEvents.type} = 'milestone' and ${sessionEvents.source} = 'runner'`,
    sql`json_extract(${sessionEvents.data}, '$.name') = 'judging'`,
  );

  /** How to call the judge, or why it cannot be called. */
  function accessOf(org: OrgId, model: string): ModelAccess | { reason: string } {
    try {
      return models.getModel(org, model);
    } catch (error) {
      if (error instanceof AppError) return { reason: error.detail };
      throw error;
    }
  }

  /** The judge of a session: the first that can be called and is of another family than the agent's model, else the first that can be called. */
  function judgeOf(org: OrgId, agentModel: string | null) {
    const own = db.select({ judges: orgs.judgeModels }).from(orgs).where(eq(orgs.id, org)).get()?.judges;
    const all = (own ?? config.judgeModels).map((model) => ({ model, access: accessOf(org, model) }));
    const callable = all.filter(({ access }) => !("reason" in access));
    const isOther = ({ model }: { model: string }) => agentModel === null || familyOf(model) !== familyOf(agentModel);
    return callable.find(isOther) ?? callable[0] ?? all[0] ?? null;
  }

  /** Why a call brought no answer that can be used; throws what is worth trying again. */
  function toReason(error: unknown, [trouble]: AgentFailure[], lease: Lease, clean: (text: string) => string): string {
    if (trouble && !trouble.options.retryable) return clean(trouble.detail);
    const { status, retryAfterMs, ...said } = readFailure(error, now());
    const message = clean(said.message);
    const isFault = status === null || status < 400 || status === 408 || status === 429 || status >= 500;
    if (!isFault || lease.faults >= maxFaults) return message;
    throw new JobFailure(`infrastructure: the judge could not be asked: ${message}`, "fault", retryAfterMs);
  }

  /** The judge's answer, or why there is none. */
  async function ask(
    access: ModelAccess,
    session: SessionEvent[],
    task: Asked,
    tell: Tell,
    lease: Lease,
    stop: AbortSignal,
  ) {
    const [{ generateText, jsonSchema, NoObjectGeneratedError, NoOutputGeneratedError, Output }, { toModel }] =
      await Promise.all([import("ai"), import("../agents/llm/providers.ts")]);
    // It would write to stdout what a provider cannot do.
    Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });
    const trouble: AgentFailure[] = [];
    const way = (await gateway.open()).openSession({
      silenceMs: config.idleTimeoutMs,
      drainMs,
      model: access,
      limits: { ...limits, costUsd: task.usd },
      mustHavePrice: task.mustHavePrice,
      onEvent: (event) => {
        if (event.type === "usage" || event.type === "error") tell(event);
      },
      onFailure: (failure) => trouble.push(failure),
    });
    const { instructions, prompt } = judgePromptOf(session, task);
    const redaction = createRedaction();
    redaction.hide(models.secretsOf(task.org));
    const messages: { role: "user" | "assistant"; content: string }[] = [
      { role: "user", content: redaction.clean(prompt) },
    ];
    let usable: Answer | null = null;
    try {
      for (let left = limits.calls; left > 0; left--) {
        let text: string;
        let output: unknown;
        try {
          const answered = await generateText({
            model: toModel({ ...access, ...way }),
            output: Output.object({ schema: jsonSchema<unknown>(plainSchema) }),
            instructions,
            messages,
            maxOutputTokens,
            maxRetries: 0,
            abortSignal: AbortSignal.any([stop, AbortSignal.timeout(config.runTimeoutMs)]),
          });
          output = answered.output;
          text = JSON.stringify(output);
        } catch (error) {
          stop.throwIfAborted();
          const isUnread = NoObjectGeneratedError.isInstance(error) || NoOutputGeneratedError.isInstance(error);
          if (!isUnread)
            return usable
              ? { answer: usable }
              : { reason: toReason(error, trouble, lease, (words) => redaction.clean(words)) };
          text = NoObjectGeneratedError.isInstance(error) ? (error.text ?? "") : "";
          output = objectIn(text);
        }
        const { answer, objection } = readAnswer(output, task.goal, session);
        usable = answer ?? usable;
        const isLast = left === 1 || objection === null;
        if (isLast) return usable ? { answer: usable } : { reason: `its answer could not be used: ${objection}` };
        const complaint = `This cannot be used: ${objection}. Answer again: one whole JSON object of the schema.`;
        messages.push({ role: "assistant", content: text.slice(0, 20_000) || "(nothing)" });
        messages.push({ role: "user", content: complaint });
      }
      return { reason: "it was not asked" };
    } finally {
      const closed = way.close();
      // A job that was called off keeps nobody waiting; what its last call used is counted when it is known.
      if (!stop.aborted || queue.holds(lease)) await closed;
    }
  }

  return {
    /** The attempt of a run whose session was whole and about to be judged; null if there is none. It need not be made again. */
    findBegun(runId: string): number | null {
      const row = db
        .select({ attempt: sessionEvents.attempt })
        .from(sessionEvents)
        .where(and(eq(sessionEvents.runId, runId), isMark))
        .orderBy(desc(sessionEvents.attempt))
        .limit(1)
        .get();
      return row?.attempt ?? null;
    },

    /** Has the session judged, if there is a judge and something to judge. Throws a JobFailure where it is worth trying again. */
    async judge(run: typeof runs.$inferSelect, id: SessionId, lease: Lease, stop: AbortSignal): Promise<void> {
      const events = readSession(db, id);
      const { session } = splitJudging(events);
      const end = session.findLast((event) => event.type === "end");
      if (end === undefined || unmade.includes(end.outcome)) return;
      const judge = judgeOf(run.orgId as OrgId, run.model);
      if (judge === null) return;
      const { model, access } = judge;
      if (events.some((event) => event.source === "runner" && event.type === "milestone" && event.name === "judged"))
        return;

      const writer = openSession(
        { db, now },
        id,
        () => queue.holds(lease),
        () => {},
        events.at(-1),
      );
      const tell: Tell = (event) => writer.append(event, "runner");
      const usd = leftFor(events, id.attempt, lease.attempt, money.grantOf(run).totalUsd);
      const task = { ...toTask(run), usd, mustHavePrice: usd !== null };
      const about = { model, rubric: rubricHash, goal: task.goal };
      tell({ type: "milestone", name: "judging", detail: about });
      // On the disk before money is spent: from here on the agent is not sent again.
      await writer.close(stop);
      const spend: Tell = (event) =>
        tell(event.type === "usage" && lease.attempt !== id.attempt ? { ...event, paidBy: lease.attempt } : event);
      try {
        const said =
          task.usd !== null && task.usd <= 0
            ? { reason: "its organisation's money for this run and month is spent" }
            : "reason" in access
              ? access
              : await ask(access, session, task, spend, lease, stop);
        if ("reason" in said) log.warn({ run: run.id, model, reason: said.reason }, "a session was not judged");
        tell({ type: "milestone", name: "reason" in said ? "not_judged" : "judged", detail: { ...about, ...said } });
      } finally {
        await writer.close(stop);
      }
    },

    /**
     * Has a stored session judged once more, by another judge or by the same one, within an amount of USD. Answers with the events of that, which
     * are not stored with the session; `onSpent` hears what each call cost as soon as that is known. Throws as `judge`.
     */
    async judgeAgain(
      run: typeof runs.$inferSelect,
      session: SessionEvent[],
      { model, maxUsd }: { model: string; maxUsd: number },
      lease: Lease,
      stop: AbortSignal,
      onSpent: (costUsd: number | null) => void,
    ): Promise<SessionEvent[]> {
      const last = session.at(-1);
      if (!last) return [];
      const task = { ...toTask(run), usd: maxUsd, mustHavePrice: false };
      const { hide, clean } = createRedaction();
      hide(models.secretsOf(task.org));
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
      const said = "reason" in access ? access : await ask(access, session, task, spend, lease, stop);
      if ("reason" in said) log.warn({ run: run.id, model, reason: said.reason }, "a session was not judged again");
      tell({ type: "milestone", name: "reason" in said ? "not_judged" : "judged", detail: { ...about, ...said } });
      return events;
    },
  };
}

const toTask = ({ orgId, task }: typeof runs.$inferSelect) => ({
  org: orgId as OrgId,
  text: task.text,
  goal: (task.endGoal ?? task.text).slice(0, 8000),
});

/** Whether a judge has anything to say of a session: an agent with a model tried something, and came to an end. */
export function isJudgeable(session: SessionEvent[]): boolean {
  const end = session.findLast((event) => event.type === "end");
  const isModel = session.some(
    (event) => event.type === "milestone" && event.name === "started" && event.detail.kind === "model",
  );
  return isModel && end !== undefined && !unmade.includes(end.outcome);
}

/** The schema as plain JSON: what TypeBox keeps beside it is nothing for a provider. */
const plainSchema = JSON.parse(JSON.stringify(Answer));

/** What a run may still spend in an attempt, by its events; null: no bound. */
function leftFor(events: SessionEvent[], own: number, attempt: number, totalUsd: number | null): number | null {
  if (totalUsd === null) return null;
  const paid = events.map((event) =>
    event.type === "usage" && (event.paidBy ?? own) === attempt ? (event.costUsd ?? 0) : 0,
  );
  return totalUsd - paid.reduce((sum, usd) => sum + usd, 0);
}

/** What a failed call says of itself. `status` null: no answer came. */
function readFailure(error: unknown, nowMs: number): { status: number | null; message: string; retryAfterMs: number } {
  const { statusCode, responseHeaders } = (error ?? {}) as {
    statusCode?: number;
    responseHeaders?: Record<string, string>;
  };
  return {
    status: statusCode ?? null,
    message: error instanceof Error ? error.message : String(error),
    retryAfterMs: readRetryAfter(responseHeaders?.["retry-after"] ?? null, nowMs) ?? 0,
  };
}
