import { type Agent, type AgentEvent, AgentFailure, type EventSource } from "../agents/agent.ts";
import type { Host } from "../agents/llm/host.ts";
import type { Task } from "../agents/task.ts";
import type { Archives } from "../archives/archives.ts";
import type { AllowRule } from "../config/allow-rules.ts";
import { decideLimits } from "../config/limits.ts";
import type { runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { AppError } from "../errors.ts";
import { JobFailure } from "../jobs/handler.ts";
import type { Lease, Queue } from "../jobs/queue.ts";
import type { Models } from "../models/models.ts";
import { keepArtefact } from "../reports/artefacts.ts";
import { createBounds } from "./bounds.ts";
import { openSession } from "./session.ts";
import type { Money } from "./spending.ts";

export type AttemptParts = {
  queue: Queue;
  models: Pick<Models, "getModel" | "secretsOf">;
  archives: Pick<Archives, "readArchive">;
  /** Opens the gateway, proxy and workspace for an agent with a model. */
  host: Pick<Host, "equip">;
  money: Money;
  /** Private addresses that runs may reach. Read per run, because the service knows its port only once it listens. */
  allow: () => AllowRule[];
  userAgent: string;
};

/** Runs an agent once and stores its events as they arrive. */
export function createAttempt(
  { db, config, now }: Pick<Deps, "db" | "config" | "now">,
  { queue, models, archives, host, money, allow, userAgent }: AttemptParts,
) {
  /** Throws a JobFailure if the model cannot be called. */
  async function equip(
    run: typeof runs.$inferSelect,
    task: Task,
    mustHavePrice: boolean,
    onEvent: (event: AgentEvent, source: EventSource) => void,
    end: (failure: JobFailure) => void,
  ) {
    const archive = task.workspace?.archive;
    try {
      const model = models.getModel(run.orgId as OrgId, run.model ?? "");
      const onFailure = (why: AgentFailure) => end(toJobFailure(why));
      return await host.equip({
        task,
        model,
        archive: archive === undefined ? null : archives.readArchive(run.orgId as OrgId, archive),
        mustHavePrice,
        allow: allow(),
        onEvent,
        onFailure,
      });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const cause = error.code === "not_found" ? "infrastructure" : "credentials";
      throw new JobFailure({ cause, detail: error.detail }, "never");
    }
  }

  /** Throws a JobFailure; events until then are stored. */
  return async function send(
    run: typeof runs.$inferSelect,
    agent: Agent,
    lease: Lease,
    stop: AbortSignal,
  ): Promise<void> {
    const session = { orgId: run.orgId, runId: run.id, attempt: lease.attempt };
    const { kind, memoryBytes = 0 } = agent.describe();
    const decided = decideLimits(run.task.limits, config);
    const limits = {
      ...decided,
      memoryBytes: run.task.limits?.memoryBytes ? decided.memoryBytes : Math.max(decided.memoryBytes, memoryBytes),
    };
    const grant = money.grantOf(run);
    if (run.reservedUsd === 0)
      throw new JobFailure(
        {
          cause: "budget",
          detail: money.objection(run.orgId) ?? "The rest of the monthly budget is reserved for other runs.",
        },
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
        const detail = `the session could not be stored: ${error}`;
        end(new JobFailure({ cause: "infrastructure", detail }, "fault", 0, error));
      },
    );
    const task: Task = {
      text: run.task.text,
      endGoal: run.task.endGoal,
      startUrls: run.task.startUrls,
      productUrl: run.task.productUrl,
      urlMap: run.urlMap,
      declaredChecks: run.task.declaredChecks,
      ...(run.task.workspace && { workspace: run.task.workspace }),
      limits: { ...limits, model: { ...limits.model, costUsd: grant.agentUsd } },
    };
    let warn = (_limit: string) => {};
    const bounds = createBounds(kind, task.limits, {
      tell: (event) => writer.append(event, "runner"),
      warn: (limit) => warn(limit),
      fail: (failure) => end(toJobFailure(failure)),
    });
    const hear = (event: AgentEvent, source: EventSource) => {
      const kept = keepArtefact(db, session, event, { mayWrite: () => queue.holds(lease), clean: writer.clean });
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
        const events = agent.run(task, { signal: until, now, startedAt: now(), allow: allow(), userAgent, means });
        for await (const event of untilAborted(events, until)) hear(event, "agent");
      } catch (error) {
        if (signal.aborted || !bounds.hit) throw error;
      } finally {
        // Closing takes time that does not count as the agent's.
        bounds.stop();
        const closed = equipment?.close();
        // A cancelled run frees its slot at once; the cost of its last call is counted when known.
        if (!stop.aborted || queue.holds(lease)) await closed;
      }
      for (const event of bounds.ending()) writer.append(event, "runner");
      await writer.close(stop);
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
