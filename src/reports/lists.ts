import { and, asc, count, desc, eq, gte, inArray, lt, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { timeZoneOf } from "../db/rows.ts";
import { prompts } from "../db/tables/prompts.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import type { Page, Paged } from "../http/paging.ts";
import type { Sort } from "../http/sorting.ts";
import { toInstant, toIso } from "../schema.ts";
import { reportUrl } from "./links.ts";
import type { ReportFilter, ReportSummary } from "./schema.ts";

export const reportColumns = ["score", "created"] as const;
export type ReportSort = Sort<(typeof reportColumns)[number]>;

/** The IDs of reports are in time order. Reports without a score are last. */
const orders = {
  created: [asc(reports.id)],
  "-created": [desc(reports.id)],
  score: [sql`${reports.score} asc nulls last`, asc(reports.id)],
  "-score": [desc(reports.score), desc(reports.id)],
};

type ListFilter = ReportFilter & { sort?: ReportSort };

/** Lists reports, newest first unless sorted. Throws bad_request for an invalid time. */
export function listReports(
  ctx: Context,
  org: OrgId,
  { sort = "-created", ...filter }: ListFilter,
  { limit, offset }: Page,
): Paged<ReportSummary> {
  const { page: pageCondition, total: totalCondition } = conditionsOf(ctx, org, sort, filter);
  // Read in order from an index until the page is full, before whole rows are read.
  const ids = ctx.db
    .select({ id: reports.id })
    .from(reports)
    .where(pageCondition)
    .orderBy(...orders[sort])
    .limit(limit)
    .offset(offset);
  const rows = ctx.db
    .select(summaryColumns)
    .from(reports)
    .innerJoin(runs, eq(runs.id, reports.runId))
    .innerJoin(prompts, eq(prompts.id, reports.promptId))
    .where(inArray(reports.id, ids))
    .orderBy(...orders[sort])
    .all();
  // The last page was found by reading the whole index, which counting would read again.
  const isLast = rows.length < limit && (rows.length > 0 || offset === 0);
  const total = isLast
    ? offset + rows.length
    : (ctx.db.select({ n: count() }).from(reports).where(totalCondition).get()?.n ?? 0);
  return {
    items: rows.map(({ report, createdAt, ...rest }) => ({
      ...report,
      url: reportUrl(ctx.baseUrl(), report.slug),
      ...rest,
      createdAt: toIso(createdAt),
    })),
    total,
  };
}

const summaryColumns = {
  report: {
    slug: reports.slug,
    status: reports.status,
    score: reports.score,
    scope: reports.scope,
    grade: reports.grade,
    outcome: reports.outcome,
    keyFinding: reports.keyFinding,
  },
  createdAt: reports.createdAt,
  prompt: { id: prompts.id, title: prompts.title },
  runId: reports.runId,
  agent: { id: runs.agent, version: runs.agentVersion, model: runs.model, contextDigest: runs.contextDigest },
};

/**
 * The same condition twice, with different indexes: for a page in order, and for counting all. A plus before a column keeps SQLite from using
 * its index.
 */
function conditionsOf({ db }: Context, org: OrgId, sort: ReportSort, filter: ReportFilter) {
  const { promptId, status, outcome, agent, agentVersion, minScore, maxScore, since, until } = filter;
  const zone = () => timeZoneOf(db, org);
  // A score limit applies to one scope only.
  const scope = filter.scope ?? ((minScore ?? maxScore) === undefined ? undefined : "goal");
  const isByScore = sort === "score" || sort === "-score";
  // The index by score is only for lists in that order.
  const score = isByScore ? sql`${reports.score}` : sql`+${reports.score}`;
  const others = and(
    eq(reports.orgId, org),
    // Almost all reports are published, so their index doesn't help to find the newest.
    status === "published" ? sql`+${reports.status} = ${status}` : status && eq(reports.status, status),
    outcome && eq(reports.outcome, outcome),
    scope && eq(reports.scope, scope),
    agentVersion === undefined ? undefined : eq(reports.agentVersion, agentVersion),
    minScore === undefined ? undefined : sql`${score} >= ${minScore}`,
    maxScore === undefined ? undefined : sql`${score} <= ${maxScore}`,
    since === undefined ? undefined : gte(reports.createdAt, toInstant("since", since, zone())),
    until === undefined ? undefined : lt(reports.createdAt, toInstant("until", until, zone())),
  );
  const id = promptId?.toLowerCase();
  const ofPrompt = id === undefined ? undefined : eq(reports.promptId, id);
  const ofPromptUnindexed = id === undefined ? undefined : sql`+${reports.promptId} = ${id}`;
  const ofAgent = agent === undefined ? undefined : eq(reports.agent, agent);
  const ofAgentUnindexed = agent === undefined ? undefined : sql`+${reports.agent} = ${agent}`;
  const isOnlyByPrompt = (agent ?? outcome ?? scope ?? since ?? until ?? agentVersion) === undefined;
  return {
    page: isByScore
      ? and(others, ofPromptUnindexed, ofAgentUnindexed)
      : and(others, isOnlyByPrompt ? ofPrompt : ofPromptUnindexed, ofAgent),
    total: and(others, ofPrompt, ofPrompt ? ofAgentUnindexed : ofAgent),
  };
}

/** Lists reports whose slug starts with a text, by slug. */
export function listReportsBySlug({ db }: Context, org: OrgId, text: string, limit: number) {
  if (text === "") return [];
  const { slug, score, scope, createdAt } = reports;
  return (
    db
      .select({ slug, score, scope, createdAt, prompt: { title: prompts.title } })
      .from(reports)
      .innerJoin(prompts, eq(prompts.id, reports.promptId))
      // A tilde sorts after all characters of slugs.
      .where(and(eq(reports.orgId, org), gte(slug, text), lt(slug, `${text}~`)))
      .orderBy(slug)
      .limit(limit)
      .all()
      .map((row) => ({ ...row, createdAt: toIso(row.createdAt) }))
  );
}

/** The slugs of the newest thousand reports, newest first. */
export const listReportSlugs = ({ db }: Context, org: OrgId): string[] =>
  db
    .select({ slug: reports.slug })
    .from(reports)
    .where(eq(reports.orgId, org))
    .orderBy(desc(reports.id))
    .limit(1000)
    .all()
    .map(({ slug }) => slug);
