import { and, asc, eq, gt, gte, lt, sql } from "drizzle-orm";
import type { SessionEvent } from "../agents/agent.ts";
import { priceOf } from "../agents/gateway/prices.ts";
import type { Commit } from "../db/commit.ts";
import { type Tx, tx } from "../db/open.ts";
import { firstIdOf } from "../db/rows.ts";
import { regrades, reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { splitJudging } from "../grading/judge.ts";
import { listMethodologies, type Methodology, stampOf } from "../grading/methodology.ts";
import { rubricHash } from "../grading/rubric.ts";
import { type Grade, gradeSession } from "../grading/score.ts";
import type { Lease, Queue } from "../jobs/queue.ts";
import { JobFailure, type JobHandler } from "../jobs/runner.ts";
import type { Models } from "../models/models.ts";
import type { Gradings } from "../reports/gradings.ts";
import { isJudgeable, type Judging } from "../runs/judging.ts";
import { readSession } from "../runs/session.ts";
import { type Money, pay } from "../runs/spending.ts";

type Row = typeof regrades.$inferSelect;
type Parts = {
  models: Pick<Models, "getModel">;
  money: Pick<Money, "getSpending" | "objection">;
  gradings: Gradings;
  judging: Judging;
  queue: Queue;
  commit: Commit;
};
/** What became of one report. */
type Came = "graded" | "unchanged" | "withoutEvents" | "failed";
/** The last report that was dealt with, and how many came to what since it was noted. */
type Progress = Record<Came, number> & { cursor: string };

const from = (cursor: string): Progress => ({ cursor, graded: 0, unchanged: 0, withoutEvents: 0, failed: 0 });

const kind = "regrade";
/** A job ends after so long and another takes its place in the queue, so that runs that wait are not kept waiting. */
const batchMs = 5_000;
/** How often it is noted how far it is, and how long it works at a stretch. */
const storeMs = 250;
const restMs = 10;
/** Reports that are read at once. */
const pageRows = 50;

/** More than a judge is ever sent, and all that it may answer. */
const dearest = { input: 130_000, output: 16_000, cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, reasoning: 0 };

/** The job of a regrade: its next batch. */
export const jobOf = ({ id, orgId, batch }: Pick<Row, "id" | "orgId" | "batch">) => ({
  kind,
  subject: `${id}/${batch}`,
  orgId,
  host: "",
  maxAttempts: 3,
});

/** The stamp that a regrade gives to what it judges or, without a judge, to what no model judged. */
export const targetOf = (methodology: Methodology, judge: string | null) =>
  stampOf(methodology, judge === null ? null : { model: judge, rubric: rubricHash });

/** The reports that a regrade is about, after a report of those. Ids follow time, and are what the index is ordered by. */
export const meant = ({ orgId, promptId, since, until }: Row, after = "") =>
  and(
    eq(reports.orgId, orgId),
    promptId === null ? undefined : eq(reports.promptId, promptId),
    gte(reports.id, firstIdOf(since)),
    lt(reports.id, firstIdOf(until)),
    gt(reports.id, after),
  );

/** The job behind a regrade: one report after another, each stored before the next, so that an end of the process costs one at most. */
export function createRegradeJob(deps: Deps, { models, money, gradings, judging, queue, commit }: Parts): JobHandler {
  const { db, config, now, log } = deps;
  const methodologies = listMethodologies(config.methodology);
  const idOf = ({ subject }: Pick<Lease, "subject">) => subject.split("/")[0] as string;
  const own = (lease: Lease) => eq(regrades.id, idOf(lease));
  /** What attempts of this process have spent, in USD. */
  const spent = new Map<string, number>();
  const keyOf = ({ id, attempt }: Lease) => `${id} ${attempt}`;

  function getRow(lease: Lease): Row {
    const row = db.select().from(regrades).where(own(lease)).get();
    if (!row) throw new Error(`job without its regrade ${lease.subject}`);
    return row;
  }

  const listNext = (row: Row, after: string) =>
    db
      .select({ report: reports, run: runs })
      .from(reports)
      .innerJoin(runs, eq(runs.id, reports.runId))
      .where(meant(row, after))
      .orderBy(asc(reports.id))
      .limit(pageRows)
      .all();

  /** Throws a JobFailure where it is not what was asked for any more. */
  function methodologyOf({ methodology: id, judge, hash }: Row): Methodology {
    const found = methodologies.find((each) => each.id === id);
    if (found && targetOf(found, judge).hash === hash) return found;
    const why = found
      ? "is another than when this was asked for; ask again"
      : "is not known to the service; start it with EVALD_METHODOLOGY";
    throw new JobFailure(`infrastructure: methodology ${id} ${why}`, "never");
  }

  /** Counts money as soon as it is spent, whatever becomes of the answer. */
  function count(lease: Lease, orgId: string, costUsd: number | null): void {
    spent.set(keyOf(lease), (spent.get(keyOf(lease)) ?? 0) + (costUsd ?? 0));
    const set =
      costUsd === null
        ? { unpriced: sql`${regrades.unpriced} + 1` }
        : { spentUsd: sql`${regrades.spentUsd} + ${costUsd}` };
    tx(db, (t) => {
      t.update(regrades).set(set).where(own(lease)).run();
      pay(t, orgId, now(), costUsd);
    });
  }

  /**
   * What the judge may still cost, by the request and by the month of its organisation; a call that nobody knows the cost of counts as the
   * dearest. Throws a JobFailure where nothing is left.
   */
  function leftUsd(lease: Lease): number {
    const { orgId, maxUsd, spentUsd, unpriced, judge } = getRow(lease);
    const org = orgId as OrgId;
    const month = money.getSpending(org);
    const free = month.maxUsdAMonth === null ? null : month.maxUsdAMonth - month.spentUsd - month.reservedUsd;
    if (free !== null && free <= 0)
      throw new JobFailure(
        `budget: ${money.objection(org) ?? "runs hold the rest of the organisation's month"}`,
        "never",
      );
    const worst = unpriced === 0 ? 0 : priceOf(dearest, null, models.getModel(org, judge ?? ""));
    const left = (maxUsd ?? 0) - spentUsd - unpriced * (worst ?? Number.POSITIVE_INFINITY);
    if (left > 0) return Math.min(left, free ?? left);
    const unknown = unpriced === 0 ? "" : `, and ${unpriced} calls whose cost nobody knows`;
    throw new JobFailure(
      `budget: the judge has cost $${spentUsd.toFixed(4)}${unknown}, of the $${maxUsd} that it may; ask again with more, and what is graded is not graded twice`,
      "never",
    );
  }

  /** Stores something if the lease still counts. Throws where it does not. */
  async function store(lease: Lease, work: (t: Tx) => void): Promise<void> {
    const held = await commit((t) => {
      if (!queue.holds(lease)) return false;
      work(t);
      return true;
    });
    if (!held) throw new Error("the job is held by nobody or another");
  }

  /** Grades one report again, unless it has all that is asked for. What a model said is stored as it comes, all else by `write`. */
  async function regrade(
    { report, run }: ReturnType<typeof listNext>[number],
    row: Row,
    methodology: Methodology,
    lease: Lease,
    stop: AbortSignal,
  ): Promise<{ came: Came; write?: (t: Tx) => void }> {
    const stored = readSession(db, { orgId: run.orgId, runId: run.id, attempt: report.attempt });
    // The first is dropped first.
    if (stored[0]?.seq !== 0) return { came: "withoutEvents" };
    const { session, judging: first } = splitJudging(stored);
    const known = gradings.rowsOf(report);
    /** Shows what is there already. */
    const again = (hash: string) =>
      report.gradingPinned || report.methodology.hash === hash
        ? { came: "unchanged" as const }
        : { came: "graded" as const, write: (t: Tx) => gradings.showAgain(t, report.id, hash) };
    if (row.judge === null || !isJudgeable(session)) {
      const shown = known.find(({ id }) => id === (report.gradingId ?? report.id));
      const judged = shown?.judging ?? null;
      const grade = gradeOf([...session, ...(judged ?? first)], methodology, run.id);
      if (grade === null) return { came: "failed" };
      if (known.some(({ hash }) => hash === grade.methodology.hash)) return again(grade.methodology.hash);
      return { came: "graded", write: (t) => gradings.addGrading(t, report.id, grade, 1, judged) };
    }
    const there = new Set(known.filter(({ hash }) => hash === row.hash).map(({ repeat }) => repeat));
    const missing = Array.from({ length: row.repeats }, (_, i) => i + 1).filter((repeat) => !there.has(repeat));
    for (const repeat of missing) {
      const judge = { model: row.judge, maxUsd: leftUsd(lease) };
      const onSpent = (usd: number | null) => count(lease, run.orgId, usd);
      const events: SessionEvent[] = await judging.judgeAgain(run, session, judge, lease, stop, onSpent);
      const grade = gradeOf([...session, ...events], methodology, run.id);
      if (grade?.judge?.confidence == null) return { came: "failed" };
      await store(lease, (t) => gradings.addGrading(t, report.id, grade, repeat, events));
    }
    return missing.length > 0 ? { came: "graded" } : again(row.hash);
  }

  /** null: events that an import brought cannot be read. */
  function gradeOf(events: SessionEvent[], methodology: Methodology, runId: string): Grade | null {
    try {
      return gradeSession(events, methodology);
    } catch (error) {
      log.error({ run: runId, err: error }, "a session could not be graded again");
      return null;
    }
  }

  /** Notes how far a regrade is. */
  function advance(t: Tx, lease: Lease, { cursor, ...counts }: Progress): void {
    const added = Object.entries(counts).map(([name, n]) => [name, sql`${regrades[name as Came]} + ${n}`]);
    t.update(regrades)
      .set({ cursor, ...Object.fromEntries(added) })
      .where(own(lease))
      .run();
  }

  return {
    begun(t, lease) {
      t.update(regrades).set({ status: "running" }).where(own(lease)).run();
    },

    async run(lease, stop) {
      const row = getRow(lease);
      const methodology = methodologyOf(row);
      const began = performance.now();
      let [storedAt, restedAt] = [began, began];
      let progress = from(row.cursor);
      for (;;) {
        const page = listNext(row, progress.cursor);
        for (const next of page) {
          const { came, write } = await regrade(next, row, methodology, lease, stop);
          progress = { ...progress, cursor: next.report.id, [came]: progress[came] + 1 };
          if (write || row.judge !== null || performance.now() - storedAt > storeMs) {
            const reached = progress;
            await store(lease, (t) => {
              write?.(t);
              advance(t, lease, reached);
            });
            progress = from(reached.cursor);
            storedAt = performance.now();
          }
          // As much time for everything else.
          if (performance.now() - restedAt > restMs) {
            await Bun.sleep(row.judge === null ? performance.now() - restedAt : 0);
            restedAt = performance.now();
          }
          stop.throwIfAborted();
          if (performance.now() - began > batchMs)
            return (t) => {
              advance(t, lease, progress);
              const batch = row.batch + 1;
              t.update(regrades).set({ batch, status: "pending" }).where(own(lease)).run();
              queue.enqueue(t, jobOf({ ...row, batch }));
            };
        }
        if (page.length < pageRows)
          return (t) => {
            advance(t, lease, progress);
            t.update(regrades).set({ status: "completed", completedAt: now() }).where(own(lease)).run();
          };
      }
    },

    returned(t, lease) {
      t.update(regrades).set({ status: "pending" }).where(own(lease)).run();
    },

    failed(t, lease, failureReason) {
      t.update(regrades).set({ status: "failed", failureReason, completedAt: now() }).where(own(lease)).run();
    },

    costOf: (lease) => spent.get(keyOf(lease)) ?? (getRow(lease).judge === null ? 0 : null),
  };
}
