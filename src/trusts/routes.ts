import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { checkOwner } from "../auth/authentication.ts";
import type { Context } from "../context.ts";
import { AppError } from "../errors.ts";
import { addressOf } from "../http/address.ts";
import { callerOf, orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation, type Scope } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { defaultScopes, ExchangedKey, ExchangeInput, Trust, TrustInput } from "./schema.ts";
import { createTrust, deleteTrust, exchangeToken, listTrusts } from "./trusts.ts";

export const exchangePath = "/api/v1/oidc/exchange";

/** Throws forbidden if the caller is an API key without one of the scopes that it would give. */
function checkScopesOfCaller(request: Request, given: readonly Scope[]): void {
  const { scopes } = callerOf(request);
  const lackedScope = scopes && given.find((scope) => !scopes.includes(scope));
  if (lackedScope)
    throw new AppError("forbidden", `The API key lacks the scope ${lackedScope}, so it can't give it to CI jobs.`);
}

/** CI jobs that an organization trusts, and the exchange of their ID tokens. */
export const trustRoutes = (ctx: Context) =>
  new Elysia({ name: "trusts" })
    .post(exchangePath, async ({ request, body }) => await exchangeToken(ctx, body, addressOf(request)), {
      ...jsonBody(ExchangeInput),
      ...operation(
        "OIDC",
        "exchangeIdToken",
        "Exchange the ID token of a CI job for an API key",
        { 200: ExchangedKey, ...errors(400, 413, 429) },
        {
          security: [],
          description:
            "Requires a trust for the repository of the job. Request the ID token for the base URL of this server as its audience. Each token works once.",
        },
      ),
    })
    .get(
      "/api/v1/oidc/trusts",
      ({ request, query, set }) => listResponse(set, listTrusts(ctx, orgOf(request), pageOf(query))),
      {
        query: Type.Object(pageQuery),
        ...operation("OIDC", "listTrusts", "List trusted CI jobs, newest first", {
          200: listOf(Trust, "Trusts, newest first"),
          ...errors(400),
        }),
      },
    )
    .post(
      "/api/v1/oidc/trusts",
      ({ request, body, set }) => {
        const org = orgOf(request);
        checkOwner(ctx, request, "change which CI jobs are trusted");
        checkScopesOfCaller(request, body.scopes ?? defaultScopes);
        set.status = 201;
        return createTrust(ctx, org, body, callerOf(request).createdBy);
      },
      {
        ...jsonBody(TrustInput),
        ...operation("OIDC", "createTrust", "Trust CI jobs of a repository", {
          201: Trust,
          ...errors(400, 409, 413),
        }),
      },
    )
    .delete(
      "/api/v1/oidc/trusts/:trustId",
      ({ request, params }) => {
        const org = orgOf(request);
        checkOwner(ctx, request, "change which CI jobs are trusted");
        return deleteTrust(ctx, org, params.trustId);
      },
      {
        params: Type.Object({ trustId: PathId("ID of the trust") }),
        ...operation("OIDC", "deleteTrust", "Remove a trust and revoke its API keys", { 200: Trust, ...errors(404) }),
      },
    );
