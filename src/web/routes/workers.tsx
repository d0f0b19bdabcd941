import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { badRequest } from "../../errors.ts";
import { watchClock } from "../../runs/follow.ts";
import { dismissWorker, listWorkers, type Workers } from "../../workers/workers.ts";
import { renderFragment } from "../components/layout.tsx";
import { followTicks } from "../live.ts";
import { showPage, streamPage, submitOrShowAgain } from "../page-requests.tsx";
import { requireConfirmation } from "../pages/confirm.tsx";
import type { FormResult } from "../pages/settings.tsx";
import { effectsOf, WorkersPage, WorkersPart, type WorkersPartProps } from "../pages/workers.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const workersPartProps = (ctx: Context, workers: Workers, viewer: Viewer, site: Site): WorkersPartProps => ({
  site,
  workers: listWorkers(ctx, workers),
  usesWorkers: workers !== null,
  mayChange: may(viewer, "organization"),
  now: ctx.now(),
});

/** Settings page of the workers. */
export const workerPages = (ctx: Context, workers: Workers) => {
  const workersPage = (ctx: Context, viewer: Viewer, site: Site, { successMessage, errorMessage }: FormResult = {}) => (
    <WorkersPage {...{ viewer, successMessage, errorMessage, ...workersPartProps(ctx, workers, viewer, site) }} />
  );
  return new Elysia({ name: "worker pages" })
    .get("/settings/workers", ({ request }) => showPage(ctx, request, (viewer, site) => workersPage(ctx, viewer, site)))
    .get("/settings/workers/live", ({ request }) =>
      streamPage(ctx, request, (viewer, site) => {
        // Checked here, so that forbidden is an error of the request and not of its stream.
        listWorkers(ctx, workers);
        const render = () => renderFragment(<WorkersPart {...workersPartProps(ctx, workers, viewer, site)} />, viewer);
        return (signal) => followTicks(watchClock(ctx, signal), render);
      }),
    )
    .post("/settings/workers/:workerId", ({ request, params: { workerId } }) =>
      submitOrShowAgain(ctx, request, "organization", workersPage, (viewer, form, site) => {
        const isDrain = form.get("do") === "drain";
        const action = isDrain ? "drain" : "remove";
        const worker = listWorkers(ctx, workers).find(({ id }) => id === workerId);
        if (worker && form.get("do") !== action) throw badRequest("Select one of the listed actions.");
        if (worker)
          requireConfirmation(form, {
            title: `${isDrain ? "Drain" : "Remove"} the worker ${worker.name}?`,
            consequences: effectsOf(worker, action),
            buttonText: `${isDrain ? "Drain" : "Remove"} worker`,
            back: "/settings/workers",
            isDestructive: !isDrain,
          });
        const { name } = dismissWorker(ctx, viewer.org, workers, workerId, action);
        return workersPage(ctx, viewer, site, {
          successMessage: isDrain ? `${name} is draining.` : `${name} was removed.`,
        });
      }),
    );
};
