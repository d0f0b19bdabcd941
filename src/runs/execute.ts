import { eq, sql } from "drizzle-orm";
import { type Agent, type AgentEvent, AgentFailure } from "../agents/agent.ts";
import type { AllowRule } from "../config.ts";
import { runs } from "../db/tables.ts";
import type { Deps } from "../deps.ts";
import { gradeSession } from "../grading/score.ts";
import type { Lease, Queue } from "../jobs/queue.ts";
import { JobFailure, type JobHandler } from "../jobs/runner.ts";
import { createGuard } from "../net/guarded.ts";
import type { Reports } from "../reports/reports.ts";
import { openSession, readSession, type SessionId } from "./session.ts";

type Parts = {
  agents: Record<string, Agent>;
  queue: Queue;
  reports: Reports;
  /** Private places that runs may reach, asked at each run: the service learns its own port only when it listens. */
  allow: () => AllowRule[];
  userAgent: string;
};

/** The job behind a run: send the agent, store what it does, grade what was stored, and show run and report together. */
export function createRunJob(
  { db, config, now, log }: Deps,
  { agents, queue, reports, allow, userAgent }: Parts,
): JobHandler {
  const getRow = (id: string) => {
    const row = db.select().from(runs).where(eq(runs.id, id)).get();
    if (!row) throw new Error(`job without its run ${id}`);
    return row;
  };

  const gradeOf = (session: SessionId) => {
    try {
      return gradeSession(readSession(db, session));
    } catch (error) {
      log.error({ run: session.runId, err: error }, "a session could not be graded");
      throw new JobFailure(`infrastructure: the session could not be graded: ${String(error)}`, false);
    }
  };

  return {
    begun(tx, { subject, attempt }) {
      tx.update(runs)
        .set({ status: "running", startedAt: sql`coalesce(${runs.startedAt}, ${now()})`, attempt })
        .where(eq(runs.id, subject))
        .run();
    },

    async run(lease: Lease, stop: AbortSignal) {
      const run = getRow(lease.subject);
      const agent = agents[run.agent];
      if (!agent) throw new JobFailure(`infrastructure: the agent ${run.agent} is not available here`, false);
      if (run.task.startUrls.length === 0)
        throw new JobFailure(
          "infrastructure: no address to start from; give the prompt a provider with docs, additionalUrls or an address in its text, or the run a urlMap",
          false,
        );
      const session = { orgId: run.orgId, runId: run.id, attempt: lease.attempt };
      const broken = new AbortController();
      const timeout = AbortSignal.timeout(config.runTimeoutMs);
      const signal = AbortSignal.any([stop, timeout, broken.signal]);
      const writer = openSession(
        { db, now },
        session,
        () => queue.holds(lease),
        (error) => broken.abort(error),
      );
      const description = agent.describe();
      try {
        const events = agent.run(
          {
            text: run.task.text,
            endGoal: run.task.endGoal,
            startUrls: run.task.startUrls,
            urlMap: run.urlMap,
            declaredChecks: run.task.declaredChecks,
            limits: { wallClockMs: config.runTimeoutMs, maxPages: config.maxPages, maxRequests: config.maxRequests },
          },
          { signal, guard: createGuard({ allow: allow(), urlMap: run.urlMap, userAgent, now }), now },
        );
        for await (const event of untilAborted(events, signal)) writer.append(event, "agent");
        writer.close();
      } catch (error) {
        if (stop.aborted) throw error;
        if (broken.signal.aborted)
          throw new JobFailure(
            `infrastructure: the session could not be stored: ${String(broken.signal.reason)}`,
            true,
          );
        writer.close();
        if (timeout.aborted)
          throw new JobFailure(
            `timeout: the run took longer than ${config.runTimeoutMs / 1000} seconds and was stopped`,
            false,
          );
        if (error instanceof AgentFailure)
          throw new JobFailure(error.message, error.options.retryable, error.options.retryAfterMs);
        throw error;
      }
      const grade = gradeOf(session);
      log.info({ run: run.id, outcome: grade.outcome, score: grade.score }, "run graded");
      return (tx) => {
        reports.insertReport(tx, run, lease.attempt, grade);
        tx.update(runs)
          .set({ status: "completed", completedAt: now(), agentVersion: description.version, model: description.model })
          .where(eq(runs.id, run.id))
          .run();
      };
    },

    failed(tx, { subject }, message) {
      tx.update(runs)
        .set({ status: "failed", failureReason: message, completedAt: now() })
        .where(eq(runs.id, subject))
        .run();
    },
  };
}

/** The events of an agent. An abort ends them at once, whether the agent heeds the signal or not. */
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
    // Not awaited: an agent that hangs would never answer.
    iterator.return?.()?.catch(() => {});
  }
}
