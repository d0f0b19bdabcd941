import { type Agent, type AgentEvent, AgentFailure, type EventSource } from "../agents/agent.ts";
import type { GatewayOpener } from "../agents/gateway/opener.ts";
import type { Task } from "../agents/task.ts";
import { readArchive } from "../archives/archives.ts";
import type { AllowRule } from "../config/allow-rules.ts";
import { decideLimits } from "../config/limits.ts";
import type { Context, OrgId } from "../context.ts";
import type { runs } from "../db/tables/runs.ts";
import { untilUnlocked } from "../db/write-lock.ts";
import { AppError } from "../errors.ts";
import { JobFailure } from "../jobs/handler.ts";
import { isLeaseHeld, type Lease } from "../jobs/queue.ts";
import { getModel, listModelSecrets } from "../models/models.ts";
import { secretsOf } from "../net/mapping.ts";
import type { Place } from "../places/place.ts";
import { keepArtifact } from "../reports/artifacts.ts";
import { createBounds } from "./bounds.ts";
import { openSession } from "./session.ts";
import { budgetObjection, budgetOfRun } from "./spending.ts";

import { createWaitNotes } from "./waiting.ts";

export type AttemptParts = {
  gateway: Pick<GatewayOpener, "open">;
  place: Place;
  /** Private addresses that runs may reach. Read per run, because the service knows its port only once it listens. */
  allow: () => AllowRule[];
  userAgent: string;
};

