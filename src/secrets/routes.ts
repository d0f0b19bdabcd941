import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery, paginate } from "../http/paging.ts";
import { CheckSecret, CheckSecretInput } from "./schema.ts";
import { deleteSecret, listSecrets, setSecret } from "./secrets.ts";

const path = Type.Object({ name: Type.String({ description: "Name of the secret" }) });

export const secretRoutes = (ctx: Context) =>
  new Elysia({ name: "secrets" })
    .get(
      "/api/v1/secrets",
      ({ request, query, set }) => listResponse(set, paginate(listSecrets(ctx, orgOf(request)), pageOf(query))),
      {
        query: Type.Object(pageQuery),
        ...operation("Prompts", "listSecrets", "List the secrets of success checks, without their values", {
          200: listOf(CheckSecret, "Secrets by name"),
          ...errors(400),
        }),
      },
    )
    .put("/api/v1/secrets/:name", ({ request, params, body }) => setSecret(ctx, orgOf(request), params.name, body), {
      params: path,
      ...jsonBody(CheckSecretInput),
      ...operation("Prompts", "setSecret", "Store or replace a secret of success checks, encrypted", {
        200: CheckSecret,
        ...errors(400, 409, 413),
      }),
    })
    .delete("/api/v1/secrets/:name", ({ request, params }) => deleteSecret(ctx, orgOf(request), params.name), {
      params: path,
      ...operation("Prompts", "deleteSecret", "Delete a secret of success checks", {
        200: CheckSecret,
        ...errors(404),
      }),
    });
