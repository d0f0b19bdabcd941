import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { css, font, js } from "../assets.ts";
import { llmsTxt, robotsTxt, sitemapXml } from "../crawler-files.ts";
import { toOwnPath } from "../credential.ts";
import { submitPublic } from "../page-requests.tsx";
import { seeOther, withCookies } from "../page-responses.ts";
import { assetResponse, fontResponse, publicResponse } from "../responses.ts";
import { themeCookie, toSite } from "../site.ts";

/** Public routes: stylesheet, script, font, color scheme, and the files for crawlers. */
export const publicPages = (ctx: Context) =>
  new Elysia({ name: "public pages" })
    .get("/style.css", ({ request }) => assetResponse(request, "css", css))
    .get("/client.js", ({ request }) => assetResponse(request, "js", js))
    .get("/inter.woff2", () => fontResponse(font))
    .post("/theme", ({ request }) =>
      submitPublic(ctx, request, (_, form, { base }) =>
        withCookies(seeOther(ctx, pathBefore(request, form.get("from"), base)), [themeCookie(base, form.get("theme"))]),
      ),
    )
    .get("/llms.txt", ({ request }) => publicResponse(request, "text", llmsTxt(toSite(ctx))))
    .get("/robots.txt", ({ request }) => publicResponse(request, "text", robotsTxt(toSite(ctx))))
    .get("/sitemap.xml", ({ request }) => publicResponse(request, "xml", sitemapXml(toSite(ctx))));

/** The page that a form was sent from, with its query. `from`: the path of the page, which the form contains. */
function pathBefore(request: Request, from: string | null, base: string): string {
  const fullPath = toOwnPath(from);
  // Error pages put the path of the request into the form. This path includes the base path.
  const path = base !== "" && fullPath.startsWith(`${base}/`) ? fullPath.slice(base.length) : fullPath;
  const before = URL.parse(request.headers.get("referer") ?? "");
  return before?.pathname === base + path ? path + before.search : path;
}
