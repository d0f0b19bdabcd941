import { and, count, desc, eq, or, type SQL, sql } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import type { Compare, Comparison } from "../comparisons/compare.ts";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { type GateTarget, gates, prompts, runs, type Trigger } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import type { Prompts } from "../prompts/prompts.ts";
import type { Baselines } from "../reports/baseline.ts";
import type { Requests } from "../runs/requests.ts";
import { toIso } from "../schema.ts";
import { looks, smallestP } from "../stats/power.ts";
import { createGateProgress } from "./progress.ts";
import type { Gate, GateRequest } from "./schema.ts";
import { firstStep } from "./steps.ts";
import { createGateRuns, extendGate, type GateRow, targetsOf } from "./targets.ts";

type Parts = {
  prompts: Prompts;
  requests: Requests;
  baselines: Pick<Baselines, "findBaseline">;
  compare: Compare;
  commit: Commit;
  onError?: (error: unknown) => void;
};
/** The request for a gate, and who made it. */
export type GateInput = GateRequest & { trigger: Trigger; idempotencyKey?: string };

const alpha = 0.05;

export type Gates = ReturnType<typeof createGates>;

/** Gates: a head that runs next to its base, or against its prompts' baseline, until there are enough runs to decide whether it is worse. */
export function createGates(deps: Deps, { prompts: ofPrompts, requests, baselines, compare, commit, onError }: Parts) {
  const { db, baseUrl } = deps;
  const gateRuns = createGateRuns(deps, compare);
  const progress = createGateProgress(deps, { gateRuns, requests, commit, onError });
  const accept = createAccept(deps, { requests, baselines });

  function select(where: SQL | undefined, { limit, offset }: Page): Gate[] {
    const rows = db.select().from(gates).where(where).orderBy(desc(gates.id)).limit(limit).offset(offset).all();
    return rows.map(toGate);
  }

  const titleOf = db
    .select({ title: prompts.title })
    .from(prompts)
    .where(eq(prompts.id, sql.placeholder("id")))
    .prepare();

  function toGate(gate: GateRow): Gate {
    const { id, status, reason, adaptive, minScore, scope, budgetUsd } = gate;
    const { agent, urlMap, templateArgs } = gateRuns.askedOf(gate);
    return {
      id,
      statusUrl: `${baseUrl()}/api/v1/gates/${id}`,
      prompts: targetsOf(gate).map(({ promptId, headRequestId, baseRequestId }) => ({
        id: promptId,
        title: titleOf.get({ id: promptId })?.title ?? null,
        headRequestId,
        baseRequestId,
      })),
      status,
      reason,
      urlMap,
      templateArgs,
      runs: gate.runs,
      adaptive,
      minScore,
      scope,
      budgetUsd,
      spentUsd: gate.completedAt === null ? gateRuns.spentOf(gate) : gate.spentUsd,
      progress: gateRuns.progressOf(gate),
      head: gateRuns.headOf(gate),
      comparison: gate.comparison as Comparison | null,
      warnings: isRuleBased(agent) ? [] : warningsOf(gate),
      createdAt: toIso(gate.createdAt),
      completedAt: toIso(gate.completedAt),
    };
  }

  return {
    ...progress,

    /** Accepts a gate with its first runs. Throws what requesting a run throws, and bad_request if there is nothing to compare with. */
    async requestGate(org: OrgId, { promptId, promptIds, ...input }: GateInput): Promise<Gate> {
      const named = promptIds ?? (promptId === undefined ? [] : [promptId]);
      if (named.length === 0 || (promptIds && promptId !== undefined))
        throw badRequest("Pass promptId for one prompt, or promptIds for several.");
      const ids = named.map((id) => ofPrompts.getPromptRow(org, id).id);
      const gateId = await commit((t) => accept(t, org, [...new Set(ids)], input));
      requests.onQueued();
      return this.getGate(org, gateId);
    },

    /** Throws not_found. */
    getGate(org: OrgId, id: string): Gate {
      const [found] = select(and(eq(gates.orgId, org), eq(gates.id, id.toLowerCase())), { limit: 1, offset: 0 });
      if (!found) throw notFound(`No gate has the ID ${id}.`);
      return found;
    },

    /** Newest first. */
    listGates(org: OrgId, { promptId }: { promptId?: string }, page: Page): Paged<Gate> {
      const isOther = sql`exists (select 1 from json_each(${gates.others}) where value ->> 'promptId' = ${promptId})`;
      const ofPrompt = promptId === undefined ? undefined : or(eq(gates.promptId, promptId), isOther);
      const where = and(eq(gates.orgId, org), ofPrompt);
      return { items: select(where, page), total: db.select({ n: count() }).from(gates).where(where).get()?.n ?? 0 };
    },
  };
}

