import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { getOrg } from "../../auth/orgs.ts";
import { findLatestResults } from "../../comparisons/latest.ts";
import type { Context, OrgId } from "../../context.ts";
import { cachedResult } from "../../db/cache.ts";
import { promptStatuses } from "../../db/tables/prompts.ts";
import { badRequest } from "../../errors.ts";
import { type Page, pageQuery } from "../../http/paging.ts";
import { isDescending, type Sort, sortBy, sorted } from "../../http/sorting.ts";
import { listFailedRuns } from "../../inbox/failed-runs.ts";
import { listPromptItems, listTags, type PromptFilter, type PromptSort, promptColumns } from "../../prompts/lists.ts";
import { agentsForRun, agentsOfPrompt } from "../../prompts/prompt-check.ts";
import { getPrompt, getPromptRow, updatePrompt } from "../../prompts/prompts.ts";
import type { Prompt } from "../../prompts/schema.ts";
import { getProvider } from "../../providers/providers.ts";
import { titleOf } from "../../reports/labels.ts";
import { describeEstimate, getEstimate } from "../../runs/estimates.ts";
import { listRunPage } from "../../runs/lists.ts";
import { requestEval } from "../../runs/requests.ts";
import { countRuns } from "../../runs/runs.ts";
import { idempotencyKeyShape } from "../../runs/schema.ts";
import { listScheduledEvaluations } from "../../schedules/scheduled-evaluations.ts";
import { OneOf } from "../../schema.ts";
import { mappedHostsIn, maxRuns } from "../components/run-form.tsx";
import type { PromptScore } from "../components/score.tsx";
import { showPage, submitForm } from "../page-requests.tsx";
import { pageResponse, seeOtherWithToast } from "../page-responses.ts";
import { requireConfirmation } from "../pages/confirm.tsx";
import { PromptPage } from "../pages/prompt.tsx";
import { PromptsPage } from "../pages/prompts.tsx";
import { availableAgents, queryOptions } from "../query.ts";
import { statusOf } from "../responses.ts";
import type { Site } from "../site.ts";
import { type Viewer, webSourceOf } from "../viewer.ts";
import { isInputError } from "./prompt-form.tsx";

const perPage = 50;
/** The maximum number of prompts that can be sorted by change. If there are more, only the newest are used. */
const maxPromptsByChange = 2000;
type ChangeSort = Sort<"change">;

/**
 * Ranks prompts by change: regressed prompts first, then prompts without a significant change, then improved ones. Within each group, they are ranked
 * by points.
 */
function changeRank({ latest }: PromptScore): number | null {
  const change = latest?.change;
  if (!change) return null;
  // Works because scores change by at most 100 points.
  if (change.verdict === "regressed") return change.delta - 1000;
  return change.verdict === "improved" ? change.delta + 1000 : change.delta;
}

const statuses = ["all", ...promptStatuses] as const;

const maxArgChars = 2000;
const maxRunsListed = 10;
const maxScheduledEvaluations = 6;

type ChosenAgent = { agent?: string; model?: string };

const chosenAgentIn = (form: URLSearchParams): ChosenAgent => ({
  agent: form.get("agent")?.trim() || undefined,
  model: form.get("model")?.trim() || undefined,
});

/** The estimated cost of a run that the user must agree to; null if no paid model is used. */
function costText(ctx: Context, org: OrgId, prompt: Prompt, choice: ChosenAgent = {}): string | null {
  const estimate = getEstimate(ctx, org, prompt.id, choice);
  const models = [estimate, ...estimate.others].flatMap(({ model }) => model ?? []);
  if (models.length === 0) return null;
  return `I agree to pay for ${[...new Set(models)].join(" and ")}. ${describeEstimate(estimate)}`;
}

