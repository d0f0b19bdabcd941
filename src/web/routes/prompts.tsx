import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { renderToString } from "preact-render-to-string";
import { promptStatuses } from "../../db/tables.ts";
import { AppError, badRequest, conflict } from "../../errors.ts";
import { pageQuery } from "../../paging.ts";
import type { Prompt } from "../../prompts/schema.ts";
import { OneOf } from "../../schema.ts";
import type { Service } from "../../service.ts";
import { privateAnswer, statusOf } from "../answer.ts";
import { hidden, page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { PromptPage } from "../pages/prompt.tsx";
import { PromptFormPage } from "../pages/promptform.tsx";
import { PreviewPart } from "../pages/promptparts.tsx";
import { PromptsPage } from "../pages/prompts.tsx";
import { type RunDraft, readRunDraft } from "../pages/runform.tsx";
import { type Draft, emptyDraft, fields, readDraft, toDraft, toFault, toInput } from "../promptdraft.ts";
import { promptViews } from "../promptviews.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { titleOf } from "../words.ts";

const perPage = 50;
const params = Type.Object({ promptId: Type.String({ description: "uuid of the prompt" }) });
const statuses = ["", "all", ...promptStatuses] as const;

/** Tells a prompt, as its form shows it, from what it was or will be. */
const markOf = (prompt: Prompt): string => Bun.hash(JSON.stringify(toDraft(prompt))).toString(36);
const changedMeanwhile =
  "Nothing was saved: the prompt was changed since this form was opened, by somebody else or in another tab. Look at it first; saving again puts this in its place.";

/** What a form may be told to mend; all else is an error of its own page. */
const isFault = (error: unknown): error is AppError =>
  error instanceof AppError && ["bad_request", "missing_template_vars", "conflict"].includes(error.code);

/** Prompts: looked for, written, changed and run. */
export const promptPages = (service: Service, front: Front) => {
  const { deps, prompts, promptLists, latest, requests } = service;
  const views = promptViews(service);

  /** The form as it was sent, with what is wrong; without a fault, as it was asked to be looked at again. */
  function formAnswer(
    viewer: Viewer,
    site: Site,
    id: string,
    draft: Draft,
    isNew: boolean,
    { error, seen }: { error?: AppError; seen?: string } = {},
  ) {
    if (!may(viewer, "write"))
      throw new AppError("forbidden", "an API key only reads pages; a program writes prompts over the API");
    const present = isNew ? null : prompts.getPrompt(viewer.org, id);
    const prompt = present && { id, title: titleOf(present), seen: seen ?? markOf(present) };
    const fault = error ? toFault(error, fields) : null;
    const shown = { site, viewer, prompt, id, draft, fault, ...views.formOf(viewer.org, id, draft) };
    return privateAnswer("html", toPage(<PromptFormPage {...shown} />), error ? statusOf(error) : 200);
  }

  async function promptAnswer(viewer: Viewer, site: Site, id: string, sent?: { draft: RunDraft; error: AppError }) {
    const shown = { site, viewer, ...(await views.promptOf(viewer.org, id, sent)) };
    return privateAnswer("html", toPage(<PromptPage {...shown} />), sent ? statusOf(sent.error) : 200);
  }

  return new Elysia({ name: "prompt pages" })
    .get(
      "/prompts",
      ({ request, query }) =>
        front.show(request, (viewer, site) => {
          const filter = { search: query.search?.trim() || undefined, status: query.status || undefined };
          const offset = query.offset ?? 0;
          const { items, total } = promptLists.findLines(viewer.org, filter, { limit: perPage, offset });
          const lines = items.map((line) => ({ line, latest: latest.findLatest(viewer.org, line.id) }));
          const shown = { site, viewer, filter, prompts: lines, total, offset, perPage, now: deps.now() };
          return privateAnswer("html", toPage(<PromptsPage {...shown} />));
        }),
      {
        query: Type.Object({
          search: Type.Optional(Type.String({ maxLength: 200, description: "Text in a title or a task" })),
          status: Type.Optional(OneOf(statuses, "Empty: all but archived ones")),
          offset: pageQuery.offset,
        }),
        ...page("promptsPage", "Prompts, for people", { refuses: true, needsKey: true }),
      },
    )
    .get(
      "/prompts/new",
      ({ request, query }) =>
        front.show(request, (viewer, site) => {
          const from = query.from ? toDraft(prompts.getPrompt(viewer.org, query.from)) : emptyDraft;
          const title = query.from && from.title ? `${from.title} (copy)` : from.title;
          const id = deps.newId(deps.now());
          return formAnswer(viewer, site, id, { ...from, title: title.slice(0, 200) }, true);
        }),
      {
        query: Type.Object({ from: Type.Optional(Type.String({ description: "uuid of a prompt to begin with" })) }),
        ...page("newPromptPage", "A prompt to be written", { misses: true, needsKey: true }),
      },
    )
    .post(
      "/prompts",
      ({ request }) =>
        front.act(request, "write", (viewer, sent, site) => {
          const draft = readDraft(sent);
          const id = views.idIn(sent);
          if (sent.get("do") === "look") return formAnswer(viewer, site, id, draft, true);
          // Sent twice it is one prompt.
          if (prompts.hasPrompt(viewer.org, id)) return front.seeOther(`/prompts/${id}`);
          try {
            return front.seeOther(`/prompts/${prompts.createPrompt(viewer.org, toInput(draft), id).id}`);
          } catch (error) {
            if (isFault(error)) return formAnswer(viewer, site, id, draft, true, { error });
            throw error;
          }
        }),
      { ...hidden },
    )
    .post(
      "/prompts/preview",
      ({ request }) =>
        front.act(request, "write", (viewer, sent) => {
          const draft = readDraft(sent);
          const { preview } = views.formOf(viewer.org, views.idIn(sent), draft);
          return privateAnswer("html", renderToString(<PreviewPart draft={draft} preview={preview} />));
        }),
      { ...hidden },
    )
    .get(
      "/prompts/:promptId",
      ({ request, params }) => front.show(request, (viewer, site) => promptAnswer(viewer, site, params.promptId)),
      { params, ...page("promptPage", "A prompt, for people", { misses: true, needsKey: true }) },
    )
    .get(
      "/prompts/:promptId/edit",
      ({ request, params }) =>
        front.show(request, (viewer, site) => {
          const prompt = prompts.getPrompt(viewer.org, params.promptId);
          return formAnswer(viewer, site, prompt.id, toDraft(prompt), false);
        }),
      { params, ...page("editPromptPage", "A prompt to be changed", { misses: true, needsKey: true }) },
    )
    .post(
      "/prompts/:promptId/edit",
      ({ request, params }) =>
        front.act(request, "write", (viewer, sent, site) => {
          const present = prompts.getPrompt(viewer.org, params.promptId);
          const { id } = present;
          const draft = readDraft(sent);
          const seen = sent.get("seen") ?? markOf(present);
          if (sent.get("do") === "look") return formAnswer(viewer, site, id, draft, false, { seen });
          if (seen !== markOf(present))
            return formAnswer(viewer, site, id, draft, false, { error: conflict(changedMeanwhile) });
          try {
            prompts.updatePrompt(viewer.org, id, toInput(draft));
            return front.seeOther(`/prompts/${id}`);
          } catch (error) {
            if (isFault(error)) return formAnswer(viewer, site, id, draft, false, { error, seen });
            throw error;
          }
        }),
      { params, ...hidden },
    )
    .post(
      "/prompts/:promptId/status",
      ({ request, params }) =>
        front.act(request, "write", (viewer, sent) => {
          const status = (["active", "paused"] as const).find((each) => each === sent.get("status"));
          if (!status) throw badRequest("status must be active or paused");
          if (prompts.getPromptRow(viewer.org, params.promptId).status === "archived")
            throw badRequest("it is archived; an admin brings it back");
          const { id } = prompts.updatePrompt(viewer.org, params.promptId, { status });
          return front.seeOther(`/prompts/${id}`);
        }),
      { params, ...hidden },
    )
    .post(
      "/prompts/:promptId/archive",
      ({ request, params }) =>
        front.act(request, "archive", (viewer, sent) => {
          const status = sent.has("back") ? "active" : "archived";
          const { id } = prompts.updatePrompt(viewer.org, params.promptId, { status });
          return front.seeOther(`/prompts/${id}`);
        }),
      { params, ...hidden },
    )
    .post(
      "/prompts/:promptId/run",
      ({ request, params }) =>
        front.act(request, "run", async (viewer, sent, site) => {
          const draft = readRunDraft(sent);
          try {
            views.checkAgreed(viewer.org, params.promptId, sent);
            const input = views.runInputOf(draft);
            const { evalRequestId, runIds } = await requests.requestEval(viewer.org, params.promptId, input);
            return front.seeOther(runIds.length === 1 ? `/runs/${runIds[0]}` : `/evals/${evalRequestId}`);
          } catch (error) {
            if (isFault(error)) return await promptAnswer(viewer, site, params.promptId, { draft, error });
            throw error;
          }
        }),
      { params, ...hidden },
    );
};
