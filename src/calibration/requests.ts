import { and, desc, eq, isNotNull, isNull } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import { createArchive } from "../archives/archives.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { calibrationRuns, calibrations, type PlantedDefect } from "../db/tables/calibrations.ts";
import { prompts } from "../db/tables/prompts.ts";
import { invalidField } from "../errors.ts";
import { dollars } from "../grading/text.ts";
import { agentsForRun, type PromptRow } from "../prompts/prompt-check.ts";
import { createPrompt, getPromptRow, toPromptRow } from "../prompts/prompts.ts";
import type { PromptInput } from "../prompts/schema.ts";
import { estimateRun } from "../runs/estimates.ts";
import { acceptEval, type EvalRequestInput, type EvalSource } from "../runs/requests.ts";
import { toCalibration } from "./calibrations.ts";
import { plantInSite } from "./defects.ts";
import { plantInDocs } from "./docs-edits.ts";
import { generateSite } from "./docs-site.ts";
import type { CalibrationRow } from "./figures.ts";
import { type Calibration, type CalibrationEstimate, type CalibrationRequest, runsPerSite } from "./schema.ts";
import { packDocsSite } from "./site-files.ts";

const dayMs = 24 * 3600_000;

/** The prompt of all runs on sites that evald makes. It is archived, so that it is in nobody's way. */
const ownPrompt: PromptInput = {
  title: "Calibration",
  text: "Read the documentation at {{docs}} and find out how to do this: {{goal}}",
  endGoal: "{{goal}}",
  status: "archived",
  tags: ["calibration"],
};

/** A checked request. `prompt`: null if the organization has no prompt for its calibrations yet. */
type Plan = { prompt: PromptRow | null; agent: string; model: string | null; sites: number };

/**
 * Accepts a calibration with the runs of its first site, and resolves once it is on disk. With `dryRun`, it only estimates the calibration. Throws
 * what requesting a run throws. Throws bad_request for an agent with a model but without a budget, and for a budget below the usual cost of one site.
 */
export async function requestCalibration(
  ctx: Context,
  org: OrgId,
  input: CalibrationRequest & EvalSource,
): Promise<Calibration> {
  const plan = planOf(ctx, org, input);
  const estimate = estimatePlan(ctx, org, plan);
  const { budgetUsd = null, everyDays = null, promptId, dryRun = false } = input;
  if (!dryRun) checkBudgetOf(plan, estimate, budgetUsd);
  const createdAt = ctx.now();
  const { agent, model, sites } = plan;
  const request = { agent, model, sites, budgetUsd, everyDays, createdAt };
  const nothingMeasured = { methodology: null, figures: null, worse: null, spentUsd: null, completedAt: null };
  const row: CalibrationRow = {
    id: ctx.newId(createdAt),
    orgId: org,
    source: promptId === undefined ? "sites" : "docs",
    promptId: plan.prompt?.id ?? ctx.newId(createdAt),
    // Later, `model` is the model that answered.
    requestedModel: model,
    ...request,
    nextAt: everyDays === null ? null : createdAt + everyDays * dayMs,
    status: "running",
    stopReason: null,
    ...nothingMeasured,
  };
  if (dryRun) return { ...toCalibration(ctx, row), estimate };
  if (plan.prompt === null) createPrompt(ctx, org, ownPrompt, { id: row.promptId });
  const copies = await prepareCopies(ctx, row, 0);
  await ctx.commit((tx) => {
    if (everyDays !== null) endRepetition(tx, row);
    tx.insert(calibrations).values(row).run();
    acceptCopies(ctx, tx, row, 0, copies, input);
    const requested = { source: row.source, agent, model, sites, everyDays };
    recordAudit(ctx, org, "calibration.requested", { id: row.id, name: agent }, changesOf({}, requested));
  });
  ctx.signals.jobQueued.emit();
  return { ...toCalibration(ctx, row), estimate };
}

function planOf(ctx: Context, org: OrgId, { promptId, agent, model, sites }: CalibrationRequest): Plan {
  const prompt = promptId === undefined ? findOwnPrompt(ctx, org) : getPromptRow(ctx, org, promptId);
  const [first, ...others] = agentsForRun(ctx, org, prompt ?? toPromptRow(ctx, org, ownPrompt), { agent, model });
  if (others.length > 0) throw invalidField("agent", "the prompt names several agents; choose one");
  return { prompt, agent: first.agent, model: first.model, sites: sites ?? (isRuleBased(first.agent) ? 12 : 3) };
}

