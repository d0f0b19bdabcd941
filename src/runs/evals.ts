import { and, asc, count, desc, eq, inArray, type SQL, sql } from "drizzle-orm";
import { toFailureReason } from "../agents/failure.ts";
import { toRunFailure } from "../agents/remedies.ts";
import type { Context, OrgId } from "../context.ts";
import { prompts } from "../db/tables/prompts.ts";
import { reports } from "../db/tables/reports.ts";
import { evalCounts, evalRequests, runs } from "../db/tables/runs.ts";
import { notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import { runUrls } from "../reports/links.ts";
import { scoreColumns } from "../reports/run-rows.ts";
import { toIso } from "../schema.ts";
import { resultOf } from "../stats/repeats.ts";
import type { EvalRequest, EvalStatus } from "./schema.ts";

const checksPerSecond = 4;

/** Throws not_found. */
export function getEvalRequest(ctx: Context, org: OrgId, id: string): EvalRequest {
  const whereRequested = and(eq(evalRequests.orgId, org), eq(evalRequests.id, id.toLowerCase()));
  const [evaluation] = selectEvals(ctx, org, whereRequested, { limit: 1, offset: 0 });
  if (!evaluation) throw notFound(`No evaluation has the ID ${id}.`);
  return evaluation;
}

/** Newest first. */
export function listEvalRequests(
  ctx: Context,
  org: OrgId,
  { id, promptId, status }: { id?: string; promptId?: string; status?: EvalStatus },
  page: Page,
): Paged<EvalRequest> {
  const conditions = (table: typeof evalRequests | typeof evalCounts) =>
    and(
      eq(table.orgId, org),
      promptId === undefined ? undefined : eq(table.promptId, promptId.toLowerCase()),
      status === undefined ? undefined : eq(table.status, status),
    );
  const where = and(conditions(evalRequests), id === undefined ? undefined : eq(evalRequests.id, id));
  // Triggers keep the counts of all other lists. An evaluation with this ID is found at once.
  const total =
    id === undefined
      ? ctx.db
          .select({ n: sql<number>`coalesce(sum(${evalCounts.count}), 0)` })
          .from(evalCounts)
          .where(conditions(evalCounts))
      : ctx.db.select({ n: count() }).from(evalRequests).where(where);
  return { items: selectEvals(ctx, org, where, page), total: total.get()?.n ?? 0 };
}

/** Waits until every run has ended, `seconds` have passed or `signal` aborts. `onEnded` is called with the number of ended runs. */
export async function waitForEval(
  ctx: Context,
  org: OrgId,
  id: string,
  { seconds, signal, onEnded }: { seconds: number; signal: AbortSignal; onEnded: (endedRuns: number) => void },
): Promise<EvalRequest> {
  let lastEndedRuns = 0;
  for (let checksLeft = seconds * checksPerSecond; ; checksLeft--) {
    const request = getEvalRequest(ctx, org, id);
    const endedRuns = request.runs.filter((run) => !isUnfinished(run)).length;
    if (endedRuns > lastEndedRuns) onEnded(endedRuns);
    lastEndedRuns = endedRuns;
    if (endedRuns === request.runs.length || checksLeft <= 0 || signal.aborted) return request;
    await new Promise((resolve) => setTimeout(resolve, 1000 / checksPerSecond));
  }
}

const isUnfinished = ({ status }: { status: EvalStatus }) => status === "pending" || status === "running";

function selectEvals(ctx: Context, org: OrgId, where: SQL | undefined, { limit, offset }: Page): EvalRequest[] {
  // An index alone selects the page, so that only its rows are read and joined.
  const pageIds = ctx.db
    .select({ id: evalRequests.id })
    .from(evalRequests)
    .where(where)
    .orderBy(desc(evalRequests.id))
    .limit(limit)
    .offset(offset);
  const rows = ctx.db
    .select({ request: evalRequests, title: prompts.title, text: titleText })
    .from(evalRequests)
    .innerJoin(prompts, eq(prompts.id, evalRequests.promptId))
    .where(inArray(evalRequests.id, pageIds))
    .orderBy(desc(evalRequests.id))
    .all();
  const ids = rows.map(({ request }) => request.id);
  const runsByRequest = Map.groupBy(selectEvalRuns(ctx, org, ids), ({ evalRequestId }) => evalRequestId);
  return rows.map(({ request, ...prompt }) => {
    const evalRuns = runsByRequest.get(request.id) ?? [];
    const agents = agentsOf(evalRuns);
    return {
      id: request.id,
      prompt: { id: request.promptId, title: titleOf(prompt) },
      trigger: request.trigger,
      status: request.status,
      requestedAt: toIso(request.createdAt),
      runs: evalRuns.map(({ runId, status, agent, report, ...failure }) => ({
        runId,
        status,
        agent,
        ...runUrls(ctx.baseUrl(), runId),
        report,
        failureReason: toFailureReason(failure),
        failure: toRunFailure(ctx.baseUrl(), failure),
      })),
      // Runs of different agents are never combined.
      result: agents[0]?.result ?? resultOfRows([]),
      agents,
    };
  });
}

type EvalRunRow = ReturnType<typeof selectEvalRuns>[number];

/** The runs of evaluations, oldest first. */
const selectEvalRuns = ({ db }: Context, org: OrgId, ids: string[]) =>
  db
    .select({
      evalRequestId: runs.evalRequestId,
      runId: runs.id,
      status: runs.status,
      agentIndex: runs.agentIndex,
      agent: { id: runs.agent, version: runs.agentVersion, model: runs.model, contextDigest: runs.contextDigest },
      promptId: runs.promptId,
      failureCause: runs.failureCause,
      failureCode: runs.failureCode,
      failureSubject: runs.failureSubject,
      failureDetail: runs.failureDetail,
      report: scoreColumns,
      reportStatus: reports.status,
      seconds: sql<number | null>`json_extract(${reports.metrics}, '$.timeSeconds')`,
      costUsd: sql<number | null>`json_extract(${reports.metrics}, '$.costUsd')`,
    })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .where(and(eq(runs.orgId, org), inArray(runs.evalRequestId, ids)))
    .orderBy(asc(runs.id))
    .all();

/** The result of each agent, in the order of the agents. */
const agentsOf = (rows: EvalRunRow[]): EvalRequest["agents"] =>
  [...Map.groupBy(rows, ({ agentIndex }) => agentIndex)]
    .sort(([a], [b]) => a - b)
    .map(([, agentRows]) => ({
      // A finished run knows the version of its agent and the model that answered.
      agent: (agentRows.findLast(({ status }) => status === "completed") ?? (agentRows[0] as EvalRunRow)).agent,
      result: resultOfRows(agentRows),
    }));

/** The combined result of the runs. Runs with an archived report are left out. */
function resultOfRows(rows: EvalRunRow[]): EvalRequest["result"] {
  const countedRows = rows.filter((row) => !isUnfinished(row) && row.reportStatus !== "archived");
  return resultOf(
    countedRows.map(({ failureCause, report, seconds, costUsd }) => ({
      failureCause,
      report: report && { ...report, seconds, costUsd },
    })),
    rows.filter(isUnfinished).length,
  );
}
