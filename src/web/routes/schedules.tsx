import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { listScheduledPrompts } from "../../prompts/lists.ts";
import { getPromptRow } from "../../prompts/prompts.ts";
import { titleOf } from "../../reports/labels.ts";
import { listScheduledEvaluations, listScheduleExceptions } from "../../schedules/scheduled-evaluations.ts";
import { getSchedule, getScheduleState, pauseSchedules, resumeSchedules } from "../../schedules/schedules.ts";
import { showPage, submitForm } from "../page-requests.tsx";
import { requireConfirmation } from "../pages/confirm.tsx";
import { SchedulePage, SchedulesPage } from "../pages/schedules.tsx";
import { queryOptions } from "../query.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const perPage = 50;
const maxNext = 20;
const offsetQuery = { offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000 })) };

type SchedulesPageProps = { offset?: number; successMessage?: string };

function schedulesPage(
  ctx: Context,
  viewer: Viewer,
  site: Site,
  { offset = 0, successMessage }: SchedulesPageProps = {},
) {
  const { items, total } = listScheduleExceptions(ctx, viewer.org, { limit: perPage, offset });
  return (
    <SchedulesPage
      {...{ site, viewer, total, offset, perPage, successMessage }}
      state={getScheduleState(ctx, viewer.org)}
      next={listScheduledPrompts(ctx, viewer.org, maxNext)}
      exceptions={items}
      now={ctx.now()}
    />
  );
}

/** The schedules of the organization, and the schedule of each prompt. */
export const schedulePages = (ctx: Context) =>
  new Elysia({ name: "schedule pages" })
    .get(
      "/schedules",
      ({ request, query: { offset } }) =>
        showPage(ctx, request, (viewer, site) => schedulesPage(ctx, viewer, site, { offset })),
      queryOptions(offsetQuery),
    )
    .post("/schedules/pause", ({ request }) =>
      submitForm(ctx, request, "write", (viewer, form, site) => {
        requireConfirmation(form, {
          title: "Pause all schedules?",
          consequences: [
            "No prompt of the organization runs on its schedule until someone resumes them.",
            "What is due in the meantime doesn’t run later.",
          ],
          buttonText: "Pause all",
          back: "/schedules",
          isDestructive: false,
        });
        pauseSchedules(ctx, viewer.org);
        return schedulesPage(ctx, viewer, site, { successMessage: "All schedules are paused." });
      }),
    )
    .post("/schedules/resume", ({ request }) =>
      submitForm(ctx, request, "write", (viewer, _form, site) => {
        resumeSchedules(ctx, viewer.org);
        return schedulesPage(ctx, viewer, site, { successMessage: "The schedules run again." });
      }),
    )
    .get(
      "/prompts/:promptId/schedule",
      ({ request, params: { promptId }, query: { offset = 0 } }) =>
        showPage(ctx, request, (viewer, site) => {
          const title = titleOf(getPromptRow(ctx, viewer.org, promptId));
          const { items, total } = listScheduledEvaluations(ctx, viewer.org, promptId, { limit: perPage, offset });
          return (
            <SchedulePage
              {...{ site, viewer, title, total, offset, perPage }}
              schedule={getSchedule(ctx, viewer.org, promptId)}
              evaluations={items}
              now={ctx.now()}
            />
          );
        }),
      queryOptions(offsetQuery),
    );
