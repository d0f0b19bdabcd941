import { and, eq } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { type Arm, experimentRuns, experiments, type TriggerLabels } from "../db/tables/experiments.ts";
import { runs } from "../db/tables/runs.ts";
import { badRequest, invalidField } from "../errors.ts";
import { listPrompts } from "../prompts/lists.ts";
import { agentsForRun } from "../prompts/prompt-check.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { getEstimate } from "../runs/estimates.ts";
import { resolveSections } from "../runs/hidden-sections.ts";
import { acceptEval, addRuns, type EvalSource } from "../runs/requests.ts";
import { isId } from "../schema.ts";
import { findEqualArm, orderOfRepeat } from "./design.ts";
import { getExperiment } from "./experiments.ts";
import { type ExperimentRow, ofExperiment } from "./results.ts";
import { type Experiment, type ExperimentEstimate, type ExperimentRequest, maxPrompts, maxRuns } from "./schema.ts";

/**
 * A checked request. `repeats`: 1 if runs never vary. `triggering`: which prompts should make agents use a skill or MCP server, and which should not.
 */
type Design = { arms: Arm[]; promptIds: string[]; repeats: number; triggering: TriggerLabels | null };

/**
 * Accepts an experiment with its first runs, and resolves once it is on disk. The prompts are frozen: later runs repeat the first ones. Throws what
 * requesting a run throws. Throws bad_request for a hidden section that its page doesn't have, for arms that can't be compared, and for a budget
 * below the usual cost of one repeat.
 */
export async function requestExperiment(
  ctx: Context,
  org: OrgId,
  input: ExperimentRequest & EvalSource,
): Promise<Experiment> {
  const design = toDesign(ctx, org, { ...input, arms: await withoutSections(ctx, input.arms) });
  const { arms, promptIds, repeats, triggering } = design;
  const { budgetUsd = null, everyWeeks = null, seed = Math.floor(Math.random() * 1_000_000) } = input;
  const { title = arms.map(({ name }) => name).join(" · "), templateArgs = null } = input;
  if (budgetUsd !== null) checkBudget(budgetUsd, estimateDesign(ctx, org, design));
  if (everyWeeks !== null && findEqualArm(arms) < 0)
    throw invalidField("everyWeeks", "only a comparison of the base with itself is repeated");
  const createdAt = ctx.now();
  const request = { title, arms, promptIds, triggering, templateArgs, repeats, seed, budgetUsd, everyWeeks };
  const nothingMeasured = { drift: null, stopReason: null, analysis: null, spentUsd: null, completedAt: null };
  const row: ExperimentRow = {
    id: ctx.newId(createdAt),
    orgId: org,
    ...request,
    status: "running",
    createdAt,
    ...nothingMeasured,
  };
  await ctx.commit((tx) => {
    tx.insert(experiments).values(row).run();
    acceptFirstRepeat(ctx, tx, row, input);
    // Without a budget nothing depends on the cost of the first runs.
    if (budgetUsd === null) for (let repeat = 1; repeat < repeats; repeat++) addRepeat(ctx, tx, row, repeat);
    recordAudit(ctx, org, "experiment.requested", { id: row.id, name: title }, changesOf({}, { promptIds, repeats }));
  });
  ctx.signals.jobQueued.emit();
  return getExperiment(ctx, org, row.id);
}

/** The arms with a replacement in place of each hidden section. */
const withoutSections = (ctx: Context, arms: Arm[]): Promise<Arm[]> =>
  Promise.all(
    arms.map(async (arm, i) => {
      const { edits, urlMap = {} } = arm;
      return edits ? { ...arm, edits: await resolveSections(ctx, edits, urlMap, `arms.${i}.edits`) } : arm;
    }),
  );

/** Throws bad_request if one repeat usually costs more than the budget. */
function checkBudget(budgetUsd: number, { repeats, runs: total, usd }: ExperimentEstimate): void {
  if (usd !== null && usd / repeats > budgetUsd)
    throw invalidField(
      "budgetUsd",
      `one repeat with ${total / repeats} runs usually costs $${(usd / repeats).toFixed(2)}; raise it, or take fewer prompts or arms`,
    );
}

