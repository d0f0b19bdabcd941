import { clock } from "./clock.ts";
import type { DocsSite } from "./docs-site.ts";
import { pathOf, renderPage } from "./markup.ts";

/** Serves a generated site on a free loopback port. */
export function serveDocs(site: DocsSite): { url: string; start: string; stop(): void } {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    fetch: (request) => answerFrom(site, request),
  });
  const url = `http://127.0.0.1:${server.port}`;
  return { url, start: `${url}${pathOf(site, "index")}`, stop: () => void server.stop(true) };
}

/** The response of a generated site to a request. */
export async function answerFrom(site: DocsSite, request: Request): Promise<Response> {
  const { pathname, origin } = new URL(request.url);
  const ids = [...site.pages.keys(), ...site.answers.keys()];
  const id = ids.find((each) => [pathname, `${pathname}/`].includes(pathOf(site, each)));
  const given = id === undefined ? undefined : site.answers.get(id);
  if (given) {
    if (given.delayMs) await clock.sleep(given.delayMs);
    const page = site.pages.get(id!);
    const body = given.body || !page ? given.body : renderPage(site, page).body;
    return answer(given.status, given.type, body, given.headers);
  }
  const page = id === undefined ? undefined : site.pages.get(id);
  if (page) {
    const { type, body } = renderPage(site, page);
    return answer(200, type, body);
  }
  if (pathname === "/main.js") return answer(200, "text/javascript", "");
  if (pathname === "/openapi.json") return answer(200, "application/json", JSON.stringify(site.api, null, 2));
  if (pathname === "/llms.txt" && site.llmsTxt) return answer(200, "text/plain; charset=utf-8", llmsTxt(site, origin));
  if (pathname === "/sitemap.xml" && site.sitemap) return answer(200, "application/xml", sitemap(site, origin));
  return answer(404, "text/html; charset=utf-8", "<!doctype html><title>Not found</title><h1>Not found</h1>");
}

const answer = (status: number, type: string, body: string, headers: Record<string, string> = {}) =>
  new Response(body, { status, headers: { "content-type": type, "cache-control": "max-age=300", ...headers } });

const llmsTxt = (site: DocsSite, origin: string) =>
  `# ${site.product}\n\n> The back office of your product.\n\n## Docs\n\n${site
    .llmsTxt!.map((id) => `- [${site.pages.get(id)?.title ?? id}](${origin}${pathOf(site, id)})`)
    .join("\n")}\n`;

const sitemap = (site: DocsSite, origin: string) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${site
    .sitemap!.map((id) => `<url><loc>${origin}${pathOf(site, id)}</loc></url>`)
    .join("\n")}\n</urlset>\n`;
