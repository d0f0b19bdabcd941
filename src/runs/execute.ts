import { and, desc, eq, sql } from "drizzle-orm";
import type { Agent } from "../agents/agent.ts";
import { objectionTo } from "../agents/choice.ts";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { runs, sessionEvents } from "../db/tables.ts";
import type { Deps } from "../deps.ts";
import { listMethodologies } from "../grading/methodology.ts";
import { JobFailure, type JobHandler } from "../jobs/handler.ts";
import type { Lease } from "../jobs/queue.ts";
import type { Grader } from "../reports/grader.ts";
import type { Reports } from "../reports/reports.ts";
import type { SessionId } from "../reports/session-events.ts";
import { type AttemptParts, createAttempt } from "./attempt.ts";
import type { Judging } from "./judging.ts";

type Parts = AttemptParts & {
  agents: Record<string, Agent>;
  grader: Grader;
  reports: Reports;
  judging: Judging;
};

const cost = sql`json_extract(${sessionEvents.data}, '$.costUsd')`;
const paidBy = sql`coalesce(json_extract(${sessionEvents.data}, '$.paidBy'), ${sessionEvents.attempt})`;

/** The job of a run: run the agent, store its events, grade them, and publish run and report together. */
export function createRunJob(
  deps: Deps,
  { agents, queue, grader, reports, models, archives, host, judging, money, allow, userAgent }: Parts,
): JobHandler {
  const { db, config, now, log } = deps;
  const send = createAttempt(deps, { queue, models, archives, host, money, allow, userAgent });
  const [methodology] = listMethodologies(config.methodology);
  const getRow = (id: string) => {
    const row = db.select().from(runs).where(eq(runs.id, id)).get();
    if (!row) throw new Error(`no run for job ${id}`);
    return row;
  };

  const gradeOf = async (session: SessionId) => {
    try {
      return await grader.grade({ session, judging: null, methodology });
    } catch (error) {
      if (diskFault(error) !== null) throw error;
      log.error({ run: session.runId, err: error }, "could not grade session");
      throw new JobFailure(
        { cause: "infrastructure", detail: `the session could not be graded: ${String(error)}` },
        "never",
      );
    }
  };

  /** Judges (for agents with a model) and grades a finished session; returns what to store. */
  async function finish(run: typeof runs.$inferSelect, lease: Lease, attempt: number, stop: AbortSignal) {
    const session = { orgId: run.orgId, runId: run.id, attempt };
    const { version, kind } = agentOf(run).describe();
    if (kind === "model") await judging.judge(run, session, lease, stop);
    const grade = await gradeOf(session);
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

  /** The agent of a run. Throws a JobFailure if it is not available. */
  function agentOf({ agent: id }: typeof runs.$inferSelect): Agent {
    const agent = agents[id];
    const objection = agent ? objectionTo(agent) : null;
    if (agent && objection === null) return agent;
    const detail = `the agent ${id} is not available on this server${objection === null ? "" : `: ${objection}`}`;
    throw new JobFailure({ cause: "infrastructure", detail }, "never");
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

  /** The name of the model that answered last; null if none did. */
  function modelOf(session: SessionId): string | null {
    return lastUsage.get({ runId: session.runId, attempt: session.attempt })?.model ?? null;
  }

  /** 0 without rows; null if any cost is unknown. */
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

  return {
    started(tx, { subject, spent }) {
      tx.update(runs)
        .set({ status: "running", startedAt: sql`coalesce(${runs.startedAt}, ${now()})`, attempt: spent + 1 })
        .where(eq(runs.id, subject))
        .run();
      money.reserve(tx, getRow(subject));
    },

    async run(lease: Lease, stop: AbortSignal) {
      const run = getRow(lease.subject);
      const agent = agentOf(run);
      const attempt = judging.findStarted(run.id);
      if (attempt !== null) return finish(run, lease, attempt, stop);
      if (run.task.startUrls.length === 0)
        throw new JobFailure(
          {
            cause: "infrastructure",
            detail:
              "no start URL; give the prompt a provider with docs, additionalUrls or a URL in its text, or give the run a urlMap",
          },
          "never",
        );
      await send(run, agent, lease, stop);
      return finish(run, lease, lease.attempt, stop);
    },

    returned(tx, { subject }) {
      tx.update(runs).set({ status: "pending", reservedUsd: null }).where(eq(runs.id, subject)).run();
    },

    failed(tx, { subject }, { cause: failureCause, detail: failureDetail }) {
      tx.update(runs)
        .set({ status: "failed", failureCause, failureDetail, completedAt: now(), reservedUsd: null })
        .where(eq(runs.id, subject))
        .run();
    },

    costOf: ({ subject, attempt }) => spentUsd.get({ runId: subject, attempt })?.usd ?? null,
  };
}
