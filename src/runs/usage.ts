import { and, eq, sql } from "drizzle-orm";
import type { Task } from "../agents/task.ts";
import { decideLimits } from "../config/limits.ts";
import type { Context, OrgId } from "../context.ts";
import { type RunTask, sessionEvents } from "../db/tables/runs.ts";
import type { Run } from "./schema.ts";

/** Usage of a limit. `most` null: no limit. */
export type Used = { name: string; unit: "seconds" | "usd" | "count"; used: number; most: number | null };

/** Usage of each limit in the last attempt of a run, most relevant first. */
export function listUsed(
  { db, config, now }: Pick<Context, "db" | "config" | "now">,
  org: OrgId,
  { runId, startedAt, completedAt, agent }: Run,
  { limits: asked }: Pick<RunTask, "limits">,
  attempt: number,
): Used[] {
  const limits = decideLimits(asked, config);
  const own = and(eq(sessionEvents.orgId, org), eq(sessionEvents.runId, runId), eq(sessionEvents.attempt, attempt));
  const ofType = (type: string) => sql<number>`coalesce(sum(${sessionEvents.type} = ${type}), 0)`;
  const count = db
    .select({ tools: ofType("tool_call"), requests: ofType("http") })
    .from(sessionEvents)
    .where(own)
    .get() ?? { tools: 0, requests: 0 };
  const field = (name: string) => sql`json_extract(${sessionEvents.data}, ${`$.${name}`})`;
  const model = db
    .select({
      calls: sql<number>`count(*)`,
      tokens: sql<number>`coalesce(sum(${field("inputTokens")} + ${field("outputTokens")}), 0)`,
      usd: sql<number>`coalesce(sum(${field("costUsd")}), 0)`,
    })
    .from(sessionEvents)
    .where(and(own, eq(sessionEvents.type, "usage")))
    .get() ?? { calls: 0, tokens: 0, usd: 0 };
  const seconds =
    startedAt === null ? 0 : ((completedAt === null ? now() : Date.parse(completedAt)) - Date.parse(startedAt)) / 1000;
  return [
    { name: "Time", unit: "seconds", used: Math.max(0, seconds), most: limits.wallClockMs / 1000 },
    { name: "Requests", unit: "count", used: count.requests, most: limits.maxRequests },
    ...(agent.model === null ? [] : ofModel(limits, count.tools, model)),
  ];
}

const ofModel = (
  { maxToolCalls, model: { calls, tokens, costUsd } }: Task["limits"],
  toolCalls: number,
  used: { calls: number; tokens: number; usd: number },
): Used[] => [
  { name: "Tool calls", unit: "count", used: toolCalls, most: maxToolCalls },
  { name: "Model calls", unit: "count", used: used.calls, most: calls },
  { name: "Tokens", unit: "count", used: used.tokens, most: tokens },
  { name: "Cost", unit: "usd", used: used.usd, most: costUsd },
];
