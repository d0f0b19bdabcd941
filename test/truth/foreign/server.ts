import { clock } from "../clock.ts";
import { renderPage } from "./render.ts";
import type { ForeignSite } from "./site.ts";

/** Serves a site on a free loopback port. */
export function serveSite(site: ForeignSite): { url: string; stop(): void } {
  const pages = new Map(site.pages.map((page) => [page.path, page]));
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const { pathname, origin } = new URL(request.url);
      const replaced = site.replacements.get(pathname);
      if (replaced?.delayMs) await clock.sleep(replaced.delayMs);
      if (replaced && (replaced.raw ?? replaced.body ?? replaced.status) !== undefined) {
        const { status = 200, type = "text/html; charset=utf-8", headers, raw, body = "" } = replaced;
        return respond(type, raw ?? body, status, headers);
      }
      const markdown = site.markdown?.get(markdownPathOf(request));
      if (markdown !== undefined) return respond("text/markdown; charset=utf-8", markdown);
      const page = pages.get(pathname);
      if (page) {
        const { type, body } = renderPage(site, page);
        return respond(type, body, 200, replaced?.headers);
      }
      return fileOf(site, pathname, origin) ?? respond("text/html", notFound, 404);
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) };
}

const notFound = "<!doctype html><title>Not found</title><h1>Not found</h1>";

const respond = (type: string, body: string | Uint8Array, status = 200, headers: Record<string, string> = {}) =>
  new Response(body as BodyInit, {
    status,
    headers: { "content-type": type, "cache-control": "max-age=60", ...headers },
  });

/** The path of the page of which a request wants the Markdown version. */
function markdownPathOf(request: Request): string {
  const { pathname } = new URL(request.url);
  if (pathname.endsWith(".md")) return pathname.slice(0, -".md".length);
  const accept = request.headers.get("accept") ?? "";
  const prefersMarkdown = accept.includes("text/markdown") && !/text\/html.*text\/markdown/.test(accept);
  return prefersMarkdown ? pathname : "";
}

/** The files next to the pages. */
function fileOf(site: ForeignSite, pathname: string, origin: string): Response | null {
  const { api, robotsTxt, llmsTxt, sitemap } = site;
  if (pathname === "/openapi.json" && api) return respond("application/json", JSON.stringify(api, null, 1));
  if (pathname === "/robots.txt" && robotsTxt) return respond("text/plain", robotsTxt);
  if (pathname === "/llms.txt" && llmsTxt) {
    const titles = new Map(site.pages.map(({ path, title }) => [path, title]));
    const links = llmsTxt.map((path) => `- [${titles.get(path) ?? path}](${origin}${path})`);
    const intro = `# ${site.product.name}\n\n> Runs the daily work of your site.\n\n## Docs\n\n`;
    return respond("text/plain; charset=utf-8", `${intro}${links.join("\n")}\n`);
  }
  if (pathname === "/sitemap.xml" && sitemap) {
    const urls = sitemap.map((path) => `<url><loc>${origin}${path}</loc></url>`).join("");
    const schema = "http://www.sitemaps.org/schemas/sitemap/0.9";
    return respond(
      "application/xml",
      `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="${schema}">${urls}</urlset>`,
    );
  }
  if (pathname.endsWith(".js")) return respond("text/javascript", "");
  return pathname.endsWith(".png") ? respond("image/png", "") : null;
}
