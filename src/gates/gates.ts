import { and, asc, count, desc, eq, or, sql } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import type { Comparison } from "../comparisons/compare.ts";
import { alpha } from "../comparisons/evidence.ts";
import type { Context, OrgId } from "../context.ts";
import { statement } from "../db/prepared.ts";
import { gates } from "../db/tables/gates.ts";
import { prompts } from "../db/tables/prompts.ts";
import { notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import type { Sort } from "../http/sorting.ts";
import { withoutUrlMapTokens } from "../net/mapping.ts";
import { titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import { toIso } from "../schema.ts";
import { minRuns, smallestP } from "../stats/power.ts";
import type { Gate } from "./schema.ts";
import {
  costOfGate,
  countGateRuns,
  decidingIndex,
  type GateAgentGroup,
  type GateRow,
  listGateAgents,
  requestOfGate,
  resultOfHead,
  targetsOf,
} from "./targets.ts";

// A gate compares a head with its base until there are enough runs to decide whether the head is worse. The base is another evaluation, whose runs
// alternate with the runs of the head, or the baseline of the prompts.

export const gateColumns = ["change", "created"] as const;
export type GateFilter = { promptId?: string; status?: GateRow["status"]; sort?: Sort<(typeof gateColumns)[number]> };

/** Gates without a comparison are last. */
const change = sql`json_extract(${gates.comparison}, '$.evidence.delta.value')`;
const orders = {
  created: [asc(gates.id)],
  "-created": [desc(gates.id)],
  change: [sql`${change} asc nulls last`, desc(gates.id)],
  "-change": [sql`${change} desc nulls last`, desc(gates.id)],
};

/** Throws not_found. */
export function getGate(ctx: Context, org: OrgId, id: string): Gate {
  const whereGate = and(eq(gates.orgId, org), eq(gates.id, id.toLowerCase()));
  const row = ctx.db.select().from(gates).where(whereGate).get();
  if (!row) throw notFound(`No gate has the ID ${id}.`);
  return toGate(ctx, row);
}

/** The ID of the newest gate with this evaluation on one of its sides; null if there is none. */
export function findGateOfEval({ db }: Context, org: OrgId, evalRequestId: string): string | null {
  const id = evalRequestId.toLowerCase();
  const whereOther = sql`exists (select 1 from json_each(${gates.others}) where value ->> 'headRequestId' = ${id} or value ->> 'baseRequestId' = ${id})`;
  const whereSide = or(eq(gates.headRequestId, id), eq(gates.baseRequestId, id), whereOther);
  const where = and(eq(gates.orgId, org), whereSide);
  return db.select({ id: gates.id }).from(gates).where(where).orderBy(desc(gates.id)).limit(1).get()?.id ?? null;
}

/** Newest first unless sorted. */
export function listGates(
  ctx: Context,
  org: OrgId,
  { promptId, status, sort = "-created" }: GateFilter,
  { limit, offset }: Page,
): Paged<Gate> {
  const whereOther = sql`exists (select 1 from json_each(${gates.others}) where value ->> 'promptId' = ${promptId})`;
  const ofPrompt = promptId === undefined ? undefined : or(eq(gates.promptId, promptId), whereOther);
  const where = and(eq(gates.orgId, org), ofPrompt, status && eq(gates.status, status));
  const rows = ctx.db
    .select()
    .from(gates)
    .where(where)
    .orderBy(...orders[sort])
    .limit(limit)
    .offset(offset)
    .all();
  return {
    items: rows.map((row) => toGate(ctx, row)),
    total: ctx.db.select({ n: count() }).from(gates).where(where).get()?.n ?? 0,
  };
}

const promptTitle = statement((db) =>
  db
    .select({ title: prompts.title, text: titleText })
    .from(prompts)
    .where(eq(prompts.id, sql.placeholder("id"))),
);

function toGate(ctx: Context, gate: GateRow): Gate {
  const { id, status, reason, cause, adaptive, minScore, scope, budgetUsd } = gate;
  const { urlMap, templateArgs } = requestOfGate(ctx, gate);
  const groups = listGateAgents(ctx, gate);
  const deciding = groups[decidingIndex(gate.agents ?? [])] as GateAgentGroup;
  const targets = targetsOf(gate).map((target) => {
    const prompt = promptTitle(ctx.db).get({ id: target.promptId });
    return { ...target, title: prompt ? titleOf(prompt) : null };
  });
  return {
    id,
    statusUrl: `${ctx.baseUrl()}/api/v1/gates/${id}`,
    pageUrl: `${ctx.baseUrl()}/gates/${id}`,
    prompts: targets.map(({ promptId, title, headRequestId, baseRequestId }) => ({
      id: promptId,
      title,
      headRequestId,
      baseRequestId,
    })),
    status,
    reason,
    cause,
    urlMap: withoutUrlMapTokens(urlMap),
    templateArgs,
    runs: gate.runs,
    adaptive,
    minScore,
    scope,
    budgetUsd,
    spentUsd: gate.completedAt === null ? costOfGate(ctx, gate) : gate.spentUsd,
    progress: countGateRuns(ctx, gate),
    head: resultOfHead(ctx, gate, deciding),
    comparison: gate.comparison as Comparison | null,
    agents: gate.agents as Gate["agents"],
    warnings: groups.every(({ agent }) => isRuleBased(agent)) ? [] : warningsOf(gate, targets, groups),
    createdAt: toIso(gate.createdAt),
    completedAt: toIso(gate.completedAt),
  };
}

type TitledTarget = ReturnType<typeof targetsOf>[number] & { title: string | null };

/** Warnings about each prompt that has too few runs to show a change. */
function warningsOf(gate: GateRow, targets: TitledTarget[], groups: GateAgentGroup[]): string[] {
  // A baseline contains the runs of all agents.
  const sizes = targets.map(({ baseRunIds }) => ({
    base: baseRunIds ? Math.floor(baseRunIds.length / groups.length) : gate.runs,
    head: gate.runs,
  }));
  // Without a base there is nothing to compare, and only minScore counts.
  if (sizes.some(({ base }) => base === 0) || smallestP(sizes) < alpha / groups.length) return [];
  const tooFew = (runs: number, what: string) =>
    `${runs} ${runs === 1 ? "run" : "runs"} ${what}: too few for a verdict, so this gate can fail only because of minScore.`;
  const baselines = targets.flatMap(({ promptId, title, baseRunIds }) => {
    const suffix = targets.length === 1 ? "" : ` of ${title ?? promptId}`;
    return baseRunIds && baseRunIds.length < minRuns ? [tooFew(baseRunIds.length, `in the baseline${suffix}`)] : [];
  });
  return [...(gate.runs < minRuns ? [tooFew(gate.runs, "per side")] : []), ...baselines];
}
