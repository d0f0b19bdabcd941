import { Elysia } from "elysia";
import { findLatestResults } from "../../comparisons/latest.ts";
import type { Context } from "../../context.ts";
import { findGateOfEval } from "../../gates/gates.ts";
import { getEvalRequest } from "../../runs/evals.ts";
import { docsVariantsOf } from "../../runs/lists.ts";
import type { EvalRequest } from "../../runs/schema.ts";
import { toComparisonHref } from "../components/change-links.ts";
import { renderFragment } from "../components/layout.tsx";
import { showPage, streamPart } from "../page-requests.tsx";
import { EvalPage, EvalPart } from "../pages/evaluation.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

/** The variant of the docs that an evaluation read. It is the same for all runs of the evaluation. */
function docsVariantOf(ctx: Context, viewer: Viewer, { runs: [first] }: EvalRequest) {
  return first ? (docsVariantsOf(ctx, viewer.org, [first.runId]).get(first.runId) ?? null) : null;
}

function evalPartProps(ctx: Context, viewer: Viewer, site: Site, id: string) {
  const request = getEvalRequest(ctx, viewer.org, id);
  return {
    site,
    viewer,
    request,
    docsVariant: docsVariantOf(ctx, viewer, request),
    comparisonHref: toComparisonHref(site.base, findLatestResults(ctx, viewer.org, request.prompt.id), id),
    gateId: findGateOfEval(ctx, viewer.org, id),
    now: ctx.now(),
  };
}

/** Pages of evaluations. */
export const evaluationPages = (ctx: Context) =>
  new Elysia({ name: "evaluation pages" })
    .get("/evals/:evalId", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => {
        const props = evalPartProps(ctx, viewer, site, params.evalId);
        return <EvalPage {...props} />;
      }),
    )
    .get("/evals/:evalId/live", ({ request, params }) =>
      streamPart(ctx, request, (viewer, site) => {
        // Checked here, so that not_found is an error of the request and not of its stream.
        getEvalRequest(ctx, viewer.org, params.evalId);
        return () => renderFragment(<EvalPart {...evalPartProps(ctx, viewer, site, params.evalId)} />, viewer);
      }),
    );
