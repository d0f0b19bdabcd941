import { listArchives } from "../archives/archives.ts";
import { getOrg } from "../auth/orgs.ts";
import { findLatest } from "../comparisons/latest.ts";
import type { Context, OrgId } from "../context.ts";
import { frequencyProblem, nextTimes } from "../cron.ts";
import { badRequest, invalidField } from "../errors.ts";
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
import { mappedHostsIn, maxRuns } from "./components/run-form.tsx";
import { formatZoned } from "./components/when.tsx";
import { frequencyOf, variablesIn } from "./prompt-form.ts";

const shownRuns = 10;
const maxScheduledEvaluations = 6;

type Chosen = { agent?: string; model?: string };

const chosenIn = (form: URLSearchParams): Chosen => ({
  agent: form.get("agent")?.trim() || undefined,
  model: form.get("model")?.trim() || undefined,
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
export function formDataOf(ctx: Context, org: OrgId, id: string, form: URLSearchParams) {
  const callable = listModels(ctx, org).filter(({ source }) => source !== "none");
  const { agentModel } = ctx.config;
  return {
    preview: previewOf(ctx, org, id, form),
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

/** The variables and the next scheduled runs of a form. */
export function previewOf(ctx: Context, org: OrgId, id: string, form: URLSearchParams): Preview {
  const { timeZone } = getOrg(ctx, org);
  const frequency = frequencyOf(form);
  const problem = frequency === null || frequency === "" ? null : frequencyProblem(frequency);
  const schedule = frequency && problem === null ? { id, frequency, timeZone } : null;
  return {
    variables: variablesIn(form)?.slice(0, maxVariables) ?? [],
    times: schedule ? nextTimes(schedule, ctx.now(), 3).map((at) => formatZoned(at, timeZone)) : [],
    problem,
    timeZone,
  };
}

/** What the page of a prompt shows. `rejected`: a form to run it, with what is wrong. */
export async function promptDataOf(
  ctx: Context,
  org: OrgId,
  id: string,
  rejected?: { values: URLSearchParams; wrong: string },
) {
  const prompt = getPrompt(ctx, org, id);
  // What was chosen may be what is wrong.
  const chosenCost = rejected && (await costText(ctx, org, prompt, chosenIn(rejected.values)).catch(() => undefined));
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
      values: new URLSearchParams({ key: crypto.randomUUID() }),
      ...rejected,
      cost: chosenCost === undefined ? await costText(ctx, org, prompt) : chosenCost,
      agents: listAgents(ctx).flatMap(({ id, objection }) => (objection === null ? [id] : [])),
    },
  };
}

/** Throws bad_request if the run uses a paid model and the cost was not agreed to. */
export function checkAgreed(ctx: Context, org: OrgId, id: string, form: URLSearchParams): void {
  const agents = agentsForRun(ctx, org, getPromptRow(ctx, org, id), chosenIn(form));
  if (agents.some(({ model }) => model !== null) && !form.has("agreed"))
    throw badRequest("This run uses a paid model. Select the checkbox to accept its cost.");
}

/** The input of a run request. Throws bad_request if `runs` is not valid. */
export function toRunInput(form: URLSearchParams) {
  const count = form.get("runs")?.trim() ?? "";
  const runs = /^\d{1,3}$/.test(count) ? Number(count) : 0;
  if (runs < 1 || runs > maxRuns) throw badRequest(`Runs must be a whole number from 1 to ${maxRuns}.`);
  const args = [...form].flatMap(([name, value]) => (name.startsWith("arg.") ? [[name.slice(4), value] as const] : []));
  const long = args.find(([, value]) => value.length > 2000);
  if (long) throw badRequest(`The variable ${long[0]} must have at most 2000 characters.`);
  const key = form.get("key") ?? "";
  return {
    ...chosenIn(form),
    templateArgs: Object.fromEntries(args),
    urlMap: Object.fromEntries(mappedHostsIn(form).map(({ from, to }) => [from, to])),
    runs,
    supersede: form.has("supersede"),
    idempotencyKey: new RegExp(idempotencyKeyShape).test(key) ? key : undefined,
    trigger: "web" as const,
  };
}
