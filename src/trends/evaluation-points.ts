import { and, desc, eq, isNull, or, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { createdWithin } from "../db/rows.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { comparedScope } from "../reports/differences.ts";
import type { ScoreDay } from "../reports/score-days.ts";
import { toIso } from "../schema.ts";
import { summarizeRuns } from "../stats/repeats.ts";

/** Maximum number of runs to read per request, newest first: an evaluation has at most 50. */
const maxRuns = 2000;

type Line = Pick<ScoreDay, "agent" | "version" | "contextDigest" | "model" | "methodology" | "scope">;

/**
 * One point per evaluation of a prompt with one agent, version, context, model and methodology: its published live runs, oldest first.
 * `isOwn`: whether an evaluation without a report belongs to them.
 */
export function evaluationsOf(
  { db }: Context,
  org: OrgId,
  promptId: string,
  line: Line,
  [start, end]: [number, number],
  most: number,
  isOwn: (at: number) => boolean,
) {
  const rows = db
    .select({
      id: runs.id,
      at: runs.createdAt,
      evalRequestId: runs.evalRequestId,
      failureCause: runs.failureCause,
      version: sql<string>`coalesce(${runs.agentVersion}, '')`,
      contextDigest: sql<string>`coalesce(${runs.contextDigest}, '')`,
      report: {
        outcome: reports.outcome,
        scope: reports.scope,
        score: reports.score,
        hash: sql<string>`json_extract(${reports.methodology}, '$.hash')`,
        seconds: sql<number | null>`json_extract(${reports.metrics}, '$.timeSeconds')`,
        costUsd: sql<number | null>`json_extract(${reports.metrics}, '$.costUsd')`,
      },
    })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .where(
      and(
        eq(runs.orgId, org),
        eq(runs.promptId, promptId),
        createdWithin(runs.id, [start, end]),
        eq(runs.agent, line.agent),
        sql`coalesce(${runs.model}, '') = ${line.model}`,
        sql`${runs.urlMap} = '{}'`,
        or(eq(reports.status, "published"), and(isNull(reports.status), eq(runs.status, "failed"))),
      ),
    )
    .orderBy(desc(runs.id))
    .limit(maxRuns + 1)
    .all()
    .map(({ report, ...run }) => ({ ...run, report: report?.outcome == null ? null : report }));
  const all = [...Map.groupBy(rows, ({ evalRequestId }) => evalRequestId)];
  const isOfScope = (scope: ScoreDay["scope"]) =>
    comparedScope({ scope, judge: line.methodology.judge }) === line.scope;
  // If the list was truncated, some runs of the oldest evaluation may be missing.
  const isCut = rows.length > maxRuns;
  const whole = (isCut ? all.slice(0, -1) : all).flatMap(([id, ended]): typeof all => {
    const own = ended.filter(
      ({ report, version, contextDigest }) =>
        report === null ||
        (report.hash === line.methodology.hash &&
          isOfScope(report.scope) &&
          version === line.version &&
          contextDigest === line.contextDigest),
    );
    const isGraded = own.some(({ report }) => report !== null);
    const isLost = ended.every(({ report, at }) => report === null && isOwn(at));
    return isGraded || isLost ? [[id, own]] : [];
  });
  const shown = whole.slice(0, most);
  const oldest = shown.at(-1)?.[1].at(-1) ?? (isCut ? rows.at(-1) : undefined);
  return {
    points: shown
      .map(([evalRequestId, ended]) => ({
        from: toIso(ended.at(-1)?.at ?? start),
        evalRequestId,
        prompts: 1,
        ...summarizeRuns(ended),
      }))
      .reverse(),
    nextUntil: oldest && (isCut || shown.length < whole.length) ? toIso(oldest.at) : null,
  };
}
