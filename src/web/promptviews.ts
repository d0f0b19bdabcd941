import type { OrgId } from "../deps.ts";
import { type AppError, badRequest } from "../errors.ts";
import { frequencyTrouble, nextSlots } from "../jobs/schedule.ts";
import type { Prompt } from "../prompts/schema.ts";
import { templateVarsOf } from "../prompts/template.ts";
import { estimateWords } from "../runs/estimates.ts";
import { idempotencyKeyShape } from "../runs/schema.ts";
import type { Service } from "../service.ts";
import type { RunDraft } from "./pages/runform.tsx";
import { type Draft, frequencyOf } from "./promptdraft.ts";
import { idIn } from "./query.ts";
import { zonedWords } from "./when.tsx";

const shownRuns = 10;
const shownSlots = 6;
const maxRuns = 50;

/** What the pages of prompts show beside the prompts themselves. */
export function promptViews(service: Service) {
  const { deps, orgs, prompts, providers, models, latest, runs, runLists, slots, estimates, agentChoices } = service;

  /** What a run of a prompt may cost, to be agreed to; null where no model is paid. */
  async function costWords(org: OrgId, prompt: Prompt): Promise<string | null> {
    const estimate = await estimates.getEstimate(org, prompt.id);
    if (estimate.model === null) return null;
    return `I agree that ${estimate.model} is paid for: ${estimateWords(estimate)}.`;
  }

  return {
    /** The id that the form of a new prompt was made with, or a new one. */
    idIn: (form: URLSearchParams): string => idIn(form) ?? deps.newId(deps.now()),

    formOf(org: OrgId, id: string, draft: Draft) {
      const { timeZone } = orgs.getOrg(org);
      const frequency = frequencyOf(draft);
      const trouble = frequency === null || frequency === "" ? null : frequencyTrouble(frequency);
      const schedule = frequency && trouble === null ? { id, frequency, timeZone } : null;
      const callable = models.listModels(org).filter(({ source }) => source !== "none");
      const { agentModel } = deps.config;
      return {
        preview: {
          variables: templateVarsOf(draft.text, draft.endGoal) ?? [],
          times: schedule ? nextSlots(schedule, deps.now(), 3).map((at) => zonedWords(at, timeZone)) : [],
          trouble,
          timeZone,
        },
        providers: providers.listProviders(org),
        agents: agentChoices,
        defaultAgent: prompts.agentOf(org, { agent: null, model: null }).agent,
        models:
          callable.length === 0
            ? "No provider of models has a key here; agents without a model need none."
            : `For agents that use one. With a key: ${callable.map(({ provider }) => provider).join(", ")}.${agentModel ? ` Empty: ${agentModel}.` : ""}`,
      };
    },

    async promptOf(org: OrgId, id: string, sent?: { draft: RunDraft; error: AppError }) {
      const prompt = prompts.getPrompt(org, id);
      const last = latest.findLatest(org, prompt.id);
      const { agent, model } = prompts.agentOf(org, prompt);
      const draft = { args: {}, urlMap: [], runs: "", supersede: false, key: crypto.randomUUID() };
      return {
        prompt,
        providerName: prompt.targetProviderId && providers.getProvider(org, prompt.targetProviderId).name,
        sends: model ? `${agent} with ${model}` : agent,
        latest: last,
        runs: runLists.listNewest(org, { promptId: prompt.id }, { limit: shownRuns }).items,
        runCount: runs.countRuns(org, prompt.id),
        slots: slots.listSlots(org, prompt.id, { limit: shownSlots, offset: 0 }).items,
        timeZone: orgs.getOrg(org).timeZone,
        now: deps.now(),
        runForm: {
          draft: sent?.draft ?? draft,
          fault: sent ? sent.error.detail : null,
          cost: await costWords(org, prompt),
        },
      };
    },

    /** Throws bad_request where a model is paid for and nobody has agreed. */
    checkAgreed(org: OrgId, id: string, form: URLSearchParams): void {
      const row = prompts.getPromptRow(org, id);
      if (prompts.agentOf(org, row).model !== null && !form.has("agreed"))
        throw badRequest("a model is paid for; tick the box that says what it may cost");
    },

    /** Throws bad_request for a number of runs that is none. */
    runInputOf({ args, urlMap, runs: count, supersede, key }: RunDraft) {
      const runs = /^\d{1,3}$/.test(count) ? Number(count) : 0;
      if (runs < 1 || runs > maxRuns) throw badRequest(`runs must be a whole number from 1 to ${maxRuns}`);
      const idempotencyKey = new RegExp(idempotencyKeyShape).test(key) ? key : undefined;
      const long = Object.entries(args).find(([, value]) => value.length > 2000);
      if (long) throw badRequest(`${long[0]} must have at most 2000 characters`);
      const map = Object.fromEntries(urlMap.map(({ from, to }) => [from, to]));
      return { templateArgs: args, urlMap: map, runs, supersede, idempotencyKey, trigger: "web" as const };
    },
  };
}
