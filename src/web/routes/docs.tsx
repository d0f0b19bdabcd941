import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { JSX } from "preact";
import type { Context } from "../../context.ts";
import { notFound } from "../../errors.ts";
import { toEventSchema } from "../../notifications/event-schema.ts";
import { renderPage } from "../components/layout.tsx";
import { hasSessionCookie } from "../credential.ts";
import { allDocs, findDoc, indexMarkdown, toMarkdown } from "../docs.ts";
import { searchDocs } from "../docs-search.ts";
import { errorResponse, showPublic } from "../page-requests.tsx";
import { seeOther } from "../page-responses.ts";
import { DocPage, DocsIndexPage, type DocsProps, DocsSearchPage } from "../pages/docs.tsx";
import { type OpenApiDocument, ReferencePage } from "../pages/reference.tsx";
import { prefersMarkdown, publicResponse } from "../responses.ts";
import { toSite } from "../site.ts";

// For signed-in people, pages have the menu of their organization. All pages depend on the color scheme.
const vary = { vary: "Accept, Cookie" };

/** Shows a page that is the same for everyone, except for people who are signed in. */
function showDocs(
  ctx: Context,
  request: Request,
  render: (reader: DocsProps) => JSX.Element,
): Response | Promise<Response> {
  const publicPage = () => publicResponse(request, "html", renderPage(render({ site: toSite(ctx, request) })), vary);
  if (!hasSessionCookie(request)) return publicPage();
  return showPublic(ctx, request, ({ viewer }, site) => (viewer ? render({ site, viewer }) : publicPage()));
}

/** The documentation. Its pages are public and can be cached, except for people who are signed in. */
export const docPages = (ctx: Context, openApi: () => Promise<OpenApiDocument>) =>
  new Elysia({ name: "documentation pages" })
    .get("/docs", ({ request }) =>
      prefersMarkdown(request)
        ? publicResponse(request, "markdown", indexMarkdown(toSite(ctx)), vary)
        : showDocs(ctx, request, (reader) => <DocsIndexPage {...reader} />),
    )
    .get("/docs.md", ({ request }) => publicResponse(request, "markdown", indexMarkdown(toSite(ctx))))
    .get(
      "/docs/search",
      ({ request, query: { q = "" } }) => {
        const words = q.trim().slice(0, 200);
        return showDocs(ctx, request, (reader) => (
          <DocsSearchPage {...reader} words={words} hits={searchDocs(words, reader.site)} />
        ));
      },
      {
        query: Type.Object({ q: Type.Optional(Type.String({ description: "Words to search for" })) }),
      },
    )
    .get("/docs/api", async ({ request }) => {
      const document = await openApi();
      return showDocs(ctx, request, (reader) => <ReferencePage {...reader} document={document} />);
    })
    .get("/docs/webhooks.json", ({ request }) => {
      const schema = toEventSchema(`${ctx.baseUrl()}/docs/webhooks.json`);
      return publicResponse(request, "json", JSON.stringify(schema, null, 2));
    })
    .get("/swagger", () => seeOther(ctx, "/docs/api"))
    .get("/docs/:page", ({ request, params }) => {
      const slug = params.page.replace(/\.md$/, "");
      const doc = findDoc(slug);
      if (!doc) {
        const slugs = allDocs().map((each) => each.slug);
        const error = notFound(`The page was not found. The available pages are ${slugs.join(", ")}.`);
        return errorResponse(ctx, request, error);
      }
      if (slug !== params.page) return publicResponse(request, "markdown", toMarkdown(doc, toSite(ctx)));
      return prefersMarkdown(request)
        ? publicResponse(request, "markdown", toMarkdown(doc, toSite(ctx)), vary)
        : showDocs(ctx, request, (reader) => <DocPage {...reader} doc={doc} />);
    });
