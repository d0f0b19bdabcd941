import { and, asc, count, desc, eq, inArray, or, type SQL, sql } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import type { Comparison } from "../comparisons/compare.ts";
import type { Context, OrgId } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { prepared } from "../db/prepared.ts";
import { type GateTarget, gates } from "../db/tables/gates.ts";
import { prompts } from "../db/tables/prompts.ts";
import { runs, type Trigger } from "../db/tables/runs.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import type { Sort } from "../http/sorting.ts";
import { shownUrlMap } from "../net/mapping.ts";
import type { Outbox } from "../notifications/outbox.ts";
import type { Prompts } from "../prompts/prompts.ts";
import { findBaseline } from "../reports/baseline.ts";
import type { Requests } from "../runs/requests.ts";
import { toIso } from "../schema.ts";
import { looks, minRuns, smallestP } from "../stats/power.ts";
import { createGateProgress } from "./progress.ts";
import { type Gate, type GateRequest, maxPrompts } from "./schema.ts";
import { firstStep } from "./steps.ts";
import { createGateRuns, decidingIndex, extendGate, type GateAgentGroup, type GateRow, targetsOf } from "./targets.ts";

type Parts = {
  prompts: Prompts;
  requests: Requests;
  commit: Commit;
  emit: Outbox["emit"];
  onError?: (error: unknown) => void;
};
/** The request for a gate, and who made it. */
export type GateInput = GateRequest & { trigger: Trigger; idempotencyKey?: string };

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

const alpha = 0.05;

export type Gates = ReturnType<typeof createGates>;

/** Gates: a head that runs next to its base, or against its prompts' baseline, until there are enough runs to decide whether it is worse. */
export function createGates(ctx: Context, { prompts: ofPrompts, requests, commit, emit, onError }: Parts) {
  const { db, baseUrl } = ctx;
  const gateRuns = createGateRuns(ctx);
  const progress = createGateProgress(ctx, { gateRuns, requests, commit, emit, onError });
  const accept = createAccept(ctx, { requests });

  function select(where: SQL | undefined, { limit, offset }: Page, order = orders["-created"]): Gate[] {
    const rows = db
      .select()
      .from(gates)
      .where(where)
      .orderBy(...order);
    return rows.limit(limit).offset(offset).all().map(toGate);
  }

  const titleOf = prepared(
    db
      .select({ title: prompts.title })
      .from(prompts)
      .where(eq(prompts.id, sql.placeholder("id"))),
  );

  function toGate(gate: GateRow): Gate {
    const { id, status, reason, cause, adaptive, minScore, scope, budgetUsd } = gate;
    const { urlMap, templateArgs } = gateRuns.askedOf(gate);
    const groups = gateRuns.groupsOf(gate);
    const deciding = groups[decidingIndex(gate.agents ?? [])] as GateAgentGroup;
    const titles = targetsOf(gate).map(({ promptId }) => titleOf.get({ id: promptId })?.title ?? null);
    return {
      id,
      statusUrl: `${baseUrl()}/api/v1/gates/${id}`,
      pageUrl: `${baseUrl()}/gates/${id}`,
      prompts: targetsOf(gate).map(({ promptId, headRequestId, baseRequestId }, i) => ({
        id: promptId,
        title: titles[i] ?? null,
        headRequestId,
        baseRequestId,
      })),
      status,
      reason,
      cause,
      urlMap: shownUrlMap(urlMap),
      templateArgs,
      runs: gate.runs,
      adaptive,
      minScore,
      scope,
      budgetUsd,
      spentUsd: gate.completedAt === null ? gateRuns.spentOf(gate) : gate.spentUsd,
      progress: gateRuns.progressOf(gate),
      head: gateRuns.headOf(gate, deciding),
      comparison: gate.comparison as Comparison | null,
      agents: gate.agents as Gate["agents"],
      warnings: groups.every(({ agent }) => isRuleBased(agent)) ? [] : warningsOf(gate, titles, groups),
      createdAt: toIso(gate.createdAt),
      completedAt: toIso(gate.completedAt),
    };
  }

  /** The prompts with a tag, oldest first. Throws bad_request where there are none or too many. */
  function tagged(org: OrgId, tag: string): string[] {
    const page = { limit: maxPrompts, offset: 0, includeArchived: false, tag };
    const { items, total } = ofPrompts.listPrompts(org, page);
    if (total === 0) throw badRequest(`Invalid tag: no prompt has the tag ${JSON.stringify(tag)}.`);
    if (total > maxPrompts)
      throw badRequest(
        `Invalid tag: ${total} prompts have the tag ${JSON.stringify(tag)}, and a gate takes at most ${maxPrompts}.`,
      );
    return items.map(({ id }) => id).reverse();
  }

  return {
    ...progress,

    /** Accepts a gate with its first runs. Throws what requesting a run throws, and bad_request if there is nothing to compare with. */
    async requestGate(org: OrgId, { promptId, promptIds, tag, ...input }: GateInput): Promise<Gate> {
      if ([promptId, promptIds, tag].filter((given) => given !== undefined).length !== 1)
        throw badRequest("Pass exactly one of promptId, promptIds and tag.");
      const named = promptIds ?? (promptId === undefined ? tagged(org, tag ?? "") : [promptId]);
      const ids = [...new Set(named.map((id) => ofPrompts.getPromptRow(org, id).id))];
      // A prompt that gets the tag later does not make a retry another request.
      const asked = tag === undefined ? { promptIds: ids } : { tag };
      const gateId = await commit((tx) => accept(tx, org, ids, asked, input));
      ctx.signals.jobQueued.emit();
      return this.getGate(org, gateId);
    },

    /** Throws not_found. */
    getGate(org: OrgId, id: string): Gate {
      const [found] = select(and(eq(gates.orgId, org), eq(gates.id, id.toLowerCase())), { limit: 1, offset: 0 });
      if (!found) throw notFound(`No gate has the ID ${id}.`);
      return found;
    },

    /** The newest gate with this evaluation on one of its sides; null if there is none. */
    findOfEval(org: OrgId, evalRequestId: string): string | null {
      const id = evalRequestId.toLowerCase();
      const isOther = sql`exists (select 1 from json_each(${gates.others}) where value ->> 'headRequestId' = ${id} or value ->> 'baseRequestId' = ${id})`;
      const isSide = or(eq(gates.headRequestId, id), eq(gates.baseRequestId, id), isOther);
      const where = and(eq(gates.orgId, org), isSide);
      return db.select({ id: gates.id }).from(gates).where(where).orderBy(desc(gates.id)).limit(1).get()?.id ?? null;
    },

    /** Newest first unless sorted. */
    listGates(org: OrgId, { promptId, status, sort = "-created" }: GateFilter, page: Page): Paged<Gate> {
      const isOther = sql`exists (select 1 from json_each(${gates.others}) where value ->> 'promptId' = ${promptId})`;
      const ofPrompt = promptId === undefined ? undefined : or(eq(gates.promptId, promptId), isOther);
      const where = and(eq(gates.orgId, org), ofPrompt, status && eq(gates.status, status));
      return {
        items: select(where, page, orders[sort]),
        total: db.select({ n: count() }).from(gates).where(where).get()?.n ?? 0,
      };
    },
  };
}

