import { packFiles } from "../action/site.mjs";
import { type Block, type DocsPage, type DocsSite, slugOf } from "./docs-site.ts";

/** The site as the tar.gz of a build: HTML, llms.txt, sitemap.xml, openapi.json and the redirects of its host. The same site makes the same bytes. */
export function packDocsSite(site: DocsSite): { data: Uint8Array; files: number } {
  const { at, pages, replaced, llmsTxt, sitemap, redirects, api, product } = site;
  const urlOf = (path: string) => new URL(path, at).href;
  const titleOf = (path: string) => pages.get(path)?.title ?? path;
  const files: [path: string, content: string][] = [
    ...[...pages].map(([path, page]): [string, string] => [
      `${path.slice(1)}index.html`,
      replaced.get(path) ?? htmlOf(product, page),
    ]),
    ["openapi.json", JSON.stringify(api, null, 2)],
    [
      "llms.txt",
      `# ${product}\n\n> The back office of your product.\n\n## Docs\n\n${llmsTxt.map((path) => `- [${titleOf(path)}](${urlOf(path)})`).join("\n")}\n`,
    ],
    [
      "sitemap.xml",
      `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${sitemap.map((path) => `<url><loc>${urlOf(path)}</loc></url>`).join("\n")}\n</urlset>\n`,
    ],
    ["_redirects", `${redirects.join("\n")}\n`],
  ];
  return { data: packFiles(files), files: files.length };
}

const htmlOf = (product: string, { title, sections }: DocsPage): string =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${Bun.escapeHTML(title)}</title>
<link rel="alternate" type="text/plain" href="/llms.txt" title="llms.txt"></head>
<body><nav><a href="/">${product} documentation</a> <a href="/quickstart/">Quickstart</a> <a href="/api-reference/">API reference</a></nav>
<main><h1>${Bun.escapeHTML(title)}</h1>
${sections.flatMap(linesOf).join("\n")}
</main></body></html>
`;

const linesOf = ({ heading, blocks }: DocsPage["sections"][number]): string[] => [
  ...(heading === "" ? [] : [`<h2 id="${slugOf(heading)}">${Bun.escapeHTML(heading)}</h2>`]),
  ...blocks.map(blockOf),
];

function blockOf(block: Block): string {
  if (block.kind === "code")
    return `<pre><code class="language-${block.language}">${Bun.escapeHTML(block.code)}</code></pre>`;
  const { text, link } = block;
  return `<p>${Bun.escapeHTML(text)}${link ? ` <a href="${link.to}">${Bun.escapeHTML(link.text)}</a>.` : ""}</p>`;
}
