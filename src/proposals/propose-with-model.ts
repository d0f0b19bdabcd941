import { eq, sql } from "drizzle-orm";
import { type AgentEvent, AgentFailure, toAgentFailure } from "../agents/agent.ts";
import { codeOfCall } from "../agents/endings.ts";
import { type ModelAccess, maxPriceOf } from "../agents/gateway/prices.ts";
import type { Context, OrgId } from "../context.ts";
import { proposalSets } from "../db/tables/proposals.ts";
import { turnOfOrg } from "../http/turns.ts";
import { generate, type ModelMessage, readFailure } from "../models/generation.ts";
import { gatewayOf, getModel, listModelSecrets } from "../models/models.ts";
import { isCallableModel } from "../prompts/prompt-check.ts";
import { createRedaction } from "../redaction/redaction.ts";
import { announceSpending } from "../runs/announcements.ts";
import { findOrgBudget, type MonthBudget, stateOf } from "../runs/budgets.ts";
import { judgeModelsOf } from "../runs/judging.ts";
import { sharedBudgetsOf } from "../runs/month-budget.ts";
import { recordOrgSpending } from "../runs/paid-calls.ts";
import { acceptModelProposals } from "./model-proposals.ts";
import { modelAnswerSchema, readProposals, toComplaint, toModelRequest } from "./model-request.ts";
import type { ProposalResult, ProposalSource } from "./proposal.ts";
import type { ProposalSetRow } from "./proposal-sets.ts";
import { defaultMaxUsd } from "./schema.ts";

/** Maximum calls and tokens. The second call states why proposals of the first can't be used. */
const limits = { calls: 2, tokens: 400_000 };
/** How long an abandoned response is still read, to learn its cost. */
const drainMs = 3_000;
/** Few tokens are shorter, in any language. So the estimate is too high rather than too low. */
const bytesPerToken = 3;

/** The proposals of a model that can be used. `costUsd`: what its calls in all attempts cost, in USD; null: unknown. */
export type ModelResult = ProposalResult & { costUsd: number | null };

/** The models that an organization can call and has chosen for its agents or its judges. */
export const listProposalModels = (ctx: Context, org: OrgId): string[] =>
  [...new Set([ctx.config.agentModel, ...judgeModelsOf(ctx, org)])].filter(
    (model): model is string => model !== null && isCallableModel(ctx, org, model),
  );

/**
 * Proposes tasks with a model. The model gets the pages as data and no tools. Proposals that can't be used are requested once more, with the reasons.
 * Each call counts in the set and in the spending of the organization as soon as it ends. Throws AgentFailure, and AppError if the model can't be
 * called.
 */
export async function proposeWithModel(
  ctx: Context,
  set: ProposalSetRow,
  model: string,
  source: ProposalSource,
  stop: AbortSignal,
): Promise<ModelResult> {
  const org = set.orgId as OrgId;
  const access = getModel(ctx, org, model);
  const budget = findOrgBudget(ctx, org);
  const leftUsd = leftUsdOf(ctx, set, budget);
  const { clean } = createRedaction(listModelSecrets(ctx, org));
  const { instructions, prompt } = toModelRequest(source);
  const messages: ModelMessage[] = [{ role: "user", content: clean(prompt) }];
  const inputUsd = maxPriceOf(Buffer.byteLength(instructions + prompt) / bytesPerToken, 0, access) ?? 0;
  // The gateway limits only the output of a call to this amount. The input is subtracted first, because it costs extra.
  const maxCostUsd = leftUsd - inputUsd;
  if (maxCostUsd <= 0) throw toBudgetFailure(inputUsd, leftUsd);
  const mustHavePrice = set.request.maxUsd !== undefined || budget !== null;
  const { gatewaySession, costs, failures, close } = openModelSession(ctx, set, { access, maxCostUsd, mustHavePrice });
  let answers: unknown[] = [];
  let result: ProposalResult = { proposals: [], dropped: [] };
  try {
    for (let calls = 0; calls < limits.calls; calls++) {
      const call = { access, gatewaySession, schema: modelAnswerSchema, instructions, messages, stop };
      const response = await generate(ctx, call);
      if ("error" in response) {
        // The first call already has an answer.
        if (calls > 0) break;
        throw failures[0] ?? toCallFailure(response.error, ctx.now(), clean);
      }
      const newAnswers = readProposals(response.output);
      answers = [...answers, ...newAnswers];
      // The complaint is only about the last response. The result comes from both responses.
      const { objections } = acceptModelProposals(source, newAnswers);
      result = acceptModelProposals(source, answers);
      const areAllUsable = newAnswers.length > 0 && objections.length === 0;
      const canPayAnother = gatewaySession.spent().costUsd + inputUsd <= maxCostUsd;
      if (result.proposals.length >= source.count || areAllUsable || !canPayAnother) break;
      messages.push({ role: "assistant", content: response.text.slice(0, 40_000) || "(nothing)" });
      messages.push({ role: "user", content: toComplaint(objections) });
    }
  } finally {
    await close();
  }
  const { proposals, dropped } = result;
  return { proposals, dropped, costUsd: sumOf([set.costUsd ?? 0, ...costs]) };
}

