import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { callerOf, orgOf } from "../http/caller.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery, paginate } from "../http/paging.ts";
import { OneOf } from "../schema.ts";
import { ApiKey, Whoami } from "./key-schema.ts";
import { listKeys, revokeKeysOfFormerMembers } from "./keys.ts";
import { getOrg } from "./orgs.ts";

/** The organization and API key of a request, and the API keys of the organization. */
export const keyRoutes = (ctx: Context) =>
  new Elysia({ name: "keys" })
    .get(
      "/api/v1/whoami",
      ({ request }) => {
        const { org, keyId, name: keyName, scopes } = callerOf(request);
        const { id, name, timeZone } = getOrg(ctx, org);
        return { organization: { id, name, timeZone }, key: { id: keyId, name: keyName, scopes } };
      },
      {
        ...operation("System", "whoami", "Get the organization and API key of the request", {
          200: Whoami,
          ...errors(),
        }),
      },
    )
    .get(
      "/api/v1/keys",
      ({ request, query: { createdBy, former, ...page }, set }) => {
        const filter = { createdBy, isOfFormer: former === "1", isActive: former === "1" };
        return listResponse(set, paginate(listKeys(ctx, orgOf(request), filter), pageOf(page)));
      },
      {
        query: Type.Object({
          createdBy: Type.Optional(Type.String({ maxLength: 100, description: "ID of the person who created them" })),
          former: Type.Optional(OneOf(["1"], "Only keys that still work of people who left the organization")),
          ...pageQuery,
        }),
        ...operation("System", "listKeys", "List API keys, newest first", {
          200: listOf(ApiKey, "Keys, newest first"),
          ...errors(400),
        }),
      },
    )
    .post("/api/v1/keys/revoke-former", ({ request }) => revokeKeysOfFormerMembers(ctx, orgOf(request)), {
      ...operation("System", "revokeKeysOfFormerMembers", "Revoke the API keys of people who left the organization", {
        200: Type.Array(ApiKey, { description: "The keys that were revoked" }),
        ...errors(),
      }),
    });
