import { toXmlText } from "../http/xml.ts";
import type { Report } from "../reports/schema.ts";
import { ownMember } from "../schema.ts";
import errors from "./example/errors.md" with { type: "text" };
import home from "./example/index.md" with { type: "text" };
import quickstart from "./example/quickstart.md" with { type: "text" };
import share from "./example/share.md" with { type: "text" };
import upload from "./example/upload.md" with { type: "text" };
import type { Site } from "./site.ts";

const pages: Record<string, string> = { "": home, quickstart, upload, share, errors };

/** The mistakes in the pages, each with the friction that it causes. */
const plantedMistakes = [
  { page: "quickstart", category: "dead_link" },
  { page: "upload", category: "broken_sample" },
  { page: "upload", category: "dead_link" },
  { page: "share", category: "dead_link" },
] as const;

/** How many mistakes of the example docs a report found; null for a report of other docs. */
export function countPlantedMistakes(
  { task, frictionPoints }: Pick<Report, "task" | "frictionPoints">,
  { baseUrl }: Site,
): { planted: number; found: number } | null {
  if (!task.startUrls.includes(`${baseUrl}/example`)) return null;
  const found = plantedMistakes.filter((mistake) =>
    frictionPoints.some(
      ({ url, category }) => url === `${baseUrl}/example/${mistake.page}` && category === mistake.category,
    ),
  );
  return { planted: plantedMistakes.length, found: found.length };
}

const titleOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1] ?? "";

/**
 * A page of the docs of a made-up product, as Markdown: the first run evaluates them. They have mistakes on purpose, so that
 * its report has something to fix. null: no such page.
 */
export const findExamplePage = (slug: string, { baseUrl }: Site): string | null =>
  ownMember(pages, slug)?.replaceAll(/\]\((?=[a-z])/g, `](${baseUrl}/example/`) ?? null;

/** A page of the example docs as HTML. */
export function toExampleHtml(text: string, { base }: Site): string {
  const title = titleOf(text);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${toXmlText(title)}</title>
<link rel="stylesheet" href="${base}/style.css">
<link rel="icon" href="data:,">
</head>
<body class="example">
<main class="prose">
<p>For agents: <a href="${base}/example/llms.txt">llms.txt</a></p>
${Bun.markdown.html(text, { noHtmlBlocks: true, noHtmlSpans: true, headings: { ids: true } })}
</main>
<nav><a href="${base}/example">Acme Files</a></nav>
<footer><small>Example docs of a made-up product, with mistakes for evald to find.</small></footer>
</body>
</html>
`;
}

/** The list of pages for agents. */
export const exampleLlmsTxt = ({ baseUrl }: Site): string => `# Acme Files

> Store files and share them over an HTTP API.

## Docs

${Object.entries(pages)
  .filter(([slug]) => slug !== "")
  .map(([slug, text]) => `- [${titleOf(text)}](${baseUrl}/example/${slug})`)
  .join("\n")}
`;
