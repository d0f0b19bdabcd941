import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { notFound } from "../../errors.ts";
import { assetAnswer, prefersMarkdown, publicAnswer, varyAccept } from "../answer.ts";
import { css, js, toPage } from "../components/layout.tsx";
import { llmsTxt, robotsTxt, sitemapXml } from "../crawler-files.ts";
import { page } from "../describe.ts";
import { docs, findDoc, indexMarkdown, toMarkdown } from "../docs.ts";
import { errorAnswer, type PageRequests } from "../page-requests.tsx";
import { DocPage, DocsIndexPage } from "../pages/docs.tsx";
import { type OpenApiDocument, ReferencePage } from "../pages/reference.tsx";

/** Public routes: documentation, stylesheet and script. */
export const publicPages = ({ site, seeOther }: PageRequests, openApi: () => OpenApiDocument) =>
  new Elysia({ name: "public pages" })
    .get(
      "/style.css",
      ({ request }) => assetAnswer(request, "css", css),
      page("style", "Stylesheet", { types: ["text/css"] }),
    )
    .get(
      "/client.js",
      ({ request }) => assetAnswer(request, "js", js),
      page("client", "Browser script", { types: ["text/javascript"] }),
    )
    .get(
      "/llms.txt",
      ({ request }) => publicAnswer(request, "text", llmsTxt(site())),
      page("llmsTxt", "Documentation index for agents (llms.txt)", { types: ["text/plain"] }),
    )
    .get(
      "/robots.txt",
      ({ request }) => publicAnswer(request, "text", robotsTxt(site())),
      page("robotsTxt", "Crawler rules (robots.txt)", { types: ["text/plain"] }),
    )
    .get(
      "/sitemap.xml",
      ({ request }) => publicAnswer(request, "xml", sitemapXml(site())),
      page("sitemap", "Sitemap", { types: ["application/xml"] }),
    )
    .get(
      "/docs",
      ({ request }) =>
        prefersMarkdown(request)
          ? publicAnswer(request, "markdown", indexMarkdown(site()), varyAccept)
          : publicAnswer(request, "html", toPage(<DocsIndexPage site={site()} />), varyAccept),
      page("docs", "Documentation index", { types: ["text/html", "text/markdown"] }),
    )
    .get(
      "/docs.md",
      ({ request }) => publicAnswer(request, "markdown", indexMarkdown(site())),
      page("docsMarkdown", "Documentation index as Markdown", { types: ["text/markdown"] }),
    )
    .get(
      "/docs/api",
      ({ request }) => publicAnswer(request, "html", toPage(<ReferencePage site={site()} document={openApi()} />)),
      page("reference", "API reference page"),
    )
    .get(
      "/swagger",
      () => seeOther("/docs/api"),
      page("swagger", "Redirect to the API reference", { types: ["text/html"] }),
    )
    .get(
      "/docs/:page",
      ({ request, params }) => {
        const here = site();
        const slug = params.page.replace(/\.md$/, "");
        const doc = findDoc(slug);
        if (!doc)
          return errorAnswer(
            here,
            request,
            notFound(`page not found; the available pages are ${docs.map((each) => each.slug).join(", ")}`),
          );
        if (slug !== params.page) return publicAnswer(request, "markdown", toMarkdown(doc, here));
        return prefersMarkdown(request)
          ? publicAnswer(request, "markdown", toMarkdown(doc, here), varyAccept)
          : publicAnswer(request, "html", toPage(<DocPage site={here} doc={doc} />), varyAccept);
      },
      {
        params: Type.Object({ page: Type.String({ description: "Name of the page; append .md for Markdown" }) }),
        ...page("doc", "Documentation page", { types: ["text/html", "text/markdown"], misses: true }),
      },
    );
