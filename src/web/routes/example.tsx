import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { notFound } from "../../errors.ts";
import { exampleLlmsTxt, findExamplePage, toExampleHtml } from "../example.ts";
import { errorResponse } from "../page-requests.tsx";
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

/** Public example docs, which the first run evaluates. */
export const examplePages = (ctx: Context) =>
  new Elysia({ name: "example pages" })
    .get("/example", ({ request }) => exampleResponse(ctx, request, ""))
    .get("/example.md", ({ request }) => exampleResponse(ctx, request, "index.md"))
    .get("/example/:page", ({ request, params }) => exampleResponse(ctx, request, params.page));
