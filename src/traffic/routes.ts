import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { mapQuery } from "../friction/docs-map.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, operation } from "../http/operation.ts";
import { PathId } from "../schema.ts";
import { FieldTraffic, FieldTrafficInput, ReceivedTraffic } from "./schema.ts";
import { getFieldTraffic, storeTraffic } from "./traffic.ts";

const { since, until, limit } = mapQuery;

/** Counts of access logs. */
export const fieldTrafficRoutes = (ctx: Context) =>
  new Elysia({ name: "field traffic" })
    .post(
      "/api/v1/field-traffic",
      ({ request, body, set }) => {
        set.status = 201;
        return storeTraffic(ctx, orgOf(request, "report_traffic"), body);
      },
      {
        ...jsonBody(FieldTrafficInput),
        ...operation("Friction", "reportTraffic", "Store what agents read, as counts of an access log", {
          201: ReceivedTraffic,
          ...errors(400, 413, 429),
        }),
      },
    )
    .get(
      "/api/v1/providers/:providerId/field-traffic",
      ({ request, params, query }) => getFieldTraffic(ctx, orgOf(request), params.providerId, query),
      {
        params: Type.Object({ providerId: PathId("ID of the provider") }),
        query: Type.Object({ since, until, limit }),
        ...operation("Friction", "getFieldTraffic", "Get what agents outside of runs read, beside what runs read", {
          200: FieldTraffic,
          ...errors(400, 404),
        }),
      },
    );
