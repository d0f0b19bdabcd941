import { and, desc, eq, sql } from "drizzle-orm";
import type { Agent } from "../agents/agent.ts";
import { objectionTo } from "../agents/choice.ts";
import type { Context } from "../context.ts";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { bound, literal, prepared } from "../db/prepared.ts";
import { runs, sessionEvents } from "../db/tables/runs.ts";
import { listMethodologies } from "../grading/methodology.ts";
import { JobFailure, type JobHandler } from "../jobs/handler.ts";
import type { Lease } from "../jobs/queue.ts";
import type { Grader } from "../reports/grader.ts";
import { insertReport } from "../reports/report-writer.ts";
import type { SessionId } from "../reports/session-events.ts";
import type { RunAnnouncements } from "./announcements.ts";
import { type AttemptParts, createAttempt } from "./attempt.ts";
import { createContexts } from "./context-digest.ts";
import type { Judging } from "./judging.ts";
import type { RunRow } from "./run-row.ts";
import { reserveBudget } from "./spending.ts";

type Parts = AttemptParts & {
  agents: Record<string, Agent>;
  grader: Grader;
  judging: Judging;
  announceEnd: RunAnnouncements["announceEnd"];
};

/** The attempt with the session of a run, and the version of the agent that ran; null: unknown. */
type Done = { attempt: number; version: string | null };

const cost = sql`json_extract(${sessionEvents.data}, '$.costUsd')`;
const paidBy = sql`coalesce(json_extract(${sessionEvents.data}, '$.paidBy'), ${sessionEvents.attempt})`;

const prepareRun = ({ db }: Pick<Context, "db">) =>
  prepared(
    db
      .select()
      .from(runs)
      .where(eq(runs.id, sql.placeholder("id"))),
  );

/** The job of a run: run the agent, store its events, grade them, and publish run and report together. */
export function createRunJob(
  ctx: Context,
  { agents, grader, gateway, place, judging, announceEnd, allow, userAgent }: Parts,
): JobHandler {
  const { db, config, now, log } = ctx;
  const send = createAttempt(ctx, { gateway, place, allow, userAgent });
  const contextOf = createContexts(ctx);
  const [methodology] = listMethodologies(config.methodology);
  const runById = prepareRun(ctx);
  const getRow = (id: string) => {
    const found = runById.get({ id });
    if (!found) throw new Error(`no run for job ${id}`);
    return found;
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
  async function finish(run: RunRow, lease: Lease, { attempt, version }: Done, stop: AbortSignal) {
    const session = { orgId: run.orgId, runId: run.id, attempt };
    const { version: newest, kind } = agentOf(run).describe();
    if (kind === "model") await judging.judge(run, session, lease, stop);
    const grade = await gradeOf(session);
    log.info({ run: run.id, outcome: grade.outcome, score: grade.score }, "run graded");
    const done = {
      status: "completed",
      agentVersion: version ?? newest,
      contextDigest: kind === "model" ? contextOf(session, run.task) : null,
      model: modelOf(session) ?? run.model,
    } as const;
    return (tx: Tx) => {
      tx.update(runs)
        .set({ ...done, completedAt: now(), reservedUsd: null, waitingFor: null })
        .where(eq(runs.id, run.id))
        .run();
      insertReport(ctx, tx, run, attempt, grade);
      announceEnd(tx, run.id, null);
    };
  }

  /** The agent of a run. Throws a JobFailure if it is not available. */
  function agentOf({ agent: id }: RunRow): Agent {
    const agent = agents[id];
    const objection = agent ? objectionTo(agent) : null;
    if (agent && objection === null) return agent;
    const detail = `the agent ${id} is not available on this server${objection === null ? "" : `: ${objection}`}`;
    throw new JobFailure({ cause: "infrastructure", detail }, "never");
  }

  const lastUsage = prepared(
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

  /** The name of the model that answered last; null if none did. */
  function modelOf(session: SessionId): string | null {
    return lastUsage.get({ runId: session.runId, attempt: session.attempt })?.model ?? null;
  }

  /** 0 without rows; null if any cost is unknown. */
  const spentUsd = prepared(
    db
      .select({
        usd: sql<number | null>`case when count(*) = count(${cost}) then coalesce(sum(${cost}), 0) end`,
      })
      .from(sessionEvents)
      .where(
        and(
          eq(sessionEvents.runId, bound("runId")),
          eq(paidBy, bound("attempt")),
          sql`${sessionEvents.type} = 'usage'`,
        ),
      ),
  );

  return {
    started(tx, { subject, spent }) {
      tx.update(runs)
        .set({ status: "running", startedAt: sql`coalesce(${runs.startedAt}, ${now()})`, attempt: spent + 1 })
        .where(eq(runs.id, subject))
        .run();
      reserveBudget(ctx, tx, getRow(subject));
    },

    async run(lease: Lease, stop: AbortSignal) {
      const run = getRow(lease.subject);
      const description = agentOf(run).describe();
      const attempt = judging.findStarted(run.id);
      if (attempt !== null) return finish(run, lease, { attempt, version: null }, stop);
      if (run.task.startUrls.length === 0)
        throw new JobFailure(
          {
            cause: "infrastructure",
            detail:
              "no start URL; give the prompt a provider with docs, additionalUrls or a URL in its text, or give the run a urlMap",
          },
          "never",
        );
      const version = await send(run, description, lease, stop);
      return finish(run, lease, { attempt: lease.attempt, version }, stop);
    },

    returned(tx, { subject }) {
      tx.update(runs).set({ status: "pending", reservedUsd: null, waitingFor: null }).where(eq(runs.id, subject)).run();
    },

    failed(tx, { subject }, failure) {
      const { cause: failureCause, detail: failureDetail } = failure;
      tx.update(runs)
        .set({ status: "failed", failureCause, failureDetail, completedAt: now(), reservedUsd: null, waitingFor: null })
        .where(eq(runs.id, subject))
        .run();
      announceEnd(tx, subject, failure);
    },

    costOf: ({ subject, attempt }) => spentUsd.get({ runId: subject, attempt })?.usd ?? null,
  };
}
