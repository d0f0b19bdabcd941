import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { RunPage } from "../pages/run.tsx";

/** Runs, waiting, under way and done. */
export const runPages = ({ endings, runs }: Service, front: Front) =>
  new Elysia({ name: "run pages" }).get(
    "/runs/:runId",
    ({ request, params }) =>
      front.show(request, (viewer, here) => {
        const run = runs.getRun(viewer.org, params.runId);
        const asked = runs.getAsked(viewer.org, run.runId);
        const attempts = endings.listAttempts(viewer.org, params.runId);
        return privateAnswer("html", toPage(<RunPage {...{ site: here, viewer, run, asked, attempts }} />));
      }),
    {
      params: Type.Object({ runId: Type.String({ description: "uuid of the run" }) }),
      ...page("runPage", "A run, for people; loads itself again until the run is finished", {
        misses: true,
        needsKey: true,
      }),
    },
  );
