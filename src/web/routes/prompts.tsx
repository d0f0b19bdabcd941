import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { findLatest } from "../../comparisons/latest.ts";
import type { Context, OrgId } from "../../context.ts";
import { cachedResult } from "../../db/cache.ts";
import { promptStatuses } from "../../db/tables/prompts.ts";
import { badRequest } from "../../errors.ts";
import { type Page, pageQuery } from "../../http/paging.ts";
import { isDescending, type Sort, sortBy, sorted } from "../../http/sorting.ts";
import { listPromptItems, listTags, type PromptFilter, type PromptSort, promptColumns } from "../../prompts/lists.ts";
import { getPromptRow, updatePrompt } from "../../prompts/prompts.ts";
import { titleOf } from "../../reports/labels.ts";
import { requestEval } from "../../runs/requests.ts";
import { OneOf } from "../../schema.ts";
import { statusOf } from "../answer.ts";
import type { PromptScore } from "../components/score.tsx";
import { pageAnswer, seeChanged } from "../page-answers.ts";
import { showPage, submitForm } from "../page-requests.tsx";
import { requireConfirmation } from "../pages/confirm.tsx";
import { PromptPage } from "../pages/prompt.tsx";
import { PromptsPage } from "../pages/prompts.tsx";
import { checkAgreed, promptDataOf, toRunInput } from "../prompt-views.ts";
import { queryOf } from "../query.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { isInputError } from "./prompt-form.tsx";

const perPage = 50;
/** Prompts to sort by change: the newest. */
const mostChanges = 2000;
type ChangeSort = Sort<"change">;

/** Regressed prompts, then those without a significant change, then improved ones, each by points. */
function changeRank({ latest }: PromptScore): number | null {
  const change = latest?.change;
  if (!change) return null;
  const clear = change.verdict === "regressed" ? -1 : change.verdict === "improved" ? 1 : 0;
  return clear * 1000 + change.delta;
}

const statuses = ["all", ...promptStatuses] as const;

async function promptPage(
  ctx: Context,
  viewer: Viewer,
  site: Site,
  id: string,
  rejected?: Parameters<typeof promptDataOf>[3],
) {
  return <PromptPage {...{ site, viewer, ...(await promptDataOf(ctx, viewer.org, id, rejected)) }} />;
}

/** A page of prompts with their scores. Changes are computed, not stored: all of them are, to sort by them. */
function listed(
  ctx: Context,
  org: OrgId,
  { sort, ...filter }: PromptFilter & { sort?: PromptSort | ChangeSort },
  offset: number,
) {
  const scored = (page: Page, sort?: PromptSort) => {
    const { items, total } = listPromptItems(ctx, org, { ...filter, sort }, page);
    return { items: items.map((line) => ({ line, latest: findLatest(ctx, org, line.id) })), total };
  };
  if (sort !== "change" && sort !== "-change") return scored({ limit: perPage, offset }, sort);
  const { items, total } = cachedResult(ctx.db, ["changes", org, filter], () =>
    scored({ limit: mostChanges, offset: 0 }),
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
          const { items: lines, total } = listed(ctx, viewer.org, filter, offset);
          const tags = listTags(ctx, viewer.org);
          const shown = { site, viewer, filter, tags, prompts: lines, total, offset, perPage, now: ctx.now() };
          return <PromptsPage {...shown} />;
        }),
      queryOf({
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
      submitForm(ctx, request, "write", (viewer, sent) => {
        const status = (["active", "paused"] as const).find((each) => each === sent.get("status"));
        if (!status) throw badRequest("The status must be active or paused.");
        if (getPromptRow(ctx, viewer.org, params.promptId).status === "archived")
          throw badRequest("This prompt is archived. Ask an admin to unarchive it.");
        const { id } = updatePrompt(ctx, viewer.org, params.promptId, { status });
        return seeChanged(ctx, `/prompts/${id}`, status === "paused" ? "promptPaused" : "promptResumed", id);
      }),
    )
    .post("/prompts/:promptId/archive", ({ request, params }) =>
      submitForm(ctx, request, "archive", (viewer, sent) => {
        const status = sent.has("back") ? "active" : "archived";
        const prompt = getPromptRow(ctx, viewer.org, params.promptId);
        if (status === "archived")
          requireConfirmation(sent, {
            title: `Archive “${titleOf(prompt)}”?`,
            loses: [
              "It can no longer be run, and its schedule stops. Its runs and reports are kept.",
              "You can unarchive it later.",
            ],
            act: "Archive prompt",
            back: `/prompts/${prompt.id}`,
          });
        const { id } = updatePrompt(ctx, viewer.org, params.promptId, { status });
        return seeChanged(ctx, `/prompts/${id}`, status === "archived" ? "promptArchived" : "promptUnarchived", id);
      }),
    )
    .post("/prompts/:promptId/run", ({ request, params }) =>
      submitForm(ctx, request, "run", async (viewer, sent, site) => {
        try {
          checkAgreed(ctx, viewer.org, params.promptId, sent);
          const { evalRequestId, runIds } = await requestEval(ctx, viewer.org, params.promptId, toRunInput(sent));
          return runIds.length === 1
            ? seeChanged(ctx, `/runs/${runIds[0]}`, "runStarted")
            : seeChanged(ctx, `/evals/${evalRequestId}`, "runsStarted");
        } catch (error) {
          if (!isInputError(error)) throw error;
          const rejected = { values: sent, wrong: error.detail };
          return pageAnswer(await promptPage(ctx, viewer, site, params.promptId, rejected), statusOf(error));
        }
      }),
    );
