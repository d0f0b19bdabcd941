import { and, asc, count, desc, eq, gte, inArray, lt, ne, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { plusUnless, timeZoneOf } from "../db/rows.ts";
import { prompts } from "../db/tables/prompts.ts";
import { reports, runCounts } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import type { Page, Paged } from "../http/paging.ts";
import type { Sort } from "../http/sorting.ts";
import { titleText } from "../prompts/lists.ts";
import { toInstant, toIso } from "../schema.ts";
import { titleOf } from "./labels.ts";
import { reportUrl } from "./links.ts";
import type { ReportFilter, ReportSummary } from "./schema.ts";

export const reportSortColumns = ["score", "created"] as const;
export type ReportSort = Sort<(typeof reportSortColumns)[number]>;

/** The IDs of reports are in chronological order. Reports without a score come last. */
const orders = {
  created: [asc(reports.id)],
  "-created": [desc(reports.id)],
  score: [sql`${reports.score} asc nulls last`, asc(reports.id)],
  "-score": [desc(reports.score), desc(reports.id)],
};

/** Throws bad_request for an invalid time. */
export function listReports(
  ctx: Context,
  org: OrgId,
  { sort = "-created", ...filter }: ReportFilter & { sort?: ReportSort },
  { limit, offset }: Page,
): Paged<ReportSummary> {
  const { promptId, status, outcome, agent, agentVersion, minScore, maxScore, since, until } = filter;
  // A score limit applies only to one scope.
  const hasScoreLimit = minScore !== undefined || maxScore !== undefined;
  const scope = filter.scope ?? (hasScoreLimit ? "goal" : undefined);
  // Triggers count reports only by prompt and status, so these filters can't use their counts.
  const uncountedFilters = [outcome, scope, since, until, agentVersion, agent];
  const hasOnlyCountedFilters = uncountedFilters.every((value) => value === undefined);
  const byScore = sort === "score" || sort === "-score";
  const whereBy = (index: { byPrompt: boolean; byAgent: boolean }) =>
    conditionOf(ctx, org, { ...filter, scope }, { ...index, byScore });
  // First reads IDs in order from an index until the page is full, and then whole rows. The index of a prompt is only as fast if there are no other
  // filters.
  const pageIds = ctx.db
    .select({ id: reports.id })
    .from(reports)
    .where(whereBy({ byPrompt: !byScore && hasOnlyCountedFilters, byAgent: !byScore }))
    .orderBy(...orders[sort])
    .limit(limit)
    .offset(offset);
  const rows = selectSummaries(ctx, pageIds, sort);
  // To find the last page, the whole index was read. Counting would read it again.
  const isLast = rows.length < limit && (rows.length > 0 || offset === 0);
  if (isLast) return { items: rows, total: offset + rows.length };
  if (hasOnlyCountedFilters) return { items: rows, total: countReports(ctx, org, { promptId, status }) };
  // Counting reads all matching entries of an index. The index of a prompt has the fewest.
  const where = whereBy({ byPrompt: true, byAgent: promptId === undefined });
  return { items: rows, total: ctx.db.select({ n: count() }).from(reports).where(where).get()?.n ?? 0 };
}

/**
 * The condition of a list. `byPrompt`, `byAgent`, `byScore`: whether SQLite may use the index of the column. Throws bad_request for an invalid time.
 */
function conditionOf(
  ctx: Context,
  org: OrgId,
  { promptId, status, outcome, scope, agent, agentVersion, minScore, maxScore, since, until }: ReportFilter,
  { byPrompt, byAgent, byScore }: { byPrompt: boolean; byAgent: boolean; byScore: boolean },
): SQL | undefined {
  const zone = () => timeZoneOf(ctx.db, org);
  const score = sql`${plusUnless(byScore)}${reports.score}`;
  return and(
    eq(reports.orgId, org),
    // Almost all reports are published, so the index of the status doesn't help to find the newest ones.
    status && sql`${plusUnless(status !== "published")}${reports.status} = ${status}`,
    outcome && eq(reports.outcome, outcome),
    scope && eq(reports.scope, scope),
    agentVersion === undefined ? undefined : eq(reports.agentVersion, agentVersion),
    minScore === undefined ? undefined : sql`${score} >= ${minScore}`,
    maxScore === undefined ? undefined : sql`${score} <= ${maxScore}`,
    since === undefined ? undefined : gte(reports.createdAt, toInstant("since", since, zone())),
    until === undefined ? undefined : lt(reports.createdAt, toInstant("until", until, zone())),
    promptId === undefined ? undefined : sql`${plusUnless(byPrompt)}${reports.promptId} = ${promptId.toLowerCase()}`,
    agent === undefined ? undefined : sql`${plusUnless(byAgent)}${reports.agent} = ${agent}`,
  );
}

/** Reports as they appear in a list. `ids`: the query that selects their IDs. */
const selectSummaries = (ctx: Context, ids: SQLWrapper, sort: ReportSort): ReportSummary[] =>
  ctx.db
    .select({
      report: {
        slug: reports.slug,
        status: reports.status,
        score: reports.score,
        scope: reports.scope,
        evidence: reports.evidence,
        grade: reports.grade,
        outcome: reports.outcome,
        keyFinding: reports.keyFinding,
      },
      createdAt: reports.createdAt,
      prompt: { id: prompts.id, title: prompts.title, text: titleText },
      runId: reports.runId,
      agent: { id: runs.agent, version: runs.agentVersion, model: runs.model, contextDigest: runs.contextDigest },
    })
    .from(reports)
    .innerJoin(runs, eq(runs.id, reports.runId))
    .innerJoin(prompts, eq(prompts.id, reports.promptId))
    .where(inArray(reports.id, ids))
    .orderBy(...orders[sort])
    .all()
    .map(({ report, createdAt, prompt, ...rest }) => ({
      ...report,
      url: reportUrl(ctx.baseUrl(), report.slug),
      prompt: { id: prompt.id, title: titleOf(prompt) },
      ...rest,
      createdAt: toIso(createdAt),
    }));

/** The number of reports, from the counts that triggers maintain. */
function countReports(ctx: Context, org: OrgId, { promptId, status }: ReportFilter): number {
  const where = and(
    eq(runCounts.orgId, org),
    promptId === undefined ? undefined : eq(runCounts.promptId, promptId.toLowerCase()),
    // The rows with "any" count all runs, with or without a report.
    status === undefined ? ne(runCounts.reportStatus, "any") : eq(runCounts.reportStatus, status),
  );
  return (
    ctx.db
      .select({ n: sql<number>`coalesce(sum(${runCounts.count}), 0)` })
      .from(runCounts)
      .where(where)
      .get()?.n ?? 0
  );
}

/** Reports whose slug starts with a text. An empty text matches none. */
export function listReportsBySlug(ctx: Context, org: OrgId, text: string, limit: number) {
  if (text === "") return [];
  const { slug, score, scope, createdAt } = reports;
  return (
    ctx.db
      .select({ slug, score, scope, createdAt, prompt: { title: prompts.title, text: titleText } })
      .from(reports)
      .innerJoin(prompts, eq(prompts.id, reports.promptId))
      // A tilde sorts after all characters of slugs.
      .where(and(eq(reports.orgId, org), gte(slug, text), lt(slug, `${text}~`)))
      .orderBy(slug)
      .limit(limit)
      .all()
      .map(({ prompt, ...row }) => ({ ...row, prompt: { title: titleOf(prompt) }, createdAt: toIso(row.createdAt) }))
  );
}

/** The slugs of the newest thousand reports, newest first. */
export const listReportSlugs = (ctx: Context, org: OrgId): string[] =>
  ctx.db
    .select({ slug: reports.slug })
    .from(reports)
    .where(eq(reports.orgId, org))
    .orderBy(desc(reports.id))
    .limit(1000)
    .all()
    .map(({ slug }) => slug);
