import { and, count, desc, eq, gte, inArray, lt, lte, sql } from "drizzle-orm";
import { prompts, reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import type { Page, Paged } from "../http/paging.ts";
import { toInstant, toIso } from "../schema.ts";
import { reportUrl } from "./links.ts";
import type { ReportFilter, ReportSummary } from "./schema.ts";

/** Lists of reports, newest first. */
export function createReportLists({ db, baseUrl }: Pick<Deps, "db" | "baseUrl">) {
  return {
    /** Throws bad_request for an invalid time. */
    listReports(org: OrgId, filter: ReportFilter, { limit, offset }: Page): Paged<ReportSummary> {
      const { promptId, status, outcome, agent, minScore, maxScore, since, until } = filter;
      // A score limit applies to one scope only.
      const scope = filter.scope ?? ((minScore ?? maxScore) === undefined ? undefined : "goal");
      const [id, more] = [promptId?.toLowerCase(), outcome ?? scope ?? since ?? until];
      const where = and(
        eq(reports.orgId, org),
        // The other filters are only in the filter index; the plus keeps SQLite from using the prompt's index.
        id === undefined ? id : more === undefined ? eq(reports.promptId, id) : sql`+${reports.promptId} = ${id}`,
        // Almost all reports are published, so their index doesn't help to find the newest; the plus keeps SQLite from
        // using it.
        status === "published" ? sql`+${reports.status} = ${status}` : status && eq(reports.status, status),
        outcome && eq(reports.outcome, outcome),
        scope && eq(reports.scope, scope),
        agent === undefined ? undefined : eq(runs.agent, agent),
        minScore === undefined ? undefined : gte(reports.score, minScore),
        maxScore === undefined ? undefined : lte(reports.score, maxScore),
        since === undefined ? undefined : gte(reports.createdAt, toInstant("since", since)),
        until === undefined ? undefined : lt(reports.createdAt, toInstant("until", until)),
      );
      const ofAgent = eq(runs.id, reports.runId);
      const ids = db.select({ id: reports.id }).from(reports);
      // Selected by the filter index alone, before whole rows are read.
      const chosen = (agent === undefined ? ids : ids.innerJoin(runs, ofAgent))
        .where(where)
        .orderBy(desc(reports.id))
        .limit(limit)
        .offset(offset);
      const rows = db
        .select({
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
          agent: { id: runs.agent, version: runs.agentVersion, model: runs.model },
        })
        .from(reports)
        .innerJoin(runs, ofAgent)
        .innerJoin(prompts, eq(prompts.id, reports.promptId))
        .where(inArray(reports.id, chosen))
        .orderBy(desc(reports.id))
        .all();
      const counted = db.select({ n: count() }).from(reports);
      const total = (agent === undefined ? counted : counted.innerJoin(runs, ofAgent)).where(where);
      return {
        items: rows.map(({ report, createdAt, ...rest }) => ({
          ...report,
          url: reportUrl(baseUrl(), report.slug),
          ...rest,
          createdAt: toIso(createdAt),
        })),
        total: total.get()?.n ?? 0,
      };
    },

    /** The slugs of the newest thousand reports, newest first. */
    listSlugs: (org: OrgId): string[] =>
      db
        .select({ slug: reports.slug })
        .from(reports)
        .where(eq(reports.orgId, org))
        .orderBy(desc(reports.id))
        .limit(1000)
        .all()
        .map(({ slug }) => slug),
  };
}
