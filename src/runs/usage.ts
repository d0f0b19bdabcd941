import { and, desc, eq, type SQL, sql } from "drizzle-orm";
import type { Task } from "../agents/task.ts";
import { decideLimits } from "../config/limits.ts";
import type { Context, OrgId } from "../context.ts";
import { bound, literal, statement } from "../db/prepared.ts";
import { type RunTask, sessionEvents } from "../db/tables/runs.ts";
import type { Lease } from "../jobs/queue.ts";
import type { SessionId } from "../reports/session-events.ts";
import type { Run } from "./schema.ts";
import { countedUsd } from "./spending.ts";

/** Usage of a limit. `limit` null: there is none. */
export type LimitUsage = { name: string; unit: "seconds" | "usd" | "count"; used: number; limit: number | null };

const numberIn = (path: string) => sql`json_extract(${sessionEvents.data}, ${`$.${path}`})`;
/** How many tokens a call counts: the estimate, if it has one. */
const countedTokens = sql`coalesce(${numberIn("estimate.inputTokens")} + ${numberIn("estimate.outputTokens")}, ${numberIn("inputTokens")} + ${numberIn("outputTokens")})`;

const isMilestone = (name: string) =>
  sql`${sessionEvents.type} = 'milestone' and json_extract(${sessionEvents.data}, '$.name') = ${name}`;

/** The number of the event with which judging began. */
const findStartOfJudging = (db: Context["db"], whereOfAttempt: SQL | undefined): number | undefined =>
  db
    .select({ seq: sessionEvents.seq })
    .from(sessionEvents)
    .where(and(whereOfAttempt, eq(sessionEvents.source, "runner"), isMilestone("judging")))
    .orderBy(sessionEvents.seq)
    .limit(1)
    .get()?.seq;

/** Usage of each limit in an attempt of a run, most relevant first. */
export function listLimitUsage(
  { db, config, now }: Context,
  org: OrgId,
  { runId, startedAt, completedAt, agent }: Run,
  task: RunTask,
  attempt: number,
): LimitUsage[] {
  const limits = decideLimits(task.limits, config);
  const whereOfAttempt = and(
    eq(sessionEvents.orgId, org),
    eq(sessionEvents.runId, runId),
    eq(sessionEvents.attempt, attempt),
  );
  const countOfType = (type: string) => sql<number>`coalesce(sum(${sessionEvents.type} = ${type}), 0)`;
  const isBeforeJudging = sql`(${sessionEvents.seq} < ${findStartOfJudging(db, whereOfAttempt) ?? Number.MAX_SAFE_INTEGER})`;
  const work = db
    .select({
      toolCalls: countOfType("tool_call"),
      requests: countOfType("http"),
      // This is the start that the limit uses: the setup before the work and the judging after it don't count.
      beganAt: sql<
        number | null
      >`coalesce(min(case when ${isMilestone("work_began")} then ${sessionEvents.at} end), min(${sessionEvents.at}))`,
      lastAt: sql<number | null>`max(case when ${isBeforeJudging} then ${sessionEvents.at} end)`,
    })
    .from(sessionEvents)
    .where(whereOfAttempt)
    .get() ?? { toolCalls: 0, requests: 0, beganAt: null, lastAt: null };
  const modelUse = db
    .select({
      // The judge has its own limits, but shares the budget.
      calls: sql<number>`coalesce(sum(${isBeforeJudging}), 0)`,
      tokens: sql<number>`coalesce(sum(${isBeforeJudging} * ${countedTokens}), 0)`,
      usd: sql<number>`coalesce(sum(${countedUsd}), 0)`,
    })
    .from(sessionEvents)
    .where(and(whereOfAttempt, eq(sessionEvents.type, "usage")))
    .get() ?? { calls: 0, tokens: 0, usd: 0 };
  const endedAt = completedAt === null ? now() : work.lastAt;
  const beganAt = startedAt === null ? null : work.beganAt;
  const seconds = beganAt === null || endedAt === null ? 0 : (endedAt - beganAt) / 1000;
  return [
    { name: "Time", unit: "seconds", used: Math.max(0, seconds), limit: limits.wallClockMs / 1000 },
    { name: "Requests", unit: "count", used: work.requests, limit: limits.maxRequests },
    ...(agent.model === null ? [] : modelLimitUsage(limits, work.toolCalls, modelUse)),
  ];
}

const modelLimitUsage = (
  { maxToolCalls, model: { calls, tokens, costUsd } }: Task["limits"],
  toolCalls: number,
  used: { calls: number; tokens: number; usd: number },
): LimitUsage[] => [
  { name: "Tool calls", unit: "count", used: toolCalls, limit: maxToolCalls },
  { name: "Model calls", unit: "count", used: used.calls, limit: calls },
  { name: "Tokens", unit: "count", used: used.tokens, limit: tokens },
  { name: "Cost with judge", unit: "usd", used: used.usd, limit: costUsd },
];

const cost = sql`json_extract(${sessionEvents.data}, '$.costUsd')`;
/** The attempt that paid for a call. It is a later one than the attempt of the session if it judged the session of an earlier attempt. */
const paidBy = sql`coalesce(json_extract(${sessionEvents.data}, '$.paidBy'), ${sessionEvents.attempt})`;

/** 0 without rows; null if any cost is unknown. */
const spentUsd = statement((db) =>
  db
    .select({
      usd: sql<number | null>`case when count(*) = count(${cost}) then coalesce(sum(${cost}), 0) end`,
    })
    .from(sessionEvents)
    .where(
      and(eq(sessionEvents.runId, bound("runId")), eq(paidBy, bound("attempt")), sql`${sessionEvents.type} = 'usage'`),
    ),
);

/** Model cost of an attempt of a run so far, in USD; null if unknown. */
export const costOfAttempt = ({ db }: Context, { subject, attempt }: Lease): number | null =>
  spentUsd(db).get({ runId: subject, attempt })?.usd ?? null;

const lastUsage = statement((db) =>
  db
    .select({ model: sql<string>`json_extract(${sessionEvents.data}, '$.model')` })
    .from(sessionEvents)
    .where(
      and(
        eq(sessionEvents.runId, bound("runId")),
        eq(sessionEvents.attempt, bound("attempt")),
        sql`${sessionEvents.type} = 'usage' and ${sessionEvents.source} = 'gateway'`,
      ),
    )
    .orderBy(desc(sessionEvents.seq))
    .limit(literal(1)),
);

/** The name of the model that answered last in a session; null: no model answered. */
export const lastModelOf = ({ db }: Context, { runId, attempt }: SessionId): string | null =>
  lastUsage(db).get({ runId, attempt })?.model ?? null;