type Run = typeof runs.$inferSelect;

/** Accepts gates with their first runs, as part of a transaction. */
function createAccept(ctx: Context, { requests }: Pick<Parts, "requests">) {
  /** The baseline of a head without a base; null if there is none and only the minimum score applies. */
  function baselineFor(org: OrgId, head: Run, minScore: number | null): string[] | null {
    const isExact = isRuleBased(head.agent);
    const found = findBaseline(
      ctx,
      org,
      { ...head, methodology: null, scope: null },
      head.id,
      head.evalRequestId,
      isExact ? 1 : 2,
    );
    if (!found && minScore === null)
      throw badRequest(
        "There is nothing to compare with. Pass urlMap to compare a preview with the live docs, pass minScore, or give the prompt a baseline: two published runs, or a pinned evaluation.",
      );
    return found?.runs.slice(0, isExact ? 1 : undefined).map(({ runId }) => runId) ?? null;
  }

  /** The baselines of all agents. */
  function baselinesFor(org: OrgId, heads: Run[], minScore: number | null): string[] | null {
    const found = heads.map((head) => baselineFor(org, head, minScore));
    return found.every((ids) => ids === null) ? null : found.flatMap((ids) => ids ?? []);
  }

  return (
    tx: Tx,
    org: OrgId,
    promptIds: string[],
    asked: { promptIds: string[] } | { tag: string },
    input: Omit<GateInput, "promptId" | "promptIds" | "tag">,
  ): string => {
    const { urlMap = {}, templateArgs, minScore = null, scope = "goal", budgetUsd = null } = input;
    const { trigger, idempotencyKey } = input;
    const most = looks[looks.length - 1]?.runs ?? 0;
    const wanted = input.runs ?? (input.adaptive ? most : 5);
    if (input.adaptive && wanted > most)
      throw badRequest(`Invalid runs: an adaptive gate makes at most ${most} runs per side.`);
    const isBeside = Object.keys(urlMap).length > 0;
    const gate = { runs: wanted, adaptive: input.adaptive ?? false, minScore, scope, budgetUsd };
    // Distinguishes different gates with the same idempotency key.
    const identity = { ...gate, ...asked };
    const request = (promptId: string, more: { urlMap: Record<string, string>; idempotencyKey?: string }) =>
      requests.accept(tx, org, promptId, { templateArgs, trigger, runs: 1, ...more, gate: identity });
    const runsOf = (ids: string[]) => tx.select().from(runs).where(inArray(runs.id, ids)).orderBy(asc(runs.id)).all();

    const [firstId = "", ...otherIds] = promptIds;
    const head = request(firstId, { urlMap, idempotencyKey });
    const earlier = and(eq(gates.orgId, org), eq(gates.headRequestId, head.evalRequestId));
    const known = tx.select({ id: gates.id }).from(gates).where(earlier).get();
    if (known) return known.id;
    const targetOf = (promptId: string, { evalRequestId, runIds }: typeof head): GateTarget & { agents: Run[] } => {
      const agents = runsOf(runIds);
      const base = isBeside ? request(promptId, { urlMap: {} }) : null;
      return {
        promptId,
        headRequestId: evalRequestId,
        baseRequestId: base?.evalRequestId ?? null,
        baseRunIds: isBeside ? null : baselinesFor(org, agents, minScore),
        model: agents[0]?.model ?? null,
        agents,
      };
    };
    const first = targetOf(firstId, head);
    const others = otherIds.map((promptId) => targetOf(promptId, request(promptId, { urlMap })));
    const odd = others.find(({ agents }) => agentWords(agents) !== agentWords(first.agents));
    if (odd)
      throw badRequest(
        `Invalid promptIds: all prompts of a gate must use the same agents and models, but ${odd.promptId} uses ${agentWords(odd.agents)} and ${firstId} uses ${agentWords(first.agents)}.`,
      );
    const { agents, ...target } = first;
    const createdAt = ctx.now();
    const row: GateRow = {
      ...target,
      ...gate,
      // A rule-based agent always does the same, so more runs add nothing.
      ...(agents.every(({ agent }) => isRuleBased(agent)) ? { runs: 1, adaptive: false } : {}),
      id: ctx.newId(createdAt),
      orgId: org,
      others: others.length === 0 ? null : others.map(({ agents: _, ...other }) => other),
      status: "running",
      reason: null,
      cause: null,
      comparison: null,
      agents: null,
      spentUsd: null,
      createdAt,
      completedAt: null,
    };
    tx.insert(gates).values(row).run();
    extendGate(tx, requests, row, 1, firstStep(row));
    return row.id;
  };
}

