import { and, asc, desc, eq, gt, gte, lt, ne, sql } from "drizzle-orm";
import { toRunFailure } from "../agents/remedies.ts";
import type { Context, OrgId } from "../context.ts";
import { bound, literal, statement } from "../db/prepared.ts";
import { firstIdOf, timeOfId } from "../db/rows.ts";
import { prompts } from "../db/tables/prompts.ts";
import { reports } from "../db/tables/reports.ts";
import { isLiveRun, runHours, runs } from "../db/tables/runs.ts";
import { titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import { toIso } from "../schema.ts";
import type { InboxItem, Unmarked } from "./schema.ts";

const hourMs = 3600_000;
const dayMs = 24 * hourMs;
/** Failed runs count for this long: without a report after them, and with one. */
const failedWithinMs = 30 * dayMs;
const recentMs = 7 * dayMs;

export type FailedRuns = Extract<Unmarked<InboxItem>, { kind: "runs_failed" }>;

/** The live runs of a prompt with one agent. */
type Group = { promptId: string; agent: string };

/** The prompts whose live runs have all failed since their last report, or some of which failed in the last week, each with one agent. */
export function listFailedRuns(ctx: Context, org: OrgId, onlyPromptId?: string): FailedRuns[] {
  const groups = ctx.db
    .select({
      promptId: runHours.promptId,
      agent: runHours.agent,
      title: prompts.title,
      text: titleText,
    })
    .from(runHours)
    .innerJoin(prompts, eq(prompts.id, runHours.promptId))
    .where(
      and(
        eq(runHours.orgId, org),
        hasFailed,
        gte(runHours.from, hourOf(ctx.now() - failedWithinMs)),
        onlyPromptId === undefined ? ne(prompts.status, "archived") : eq(runHours.promptId, onlyPromptId),
      ),
    )
    // A plus keeps SQLite from reading all hours in this order.
    .groupBy(sql`+${runHours.promptId}`, sql`+${runHours.agent}`)
    .all();
  return groups.flatMap(({ promptId, agent, ...prompt }): FailedRuns[] => {
    const group = { promptId, agent };
    const lastDone = findLastDone(ctx, org, group);
    const since = [firstIdOf(ctx.now() - failedWithinMs), lastDone?.id ?? ""].sort().at(-1) as string;
    const sinceReport = countEnded(ctx, org, group, since);
    const hasNoReportSince = sinceReport.of > 0;
    const from = hasNoReportSince ? since : firstIdOf(ctx.now() - recentMs);
    const ended = hasNoReportSince ? sinceReport : countEnded(ctx, org, group, from);
    const newest = newestFailedRun(ctx.db).get({ org, ...group, after: from });
    const oldest = oldestFailedRun(ctx.db).get({ org, ...group, after: from });
    const failure = newest && toRunFailure(ctx.baseUrl(), newest);
    if (!newest || !oldest || !failure) return [];
    return [
      {
        kind: "runs_failed",
        id: `runs-${hasNoReportSince ? oldest.id : newest.id}`,
        since: toIso(oldest.at),
        prompt: { id: promptId, title: titleOf(prompt) },
        agent,
        failed: ended.failed,
        of: ended.of,
        failure,
        otherPrompts: [],
        runId: newest.id,
        lastReportAt: toIso(lastDone?.at ?? null),
      },
    ];
  });
}

/** The start of an hour, epoch ms. */
const hourOf = (at: number): number => at - (at % hourMs);

/** As in the partial index. */
const hasFailed = sql`${runHours.failed} > 0`;

const isOfGroup = (table: typeof runs | typeof runHours) =>
  and(eq(table.orgId, bound("org")), eq(table.promptId, bound("promptId")), eq(table.agent, bound("agent")));

const isLiveOfGroup = and(isOfGroup(runs), isLiveRun);

/** As in the partial index of failed runs. */
const isFailure = sql`${runs.status} = 'failed' and ${runs.failureCause} != 'cancelled'`;

const lastCompletedHour = statement((db) =>
  db
    .select({ from: runHours.from })
    .from(runHours)
    .where(and(isOfGroup(runHours), gt(runHours.completed, literal(0))))
    .orderBy(desc(runHours.from))
    .limit(literal(1)),
);

const lastCompletedRun = statement((db) =>
  db
    .select({ id: runs.id })
    .from(runs)
    .where(
      and(isLiveOfGroup, sql`${runs.status} = 'completed'`, gte(runs.id, bound("from")), lt(runs.id, bound("until"))),
    )
    .orderBy(desc(runs.id))
    .limit(literal(1)),
);

const reportTime = statement((db) =>
  db
    .select({ at: reports.createdAt })
    .from(reports)
    .where(and(eq(reports.orgId, bound("org")), eq(reports.runId, bound("run")))),
);

/** The newest completed run, and when it got its report. */
function findLastDone({ db }: Context, org: OrgId, group: Group): { id: string; at: number | null } | undefined {
  const hour = lastCompletedHour(db).get({ org, ...group });
  if (!hour) return;
  const [from, until] = [firstIdOf(hour.from), firstIdOf(hour.from + hourMs)];
  const run = lastCompletedRun(db).get({ org, ...group, from, until });
  return run && { id: run.id, at: reportTime(db).get({ org, run: run.id })?.at ?? null };
}

const endedWithin = statement((db) =>
  db
    .select({ of: sql<number>`count(*)`, failed: sql<number>`count(${runs.failureCause})` })
    .from(runs)
    .where(
      and(
        isLiveOfGroup,
        sql`(${runs.status} = 'completed' or ${isFailure})`,
        gt(runs.id, bound("after")),
        lt(runs.id, bound("until")),
      ),
    ),
);

const endedInHours = statement((db) =>
  db
    .select({
      of: sql<number>`coalesce(sum(${runHours.completed} + ${runHours.failed}), 0)`,
      failed: sql<number>`coalesce(sum(${runHours.failed}), 0)`,
    })
    .from(runHours)
    .where(and(isOfGroup(runHours), gte(runHours.from, bound("from")))),
);

/** How many runs after one with this ID ended, and how many of them failed: those of its hour one by one, then whole hours. */
function countEnded({ db }: Context, org: OrgId, group: Group, after: string): { of: number; failed: number } {
  const from = hourOf(timeOfId(after)) + hourMs;
  const ofFirstHour = endedWithin(db).get({ org, ...group, after, until: firstIdOf(from) });
  const ofOthers = endedInHours(db).get({ org, ...group, from });
  return {
    of: (ofFirstHour?.of ?? 0) + (ofOthers?.of ?? 0),
    failed: (ofFirstHour?.failed ?? 0) + (ofOthers?.failed ?? 0),
  };
}

/** The newest or oldest run after one with an ID that failed. */
const failedRunBy = (order: typeof desc | typeof asc) =>
  statement((db) =>
    db
      .select({
        id: runs.id,
        at: runs.createdAt,
        promptId: runs.promptId,
        failureCause: runs.failureCause,
        failureCode: runs.failureCode,
        failureDetail: runs.failureDetail,
        failureSubject: runs.failureSubject,
      })
      .from(runs)
      .where(and(isLiveOfGroup, isFailure, gt(runs.id, bound("after"))))
      .orderBy(order(runs.id))
      .limit(literal(1)),
  );
const newestFailedRun = failedRunBy(desc);
const oldestFailedRun = failedRunBy(asc);

/** One line for all prompts whose runs fail for the same reason, such as a site that is down. */
export function joinSameReason(lines: FailedRuns[]): FailedRuns[] {
  const reasonOf = ({ failure: { code, subject, detail }, failed, of }: FailedRuns) =>
    [code, subject ?? detail, failed === of].join(" ");
  return [...Map.groupBy(lines, reasonOf).values()].flatMap((same) => {
    const [oldest, ...others] = same.toSorted((a, b) => (a.since < b.since ? -1 : 1));
    if (!oldest) return [];
    const newest = same.reduce((a, b) => (a.runId > b.runId ? a : b));
    const sum = (name: "failed" | "of") => same.reduce((all, line) => all + line[name], 0);
    const isOther = ({ prompt }: FailedRuns) => prompt.id !== oldest.prompt.id;
    const otherPrompts = new Map(others.filter(isOther).map(({ prompt }) => [prompt.id, prompt]));
    return [
      {
        ...oldest,
        failure: newest.failure,
        runId: newest.runId,
        failed: sum("failed"),
        of: sum("of"),
        otherPrompts: [...otherPrompts.values()],
      },
    ];
  });
}
