import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { notFound } from "../../errors.ts";
import { exampleLlmsTxt, exampleReport, findExamplePage, toExampleHtml } from "../example.ts";
import { errorResponse, showPublic } from "../page-requests.tsx";
import { ReportPage } from "../pages/report.tsx";
import { prefersMarkdown, publicResponse, varyAccept } from "../responses.ts";
import { toSite } from "../site.ts";

function exampleResponse(ctx: Context, request: Request, slug: string): Response {
  const site = toSite(ctx);
  if (slug === "llms.txt") return publicResponse(request, "text", exampleLlmsTxt(site));
  const name = slug.replace(/\.md$/, "");
  const text = findExamplePage(name === "index" ? "" : name, site);
  if (text === null) return errorResponse(ctx, request, notFound("The example docs have no such page."));
  return slug !== name || prefersMarkdown(request)
    ? publicResponse(request, "markdown", text, varyAccept)
    : publicResponse(request, "html", toExampleHtml(text, site), varyAccept);
}

/** The public example docs, which the first run evaluates, and the report of that run. */
export const examplePages = (ctx: Context) =>
  new Elysia({ name: "example pages" })
    .get("/example", ({ request }) => exampleResponse(ctx, request, ""))
    .get("/example.md", ({ request }) => exampleResponse(ctx, request, "index.md"))
    .get("/example-report", ({ request }) =>
      showPublic(ctx, request, (_, site) => (
        <ReportPage
          {...{ site, ...exampleReport(site), path: "/example-report", result: null, latest: null }}
          extras={{ session: null, notice: null, shares: [] }}
        />
      )),
    )
    .get("/example/:page", ({ request, params }) => exampleResponse(ctx, request, params.page));
