import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { AppError } from "../../errors.ts";
import { getDocsMap, mapQuery } from "../../friction/docs-map.ts";
import { columnOf, isDescending, type Sort, sortBy, sorted } from "../../http/sorting.ts";
import { createProvider, getProvider, listProviders, updateProvider } from "../../providers/providers.ts";
import type { Provider } from "../../providers/schema.ts";
import { toIso } from "../../schema.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { seeChanged } from "../page-answers.ts";
import { showPage, submitForm } from "../page-requests.tsx";
import { DocsMapPage } from "../pages/docs-map.tsx";
import { type ProviderFields, ProvidersPage } from "../pages/providers.tsx";
import { withoutBlanks } from "../query.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const providerColumns = ["name", "docs", "product"] as const;
type ProviderColumn = (typeof providerColumns)[number];
const toValue: Record<ProviderColumn, (provider: Provider) => string | null> = {
  name: ({ name }) => name,
  docs: ({ docsUrl }) => docsUrl,
  product: ({ productUrl }) => productUrl,
};

/** `again`: the submitted values and the error, when the form was rejected. */
const listPage = (
  ctx: Context,
  site: Site,
  viewer: Viewer,
  again?: { typed: ProviderFields; wrong: string },
  sort?: Sort<ProviderColumn>,
) => {
  const all = listProviders(ctx, viewer.org);
  const ordered = sort ? sorted(all, toValue[columnOf(sort)], isDescending(sort)) : all;
  const body = toPage(<ProvidersPage {...{ site, viewer, providers: ordered, sort, ...again }} />);
  return privateAnswer("html", body, again ? 400 : 200);
};

const onePage = (
  ctx: Context,
  site: Site,
  viewer: Viewer,
  id: string,
  query = {},
  again?: { typed: ProviderFields; wrong: string },
) => {
  const provider = getProvider(ctx, viewer.org, id);
  const found = getDocsMap(ctx, viewer.org, { providerId: id }, query);
  // The months are whole, so the last one may end in the future.
  const map = { ...found, until: toIso(Math.min(Date.parse(found.until) - 1, ctx.now())) };
  const body = toPage(<DocsMapPage {...{ site, viewer, provider, map, ...again }} />);
  return privateAnswer("html", body, again ? 400 : 200);
};

const read = (_ctx: Context, fields: URLSearchParams) => {
  const of = (name: string) => (fields.get(name) ?? "").trim();
  const typed = { name: of("name"), docsUrl: of("docsUrl"), productUrl: of("productUrl") };
  return { typed, input: { name: typed.name, docsUrl: typed.docsUrl || null, productUrl: typed.productUrl || null } };
};

/** The message for the form. Rethrows errors that the user cannot fix. */
function faultOf(_ctx: Context, error: unknown): string {
  if (error instanceof AppError && error.code === "bad_request") return error.detail;
  throw error;
}

/** Providers, each with its docs map. */
export const providerPages = (ctx: Context) =>
  new Elysia({ name: "provider pages" })
    .get(
      "/providers",
      ({ request, query: { sort } }) =>
        showPage(ctx, request, (viewer, site) => listPage(ctx, site, viewer, undefined, sort)),
      {
        transform: withoutBlanks,
        query: Type.Object({ sort: sortBy(providerColumns) }),
      },
    )
    .post("/providers", ({ request }) =>
      submitForm(ctx, request, "providers", (viewer, fields, site) => {
        const { typed, input } = read(ctx, fields);
        try {
          return seeChanged(ctx, `/providers/${createProvider(ctx, viewer.org, input).id}`, "providerAdded");
        } catch (error) {
          return listPage(ctx, site, viewer, { typed, wrong: faultOf(ctx, error) });
        }
      }),
    )
    .get(
      "/providers/:providerId",
      ({ request, params, query }) =>
        showPage(ctx, request, (viewer, site) => onePage(ctx, site, viewer, params.providerId, query)),
      {
        transform: withoutBlanks,
        query: Type.Object(mapQuery),
      },
    )
    .post("/providers/:providerId", ({ request, params }) =>
      submitForm(ctx, request, "providers", (viewer, fields, site) => {
        const { typed, input } = read(ctx, fields);
        try {
          updateProvider(ctx, viewer.org, params.providerId, input);
          return seeChanged(ctx, `/providers/${params.providerId}`, "providerSaved");
        } catch (error) {
          return onePage(ctx, site, viewer, params.providerId, {}, { typed, wrong: faultOf(ctx, error) });
        }
      }),
    );
