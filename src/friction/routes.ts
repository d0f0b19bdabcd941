import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { jsonBody } from "../http/body.ts";
import { orgOf, requesterOf } from "../http/caller.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listAnswer, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { Dismissal, DismissalInput, type Dismissals } from "./dismissals.ts";
import { DocsMap, getDocsMap, mapQuery } from "./docs-map.ts";
import { Fix } from "./fix-schema.ts";
import type { FrictionLists } from "./friction.ts";
import { DoneInput, fixFilter, type Recommendations } from "./recommendations.ts";
import { FrictionDetail, FrictionThing, frictionFilter, scopeQuery } from "./schema.ts";

type Parts = {
  friction: FrictionLists;
  recommendations: Recommendations;
  dismissals: Dismissals;
  ctx: Pick<Context, "db" | "now">;
};

/** Friction points over many reports, the docs map, and recommended fixes that were marked done. */
export const frictionRoutes = ({ friction, recommendations, dismissals, ctx }: Parts) =>
  new Elysia({ name: "friction" })
    .get(
      "/api/v1/friction",
      ({ request, query: { limit, offset, ...filter }, set }) =>
        listAnswer(set, friction.list(orgOf(request), filter, pageOf({ limit, offset }))),
      {
        query: Type.Object({ ...frictionFilter, ...pageQuery }),
        ...operation("Friction", "listFriction", "List friction points merged over runs, most severe first", {
          200: listOf(FrictionThing, "Friction points of a prompt, or of all prompts of a provider"),
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/friction/:fingerprint",
      ({ request, params, query }) => friction.get(orgOf(request), params.fingerprint, query),
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
      "/api/v1/recommendations/:fingerprint/done",
      async ({ request, params, body, set }) => {
        set.status = 201;
        const who = { by: requesterOf(request), trigger: "api" as const };
        return recommendations.markDone(orgOf(request), params.fingerprint, body, who);
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
        listAnswer(set, recommendations.listDone(orgOf(request), filter, pageOf({ limit, offset }))),
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
    )
    .post(
      "/api/v1/dismissals",
      ({ request, body, set }) => {
        set.status = 201;
        return dismissals.dismiss(orgOf(request), body, requesterOf(request));
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
      ({ request, query, set }) => listAnswer(set, dismissals.listDismissals(orgOf(request), pageOf(query))),
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
      ({ request, params }) => dismissals.withdraw(orgOf(request), params.dismissalId, requesterOf(request)),
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
