import type { SessionEvent } from "../agents/agent.ts";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import type { Grade } from "../grading/grade.ts";
import { splitJudging } from "../grading/judge/judge.ts";
import type { Methodology } from "../grading/methodology.ts";
import { isLeaseHeld, type Lease } from "../jobs/queue.ts";
import { gradeStored } from "../reports/grader.ts";
import { addGrading, showGradingAgain } from "../reports/gradings.ts";
import type { ReportRow } from "../reports/report-row.ts";
import { hasEvents, readSessionInBatches, type SessionId } from "../reports/session-events.ts";
import { type GradingRow, listGradingRows, shownGradingIdOf } from "../reports/stored-grade.ts";
import { isJudgeable, type Rejudging, rejudgeSession } from "../runs/judging.ts";
import type { RunRow } from "../runs/run-row.ts";
import { getJudgeBudget, recordJudgeCost } from "./judge-budget.ts";
import { getRegradeRow, type RegradeRow } from "./regrade-row.ts";

/** Result for one report. */
export type RegradeResult = "graded" | "unchanged" | "withoutEvents" | "failed";

/** A report in a batch of a regrade. */
type RegradeItem = {
  report: ReportRow;
  run: RunRow;
  regrade: RegradeRow;
  methodology: Methodology;
  lease: Lease;
  stop: AbortSignal;
};

/** `write`: stores the rest of the result. */
type RegradeOutcome = { result: RegradeResult; write?: (tx: Tx) => void };

/** Regrades one report, unless it already has the requested grading. Judgments are stored as soon as they arrive. */
export async function regradeReport(ctx: Context, item: RegradeItem): Promise<RegradeOutcome> {
  const { report, run, regrade } = item;
  const id = { orgId: run.orgId, runId: run.id, attempt: report.attempt };
  if (!hasEvents(ctx.db, id)) return { result: "withoutEvents" };
  const gradings = listGradingRows(ctx.db, report);
  if (regrade.judge === null) return await regradeByStoredJudgment(ctx, item, id, gradings);
  const { session } = splitJudging(await readSessionInBatches(ctx, id));
  const lastEvent = session.at(-1);
  if (!lastEvent || !isJudgeable(session)) return await regradeByStoredJudgment(ctx, item, id, gradings);
  return await regradeByJudge(ctx, { ...item, judge: regrade.judge, lastEvent }, id, gradings);
}

async function regradeByStoredJudgment(
  ctx: Context,
  { report, methodology }: RegradeItem,
  id: SessionId,
  gradings: GradingRow[],
): Promise<RegradeOutcome> {
  const judging = gradings.find(({ id }) => id === shownGradingIdOf(report))?.judging ?? null;
  const grade = await gradeSession(ctx, id, judging, methodology);
  if (grade === null) return { result: "failed" };
  const { hash } = grade.methodology;
  if (gradings.some((grading) => grading.hash === hash)) return showExisting(ctx, report, hash);
  return { result: "graded", write: (tx) => addGrading(ctx, tx, report.id, { grade, repeat: 1, judging }) };
}

/** Judges a session as often as requested and stores each judgment. */
async function regradeByJudge(
  ctx: Context,
  item: RegradeItem & { judge: string; lastEvent: SessionEvent },
  id: SessionId,
  gradings: GradingRow[],
): Promise<RegradeOutcome> {
  const { report, regrade, methodology, lease } = item;
  const existing = new Set(gradings.filter(({ hash }) => hash === regrade.hash).map(({ repeat }) => repeat));
  const missing = Array.from({ length: regrade.repeats }, (_, i) => i + 1).filter((repeat) => !existing.has(repeat));
  for (const repeat of missing) {
    const judging = await judgeSession(ctx, item, id);
    const grade = await gradeSession(ctx, id, judging, methodology);
    // Without a usable answer, the grade has a judge but no confidence.
    const hasUsableAnswer = typeof grade?.judge?.confidence === "number";
    if (!hasUsableAnswer) return { result: "failed" };
    await storeUnderLease(ctx, lease, (tx) => addGrading(ctx, tx, report.id, { grade, repeat, judging }));
  }
  return missing.length > 0 ? { result: "graded" } : showExisting(ctx, report, regrade.hash);
}

/** Shows a grading that already exists. */
function showExisting(ctx: Context, report: ReportRow, hash: string): RegradeOutcome {
  if (report.gradingPinned || report.methodology.hash === hash) return { result: "unchanged" };
  return { result: "graded", write: (tx) => showGradingAgain(ctx, tx, report.id, hash) };
}

/** Stores something if the lease is still valid, and throws otherwise. */
export async function storeUnderLease(ctx: Context, lease: Lease, work: (tx: Tx) => void): Promise<void> {
  const isHeld = await ctx.commit((tx) => {
    if (!isLeaseHeld(ctx, lease)) return false;
    work(tx);
    return true;
  });
  if (!isHeld) throw new Error("The job is no longer held by this process.");
}

/** The events of a new judgment. Throws if the budget is spent, or if the costs could not be stored. */
async function judgeSession(
  ctx: Context,
  { run, regrade, judge, lastEvent, lease, stop }: RegradeItem & { judge: string; lastEvent: SessionEvent },
  session: SessionId,
): Promise<SessionEvent[]> {
  const maxUsd = getJudgeBudget(ctx, getRegradeRow(ctx.db, regrade.id), run.promptId);
  const costs: Promise<void>[] = [];
  const onModelCall: Rejudging["onModelCall"] = (usage) => {
    const countedCost = recordJudgeCost(ctx, lease, regrade, run.id, usage);
    // The error is thrown below, once the judge is done.
    countedCost.catch(() => {});
    costs.push(countedCost);
  };
  try {
    const rejudging = { run, session, lastAgentEvent: lastEvent, model: judge, maxUsd, onModelCall, lease, stop };
    return await rejudgeSession(ctx, rejudging);
  } finally {
    await Promise.all(costs);
  }
}

/**
 * `judging`: the events of a judge that replace the stored ones; null: the stored events count. Returns null if the events can't be read, which can
 * happen after an import.
 */
async function gradeSession(
  ctx: Context,
  session: SessionId,
  judging: SessionEvent[] | null,
  methodology: Methodology,
): Promise<Grade | null> {
  try {
    return await gradeStored(ctx, session, judging, methodology);
  } catch (error) {
    ctx.log.error({ run: session.runId, err: error }, "could not regrade session");
    return null;
  }
}
