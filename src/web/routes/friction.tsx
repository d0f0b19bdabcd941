import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { frictionFilter, scopeQuery } from "../../friction/schema.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { hidden, page } from "../describe.ts";
import type { PageRequests } from "../page-requests.tsx";
import { FrictionPage, frictionShown } from "../pages/friction.tsx";
import { FrictionPointPage } from "../pages/friction-point.tsx";
import { withoutBlanks } from "../query.ts";

const query = Type.Object({
  ...frictionFilter,
  of: Type.Optional(Type.String({ format: "uuid", description: "ID of a prompt or provider" })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
});

const shown = { refuses: true, misses: true, needsKey: true };

/** Friction points across runs, and the form that marks a fix as done. */
export const frictionPages = (
  { friction, reports, prompts, providers, recommendations }: Service,
  pages: PageRequests,
) =>
  new Elysia({ name: "friction pages" })
    .get(
      "/friction",
      ({ request, query: { of, offset = 0, ...asked } }) =>
        pages.show(request, (viewer, site) => {
          const listed = prompts.listChoices(viewer.org);
          const known = providers.listProviders(viewer.org);
          const isGiven = asked.promptId !== undefined || asked.providerId !== undefined;
          const [newest] = reports.listReports(viewer.org, {}, { limit: 1, offset: 0 }).items;
          const id = isGiven ? undefined : (of ?? newest?.prompt.id ?? listed[0]?.id);
          const scope = known.some((each) => each.id === id) ? { providerId: id } : { promptId: id };
          const filter = id === undefined ? asked : { ...asked, ...scope };
          const found =
            filter.promptId === undefined && filter.providerId === undefined
              ? { items: [], total: 0 }
              : friction.list(viewer.org, filter, { limit: frictionShown, offset });
          const body = (
            <FrictionPage
              {...{ site, viewer, found, prompts: listed, providers: known }}
              query={{ ...filter, offset }}
            />
          );
          return privateAnswer("html", toPage(body));
        }),
      { transform: withoutBlanks, query, ...page("frictionPage", "Friction page", shown) },
    )
    .get(
      "/friction/:fingerprint",
      ({ request, params, query: scope }) =>
        pages.show(request, (viewer, site) => {
          const point = friction.get(viewer.org, params.fingerprint, scope);
          const listed = prompts.listChoices(viewer.org);
          return privateAnswer(
            "html",
            toPage(<FrictionPointPage {...{ site, viewer, friction: point, scope, prompts: listed }} />),
          );
        }),
      {
        params: Type.Object({ fingerprint: Type.String() }),
        query: Type.Object(scopeQuery),
        ...page("frictionPointPage", "Friction point page", shown),
      },
    )
    .post(
      "/reports/:slug/done/:fingerprint",
      ({ request, params }) =>
        pages.submit(request, "run", async (viewer, fields) => {
          const { prompt, run } = reports.getReport(viewer.org, params.slug);
          const note = fields.get("note") || null;
          const who = { by: viewer.person?.name ?? "", trigger: "web" as const };
          const input = { promptId: prompt.id, note, urlMap: run.urlMap };
          await recommendations.markDone(viewer.org, params.fingerprint, input, who);
          return pages.seeOther(`/reports/${params.slug}#advice`);
        }),
      { params: Type.Object({ slug: Type.String(), fingerprint: Type.String() }), ...hidden },
    );
