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
/** How long failed runs count if no report came after them. */
const failedWithinMs = 30 * dayMs;
/** How long failed runs count if a report came after them. */
const recentMs = 7 * dayMs;

export type FailedRuns = Extract<Unmarked<InboxItem>, { kind: "runs_failed" }>;

/** The live runs of a prompt with one agent. */
type Group = { promptId: string; agent: string };

/** Prompts with failed runs, by agent: either all live runs since the last report have failed, or some have failed in the last week. */
export function listFailedRuns(ctx: Context, org: OrgId, onlyPromptId?: string): FailedRuns[] {
  const groups = ctx.db
    .select({ promptId: runHours.promptId, agent: runHours.agent, title: prompts.title, text: titleText })
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
    // The plus keeps SQLite from using an index for this order, because it would then read all hours.
    .groupBy(sql`+${runHours.promptId}`, sql`+${runHours.agent}`)
    .all();
  return groups.flatMap(({ promptId, agent, ...prompt }): FailedRuns[] => {
    const group = { promptId, agent };
    const lastCompleted = findLastCompleted(ctx, org, group);
    const oldestId = firstIdOf(ctx.now() - failedWithinMs);
    const startId = lastCompleted && lastCompleted.id > oldestId ? lastCompleted.id : oldestId;
    const endedSince = countEnded(ctx, org, group, startId);
    // All runs that ended after the last completed run have failed, and count. If there are none, the failed runs of the last week count.
    const failsSinceCompleted = endedSince.of > 0;
    const after = failsSinceCompleted ? startId : firstIdOf(ctx.now() - recentMs);
    const ended = failsSinceCompleted ? endedSince : countEnded(ctx, org, group, after);
    const newest = newestFailedRun(ctx.db).get({ org, ...group, after });
    const oldest = oldestFailedRun(ctx.db).get({ org, ...group, after });
    const failure = newest && toRunFailure(ctx.baseUrl(), newest);
    if (!newest || !oldest || !failure) return [];
    return [
      {
        kind: "runs_failed",
        // The oldest failure of the last week would be a bad ID, because it changes as time passes.
        id: `runs-${failsSinceCompleted ? oldest.id : newest.id}`,
        since: toIso(oldest.at),
        prompt: { id: promptId, title: titleOf(prompt) },
        agent,
        failed: ended.failed,
        of: ended.of,
        failure,
        otherPrompts: [],
        runId: newest.id,
        lastReportAt: toIso(lastCompleted?.reportedAt ?? null),
      },
    ];
  });
}

/** The start of the hour, in epoch ms. */
const hourOf = (at: number): number => at - (at % hourMs);

/** Has the same form as in the partial index, so that SQLite uses the index. */
const hasFailed = sql`${runHours.failed} > 0`;

const isOfGroup = (table: typeof runs | typeof runHours) =>
  and(eq(table.orgId, bound("org")), eq(table.promptId, bound("promptId")), eq(table.agent, bound("agent")));

const isLiveOfGroup = and(isOfGroup(runs), isLiveRun);

/** Has the same form as in the partial index of failed runs, so that SQLite uses the index. */
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

/** The newest completed run, and when it got its report, in epoch ms. */
function findLastCompleted({ db }: Context, org: OrgId, group: Group) {
  const hour = lastCompletedHour(db).get({ org, ...group });
  if (!hour) return;
  const [from, until] = [firstIdOf(hour.from), firstIdOf(hour.from + hourMs)];
  const run = lastCompletedRun(db).get({ org, ...group, from, until });
  return run && { id: run.id, reportedAt: reportTime(db).get({ org, run: run.id })?.at ?? null };
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

/**
 * How many runs ended after the run with this ID, and how many of them failed. Runs of the same hour are counted one by one, and later ones by whole
 * hours.
 */
function countEnded({ db }: Context, org: OrgId, group: Group, after: string): { of: number; failed: number } {
  const from = hourOf(timeOfId(after)) + hourMs;
  const ofFirstHour = endedWithin(db).get({ org, ...group, after, until: firstIdOf(from) });
  const ofOthers = endedInHours(db).get({ org, ...group, from });
  return {
    of: (ofFirstHour?.of ?? 0) + (ofOthers?.of ?? 0),
    failed: (ofFirstHour?.failed ?? 0) + (ofOthers?.failed ?? 0),
  };
}

/** The newest or oldest failed run after the run with an ID. */
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

/** Joins prompts whose runs fail for the same reason, such as a site that is down, into one item. */
export function joinSameReason(items: FailedRuns[]): FailedRuns[] {
  const reasonOf = ({ failure: { code, subject, detail }, failed, of }: FailedRuns) =>
    [code, subject ?? detail, failed === of].join(" ");
  return [...Map.groupBy(items, reasonOf).values()].flatMap((itemsOfReason) => {
    const [oldest, ...others] = itemsOfReason.toSorted((a, b) => (a.since < b.since ? -1 : 1));
    if (!oldest) return [];
    const newest = itemsOfReason.reduce((a, b) => (a.runId > b.runId ? a : b));
    const sum = (name: "failed" | "of") => itemsOfReason.reduce((total, item) => total + item[name], 0);
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
