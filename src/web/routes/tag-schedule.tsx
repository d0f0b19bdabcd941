import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { AppError } from "../../errors.ts";
import { listPromptItems, listTags } from "../../prompts/lists.ts";
import { scheduleTag } from "../../schedules/tag-schedules.ts";
import { statusOf } from "../answer.ts";
import { pageAnswer } from "../page-answers.ts";
import { showPage, submitForm } from "../page-requests.tsx";
import { requireConfirmation } from "../pages/confirm.tsx";
import { TagSchedulePage } from "../pages/tag-schedule.tsx";
import { withoutBlanks } from "../query.ts";
import { may, roleFor } from "../viewer.ts";
import { isInputError } from "./prompt-form.tsx";

/** The form that schedules all prompts with a tag. */
export const tagSchedulePages = (ctx: Context) =>
  new Elysia({ name: "tag schedule pages" })
    .get(
      "/prompts/schedule",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          if (!may(viewer, "write"))
            throw new AppError("forbidden", `Scheduling prompts requires the role ${roleFor("write")}.`);
          const tags = listTags(ctx, viewer.org);
          return <TagSchedulePage {...{ site, viewer, tags, draft: query }} />;
        }),
      {
        transform: withoutBlanks,
        query: Type.Object({ tag: Type.Optional(Type.String({ maxLength: 50, description: "Selected tag" })) }),
      },
    )
    .post("/prompts/schedule", ({ request }) =>
      submitForm(ctx, request, "write", async (viewer, form, site) => {
        const draft = { tag: form.get("tag") ?? "", frequency: form.get("frequency")?.trim() ?? "" };
        const tags = listTags(ctx, viewer.org);
        const shown = { site, viewer, tags, draft };
        const { total } = listPromptItems(ctx, viewer.org, { tag: draft.tag }, { limit: 1, offset: 0 });
        if (total > 0)
          requireConfirmation(form, {
            title: `Change the schedule of ${total} ${total === 1 ? "prompt" : "prompts"}?`,
            loses: [
              draft.frequency === ""
                ? `Prompts with the tag ${draft.tag} will only run manually.`
                : `Prompts with the tag ${draft.tag} will run ${draft.frequency}, in place of their own schedules. Each run may cost money.`,
            ],
            act: "Save schedules",
            back: `/prompts?tag=${encodeURIComponent(draft.tag)}`,
            isDestructive: false,
          });
        try {
          const done = await scheduleTag(ctx, viewer.org, { ...draft, frequency: draft.frequency || null });
          return <TagSchedulePage {...shown} done={done} />;
        } catch (error) {
          if (!isInputError(error)) throw error;
          return pageAnswer(<TagSchedulePage {...shown} wrong={error.detail} />, statusOf(error));
        }
      }),
    );
