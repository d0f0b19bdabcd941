import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { promptStatuses } from "../../db/tables.ts";
import { type AppError, badRequest } from "../../errors.ts";
import { pageQuery } from "../../http/paging.ts";
import { OneOf } from "../../schema.ts";
import type { Service } from "../../service.ts";
import { privateAnswer, statusOf } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { type RunDraft, readRunDraft } from "../components/run-form.tsx";
import { hidden, page } from "../describe.ts";
import type { PageRequests } from "../page-requests.tsx";
import { PromptPage } from "../pages/prompt.tsx";
import { PromptsPage } from "../pages/prompts.tsx";
import { promptViews } from "../prompt-views.ts";
import { withoutBlanks } from "../query.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { isInputError } from "./prompt-form.tsx";

const perPage = 50;
const params = Type.Object({ promptId: Type.String({ description: "ID of the prompt" }) });
const statuses = ["all", ...promptStatuses] as const;

/** Pages to list, show and run prompts. */
export const promptPages = (service: Service, pages: PageRequests) => {
  const { deps, prompts, latest, requests } = service;
  const views = promptViews(service);

  async function promptAnswer(viewer: Viewer, site: Site, id: string, sent?: { draft: RunDraft; error: AppError }) {
    const shown = { site, viewer, ...(await views.promptOf(viewer.org, id, sent)) };
    return privateAnswer("html", toPage(<PromptPage {...shown} />), sent ? statusOf(sent.error) : 200);
  }

  return new Elysia({ name: "prompt pages" })
    .get(
      "/prompts",
      ({ request, query }) =>
        pages.show(request, (viewer, site) => {
          const filter = { search: query.search?.trim(), status: query.status, tag: query.tag };
          const offset = query.offset ?? 0;
          const { items, total } = prompts.listLines(viewer.org, filter, { limit: perPage, offset });
          const lines = items.map((line) => ({ line, latest: latest.findLatest(viewer.org, line.id) }));
          const tags = prompts.listTags(viewer.org);
          const shown = { site, viewer, filter, tags, prompts: lines, total, offset, perPage, now: deps.now() };
          return privateAnswer("html", toPage(<PromptsPage {...shown} />));
        }),
      {
        transform: withoutBlanks,
        query: Type.Object({
          search: Type.Optional(Type.String({ maxLength: 200, description: "Text in the title or the task" })),
          status: Type.Optional(OneOf(statuses, "Default: all except archived")),
          tag: Type.Optional(Type.String({ maxLength: 50, description: "Only prompts with this tag" })),
          offset: pageQuery.offset,
        }),
        ...page("promptsPage", "Prompts page", { refuses: true, needsKey: true }),
      },
    )
    .get(
      "/prompts/:promptId",
      ({ request, params }) => pages.show(request, (viewer, site) => promptAnswer(viewer, site, params.promptId)),
      { params, ...page("promptPage", "Prompt page", { misses: true, needsKey: true }) },
    )
    .post(
      "/prompts/:promptId/status",
      ({ request, params }) =>
        pages.submit(request, "write", (viewer, sent) => {
          const status = (["active", "paused"] as const).find((each) => each === sent.get("status"));
          if (!status) throw badRequest("status must be active or paused");
          if (prompts.getPromptRow(viewer.org, params.promptId).status === "archived")
            throw badRequest("this prompt is archived; ask an admin to unarchive it");
          const { id } = prompts.updatePrompt(viewer.org, params.promptId, { status });
          return pages.seeOther(`/prompts/${id}`);
        }),
      { params, ...hidden },
    )
    .post(
      "/prompts/:promptId/archive",
      ({ request, params }) =>
        pages.submit(request, "archive", (viewer, sent) => {
          const status = sent.has("back") ? "active" : "archived";
          const { id } = prompts.updatePrompt(viewer.org, params.promptId, { status });
          return pages.seeOther(`/prompts/${id}`);
        }),
      { params, ...hidden },
    )
    .post(
      "/prompts/:promptId/run",
      ({ request, params }) =>
        pages.submit(request, "run", async (viewer, sent, site) => {
          const draft = readRunDraft(sent);
          try {
            views.checkAgreed(viewer.org, params.promptId, sent);
            const input = views.runInputOf(draft);
            const { evalRequestId, runIds } = await requests.requestEval(viewer.org, params.promptId, input);
            return pages.seeOther(runIds.length === 1 ? `/runs/${runIds[0]}` : `/evals/${evalRequestId}`);
          } catch (error) {
            if (isInputError(error)) return await promptAnswer(viewer, site, params.promptId, { draft, error });
            throw error;
          }
        }),
      { params, ...hidden },
    );
};
