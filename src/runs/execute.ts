import { and, desc, eq, sql } from "drizzle-orm";
import {
  type Agent,
  type AgentEvent,
  AgentFailure,
  type EventSource,
  objectionTo,
  type Task,
} from "../agents/agent.ts";
import type { Host } from "../agents/llm/host.ts";
import type { AllowRule } from "../config.ts";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { runs, sessionEvents } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { AppError } from "../errors.ts";
import { listMethodologies } from "../grading/methodology.ts";
import { gradeSession } from "../grading/score.ts";
import type { Lease, Queue } from "../jobs/queue.ts";
import { JobFailure, type JobHandler } from "../jobs/runner.ts";
import type { Models } from "../models/models.ts";
import { decideLimits } from "../prompts/limits.ts";
import { keepArtefact } from "../reports/artefacts.ts";
import type { Reports } from "../reports/reports.ts";
import { createBounds } from "./bounds.ts";
import type { Judging } from "./judging.ts";
import { openSession, readSession, type SessionId } from "./session.ts";
import type { Money } from "./spending.ts";

type Parts = {
  agents: Record<string, Agent>;
  queue: Queue;
  reports: Reports;
  models: Pick<Models, "getModel" | "secretsOf">;
  /** Opens what an agent with a model works with. */
  host: Pick<Host, "equip">;
  judging: Judging;
  money: Money;
  /** Private places that runs may reach, asked at each run: the service learns its own port only when it listens. */
  allow: () => AllowRule[];
  userAgent: string;
};

const cost = sql`json_extract(${sessionEvents.data}, '$.costUsd')`;
const paidBy = sql`coalesce(json_extract(${sessionEvents.data}, '$.paidBy'), ${sessionEvents.attempt})`;

