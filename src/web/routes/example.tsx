import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { notFound } from "../../errors.ts";
import { prefersMarkdown, publicAnswer, varyAccept } from "../answer.ts";
import { exampleLlmsTxt, findExamplePage, toExampleHtml } from "../example.ts";
import { errorAnswer } from "../page-requests.tsx";
import { toSite } from "../site.ts";

/** Nobody should find the docs of a made-up product in a search engine. */
const noIndexHeaders = { "x-robots-tag": "noindex, nofollow" };

function exampleAnswer(ctx: Context, request: Request, slug: string): Response {
  const site = toSite(ctx);
  if (slug === "llms.txt") return publicAnswer(request, "text", exampleLlmsTxt(site), noIndexHeaders);
  const name = slug.replace(/\.md$/, "");
  const text = findExamplePage(name === "index" ? "" : name, site);
  if (text === null) return errorAnswer(ctx, request, notFound("The example docs have no such page."));
  const headers = { ...noIndexHeaders, ...varyAccept };
  return slug !== name || prefersMarkdown(request)
    ? publicAnswer(request, "markdown", text, headers)
    : publicAnswer(request, "html", toExampleHtml(text, site), headers);
}

/** Public example docs, which the first run evaluates. */
export const examplePages = (ctx: Context) =>
  new Elysia({ name: "example pages" })
    .get("/example", ({ request }) => exampleAnswer(ctx, request, ""))
    .get("/example.md", ({ request }) => exampleAnswer(ctx, request, "index.md"))
    .get("/example/:page", ({ request, params }) => exampleAnswer(ctx, request, params.page));
