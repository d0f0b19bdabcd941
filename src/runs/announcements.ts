import { asc, eq } from "drizzle-orm";
import type { EndCause } from "../agents/failure.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { reports } from "../db/tables/reports.ts";
import { evalRequests, runs } from "../db/tables/runs.ts";
import { cut } from "../notifications/events.ts";
import type { Outbox } from "../notifications/outbox.ts";
import { toPromptEvent, toReportEvent, toRunEvent } from "../reports/announcements.ts";
import { toIso } from "../schema.ts";
import { getSpending } from "./spending.ts";

const maxDetail = 1_000;
/** If a run failed because of its budget, the monthly budget counts as spent even if this much is left, in USD. */
const restUsd = 0.25;

type Parts = {
  outbox: Pick<Outbox, "emit" | "wants">;
  /** Called after an evaluation completed. */
  onEvaluation: (tx: Tx, org: string, promptId: string, evalRequestId: string) => void;
};

export type RunAnnouncements = ReturnType<typeof createRunAnnouncements>;

/** Notifies destinations of ended runs and of what follows from them. */
export function createRunAnnouncements(ctx: Context, { outbox, onEvaluation }: Parts) {
  const { baseUrl } = ctx;
  function announceEvaluation(tx: Tx, { orgId, promptId, evalRequestId }: typeof runs.$inferSelect): void {
    if (!outbox.wants(orgId, "evaluation.completed") && !outbox.wants(orgId, "score.changed")) return;
    const all = tx
      .select({ run: runs, report: reports })
      .from(runs)
      .leftJoin(reports, eq(reports.runId, runs.id))
      .where(eq(runs.evalRequestId, evalRequestId))
      .orderBy(asc(runs.id))
      .all();
    if (all.some(({ run }) => run.completedAt === null)) return;
    const request = tx.select().from(evalRequests).where(eq(evalRequests.id, evalRequestId)).get();
    if (!request) return;
    const count = (status: (typeof all)[number]["run"]["status"]) =>
      all.filter(({ run }) => run.status === status).length;
    const ended = { completed: count("completed"), failed: count("failed"), superseded: count("superseded") };
    outbox.emit(tx, orgId, "evaluation.completed", () => ({
      evaluation: {
        ...{ id: evalRequestId, url: `${baseUrl()}/evaluations/${evalRequestId}`, trigger: request.trigger },
        status: ended.completed > 0 ? "completed" : ended.failed > 0 ? "failed" : "superseded",
        ...{ requestedAt: toIso(request.createdAt), runs: ended },
      },
      prompt: toPromptEvent(tx, promptId),
      reports: all.flatMap(({ report }) => (report ? [toReportEvent(baseUrl(), report)] : [])),
    }));
    onEvaluation(tx, orgId, promptId, evalRequestId);
  }

  /** Notifies of a budget once per month and amount. */
  function announceBudget(tx: Tx, orgId: string, isRefused: boolean): void {
    if (!outbox.wants(orgId, "budget.reached")) return;
    const { spentUsd, maxUsdAMonth, from, until } = getSpending(ctx, orgId as OrgId);
    if (maxUsdAMonth === null || spentUsd < maxUsdAMonth - (isRefused ? restUsd : 0)) return;
    const makeData = () => ({ spentUsd, maxUsdAMonth, from, until });
    outbox.emit(tx, orgId, "budget.reached", makeData, `budget ${from} ${maxUsdAMonth}`);
  }

  return {
    /** A run has ended, in the same transaction. Its failure; null: it has a report or was superseded. */
    announceEnd(tx: Tx, runId: string, failure: { cause: EndCause; detail: string } | null): void {
      const run = tx.select().from(runs).where(eq(runs.id, runId)).get();
      if (!run) return;
      if (failure)
        outbox.emit(tx, run.orgId, "run.failed", () => ({
          run: toRunEvent(baseUrl(), run),
          prompt: toPromptEvent(tx, run.promptId),
          failure: { cause: failure.cause, detail: cut(failure.detail, maxDetail) },
        }));
      announceEvaluation(tx, run);
      announceBudget(tx, run.orgId, failure?.cause === "budget");
    },
    /** Model calls outside of runs were paid for, in the same transaction. */
    announceSpending: (tx: Tx, orgId: string): void => announceBudget(tx, orgId, false),
  };
}
