import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, listOf, type OrgOf, operation } from "../api.ts";
import { jsonBody } from "../body.ts";
import { pageQuery } from "../paging.ts";
import { idempotencyKeyShape } from "../runs/schema.ts";
import { PathId } from "../schema.ts";
import type { Gates } from "./gates.ts";
import { Gate, GateRequest } from "./schema.ts";

export const gateRoutes = (gates: Gates, orgOf: OrgOf) =>
  new Elysia({ name: "gates" })
    .post(
      "/api/v1/gates",
      async ({ request, body, headers, set }) => {
        set.status = 201;
        const idempotencyKey = headers["idempotency-key"];
        return await gates.requestGate(orgOf(request, "run"), { ...body, trigger: "api", idempotencyKey });
      },
      {
        headers: Type.Object({
          "idempotency-key": Type.Optional(
            Type.String({
              pattern: idempotencyKeyShape,
              description: "The same key within 24 hours answers with the same gate",
            }),
          ),
        }),
        ...jsonBody(GateRequest),
        ...operation(
          "Gates",
          "requestGate",
          "Ask whether a head is worse than its base",
          { 201: Gate, ...errors(400, 404, 409, 413) },
          { description: "Accepted at once; like a run it outlives restarts. Follow it at statusUrl." },
        ),
      },
    )
    .get(
      "/api/v1/gates",
      ({ request, query: { promptId, limit = 20, offset }, set }) => {
        const page = { limit, offset: offset ?? 0 };
        const { items, total } = gates.listGates(orgOf(request), { promptId: promptId?.toLowerCase() }, page);
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        query: Type.Object({
          promptId: Type.Optional(Type.String({ format: "uuid", description: "Only gates of this prompt" })),
          ...pageQuery,
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20, description: "Rows at most" })),
        }),
        ...operation("Gates", "listGates", "List the gates of the organisation, newest first", {
          200: listOf(Gate, "Gates, newest first"),
          ...errors(400),
        }),
      },
    )
    .get("/api/v1/gates/:gateId", ({ request, params }) => gates.getGate(orgOf(request), params.gateId), {
      params: Type.Object({ gateId: PathId("uuid of the gate") }),
      ...operation("Gates", "getGate", "Get a gate: how far it is, and what it came to", {
        200: Gate,
        ...errors(404),
      }),
    });