/** The job behind a run: send the agent, store what it does, grade what was stored, and show run and report together. */
export function createRunJob(
  { db, config, now, log }: Deps,
  { agents, queue, reports, models, host, judging, money, allow, userAgent }: Parts,
): JobHandler {
  const [methodology] = listMethodologies(config.methodology);
  const getRow = (id: string) => {
    const row = db.select().from(runs).where(eq(runs.id, id)).get();
    if (!row) throw new Error(`job without its run ${id}`);
    return row;
  };

  const gradeOf = (session: SessionId) => {
    try {
      return gradeSession(readSession(db, session), methodology);
    } catch (error) {
      if (diskFault(error) !== null) throw error;
      log.error({ run: session.runId, err: error }, "a session could not be graded");
      throw new JobFailure(`infrastructure: the session could not be graded: ${String(error)}`, "never");
    }
  };

  /** What to write of a run whose agent is done: its session is judged, where a model judges, and graded. */
  async function finish(run: typeof runs.$inferSelect, lease: Lease, attempt: number, stop: AbortSignal) {
    const session = { orgId: run.orgId, runId: run.id, attempt };
    const { version, kind } = agentOf(run).describe();
    if (kind === "model") await judging.judge(run, session, lease, stop);
    const grade = gradeOf(session);
    log.info({ run: run.id, outcome: grade.outcome, score: grade.score }, "run graded");
    const done = { status: "completed", agentVersion: version, model: modelOf(session) ?? run.model } as const;
    return (tx: Tx) => {
      tx.update(runs)
        .set({ ...done, completedAt: now(), reservedUsd: null })
        .where(eq(runs.id, run.id))
        .run();
      reports.insertReport(tx, run, attempt, grade);
    };
  }

  /** The agent of a run. Throws a JobFailure where it cannot work. */
  function agentOf({ agent: id }: typeof runs.$inferSelect): Agent {
    const agent = agents[id];
    const objection = agent ? objectionTo(agent) : null;
    if (agent && objection === null) return agent;
    const why = `infrastructure: the agent ${id} is not available here${objection === null ? "" : `: ${objection}`}`;
    throw new JobFailure(why, "never");
  }

  const lastUsage = db
    .select({ model: sql<string>`json_extract(${sessionEvents.data}, '$.model')` })
    .from(sessionEvents)
    .where(
      and(
        eq(sessionEvents.runId, sql.placeholder("runId")),
        eq(sessionEvents.attempt, sql.placeholder("attempt")),
        sql`${sessionEvents.type} = 'usage' and ${sessionEvents.source} = 'gateway'`,
      ),
    )
    .orderBy(desc(sessionEvents.seq))
    .limit(1)
    .prepare();

  /** The model that answered the agent last, by its own name; null if none did. */
  function modelOf(session: SessionId): string | null {
    return lastUsage.get({ runId: session.runId, attempt: session.attempt })?.model ?? null;
  }

  /** A sum over no rows is 0, over one unknown price null. */
  const spentUsd = db
    .select({
      usd: sql<number | null>`case when count(*) = count(${cost}) then coalesce(sum(${cost}), 0) end`,
    })
    .from(sessionEvents)
    .where(
      and(
        eq(sessionEvents.runId, sql.placeholder("runId")),
        eq(paidBy, sql.placeholder("attempt")),
        sql`${sessionEvents.type} = 'usage'`,
      ),
    )
    .prepare();

  /** Throws a JobFailure where the model cannot be called. */
  async function equip(
    run: typeof runs.$inferSelect,
    task: Task,
    mustHavePrice: boolean,
    onEvent: (event: AgentEvent, source: EventSource) => void,
    end: (failure: JobFailure) => void,
  ) {
    try {
      const model = models.getModel(run.orgId as OrgId, run.model ?? "");
      const onFailure = (why: AgentFailure) => end(toJobFailure(why));
      return await host.equip({ task, model, mustHavePrice, allow: allow(), onEvent, onFailure });
    } catch (error) {
      throw error instanceof AppError ? new JobFailure(`credentials: ${error.detail}`, "never") : error;
    }
  }

  return {
    begun(tx, { subject, spent }) {
      tx.update(runs)
        .set({ status: "running", startedAt: sql`coalesce(${runs.startedAt}, ${now()})`, attempt: spent + 1 })
        .where(eq(runs.id, subject))
        .run();
      money.reserve(tx, getRow(subject));
    },

    async run(lease: Lease, stop: AbortSignal) {
      const run = getRow(lease.subject);
      const agent = agentOf(run);
      const begun = judging.findBegun(run.id);
      if (begun !== null) return finish(run, lease, begun, stop);
      if (run.task.startUrls.length === 0)
        throw new JobFailure(
          "infrastructure: no address to start from; give the prompt a provider with docs, additionalUrls or an address in its text, or the run a urlMap",
          "never",
        );
      const session = { orgId: run.orgId, runId: run.id, attempt: lease.attempt };
      const limits = decideLimits(run.task.limits, config);
      const grant = money.grantOf(run);
      if (run.reservedUsd === 0)
        throw new JobFailure(
          `budget: ${money.objection(run.orgId) ?? "the month's money is kept for other runs"}`,
          "never",
        );
      const ended = new AbortController();
      const end = (failure: JobFailure) => ended.abort(failure);
      const signal = AbortSignal.any([stop, ended.signal]);
      let isStored = true;
      const writer = openSession(
        { db, now },
        session,
        () => queue.holds(lease),
        (error) => {
          isStored = false;
          end(new JobFailure(`infrastructure: the session could not be stored: ${error}`, "fault", 0, error));
        },
      );
      const task: Task = {
        text: run.task.text,
        endGoal: run.task.endGoal,
        startUrls: run.task.startUrls,
        productUrl: run.task.productUrl ?? null,
        urlMap: run.urlMap,
        declaredChecks: run.task.declaredChecks,
        limits: { ...limits, model: { ...limits.model, costUsd: grant.agentUsd } },
      };
      const { kind } = agent.describe();
      let warn = (_limit: string) => {};
      const bounds = createBounds(kind, task.limits, {
        tell: (event) => writer.append(event, "runner"),
        warn: (limit) => warn(limit),
        fail: (failure) => end(toJobFailure(failure)),
      });
      const hear = (event: AgentEvent, source: EventSource) => {
        const kept = keepArtefact(db, session, event, () => queue.holds(lease));
        writer.append(kept, source);
        bounds.count(event, source);
      };
      try {
        writer.hide(models.secretsOf(run.orgId as OrgId));
        const equipment = kind === "model" ? await equip(run, task, grant.isCapped, hear, end) : null;
        warn = equipment?.warn ?? warn;
        try {
          writer.hide(equipment?.secrets ?? []);
          const means = equipment?.means ?? null;
          const until = AbortSignal.any([signal, bounds.signal]);
          const events = agent.run(task, { signal: until, now, begunAt: now(), allow: allow(), userAgent, means });
          for await (const event of untilAborted(events, until)) hear(event, "agent");
        } catch (error) {
          if (signal.aborted || !bounds.hit) throw error;
        } finally {
          // What closes takes its time, and that is not the agent's.
          bounds.stop();
          const closed = equipment?.close();
          // A run that was called off keeps no place; what its last call used is counted when it is known.
          if (!stop.aborted || queue.holds(lease)) await closed;
        }
        for (const event of bounds.ending()) writer.append(event, "runner");
        await writer.close(stop);
      } catch (error) {
        if (stop.aborted) {
          // What it spent counts where the job is still held, to be given back; nothing is stored where it is not.
          await writer.close(stop).catch(() => {});
          throw error;
        }
        // What was done until then is kept, unless it is that which failed.
        if (isStored) await writer.close(stop);
        const { message, retry, retryAfterMs, cause } = toJobFailure(
          ended.signal.aborted ? ended.signal.reason : error,
        );
        // What a provider or a process said of its failure may hold a key.
        throw new JobFailure(writer.clean(message), retry, retryAfterMs, cause);
      } finally {
        bounds.stop();
      }
      return finish(run, lease, lease.attempt, stop);
    },

    returned(tx, { subject }) {
      tx.update(runs).set({ status: "pending", reservedUsd: null }).where(eq(runs.id, subject)).run();
    },

    failed(tx, { subject }, message) {
      tx.update(runs)
        .set({ status: "failed", failureReason: message, completedAt: now(), reservedUsd: null })
        .where(eq(runs.id, subject))
        .run();
    },

    costOf: ({ subject, attempt }) => spentUsd.get({ runId: subject, attempt })?.usd ?? null,
  };
}

/** A fault around the agent spends no attempt; a crash of the agent itself does. */
function toJobFailure(error: unknown): JobFailure {
  if (error instanceof JobFailure) return error;
  if (error instanceof AgentFailure) {
    const { retryable, retryAfterMs } = error.options;
    const retry = error.failureCause === "agent_crashed" ? "attempt" : retryable ? "fault" : "never";
    return new JobFailure(error.message, retry, retryAfterMs);
  }
  return new JobFailure(`agent_crashed: ${error instanceof Error ? error.message : String(error)}`, "attempt");
}

/** An agent that heeds the signal is gone before this; one that does not is left behind. */
const endMs = 5_000;

/** The events of an agent. An abort ends them, at once or when the agent is gone, whether it heeds the signal or not. */
async function* untilAborted(events: AsyncIterable<AgentEvent>, signal: AbortSignal): AsyncGenerator<AgentEvent> {
  const iterator = events[Symbol.asyncIterator]();
  const aborted = Promise.withResolvers<never>();
  aborted.promise.catch(() => {});
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await Promise.race([iterator.next(), aborted.promise]);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", abort);
    const gone = iterator.return?.()?.catch(() => {});
    if (signal.aborted) await Promise.race([gone, Bun.sleep(endMs)]);
  }
}
