import { and, asc, eq, inArray } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { type GateTarget, gates } from "../db/tables/gates.ts";
import { runs } from "../db/tables/runs.ts";
import { badRequest } from "../errors.ts";
import type { Requester } from "../http/caller.ts";
import { listPrompts } from "../prompts/lists.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { findBaseline } from "../reports/baseline.ts";
import { type AcceptedEval, acceptEval, type EvalRequestInput } from "../runs/requests.ts";
import type { RunRow } from "../runs/run-row.ts";
import { gateSteps } from "../stats/power.ts";
import { getGate } from "./gates.ts";
import { type Gate, type GateRequest, maxPrompts } from "./schema.ts";
import { firstStep } from "./steps.ts";
import { extendGate, type GateRow } from "./targets.ts";

/** The request for a gate, and who made it. */
type GateInput = GateRequest & { requester?: Requester; idempotencyKey?: string };

/** Runs per side of a gate that is not adaptive. */
const defaultRuns = 5;

/** What is compared. If another prompt gets the tag later, a retry is still the same request. */
type Selection = { promptIds: string[] } | { tag: string };

/**
 * Accepts a gate with its first runs, and resolves once it is on disk. Throws what requesting a run throws, and bad_request if there is nothing to
 * compare with.
 */
export async function requestGate(
  ctx: Context,
  org: OrgId,
  { promptId, promptIds, tag, ...input }: GateInput,
): Promise<Gate> {
  if ([promptId, promptIds, tag].filter((selector) => selector !== undefined).length !== 1)
    throw badRequest("Pass exactly one of promptId, promptIds and tag.");
  const requestedIds = promptIds ?? (promptId === undefined ? listTaggedIds(ctx, org, tag ?? "") : [promptId]);
  const ids = [...new Set(requestedIds.map((id) => getPromptRow(ctx, org, id).id))];
  const selection = tag === undefined ? { promptIds: ids } : { tag };
  const gateId = await ctx.commit((tx) => acceptGate(ctx, tx, org, ids, selection, input));
  ctx.signals.jobQueued.emit();
  return getGate(ctx, org, gateId);
}

/** The prompts with a tag, oldest first. Throws bad_request if there are none or too many. */
function listTaggedIds(ctx: Context, org: OrgId, tag: string): string[] {
  const page = { limit: maxPrompts, offset: 0, includeArchived: false, tag };
  const { items, total } = listPrompts(ctx, org, page);
  if (total === 0) throw badRequest(`Invalid tag: no prompt has the tag ${JSON.stringify(tag)}.`);
  if (total > maxPrompts)
    throw badRequest(
      `Invalid tag: ${total} prompts have the tag ${JSON.stringify(tag)}, and a gate takes at most ${maxPrompts}.`,
    );
  return items.map(({ id }) => id).reverse();
}

/** Accepts a gate with its first runs within a transaction. Returns its ID. */
function acceptGate(
  ctx: Context,
  tx: Tx,
  org: OrgId,
  promptIds: string[],
  selection: Selection,
  input: Omit<GateInput, "promptId" | "promptIds" | "tag">,
): string {
  const { urlMap = {}, sites = {}, baseSites = {}, templateArgs, requester, idempotencyKey } = input;
  const settings = toSettings(input);
  // This distinguishes different gates with the same idempotency key.
  const identity = { ...settings, ...selection };
  const requestRuns = (
    promptId: string,
    side: { urlMap: Record<string, string>; sites: EvalRequestInput["sites"]; idempotencyKey?: string },
  ) => acceptEval(ctx, tx, org, promptId, { trigger: "ci", requester, templateArgs, runs: 1, ...side, gate: identity });

  const [firstId = "", ...otherIds] = promptIds;
  const firstHead = requestRuns(firstId, { urlMap, sites, idempotencyKey });
  // For a retry, this is the evaluation of the first request. It already has a gate.
  const whereHead = and(eq(gates.orgId, org), eq(gates.headRequestId, firstHead.evalRequestId));
  const earlierGate = tx.select({ id: gates.id }).from(gates).where(whereHead).get();
  if (earlierGate) return earlierGate.id;
  const hasBase = [urlMap, sites, baseSites].some((each) => Object.keys(each).length > 0);
  const targetOf = (promptId: string, head: AcceptedEval): Target => {
    const firstRuns = tx.select().from(runs).where(inArray(runs.id, head.runIds)).orderBy(asc(runs.id)).all();
    const base = hasBase ? requestRuns(promptId, { urlMap: {}, sites: baseSites }) : null;
    return {
      promptId,
      headRequestId: head.evalRequestId,
      baseRequestId: base?.evalRequestId ?? null,
      baseRunIds: hasBase ? null : findBaselines(ctx, org, firstRuns, settings.minScore),
      model: firstRuns[0]?.model ?? null,
      firstRuns,
    };
  };
  const first = targetOf(firstId, firstHead);
  const others = otherIds.map((promptId) => targetOf(promptId, requestRuns(promptId, { urlMap, sites })));
  checkSameAgents(first, others);
  const row = toRow(ctx, org, settings, first, others);
  tx.insert(gates).values(row).run();
  recordAudit(ctx, org, "gate.requested", { id: row.id }, changesOf({}, { promptIds, runs: row.runs }));
  extendGate(ctx, tx, row, 1, firstStep(row));
  return row.id;
}