/** What an experiment would cost. Throws like `requestExperiment`. */
export const estimateExperiment = (ctx: Context, org: OrgId, input: ExperimentRequest): ExperimentEstimate =>
  estimateDesign(ctx, org, toDesign(ctx, org, input));

/** Throws bad_request, which names the field. */
function toDesign(ctx: Context, org: OrgId, input: ExperimentRequest): Design {
  const { arms, repeats = 5 } = input;
  const triggering = toTriggerLabels(ctx, org, input.triggering);
  const labeledIds = triggering && [...triggering.should, ...triggering.shouldNot];
  const ids = requestedIds(ctx, org, input, labeledIds);
  const names = arms.map(({ name }) => name);
  const repeated = names.findIndex((name, i) => names.indexOf(name) !== i);
  if (repeated >= 0) throw invalidField(`arms.${repeated}.name`, "an earlier arm has the same name");
  const equal = findEqualArm(arms);
  // Two equal arms compare the base with itself, to learn how often a gate fails without a reason.
  if (equal >= 0 && arms.length > 2) throw invalidField(`arms.${equal}`, "changes the same as an earlier arm");
  const absent = labeledIds?.find((id) => !ids.includes(id));
  if (absent !== undefined) throw invalidField("triggering", `the prompt ${absent} is not part of the experiment`);
  const agents = ids.flatMap((id) => arms.flatMap((arm, i) => agentOfArm(ctx, org, id, arm, i)));
  const usefulRepeats = agents.every(({ agent }) => isRuleBased(agent)) ? 1 : repeats;
  const runCount = ids.length * arms.length * usefulRepeats;
  if (runCount > maxRuns)
    throw badRequest(`The experiment would make ${runCount} runs, and at most ${maxRuns} are possible.`);
  return { arms, promptIds: ids, repeats: usefulRepeats, triggering };
}

/**
 * The IDs of the prompts that a request names, without duplicates. It names them by ID, by a tag, or by the labels of `triggering`. Throws
 * bad_request and not_found.
 */
function requestedIds(ctx: Context, org: OrgId, { promptIds, tag }: ExperimentRequest, labeledIds: string[] | null) {
  if (promptIds !== undefined && tag !== undefined) throw badRequest("Pass either promptIds or tag.");
  const ids = promptIds ?? (tag === undefined ? labeledIds : listTagged(ctx, org, "tag", tag));
  if (ids === null) throw badRequest("Pass either promptIds or tag.");
  return [...new Set(ids.map((id) => getPromptRow(ctx, org, id).id))];
}

/** The labels with the IDs of all prompts. Throws bad_request if a prompt has both labels or no prompt has one. */
function toTriggerLabels(ctx: Context, org: OrgId, labels: ExperimentRequest["triggering"]): TriggerLabels | null {
  if (labels === undefined) return null;
  const idsOf = (field: "should" | "shouldNot"): string[] => {
    const ids = (labels[field] ?? []).flatMap((name) =>
      isId(name) ? getPromptRow(ctx, org, name).id : listTagged(ctx, org, `triggering.${field}`, name),
    );
    return [...new Set(ids)];
  };
  const [should, shouldNot] = [idsOf("should"), idsOf("shouldNot")];
  const both = should.find((id) => shouldNot.includes(id));
  if (both !== undefined) throw invalidField("triggering.shouldNot", `the prompt ${both} has both labels`);
  if (should.length + shouldNot.length === 0) throw invalidField("triggering", "names no prompt");
  if (should.length + shouldNot.length > maxPrompts)
    throw invalidField("triggering", `names more than ${maxPrompts} prompts`);
  return { of: labels.of ?? null, should, shouldNot };
}

/**
 * The agent of a prompt in an arm, as a list of one. Throws bad_request if the prompt names several agents, and for an agent or model that can't be
 * used.
 */
function agentOfArm(ctx: Context, org: OrgId, promptId: string, { agent, model }: Arm, i: number) {
  const agents = agentsForRun(ctx, org, getPromptRow(ctx, org, promptId), { agent, model });
  if (agents.length > 1)
    throw invalidField(`arms.${i}.agent`, `the prompt ${promptId} names several agents; choose one for the arm`);
  return agents;
}