function estimatePlan(ctx: Context, org: OrgId, { prompt, agent, model, sites }: Plan): CalibrationEstimate {
  const choice = { agent, model: model ?? undefined };
  const { costUsd } = estimateRun(ctx, org, prompt ?? toPromptRow(ctx, org, ownPrompt), choice);
  const runs = sites * runsPerSite;
  if (costUsd === null) return { runs, usd: null, maxUsd: null };
  return { runs, usd: runs * (costUsd.median ?? costUsd.high), maxUsd: runs * costUsd.high };
}

function checkBudgetOf({ model, sites }: Plan, { usd }: CalibrationEstimate, budgetUsd: number | null): void {
  const usual = usd === null ? "what it costs is not known" : `it usually costs ${dollars(usd)}`;
  if (model !== null && budgetUsd === null)
    throw invalidField("budgetUsd", `an agent with a model needs one; ${usual}`);
  if (budgetUsd !== null && usd !== null && usd / sites > budgetUsd)
    throw invalidField(
      "budgetUsd",
      `the ${runsPerSite} runs of one site usually cost ${dollars(usd / sites)}; raise it`,
    );
}

/** The prompt of the organization's calibrations on sites that evald makes; null if there is none yet. */
function findOwnPrompt(ctx: Context, org: OrgId): PromptRow | null {
  const newest = ctx.db
    .select({ id: prompts.id })
    .from(calibrations)
    .innerJoin(prompts, and(eq(prompts.orgId, org), eq(prompts.id, calibrations.promptId)))
    .where(and(eq(calibrations.orgId, org), eq(calibrations.source, "sites")))
    .orderBy(desc(calibrations.id))
    .limit(1)
    .get();
  return newest ? getPromptRow(ctx, org, newest.id) : null;
}

/** Ends the repetition of earlier calibrations of the same agent in the same docs, within a transaction. */
function endRepetition(tx: Tx, { orgId, source, promptId, agent, requestedModel: model }: CalibrationRow): void {
  const ofSameDocs = source === "docs" ? eq(calibrations.promptId, promptId) : eq(calibrations.source, source);
  const ofSameModel = model === null ? isNull(calibrations.requestedModel) : eq(calibrations.requestedModel, model);
  tx.update(calibrations)
    .set({ nextAt: null })
    .where(
      and(
        eq(calibrations.orgId, orgId),
        eq(calibrations.agent, agent),
        ofSameDocs,
        ofSameModel,
        isNotNull(calibrations.nextAt),
      ),
    )
    .run();
}

/** One of the three copies of a site: what its run requests, and what is wrong in it. */
type Copy = {
  role: (typeof calibrationRuns.$inferInsert)["role"];
  input: Pick<EvalRequestInput, "sites" | "edits" | "templateArgs" | "changes">;
  planted: PlantedDefect[];
};

/** Makes the copies of a site: clean, with defects, and clean once more. Throws bad_request if the docs have no page to plant into. */
export async function prepareCopies(ctx: Context, row: CalibrationRow, number: number): Promise<Copy[]> {
  if (row.source === "docs") {
    const { edits, planted } = await plantInDocs(ctx, row, number);
    // Even empty changes keep these runs out of the prompt's trends.
    const clean = { changes: {} };
    return toCopies(clean, { edits }, planted);
  }
  const org = row.orgId as OrgId;
  const [clean, site] = [generateSite(number), generateSite(number)];
  const planted = plantInSite(site, number);
  const inputOf = (each: typeof site): Copy["input"] => ({
    sites: { [each.at]: { archiveId: createArchive(ctx, org, packDocsSite(each), "site").id, host: "netlify" } },
    templateArgs: { docs: each.at, goal: each.goal },
  });
  return toCopies(inputOf(clean), inputOf(site), planted);
}

const toCopies = (clean: Copy["input"], withDefects: Copy["input"], planted: PlantedDefect[]): Copy[] => [
  { role: "clean", input: clean, planted: [] },
  { role: "planted", input: withDefects, planted },
  { role: "equal", input: clean, planted: [] },
];

/** Requests the runs of a site within a transaction; emit `jobQueued` afterwards. */
export function acceptCopies(
  ctx: Context,
  tx: Tx,
  row: CalibrationRow,
  number: number,
  copies: Copy[],
  { trigger, requester }: EvalSource,
): void {
  const { id: calibrationId, orgId, promptId, agent, requestedModel } = row;
  const common = { trigger, requester, urlMap: {}, runs: 1, agent, model: requestedModel ?? undefined };
  for (const { role, input, planted } of copies) {
    const accepted = acceptEval(ctx, tx, orgId as OrgId, promptId, { ...common, ...input, mayBeArchived: true });
    const [runId = ""] = accepted.runIds;
    tx.insert(calibrationRuns).values({ orgId, calibrationId, runId, site: number, role, planted }).run();
  }
}
