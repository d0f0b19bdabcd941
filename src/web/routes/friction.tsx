import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { frictionColumns, getFriction, listFriction } from "../../friction/friction.ts";
import { frictionFilter, scopeQuery } from "../../friction/schema.ts";
import { sortBy } from "../../http/sorting.ts";
import { listPromptChoices } from "../../prompts/lists.ts";
import { listProviders } from "../../providers/providers.ts";
import { showPage } from "../page-requests.tsx";
import { FrictionPage, frictionPerPage } from "../pages/friction.tsx";
import { FrictionPointPage } from "../pages/friction-point.tsx";
import { agentChoices, queryOptions } from "../query.ts";

const listQuery = queryOptions({
  ...frictionFilter,
  sort: sortBy(frictionColumns),
  of: Type.Optional(Type.String({ format: "uuid", description: "ID of a prompt or provider" })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
});

/** Friction points across runs. */
export const frictionPages = (ctx: Context) =>
  new Elysia({ name: "friction pages" })
    .get(
      "/friction",
      ({ request, query: { of: scopeId, offset = 0, ...filterQuery } }) =>
        showPage(ctx, request, (viewer, site) => {
          const prompts = listPromptChoices(ctx, viewer.org);
          const providers = listProviders(ctx, viewer.org);
          const hasScope = (filterQuery.promptId ?? filterQuery.providerId) !== undefined;
          const selectedScope = providers.some(({ id }) => id === scopeId)
            ? { providerId: scopeId }
            : { promptId: scopeId };
          const scope = scopeId === undefined ? { everything: true as const } : selectedScope;
          const filter = hasScope ? filterQuery : { ...filterQuery, ...scope };
          const agents = agentChoices(ctx, filterQuery.agent);
          const friction = listFriction(ctx, viewer.org, filter, { limit: frictionPerPage, offset });
          return (
            <FrictionPage {...{ site, viewer, friction, prompts, providers, agents }} query={{ ...filter, offset }} />
          );
        }),
      listQuery,
    )
    .get(
      "/friction/:fingerprint",
      ({ request, params, query: scope }) =>
        showPage(ctx, request, (viewer, site) => {
          const hasScope = (scope.promptId ?? scope.providerId) !== undefined;
          const point = getFriction(ctx, viewer.org, params.fingerprint, hasScope ? scope : { everything: true });
          const prompts = listPromptChoices(ctx, viewer.org);
          return <FrictionPointPage {...{ site, viewer, friction: point, scope, prompts }} />;
        }),
      {
        query: Type.Object(scopeQuery),
      },
    );