/** `rejectedForm`: the form to run the prompt with its error, if it was rejected. */
function promptPage(
  ctx: Context,
  viewer: Viewer,
  site: Site,
  id: string,
  rejectedForm?: { values: URLSearchParams; errorMessage: string },
) {
  const { org } = viewer;
  const prompt = getPrompt(ctx, org, id);
  const firstPage = { limit: maxScheduledEvaluations, offset: 0 };
  let costConsent: string | null;
  try {
    costConsent = costText(ctx, org, prompt, rejectedForm && chosenAgentIn(rejectedForm.values));
  } catch {
    // The chosen agent or model may have caused the error, so the cost is estimated without them.
    costConsent = costText(ctx, org, prompt);
  }
  return (
    <PromptPage
      {...{ site, viewer, prompt }}
      providerName={prompt.targetProviderId && getProvider(ctx, org, prompt.targetProviderId).name}
      agentNames={agentsOfPrompt(ctx, org, getPromptRow(ctx, org, id))
        .map(({ agent, model }) => (model ? `${agent} with ${model}` : agent))
        .join(", ")}
      latest={findLatestResults(ctx, org, prompt.id)}
      runs={listRunPage(ctx, org, { promptId: prompt.id }, { limit: maxRunsListed }).items}
      runCount={countRuns(ctx, org, prompt.id)}
      failedRuns={listFailedRuns(ctx, org, prompt.id).filter(({ failed, of }) => failed === of)}
      scheduledEvaluations={listScheduledEvaluations(ctx, org, prompt.id, firstPage).items}
      timeZone={getOrg(ctx, org).timeZone}
      now={ctx.now()}
      runForm={{
        values: new URLSearchParams({ key: crypto.randomUUID() }),
        ...rejectedForm,
        costConsent,
        agents: availableAgents(ctx),
      }}
    />
  );
}

/** Throws bad_request if the run uses a paid model and the user did not agree to the cost. */
export function requireCostConsent(ctx: Context, org: OrgId, id: string, form: URLSearchParams): void {
  const agents = agentsForRun(ctx, org, getPromptRow(ctx, org, id), chosenAgentIn(form));
  if (agents.some(({ model }) => model !== null) && !form.has("agreed"))
    throw badRequest("This run uses a paid model. Select the checkbox to accept its cost.");
}

/** The input of a run request. Throws bad_request if `runs` is invalid. */
function toRunInput(form: URLSearchParams) {
  const runsText = form.get("runs")?.trim() ?? "";
  const runs = /^\d{1,3}$/.test(runsText) ? Number(runsText) : 0;
  if (runs < 1 || runs > maxRuns) throw badRequest(`Runs must be a whole number from 1 to ${maxRuns}.`);
  const args = [...form]
    .filter(([name]) => name.startsWith("arg."))
    .map(([name, value]) => [name.slice("arg.".length), value] as const);
  const [longName] = args.find(([, value]) => value.length > maxArgChars) ?? [];
  if (longName !== undefined) throw badRequest(`The variable ${longName} must have at most ${maxArgChars} characters.`);
  const key = form.get("key") ?? "";
  return {
    ...chosenAgentIn(form),
    templateArgs: Object.fromEntries(args),
    urlMap: Object.fromEntries(mappedHostsIn(form).map(({ from, to }) => [from, to])),
    runs,
    supersede: form.has("supersede"),
    idempotencyKey: new RegExp(idempotencyKeyShape).test(key) ? key : undefined,
  };
}

/** A page of prompts with their scores. Changes are not stored, so sorting by change computes the change of every prompt. */
function listPromptScores(
  ctx: Context,
  org: OrgId,
  { sort, ...filter }: PromptFilter & { sort?: PromptSort | ChangeSort },
  offset: number,
) {
  const listWithScores = (page: Page, sort?: PromptSort) => {
    const { items, total } = listPromptItems(ctx, org, { ...filter, sort }, page);
    return { items: items.map((prompt) => ({ prompt, latest: findLatestResults(ctx, org, prompt.id) })), total };
  };
  if (sort !== "change" && sort !== "-change") return listWithScores({ limit: perPage, offset }, sort);
  const { items, total } = cachedResult(ctx.db, ["changes", org, filter], () =>
    listWithScores({ limit: maxPromptsByChange, offset: 0 }),
  );
  const ordered = sorted(items, changeRank, isDescending(sort));
  return { items: ordered.slice(offset, offset + perPage), total };
}

