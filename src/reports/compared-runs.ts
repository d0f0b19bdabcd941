import { and, count, desc, eq, inArray, lt, ne, or, type SQL, sql } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import type { Context, OrgId } from "../context.ts";
import type { Db } from "../db/open.ts";
import { bound, statement } from "../db/prepared.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
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

const toPairKey = (promptId: string, args: Record<string, string> | null): string => promptId + argsKey(args);

/** The proven share of a goal that the judge left unclear; null if nothing is unclear. */
function provenShareOf(outcome: string | undefined, judge: { parts: { met: string }[] } | null): number | null {
  if (outcome !== "not_judged" || judge === null || judge.parts.length === 0) return null;
  return judge.parts.filter(({ met }) => met === "yes").length / judge.parts.length;
}

/** Reports per query. Most of the newest match. */
const defaultPageRows = 15;
/** Reports to read in total. */
const maxReportsRead = 1000;
/** Sorts after every ID. */
const afterAllIds = "g";

/** The columns by which published live runs are selected. */
export type PublishedRun = Pick<
  typeof runs.$inferSelect,
  "evalRequestId" | "agent" | "agentIndex" | "agentVersion" | "contextDigest" | "model" | "templateArgs"
> &
  Pick<typeof reports.$inferSelect, "slug" | "outcome" | "scope" | "score" | "grade" | "createdAt" | "runId"> & {
    methodology: { hash: string; judge: string | null };
  };

type PublishedFilter = {
  limit: number;
  matches?: (run: PublishedRun) => boolean;
  /** Only runs with smaller IDs. */
  before?: string;
};

/** A page of the newest published reports of a prompt. */
const newestReports = statement((db) =>
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
      templateArgs: runs.templateArgs,
      slug: reports.slug,
      outcome: reports.outcome,
      scope: reports.scope,
      score: reports.score,
      grade: reports.grade,
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

/** Everything that comparisons need. */
const selectRuns = (db: Db) =>
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

type Row = ReturnType<ReturnType<typeof selectRuns>["all"]>[number];

function toComparedRun({ run, report, reportId, metrics, dimensions, methodology, scope, judge }: Row): ComparedRun {
  return {
    ...run,
    reportId,
    prompt: run.promptId,
    pairKey: toPairKey(run.promptId, run.templateArgs),
    isExact: isRuleBased(run.agent),
    provenShare: provenShareOf(report?.outcome, judge),
    report: report && { ...report, seconds: metrics?.timeSeconds ?? null, costUsd: metrics?.costUsd ?? null },
    metrics:
      metrics && (Object.fromEntries(metricNames.map((name) => [name, metrics[name]])) as ComparedRun["metrics"]),
    dimensions: dimensions ?? [],
    methodology,
    scope: scope && comparedScope({ scope, judge: methodology?.judge ?? null }),
  };
}

const runsById = statement((db) =>
  selectRuns(db).where(
    and(eq(runs.orgId, bound("org")), sql`${runs.id} in (select value from json_each(${sql.placeholder("ids")}))`),
  ),
);

/** Excludes runs whose report was archived. */
const isCounted = or(ne(reports.status, "archived"), eq(runs.status, "failed"));

const listRuns = ({ db }: Context, org: OrgId, where: SQL | undefined): ComparedRun[] =>
  selectRuns(db)
    .where(and(eq(runs.orgId, org), isCounted, where))
    .all()
    .map(toComparedRun);

/** All finished runs of evaluations, newest first. */
export const listComparedRunsOfEvals = (ctx: Context, org: OrgId, evalRequestIds: string[]): ComparedRun[] =>
  listRuns(ctx, org, inArray(runs.evalRequestId, evalRequestIds));

/** Finished runs by their IDs, newest first. */
export const listComparedRuns = (ctx: Context, org: OrgId, runIds: string[]): ComparedRun[] =>
  listRuns(ctx, org, inArray(runs.id, runIds));

/** The position of a run's agent among those of its evaluation; 0 for an unknown run. */
export const getAgentIndex = ({ db }: Context, org: OrgId, runId: string): number =>
  db
    .select({ agentIndex: runs.agentIndex })
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.id, runId)))
    .get()?.agentIndex ?? 0;

/** Number of unfinished runs of evaluations. `agentIndex`: only those of one agent. */
export const countUnfinishedRuns = (
  { db }: Context,
  org: OrgId,
  evalRequestIds: string[],
  agentIndex?: number,
): number =>
  db
    .select({ n: count() })
    .from(runs)
    .where(
      and(
        eq(runs.orgId, org),
        inArray(runs.evalRequestId, evalRequestIds),
        inArray(runs.status, ["pending", "running"]),
        agentIndex === undefined ? undefined : eq(runs.agentIndex, agentIndex),
      ),
    )
    .get()?.n ?? 0;

/**
 * The newest published runs of a prompt on the live docs (no urlMap) that match. At most 1,000 reports are read, `pageRows` per query.
 */
export function listPublishedRuns(
  { db }: Context,
  org: OrgId,
  promptId: string,
  {
    limit,
    matches = () => true,
    before = afterAllIds,
    pageRows = defaultPageRows,
  }: PublishedFilter & { pageRows?: number },
): PublishedRun[] {
  const matching: PublishedRun[] = [];
  let next = before;
  for (let read = 0; read < maxReportsRead && matching.length < limit; read += pageRows) {
    const page = newestReports(db).all({ org, promptId, before: next, limit: pageRows });
    matching.push(...page.filter((run) => Object.keys(run.urlMap).length === 0 && matches(run)));
    if (page.length < pageRows) break;
    next = (page.at(-1) as PublishedRun).runId;
  }
  return matching.slice(0, limit);
}

/** The same, only with a score, and with everything that comparisons need. */
export function listScoredRuns(
  ctx: Context,
  org: OrgId,
  promptId: string,
  { matches = () => true, ...filter }: PublishedFilter,
): ComparedRun[] {
  const hasScore = (run: PublishedRun) => run.score !== null && matches(run);
  const ids = listPublishedRuns(ctx, org, promptId, { ...filter, matches: hasScore }).map(({ runId }) => runId);
  return ids.length === 0
    ? []
    : runsById(ctx.db)
        .all({ org, ids: JSON.stringify(ids) })
        .map(toComparedRun);
}
