import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { renderToString } from "preact-render-to-string";
import { AppError, conflict } from "../../errors.ts";
import type { Prompt } from "../../prompts/schema.ts";
import { titleOf } from "../../reports/labels.ts";
import type { Service } from "../../service.ts";
import { privateAnswer, statusOf } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { PreviewPart } from "../components/prompt-fields.tsx";
import { hidden, page } from "../describe.ts";
import type { PageRequests } from "../page-requests.tsx";
import { PromptFormPage } from "../pages/prompt-form.tsx";
import { type Draft, emptyDraft, fields, readDraft, toDraft, toFault, toInput } from "../prompt-draft.ts";
import { promptViews } from "../prompt-views.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const params = Type.Object({ promptId: Type.String({ description: "uuid of the prompt" }) });

/** Fingerprint of the editable fields of a prompt, to detect a concurrent edit. */
const markOf = (prompt: Prompt): string => Bun.hash(JSON.stringify(toDraft(prompt))).toString(36);
const changedMeanwhile =
  "Someone changed this prompt after you opened it. Review their version; saving now overwrites it.";

/** Errors shown next to the form. Any other error gets its own page. */
export const isInputError = (error: unknown): error is AppError =>
  error instanceof AppError && ["bad_request", "missing_template_vars", "conflict"].includes(error.code);

/** Pages to create and edit a prompt. */
export const promptFormPages = (service: Service, pages: PageRequests) => {
  const { deps, prompts } = service;
  const views = promptViews(service);

  /** Renders the form with the submitted values and the error, if any. `seen`: the fingerprint when the form was first opened. */
  function formAnswer(
    viewer: Viewer,
    site: Site,
    id: string,
    draft: Draft,
    isNew: boolean,
    { error, seen }: { error?: AppError; seen?: string } = {},
  ) {
    if (!may(viewer, "write"))
      throw new AppError("forbidden", "API keys can only read pages; use the REST API to edit prompts");
    const present = isNew ? null : prompts.getPrompt(viewer.org, id);
    const prompt = present && { id, title: titleOf(present), seen: seen ?? markOf(present) };
    const fault = error ? toFault(error, fields) : null;
    const shown = { site, viewer, prompt, id, draft, fault, ...views.formOf(viewer.org, id, draft) };
    return privateAnswer("html", toPage(<PromptFormPage {...shown} />), error ? statusOf(error) : 200);
  }

  return new Elysia({ name: "prompt form pages" })
    .get(
      "/prompts/new",
      ({ request, query }) =>
        pages.show(request, (viewer, site) => {
          const copied = query.from && toDraft(prompts.getPrompt(viewer.org, query.from));
          // Whoever shows a badge in public decides so for each prompt.
          const from = copied ? { ...copied, hasPublicBadge: false } : emptyDraft;
          const title = query.from && from.title ? `${from.title} (copy)` : from.title;
          const id = deps.newId(deps.now());
          return formAnswer(viewer, site, id, { ...from, title: title.slice(0, 200) }, true);
        }),
      {
        query: Type.Object({ from: Type.Optional(Type.String({ description: "ID of a prompt to copy" })) }),
        ...page("newPromptPage", "New prompt form", { misses: true, needsKey: true }),
      },
    )
    .post(
      "/prompts",
      ({ request }) =>
        pages.submit(request, "write", (viewer, sent, site) => {
          const draft = readDraft(sent);
          const id = views.idIn(sent);
          if (sent.get("do") === "preview") return formAnswer(viewer, site, id, draft, true);
          // A form submitted twice creates one prompt.
          if (prompts.hasPrompt(viewer.org, id)) return pages.seeOther(`/prompts/${id}`);
          try {
            return pages.seeOther(`/prompts/${prompts.createPrompt(viewer.org, toInput(draft), id).id}`);
          } catch (error) {
            if (isInputError(error)) return formAnswer(viewer, site, id, draft, true, { error });
            throw error;
          }
        }),
      { ...hidden },
    )
    .post(
      "/prompts/preview",
      ({ request }) =>
        pages.submit(request, "write", (viewer, sent) => {
          const draft = readDraft(sent);
          const { preview } = views.formOf(viewer.org, views.idIn(sent), draft);
          return privateAnswer("html", renderToString(<PreviewPart draft={draft} preview={preview} />));
        }),
      { ...hidden },
    )
    .get(
      "/prompts/:promptId/edit",
      ({ request, params }) =>
        pages.show(request, (viewer, site) => {
          const prompt = prompts.getPrompt(viewer.org, params.promptId);
          return formAnswer(viewer, site, prompt.id, toDraft(prompt), false);
        }),
      { params, ...page("editPromptPage", "Edit prompt form", { misses: true, needsKey: true }) },
    )
    .post(
      "/prompts/:promptId/edit",
      ({ request, params }) =>
        pages.submit(request, "write", (viewer, sent, site) => {
          const present = prompts.getPrompt(viewer.org, params.promptId);
          const { id } = present;
          const draft = readDraft(sent);
          const seen = sent.get("seen") ?? markOf(present);
          if (sent.get("do") === "preview") return formAnswer(viewer, site, id, draft, false, { seen });
          if (seen !== markOf(present))
            return formAnswer(viewer, site, id, draft, false, { error: conflict(changedMeanwhile) });
          try {
            prompts.updatePrompt(viewer.org, id, toInput(draft));
            return pages.seeOther(`/prompts/${id}`);
          } catch (error) {
            if (isInputError(error)) return formAnswer(viewer, site, id, draft, false, { error, seen });
            throw error;
          }
        }),
      { params, ...hidden },
    );
};
