import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf, requesterOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { cancelRegrade, getRegrade, listRegrades, requestRegrade } from "./regrades.ts";
import { Regrade, RegradeRequest } from "./schema.ts";

const regradePath = Type.Object({ regradeId: PathId("ID of the regrade") });

export const regradeRoutes = (ctx: Context) =>
  new Elysia({ name: "regrades" })
    .post("/api/v1/regrades", ({ request, body }) => requestRegrade(ctx, orgOf(request), body), {
      ...jsonBody(RegradeRequest),
      ...operation(
        "Reports",
        "regrade",
        "Regrade stored sessions with another methodology or judge",
        { 200: Regrade, ...errors(400, 404, 409, 413) },
        {
          description:
            "Does not run agents again. Once accepted, a regrade survives restarts. Poll its status at statusUrl.",
        },
      ),
    })
    .get(
      "/api/v1/regrades",
      ({ request, query, set }) => listResponse(set, listRegrades(ctx, orgOf(request), pageOf(query))),
      {
        query: Type.Object(pageQuery),
        ...operation("Reports", "listRegrades", "List regrades, newest first", {
          200: listOf(Regrade, "Regrades, newest first"),
          ...errors(400),
        }),
      },
    )
    .get("/api/v1/regrades/:regradeId", ({ request, params }) => getRegrade(ctx, orgOf(request), params.regradeId), {
      params: regradePath,
      ...operation("Reports", "getRegrade", "Get a regrade with its progress and cost", {
        200: Regrade,
        ...errors(404),
      }),
    })
    .post(
      "/api/v1/regrades/:regradeId/cancel",
      ({ request, params }) => cancelRegrade(ctx, orgOf(request), params.regradeId, requesterOf(request)),
      {
        params: regradePath,
        ...operation("Reports", "cancelRegrade", "Cancel a regrade; gradings made so far are kept", {
          200: Regrade,
          ...errors(404, 409),
        }),
      },
    );
