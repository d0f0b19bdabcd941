import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { callerOf } from "../http/caller.ts";
import { errors, keyScopes, operation } from "../http/operation.ts";
import { Nullable, OneOf } from "../schema.ts";
import { getOrg } from "./orgs.ts";

const Whoami = Type.Object({
  organization: Type.Object({ id: Type.String({ format: "uuid" }), name: Type.String(), timeZone: Type.String() }),
  key: Type.Object({
    id: Type.String({ format: "uuid" }),
    name: Type.String(),
    scopes: Nullable(Type.Array(OneOf(keyScopes), { description: "Scopes of the key; null: all" })),
  }),
});

/** The organization and API key of a request. */
export const whoamiRoutes = (ctx: Context) =>
  new Elysia({ name: "whoami" }).get(
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
  );
