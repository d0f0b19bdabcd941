import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { keptWhileUnchanged } from "../../db/unchanged.ts";
import { AppError } from "../../errors.ts";
import { type DocsMap, getDocsMap, mapQuery } from "../../reports/docsmap.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { hidden, page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { DocsMapPage } from "../pages/docsmap.tsx";
import { type ProviderFields, ProvidersPage } from "../pages/providers.tsx";
import { withoutBlanks } from "../query.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const path = Type.Object({ providerId: Type.String({ description: "uuid of the provider" }) });

/** Developer tools under evaluation, each with the map of its docs. */
export const providerPages = ({ deps, providers }: Service, front: Front) => {
  /** A map counts every page that agents came by: too much for each look. */
  const kept = keptWhileUnchanged<DocsMap>(deps.db, 50);

  /** `again`: what was typed and why it was not taken. */
  const listPage = (site: Site, viewer: Viewer, again?: { typed: ProviderFields; wrong: string }) => {
    const all = providers.listProviders(viewer.org);
    const body = toPage(<ProvidersPage {...{ site, viewer, providers: all, ...again }} />);
    return privateAnswer("html", body, again ? 400 : 200);
  };

  const onePage = (
    site: Site,
    viewer: Viewer,
    id: string,
    query = {},
    again?: { typed: ProviderFields; wrong: string },
  ) => {
    const provider = providers.getProvider(viewer.org, id);
    const month = new Date(deps.now()).toISOString().slice(0, 7);
    const map = kept(JSON.stringify([viewer.org, id, query, month]), () =>
      getDocsMap(deps, viewer.org, { providerId: id }, query),
    );
    const body = toPage(<DocsMapPage {...{ site, viewer, provider, map, ...again }} />);
    return privateAnswer("html", body, again ? 400 : 200);
  };

  const read = (fields: URLSearchParams) => {
    const of = (name: string) => (fields.get(name) ?? "").trim();
    const typed = { name: of("name"), docsUrl: of("docsUrl"), productUrl: of("productUrl") };
    return { typed, input: { name: typed.name, docsUrl: typed.docsUrl || null, productUrl: typed.productUrl || null } };
  };

  /** Shows a form again with what is wrong with it. Throws what is no fault of who filled it in. */
  function faultOf(error: unknown): string {
    if (error instanceof AppError && error.code === "bad_request") return error.detail;
    throw error;
  }

  return new Elysia({ name: "provider pages" })
    .get("/providers", ({ request }) => front.show(request, (viewer, site) => listPage(site, viewer)), {
      ...page("providersPage", "The developer tools under evaluation", { needsKey: true }),
    })
    .post(
      "/providers",
      ({ request }) =>
        front.act(request, "providers", (viewer, fields, site) => {
          const { typed, input } = read(fields);
          try {
            return front.seeOther(`/providers/${providers.createProvider(viewer.org, input).id}`);
          } catch (error) {
            return listPage(site, viewer, { typed, wrong: faultOf(error) });
          }
        }),
      hidden,
    )
    .get(
      "/providers/:providerId",
      ({ request, params, query }) =>
        front.show(request, (viewer, site) => onePage(site, viewer, params.providerId, query)),
      {
        transform: withoutBlanks,
        params: path,
        query: Type.Object(mapQuery),
        ...page("docsMapPage", "A provider, with the map of its docs", { refuses: true, misses: true, needsKey: true }),
      },
    )
    .post(
      "/providers/:providerId",
      ({ request, params }) =>
        front.act(request, "providers", (viewer, fields, site) => {
          const { typed, input } = read(fields);
          try {
            providers.updateProvider(viewer.org, params.providerId, input);
            return front.seeOther(`/providers/${params.providerId}`);
          } catch (error) {
            return onePage(site, viewer, params.providerId, {}, { typed, wrong: faultOf(error) });
          }
        }),
      { params: path, ...hidden },
    );
};
