import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { frictionColumns, getFriction, listFriction } from "../../friction/friction.ts";
import { frictionFilter, type Scope, scopeQuery } from "../../friction/schema.ts";
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

const hasScope = ({ promptId, providerId }: Scope): boolean => (promptId ?? providerId) !== undefined;

/** The prompt or provider with an ID. Without an ID, the scope is everything. */
function scopeOf(id: string | undefined, providers: { id: string }[]): Scope {
  if (id === undefined) return { everything: true };
  return providers.some((provider) => provider.id === id) ? { providerId: id } : { promptId: id };
}

/** Friction points across runs. */
export const frictionPages = (ctx: Context) =>
  new Elysia({ name: "friction pages" })
    .get(
      "/friction",
      ({ request, query: { of, offset = 0, ...query } }) =>
        showPage(ctx, request, (viewer, site) => {
          const prompts = listPromptChoices(ctx, viewer.org);
          const providers = listProviders(ctx, viewer.org);
          const filter = hasScope(query) ? query : { ...query, ...scopeOf(of, providers) };
          const agents = agentChoices(ctx, query.agent);
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
          const shownScope: Scope = hasScope(scope) ? scope : { everything: true };
          const friction = getFriction(ctx, viewer.org, params.fingerprint, shownScope);
          const prompts = listPromptChoices(ctx, viewer.org);
          return <FrictionPointPage {...{ site, viewer, friction, scope, prompts }} />;
        }),
      { query: Type.Object(scopeQuery) },
    );
