import { and, count, desc, eq, inArray, lt, ne, or, type SQL, sql } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import type { Context, OrgId } from "../context.ts";
import type { Db } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import { bound, prepared, statement } from "../db/prepared.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { isLive } from "../friction/lifecycle-rows.ts";
import type { Scope } from "../grading/grade.ts";
import { metricNames, type SideRun } from "../stats/repeats.ts";
import { argsKey, comparedScope } from "./differences.ts";

/** A finished run in a comparison. */
export type ComparedRun = SideRun & {
  runId: string;
  reportId: string | null;
  promptId: string;
  evalRequestId: string;
  at: number;
  agent: string;
  agentIndex: number;
  agentVersion: string | null;
  contextDigest: string | null;
  model: string | null;
  templateArgs: Record<string, string> | null;
  /** null without a report. */
  methodology: { id: string; hash: string; judge: string | null } | null;
  scope: Scope | null;
};

/** The columns of a run's report that lists show. */
export const scoreColumns = {
  slug: reports.slug,
  score: reports.score,
  scope: reports.scope,
  grade: reports.grade,
  outcome: reports.outcome,
};

/** The number of reports per query. A few are enough, because most of the newest reports match. */
const batchReports = 15;
/** The maximum number of reports that are read in total. */
const maxReports = 1000;
/** Greater than every ID, because IDs start with a hexadecimal digit. */
const afterEveryId = "g";

/** A batch of the newest published reports of a prompt. */
const prepareNewestReports = (db: Db) =>
  prepared(
    db
      .select({
        runId: runs.id,
        evalRequestId: runs.evalRequestId,
        agent: runs.agent,
        agentIndex: runs.agentIndex,
        agentVersion: runs.agentVersion,
        contextDigest: runs.contextDigest,
        model: runs.model,
        urlMap: runs.urlMap,
        editsDigest: runs.editsDigest,
        templateArgs: runs.templateArgs,
        ...scoreColumns,
        createdAt: reports.createdAt,
        methodology: reports.methodology,
      })
      .from(reports)
      .innerJoin(runs, eq(runs.id, reports.runId))
      .where(
        and(
          eq(reports.orgId, bound("org")),
          eq(reports.promptId, bound("promptId")),
          eq(reports.status, "published"),
          lt(reports.runId, bound("before")),
        ),
      )
      .orderBy(desc(reports.runId))
      .limit(bound("limit")),
  );
const newestReports = perConnection((db: Db) => prepareNewestReports(db));

/** A published run, with the columns that filters need. */
export type PublishedRun = ReturnType<ReturnType<typeof prepareNewestReports>["all"]>[number];

/** Selects everything that comparisons need. */
const selectComparedRuns = (db: Db) =>
  db
    .select({
      run: {
        runId: runs.id,
        promptId: runs.promptId,
        evalRequestId: runs.evalRequestId,
        at: runs.createdAt,
        agent: runs.agent,
        agentIndex: runs.agentIndex,
        agentVersion: runs.agentVersion,
        contextDigest: runs.contextDigest,
        model: runs.model,
        templateArgs: runs.templateArgs,
        failureCause: runs.failureCause,
      },
      report: { outcome: reports.outcome, score: reports.score },
      scope: reports.scope,
      reportId: reports.id,
      metrics: reports.metrics,
      dimensions: reports.dimensions,
      methodology: reports.methodology,
      judge: reports.judge,
    })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .orderBy(desc(runs.id))
    .$dynamic();

type ComparedRow = ReturnType<ReturnType<typeof selectComparedRuns>["all"]>[number];

function toComparedRun(row: ComparedRow): ComparedRun {
  const { run, report, reportId, metrics, dimensions, methodology, scope, judge } = row;
  return {
    ...run,
    reportId,
    prompt: run.promptId,
    pairKey: run.promptId + argsKey(run.templateArgs),
    isDeterministic: isRuleBased(run.agent),
    provenShare: provenShareOf(report?.outcome, judge),
    report: report && { ...report, seconds: metrics?.timeSeconds ?? null, costUsd: metrics?.costUsd ?? null },
    metrics:
      metrics && (Object.fromEntries(metricNames.map((name) => [name, metrics[name]])) as ComparedRun["metrics"]),
    dimensions: dimensions ?? [],
    methodology,
    scope: scope && comparedScope({ scope, judge: methodology?.judge ?? null }),
  };
}