type GateSettings = Pick<GateRow, "runs" | "adaptive" | "minScore" | "scope" | "budgetUsd">;
/** `firstRuns`: the first run of each agent on the head. */
type Target = GateTarget & { firstRuns: RunRow[] };

/** Throws bad_request. */
function toSettings({ runs, adaptive = false, minScore = null, scope = "goal", budgetUsd = null }: Partial<GateInput>) {
  const maxRuns = gateSteps.at(-1)?.runs ?? 0;
  const runsPerSide = runs ?? (adaptive ? maxRuns : defaultRuns);
  const settings: GateSettings = { runs: runsPerSide, adaptive, minScore, scope, budgetUsd };
  if (adaptive && runsPerSide > maxRuns)
    throw badRequest(`Invalid runs: an adaptive gate makes at most ${maxRuns} runs per side.`);
  return settings;
}

function toRow(ctx: Context, org: OrgId, settings: GateSettings, first: Target, others: Target[]): GateRow {
  const { firstRuns, ...target } = first;
  const createdAt = ctx.now();
  // A rule-based agent always does the same, so more runs add nothing.
  const isDeterministic = firstRuns.every(({ agent }) => isRuleBased(agent));
  return {
    ...target,
    ...settings,
    ...(isDeterministic && { runs: 1, adaptive: false }),
    id: ctx.newId(createdAt),
    orgId: org,
    others: others.length === 0 ? null : others.map(({ firstRuns: _, ...other }) => other),
    status: "running",
    reason: null,
    cause: null,
    comparison: null,
    agents: null,
    spentUsd: null,
    createdAt,
    completedAt: null,
  };
}

/** The runs of the baselines of all agents. null: there are none, and only the minimum score applies. Throws bad_request. */
function findBaselines(ctx: Context, org: OrgId, heads: RunRow[], minScore: number | null): string[] | null {
  const baselines = heads.map((head) => {
    const isDeterministic = isRuleBased(head.agent);
    // These fields are known only once the head has finished, so they are left open.
    const variant = { ...head, contextDigest: undefined, methodology: null, scope: null };
    const baseline = findBaseline(ctx, org, variant, {
      before: head.id,
      exceptEvalRequestId: head.evalRequestId,
      minRuns: isDeterministic ? 1 : 2,
    });
    if (!baseline && minScore === null)
      throw badRequest(
        "There is nothing to compare with. Pass urlMap to compare a preview with the live docs, pass minScore, or give the prompt a baseline: two published runs, or a pinned evaluation.",
      );
    return baseline?.runs.slice(0, isDeterministic ? 1 : undefined).map(({ runId }) => runId) ?? null;
  });
  return baselines.every((ids) => ids === null) ? null : baselines.flatMap((ids) => ids ?? []);
}

/** Throws bad_request if a prompt uses other agents or models than the first one. */
function checkSameAgents(first: Target, others: Target[]): void {
  const other = others.find(({ firstRuns }) => agentWords(firstRuns) !== agentWords(first.firstRuns));
  if (other)
    throw badRequest(
      `Invalid promptIds: all prompts of a gate must use the same agents and models, but ${other.promptId} uses ${agentWords(other.firstRuns)} and ${first.promptId} uses ${agentWords(first.firstRuns)}.`,
    );
}

/** Agents with their models, in words. */
const agentWords = (runs: RunRow[]): string =>
  runs.map(({ agent, model }) => (model === null ? agent : `${agent} with ${model}`)).join(", ");
