import { and, desc, eq, sql } from "drizzle-orm";
import type { Agent, Failure } from "../agents/agent.ts";
import { objectionTo } from "../agents/choice.ts";
import type { Context } from "../context.ts";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { bound, literal, statement } from "../db/prepared.ts";
import { runs, sessionEvents } from "../db/tables/runs.ts";
import { listMethodologies } from "../grading/methodology.ts";
import { JobFailure, type JobHandler } from "../jobs/handler.ts";
import type { Lease } from "../jobs/queue.ts";
import type { Grader } from "../reports/grader.ts";
import { insertReport } from "../reports/report-writer.ts";
import type { SessionId } from "../reports/session-events.ts";
import { announceEnd } from "./announcements.ts";
import { runAttempt, type SessionHost } from "./attempt.ts";
import { contextDigestOf } from "./context-digest.ts";
import type { Judging } from "./judge-call.ts";
import { findStartedJudging, judgeSession } from "./judging.ts";
import type { RunRow } from "./run-row.ts";
import { reserveBudget } from "./spending.ts";

/** The attempt with the session of a run, and the version of the agent that ran; null: unknown. */
type Done = { attempt: number; version: string | null };

const cost = sql`json_extract(${sessionEvents.data}, '$.costUsd')`;
const paidBy = sql`coalesce(json_extract(${sessionEvents.data}, '$.paidBy'), ${sessionEvents.attempt})`;

const runById = statement((db) =>
  db
    .select()
    .from(runs)
    .where(eq(runs.id, sql.placeholder("id"))),
);

const lastUsage = statement((db) =>
  db
    .select({ model: sql<string>`json_extract(${sessionEvents.data}, '$.model')` })
    .from(sessionEvents)
    .where(
      and(
        eq(sessionEvents.runId, bound("runId")),
        eq(sessionEvents.attempt, bound("attempt")),
        sql`${sessionEvents.type} = 'usage' and ${sessionEvents.source} = 'gateway'`,
      ),
    )
    .orderBy(desc(sessionEvents.seq))
    .limit(literal(1)),
);

/** 0 without rows; null if any cost is unknown. */
const costOfSession = statement((db) =>
  db
    .select({
      usd: sql<number | null>`case when count(*) = count(${cost}) then coalesce(sum(${cost}), 0) end`,
    })
    .from(sessionEvents)
    .where(
      and(eq(sessionEvents.runId, bound("runId")), eq(paidBy, bound("attempt")), sql`${sessionEvents.type} = 'usage'`),
    ),
);

/** What the job of a run needs besides the context. */
export type RunHost = SessionHost & Judging & { grader: Grader };

/** The job of a run: run the agent, store its events, grade them, and publish run and report together. */
export const createRunJob = (ctx: Context, host: RunHost): JobHandler => ({
  started: (tx, lease) => startRun(ctx, tx, lease),
  run: (lease, stop) => executeRun(ctx, host, lease, stop),
  returned(tx, { subject }) {
    tx.update(runs).set({ status: "pending", reservedUsd: null, waitingFor: null }).where(eq(runs.id, subject)).run();
  },
  failed: (tx, lease, failure) => failRun(ctx, tx, lease, failure),
  costOf: (lease) => costOfAttempt(ctx, lease),
});

function startRun(ctx: Context, tx: Tx, { subject, spent }: Lease): void {
  tx.update(runs)
    .set({ status: "running", startedAt: sql`coalesce(${runs.startedAt}, ${ctx.now()})`, attempt: spent + 1 })
    .where(eq(runs.id, subject))
    .run();
  reserveBudget(ctx, tx, getJobRun(ctx, subject));
}

