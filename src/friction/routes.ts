import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf, requesterOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { Dismissal, DismissalInput, dismissFriction, listDismissals, withdrawDismissal } from "./dismissals.ts";
import { DocsMap, getDocsMap, mapQuery } from "./docs-map.ts";
import { getFriction, listFriction } from "./friction.ts";
import { FrictionDetail, FrictionSummary, frictionFilter, scopeQuery } from "./schema.ts";

/** Friction points over many reports, and the docs map. */
export const frictionRoutes = (ctx: Context) =>
  new Elysia({ name: "friction" })
    .get(
      "/api/v1/friction",
      ({ request, query: { limit, offset, ...filter }, set }) =>
        listResponse(set, listFriction(ctx, orgOf(request), filter, pageOf({ limit, offset }))),
      {
        query: Type.Object({ ...frictionFilter, ...pageQuery }),
        ...operation("Friction", "listFriction", "List friction points merged over runs, most severe first", {
          200: listOf(FrictionSummary, "Friction points of a prompt, or of all prompts of a provider"),
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/friction/:fingerprint",
      ({ request, params, query }) => getFriction(ctx, orgOf(request), params.fingerprint, query),
      {
        params: Type.Object({ fingerprint: Type.String() }),
        query: Type.Object(scopeQuery),
        ...operation("Friction", "getFriction", "Get a friction point with the evaluations that reached its page", {
          200: FrictionDetail,
          ...errors(400, 404),
        }),
      },
    )
    .post(
      "/api/v1/dismissals",
      ({ request, body, set }) => {
        set.status = 201;
        return dismissFriction(ctx, orgOf(request), body, requesterOf(request));
      },
      {
        ...jsonBody(DismissalInput),
        ...operation("Friction", "dismissFriction", "Dismiss friction points that are not a problem", {
          201: Dismissal,
          ...errors(400, 404, 409, 413),
        }),
      },
    )
    .get(
      "/api/v1/dismissals",
      ({ request, query, set }) => listResponse(set, listDismissals(ctx, orgOf(request), pageOf(query))),
      {
        query: Type.Object(pageQuery),
        ...operation("Friction", "listDismissals", "List dismissals, newest first", {
          200: listOf(Dismissal, "Active dismissals"),
          ...errors(400),
        }),
      },
    )
    .delete(
      "/api/v1/dismissals/:dismissalId",
      ({ request, params }) => withdrawDismissal(ctx, orgOf(request), params.dismissalId, requesterOf(request)),
      {
        params: Type.Object({ dismissalId: PathId("ID of the dismissal") }),
        ...operation("Friction", "undoDismissal", "Undo a dismissal", { 200: Dismissal, ...errors(404) }),
      },
    )
    .get(
      "/api/v1/providers/:providerId/docs-map",
      ({ request, params, query }) => getDocsMap(ctx, orgOf(request), params, query),
      {
        params: Type.Object({ providerId: PathId("ID of the provider") }),
        query: Type.Object(mapQuery),
        ...operation(
          "Friction",
          "getDocsMap",
          "Get the docs map of a provider: pages that agents read, never reach and guess",
          {
            200: DocsMap,
            ...errors(400, 404),
          },
        ),
      },
    )
    .get(
      "/api/v1/prompts/:promptId/docs-map",
      ({ request, params, query }) => getDocsMap(ctx, orgOf(request), params, query),
      {
        params: Type.Object({ promptId: PathId("ID of the prompt") }),
        query: Type.Object(mapQuery),
        ...operation("Friction", "getDocsMapOfPrompt", "Get the docs map of one prompt", {
          200: DocsMap,
          ...errors(400, 404),
        }),
      },
    );
