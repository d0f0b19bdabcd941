import { and, desc, eq, sql } from "drizzle-orm";
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

/** Usage of each limit in the last attempt of a run, most relevant first. */
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
  const isMilestone = (name: string) =>
    sql`${sessionEvents.type} = 'milestone' and json_extract(${sessionEvents.data}, '$.name') = ${name}`;
  const judging = db
    .select({ seq: sessionEvents.seq })
    .from(sessionEvents)
    .where(and(whereOfAttempt, eq(sessionEvents.source, "runner"), isMilestone("judging")))
    .orderBy(sessionEvents.seq)
    .limit(1)
    .get();
  const judgedFrom = judging?.seq ?? Number.MAX_SAFE_INTEGER;
  const count = db
    .select({
      tools: countOfType("tool_call"),
      requests: countOfType("http"),
      // As for the limit: the setup before the work and the judging after it don't count.
      from: sql<
        number | null
      >`coalesce(min(case when ${isMilestone("work_began")} then ${sessionEvents.at} end), min(${sessionEvents.at}))`,
      lastAt: sql<number | null>`max(case when ${sessionEvents.seq} < ${judgedFrom} then ${sessionEvents.at} end)`,
    })
    .from(sessionEvents)
    .where(whereOfAttempt)
    .get() ?? { tools: 0, requests: 0, from: null, lastAt: null };
  const isOfAgent = sql`(${sessionEvents.seq} < ${judgedFrom})`;
  const field = (name: string) => sql`json_extract(${sessionEvents.data}, ${`$.${name}`})`;
  const model = db
    .select({
      // The judge has limits of its own, but shares the budget.
      calls: sql<number>`coalesce(sum(${isOfAgent}), 0)`,
      tokens: sql<number>`coalesce(sum(${isOfAgent} * coalesce(${field("estimate.inputTokens")} + ${field("estimate.outputTokens")}, ${field("inputTokens")} + ${field("outputTokens")})), 0)`,
      usd: sql<number>`coalesce(sum(${countedUsd}), 0)`,
    })
    .from(sessionEvents)
    .where(and(whereOfAttempt, eq(sessionEvents.type, "usage")))
    .get() ?? { calls: 0, tokens: 0, usd: 0 };
  const lastAt = completedAt === null ? now() : count.lastAt;
  const seconds = startedAt === null || count.from === null || lastAt === null ? 0 : (lastAt - count.from) / 1000;
  return [
    { name: "Time", unit: "seconds", used: Math.max(0, seconds), limit: limits.wallClockMs / 1000 },
    { name: "Requests", unit: "count", used: count.requests, limit: limits.maxRequests },
    ...(agent.model === null ? [] : modelLimitUsage(limits, count.tools, model)),
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

/** The name of the model that answered last in a session; null if none did. */
export const lastModelOf = ({ db }: Context, { runId, attempt }: SessionId): string | null =>
  lastUsage(db).get({ runId, attempt })?.model ?? null;
