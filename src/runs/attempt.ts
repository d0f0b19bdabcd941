import { type AgentDescription, type AgentEvent, AgentFailure, type EventSource } from "../agents/agent.ts";
import { secretNamesOf, spellingsOf } from "../agents/check-secrets.ts";
import { endings } from "../agents/endings.ts";
import { type Failure, ruleOf, toFailure } from "../agents/failure.ts";
import { agent as agentSubject, model as modelSubject } from "../agents/failure-rule.ts";
import type { Task } from "../agents/task.ts";
import { readArchive } from "../archives/archives.ts";
import type { AllowRule } from "../config/allow-rules.ts";
import { decideLimits } from "../config/limits.ts";
import type { Context, OrgId } from "../context.ts";
import { diskFault } from "../db/fault.ts";
import { untilUnlocked } from "../db/write-lock.ts";
import { settlesWithin } from "../deadline.ts";
import { AppError } from "../errors.ts";
import { turnOfOrg } from "../http/turns.ts";
import { JobFailure } from "../jobs/handler.ts";
import { isLeaseHeld, type Lease } from "../jobs/queue.ts";
import { readLogin } from "../models/logins.ts";
import { gatewayOf, getModel, getModelOfLogin, listModelSecrets } from "../models/models.ts";
import { editsOf } from "../net/edits.ts";
import { secretsOf } from "../net/mapping.ts";
import type { Executor, SessionHooks, SessionOrder } from "../places/executor.ts";
import { storeArtifact } from "../reports/artifacts.ts";
import { readSecrets } from "../secrets/secrets.ts";
import { budgetObjection } from "./budgets.ts";
import { countEdits, openEditCounts, toEditsEvent } from "./edit-counts.ts";
import { withLimitOwner } from "./limit-failures.ts";
import { sharedBudgetsOf } from "./month-budget.ts";
import { countEvent, createRunLimits, finalEventsOf, startClocks, stopClocks } from "./run-limits.ts";
import type { RunRow } from "./run-row.ts";
import { openSession } from "./session.ts";
import { budgetOfRun } from "./spending.ts";
import { createWaitWriter } from "./waiting.ts";

/** What runs the agents of a service. */
export type RunHost = {
  executor: Executor;
  /** Private addresses that runs may reach. They are read for each run, because the service knows its port only once it listens. */
  allow: () => AllowRule[];
};

/** What to run, the lease of its job, and the signal that cancels it. */
type AttemptStart = { run: RunRow; agent: AgentDescription; lease: Lease; stop: AbortSignal };

/**
 * Runs an agent once and stores its events as they arrive. Returns the version of the agent; null if it did not start. Throws a JobFailure; the
 * events that arrived before it are stored.
 */
export async function runAgent(ctx: Context, host: RunHost, start: AttemptStart): Promise<string | null> {
  const { run, stop } = start;
  if (run.reservedUsd === 0) throw toBudgetFailure(ctx, run);
  const attempt = openAttempt(ctx, start);
  const { writer, runLimits } = attempt;
  let model: OpenModel | null = null;
  let siteAccess: { token: string; close(): void } | null = null;
  try {
    attempt.site = readArchiveOf(ctx, run, run.task.site?.archiveId);
    if (start.agent.kind === "model") model = await openModel(ctx, attempt);
    // A site needs access of its own only without a model: a model's session gives access to it too.
    else if (attempt.site) siteAccess = gatewayOf(ctx).openFiles({ site: attempt.site });
    if (siteAccess) writer.hide([siteAccess.token]);
    const filesToken = model?.grant.token ?? siteAccess?.token ?? null;
    const version = await followAgent(ctx, host, attempt, { model, filesToken });
    if (attempt.editCounts) writer.append(toEditsEvent(attempt.editCounts), "runner");
    for (const event of finalEventsOf(runLimits)) writer.append(event, "runner");
    await writer.close(stop);
    return version;
  } catch (error) {
    if (stop.aborted) {
      // If the lease was lost, nothing is stored.
      await writer.close(stop).catch(() => {});
      throw error;
    }
    throw await recordFailure(ctx, attempt, findReason(attempt, model, error));
  } finally {
    siteAccess?.close();
    stopClocks(runLimits);
  }
}