/** The proven share of a goal of which the judge left parts unclear; null if nothing is unclear. */
function provenShareOf(outcome: string | undefined, judge: { parts: { met: string }[] } | null): number | null {
  if (outcome !== "not_judged" || judge === null || judge.parts.length === 0) return null;
  return judge.parts.filter(({ met }) => met === "yes").length / judge.parts.length;
}

/** Finished runs, except those with an archived report. */
const whereComparable = or(ne(reports.status, "archived"), eq(runs.status, "failed"));

const runsByIds = statement((db) =>
  selectComparedRuns(db).where(
    and(eq(runs.orgId, bound("org")), sql`${runs.id} in (select value from json_each(${sql.placeholder("ids")}))`),
  ),
);

/** `before`: only runs that are older than the run with this ID. */
type PublishedFilter = { matches?: (run: PublishedRun) => boolean; before?: string; batchSize?: number };

/** The newest published runs of a prompt on the live docs that match, up to a maximum number. It reads at most 1,000 reports, in batches. */
export function listPublished(
  ctx: Context,
  org: OrgId,
  promptId: string,
  maxRuns: number,
  { matches = () => true, before = afterEveryId, batchSize = batchReports }: PublishedFilter = {},
): PublishedRun[] {
  const matching: PublishedRun[] = [];
  let lastId = before;
  for (let read = 0; read < maxReports && matching.length < maxRuns; read += batchSize) {
    const batch = newestReports(ctx.db).all({ org, promptId, before: lastId, limit: batchSize });
    matching.push(...batch.filter((run) => isLive(run) && matches(run)));
    if (batch.length < batchSize) break;
    lastId = batch.at(-1)?.runId ?? lastId;
  }
  return matching.slice(0, maxRuns);
}

/** All finished runs of evaluations, newest first. */
export const runRowsOfEvals = (ctx: Context, org: OrgId, ids: string[]): ComparedRun[] =>
  listComparedRuns(ctx, org, and(inArray(runs.evalRequestId, ids), whereComparable));

/** Those of the given runs that have finished, newest first. */
export const runRowsOfRuns = (ctx: Context, org: OrgId, ids: string[]): ComparedRun[] =>
  listComparedRuns(ctx, org, and(inArray(runs.id, ids), whereComparable));

/** The position of a run's agent in the list of its evaluation's agents; 0 for an unknown run. */
export const agentIndexOf = (ctx: Context, org: OrgId, id: string): number =>
  ctx.db
    .select({ agentIndex: runs.agentIndex })
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.id, id)))
    .get()?.agentIndex ?? 0;

/** The number of unfinished runs of evaluations. `agentIndex`: counts only the runs of this agent. */
export const countUnfinishedRuns = (ctx: Context, org: OrgId, ids: string[], agentIndex?: number): number =>
  ctx.db
    .select({ n: count() })
    .from(runs)
    .where(
      and(
        eq(runs.orgId, org),
        inArray(runs.evalRequestId, ids),
        inArray(runs.status, ["pending", "running"]),
        agentIndex === undefined ? undefined : eq(runs.agentIndex, agentIndex),
      ),
    )
    .get()?.n ?? 0;

/** The runs that `listPublished` returns, without those that have no score. Newest first, with everything that comparisons need. */
export function publishedRunRows(
  ctx: Context,
  org: OrgId,
  promptId: string,
  maxRuns: number,
  { matches = () => true, ...filter }: PublishedFilter,
): ComparedRun[] {
  const hasScoreAndMatches = (run: PublishedRun) => run.score !== null && matches(run);
  const scoredRuns = listPublished(ctx, org, promptId, maxRuns, { ...filter, matches: hasScoreAndMatches });
  if (scoredRuns.length === 0) return [];
  const ids = JSON.stringify(scoredRuns.map(({ runId }) => runId));
  return runsByIds(ctx.db).all({ org, ids }).map(toComparedRun);
}

const listComparedRuns = (ctx: Context, org: OrgId, where: SQL | undefined): ComparedRun[] =>
  selectComparedRuns(ctx.db)
    .where(and(eq(runs.orgId, org), where))
    .all()
    .map(toComparedRun);
