import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf, requesterOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { sourceOf } from "../runs/requests.ts";
import { IdempotencyKey } from "../runs/schema.ts";
import { PathId } from "../schema.ts";
import { cancelGate } from "./cancellation.ts";
import { getGate, listGates } from "./gates.ts";
import { requestGate } from "./requests.ts";
import { Gate, GateRequest } from "./schema.ts";

export const gateRoutes = (ctx: Context) =>
  new Elysia({ name: "gates" })
    .post(
      "/api/v1/gates",
      async ({ request, body, headers, set }) => {
        set.status = 201;
        const idempotencyKey = headers["idempotency-key"];
        const { requester } = sourceOf(request);
        return await requestGate(ctx, orgOf(request, "run"), { ...body, requester, idempotencyKey });
      },
      {
        headers: Type.Object({
          "idempotency-key": Type.Optional(
            IdempotencyKey("Repeating a request with the same key within 24 hours returns the same gate"),
          ),
        }),
        ...jsonBody(GateRequest),
        ...operation(
          "Gates",
          "requestGate",
          "Create a gate",
          { 201: Gate, ...errors(400, 404, 409, 413) },
          {
            description:
              "Compares a head (a preview, or the live docs) with its base and decides whether it is worse. Once accepted, a gate survives restarts. Poll its status at statusUrl.",
          },
        ),
      },
    )
    .get(
      "/api/v1/gates",
      ({ request, query, set }) => {
        const promptId = query.promptId?.toLowerCase();
        return listResponse(set, listGates(ctx, orgOf(request), { promptId }, pageOf(query, 20)));
      },
      {
        query: Type.Object({
          promptId: Type.Optional(Type.String({ format: "uuid", description: "Only gates of this prompt" })),
          ...pageQuery,
          limit: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 100, default: 20, description: "Maximum number of items to return" }),
          ),
        }),
        ...operation("Gates", "listGates", "List gates, newest first", {
          200: listOf(Gate, "Gates, newest first"),
          ...errors(400),
        }),
      },
    )
    .post(
      "/api/v1/gates/:gateId/cancel",
      ({ request, params }) => cancelGate(ctx, orgOf(request, "run"), params.gateId, requesterOf(request)),
      {
        params: Type.Object({ gateId: PathId("ID of the gate") }),
        ...operation(
          "Gates",
          "cancelGate",
          "Cancel a gate",
          { 200: Gate, ...errors(404, 409) },
          { description: "Cancels all unfinished runs of the gate, which then ends without a verdict." },
        ),
      },
    )
    .get("/api/v1/gates/:gateId", ({ request, params }) => getGate(ctx, orgOf(request), params.gateId), {
      params: Type.Object({ gateId: PathId("ID of the gate") }),
      ...operation("Gates", "getGate", "Get a gate with its progress and verdict", {
        200: Gate,
        ...errors(404),
      }),
    });
