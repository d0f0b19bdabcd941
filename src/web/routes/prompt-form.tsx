import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { renderToString } from "preact-render-to-string";
import { checkArchive } from "../../archives/archive-check.ts";
import { createArchive, listArchives } from "../../archives/archives.ts";
import { getOrg } from "../../auth/orgs.ts";
import type { Context, OrgId } from "../../context.ts";
import { frequencyProblem, nextTimes } from "../../cron.ts";
import { AppError, conflict, invalidField } from "../../errors.ts";
import { listModels } from "../../models/models.ts";
import { agentOfPrompt } from "../../prompts/prompt-check.ts";
import { createPrompt, getPrompt, hasPrompt, listAgents, updatePrompt } from "../../prompts/prompts.ts";
import type { Prompt, PromptInput } from "../../prompts/schema.ts";
import { startUrls } from "../../prompts/start-urls.ts";
import { maxVariables, templateVarsOf } from "../../prompts/template.ts";
import { getProvider, listProviders } from "../../providers/providers.ts";
import { titleOf } from "../../reports/labels.ts";
import { type EvalSource, requestEval } from "../../runs/requests.ts";
import { DerivedFields, type DerivedValues } from "../components/prompt-fields.tsx";
import { toFormError } from "../components/schema-form.tsx";
import { formatZoned } from "../components/when.tsx";
import { showPage, submitForm } from "../page-requests.tsx";
import { pageResponse, seeOther, seeOtherWithToast } from "../page-responses.ts";
import { PromptFormPage } from "../pages/prompt-form.tsx";
import {
  checkRows,
  type Difference,
  differencesOf,
  frequencyOf,
  promptFields,
  toPromptFields,
  toPromptInput,
  variablesIn,
} from "../prompt-form.ts";
import { idIn } from "../query.ts";
import { uploadQuery } from "../received-forms.ts";
import { privateResponse, statusOf } from "../responses.ts";
import type { Site } from "../site.ts";
import { may, refusalOf, type Viewer, webSourceOf } from "../viewer.ts";

/** Fingerprint of the editable fields of a prompt, to detect a concurrent edit. */
const fingerprintOf = (prompt: Prompt): string => Bun.hash(toPromptFields(prompt).toString()).toString(36);
const concurrentEditMessage =
  "Someone changed this prompt after you opened it. Compare the versions below; saving now replaces theirs with yours.";

/** Fields of the workspace that refer to an archive. The form can upload the archive. */
const archiveFields = ["archive", "skills.archive"];
const fileFields = archiveFields.map((name) => `upload.${name}`);

/** Whether an error is shown next to the form. Any other error gets its own page. */
export const isInputError = (error: unknown): error is AppError =>
  error instanceof AppError && ["bad_request", "missing_template_vars", "conflict", "too_large"].includes(error.code);

/** Stores the files of a form as archives. The fields of the form then refer to the archives. Throws bad_request, too_large and conflict. */
async function storeFiles(ctx: Context, org: OrgId, form: URLSearchParams): Promise<void> {
  for (const name of archiveFields) {
    const file = form.get(`upload.${name}`);
    if (file === null) continue;
    const archive = await checkArchive(Buffer.from(file, "base64"), `workspace.${name}`);
    form.set(`workspace.${name}`, createArchive(ctx, org, archive).id);
  }
}

/** The ID that the form reserved for a new prompt. If it reserved none, a new ID. */
const newIdIn = (ctx: Context, form: URLSearchParams): string => idIn(form) ?? ctx.newId(ctx.now());

/** Hint that lists the available models. */
function modelsHint(ctx: Context, org: OrgId): string {
  const withKey = listModels(ctx, org).filter(({ source }) => source !== "none");
  if (withKey.length === 0) return "No model provider has an API key yet. Agents without a model don’t need one.";
  const providers = withKey.map(({ provider }) => provider).join(", ");
  const { agentModel } = ctx.config;
  const defaultText = agentModel ? ` Default: ${agentModel}.` : "";
  return `Only for agents that use a model. Providers with an API key: ${providers}.${defaultText}`;
}

