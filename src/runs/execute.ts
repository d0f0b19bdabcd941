import { eq, sql } from "drizzle-orm";
import type { Agent } from "../agents/agent.ts";
import { objectionToAgent } from "../agents/choice.ts";
import { type FailedCode, toFailure, toFailureColumns } from "../agents/failure.ts";
import { type Context, perContext } from "../context.ts";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { endedAt } from "../db/rows.ts";
import { runs } from "../db/tables/runs.ts";
import type { Grade } from "../grading/grade.ts";
import { listMethodologies } from "../grading/methodology.ts";
import { JobFailure, type JobHandler, type StoredReason } from "../jobs/handler.ts";
import type { Lease } from "../jobs/queue.ts";
import { gradeStored } from "../reports/grader.ts";
import { insertReport } from "../reports/report-writer.ts";
import type { SessionId } from "../reports/session-events.ts";
import { ownMember } from "../schema.ts";
import { announceEnd } from "./announcements.ts";
import { type RunHost, runAgent } from "./attempt.ts";
import { basisUpdateOf } from "./basis.ts";
import { reserveBudget } from "./budgets.ts";
import { contextDigestOf } from "./context-digest.ts";
import { findStartedJudging, judgeSession } from "./judging.ts";
import { holdIfPaused } from "./pauses.ts";
import type { RunRow } from "./run-row.ts";
import { costOfAttempt, lastModelOf } from "./usage.ts";

const noStartUrl =
  "no start URL; give the prompt a provider with docs, additionalUrls or a URL in its text, or give the run a urlMap";

const runById = statement((db) =>
  db
    .select()
    .from(runs)
    .where(eq(runs.id, sql.placeholder("id"))),
);

const methodologyOf = perContext((ctx) => listMethodologies(ctx.config.methodology)[0]);

/** The job of a run: it runs the agent, stores and grades its events, and publishes the run and its report together. */
export const createRunJob = (ctx: Context, host: RunHost): JobHandler => ({
  onStart(tx, { subject, attempt }) {
    tx.update(runs)
      .set({
        status: "running",
        startedAt: sql`coalesce(${runs.startedAt}, ${endedAt(ctx.now(), runs.createdAt)})`,
        attempt,
        waitingFor: null,
      })
      .where(eq(runs.id, subject))
      .run();
    const run = findRowOfJob(ctx, subject);
    if (run) reserveBudget(ctx, tx, run);
  },
  run: (lease, stop) => executeRun(ctx, host, lease, stop),
  onRequeue(tx, { subject }, isWaiting) {
    const run = findRowOfJob(ctx, subject);
    // A run waits for other runs only if they have reserved the rest of a budget.
    const waitingFor =
      run && isWaiting
        ? ({ what: "budget", agent: run.agent, sandbox: false, labels: [], failsAt: null } as const)
        : null;
    tx.update(runs).set({ status: "pending", reservedUsd: null, waitingFor }).where(eq(runs.id, subject)).run();
    if (run) holdIfPaused(ctx, tx, run);
  },
  onFailure: (tx, { subject }, failure) => failRun(ctx, tx, subject, failure),
  costOf: (lease) => costOfAttempt(ctx, lease),
});

/** Runs the agent, judges and grades its session. Returns what to store. Throws a JobFailure. */
async function executeRun(ctx: Context, host: RunHost, lease: Lease, stop: AbortSignal): Promise<(tx: Tx) => void> {
  const run = findRowOfJob(ctx, lease.subject);
  if (!run) throw toFinalFailure("cancelled", "it was deleted");
  const agent = getAgent(ctx, run).describe();
  // If an earlier attempt stopped while its session was judged, the agent need not run again.
  const judgedAttempt = findStartedJudging(ctx, run.id);
  let version: string | null = null;
  if (judgedAttempt === null) {
    if (run.task.startUrls.length === 0) throw toFinalFailure("no_start_url", noStartUrl);
    version = await runAgent(ctx, host, { run, agent, lease, stop });
  }
  const session = { orgId: run.orgId, runId: run.id, attempt: judgedAttempt ?? lease.attempt };
  if (agent.kind === "model") await judgeSession(ctx, run, session, lease, stop);
  const grade = await gradeRun(ctx, session);
  ctx.log.info({ run: run.id, outcome: grade.outcome, score: grade.score }, "run graded");
  const completed = {
    status: "completed",
    agentVersion: version ?? agent.version,
    contextDigest: agent.kind === "model" ? contextDigestOf(ctx, session, run.task) : null,
    model: lastModelOf(ctx, session) ?? run.model,
  } as const;
  const updateBasis = basisUpdateOf(ctx, run, session.attempt);
  return (tx) => {
    updateBasis(tx);
    tx.update(runs)
      .set({ ...completed, completedAt: endedAt(ctx.now(), runs.startedAt), reservedUsd: null, waitingFor: null })
      .where(eq(runs.id, run.id))
      .run();
    insertReport(ctx, tx, run, session.attempt, grade);
    announceEnd(ctx, tx, run.id, null);
  };
}

function failRun(ctx: Context, tx: Tx, runId: string, { code, detail, subject }: StoredReason): void {
  const failure = toFailure(code ?? "internal_error", detail, subject);
  const completedAt = endedAt(ctx.now(), runs.startedAt);
  tx.update(runs)
    .set({ status: "failed", ...toFailureColumns(failure), completedAt, reservedUsd: null, waitingFor: null })
    .where(eq(runs.id, runId))
    .run();
  announceEnd(ctx, tx, runId, failure);
}

/** undefined: the run was deleted, and its job is not yet cancelled. */
const findRowOfJob = ({ db }: Context, runId: string): RunRow | undefined => runById(db).get({ id: runId });

/** The agent of a run. Throws a JobFailure if it is not available. */
function getAgent(ctx: Context, { agent: id }: RunRow): Agent {
  const agent = ownMember(ctx.agents, id);
  const objection = agent ? objectionToAgent(agent) : null;
  if (agent && objection === null) return agent;
  const unmetCondition = agent?.preflight().find(({ isMet }) => !isMet);
  const code = unmetCondition?.install === undefined ? "agent_not_available" : "agent_not_installed";
  const detail = `the agent ${id} is not available on this server${objection === null ? "" : `: ${objection}`}`;
  throw toFinalFailure(code, detail, unmetCondition?.install ?? id);
}

/** Throws a JobFailure if the session cannot be graded, and errors of the disk. */
async function gradeRun(ctx: Context, session: SessionId): Promise<Grade> {
  try {
    return await gradeStored(ctx, session, null, methodologyOf(ctx));
  } catch (error) {
    if (diskFault(error) !== null) throw error;
    ctx.log.error({ run: session.runId, err: error }, "could not grade session");
    throw toFinalFailure("grading_failed", `the session could not be graded: ${String(error)}`);
  }
}

/** A failure that would also end another attempt. */
const toFinalFailure = (code: FailedCode, detail: string, subject?: string) =>
  new JobFailure(toFailure(code, detail, subject), "never");
