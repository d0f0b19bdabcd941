import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf, requesterOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, operation } from "../http/operation.ts";
import { sourceOf } from "../runs/requests.ts";
import { PathId } from "../schema.ts";
import { getBisect } from "./bisects.ts";
import { cancelBisect } from "./progress.ts";
import { requestBisect } from "./requests.ts";
import { Bisect, BisectRequest } from "./schema.ts";

const path = Type.Object({ bisectId: PathId("ID of the bisect") });

/** Bisects: searches for the commit with which a score changed. */
export const bisectRoutes = (ctx: Context) =>
  new Elysia({ name: "bisects" })
    .post(
      "/api/v1/bisects",
      async ({ request, body, set }) => {
        set.status = 201;
        return await requestBisect(ctx, orgOf(request, "run"), { ...body, ...sourceOf(request) });
      },
      {
        ...jsonBody(BisectRequest),
        ...operation("Gates", "requestBisect", "Find the commit with which a score changed", {
          201: Bisect,
          ...errors(400, 404, 409, 413),
        }),
      },
    )
    .get("/api/v1/bisects/:bisectId", ({ request, params }) => getBisect(ctx, orgOf(request), params.bisectId), {
      params: path,
      ...operation("Gates", "getBisect", "Get a bisect with its result so far", { 200: Bisect, ...errors(404) }),
    })
    .post(
      "/api/v1/bisects/:bisectId/cancel",
      ({ request, params }) => cancelBisect(ctx, orgOf(request, "run"), params.bisectId, requesterOf(request)),
      {
        params: path,
        ...operation("Gates", "cancelBisect", "Cancel a bisect", { 200: Bisect, ...errors(404, 409) }),
      },
    );