/** Agents with their models, in words. */
const agentWords = (runs: Run[]): string =>
  runs.map(({ agent, model }) => (model === null ? agent : `${agent} with ${model}`)).join(", ");

/** Warns where so few runs cannot show a change: about each prompt that has too few. `titles`: of its prompts, in their order. */
function warningsOf(gate: GateRow, titles: (string | null)[], groups: GateAgentGroup[]): string[] {
  const targets = targetsOf(gate);
  // A baseline contains the runs of all agents.
  const sizes = targets.map(({ baseRunIds }) => ({
    base: baseRunIds ? Math.floor(baseRunIds.length / groups.length) : gate.runs,
    head: gate.runs,
  }));
  // Without a base there is nothing to compare with, and only minScore counts.
  if (sizes.some(({ base }) => base === 0) || smallestP(sizes) < alpha / groups.length) return [];
  const words = (runs: number, what: string) =>
    `${runs} ${runs === 1 ? "run" : "runs"} ${what}: too few for a verdict, so this gate can fail only because of minScore.`;
  const baselines = targets.flatMap(({ promptId, baseRunIds }, i) => {
    const of = targets.length === 1 ? "" : ` of ${titles[i] ?? promptId}`;
    return baseRunIds && baseRunIds.length < minRuns ? [words(baseRunIds.length, `in the baseline${of}`)] : [];
  });
  return [...(gate.runs < minRuns ? [words(gate.runs, "per side")] : []), ...baselines];
}
