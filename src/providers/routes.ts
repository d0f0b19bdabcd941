import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery, paginate } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { createProvider, getProvider, listProviders, updateProvider } from "./providers.ts";
import { Provider, ProviderInput, ProviderPatch } from "./schema.ts";

const path = Type.Object({ providerId: PathId("ID of the provider") });

export const providerRoutes = (ctx: Context) =>
  new Elysia({ name: "providers" })
    .get(
      "/api/v1/providers",
      // An organization has few providers.
      ({ request, query, set }) => listResponse(set, paginate(listProviders(ctx, orgOf(request)), pageOf(query))),
      {
        query: Type.Object(pageQuery),
        ...operation("Providers", "listProviders", "List providers, newest first", {
          200: listOf(Provider, "Providers, newest first"),
          ...errors(400),
        }),
      },
    )
    .post(
      "/api/v1/providers",
      ({ request, body, set }) => {
        set.status = 201;
        return createProvider(ctx, orgOf(request), body);
      },
      {
        ...jsonBody(ProviderInput),
        ...operation("Providers", "createProvider", "Create a provider", { 201: Provider, ...errors(400, 413) }),
      },
    )
    .get(
      "/api/v1/providers/:providerId",
      ({ request, params }) => getProvider(ctx, orgOf(request), params.providerId),
      {
        params: path,
        ...operation("Providers", "getProvider", "Get a provider", { 200: Provider, ...errors(404) }),
      },
    )
    .patch(
      "/api/v1/providers/:providerId",
      ({ request, params, body }) => updateProvider(ctx, orgOf(request), params.providerId, body),
      {
        params: path,
        ...jsonBody(ProviderPatch),
        ...operation("Providers", "updateProvider", "Update a provider", { 200: Provider, ...errors(400, 404, 413) }),
      },
    );
