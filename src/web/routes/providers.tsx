import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { getDocsMap, mapQuery } from "../../friction/docs-map.ts";
import { columnOf, isDescending, type Sort, sortBy, sorted } from "../../http/sorting.ts";
import { createProvider, getProvider, listProviders, updateProvider } from "../../providers/providers.ts";
import { type Provider, ProviderInput } from "../../providers/schema.ts";
import { toIso } from "../../schema.ts";
import { getFieldTraffic } from "../../traffic/traffic.ts";
import { readForm } from "../form-values.ts";
import { showPage, submitOrShowAgain } from "../page-requests.tsx";
import { seeOtherWithToast } from "../page-responses.ts";
import { DocsMapPage } from "../pages/docs-map.tsx";
import { ProvidersPage } from "../pages/providers.tsx";
import type { FormResult } from "../pages/settings.tsx";
import { queryOptions } from "../query.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const providerColumns = ["name", "docs", "product"] as const;
type ProviderColumn = (typeof providerColumns)[number];
const sortValues: Record<ProviderColumn, (provider: Provider) => string | null> = {
  name: ({ name }) => name,
  docs: ({ docsUrl }) => docsUrl,
  product: ({ productUrl }) => productUrl,
};

/** `rejected`: the submitted values and the error, if the form was rejected. */
type ListOptions = { rejected?: FormResult; sort?: Sort<ProviderColumn> };

function listPage(ctx: Context, viewer: Viewer, site: Site, { rejected, sort }: ListOptions) {
  const all = listProviders(ctx, viewer.org);
  const providers = sort ? sorted(all, sortValues[columnOf(sort)], isDescending(sort)) : all;
  return <ProvidersPage {...{ site, viewer, providers, sort, rejected }} />;
}

type MapOptions = { rejected?: FormResult; query?: Parameters<typeof getDocsMap>[3] };

function docsMapPage(ctx: Context, viewer: Viewer, site: Site, id: string, { rejected, query = {} }: MapOptions) {
  const provider = getProvider(ctx, viewer.org, id);
  const docsMap = getDocsMap(ctx, viewer.org, { providerId: id }, query);
  // The docs map covers whole months, so its last month may end in the future.
  const map = { ...docsMap, until: toIso(Math.min(Date.parse(docsMap.until) - 1, ctx.now())) };
  const traffic = getFieldTraffic(ctx, viewer.org, id, query);
  return <DocsMapPage {...{ site, viewer, provider, map, traffic, rejected }} />;
}

/** Providers, each with its docs map. */
export const providerPages = (ctx: Context) =>
  new Elysia({ name: "provider pages" })
    .get(
      "/providers",
      ({ request, query: { sort } }) => showPage(ctx, request, (viewer, site) => listPage(ctx, viewer, site, { sort })),
      queryOptions({ sort: sortBy(providerColumns) }),
    )
    .post("/providers", ({ request }) =>
      submitOrShowAgain(
        ctx,
        request,
        "providers",
        (_, viewer, site, rejected) => listPage(ctx, viewer, site, { rejected }),
        (viewer, form) => {
          const { id } = createProvider(ctx, viewer.org, readForm(ProviderInput, form));
          return seeOtherWithToast(ctx, `/providers/${id}`, "providerAdded");
        },
      ),
    )
    .get(
      "/providers/:providerId",
      ({ request, params, query }) =>
        showPage(ctx, request, (viewer, site) => docsMapPage(ctx, viewer, site, params.providerId, { query })),
      queryOptions(mapQuery),
    )
    .post("/providers/:providerId", ({ request, params: { providerId } }) =>
      submitOrShowAgain(
        ctx,
        request,
        "providers",
        (_, viewer, site, rejected) => docsMapPage(ctx, viewer, site, providerId, { rejected }),
        (viewer, form) => {
          updateProvider(ctx, viewer.org, providerId, readForm(ProviderInput, form));
          return seeOtherWithToast(ctx, `/providers/${providerId}`, "providerSaved");
        },
      ),
    );
