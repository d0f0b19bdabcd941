import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { AppError } from "../../errors.ts";
import { count } from "../../grading/text.ts";
import { listPromptItems, listTags } from "../../prompts/lists.ts";
import { TagSchedule } from "../../schedules/schema.ts";
import { scheduleTag } from "../../schedules/tag-schedules.ts";
import { readForm } from "../form-values.ts";
import { showPage, submitForm } from "../page-requests.tsx";
import { formErrorResponse } from "../page-responses.ts";
import { requireConfirmation } from "../pages/confirm.tsx";
import { TagSchedulePage } from "../pages/tag-schedule.tsx";
import { queryOptions } from "../query.ts";
import { may, refusalOf } from "../viewer.ts";

/** The form that schedules all prompts with a tag. */
export const tagSchedulePages = (ctx: Context) =>
  new Elysia({ name: "tag schedule pages" })
    .get(
      "/prompts/schedule",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          if (!may(viewer, "write")) throw new AppError("forbidden", refusalOf(viewer, "write"));
          const tags = listTags(ctx, viewer.org);
          return <TagSchedulePage {...{ site, viewer, tags, values: new URLSearchParams(query) }} />;
        }),
      queryOptions({ tag: Type.Optional(Type.String({ maxLength: 50, description: "Selected tag" })) }),
    )
    .post("/prompts/schedule", ({ request }) =>
      submitForm(ctx, request, "write", async (viewer, form, site) => {
        const props = { site, viewer, tags: listTags(ctx, viewer.org), values: form };
        try {
          const schedule = readForm(TagSchedule, form);
          const { tag, frequency } = schedule;
          const { total } = listPromptItems(ctx, viewer.org, { tag }, { limit: 1, offset: 0 });
          if (total > 0)
            requireConfirmation(form, {
              title: `Change the schedule of ${count(total, "prompt")}?`,
              consequences: [
                frequency === null
                  ? `Prompts with the tag ${tag} will only run manually.`
                  : `Prompts with the tag ${tag} will run ${frequency}, in place of their own schedules. Each run may cost money.`,
              ],
              buttonText: "Save schedules",
              back: `/prompts?tag=${encodeURIComponent(tag)}`,
              isDestructive: false,
            });
          return <TagSchedulePage {...props} result={await scheduleTag(ctx, viewer.org, schedule)} />;
        } catch (error) {
          return formErrorResponse(error, (errorMessage) => <TagSchedulePage {...props} errorMessage={errorMessage} />);
        }
      }),
    );
