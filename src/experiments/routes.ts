import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf, requesterOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery, paginate } from "../http/paging.ts";
import { sourceOf } from "../runs/requests.ts";
import { PathId } from "../schema.ts";
import { getExperiment, getExperimentRow, listExperiments } from "./experiments.ts";
import { cancelExperiment } from "./progress.ts";
import { estimateExperiment, requestExperiment } from "./requests.ts";
import { listEndedRuns } from "./results.ts";
import { Experiment, ExperimentEstimate, ExperimentRequest, ExperimentRun, ExperimentSummary } from "./schema.ts";

const path = Type.Object({ experimentId: PathId("ID of the experiment") });

/** Experiments: the same prompts in several arms. */
export const experimentRoutes = (ctx: Context) =>
  new Elysia({ name: "experiments" })
    .post(
      "/api/v1/experiments",
      async ({ request, body, set }) => {
        set.status = 201;
        return await requestExperiment(ctx, orgOf(request, "run"), { ...body, ...sourceOf(request) });
      },
      {
        ...jsonBody(ExperimentRequest),
        ...operation("Experiments", "requestExperiment", "Create an experiment", {
          201: Experiment,
          ...errors(400, 404, 409, 413),
        }),
      },
    )
    .post("/api/v1/experiments/estimate", ({ request, body }) => estimateExperiment(ctx, orgOf(request), body), {
      ...jsonBody(ExperimentRequest),
      ...operation("Experiments", "estimateExperiment", "Estimate what an experiment would cost", {
        200: ExperimentEstimate,
        ...errors(400, 404, 413),
      }),
    })
    .get(
      "/api/v1/experiments",
      ({ request, query, set }) => listResponse(set, listExperiments(ctx, orgOf(request), pageOf(query, 20))),
      {
        query: Type.Object(pageQuery),
        ...operation("Experiments", "listExperiments", "List experiments, newest first", {
          200: listOf(ExperimentSummary, "Experiments, newest first"),
          ...errors(400),
        }),
      },
    )
    .get(
      "/api/v1/experiments/:experimentId",
      ({ request, params }) => getExperiment(ctx, orgOf(request), params.experimentId),
      {
        params: path,
        ...operation("Experiments", "getExperiment", "Get an experiment with its result so far", {
          200: Experiment,
          ...errors(404),
        }),
      },
    )
    .get(
      "/api/v1/experiments/:experimentId/runs",
      ({ request, params, query, set }) => {
        const runs = listEndedRuns(ctx, getExperimentRow(ctx, orgOf(request), params.experimentId));
        return listResponse(set, paginate(runs, pageOf(query)));
      },
      {
        params: path,
        query: Type.Object(pageQuery),
        ...operation("Experiments", "listExperimentRuns", "List the ended runs of an experiment, oldest first", {
          200: listOf(ExperimentRun, "Ended runs, oldest first"),
          ...errors(400, 404),
        }),
      },
    )
    .post(
      "/api/v1/experiments/:experimentId/cancel",
      ({ request, params }) => cancelExperiment(ctx, orgOf(request, "run"), params.experimentId, requesterOf(request)),
      {
        params: path,
        ...operation("Experiments", "cancelExperiment", "Cancel an experiment", {
          200: Experiment,
          ...errors(404, 409),
        }),
      },
    );