/** Why an attempt failed. If several errors ended it, this is the most telling one. */
function findReason({ ended }: Attempt, model: OpenModel | null, error: unknown): unknown {
  const reason: unknown = ended.signal.aborted ? ended.signal.reason : error;
  const isOutOfTime =
    reason instanceof AgentFailure && (reason.code === "server_time_limit" || reason.code === "server_idle_limit");
  // An agent that waits for a failing model reaches its time limits, but more time would not help it. It would only help with a slow model.
  const modelFailure = isOutOfTime ? model?.session.lastFailure() : null;
  return modelFailure && modelFailure.code !== "model_answer_incomplete" ? modelFailure : reason;
}

/** Stores that an attempt failed. Returns the failure of its job. */
async function recordFailure(ctx: Context, attempt: Attempt, reason: unknown): Promise<JobFailure> {
  const { writer } = attempt;
  const { failure, retry, retryAfterMs, cause } = toJobFailure(ctx, attempt, reason);
  // The events so far are kept, unless storing them is what failed.
  if (attempt.isStored) {
    const ending = reason instanceof AgentFailure ? (reason.options.ending ?? null) : null;
    const { code = "internal_error", cause: failureCause, detail } = failure;
    const milestone = { code, cause: failureCause, detail, ending };
    writer.append({ type: "milestone", name: "attempt_failed", detail: milestone }, "runner");
    await writer.close(attempt.stop);
  }
  // Error messages of providers and processes may contain a key.
  return new JobFailure({ ...failure, detail: writer.clean(failure.detail) }, retry, retryAfterMs, cause);
}

type Attempt = ReturnType<typeof openAttempt>;

/** Prepares to store the events of a run and to enforce its limits. */
function openAttempt(ctx: Context, { run, agent, lease, stop }: AttemptStart) {
  const session = { orgId: run.orgId, runId: run.id, attempt: lease.attempt };
  const checkSecrets = readSecrets(ctx, run.orgId as OrgId, secretNamesOf(run.task.declaredChecks));
  const secrets = [
    ...listModelSecrets(ctx, run.orgId as OrgId),
    ...secretsOf(run.urlMap),
    ...spellingsOf(checkSecrets),
  ];
  const mayWrite = () => isLeaseHeld(ctx, lease);
  const task = toTask(ctx, run, agent);
  const edits = editsOf(task);
  /** Aborts with the error that fails the run. */
  const ended = new AbortController();
  const onError = (error: unknown) => {
    attempt.isStored = false;
    const detail = `the session could not be stored: ${error}`;
    const code = diskFault(error) === "full" ? "disk_full" : "session_not_stored";
    ended.abort(new JobFailure(toFailure(code, detail), "fault", 0, error));
  };
  const writer = openSession(ctx, session, { secrets, mayWrite, onError });
  const runLimits = createRunLimits(agent.kind, task.limits, {
    storeEvent: (event) => writer.append(event, "runner"),
    warnAgent: (limit) => attempt.warn?.(limit),
    failRun: (failure) => ended.abort(failure),
  });
  const attempt = {
    run,
    lease,
    stop,
    session,
    task,
    checkSecrets,
    writer,
    runLimits,
    ended,
    editCounts: edits && openEditCounts(edits),
    mayWrite,
    /** The archive with the site of the task, once it was read. */
    site: null as Uint8Array | null,
    isStored: true,
    /** Warns the agent that a limit is near; null until its model was opened. */
    warn: null as ((limit: string) => void) | null,
  };
  return attempt;
}

/** Stores an event and counts it. */
function record(ctx: Context, attempt: Attempt, event: AgentEvent, source: EventSource): void {
  const { session, writer, runLimits, editCounts, mayWrite } = attempt;
  const stored = storeArtifact(ctx.db, session, event, { mayWrite, ...writer });
  // This event has nothing but its artifact.
  if (event.type === "milestone" && event.name === "agent_output") return;
  writer.append(stored, source);
  countEvent(runLimits, event, source);
  if (editCounts) countEdits(editCounts, event);
}

