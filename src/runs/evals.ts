import { and, asc, count, desc, eq, inArray, isNull, type SQL, sql } from "drizzle-orm";
import type { Outcome } from "../agents/agent.ts";
import { evalRequests, prompts, type ReportStatus, reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { notFound } from "../errors.ts";
import type { Page, Paged } from "../paging.ts";
import { resultOf } from "../reports/repeats.ts";
import { runUrls } from "../reports/reports.ts";
import type { EvalRequest, EvalStatus } from "./schema.ts";

export type EvalFilter = { promptId?: string; status?: EvalStatus };

/** It follows from the runs: pending until one has begun, running until all have ended, then the best that one of them came to. */
const status = sql<EvalStatus>`(select case
  when sum(${runs.completedAt} is null) > 0 then iif(sum(${runs.status} != 'pending') > 0, 'running', 'pending')
  when sum(${runs.status} = 'completed') > 0 then 'completed'
  when sum(${runs.status} = 'failed') > 0 then 'failed'
  else 'superseded' end
  from ${runs} where ${runs.orgId} = ${evalRequests.orgId} and ${runs.evalRequestId} = ${evalRequests.id})`;

export type Evals = ReturnType<typeof createEvals>;

/** Eval requests as they stand: what was asked for, and what became of its runs. */
export function createEvals({ db, baseUrl }: Pick<Deps, "db" | "baseUrl">) {
  function select(where: SQL | undefined, { limit, offset }: Page): EvalRequest[] {
    const rows = db
      .select({ request: evalRequests, title: prompts.title, status })
      .from(evalRequests)
      .innerJoin(prompts, eq(prompts.id, evalRequests.promptId))
      .where(where)
      .orderBy(desc(evalRequests.id))
      .limit(limit)
      .offset(offset)
      .all();
    const ids = rows.map(({ request }) => request.id);
    const ofRows = Map.groupBy(
      db
        .select({
          evalRequestId: runs.evalRequestId,
          runId: runs.id,
          status: runs.status,
          failureReason: runs.failureReason,
          report: { slug: reports.slug, score: reports.score, grade: reports.grade, outcome: reports.outcome },
          reportStatus: reports.status,
          seconds: sql<number | null>`json_extract(${reports.metrics}, '$.timeSeconds')`,
          costUsd: sql<number | null>`json_extract(${reports.metrics}, '$.costUsd')`,
        })
        .from(runs)
        .leftJoin(reports, eq(reports.runId, runs.id))
        .where(inArray(runs.evalRequestId, ids))
        .orderBy(asc(runs.id))
        .all(),
      ({ evalRequestId }) => evalRequestId,
    );
    return rows.map(({ request, title, status }) => ({
      id: request.id,
      prompt: { id: request.promptId, title },
      trigger: request.trigger,
      status,
      requestedAt: new Date(request.createdAt).toISOString(),
      runs: (ofRows.get(request.id) ?? []).map(({ runId, status, failureReason, report }) => ({
        runId,
        status,
        ...runUrls(baseUrl(), runId),
        report,
        failureReason,
      })),
      result: resultOfRows(ofRows.get(request.id) ?? []),
    }));
  }

  /** Throws not_found. */
  function getEvalRequest(org: OrgId, id: string): EvalRequest {
    const own = and(eq(evalRequests.orgId, org), eq(evalRequests.id, id.toLowerCase()));
    const [found] = select(own, { limit: 1, offset: 0 });
    if (!found) throw notFound(`no eval request has the id ${id}`);
    return found;
  }

  return {
    getEvalRequest,

    /** Newest first. */
    listEvalRequests(org: OrgId, { promptId, status: wanted }: EvalFilter, page: Page): Paged<EvalRequest> {
      const unfinished = db
        .select({ id: runs.evalRequestId })
        .from(runs)
        .where(and(eq(runs.orgId, org), isNull(runs.completedAt)));
      const isUnfinished = wanted === "pending" || wanted === "running";
      const where = and(
        eq(evalRequests.orgId, org),
        promptId === undefined ? undefined : eq(evalRequests.promptId, promptId.toLowerCase()),
        // Of many requests few are unfinished, and an index knows them.
        isUnfinished ? inArray(evalRequests.id, unfinished) : undefined,
        wanted === undefined ? undefined : eq(status, wanted),
      );
      return {
        items: select(where, page),
        total: db.select({ n: count() }).from(evalRequests).where(where).get()?.n ?? 0,
      };
    },

    /** Waits until every run has ended, `seconds` are over or `signal` says that nobody waits any more; `onEnded` hears how many have ended. */
    async waitFor(
      org: OrgId,
      id: string,
      { seconds, signal, onEnded }: { seconds: number; signal: AbortSignal; onEnded: (ended: number) => void },
    ): Promise<EvalRequest> {
      let told = 0;
      for (let looks = seconds * looksASecond; ; looks--) {
        const request = getEvalRequest(org, id);
        const ended = request.runs.filter((run) => run.status !== "pending" && run.status !== "running").length;
        if (ended > told) onEnded(ended);
        told = ended;
        if (ended === request.runs.length || looks <= 0 || signal.aborted) return request;
        await new Promise((resolve) => setTimeout(resolve, 1000 / looksASecond));
      }
    },
  };
}

const looksASecond = 4;

type Row = {
  status: EvalRequest["runs"][number]["status"];
  failureReason: string | null;
  report: { score: number | null; outcome: Outcome } | null;
  reportStatus: ReportStatus | null;
  seconds: number | null;
  costUsd: number | null;
};

/** What the runs came to, without those whose report a person has put away. */
function resultOfRows(rows: Row[]): EvalRequest["result"] {
  const isOpen = ({ status }: Row) => status === "pending" || status === "running";
  const ended = rows.filter((row) => !isOpen(row) && row.reportStatus !== "archived");
  return resultOf(
    ended.map(({ failureReason, report, seconds, costUsd }) => ({
      failureReason,
      report: report && { ...report, seconds, costUsd },
    })),
    rows.filter(isOpen).length,
  );
}
