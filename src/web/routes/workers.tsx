import { Elysia } from "elysia";
import { badRequest } from "../../errors.ts";
import type { Message } from "../../http/event-stream.ts";
import { watchClock } from "../../runs/follow.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage, toPart } from "../components/layout.tsx";
import { askBefore } from "../confirmation.tsx";
import type { PageRequests } from "../page-requests.tsx";
import { effectsOf, WorkersPage, WorkersPart, type WorkersShown } from "../pages/workers.tsx";
import { type FormResult, settingsForms } from "../settings-forms.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

/** Settings page of the workers. */
export const workerPages = ({ ctx, workers }: Service, pages: PageRequests) => {
  const act = settingsForms(pages);

  const shownWorkers = (viewer: Viewer, site: Site): WorkersShown => ({
    site,
    workers: workers.listWorkers(),
    isUsed: workers.isUsed,
    mayChange: may(viewer, "organization"),
    now: ctx.now(),
  });
  const workersPage = (viewer: Viewer, site: Site, { done, wrong }: FormResult = {}, status = 200) =>
    privateAnswer("html", toPage(<WorkersPage {...{ viewer, done, wrong, ...shownWorkers(viewer, site) }} />), status);

  async function* toParts(viewer: Viewer, site: Site, gone: AbortSignal) {
    let sent = "";
    for await (const _ of watchClock(ctx, gone)) {
      const data = toPart(<WorkersPart {...shownWorkers(viewer, site)} />, viewer);
      if (data !== sent) yield { data } satisfies Message;
      sent = data;
    }
  }

  return new Elysia({ name: "worker pages" })
    .get("/settings/workers", ({ request }) => pages.show(request, (viewer, site) => workersPage(viewer, site)))
    .get("/settings/workers/live", ({ request }) =>
      pages.stream(request, (viewer, site) => {
        // Forbidden is an error of the request, not of its stream.
        workers.listWorkers();
        return (gone) => toParts(viewer, site, gone);
      }),
    )
    .post("/settings/workers/:workerId", ({ request, params: { workerId } }) =>
      act(request, "organization", workersPage, (viewer, form, site) => {
        const what = form.get("do");
        const worker = workers.listWorkers().find(({ id }) => id === workerId);
        if (worker && what !== "drain" && what !== "remove") throw badRequest("Select one of the listed actions.");
        const isDrain = what === "drain";
        const asks =
          worker &&
          askBefore(
            pages,
            { request, viewer, form },
            {
              title: `${isDrain ? "Drain" : "Remove"} the worker ${worker.name}?`,
              loses: effectsOf(worker, isDrain ? "drain" : "remove"),
              act: `${isDrain ? "Drain" : "Remove"} worker`,
              back: "/settings/workers",
              isDestructive: !isDrain,
            },
          );
        if (asks) return asks;
        const { name } = isDrain ? workers.drainWorker(workerId) : workers.removeWorker(workerId);
        return workersPage(viewer, site, { done: isDrain ? `${name} is draining.` : `${name} was removed.` });
      }),
    );
};
