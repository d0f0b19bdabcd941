import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { Fix } from "../friction/fix-schema.ts";
import { orgOf, requesterOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { sourceOf } from "../runs/requests.ts";
import { DoneInput, fixFilter, listDoneFixes, markFixDone } from "./done-fixes.ts";

/** Recommended fixes that were marked as done. */
export const fixRoutes = (ctx: Context) =>
  new Elysia({ name: "fixes" })
    .post(
      "/api/v1/recommendations/:fingerprint/done",
      async ({ request, params, body, set }) => {
        set.status = 201;
        const requester = { by: requesterOf(request), ...sourceOf(request) };
        return markFixDone(ctx, orgOf(request), params.fingerprint, body, requester);
      },
      {
        params: Type.Object({
          fingerprint: Type.String({ description: "Fingerprint of a friction point that the recommended fix removes" }),
        }),
        ...jsonBody(DoneInput),
        ...operation("Friction", "markDone", "Mark a recommended fix as done and verify it", {
          201: Fix,
          ...errors(400, 404, 409, 413),
        }),
      },
    )
    .get(
      "/api/v1/recommendations/done",
      ({ request, query: { limit, offset, ...filter }, set }) =>
        listResponse(set, listDoneFixes(ctx, orgOf(request), filter, pageOf({ limit, offset }))),
      {
        query: Type.Object({ ...fixFilter, ...pageQuery }),
        ...operation(
          "Friction",
          "listDone",
          "List the recommended fixes of a prompt that were marked as done, newest first",
          {
            200: listOf(Fix, "Recommended fixes with the result of their verification"),
            ...errors(400, 404),
          },
        ),
      },
    );
