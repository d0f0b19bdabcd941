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
import { gradeSession } from "../grading/score.ts";
import type { Lease, Queue } from "../jobs/queue.ts";
import { JobFailure, type JobHandler } from "../jobs/runner.ts";
import type { Models } from "../models/models.ts";
import type { Gradings } from "../reports/gradings.ts";
import { isJudgeable, type Judging } from "../runs/judging.ts";
import { readSession } from "../runs/session.ts";

type Row = typeof regrades.$inferSelect;
type Parts = { models: Pick<Models, "getModel">; gradings: Gradings; judging: Judging; queue: Queue; commit: Commit };
/** What became of one report. */
type Came = "graded" | "unchanged" | "withoutEvents" | "notJudged";

const kind = "regrade";
/** A job ends after so long and another takes its place in the queue, so that runs that wait are not kept waiting. */
const batchMs = 5_000;

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
export function createRegradeJob(deps: Deps, { models, gradings, judging, queue, commit }: Parts): JobHandler {
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

  const findNext = (row: Row) =>
    db
      .select({ report: reports, run: runs })
      .from(reports)
      .innerJoin(runs, eq(runs.id, reports.runId))
      .where(meant(row, row.cursor))
      .orderBy(asc(reports.id))
      .limit(1)
      .get();

  /** Throws a JobFailure where it is not what was asked for any more. */
  function methodologyOf({ methodology: id, judge, hash }: Row): Methodology {
    const found = methodologies.find((each) => each.id === id);
    if (found && targetOf(found, judge).hash === hash) return found;
    const why = found
      ? "is another than when this was asked for; ask again"
      : "is not known any more; set EVALD_METHODOLOGY";
    throw new JobFailure(`infrastructure: methodology ${id} ${why}`, "never");
  }

  /** Counts money as soon as it is spent, whatever becomes of the answer. */
  function count(lease: Lease, costUsd: number | null): void {
    spent.set(keyOf(lease), (spent.get(keyOf(lease)) ?? 0) + (costUsd ?? 0));
    const set =
      costUsd === null
        ? { unpriced: sql`${regrades.unpriced} + 1` }
        : { spentUsd: sql`${regrades.spentUsd} + ${costUsd}` };
    tx(db, (t) => t.update(regrades).set(set).where(own(lease)).run());
  }

  /** What the judge may still cost; a call that nobody knows the cost of counts as the dearest. Throws a JobFailure where nothing is left. */
  function leftUsd(lease: Lease): number {
    const { orgId, maxUsd, spentUsd, unpriced, judge } = getRow(lease);
    const worst = unpriced === 0 ? 0 : priceOf(dearest, null, models.getModel(orgId as OrgId, judge ?? ""));
    const left = (maxUsd ?? 0) - spentUsd - unpriced * (worst ?? Number.POSITIVE_INFINITY);
    if (left > 0) return left;
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

  /** Grades one report again, unless it has all that is asked for. */
  async function regrade(
    { report, run }: NonNullable<ReturnType<typeof findNext>>,
    row: Row,
    methodology: Methodology,
    lease: Lease,
    stop: AbortSignal,
  ): Promise<Came> {
    const stored = readSession(db, { orgId: run.orgId, runId: run.id, attempt: report.attempt });
    // The first is dropped first.
    if (stored[0]?.seq !== 0) return "withoutEvents";
    const { session, judging: first } = splitJudging(stored);
    const known = gradings.rowsOf(report);
    if (row.judge === null || !isJudgeable(session)) {
      const shown = known.find(({ id }) => id === (report.gradingId ?? report.id));
      const judged = shown?.judging ?? null;
      const grade = gradeSession([...session, ...(judged ?? first)], methodology);
      const { hash } = grade.methodology;
      let changed = true;
      await store(lease, (t) => {
        if (known.some((each) => each.hash === hash)) changed = gradings.showAgain(t, report.id, hash);
        else gradings.addGrading(t, report.id, grade, 1, judged);
      });
      return changed ? "graded" : "unchanged";
    }
    const there = new Set(known.filter(({ hash }) => hash === row.hash).map(({ repeat }) => repeat));
    const missing = Array.from({ length: row.repeats }, (_, i) => i + 1).filter((repeat) => !there.has(repeat));
    let came: Came = "unchanged";
    for (const repeat of missing) {
      const judge = { model: row.judge, maxUsd: leftUsd(lease) };
      const events: SessionEvent[] = await judging.judgeAgain(run, session, judge, lease, stop, (usd) =>
        count(lease, usd),
      );
      const grade = gradeSession([...session, ...events], methodology);
      if (grade.judge?.confidence == null) return "notJudged";
      await store(lease, (t) => gradings.addGrading(t, report.id, grade, repeat, events));
      came = "graded";
    }
    if (missing.length === 0)
      await store(lease, (t) => {
        if (gradings.showAgain(t, report.id, row.hash)) came = "graded";
      });
    return came;
  }

  return {
    begun(t, lease) {
      t.update(regrades).set({ status: "running" }).where(own(lease)).run();
    },

    async run(lease, stop) {
      const methodology = methodologyOf(getRow(lease));
      const until = performance.now() + batchMs;
      for (let more = true; more; ) {
        const row = getRow(lease);
        const next = findNext(row);
        if (!next)
          return (t) => {
            t.update(regrades).set({ status: "completed", completedAt: now() }).where(own(lease)).run();
          };
        const began = performance.now();
        const came = await regrade(next, row, methodology, lease, stop);
        const counted = regrades[came];
        await store(lease, (t) => {
          const set = { cursor: next.report.id, [came]: sql`${counted} + 1` };
          t.update(regrades).set(set).where(own(lease)).run();
        });
        // As much time for everything else, but for what a model took.
        await Bun.sleep(row.judge === null ? performance.now() - began : 0);
        stop.throwIfAborted();
        more = performance.now() < until;
      }
      log.debug({ regrade: idOf(lease) }, "a batch of a regrade is done");
      return (t) => {
        const row = getRow(lease);
        const batch = row.batch + 1;
        t.update(regrades).set({ batch, status: "pending" }).where(own(lease)).run();
        queue.enqueue(t, jobOf({ ...row, batch }));
      };
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