/** How a model is called for a set. `maxCostUsd`: the limit for all its calls, without their input. */
type ModelSessionOptions = { access: ModelAccess; maxCostUsd: number; mustHavePrice: boolean };

/** A session of the gateway that counts each call when it ends. It records the cost, null if unknown, and the failure, if there is one. */
function openModelSession(
  ctx: Context,
  set: ProposalSetRow,
  { access, maxCostUsd, mustHavePrice }: ModelSessionOptions,
) {
  const org = set.orgId as OrgId;
  const failures: AgentFailure[] = [];
  const costs: (number | null)[] = [];
  const writes: Promise<void>[] = [];
  const gatewaySession = gatewayOf(ctx).openSession({
    silenceMs: ctx.config.idleTimeoutMs,
    drainMs,
    model: access,
    limits: { ...limits, costUsd: maxCostUsd },
    shared: sharedBudgetsOf(ctx, org, null),
    mustHavePrice,
    waitForTurn: () => turnOfOrg(ctx, org),
    onEvent: (event) => {
      if (event.type !== "usage") return;
      costs.push(event.costUsd);
      writes.push(recordCost(ctx, org, set.id, event));
    },
    onFailure: (failure) => failures.push(failure),
  });
  const close = async () => {
    await gatewaySession.close();
    await Promise.all(writes);
  };
  return { gatewaySession, costs, failures, close };
}

/** How much a set may still cost, in USD, by its own limit and by the budget of the organization. */
function leftUsdOf(ctx: Context, { orgId, request, costUsd }: ProposalSetRow, budget: MonthBudget | null): number {
  const leftOfSet = (request.maxUsd ?? defaultMaxUsd) - (costUsd ?? 0);
  return budget === null ? leftOfSet : Math.min(leftOfSet, stateOf(ctx, orgId, budget).freeUsd);
}

/** Counts a call in its set and in the month of the organization. If its cost is unknown, both count the estimate. */
function recordCost(
  ctx: Context,
  org: OrgId,
  setId: string,
  { costUsd, estimate }: Extract<AgentEvent, { type: "usage" }>,
): Promise<void> {
  const estimatedUsd = estimate?.costUsd ?? 0;
  return ctx.commit((tx) => {
    tx.update(proposalSets)
      .set({ costUsd: sql`coalesce(${proposalSets.costUsd}, 0) + ${costUsd ?? estimatedUsd}` })
      .where(eq(proposalSets.id, setId))
      .run();
    recordOrgSpending(tx, org, { at: ctx.now(), usd: costUsd, estimatedUsd });
    announceSpending(ctx, tx, org);
  });
}

const toBudgetFailure = (inputUsd: number, leftUsd: number): AgentFailure =>
  toAgentFailure(
    "run_limit",
    `the model would cost about $${inputUsd.toFixed(4)} to read the docs, and $${Math.max(0, leftUsd).toFixed(4)} is left; raise maxUsd or the budget of the month`,
  );

function toCallFailure(error: unknown, nowMs: number, clean: (text: string) => string): AgentFailure {
  const { status, message, retryAfterMs, mayPass } = readFailure(error, nowMs);
  return new AgentFailure(codeOfCall(status), clean(message), { retryable: mayPass, retryAfterMs });
}

const sumOf = (costs: (number | null)[]): number | null =>
  costs.includes(null) ? null : costs.reduce<number>((sum, usd) => sum + (usd ?? 0), 0);
