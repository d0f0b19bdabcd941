import type { SessionEvent } from "../agents/agent.ts";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import type { Grade } from "../grading/grade.ts";
import { splitJudging } from "../grading/judge/judge.ts";
import type { Methodology } from "../grading/methodology.ts";
import type { Lease } from "../jobs/queue.ts";
import { isHeld } from "../jobs/queue.ts";
import type { Grader } from "../reports/grader.ts";
import { addGrading, gradingRowsOf, showGradingAgain } from "../reports/gradings.ts";
import type { ReportRow } from "../reports/report-row.ts";
import { hasEvents, readSessionInTurns, type SessionId } from "../reports/session-events.ts";
import type { Judging } from "../runs/judge-call.ts";
import { isJudgeable, rejudgeSession } from "../runs/judging.ts";
import type { RunRow } from "../runs/run-row.ts";
import { countJudgeCost, judgeBudgetLeft } from "./judge-budget.ts";
import { getRegradeRow, type RegradeRow } from "./regrade-row.ts";

/** Result for one report. */
export type RegradeResult = "graded" | "unchanged" | "withoutEvents" | "failed";

type Judged = {
  run: RunRow;
  session: { id: SessionId; last: SessionEvent };
  judge: { model: string; maxUsd: number };
  row: RegradeRow;
};

/** Stores something if the lease is still valid, else throws. */
export async function storeIfHeld(ctx: Context, lease: Lease, work: (tx: Tx) => void): Promise<void> {
  const isStillHeld = await ctx.commit((tx) => {
    if (!isHeld(ctx, lease)) return false;
    work(tx);
    return true;
  });
  if (!isStillHeld) throw new Error("the job is no longer held by this process");
}

/**
 * Regrades one report, unless it already has the requested grading. A judgment is stored as soon as it arrives,
 * everything else by `write`.
 */
export async function regradeReport(
  ctx: Context,
  host: Judging & { grader: Grader },
  { report, run }: { report: ReportRow; run: RunRow },
  row: RegradeRow,
  methodology: Methodology,
  lease: Lease,
  stop: AbortSignal,
): Promise<{ result: RegradeResult; write?: (tx: Tx) => void }> {
  const id = { orgId: run.orgId, runId: run.id, attempt: report.attempt };
  if (!hasEvents(ctx.db, id)) return { result: "withoutEvents" };
  const session = row.judge === null ? [] : splitJudging(await readSessionInTurns(ctx.db, id)).session;
  const known = gradingRowsOf(ctx, report);
  /** Shows a grading that already exists. */
  const again = (hash: string) =>
    report.gradingPinned || report.methodology.hash === hash
      ? { result: "unchanged" as const }
      : { result: "graded" as const, write: (tx: Tx) => showGradingAgain(ctx, tx, report.id, hash) };
  const last = session.at(-1);
  if (row.judge === null || !last || !isJudgeable(session)) {
    const shown = known.find(({ id }) => id === (report.gradingId ?? report.id));
    const judged = shown?.judging ?? null;
    const grade = await gradeOf(ctx, host.grader, id, judged, methodology);
    if (grade === null) return { result: "failed" };
    if (known.some(({ hash }) => hash === grade.methodology.hash)) return again(grade.methodology.hash);
    return { result: "graded", write: (tx) => addGrading(ctx, tx, report.id, grade, 1, judged) };
  }
  const there = new Set(known.filter(({ hash }) => hash === row.hash).map(({ repeat }) => repeat));
  const missing = Array.from({ length: row.repeats }, (_, i) => i + 1).filter((repeat) => !there.has(repeat));
  for (const repeat of missing) {
    const judge = { model: row.judge, maxUsd: judgeBudgetLeft(ctx, getRegradeRow(ctx.db, row.id)) };
    const events = await judgeAgain(ctx, host, { run, session: { id, last }, judge, row }, lease, stop);
    const grade = await gradeOf(ctx, host.grader, id, events, methodology);
    if (grade?.judge?.confidence == null) return { result: "failed" };
    await storeIfHeld(ctx, lease, (tx) => addGrading(ctx, tx, report.id, grade, repeat, events));
  }
  return missing.length > 0 ? { result: "graded" } : again(row.hash);
}

/** Throws if the costs could not be stored. */
async function judgeAgain(
  ctx: Context,
  host: Judging,
  { run, session, judge, row }: Judged,
  lease: Lease,
  stop: AbortSignal,
): Promise<SessionEvent[]> {
  const costs: Promise<void>[] = [];
  const onSpent = (usd: number | null) => {
    const stored = countJudgeCost(ctx, lease, row, usd);
    // Thrown below, once the judge is done.
    stored.catch(() => {});
    costs.push(stored);
  };
  try {
    return await rejudgeSession(ctx, host, run, session, judge, lease, stop, onSpent);
  } finally {
    await Promise.all(costs);
  }
}

/** null: events from an import can't be read. Without `judging`, by the stored judgment. */
async function gradeOf(
  ctx: Context,
  grader: Grader,
  session: SessionId,
  judging: SessionEvent[] | null,
  methodology: Methodology,
): Promise<Grade | null> {
  try {
    return await grader.grade({ session, judging, methodology });
  } catch (error) {
    ctx.log.error({ run: session.runId, err: error }, "could not regrade session");
    return null;
  }
}