/** The content of an archive that the task of a run names; null: it names none. Throws a JobFailure if the archive is gone. */
function readArchiveOf(ctx: Context, { orgId }: RunRow, archiveId: string | undefined): Buffer | null {
  if (archiveId === undefined) return null;
  try {
    return readArchive(ctx, orgId as OrgId, archiveId);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new JobFailure(toFailure("workspace_failed", error.detail), "never");
  }
}

type OpenModel = Awaited<ReturnType<typeof openModel>>;

/** Opens the model of a run and reads its archives. Throws a JobFailure if an archive is gone, or if the model cannot be called. */
async function openModel(ctx: Context, attempt: Attempt) {
  const { run, task } = attempt;
  const { archive, skills } = task.workspace ?? {};
  const archives = {
    archive: readArchiveOf(ctx, run, archive),
    skillsArchive: readArchiveOf(ctx, run, skills?.archive),
  };
  try {
    const login = task.agentOptions?.login ? readLogin(ctx, run.orgId as OrgId, run.agent) : null;
    const model = login ? getModelOfLogin(ctx, run.model ?? "") : getModel(ctx, run.orgId as OrgId, run.model ?? "");
    const files = { ...archives, site: attempt.site, login };
    const session = gatewayOf(ctx).openSession({
      model,
      mustHavePrice: login === null && budgetOfRun(ctx, run.orgId, run.task.limits, run.reservedUsd).isCapped,
      limits: task.limits.model,
      shared: sharedBudgetsOf(ctx, run.orgId, run.promptId),
      // A silent model is reported before the agent counts as idle.
      silenceMs: task.limits.idleMs / 2,
      // With a login, the agent calls its vendor itself.
      takesCalls: login === null,
      allowsWebSearch: task.agentOptions?.webSearch ?? false,
      files,
      waitForTurn: () => turnOfOrg(ctx, run.orgId),
      onEvent: (event) => record(ctx, attempt, event, "gateway"),
      onFailure: (failure) => attempt.ended.abort(failure),
    });
    attempt.writer.hide([session.token]);
    attempt.warn = session.warn;
    const { id, provider, name } = model;
    const { token, socketPath } = session;
    return { session, files, grant: { id, provider, name, socketPath, token } };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const code = error.code === "not_found" ? "model_not_found" : "model_key_missing";
    throw new JobFailure(toFailure(code, error.detail, run.model), "never");
  }
}

/** The model of a run, and the token with which an agent on another machine gets its files; null: there is none. */
type ModelAndFiles = { model: OpenModel | null; filesToken: string | null };

/** Stores what an agent does until it ends or reaches a limit. Returns its version; null if it did not start. */
async function followAgent(
  ctx: Context,
  { executor, allow }: RunHost,
  attempt: Attempt,
  access: ModelAndFiles,
): Promise<string | null> {
  const { run, lease, stop, writer, runLimits, ended } = attempt;
  const { model } = access;
  const failureSignal = AbortSignal.any([stop, ended.signal]);
  const signal = AbortSignal.any([failureSignal, runLimits.stopper.signal]);
  const storeWait = createWaitWriter(ctx, run.id, attempt.mayWrite);
  let version: string | null = null;
  const hooks: SessionHooks = {
    signal,
    hide: writer.hide,
    onEgress: (event) => record(ctx, attempt, event, "egress"),
    onWait: ({ failsInMs, ...reason }) =>
      storeWait({ ...reason, failsAt: failsInMs === null ? null : Math.round(ctx.now() + failsInMs) }),
    onStart(agentVersion) {
      version = agentVersion;
      storeWait(null);
      startClocks(runLimits);
    },
    // The time for cleaning up does not count as the agent's.
    onEnd: () => stopClocks(runLimits),
  };
  try {
    const order = toOrder(attempt, access, allow());
    for await (const event of untilAborted(executor.run(order, hooks), signal)) {
      if ("artifact" in event) await untilUnlocked(ctx.db);
      record(ctx, attempt, event, "agent");
    }
  } catch (error) {
    // When a limit is reached, the session so far is the result.
    if (failureSignal.aborted || !runLimits.reachedLimit) throw error;
  } finally {
    stopClocks(runLimits);
    const closed = model?.session.close();
    // A cancelled run makes room for the next one immediately. The cost of its last call is counted once it is known.
    if (!stop.aborted || isLeaseHeld(ctx, lease)) await closed;
  }
  return version;
}