function listTagged(ctx: Context, org: OrgId, field: string, tag: string): string[] {
  const { items, total } = listPrompts(ctx, org, { limit: maxPrompts, offset: 0, includeArchived: false, tag });
  if (total === 0) throw invalidField(field, `no prompt has the tag ${JSON.stringify(tag)}`);
  if (total > maxPrompts)
    throw invalidField(field, `${total} prompts have it, and an experiment takes at most ${maxPrompts}`);
  return items.map(({ id }) => id).reverse();
}

function estimateDesign(ctx: Context, org: OrgId, { arms, promptIds, repeats }: Design): ExperimentEstimate {
  const costs = promptIds.flatMap((id) =>
    arms.map(({ agent, model }) => getEstimate(ctx, org, id, { agent, model }).costUsd),
  );
  const runs = costs.length * repeats;
  const knownCosts = costs.filter((cost) => cost !== null);
  if (knownCosts.length < costs.length) return { runs, repeats, usd: null, maxUsd: null };
  const usd = repeats * knownCosts.reduce((sum, { median, high }) => sum + (median ?? high), 0);
  const maxUsd = repeats * knownCosts.reduce((sum, { high }) => sum + high, 0);
  return { runs, repeats, usd, maxUsd };
}

/** Requests the evaluation of each prompt in each arm with its first run, in the order of the first repeat. */
function acceptFirstRepeat(ctx: Context, tx: Tx, row: ExperimentRow, source: EvalSource): void {
  const { orgId, promptIds, arms, seed, templateArgs } = row;
  const { trigger, requester } = source;
  for (const { promptId, arm } of orderOfRepeat(promptIds, namesOf(row), seed, 0)) {
    const { urlMap = {}, sites, edits, agent, model, ...others } = arms.find(({ name }) => name === arm)!;
    const { providerId, workspace, without } = others;
    const evaluation = { trigger, requester, urlMap, sites, edits, agent, model, runs: 1 };
    const hasChanges = providerId !== undefined || workspace !== undefined || without !== undefined;
    const accepted = acceptEval(ctx, tx, orgId as OrgId, promptId, {
      ...evaluation,
      templateArgs: { ...getPromptRow(ctx, orgId as OrgId, promptId).templateDefaults, ...templateArgs },
      ...(hasChanges && { changes: { providerId, workspace, without } }),
    });
    const runId = accepted.runIds[0]!;
    const run = tx.select({ model: runs.model }).from(runs).where(eq(runs.id, runId)).get();
    addRow(tx, row, { runId, arm, block: 0, model: run?.model ?? null });
  }
}

/** Requests the next run of each prompt in each arm, within a transaction; emit `jobQueued` afterwards. `repeat`: from 1. */
export function addRepeat(ctx: Context, tx: Tx, row: ExperimentRow, repeat: number): void {
  const { orgId, promptIds, seed } = row;
  const evaluations = tx
    .select({
      promptId: runs.promptId,
      evalRequestId: runs.evalRequestId,
      arm: experimentRuns.arm,
      model: experimentRuns.model,
    })
    .from(experimentRuns)
    .innerJoin(runs, eq(runs.id, experimentRuns.runId))
    .where(and(ofExperiment(row), eq(experimentRuns.block, 0)))
    .all();
  for (const { promptId, arm } of orderOfRepeat(promptIds, namesOf(row), seed, repeat)) {
    const evaluation = evaluations.find((each) => each.promptId === promptId && each.arm === arm);
    // Its first run was deleted.
    if (!evaluation) continue;
    const { evalRequestId, model } = evaluation;
    const [runId = ""] = addRuns(ctx, tx, orgId as OrgId, evalRequestId, model);
    addRow(tx, row, { runId, arm, block: repeat, model });
  }
}

const namesOf = ({ arms }: ExperimentRow): string[] => arms.map(({ name }) => name);

/** Adds a run to its experiment. `block`: its repeat, from 0. */
function addRow(
  tx: Tx,
  { id, orgId }: ExperimentRow,
  run: { runId: string; arm: string; block: number; model: string | null },
): void {
  tx.insert(experimentRuns)
    .values({ orgId, experimentId: id, ...run, treatment: null })
    .run();
}
