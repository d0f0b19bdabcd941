import { and, desc, eq, inArray, ne } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { cachedResult } from "../db/cache.ts";
import { timeZoneOf } from "../db/rows.ts";
import { prompts } from "../db/tables/prompts.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Page } from "../http/paging.ts";
import { hasTag, titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import { countUnfinishedRuns, runRowsOfEvals } from "../reports/run-rows.ts";
import { type FailedRun, readScoreDays, type ScoreDay } from "../reports/score-days.ts";
import { getEvalRequest } from "../runs/evals.ts";
import { toInstant, toIso } from "../schema.ts";
import { agentsOf, cellRunsOf, summarizeAgents, toCells } from "./cells.ts";
import type { Matrix, MatrixFilter } from "./schema.ts";

const dayMs = 24 * 3600_000;
const defaultDays = 30;
/** Without `until`, the period ends with the current quarter of an hour, so that the result can be cached. */
const quarterMs = 15 * 60_000;

type Prompt = { id: string; title: string };

/**
 * The results of all agents on one prompt, on the prompts with a tag, or on all prompts that are neither archived nor canaries. With `evalRequestId`,
 * the results of one evaluation. Of each agent, only the runs in the period with its newest version and methodology count. Throws not_found. Throws
 * bad_request for an invalid time, and for more than one of prompt, tag and evaluation.
 */
export function getMatrix(ctx: Context, org: OrgId, filter: MatrixFilter, { limit, offset }: Page): Matrix {
  const { tag, promptId, evalRequestId, since, until } = filter;
  if ([tag, promptId, evalRequestId].filter((each) => each !== undefined).length > 1)
    throw badRequest("Pass at most one of promptId, tag and evalRequestId.");
  if (evalRequestId !== undefined) return matrixOfEvaluation(ctx, org, evalRequestId);
  const timeZone = timeZoneOf(ctx.db, org);
  const end =
    until === undefined ? Math.ceil((ctx.now() + 1) / quarterMs) * quarterMs : toInstant("until", until, timeZone);
  const start = since === undefined ? end - defaultDays * dayMs : toInstant("since", since, timeZone);
  const matrix = cachedResult(ctx.db, ["matrix", org, tag, promptId, start, end], () => {
    const rows = listPromptsOf(ctx, org, { tag, promptId });
    const ids = rows.map(({ id }) => id);
    // Runs outside of the period get a day outside of it, so that they aren't read. The first day starts with the period.
    const startOfDay = (at: number) => {
      if (at < start) return 0;
      if (at >= end) return end;
      return Math.max(start, at - (at % dayMs));
    };
    const { days, failed } = readScoreDays(ctx, org, ids, [start, end], startOfDay);
    return { ...toMatrix(rows, days, failed), since: toIso(start), until: toIso(end), unfinished: 0 };
  });
  return { ...matrix, prompts: matrix.prompts.slice(offset, offset + limit) };
}

function matrixOfEvaluation(ctx: Context, org: OrgId, evalRequestId: string): Matrix {
  const { id, prompt } = getEvalRequest(ctx, org, evalRequestId);
  const rows = runRowsOfEvals(ctx, org, [id]);
  const days = rows.flatMap(({ report, methodology, scope, ...run }): ScoreDay[] => {
    if (report === null || methodology === null || scope === null) return [];
    // Each run is a day of its own, because the matrix is made of days.
    return [
      {
        orgId: org,
        promptId: run.promptId,
        day: run.at,
        lastAt: run.at,
        agent: run.agent,
        model: run.model ?? "",
        version: run.agentVersion ?? "",
        contextDigest: run.contextDigest ?? "",
        methodology,
        scope,
        scores: toList(report.score),
        seconds: toList(report.seconds),
        costsUsd: toList(report.costUsd),
        succeeded: report.outcome === "succeeded" ? 1 : 0,
        judged: report.outcome === "succeeded" || report.outcome === "goal_not_met" ? 1 : 0,
      },
    ];
  });
  const failed = rows.flatMap(({ report, promptId, agent, model, failureCause, at }): FailedRun[] =>
    report === null ? [{ promptId, agent, model: model ?? "", failureCause, at }] : [],
  );
  return {
    ...toMatrix([{ id: prompt.id, title: prompt.title ?? "Evaluation" }], days, failed),
    since: null,
    until: null,
    unfinished: countUnfinishedRuns(ctx, org, [id]),
  };
}

const toList = (value: number | null): number[] => (value === null ? [] : [value]);

function toMatrix(prompts: Prompt[], days: ScoreDay[], failed: FailedRun[]) {
  const agents = agentsOf(days, failed);
  const daysByPrompt = Map.groupBy(days, ({ promptId }) => promptId);
  const failedByPrompt = Map.groupBy(failed, ({ promptId }) => promptId);
  const runs = prompts.map(({ id }) => cellRunsOf(agents, daysByPrompt.get(id) ?? [], failedByPrompt.get(id) ?? []));
  const cells = runs.map(toCells);
  return {
    ...summarizeAgents(agents, runs, cells),
    prompts: prompts.map(({ id, title }, i) => ({ promptId: id, title, cells: cells[i] ?? [] })),
    total: prompts.length,
  };
}

/** Newest first. Throws not_found for an unknown prompt. */
function listPromptsOf({ db }: Context, org: OrgId, { tag, promptId }: MatrixFilter) {
  const isListed = and(
    ne(prompts.isCanary, true),
    inArray(prompts.status, ["active", "paused"]),
    tag === undefined ? undefined : hasTag(tag),
  );
  const rows = db
    .select({ id: prompts.id, title: prompts.title, text: titleText })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), promptId === undefined ? isListed : eq(prompts.id, promptId.toLowerCase())))
    .orderBy(desc(prompts.id))
    .all();
  if (promptId !== undefined && rows.length === 0) throw notFound(`No prompt has the ID ${promptId}.`);
  return rows.map(({ id, ...named }) => ({ id, title: titleOf(named) }));
}
