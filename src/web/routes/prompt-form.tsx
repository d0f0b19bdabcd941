import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { renderToString } from "preact-render-to-string";
import { checkArchive } from "../../archives/archive-check.ts";
import { createArchive } from "../../archives/archives.ts";
import type { Context, OrgId } from "../../context.ts";
import { AppError, conflict } from "../../errors.ts";
import { agentOfPrompt } from "../../prompts/prompt-check.ts";
import { createPrompt, getPrompt, hasPrompt, updatePrompt } from "../../prompts/prompts.ts";
import type { Prompt } from "../../prompts/schema.ts";
import { titleOf } from "../../reports/labels.ts";
import { requestEval } from "../../runs/requests.ts";
import { privateAnswer, statusOf } from "../answer.ts";
import { PreviewPart } from "../components/prompt-fields.tsx";
import { toFault } from "../form-fault.ts";
import { pageAnswer, seeChanged, seeOther } from "../page-answers.ts";
import { showPage, submitForm } from "../page-requests.tsx";
import { PromptFormPage } from "../pages/prompt-form.tsx";
import { type Draft, emptyDraft, fields, readDraft, toDraft, toInput } from "../prompt-draft.ts";
import { checkStart, formDataOf, previewOf } from "../prompt-views.ts";
import { idIn } from "../query.ts";
import { uploadQuery } from "../received-forms.ts";
import type { Site } from "../site.ts";
import { may, roleFor, type Viewer } from "../viewer.ts";
import { archiveFields } from "../workspace-draft.ts";

/** Fingerprint of the editable fields of a prompt, to detect a concurrent edit. */
const markOf = (prompt: Prompt): string => Bun.hash(JSON.stringify(toDraft(prompt))).toString(36);
const changedMeanwhile =
  "Someone changed this prompt after you opened it. Review their version; saving now overwrites it.";

const fileField = (name: string) => `upload.${name}`;
const files = archiveFields.map(fileField);

/** Errors shown next to the form. Any other error gets its own page. */
export const isInputError = (error: unknown): error is AppError =>
  error instanceof AppError && ["bad_request", "missing_template_vars", "conflict", "too_large"].includes(error.code);

/** Stores the files of a form as archives, which the draft then refers to. Throws bad_request, too_large and conflict. */
async function storeFiles(ctx: Context, org: OrgId, draft: Draft, sent: URLSearchParams): Promise<void> {
  for (const name of archiveFields) {
    const file = sent.get(fileField(name));
    if (file === null) continue;
    const checked = await checkArchive(Buffer.from(file, "base64"), `workspace.${name}`);
    draft.workspace[name] = createArchive(ctx, org, checked).id;
  }
}

/** The id that the form reserved for a new prompt, or a new one. */
const newIdIn = (ctx: Context, form: URLSearchParams): string => idIn(form) ?? ctx.newId(ctx.now());

/** Renders the form with the submitted values and the error, if any. `seen`: the fingerprint when the form was first opened. */
function formAnswer(
  ctx: Context,
  viewer: Viewer,
  site: Site,
  id: string,
  draft: Draft,
  isNew: boolean,
  { error, seen }: { error?: AppError; seen?: string } = {},
) {
  if (!may(viewer, "write") || viewer.person === null)
    throw new AppError(
      "forbidden",
      viewer.person
        ? `This requires the role ${roleFor("write")}; yours is ${viewer.role}.`
        : "API keys can only read pages. Use the REST API to edit prompts.",
    );
  const present = isNew ? null : getPrompt(ctx, viewer.org, id);
  const prompt = present && { id, title: titleOf(present), seen: seen ?? markOf(present) };
  const fault = error ? toFault(error, fields) : null;
  const shown = {
    site,
    viewer,
    prompt,
    id,
    draft,
    fault,
    query: uploadQuery(ctx, viewer.org, viewer.person.id),
    ...formDataOf(ctx, viewer.org, id, draft),
  };
  return pageAnswer(<PromptFormPage {...shown} />, error ? statusOf(error) : 200);
}

/** Pages to create and edit a prompt. */
export const promptFormPages = (ctx: Context) =>
  new Elysia({ name: "prompt form pages" })
    .get(
      "/prompts/new",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const copied = query.from && toDraft(getPrompt(ctx, viewer.org, query.from));
          // Each prompt is made public on purpose.
          const from = copied ? { ...copied, hasPublicBadge: false, isOnResultsPage: false } : emptyDraft;
          const title = query.from && from.title ? `${from.title} (copy)` : from.title;
          const id = ctx.newId(ctx.now());
          const draft = {
            ...from,
            title: title.slice(0, 200),
            ...(query.provider && { targetProviderId: query.provider }),
          };
          return formAnswer(ctx, viewer, site, id, draft, true);
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
        async (viewer, sent, site) => {
          const draft = readDraft(sent);
          const id = newIdIn(ctx, sent);
          // A form submitted twice creates one prompt.
          if (hasPrompt(ctx, viewer.org, id)) return seeOther(ctx, `/prompts/${id}`);
          try {
            await storeFiles(ctx, viewer.org, draft, sent);
            if (sent.get("do") === "preview") return formAnswer(ctx, viewer, site, id, draft, true);
            const input = toInput(draft);
            checkStart(ctx, viewer.org, input);
            const made = createPrompt(ctx, viewer.org, input, id);
            // The page of the prompt asks for the values of variables, and for consent to the cost of a paid model.
            if (sent.get("do") !== "run" || made.templateVars || agentOfPrompt(ctx, viewer.org, made).model !== null)
              return seeChanged(ctx, `/prompts/${made.id}`, "promptCreated");
            const { runIds } = await requestEval(ctx, viewer.org, made.id, { urlMap: {}, trigger: "web" });
            return seeChanged(ctx, `/runs/${runIds[0]}`, "runStarted");
          } catch (error) {
            if (isInputError(error)) return formAnswer(ctx, viewer, site, id, draft, true, { error });
            throw error;
          }
        },
        files,
      ),
    )
    .post("/prompts/preview", ({ request }) =>
      submitForm(ctx, request, "write", (viewer, sent) => {
        const draft = readDraft(sent);
        const preview = previewOf(ctx, viewer.org, newIdIn(ctx, sent), draft);
        return privateAnswer("html", renderToString(<PreviewPart draft={draft} preview={preview} />));
      }),
    )
    .get("/prompts/:promptId/edit", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => {
        const prompt = getPrompt(ctx, viewer.org, params.promptId);
        return formAnswer(ctx, viewer, site, prompt.id, toDraft(prompt), false);
      }),
    )
    .post("/prompts/:promptId/edit", ({ request, params }) =>
      submitForm(
        ctx,
        request,
        "write",
        async (viewer, sent, site) => {
          const present = getPrompt(ctx, viewer.org, params.promptId);
          const { id } = present;
          const draft = readDraft(sent);
          const seen = sent.get("seen") ?? markOf(present);
          try {
            await storeFiles(ctx, viewer.org, draft, sent);
            if (sent.get("do") === "preview") return formAnswer(ctx, viewer, site, id, draft, false, { seen });
            if (seen !== markOf(present))
              return formAnswer(ctx, viewer, site, id, draft, false, { error: conflict(changedMeanwhile) });
            const input = toInput(draft);
            checkStart(ctx, viewer.org, input);
            updatePrompt(ctx, viewer.org, id, input);
            return seeChanged(ctx, `/prompts/${id}`, "promptSaved");
          } catch (error) {
            if (isInputError(error)) return formAnswer(ctx, viewer, site, id, draft, false, { error, seen });
            throw error;
          }
        },
        files,
      ),
    );
