import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { frictionFilter, scopeQuery } from "../../reports/frictionschema.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { hidden, page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { FrictionPage, frictionShown } from "../pages/friction.tsx";
import { LifePage } from "../pages/life.tsx";
import { withoutBlanks } from "../query.ts";

const query = Type.Object({
  ...frictionFilter,
  of: Type.Optional(Type.String({ format: "uuid", description: "The id of a prompt or of a provider" })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
});

const shown = { refuses: true, misses: true, needsKey: true };

/** What stood in the way, over many runs, and what people did about it. */
export const frictionPages = ({ reports, prompts, providers, recommendations }: Service, front: Front) =>
  new Elysia({ name: "friction pages" })
    .get(
      "/friction",
      ({ request, query: { of, offset = 0, ...asked } }) =>
        front.show(request, (viewer, site) => {
          const listed = prompts.listPrompts(viewer.org, { limit: 200, offset: 0, includeArchived: true }).items;
          const known = providers.listProviders(viewer.org);
          const isGiven = asked.promptId !== undefined || asked.providerId !== undefined;
          const [newest] = reports.listReports(viewer.org, {}, { limit: 1, offset: 0 }).items;
          const id = isGiven ? undefined : (of ?? newest?.prompt.id ?? listed[0]?.id);
          const scope = known.some((each) => each.id === id) ? { providerId: id } : { promptId: id };
          const filter = id === undefined ? asked : { ...asked, ...scope };
          const found =
            filter.promptId === undefined && filter.providerId === undefined
              ? { items: [], total: 0 }
              : reports.listFriction(viewer.org, filter, { limit: frictionShown, offset });
          const body = (
            <FrictionPage
              {...{ site, viewer, found, prompts: listed, providers: known }}
              query={{ ...filter, offset }}
            />
          );
          return privateAnswer("html", toPage(body));
        }),
      { transform: withoutBlanks, query, ...page("frictionPage", "What stood in the way, each thing once", shown) },
    )
    .get(
      "/friction/:fingerprint",
      ({ request, params, query: scope }) =>
        front.show(request, (viewer, site) => {
          const friction = reports.getFriction(viewer.org, params.fingerprint, scope);
          const listed = prompts.listPrompts(viewer.org, { limit: 200, offset: 0, includeArchived: true }).items;
          return privateAnswer("html", toPage(<LifePage {...{ site, viewer, friction, scope, prompts: listed }} />));
        }),
      {
        params: Type.Object({ fingerprint: Type.String() }),
        query: Type.Object(scopeQuery),
        ...page("lifePage", "One friction over the evaluations that came to where it stands", shown),
      },
    )
    .post(
      "/reports/:slug/done/:fingerprint",
      ({ request, params }) =>
        front.act(request, "run", async (viewer, fields) => {
          const { prompt, run } = reports.getReport(viewer.org, params.slug);
          const note = fields.get("note") || null;
          const who = { by: viewer.person?.name ?? "", trigger: "web" as const };
          const input = { promptId: prompt.id, note, urlMap: run.urlMap };
          await recommendations.markDone(viewer.org, params.fingerprint, input, who);
          return front.seeOther(`/reports/${params.slug}#advice`);
        }),
      { params: Type.Object({ slug: Type.String(), fingerprint: Type.String() }), ...hidden },
    );
