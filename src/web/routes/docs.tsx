import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { VNode } from "preact";
import { notFound } from "../../errors.ts";
import { toEventSchema } from "../../notifications/event-schema.ts";
import { prefersMarkdown, privateAnswer, publicAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { bearsSignIn } from "../credential.ts";
import { docs, findDoc, indexMarkdown, toMarkdown } from "../docs.ts";
import { searchDocs } from "../docs-search.ts";
import { errorAnswer, type PageRequests } from "../page-requests.tsx";
import { DocPage, DocsIndexPage, DocsSearchPage, type Reader } from "../pages/docs.tsx";
import { type OpenApiDocument, ReferencePage } from "../pages/reference.tsx";

// Pages of someone who is signed in have the menu of their organization, and all follow the color scheme.
const vary = { vary: "Accept, Cookie" };

/** The documentation. Pages are public and cacheable, except for people who are signed in. */
export const docPages = ({ site, seeOther, showPublic }: PageRequests, openApi: () => OpenApiDocument) => {
  function show(request: Request, make: (reader: Reader) => VNode<Partial<Reader>>): Response | Promise<Response> {
    const asPublic = () => publicAnswer(request, "html", toPage(make({ site: site(request) })), vary);
    if (!bearsSignIn(request)) return asPublic();
    return showPublic(request, ({ viewer }, here) =>
      viewer ? privateAnswer("html", toPage(make({ site: here, viewer }))) : asPublic(),
    );
  }

  return new Elysia({ name: "documentation pages" })
    .get("/docs", ({ request }) =>
      prefersMarkdown(request)
        ? publicAnswer(request, "markdown", indexMarkdown(site()), vary)
        : show(request, (reader) => <DocsIndexPage {...reader} />),
    )
    .get("/docs.md", ({ request }) => publicAnswer(request, "markdown", indexMarkdown(site())))
    .get(
      "/docs/search",
      ({ request, query: { q = "" } }) => {
        const words = q.trim().slice(0, 200);
        return show(request, (reader) => (
          <DocsSearchPage {...reader} words={words} found={searchDocs(words, reader.site)} />
        ));
      },
      {
        query: Type.Object({ q: Type.Optional(Type.String({ description: "Words to search for" })) }),
      },
    )
    .get("/docs/api", ({ request }) => show(request, (reader) => <ReferencePage {...reader} document={openApi()} />))
    .get("/docs/webhooks.json", ({ request }) => {
      const schema = toEventSchema(`${site().baseUrl}/docs/webhooks.json`);
      return publicAnswer(request, "json", JSON.stringify(schema, null, 2));
    })
    .get("/swagger", () => seeOther("/docs/api"))
    .get(
      "/docs/:page",
      ({ request, params }) => {
        const here = site(request);
        const slug = params.page.replace(/\.md$/, "");
        const doc = findDoc(slug);
        if (!doc)
          return errorAnswer(
            here,
            request,
            notFound(`The page was not found. The available pages are ${docs.map((each) => each.slug).join(", ")}.`),
          );
        if (slug !== params.page) return publicAnswer(request, "markdown", toMarkdown(doc, here));
        return prefersMarkdown(request)
          ? publicAnswer(request, "markdown", toMarkdown(doc, here), vary)
          : show(request, (reader) => <DocPage {...reader} doc={doc} />);
      },
      {
        params: Type.Object({ page: Type.String({ description: "Name of the page; append .md for Markdown" }) }),
      },
    );
};
