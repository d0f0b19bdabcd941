import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { keptWhileUnchanged } from "../../db/unchanged.ts";
import { AppError } from "../../errors.ts";
import { type DocsMap, getDocsMap, mapQuery } from "../../friction/docs-map.ts";
import { toIso } from "../../schema.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { hidden, page } from "../describe.ts";
import type { PageRequests } from "../page-requests.tsx";
import { DocsMapPage } from "../pages/docs-map.tsx";
import { type ProviderFields, ProvidersPage } from "../pages/providers.tsx";
import { withoutBlanks } from "../query.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const path = Type.Object({ providerId: Type.String({ description: "ID of the provider" }) });

/** Providers, each with its docs map. */
export const providerPages = ({ deps, providers }: Service, pages: PageRequests) => {
  /** A docs map aggregates every page visit, so it is cached until the database changes. */
  const kept = keptWhileUnchanged<DocsMap>(deps.db, 50);

  /** `again`: the submitted values and the error, when the form was rejected. */
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
    const month = toIso(deps.now()).slice(0, 7);
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

  /** The message for the form. Rethrows errors that the user cannot fix. */
  function faultOf(error: unknown): string {
    if (error instanceof AppError && error.code === "bad_request") return error.detail;
    throw error;
  }

  return new Elysia({ name: "provider pages" })
    .get("/providers", ({ request }) => pages.show(request, (viewer, site) => listPage(site, viewer)), {
      ...page("providersPage", "Providers page", { needsKey: true }),
    })
    .post(
      "/providers",
      ({ request }) =>
        pages.submit(request, "providers", (viewer, fields, site) => {
          const { typed, input } = read(fields);
          try {
            return pages.seeOther(`/providers/${providers.createProvider(viewer.org, input).id}`);
          } catch (error) {
            return listPage(site, viewer, { typed, wrong: faultOf(error) });
          }
        }),
      hidden,
    )
    .get(
      "/providers/:providerId",
      ({ request, params, query }) =>
        pages.show(request, (viewer, site) => onePage(site, viewer, params.providerId, query)),
      {
        transform: withoutBlanks,
        params: path,
        query: Type.Object(mapQuery),
        ...page("docsMapPage", "Provider page with its docs map", { refuses: true, misses: true, needsKey: true }),
      },
    )
    .post(
      "/providers/:providerId",
      ({ request, params }) =>
        pages.submit(request, "providers", (viewer, fields, site) => {
          const { typed, input } = read(fields);
          try {
            providers.updateProvider(viewer.org, params.providerId, input);
            return pages.seeOther(`/providers/${params.providerId}`);
          } catch (error) {
            return onePage(site, viewer, params.providerId, {}, { typed, wrong: faultOf(error) });
          }
        }),
      { params: path, ...hidden },
    );
};