/** Runs an agent once and stores its events as they arrive. */
export function createAttempt(ctx: Context, { gateway, place, allow, userAgent }: AttemptParts) {
  const { db, config, now } = ctx;
  /** Opens the model of a run and reads its archives. Throws a JobFailure if the model cannot be called. */
  async function equip(
    run: typeof runs.$inferSelect,
    task: Task,
    mustHavePrice: boolean,
    onEvent: (event: AgentEvent) => void,
    end: (failure: JobFailure) => void,
  ) {
    const { archive, skills } = task.workspace ?? {};
    const read = (id: string | undefined) => (id === undefined ? null : readArchive(ctx, run.orgId as OrgId, id));
    try {
      const model = getModel(ctx, run.orgId as OrgId, run.model ?? "");
      const files = { archive: read(archive), skillsArchive: read(skills?.archive) };
      const session = (await gateway.open()).openSession({
        model,
        mustHavePrice,
        limits: task.limits.model,
        // A silent model is reported before the agent counts as idle.
        silenceMs: task.limits.idleMs / 2,
        files,
        onEvent,
        onFailure: (why) => end(toJobFailure(why)),
      });
      const { id, provider, name } = model;
      const { token, socketPath } = session;
      return { session, files, model: { id, provider, name, socketPath, token } };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const cause = error.code === "not_found" ? "infrastructure" : "credentials";
      throw new JobFailure({ cause, detail: error.detail }, "never");
    }
  }

  /** Returns the version of the agent; null if it did not start. Throws a JobFailure; events until then are stored. */
  return async function send(
    run: typeof runs.$inferSelect,
    { kind, memoryBytes = 0 }: ReturnType<Agent["describe"]>,
    lease: Lease,
    stop: AbortSignal,
  ): Promise<string | null> {
    const session = { orgId: run.orgId, runId: run.id, attempt: lease.attempt };
    const decided = decideLimits(run.task.limits, config);
    const limits = {
      ...decided,
      memoryBytes: run.task.limits?.memoryBytes ? decided.memoryBytes : Math.max(decided.memoryBytes, memoryBytes),
    };
    const grant = budgetOfRun(ctx, run);
    if (run.reservedUsd === 0)
      throw new JobFailure(
        {
          cause: "budget",
          detail: budgetObjection(ctx, run.orgId) ?? "The rest of the monthly budget is reserved for other runs.",
        },
        "never",
      );
    const ended = new AbortController();
    const end = (failure: JobFailure) => ended.abort(failure);
    const signal = AbortSignal.any([stop, ended.signal]);
    let isStored = true;
    const writer = openSession(
      { db, now, secrets: [...listModelSecrets(ctx, run.orgId as OrgId), ...secretsOf(run.urlMap)] },
      session,
      () => isLeaseHeld(ctx, lease),
      (error) => {
        isStored = false;
        const detail = `the session could not be stored: ${error}`;
        end(new JobFailure({ cause: "infrastructure", detail }, "fault", 0, error));
      },
    );
    const task = toTask(run, { ...limits, model: { ...limits.model, costUsd: grant.agentUsd } });
    const noteWait = createWaitNotes(ctx, run.id, () => isLeaseHeld(ctx, lease));
    let version: string | null = null;
    let warn = (_limit: string) => {};
    const bounds = createBounds(kind, task.limits, {
      tell: (event) => writer.append(event, "runner"),
      warn: (limit) => warn(limit),
      fail: (failure) => end(toJobFailure(failure)),
    });
    const hear = (event: AgentEvent, source: EventSource) => {
      const kept = keepArtifact(db, session, event, { mayWrite: () => isLeaseHeld(ctx, lease), clean: writer.clean });
      writer.append(kept, source);
      bounds.count(event, source);
    };
    try {
      const onCall = (event: AgentEvent) => hear(event, "gateway");
      const equipment = kind === "model" ? await equip(run, task, grant.isCapped, onCall, end) : null;
      warn = equipment?.session.warn ?? warn;
      try {
        writer.hide(equipment ? [equipment.model.token] : []);
        const until = AbortSignal.any([signal, bounds.signal]);
        const id = `${run.id}-${lease.attempt}`;
        const events = place.run(
          {
            ...{ id, agent: run.agent, task, labels: run.task.workerLabels ?? [] },
            ...{ allow: allow(), userAgent, model: equipment?.model ?? null },
            ...{ archive: null, skillsArchive: null, ...equipment?.files },
          },
          {
            signal: until,
            hide: writer.hide,
            onEgress: (event) => hear(event, "egress"),
            onWait: ({ failsInMs, ...reason }) =>
              noteWait({ ...reason, failsAt: failsInMs === null ? null : Math.round(now() + failsInMs) }),
            onStart(started) {
              version = started;
              noteWait(null);
              bounds.start();
            },
            // Cleaning up takes time that does not count as the agent's.
            onEnd: bounds.stop,
          },
        );
        for await (const event of untilAborted(events, until)) {
          if ("artifact" in event) await untilUnlocked(db);
          hear(event, "agent");
        }
      } catch (error) {
        if (signal.aborted || !bounds.hit) throw error;
      } finally {
        bounds.stop();
        const closed = equipment?.session.close();
        // A cancelled run frees its slot at once; the cost of its last call is counted when known.
        if (!stop.aborted || isLeaseHeld(ctx, lease)) await closed;
      }
      for (const event of bounds.ending()) writer.append(event, "runner");
      await writer.close(stop);
      return version;
    } catch (error) {
      if (stop.aborted) {
        // If the lease was lost, nothing is stored.
        await writer.close(stop).catch(() => {});
        throw error;
      }
      // Keep the events so far, unless storing them is what failed.
      if (isStored) await writer.close(stop);
      const { failure, retry, retryAfterMs, cause } = toJobFailure(ended.signal.aborted ? ended.signal.reason : error);
      // Error messages of providers and processes may contain a key.
      throw new JobFailure({ ...failure, detail: writer.clean(failure.detail) }, retry, retryAfterMs, cause);
    } finally {
      bounds.stop();
    }
  };
}

/** What the agent of a run gets to do. */
const toTask = ({ task, urlMap }: typeof runs.$inferSelect, limits: Task["limits"]): Task => ({
  text: task.text,
  endGoal: task.endGoal,
  ...(task.wordings && { wordings: task.wordings }),
  startUrls: task.startUrls,
  productUrl: task.productUrl,
  urlMap,
  declaredChecks: task.declaredChecks,
  ...(task.workspace && { workspace: task.workspace }),
  limits,
});

/** Infrastructure faults use no attempt; a crash of the agent does. */
function toJobFailure(error: unknown): JobFailure {
  if (error instanceof JobFailure) return error;
  if (error instanceof AgentFailure) {
    const { retryable, retryAfterMs } = error.options;
    const retry = error.failureCause === "agent_crashed" ? "attempt" : retryable ? "fault" : "never";
    return new JobFailure({ cause: error.failureCause, detail: error.detail }, retry, retryAfterMs);
  }
  const detail = error instanceof Error ? error.message : String(error);
  return new JobFailure({ cause: "agent_crashed", detail }, "attempt");
}

/** Time for an agent to stop after an abort; after that it is abandoned. */
const endMs = 5_000;

/** The events of an agent. An abort ends the stream, even if the agent ignores the signal. */
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
