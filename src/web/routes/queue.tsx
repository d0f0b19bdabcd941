import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { count } from "../../grading/text.ts";
import { listFailureGroups, retryGroup } from "../../queue/failures.ts";
import { getQueueOverview } from "../../queue/overview.ts";
import { QueuePauseInput } from "../../queue/schema.ts";
import { watchDatabase } from "../../runs/follow.ts";
import { pauseRuns, resumeRuns } from "../../runs/pauses.ts";
import type { Workers } from "../../workers/workers.ts";
import { renderFragment } from "../components/layout.tsx";
import { readForm } from "../form-values.ts";
import { followTicks } from "../live.ts";
import { showPage, streamPage, submitOrShowAgain } from "../page-requests.tsx";
import { requireConfirmation } from "../pages/confirm.tsx";
import { QueuePage, QueuePart, type QueuePartProps } from "../pages/queue.tsx";
import type { FormResult } from "../pages/settings.tsx";
import type { Site } from "../site.ts";
import { requireOperator, type Viewer, webSourceOf } from "../viewer.ts";

const queuePartProps = (ctx: Context, workers: Workers, site: Site): QueuePartProps => ({
  site,
  queue: getQueueOverview(ctx, workers),
  failures: listFailureGroups(ctx),
  now: ctx.now(),
});

/** The queue of all organizations. */
export const queuePages = (ctx: Context, workers: Workers) => {
  const queuePage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => {
    requireOperator(viewer);
    return <QueuePage {...{ viewer, ...queuePartProps(ctx, workers, site), ...result }} />;
  };
  return new Elysia({ name: "queue pages" })
    .get("/settings/queue", ({ request }) => showPage(ctx, request, (viewer, site) => queuePage(ctx, viewer, site)))
    .get("/settings/queue/live", ({ request }) =>
      streamPage(ctx, request, (viewer, site) => {
        // Checked here, so that forbidden is an error of the request and not of its stream.
        requireOperator(viewer);
        const render = () => renderFragment(<QueuePart {...queuePartProps(ctx, workers, site)} />, viewer);
        return (signal) => followTicks(watchDatabase(ctx, signal), render);
      }),
    )
    .post("/settings/queue/pauses", ({ request }) =>
      submitOrShowAgain(ctx, request, "operate", queuePage, async (viewer, form, site) => {
        requireOperator(viewer);
        const input = readForm(QueuePauseInput, form);
        const name = nameOf(ctx, workers, input);
        requireConfirmation(form, {
          title: `Pause the ${input.kind} ${name}?`,
          consequences: [
            input.kind === "agent"
              ? "New runs with this agent wait in all organizations until you resume it."
              : "New runs of this organization wait until you resume it.",
            "Running ones end as usual.",
          ],
          buttonText: "Pause",
          back: "/settings/queue",
          isDestructive: false,
        });
        await pauseRuns(ctx, input, input.reason ?? null, viewer.person.name);
        return queuePage(ctx, viewer, site, { successMessage: `Paused the ${input.kind} ${name}.` });
      }),
    )
    .post("/settings/queue/resume", ({ request }) =>
      submitOrShowAgain(ctx, request, "operate", queuePage, async (viewer, form, site) => {
        requireOperator(viewer);
        const input = readForm(QueuePauseInput, form);
        const name = nameOf(ctx, workers, input);
        await resumeRuns(ctx, input);
        return queuePage(ctx, viewer, site, { successMessage: `Resumed the ${input.kind} ${name}.` });
      }),
    )
    .post("/settings/queue/failures/:groupId/retry", ({ request, params }) =>
      submitOrShowAgain(ctx, request, "operate", queuePage, async (viewer, form, site) => {
        requireOperator(viewer);
        const group = listFailureGroups(ctx).find(({ id }) => id === params.groupId);
        // Without a group, `retryGroup` throws not_found.
        if (group)
          requireConfirmation(form, {
            title: `Retry ${count(group.failed, group.kind === "run" ? "failed run" : "failed notification")}?`,
            consequences: [
              `They belong to ${group.organizations.join(", ")}. The oldest 100 are retried at once.`,
              ...(group.kind === "run" ? ["Runs may cost money of their organizations."] : []),
            ],
            buttonText: "Retry",
            back: "/settings/queue",
            isDestructive: false,
          });
        const { retried, refused, left } = await retryGroup(ctx, params.groupId, webSourceOf(viewer));
        const rest = [refused > 0 && `${refused} can't be retried`, left > 0 && `${left} are left`].filter(Boolean);
        return queuePage(ctx, viewer, site, {
          successMessage: `Retried ${retried}${rest.length > 0 ? `; ${rest.join(", ")}` : ""}.`,
        });
      }),
    );
};

/** The name of an agent or an organization, for messages. A form identifies an organization by ID or by name. */
function nameOf(ctx: Context, workers: Workers, { kind, subject }: QueuePauseInput): string {
  if (kind === "agent") return subject;
  return getQueueOverview(ctx, workers).organizations.find(({ id }) => id === subject)?.name ?? subject;
}
