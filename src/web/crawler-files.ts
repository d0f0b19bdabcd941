import { toXmlText } from "../http/xml.ts";
import { allDocs, listDocs, toDocPath } from "./docs.ts";
import type { Site } from "./site.ts";

export const summary = "evald measures how well AI agents can use a developer tool: its documentation and its product.";

/** The list of pages for AI agents, in the format of llmstxt.org. */
export const llmsTxt = (site: Site): string => `# evald

> ${summary}

It is a self-hosted service. A prompt is a task with an end goal, a run sends an agent to do it, and a report grades the session.
Every page is available as Markdown: add .md to its URL, or send the header Accept: text/markdown.
The OpenAPI 3.1 description of the API: ${site.baseUrl}/openapi.json

${listDocs(site)}

## Optional

- [Documentation index](${site.baseUrl}/docs.md): All pages with a description.
`;

/**
 * Crawlers may read the documentation, but not the API, runs and reports. Only evald itself may read the example docs, because nobody should find the
 * docs of a made-up product in a search engine.
 */
export const robotsTxt = ({ baseUrl, base }: Site): string => `User-agent: *
Allow: ${base}/
Disallow: ${base}/api/
Disallow: ${base}/example
Disallow: ${base}/reports/
Disallow: ${base}/runs/

User-agent: evald
Disallow:

Sitemap: ${baseUrl}/sitemap.xml
`;

/** The same pages as in llms.txt, but with their HTML addresses. */
export function sitemapXml({ baseUrl }: Site): string {
  const paths = ["/docs", ...allDocs().map(({ slug }) => toDocPath(slug))];
  return `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${paths.map((path) => `  <url><loc>${toXmlText(baseUrl + path)}</loc></url>`).join("\n")}
</urlset>
`;
}
