import { listArchives } from "../archives/archives.ts";
import { getOrg } from "../auth/orgs.ts";
import { findLatest } from "../comparisons/latest.ts";
import type { Context, OrgId } from "../context.ts";
import { frequencyProblem, nextTimes } from "../cron.ts";
import { type AppError, badRequest, invalidField } from "../errors.ts";
import { listModels } from "../models/models.ts";
import { agentOfPrompt, agentsForRun, agentsOfPrompt } from "../prompts/prompt-check.ts";
import { getPrompt, getPromptRow, listAgents } from "../prompts/prompts.ts";
import type { Prompt, PromptInput } from "../prompts/schema.ts";
import { startUrls } from "../prompts/start-urls.ts";
import { maxVariables, templateVarsOf } from "../prompts/template.ts";
import { getProvider, listProviders } from "../providers/providers.ts";
import { describeEstimate, getEstimate } from "../runs/estimates.ts";
import { listNewestRuns } from "../runs/lists.ts";
import { countRuns } from "../runs/runs.ts";
import { idempotencyKeyShape } from "../runs/schema.ts";
import { listScheduledEvaluations } from "../schedules/scheduled-evaluations.ts";
import type { Preview } from "./components/prompt-fields.tsx";
import type { RunDraft } from "./components/run-form.tsx";
import { formatZoned } from "./components/when.tsx";
import { type Draft, frequencyOf } from "./prompt-draft.ts";

const shownRuns = 10;
const maxScheduledEvaluations = 6;
const maxRuns = 50;

type Chosen = { agent?: string; model?: string };

const chosenIn = ({ agent, model }: { agent: string; model: string }): Chosen => ({
  agent: agent || undefined,
  model: model || undefined,
});

/** Estimated cost of a run, to agree to; null if no paid model is used. */
async function costText(ctx: Context, org: OrgId, prompt: Prompt, chosen: Chosen = {}): Promise<string | null> {
  const estimate = await getEstimate(ctx, org, prompt.id, chosen);
  const models = [estimate, ...estimate.others].flatMap(({ model }) => model ?? []);
  if (models.length === 0) return null;
  return `I agree to pay for ${[...new Set(models)].join(" and ")}: ${describeEstimate(estimate)}.`;
}

/** Throws bad_request for the docs URL if the runs of a prompt would have no start URL. Values of variables may contain one. */
export function checkStart(ctx: Context, org: OrgId, { text, targetProviderId, additionalUrls }: PromptInput): void {
  if (templateVarsOf(text) !== null) return;
  const provider = targetProviderId ? getProvider(ctx, org, targetProviderId) : null;
  const starts = startUrls({ mapped: [], provider, additionalUrls: additionalUrls ?? null, text, mcpUrls: [] });
  if (starts.length === 0)
    throw invalidField("docsUrl", "required; enter the URL of your docs, or choose a provider that has one");
}

/** What the form of a prompt shows besides its values. */
export function formDataOf(ctx: Context, org: OrgId, id: string, draft: Draft) {
  const callable = listModels(ctx, org).filter(({ source }) => source !== "none");
  const { agentModel } = ctx.config;
  return {
    preview: previewOf(ctx, org, id, draft),
    providers: listProviders(ctx, org),
    archives: listArchives(ctx, org),
    agents: listAgents(ctx),
    hasWorkers: ctx.config.workers.redisUrl !== null,
    defaultAgent: agentOfPrompt(ctx, org, { agent: null, model: null }).agent,
    models:
      callable.length === 0
        ? "No model provider has an API key yet. Agents without a model don’t need one."
        : `Only for agents that use a model. Providers with an API key: ${callable.map(({ provider }) => provider).join(", ")}.${agentModel ? ` Default: ${agentModel}.` : ""}`,
  };
}

/** The variables and the next scheduled runs of a draft. */
export function previewOf(ctx: Context, org: OrgId, id: string, draft: Draft): Preview {
  const { timeZone } = getOrg(ctx, org);
  const frequency = frequencyOf(draft);
  const problem = frequency === null || frequency === "" ? null : frequencyProblem(frequency);
  const schedule = frequency && problem === null ? { id, frequency, timeZone } : null;
  return {
    variables: templateVarsOf(draft.text, draft.endGoal)?.slice(0, maxVariables) ?? [],
    times: schedule ? nextTimes(schedule, ctx.now(), 3).map((at) => formatZoned(at, timeZone)) : [],
    problem,
    timeZone,
  };
}

/** What the page of a prompt shows. `sent`: a form to run it that was rejected. */
export async function promptDataOf(ctx: Context, org: OrgId, id: string, sent?: { draft: RunDraft; error: AppError }) {
  const prompt = getPrompt(ctx, org, id);
  const draft = { args: {}, urlMap: [], runs: "", agent: "", model: "", supersede: false, key: crypto.randomUUID() };
  // What was chosen may be what is wrong.
  const chosenCost = sent && (await costText(ctx, org, prompt, chosenIn(sent.draft)).catch(() => undefined));
  return {
    prompt,
    providerName: prompt.targetProviderId && getProvider(ctx, org, prompt.targetProviderId).name,
    sends: agentsOfPrompt(ctx, org, getPromptRow(ctx, org, id))
      .map(({ agent, model }) => (model ? `${agent} with ${model}` : agent))
      .join(", "),
    latest: findLatest(ctx, org, prompt.id),
    runs: listNewestRuns(ctx, org, { promptId: prompt.id }, { limit: shownRuns }).items,
    runCount: countRuns(ctx, org, prompt.id),
    scheduledEvaluations: listScheduledEvaluations(ctx, org, prompt.id, { limit: maxScheduledEvaluations, offset: 0 })
      .items,
    timeZone: getOrg(ctx, org).timeZone,
    now: ctx.now(),
    runForm: {
      draft: sent?.draft ?? draft,
      fault: sent ? sent.error.detail : null,
      cost: chosenCost === undefined ? await costText(ctx, org, prompt) : chosenCost,
      agents: listAgents(ctx).flatMap(({ id, objection }) => (objection === null ? [id] : [])),
    },
  };
}

/** Throws bad_request if the run uses a paid model and the cost was not agreed to. */
export function checkAgreed(ctx: Context, org: OrgId, id: string, form: URLSearchParams): void {
  const row = getPromptRow(ctx, org, id);
  const chosen = chosenIn({ agent: form.get("agent")?.trim() ?? "", model: form.get("model")?.trim() ?? "" });
  if (agentsForRun(ctx, org, row, chosen).some(({ model }) => model !== null) && !form.has("agreed"))
    throw badRequest("This run uses a paid model. Select the checkbox to accept its cost.");
}

/** The input of a run request. Throws bad_request if `runs` is not valid. */
export function toRunInput({ args, urlMap, runs: count, agent, model, supersede, key }: RunDraft) {
  const runs = /^\d{1,3}$/.test(count) ? Number(count) : 0;
  if (runs < 1 || runs > maxRuns) throw badRequest(`Runs must be a whole number from 1 to ${maxRuns}.`);
  const idempotencyKey = new RegExp(idempotencyKeyShape).test(key) ? key : undefined;
  const long = Object.entries(args).find(([, value]) => value.length > 2000);
  if (long) throw badRequest(`The variable ${long[0]} must have at most 2000 characters.`);
  const map = Object.fromEntries(urlMap.map(({ from, to }) => [from, to]));
  const chosen = chosenIn({ agent, model });
  return { ...chosen, templateArgs: args, urlMap: map, runs, supersede, idempotencyKey, trigger: "web" as const };
}
