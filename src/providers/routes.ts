import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, listOf, type OrgOf, operation } from "../api.ts";
import { jsonBody } from "../body.ts";
import { pageQuery } from "../paging.ts";
import { PathId } from "../schema.ts";
import type { Providers } from "./providers.ts";
import { Provider, ProviderInput, ProviderPatch } from "./schema.ts";

const path = Type.Object({ providerId: PathId("uuid of the provider") });

export const providerRoutes = (providers: Providers, orgOf: OrgOf) =>
  new Elysia({ name: "providers" })
    .get(
      "/api/v1/providers",
      ({ request, query: { limit = 100, offset }, set }) => {
        // An organisation has a few.
        const all = providers.listProviders(orgOf(request));
        set.headers["x-total-count"] = String(all.length);
        return all.slice(offset ?? 0, (offset ?? 0) + limit);
      },
      {
        query: Type.Object(pageQuery),
        ...operation("Providers", "listProviders", "List the developer tools under evaluation, newest first", {
          200: listOf(Provider, "Providers, newest first"),
          ...errors(400),
        }),
      },
    )
    .post(
      "/api/v1/providers",
      ({ request, body, set }) => {
        set.status = 201;
        return providers.createProvider(orgOf(request), body);
      },
      {
        ...jsonBody(ProviderInput),
        ...operation("Providers", "createProvider", "Add a developer tool", { 201: Provider, ...errors(400, 413) }),
      },
    )
    .get(
      "/api/v1/providers/:providerId",
      ({ request, params }) => providers.getProvider(orgOf(request), params.providerId),
      {
        params: path,
        ...operation("Providers", "getProvider", "Get one provider", { 200: Provider, ...errors(404) }),
      },
    )
    .patch(
      "/api/v1/providers/:providerId",
      ({ request, params, body }) => providers.updateProvider(orgOf(request), params.providerId, body),
      {
        params: path,
        ...jsonBody(ProviderPatch),
        ...operation("Providers", "updateProvider", "Change a provider", { 200: Provider, ...errors(400, 404, 413) }),
      },
    );
