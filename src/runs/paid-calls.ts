import { and, eq, gte, lt, sql } from "drizzle-orm";
import type { AgentEvent } from "../agents/agent.ts";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { bound, statement } from "../db/prepared.ts";
import { evalRequests, runs } from "../db/tables/runs.ts";
import { type callPurposes, spending, spendingDetails } from "../db/tables/spending.ts";

/** Spending is stored by periods of these lengths, in ms. The offset of every time zone from UTC is a multiple of the shorter one. */
export const quarterMs = 900_000;
export const dayMs = 86_400_000;

/** Stored periods of one length, from the start of the first period to the end of the last one. */
type PeriodSpan = [lengthMs: number, start: number, end: number];

/** The stored periods that make up a period of at least two days. These are whole days, with quarters of an hour before and after them. */
export function periodSpansOf({ from, until }: { from: number; until: number }): PeriodSpan[] {
  const firstDay = Math.ceil(from / dayMs) * dayMs;
  const afterDays = Math.max(firstDay, Math.floor(until / dayMs) * dayMs);
  return [
    [quarterMs, from, firstDay],
    [dayMs, firstDay, afterDays],
    [quarterMs, afterDays, until],
  ];
}

/** Whether details of an organization's spending belong to these periods. */
export const isWithin = (org: string, [lengthMs, start, end]: PeriodSpan) =>
  and(
    eq(spendingDetails.orgId, org),
    eq(spendingDetails.lengthMs, lengthMs),
    gte(spendingDetails.from, start),
    lt(spendingDetails.from, end),
  );

/** A model call of a run, or for its session. */
type PaidCall = {
  /** When it ended, epoch ms. */
  at: number;
  model: string;
  purpose: (typeof callPurposes)[number];
  /** null: unknown. */
  usd: number | null;
  /** The amount that counts if the cost is unknown; 0: there is no estimate either. */
  estimatedUsd: number;
  /** Whether the call judged the session again for a regrade. Then it is not a cost of the run. */
  isRegrade?: boolean;
};

/** The call of a usage event of a session. null: the event comes from the agent, which only claims what it used, so it doesn't count. */
export function paidCallOf(at: number, source: string, event: AgentEvent): PaidCall | null {
  if (event.type !== "usage" || source === "agent") return null;
  const { model, costUsd, estimate } = event;
  const purpose = source === "gateway" ? "agent" : "judge";
  return { at, model, purpose, usd: costUsd, estimatedUsd: estimate?.costUsd ?? 0 };
}

const requestOfRun = statement((db) =>
  db
    .select({
      orgId: runs.orgId,
      promptId: runs.promptId,
      agent: runs.agent,
      trigger: evalRequests.trigger,
      personId: evalRequests.personId,
      keyId: evalRequests.keyId,
    })
    .from(runs)
    .innerJoin(evalRequests, and(eq(evalRequests.orgId, runs.orgId), eq(evalRequests.id, runs.evalRequestId)))
    .where(eq(runs.id, bound("runId"))),
);

/** The primary key of details. Its columns are never null: an empty ID means that there is no person or key. */
const detailKey = [
  spendingDetails.orgId,
  spendingDetails.promptId,
  spendingDetails.lengthMs,
  spendingDetails.from,
  spendingDetails.agent,
  spendingDetails.model,
  spendingDetails.purpose,
  spendingDetails.trigger,
  spendingDetails.personId,
  spendingDetails.keyId,
];

/** Counts the cost of a call for its run, prompt and organization. A call counts even if its event could not be stored, because it was paid for. */
export function recordSpending({ db }: Context, tx: Tx, runId: string, call: PaidCall): void {
  const request = requestOfRun(db).get({ runId });
  if (!request) throw new Error(`There is no run ${runId} to count the cost of a call for.`);
  const { orgId, promptId, agent, trigger, personId, keyId } = request;
  const { at, model, purpose, isRegrade = false } = call;
  const { usd, estimatedUsd } = recordOrgSpending(tx, orgId, call);
  for (const lengthMs of [quarterMs, dayMs])
    tx.insert(spendingDetails)
      .values({
        orgId,
        promptId,
        lengthMs,
        from: at - (at % lengthMs),
        agent,
        model,
        purpose,
        ...(isRegrade
          ? { trigger: "regrade", personId: "", keyId: "" }
          : { trigger, personId: personId ?? "", keyId: keyId ?? "" }),
        usd,
        estimatedUsd,
      })
      .onConflictDoUpdate({
        target: detailKey,
        set: {
          usd: sql`${spendingDetails.usd} + ${usd}`,
          estimatedUsd: sql`${spendingDetails.estimatedUsd} + ${estimatedUsd}`,
        },
      })
      .run();
  if (!isRegrade && usd > 0)
    tx.update(runs)
      .set({ spentUsd: sql`coalesce(${runs.spentUsd}, 0) + ${usd}` })
      .where(eq(runs.id, runId))
      .run();
}

/** Counts the cost of a call for its organization only, for calls that belong to no prompt. Returns the amount that counts. */
export function recordOrgSpending(
  tx: Tx,
  orgId: string,
  call: { at: number; usd: number | null; estimatedUsd: number },
) {
  const { at } = call;
  const estimatedUsd = call.usd === null ? call.estimatedUsd : 0;
  const usd = call.usd ?? estimatedUsd;
  const unpricedCalls = call.usd === null ? 1 : 0;
  tx.insert(spending)
    .values({ orgId, from: at - (at % quarterMs), usd, estimatedUsd, unpricedCalls })
    .onConflictDoUpdate({
      target: [spending.orgId, spending.from],
      set: {
        usd: sql`${spending.usd} + ${usd}`,
        estimatedUsd: sql`${spending.estimatedUsd} + ${estimatedUsd}`,
        unpricedCalls: sql`${spending.unpricedCalls} + ${unpricedCalls}`,
      },
    })
    .run();
  return { usd, estimatedUsd };
}
