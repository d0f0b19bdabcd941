import type { SessionEvent } from "../agents/agent.ts";
import type { Context } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import type { Grade } from "../grading/grade.ts";
import { splitJudging } from "../grading/judge/judge.ts";
import type { Methodology } from "../grading/methodology.ts";
import { isLeaseHeld, type Lease } from "../jobs/queue.ts";
import type { Grader } from "../reports/grader.ts";
import { addGrading, showGradingByHash } from "../reports/gradings.ts";
import type { ReportRow } from "../reports/report-row.ts";
import { hasEvents, readSessionInTurns, type SessionId } from "../reports/session-events.ts";
import { listGradingRows } from "../reports/stored-grade.ts";
import { isJudgeable, type Judging } from "../runs/judging.ts";
import type { RunRow } from "../runs/run-row.ts";
import type { JudgeBudget } from "./judge-budget.ts";
import { getRegradeRow, type RegradeRow } from "./regrade-row.ts";

/** Result for one report. */
export type RegradeResult = "graded" | "unchanged" | "withoutEvents" | "failed";

type Parts = {
  grader: Grader;
  judging: Judging;
  commit: Commit;
  budget: JudgeBudget;
};

type Judged = {
  run: RunRow;
  session: { id: SessionId; last: SessionEvent };
  judge: { model: string; maxUsd: number };
  row: RegradeRow;
};

/** Regrades reports, one at a time. */
export function createReportRegrade(ctx: Context, parts: Parts) {
  const { db, log } = ctx;
  const { grader, judging, commit, budget } = parts;

  /** Stores something if the lease is still valid, else throws. */
  async function store(lease: Lease, work: (tx: Tx) => void): Promise<void> {
    const held = await commit((tx) => {
      if (!isLeaseHeld(ctx, lease)) return false;
      work(tx);
      return true;
    });
    if (!held) throw new Error("the job is no longer held by this process");
  }

  /**
   * Regrades one report, unless it already has the requested grading. A judgment is stored as soon as it arrives,
   * everything else by `write`.
   */
  async function regrade(
    { report, run }: { report: ReportRow; run: RunRow },
    row: RegradeRow,
    methodology: Methodology,
    lease: Lease,
    stop: AbortSignal,
  ): Promise<{ result: RegradeResult; write?: (tx: Tx) => void }> {
    const id = { orgId: run.orgId, runId: run.id, attempt: report.attempt };
    if (!hasEvents(db, id)) return { result: "withoutEvents" };
    const session = row.judge === null ? [] : splitJudging(await readSessionInTurns(db, id)).session;
    const known = listGradingRows(db, report);
    /** Shows a grading that already exists. */
    const again = (hash: string) =>
      report.gradingPinned || report.methodology.hash === hash
        ? { result: "unchanged" as const }
        : { result: "graded" as const, write: (tx: Tx) => showGradingByHash(ctx, tx, report.id, hash) };
    const last = session.at(-1);
    if (row.judge === null || !last || !isJudgeable(session)) {
      const shown = known.find(({ id }) => id === (report.gradingId ?? report.id));
      const judged = shown?.judging ?? null;
      const grade = await gradeOf(id, judged, methodology);
      if (grade === null) return { result: "failed" };
      if (known.some(({ hash }) => hash === grade.methodology.hash)) return again(grade.methodology.hash);
      return { result: "graded", write: (tx) => addGrading(ctx, tx, report.id, grade, 1, judged) };
    }
    const there = new Set(known.filter(({ hash }) => hash === row.hash).map(({ repeat }) => repeat));
    const missing = Array.from({ length: row.repeats }, (_, i) => i + 1).filter((repeat) => !there.has(repeat));
    for (const repeat of missing) {
      const judge = { model: row.judge, maxUsd: budget.leftUsd(getRegradeRow(db, row.id)) };
      const events = await judgeAgain({ run, session: { id, last }, judge, row }, lease, stop);
      const grade = await gradeOf(id, events, methodology);
      if (grade?.judge?.confidence == null) return { result: "failed" };
      await store(lease, (tx) => addGrading(ctx, tx, report.id, grade, repeat, events));
    }
    return missing.length > 0 ? { result: "graded" } : again(row.hash);
  }

  /** Throws if the costs could not be stored. */
  async function judgeAgain(
    { run, session, judge, row }: Judged,
    lease: Lease,
    stop: AbortSignal,
  ): Promise<SessionEvent[]> {
    const costs: Promise<void>[] = [];
    const onSpent = (usd: number | null) => {
      const stored = budget.count(lease, row, usd);
      // Thrown below, once the judge is done.
      stored.catch(() => {});
      costs.push(stored);
    };
    try {
      return await judging.judgeAgain(run, session, judge, lease, stop, onSpent);
    } finally {
      await Promise.all(costs);
    }
  }

  /** null: events from an import can't be read. Without `judging`, by the stored judgment. */
  async function gradeOf(
    session: SessionId,
    judging: SessionEvent[] | null,
    methodology: Methodology,
  ): Promise<Grade | null> {
    try {
      return await grader.grade({ session, judging, methodology });
    } catch (error) {
      log.error({ run: session.runId, err: error }, "could not regrade session");
      return null;
    }
  }

  return { regrade, store };
}