/** The variables and the next scheduled runs that a form would have, before it is saved. */
function derivedValuesOf(ctx: Context, org: OrgId, id: string, form: URLSearchParams): DerivedValues {
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

/** Who edits which prompt. `id`: the ID of the prompt, which a new prompt also has. `prompt`: null for a new prompt. */
type Edit = { viewer: Viewer; site: Site; id: string; prompt: Prompt | null };

/** The state of a form that is shown again. `seen`: fingerprint of the prompt at the time when the form was first opened. */
type Resubmission = { error?: AppError; seen?: string; conflicts?: Difference[] };

/** The form with stored or submitted values. */
function formPage(
  ctx: Context,
  { viewer, site, id, prompt }: Edit,
  values: URLSearchParams,
  { error, seen, conflicts }: Resubmission = {},
) {
  if (!may(viewer, "write") || viewer.person === null)
    throw new AppError(
      "forbidden",
      viewer.person ? refusalOf(viewer, "write") : "API keys can only read pages. Use the REST API to edit prompts.",
    );
  return (
    <PromptFormPage
      {...{ site, viewer, id, values, conflicts }}
      derived={derivedValuesOf(ctx, viewer.org, id, values)}
      providers={listProviders(ctx, viewer.org)}
      archives={listArchives(ctx, viewer.org)}
      agents={listAgents(ctx)}
      hasWorkers={ctx.config.workers.redisUrl !== null}
      defaultAgent={agentOfPrompt(ctx, viewer.org, { agent: null, model: null }).agent}
      modelHint={modelsHint(ctx, viewer.org)}
      prompt={prompt && { id, title: titleOf(prompt), seen: seen ?? fingerprintOf(prompt) }}
      query={uploadQuery(ctx, viewer.org, viewer.person.id)}
      formError={error ? toFormError(error, promptFields) : null}
    />
  );
}

/** Throws bad_request for the docs URL if the runs of a prompt would have no start URL. The values of variables may contain a start URL. */
function checkStart(ctx: Context, org: OrgId, { text, targetProviderId, additionalUrls }: PromptInput): void {
  if (templateVarsOf(text) !== null) return;
  const provider = targetProviderId ? getProvider(ctx, org, targetProviderId) : null;
  const starts = startUrls({ mapped: [], provider, additionalUrls: additionalUrls ?? null, text, mcpUrls: [] });
  if (starts.length === 0)
    throw invalidField("docsUrl", "required; enter the URL of your docs, or choose a provider that has one");
}

/**
 * Turns an error in a URL of a prompt into an error of the form's field. The first URL comes from the docs URL, and the others come from the rows.
 */
function toFieldOfForm(error: unknown): unknown {
  if (!(error instanceof AppError) || error.problem === undefined) return error;
  const [name, index, ...column] = (error.field ?? "").split(".");
  if (name !== "additionalUrls" || index === undefined) return error;
  const row = [name, Number(index) - 1, ...column].join(".");
  return invalidField(index === "0" ? "docsUrl" : row, error.problem);
}

/** Handles the form of a prompt. For a preview or an error, it shows the form again. */
async function submitPrompt(
  ctx: Context,
  edit: Edit,
  form: URLSearchParams,
  save: (input: PromptInput) => Response | Promise<Response>,
) {
  const { viewer, prompt } = edit;
  const seen = prompt ? (form.get("seen") ?? fingerprintOf(prompt)) : undefined;
  checkRows(form);
  try {
    await storeFiles(ctx, viewer.org, form);
    if (form.get("do") === "preview") return formPage(ctx, edit, form, { seen });
    if (prompt && seen !== fingerprintOf(prompt)) {
      const error = conflict(concurrentEditMessage);
      const conflicts = differencesOf(toPromptFields(prompt), form);
      return pageResponse(formPage(ctx, edit, form, { error, conflicts }), statusOf(error));
    }
    const input = toPromptInput(form);
    checkStart(ctx, viewer.org, input);
    try {
      return await save(input);
    } catch (error) {
      throw form.get("docsUrl") ? toFieldOfForm(error) : error;
    }
  } catch (error) {
    if (!isInputError(error)) throw error;
    return pageResponse(formPage(ctx, edit, form, { error, seen }), statusOf(error));
  }
}

/** Creates a prompt. If requested, it also runs the prompt. Then it shows the run or the prompt. */
async function savePrompt(ctx: Context, org: OrgId, input: PromptInput, id: string, source: EvalSource | null) {
  const prompt = createPrompt(ctx, org, input, { id });
  // If a run needs the values of variables, or consent to the cost of a paid model, the page of the prompt asks for them.
  if (!source || prompt.templateVars || agentOfPrompt(ctx, org, prompt).model !== null)
    return seeOtherWithToast(ctx, `/prompts/${prompt.id}`, "promptCreated");
  const { runIds } = await requestEval(ctx, org, prompt.id, { urlMap: {}, ...source });
  return seeOtherWithToast(ctx, `/runs/${runIds[0]}`, "runStarted");
}

/** The fields for a copy of a prompt. */
function copyOf(prompt: Prompt): URLSearchParams {
  const form = toPromptFields(prompt);
  // A copy isn't public, because that must be chosen for each prompt.
  for (const name of ["hasPublicBadge", "isOnResultsPage"]) form.delete(name);
  if (prompt.title) form.set("title", `${prompt.title} (copy)`.slice(0, 200));
  return form;
}

/** Pages to create and edit a prompt. */
export const promptFormPages = (ctx: Context) =>
  new Elysia({ name: "prompt form pages" })
    .get(
      "/prompts/new",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const form = query.from ? copyOf(getPrompt(ctx, viewer.org, query.from)) : new URLSearchParams();
          if (query.provider) form.set("targetProviderId", query.provider);
          return formPage(ctx, { viewer, site, id: ctx.newId(ctx.now()), prompt: null }, form);
        }),
      {
        query: Type.Object({
          from: Type.Optional(Type.String({ description: "ID of a prompt to copy" })),
          provider: Type.Optional(Type.String({ description: "ID of the provider to select" })),
        }),
      },
    )
    .post("/prompts", ({ request }) =>
      submitForm(
        ctx,
        request,
        "write",
        (viewer, form, site) => {
          const id = newIdIn(ctx, form);
          // If a form is submitted twice, it creates only one prompt.
          if (hasPrompt(ctx, viewer.org, id)) return seeOther(ctx, `/prompts/${id}`);
          return submitPrompt(ctx, { viewer, site, id, prompt: null }, form, (input) =>
            savePrompt(ctx, viewer.org, input, id, form.get("do") === "run" ? webSourceOf(viewer) : null),
          );
        },
        fileFields,
      ),
    )
    .post("/prompts/derived-fields", ({ request }) =>
      submitForm(ctx, request, "write", (viewer, form) => {
        checkRows(form);
        const derived = derivedValuesOf(ctx, viewer.org, newIdIn(ctx, form), form);
        return privateResponse("html", renderToString(<DerivedFields values={form} derived={derived} />));
      }),
    )
    .get("/prompts/:promptId/edit", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => {
        const prompt = getPrompt(ctx, viewer.org, params.promptId);
        return formPage(ctx, { viewer, site, id: prompt.id, prompt }, toPromptFields(prompt));
      }),
    )
    .post("/prompts/:promptId/edit", ({ request, params }) =>
      submitForm(
        ctx,
        request,
        "write",
        (viewer, form, site) => {
          const prompt = getPrompt(ctx, viewer.org, params.promptId);
          return submitPrompt(ctx, { viewer, site, id: prompt.id, prompt }, form, (input) => {
            updatePrompt(ctx, viewer.org, prompt.id, input);
            return seeOtherWithToast(ctx, `/prompts/${prompt.id}`, "promptSaved");
          });
        },
        fileFields,
      ),
    );
