import type { Deps } from "../deps.ts";
import { type Doc, docs, toDocPath } from "./docs.ts";

/** Where the service is: `baseUrl` for texts that leave the browser, `base` (its path: empty or `/evals`) for links in a page. */
export type Site = { baseUrl: string; base: string };

export const toSite = ({ baseUrl, config }: Pick<Deps, "baseUrl" | "config">): Site => ({
  baseUrl: baseUrl(),
  base: config.basePath,
});

export const summary =
  "evald measures how well AI agents get along with a developer tool: its documentation and its product.";

const listed = (site: Site, { slug, title, description }: Doc) =>
  `- [${title}](${site.baseUrl}${toDocPath(slug)}.md): ${description}`;

/** The documentation as a list for agents: llmstxt.org. */
export function llmsTxt(site: Site): string {
  const sections = Map.groupBy(docs, ({ section }) => section);
  const lists = [...sections].map(
    ([section, pages]) => `## ${section}\n\n${pages.map((doc) => listed(site, doc)).join("\n")}`,
  );
  return `# evald

> ${summary}

It is a self-hosted service. A prompt is a task with an end goal; a run sends an agent to do it; a report grades what happened.
Every page is also served as Markdown: its address with .md, or the header Accept: text/markdown.
Every operation and field of the API, as OpenAPI 3.1: ${site.baseUrl}/openapi.json

${lists.join("\n\n")}

## Optional

- [Index of the documentation](${site.baseUrl}/docs.md): all pages with one line each
`;
}

/** Documentation is for everyone, reports are for those who hold a key. */
export const robotsTxt = ({ baseUrl, base }: Site): string => `User-agent: *
Allow: ${base}/
Disallow: ${base}/api/
Disallow: ${base}/reports/
Disallow: ${base}/runs/

Sitemap: ${baseUrl}/sitemap.xml
`;

/** The pages that llms.txt lists as well, by their HTML addresses. */
export function sitemapXml({ baseUrl }: Site): string {
  const paths = ["/docs", ...docs.map(({ slug }) => toDocPath(slug))];
  const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${paths.map((path) => `  <url><loc>${escaped(baseUrl + path)}</loc></url>`).join("\n")}
</urlset>
`;
}
