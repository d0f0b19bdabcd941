import { count } from "../grading/text.ts";
import { toXmlText } from "../http/xml.ts";
import type { PagesVisited } from "../reports/pages-visited.ts";
import type { Report } from "../reports/schema.ts";
import { ownMember } from "../schema.ts";
import errors from "./example/errors.md" with { type: "text" };
import home from "./example/index.md" with { type: "text" };
import quickstart from "./example/quickstart.md" with { type: "text" };
import storedReport from "./example/report.json" with { type: "json" };
import share from "./example/share.md" with { type: "text" };
import upload from "./example/upload.md" with { type: "text" };
import type { Site } from "./site.ts";

const pages: Record<string, string> = { "": home, quickstart, upload, share, errors };

export const exampleProviderName = "Acme Files (example)";

/** The prompt of the first run. */
export const examplePrompt = {
  title: "Upload a file",
  text: "Upload a file to a bucket with the Acme Files API and print its URL.",
  endGoal: "A file was uploaded to a bucket, and its URL was printed.",
  // This agent costs nothing.
  agent: "explorer",
};

/** The planted mistakes in the pages, each with the friction that it causes. */
const plantedMistakes = [
  { page: "quickstart", category: "dead_link" },
  { page: "upload", category: "broken_sample" },
  { page: "upload", category: "dead_link" },
  { page: "share", category: "dead_link" },
] as const;

/** The report of the example, created by `bun run docs`. Visitors see it before anyone has an account. */
export const exampleReport = ({ baseUrl }: { baseUrl: string }): { report: Report; pagesVisited: PagesVisited } =>
  JSON.parse(JSON.stringify(storedReport).replaceAll("{base}", baseUrl).replaceAll("{host}", new URL(baseUrl).host));

/** Numbers of mistakes. */
type PlantedMistakes = { planted: number; found: number };

/** "4 planted mistakes, 4 found" */
export const describeMistakes = ({ planted, found }: PlantedMistakes): string =>
  `${count(planted, "planted mistake")}, ${found} found`;

/** How many of the planted mistakes a report found; null for a report of other docs. */
export function countPlantedMistakes(
  { task, frictionPoints }: Report,
  { baseUrl }: { baseUrl: string },
): PlantedMistakes | null {
  if (!task.startUrls.includes(`${baseUrl}/example`)) return null;
  const foundMistakes = plantedMistakes.filter((mistake) =>
    frictionPoints.some(
      ({ url, category }) => url === `${baseUrl}/example/${mistake.page}` && category === mistake.category,
    ),
  );
  return { planted: plantedMistakes.length, found: foundMistakes.length };
}

const titleOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1] ?? "";

/**
 * A page from the docs of a made-up product, as Markdown; null: there is no such page. The first run evaluates these docs. They contain planted
 * mistakes, so that the report has something to fix, and no other mistakes.
 */
export function findExamplePage(slug: string, { baseUrl }: { baseUrl: string }): string | null {
  const text = ownMember(pages, slug);
  if (text === undefined) return null;
  const relativeLink = /\]\((?=[a-z])/g;
  return text
    .replace("\n\n", "\n\n> For agents: [llms.txt](llms.txt) lists all pages.\n\n")
    .replaceAll(relativeLink, `](${baseUrl}/example/`);
}

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
${Bun.markdown.html(text, { noHtmlBlocks: true, noHtmlSpans: true, headings: { ids: true } })}
</main>
<nav><a href="${base}/example">Acme Files</a></nav>
<footer><small>Example docs of a made-up product, with mistakes for evald to find.</small></footer>
</body>
</html>
`;
}

/** The list of pages for AI agents. */
export const exampleLlmsTxt = ({ baseUrl }: { baseUrl: string }): string => `# Acme Files

> Store files and share them over an HTTP API.

## Docs

${Object.entries(pages)
  .filter(([slug]) => slug !== "")
  .map(([slug, text]) => `- [${titleOf(text)}](${baseUrl}/example/${slug})`)
  .join("\n")}
`;
