import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { findLatest, findStep } from "../../comparisons/latest.ts";
import { failuresOfEval, getEvalRequest } from "../../runs/evals.ts";
import { previewsAmong } from "../../runs/previews.ts";
import type { EvalRequest } from "../../runs/schema.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage, toPart } from "../components/layout.tsx";
import type { PageRequests } from "../page-requests.tsx";
import { EvalPage, EvalPart } from "../pages/evaluation.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const evalParams = Type.Object({ evalId: Type.String({ description: "ID of the evaluation" }) });

/** Pages of evaluations. */
export const evaluationPages = ({ ctx, gates }: Service, pages: PageRequests) => {
  const isPreview = (viewer: Viewer, { runs }: EvalRequest) =>
    previewsAmong(
      ctx,
      viewer.org,
      runs.slice(0, 1).map(({ runId }) => runId),
    ).size > 0;
  const shownEval = (viewer: Viewer, site: Site, id: string, request = getEvalRequest(ctx, viewer.org, id)) => ({
    site,
    request,
    isPreview: isPreview(viewer, request),
    step: findStep(findLatest(ctx, viewer.org, request.prompt.id), id),
    failures: failuresOfEval(ctx, viewer.org, id),
    gateId: gates.findOfEval(viewer.org, id),
    now: ctx.now(),
  });

  return new Elysia({ name: "evaluation pages" })
    .get(
      "/evals/:evalId",
      ({ request, params }) =>
        pages.show(request, (viewer, site) => {
          const shown = shownEval(viewer, site, params.evalId);
          return privateAnswer("html", toPage(<EvalPage {...{ viewer, ...shown }} />));
        }),
      {
        params: evalParams,
      },
    )
    .get(
      "/evals/:evalId/live",
      ({ request, params }) =>
        pages.live(request, (viewer, site) => {
          // Not found is an error of the request, not of its stream.
          getEvalRequest(ctx, viewer.org, params.evalId);
          return () => toPart(<EvalPart {...shownEval(viewer, site, params.evalId)} />, viewer);
        }),
      {
        params: evalParams,
      },
    );
};
