import { and, asc, eq, sql } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import type { Db, Tx } from "../db/open.ts";
import { literal, statement } from "../db/prepared.ts";
import { jobs } from "../db/tables/jobs.ts";
import { orgs } from "../db/tables/orgs.ts";
import { pauses } from "../db/tables/pauses.ts";
import { runs, type WaitingFor } from "../db/tables/runs.ts";
import { notFound } from "../errors.ts";
import { freeJob, holdJob } from "../jobs/queue.ts";
import { ownMember } from "../schema.ts";

/** What an operator pauses: an organization, by its ID or name, or an agent, by its ID. */
type PauseKey = { kind: "agent" | "organization"; subject: string };
export type PauseRow = typeof pauses.$inferSelect;
/** A run with its organization and agent, which a pause can concern. */
type PausableRun = { id: string; orgId: string; agent: string };

const pauseOf = statement((db) =>
  db
    .select({ kind: pauses.kind })
    .from(pauses)
    .where(
      sql`(${pauses.kind} = 'organization' and ${pauses.subject} = ${sql.placeholder("orgId")})
        or (${pauses.kind} = 'agent' and ${pauses.subject} = ${sql.placeholder("agent")})`,
    )
    // A pause of the organization comes first.
    .orderBy(sql`${pauses.kind} desc`)
    .limit(literal(1)),
);

/** All pauses, oldest first. */
export const listPauses = (db: Db): PauseRow[] => db.select().from(pauses).orderBy(asc(pauses.createdAt)).all();

/** What a run waits for because of a pause; null: it isn't paused. */
function waitingForResume(db: Db, run: PausableRun): WaitingFor | null {
  const kind = pauseOf(db).get({ orgId: run.orgId, agent: run.agent })?.kind;
  if (kind === undefined) return null;
  const what = kind === "organization" ? ("paused_organization" as const) : ("paused_agent" as const);
  return { what, agent: run.agent, sandbox: false, labels: [], failsAt: null };
}

/** Holds back a queued run whose organization or agent is paused. Call it in the transaction that queues its job. */
export function holdIfPaused(ctx: Context, tx: Tx, run: PausableRun): void {
  const waitingFor = waitingForResume(ctx.db, run);
  if (waitingFor === null) return;
  holdJob(tx, { kind: "run", subject: run.id });
  tx.update(runs).set({ waitingFor }).where(eq(runs.id, run.id)).run();
}

/**
 * Pauses the runs of an organization or with an agent. Runs that have not started wait until `resumeRuns`. Running ones end as usual. A second pause
 * replaces the reason. `by`: who pauses the runs. Throws not_found.
 */
export async function pauseRuns(ctx: Context, key: PauseKey, reason: string | null, by: string): Promise<PauseRow> {
  const { subject, name } = toSubject(ctx, key);
  return await ctx.commit((tx) => {
    const pause = tx
      .insert(pauses)
      .values({ kind: key.kind, subject, reason, pausedBy: by, createdAt: ctx.now() })
      .onConflictDoUpdate({ target: [pauses.kind, pauses.subject], set: { reason, pausedBy: by } })
      .returning()
      .get();
    for (const run of listJobs(tx, "queued", pause)) holdIfPaused(ctx, tx, run);
    recordAudit(ctx, orgIn(pause), "queue.paused", { id: subject, name: `${key.kind} ${name}` });
    return pause;
  });
}

/** Resumes the runs of an organization or with an agent. Runs that no other pause holds back are queued again. Throws not_found. */
export async function resumeRuns(ctx: Context, key: PauseKey): Promise<PauseRow> {
  const { subject, name } = toSubject(ctx, key);
  const pause = await ctx.commit((tx) => {
    const [row] = tx
      .delete(pauses)
      .where(and(eq(pauses.kind, key.kind), eq(pauses.subject, subject)))
      .returning()
      .all();
    if (!row) throw notFound(`The ${key.kind} ${name} is not paused.`);
    for (const run of listJobs(tx, "held", row)) {
      const waitingFor = waitingForResume(ctx.db, run);
      if (waitingFor === null) freeJob(tx, { kind: "run", subject: run.id });
      tx.update(runs).set({ waitingFor }).where(eq(runs.id, run.id)).run();
    }
    recordAudit(ctx, orgIn(row), "queue.resumed", { id: subject, name: `${key.kind} ${name}` });
    return row;
  });
  ctx.signals.jobQueued.emit();
  return pause;
}

/** The organization that a pause concerns; null: all. */
const orgIn = ({ kind, subject }: PauseKey): OrgId | null => (kind === "organization" ? (subject as OrgId) : null);

/** The runs in a state whose jobs a pause concerns. */
const listJobs = (tx: Tx, state: "queued" | "held", { kind, subject }: PauseRow): PausableRun[] =>
  tx
    .select({ id: runs.id, orgId: runs.orgId, agent: runs.agent })
    .from(jobs)
    .innerJoin(runs, eq(runs.id, jobs.subject))
    .where(
      and(
        // This condition is the same as in the partial indexes.
        sql`${jobs.state} = ${sql.raw(`'${state}'`)}`,
        eq(jobs.pool, "runs"),
        // Without the `+`, SQLite would use an index that also has all ended jobs.
        sql`+${jobs.kind} = 'run'`,
        kind === "organization" ? eq(jobs.orgId, subject) : eq(runs.agent, subject),
      ),
    )
    .all();

/** The ID that a pause is stored with, and its name. Throws not_found. */
function toSubject(ctx: Context, { kind, subject }: PauseKey): { subject: string; name: string } {
  if (kind === "agent") {
    if (ownMember(ctx.agents, subject) === undefined) throw notFound(`No agent has the ID ${JSON.stringify(subject)}.`);
    return { subject, name: subject };
  }
  const row =
    ctx.db.select({ id: orgs.id, name: orgs.name }).from(orgs).where(eq(orgs.id, subject.toLowerCase())).get() ??
    ctx.db.select({ id: orgs.id, name: orgs.name }).from(orgs).where(eq(orgs.name, subject)).get();
  if (!row) throw notFound(`No organization has the name or ID ${JSON.stringify(subject)}.`);
  return { subject: row.id, name: row.name };
}