/** The order for an agent: its task and everything that it needs. */
const toOrder = (
  { run, lease, task, checkSecrets, site }: Attempt,
  { model, filesToken }: ModelAndFiles,
  allow: AllowRule[],
): SessionOrder => ({
  id: `${run.id}-${lease.attempt}`,
  agent: run.agent,
  task,
  checkSecrets,
  labels: run.task.workerLabels ?? [],
  allow,
  model: model?.grant ?? null,
  archive: model?.files.archive ?? null,
  skillsArchive: model?.files.skillsArchive ?? null,
  site,
  login: model?.files.login ?? null,
  filesToken,
});

/** How long a run waits before it checks again whether active runs have left enough of a budget. */
const budgetPauseMs = 5_000;

/** The failure if a budget is spent. If active runs have only reserved the rest of it, the run waits for them. */
function toBudgetFailure(ctx: Context, { orgId, promptId }: RunRow): JobFailure {
  const objection = budgetObjection(ctx, orgId, promptId);
  const detail = objection ?? "The rest of the monthly budget is reserved for other runs.";
  return new JobFailure(toFailure("month_budget_spent", detail), objection === null ? "wait" : "never", budgetPauseMs);
}

/** The task of an agent for a run, within the limits of the run. */
function toTask(ctx: Context, run: RunRow, { memoryBytes = 0 }: AgentDescription): Task {
  const { task, urlMap } = run;
  const limits = decideLimits(task.limits, ctx.config);
  return {
    text: task.text,
    endGoal: task.endGoal,
    ...(task.wordings && { wordings: task.wordings }),
    ...(task.basis && { basis: task.basis }),
    startUrls: task.startUrls,
    productUrl: task.productUrl,
    urlMap,
    ...(task.site && { site: task.site }),
    ...(task.edits && { edits: task.edits }),
    declaredChecks: task.declaredChecks,
    ...(task.workspace && { workspace: task.workspace }),
    ...(task.agentOptions && { agentOptions: task.agentOptions }),
    limits: {
      ...limits,
      memoryBytes: task.limits?.memoryBytes ? limits.memoryBytes : Math.max(limits.memoryBytes, memoryBytes),
      model: { ...limits.model, costUsd: budgetOfRun(ctx, run.orgId, task.limits, run.reservedUsd).agentUsd },
    },
  };
}

/** Infrastructure faults use no attempt, but a crash of the agent uses one. If the ending is known, its rule decides. */
function toJobFailure(ctx: Context, { run, runLimits }: Attempt, error: unknown): JobFailure {
  if (error instanceof JobFailure) return error;
  if (error instanceof AgentFailure) {
    const { retryable, retryAfterMs, ending } = error.options;
    const rule = ending && endings[ending].failure;
    const failure = withLimitOwner(ctx, run, runLimits, error);
    const retryOfFault = retryable ? "fault" : "never";
    const retry = rule?.retry ?? (failure.cause === "agent_crashed" ? "attempt" : retryOfFault);
    return new JobFailure({ ...failure, subject: failure.subject ?? subjectOf(run, failure) }, retry, retryAfterMs);
  }
  const detail = error instanceof Error ? error.message : String(error);
  return new JobFailure(toFailure("agent_crashed", detail, run.agent), "attempt");
}

/** The agent or the model of a run, if its failure is about one of them. */
function subjectOf({ agent, model }: RunRow, { code }: Failure): string | null {
  const { subject } = ruleOf(code);
  if (subject === agentSubject) return agent;
  return subject === modelSubject ? model : null;
}

/** How long an agent may take to stop after an abort. Then it is abandoned. */
const stopGraceMs = 5_000;

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
    const returned = iterator.return?.()?.catch(() => {});
    if (signal.aborted) await settlesWithin(Promise.resolve(returned), stopGraceMs);
  }
}
