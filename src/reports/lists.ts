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
    /** Throws bad_request for a moment that is none. */
    listReports(org: OrgId, filter: ReportFilter, { limit, offset }: Page): Paged<ReportSummary> {
      const { promptId, status, outcome, agent, minScore, maxScore, since, until } = filter;
      // A number of one scope is not held against a bar for another.
      const scope = filter.scope ?? ((minScore ?? maxScore) === undefined ? undefined : "goal");
      const [id, more] = [promptId?.toLowerCase(), outcome ?? scope ?? since ?? until];
      const where = and(
        eq(reports.orgId, org),
        // What else is asked of them stands in the index of filters alone: the plus keeps SQLite from that of the prompt.
        id === undefined ? id : more === undefined ? eq(reports.promptId, id) : sql`+${reports.promptId} = ${id}`,
        // Nearly all are published, so that their index is no way to the newest of them: the plus keeps SQLite from it.
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
      // Chosen by the index of filters alone, before whole rows are read.
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
