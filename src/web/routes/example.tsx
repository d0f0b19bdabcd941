import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { notFound } from "../../errors.ts";
import { prefersMarkdown, publicAnswer, varyAccept } from "../answer.ts";
import { exampleLlmsTxt, findExamplePage, toExampleHtml } from "../example.ts";
import { errorAnswer, type PageRequests } from "../page-requests.tsx";

/** Nobody should find the docs of a made-up product in a search engine. */
const unlisted = { "x-robots-tag": "noindex, nofollow" };
/** Public example docs, which the first run evaluates. */
export const examplePages = ({ site }: PageRequests) => {
  function show(request: Request, slug: string): Response {
    const here = site();
    if (slug === "llms.txt") return publicAnswer(request, "text", exampleLlmsTxt(here), unlisted);
    const name = slug.replace(/\.md$/, "");
    const text = findExamplePage(name === "index" ? "" : name, here);
    if (text === null) return errorAnswer(here, request, notFound("The example docs have no such page."));
    const headers = { ...unlisted, ...varyAccept };
    return slug !== name || prefersMarkdown(request)
      ? publicAnswer(request, "markdown", text, headers)
      : publicAnswer(request, "html", toExampleHtml(text, here), headers);
  }

  return new Elysia({ name: "example pages" })
    .get("/example", ({ request }) => show(request, ""))
    .get("/example.md", ({ request }) => show(request, "index.md"))
    .get("/example/:page", ({ request, params }) => show(request, params.page), {
      params: Type.Object({ page: Type.String({ description: "Name of the page" }) }),
    });
};
