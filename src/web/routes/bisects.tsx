import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { getBisect, listBisects } from "../../bisects/bisects.ts";
import { cancelBisect } from "../../bisects/progress.ts";
import { requestBisect } from "../../bisects/requests.ts";
import type { Context } from "../../context.ts";
import { pageQuery } from "../../http/paging.ts";
import { listPromptChoices } from "../../prompts/lists.ts";
import { getPromptRow, nameOfPrompt } from "../../prompts/prompts.ts";
import { promptChoices } from "../components/filter.tsx";
import { lines, readForm } from "../form-values.ts";
import { showPage, submitForm, submitOrShowAgain } from "../page-requests.tsx";
import { seeOther } from "../page-responses.ts";
import { BisectForm, BisectPage, BisectsPage, NewBisectPage } from "../pages/bisects.tsx";
import { queryOptions } from "../query.ts";
import { webSourceOf } from "../viewer.ts";

const perPage = 50;

/** Pages of bisects. */
export const bisectPages = (ctx: Context) =>
  new Elysia({ name: "bisect pages" })
    .get(
      "/bisects",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const offset = query.offset ?? 0;
          const { items, total } = listBisects(ctx, viewer.org, { limit: perPage, offset });
          const prompts = listPromptChoices(ctx, viewer.org);
          const props = { site, viewer, bisects: items, prompts, total, offset, perPage, now: ctx.now() };
          return <BisectsPage {...props} />;
        }),
      queryOptions({ offset: pageQuery.offset }),
    )
    .get(
      "/bisects/new",
      ({ request, query: { prompt } }) =>
        showPage(ctx, request, (viewer, site) => {
          const prompts = promptChoices(listPromptChoices(ctx, viewer.org));
          const values = new URLSearchParams({ promptId: prompt ?? prompts[0]?.[0] ?? "" });
          return <NewBisectPage {...{ site, viewer, prompts, values }} />;
        }),
      queryOptions({ prompt: Type.Optional(Type.String({ maxLength: 36 })) }),
    )
    .post("/bisects/new", ({ request }) =>
      submitOrShowAgain(
        ctx,
        request,
        "run",
        (_, viewer, site, { typedValues, formError, errorMessage }) => (
          <NewBisectPage
            {...{ site, viewer, formError, errorMessage }}
            prompts={promptChoices(listPromptChoices(ctx, viewer.org))}
            values={typedValues ?? new URLSearchParams()}
          />
        ),
        async (viewer, form) => {
          const input = readForm(BisectForm, form, { commits: lines });
          const { id } = await requestBisect(ctx, viewer.org, { ...input, ...webSourceOf(viewer) });
          return seeOther(ctx, `/bisects/${id}`);
        },
      ),
    )
    .get("/bisects/:bisectId", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => {
        const bisect = getBisect(ctx, viewer.org, params.bisectId);
        const title = nameOfPrompt(getPromptRow(ctx, viewer.org, bisect.promptId));
        return <BisectPage {...{ site, viewer, bisect, title, now: ctx.now() }} />;
      }),
    )
    .post("/bisects/:bisectId/cancel", ({ request, params: { bisectId } }) =>
      submitForm(ctx, request, "run", async (viewer) => {
        await cancelBisect(ctx, viewer.org, bisectId, viewer.person.name);
        return seeOther(ctx, `/bisects/${bisectId}`);
      }),
    );
