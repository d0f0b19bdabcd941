import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { frictionColumns, getFriction, listFriction } from "../../friction/friction.ts";
import { frictionFilter, scopeQuery } from "../../friction/schema.ts";
import { sortBy } from "../../http/sorting.ts";
import { listPromptChoices } from "../../prompts/lists.ts";
import { listProviders } from "../../providers/providers.ts";
import { showPage } from "../page-requests.tsx";
import { FrictionPage, frictionShown } from "../pages/friction.tsx";
import { FrictionPointPage } from "../pages/friction-point.tsx";
import { agentChoices, queryOf } from "../query.ts";

const query = queryOf({
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
      ({ request, query: { of, offset = 0, ...asked } }) =>
        showPage(ctx, request, (viewer, site) => {
          const listed = listPromptChoices(ctx, viewer.org);
          const known = listProviders(ctx, viewer.org);
          const isGiven = (asked.promptId ?? asked.providerId) !== undefined;
          const chosen = known.some(({ id }) => id === of) ? { providerId: of } : { promptId: of };
          const scope = isGiven ? {} : of === undefined ? { everything: true as const } : chosen;
          const filter = { ...asked, ...scope };
          const agents = agentChoices(ctx, asked.agent);
          const found = listFriction(ctx, viewer.org, filter, { limit: frictionShown, offset });
          return (
            <FrictionPage
              {...{ site, viewer, found, prompts: listed, providers: known, agents }}
              query={{ ...filter, offset }}
            />
          );
        }),
      query,
    )
    .get(
      "/friction/:fingerprint",
      ({ request, params, query: scope }) =>
        showPage(ctx, request, (viewer, site) => {
          const isGiven = (scope.promptId ?? scope.providerId) !== undefined;
          const point = getFriction(ctx, viewer.org, params.fingerprint, isGiven ? scope : { everything: true });
          const listed = listPromptChoices(ctx, viewer.org);
          return <FrictionPointPage {...{ site, viewer, friction: point, scope, prompts: listed }} />;
        }),
      {
        query: Type.Object(scopeQuery),
      },
    );