/** Runs the agent unless its session is complete, and returns what stores run and report. Throws a JobFailure. */
async function executeRun(ctx: Context, host: RunHost, lease: Lease, stop: AbortSignal) {
  const run = getJobRun(ctx, lease.subject);
  const description = agentOf(ctx, run).describe();
  const attempt = findStartedJudging(ctx, run.id);
  if (attempt !== null) return finishRun(ctx, host, run, lease, { attempt, version: null }, stop);
  if (run.task.startUrls.length === 0)
    throw new JobFailure(
      {
        cause: "infrastructure",
        detail:
          "no start URL; give the prompt a provider with docs, additionalUrls or a URL in its text, or give the run a urlMap",
      },
      "never",
    );
  const version = await runAttempt(ctx, host, run, description, lease, stop);
  return finishRun(ctx, host, run, lease, { attempt: lease.attempt, version }, stop);
}

function failRun(ctx: Context, tx: Tx, { subject }: Lease, failure: Failure): void {
  const { cause: failureCause, detail: failureDetail } = failure;
  tx.update(runs)
    .set({ status: "failed", failureCause, failureDetail, completedAt: ctx.now(), reservedUsd: null, waitingFor: null })
    .where(eq(runs.id, subject))
    .run();
  announceEnd(ctx, tx, subject, failure);
}

/** Cost of an attempt of a run so far in USD; null if unknown. */
export const costOfAttempt = (ctx: Context, { subject, attempt }: Lease): number | null =>
  costOfSession(ctx.db).get({ runId: subject, attempt })?.usd ?? null;

function getJobRun({ db }: Context, id: string): RunRow {
  const run = runById(db).get({ id });
  if (!run) throw new Error(`no run for job ${id}`);
  return run;
}

async function gradeRun(ctx: Context, grader: Grader, session: SessionId) {
  const [methodology] = listMethodologies(ctx.config.methodology);
  try {
    return await grader.grade({ session, judging: null, methodology });
  } catch (error) {
    if (diskFault(error) !== null) throw error;
    ctx.log.error({ run: session.runId, err: error }, "could not grade session");
    throw new JobFailure(
      { cause: "infrastructure", detail: `the session could not be graded: ${String(error)}` },
      "never",
    );
  }
}

/** Judges (for agents with a model) and grades a finished session; returns what to store. */
async function finishRun(
  ctx: Context,
  host: RunHost,
  run: RunRow,
  lease: Lease,
  { attempt, version }: Done,
  stop: AbortSignal,
) {
  const session = { orgId: run.orgId, runId: run.id, attempt };
  const { version: newest, kind } = agentOf(ctx, run).describe();
  if (kind === "model") await judgeSession(ctx, host, run, session, lease, stop);
  const grade = await gradeRun(ctx, host.grader, session);
  ctx.log.info({ run: run.id, outcome: grade.outcome, score: grade.score }, "run graded");
  const done = {
    status: "completed",
    agentVersion: version ?? newest,
    contextDigest: kind === "model" ? contextDigestOf(ctx, session, run.task) : null,
    model: modelOf(ctx, session) ?? run.model,
  } as const;
  return (tx: Tx) => {
    tx.update(runs)
      .set({ ...done, completedAt: ctx.now(), reservedUsd: null, waitingFor: null })
      .where(eq(runs.id, run.id))
      .run();
    insertReport(ctx, tx, run, attempt, grade);
    announceEnd(ctx, tx, run.id, null);
  };
}

/** The agent of a run. Throws a JobFailure if it is not available. */
function agentOf(ctx: Context, { agent: id }: RunRow): Agent {
  const agent = ctx.agents[id];
  const objection = agent ? objectionTo(agent) : null;
  if (agent && objection === null) return agent;
  const detail = `the agent ${id} is not available on this server${objection === null ? "" : `: ${objection}`}`;
  throw new JobFailure({ cause: "infrastructure", detail }, "never");
}

/** The name of the model that answered last; null if none did. */
function modelOf(ctx: Context, session: SessionId): string | null {
  return lastUsage(ctx.db).get({ runId: session.runId, attempt: session.attempt })?.model ?? null;
}
