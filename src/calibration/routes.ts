import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf, requesterOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { sourceOf } from "../runs/requests.ts";
import { PathId } from "../schema.ts";
import { cancelCalibration, listCalibrations } from "./calibrations.ts";
import { requestCalibration } from "./requests.ts";
import { Calibration, CalibrationRequest } from "./schema.ts";

const path = Type.Object({ calibrationId: PathId("ID of the calibration") });

/** Calibrations: how well agents find what is known to be wrong. */
export const calibrationRoutes = (ctx: Context) =>
  new Elysia({ name: "calibrations" })
    .post(
      "/api/v1/calibrations",
      async ({ request, body, set }) => {
        set.status = body.dryRun ? 200 : 201;
        return await requestCalibration(ctx, orgOf(request, "run"), { ...body, ...sourceOf(request) });
      },
      {
        ...jsonBody(CalibrationRequest),
        ...operation("Calibrations", "requestCalibration", "Plant defects and measure how many an agent finds", {
          200: Calibration,
          201: Calibration,
          ...errors(400, 404, 409),
        }),
      },
    )
    .get(
      "/api/v1/calibrations",
      ({ request, query, set }) => listResponse(set, listCalibrations(ctx, orgOf(request), pageOf(query, 20))),
      {
        query: Type.Object(pageQuery),
        ...operation("Calibrations", "listCalibrations", "List calibrations, newest first", {
          200: listOf(Calibration, "Calibrations, newest first"),
          ...errors(400),
        }),
      },
    )
    .post(
      "/api/v1/calibrations/:calibrationId/cancel",
      ({ request, params }) =>
        cancelCalibration(ctx, orgOf(request, "run"), params.calibrationId, requesterOf(request)),
      {
        params: path,
        ...operation("Calibrations", "cancelCalibration", "Cancel a calibration and its repetition", {
          200: Calibration,
          ...errors(404, 409),
        }),
      },
    );