/** Pages to list, show and run prompts. */
export const promptPages = (ctx: Context) =>
  new Elysia({ name: "prompt pages" })
    .get(
      "/prompts",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const { sort } = query;
          const filter = { search: query.search?.trim(), status: query.status, tag: query.tag, sort };
          const offset = query.offset ?? 0;
          const { items: prompts, total } = listPromptScores(ctx, viewer.org, filter, offset);
          const tags = listTags(ctx, viewer.org);
          const props = { site, viewer, filter, tags, prompts, total, offset, perPage, now: ctx.now() };
          return <PromptsPage {...props} />;
        }),
      queryOptions({
        search: Type.Optional(Type.String({ maxLength: 200, description: "Text in the title or the task" })),
        sort: sortBy(["change", ...promptColumns]),
        status: Type.Optional(OneOf(statuses, "Default: all except archived")),
        tag: Type.Optional(Type.String({ maxLength: 50, description: "Only prompts with this tag" })),
        offset: pageQuery.offset,
      }),
    )
    .get("/prompts/:promptId", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => promptPage(ctx, viewer, site, params.promptId)),
    )
    .post("/prompts/:promptId/status", ({ request, params }) =>
      submitForm(ctx, request, "write", (viewer, form) => {
        const status = (["active", "paused"] as const).find((each) => each === form.get("status"));
        if (!status) throw badRequest("The status must be active or paused.");
        if (getPromptRow(ctx, viewer.org, params.promptId).status === "archived")
          throw badRequest("This prompt is archived. Ask an admin to unarchive it.");
        const { id } = updatePrompt(ctx, viewer.org, params.promptId, { status });
        return seeOtherWithToast(ctx, `/prompts/${id}`, status === "paused" ? "promptPaused" : "promptResumed", id);
      }),
    )
    .post("/prompts/:promptId/archive", ({ request, params }) =>
      submitForm(ctx, request, "archive", (viewer, form) => {
        const status = form.has("back") ? "active" : "archived";
        const prompt = getPromptRow(ctx, viewer.org, params.promptId);
        if (status === "archived")
          requireConfirmation(form, {
            title: `Archive “${titleOf(prompt)}”?`,
            consequences: [
              "It can no longer be run, and its schedule stops. Its runs and reports are kept.",
              "You can unarchive it later.",
            ],
            buttonText: "Archive prompt",
            back: `/prompts/${prompt.id}`,
          });
        const { id } = updatePrompt(ctx, viewer.org, params.promptId, { status });
        return seeOtherWithToast(
          ctx,
          `/prompts/${id}`,
          status === "archived" ? "promptArchived" : "promptUnarchived",
          id,
        );
      }),
    )
    .post("/prompts/:promptId/run", ({ request, params }) =>
      submitForm(ctx, request, "run", async (viewer, form, site) => {
        try {
          requireCostConsent(ctx, viewer.org, params.promptId, form);
          const { evalRequestId, runIds } = await requestEval(ctx, viewer.org, params.promptId, {
            ...toRunInput(form),
            ...webSourceOf(viewer),
          });
          return runIds.length === 1
            ? seeOtherWithToast(ctx, `/runs/${runIds[0]}`, "runStarted")
            : seeOtherWithToast(ctx, `/evals/${evalRequestId}`, "runsStarted");
        } catch (error) {
          if (!isInputError(error)) throw error;
          const rejectedForm = { values: form, errorMessage: error.detail };
          return pageResponse(promptPage(ctx, viewer, site, params.promptId, rejectedForm), statusOf(error));
        }
      }),
    );