type Run = typeof runs.$inferSelect;

/** Accepts gates with their first runs, as part of a transaction. */
function createAccept(
  { now, newId }: Deps,
  { requests, baselines: { findBaseline } }: Pick<Parts, "requests" | "baselines">,
) {
  /** The baseline of a head without a base; null if there is none and only the minimum score applies. */
  function baselineFor(org: OrgId, head: Run, minScore: number | null): string[] | null {
    const isExact = isRuleBased(head.agent);
    const found = findBaseline(
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

  return (t: Tx, org: OrgId, promptIds: string[], input: Omit<GateInput, "promptId" | "promptIds">): string => {
    const { urlMap = {}, templateArgs, minScore = null, scope = "goal", budgetUsd = null } = input;
    const { trigger, idempotencyKey } = input;
    const most = looks[looks.length - 1]?.runs ?? 0;
    const wanted = input.runs ?? (input.adaptive ? most : 5);
    if (input.adaptive && wanted > most)
      throw badRequest(`Invalid runs: an adaptive gate makes at most ${most} runs per side.`);
    const isBeside = Object.keys(urlMap).length > 0;
    const gate = { runs: wanted, adaptive: input.adaptive ?? false, minScore, scope, budgetUsd };
    // Distinguishes different gates with the same idempotency key.
    const identity = { ...gate, promptIds };
    const request = (promptId: string, more: { urlMap: Record<string, string>; idempotencyKey?: string }) =>
      requests.accept(t, org, promptId, { templateArgs, trigger, runs: 1, ...more, gate: identity });
    const runOf = (id: string | undefined) =>
      t
        .select()
        .from(runs)
        .where(eq(runs.id, id ?? ""))
        .get() as Run;

    const [firstId = "", ...otherIds] = promptIds;
    const head = request(firstId, { urlMap, idempotencyKey });
    const earlier = and(eq(gates.orgId, org), eq(gates.headRequestId, head.evalRequestId));
    const known = t.select({ id: gates.id }).from(gates).where(earlier).get();
    if (known) return known.id;
    const targetOf = (promptId: string, { evalRequestId, runIds }: typeof head): GateTarget & { agent: string } => {
      const run = runOf(runIds[0]);
      const base = isBeside ? request(promptId, { urlMap: {} }) : null;
      return {
        promptId,
        headRequestId: evalRequestId,
        baseRequestId: base?.evalRequestId ?? null,
        baseRunIds: isBeside ? null : baselineFor(org, run, minScore),
        model: run.model,
        agent: run.agent,
      };
    };
    const first = targetOf(firstId, head);
    const others = otherIds.map((promptId) => targetOf(promptId, request(promptId, { urlMap })));
    const odd = others.find(({ agent, model }) => agent !== first.agent || model !== first.model);
    if (odd)
      throw badRequest(
        `Invalid promptIds: all prompts of a gate must use the same agent and model, but ${odd.promptId} uses ${odd.agent} ${odd.model ?? ""} and ${firstId} uses ${first.agent} ${first.model ?? ""}.`,
      );
    const { agent, ...target } = first;
    const createdAt = now();
    const row: GateRow = {
      ...target,
      ...gate,
      // A rule-based agent always does the same, so more runs add nothing.
      ...(isRuleBased(agent) ? { runs: 1, adaptive: false } : {}),
      id: newId(createdAt),
      orgId: org,
      others: others.length === 0 ? null : others.map(({ agent: _, ...other }) => other),
      status: "running",
      reason: null,
      comparison: null,
      spentUsd: null,
      createdAt,
      completedAt: null,
    };
    t.insert(gates).values(row).run();
    extendGate(t, requests, row, 1, firstStep(row));
    return row.id;
  };
}

function warningsOf(gate: GateRow): string[] {
  const targets = targetsOf(gate);
  const few = (runs: number, what: string) =>
    smallestP(runs, targets.length) < alpha
      ? []
      : [
          `${runs} ${runs === 1 ? "run" : "runs"} ${what}: too few for a verdict, so this gate can fail only because of minScore.`,
        ];
  const frozen = targets.flatMap(({ baseRunIds }) => baseRunIds?.length ?? []);
  return [...few(gate.runs, "per side"), ...(frozen.length > 0 ? few(Math.min(...frozen), "in the baseline") : [])];
}
