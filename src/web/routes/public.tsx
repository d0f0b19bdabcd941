import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { notFound } from "../../errors.ts";
import { assetAnswer, prefersMarkdown, publicAnswer, varyAccept } from "../answer.ts";
import { page } from "../describe.ts";
import { docs, findDoc, indexMarkdown, toMarkdown } from "../docs.ts";
import { errorAnswer, type Front } from "../front.tsx";
import { css, js, toPage } from "../layout.tsx";
import { DocPage, DocsIndexPage } from "../pages/doc.tsx";
import { type OpenApiDocument, ReferencePage } from "../pages/reference.tsx";
import { llmsTxt, robotsTxt, sitemapXml } from "../site.ts";

/** What everyone may read: the documentation, and what pages are made of. */
export const publicPages = ({ site, seeOther }: Front, openApi: () => OpenApiDocument) =>
  new Elysia({ name: "public pages" })
    .get(
      "/style.css",
      ({ request }) => assetAnswer(request, "css", css),
      page("style", "The style of all pages", { types: ["text/css"] }),
    )
    .get(
      "/client.js",
      ({ request }) => assetAnswer(request, "js", js),
      page("client", "What makes pages live in the browser", { types: ["text/javascript"] }),
    )
    .get(
      "/llms.txt",
      ({ request }) => publicAnswer(request, "text", llmsTxt(site())),
      page("llmsTxt", "The documentation as a list for agents", { types: ["text/plain"] }),
    )
    .get(
      "/robots.txt",
      ({ request }) => publicAnswer(request, "text", robotsTxt(site())),
      page("robotsTxt", "What crawlers may read", { types: ["text/plain"] }),
    )
    .get(
      "/sitemap.xml",
      ({ request }) => publicAnswer(request, "xml", sitemapXml(site())),
      page("sitemap", "The public pages", { types: ["application/xml"] }),
    )
    .get(
      "/docs",
      ({ request }) =>
        prefersMarkdown(request)
          ? publicAnswer(request, "markdown", indexMarkdown(site()), varyAccept)
          : publicAnswer(request, "html", toPage(<DocsIndexPage site={site()} />), varyAccept),
      page("docs", "All pages of the documentation", { types: ["text/html", "text/markdown"] }),
    )
    .get(
      "/docs.md",
      ({ request }) => publicAnswer(request, "markdown", indexMarkdown(site())),
      page("docsMarkdown", "All pages of the documentation, as Markdown", { types: ["text/markdown"] }),
    )
    .get(
      "/docs/api",
      ({ request }) => publicAnswer(request, "html", toPage(<ReferencePage site={site()} document={openApi()} />)),
      page("reference", "Every operation and field of the API, for people"),
    )
    .get(
      "/swagger",
      () => seeOther("/docs/api"),
      page("swagger", "Leads to the API reference", { types: ["text/html"] }),
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
            notFound(`there is no page of that name; the pages are ${docs.map((each) => each.slug).join(", ")}`),
          );
        if (slug !== params.page) return publicAnswer(request, "markdown", toMarkdown(doc, here));
        return prefersMarkdown(request)
          ? publicAnswer(request, "markdown", toMarkdown(doc, here), varyAccept)
          : publicAnswer(request, "html", toPage(<DocPage site={here} doc={doc} />), varyAccept);
      },
      {
        params: Type.Object({ page: Type.String({ description: "Name of the page; with .md for Markdown" }) }),
        ...page("doc", "A page of the documentation", { types: ["text/html", "text/markdown"], misses: true }),
      },
    );
