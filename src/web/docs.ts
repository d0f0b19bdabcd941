import { settingTable } from "../config.ts";
import configuration from "./docs/configuration.md" with { type: "text" };
import explorer from "./docs/explorer.md" with { type: "text" };
import exports from "./docs/exports.md" with { type: "text" };
import gates from "./docs/gates.md" with { type: "text" };
import history from "./docs/history.md" with { type: "text" };
import keys from "./docs/keys.md" with { type: "text" };
import mcp from "./docs/mcp.md" with { type: "text" };
import models from "./docs/models.md" with { type: "text" };
import operations from "./docs/operations.md" with { type: "text" };
import people from "./docs/people.md" with { type: "text" };
import prompts from "./docs/prompts.md" with { type: "text" };
import regrading from "./docs/regrading.md" with { type: "text" };
import reports from "./docs/reports.md" with { type: "text" };
import rest from "./docs/rest.md" with { type: "text" };
import runs from "./docs/runs.md" with { type: "text" };
import schedules from "./docs/schedules.md" with { type: "text" };
import scoring from "./docs/scoring.md" with { type: "text" };
import start from "./docs/start.md" with { type: "text" };
import type { Site } from "./site.ts";

/** A page of the documentation: its title is its first heading, its description the quotation after it. */
export type Doc = { slug: string; section: string; title: string; description: string; body: string };

/** In reading order. */
export const docs: Doc[] = [
  toDoc("start", "Using evald", start),
  toDoc("prompts", "Using evald", prompts),
  toDoc("schedules", "Using evald", schedules),
  toDoc("runs", "Using evald", runs),
  toDoc("reports", "Using evald", reports),
  toDoc("gates", "Using evald", gates),
  toDoc("regrading", "Using evald", regrading),
  toDoc("exports", "Using evald", exports),
  toDoc("history", "Using evald", history),
  toDoc("mcp", "Using evald", mcp),
  toDoc("rest", "Reference", rest),
  toDoc("keys", "Reference", keys),
  toDoc("explorer", "Reference", explorer),
  toDoc("scoring", "Reference", scoring),
  toDoc("configuration", "Running evald", configuration),
  toDoc("people", "Running evald", people),
  toDoc("models", "Running evald", models),
  toDoc("operations", "Running evald", operations),
];

export const findDoc = (slug: string): Doc | undefined => docs.find((doc) => doc.slug === slug);

export const toDocPath = (slug: string): string => `/docs/${slug}`;

function toDoc(slug: string, section: string, text: string): Doc {
  const [, title, description, body] = /^# (.+)\n\n> (.+)\n\n([\s\S]+)$/.exec(text) ?? [];
  if (!title || !description || !body) throw new Error(`${slug}.md must begin with a heading and a quotation`);
  return { slug, section, title, description, body };
}

/** A page as Markdown, every link absolute and to the Markdown form of its target. */
export function toMarkdown({ title, description, body }: Doc, site: Site): string {
  const links = (path: string) =>
    site.baseUrl + path.replace(/^(\/docs(?:\/[a-z]+)?)(#.*)?$/, (_, page, hash = "") => `${page}.md${hash}`);
  return `# ${title}

> ${description}

${indexHint(site)}

${filledIn(body, site, links)}`;
}

/** The text of a page as HTML, heading and description left out. Raw HTML in it stays text. */
export function toHtml({ body }: Doc, site: Site): string {
  const html = Bun.markdown.html(
    filledIn(body, site, (path) => site.base + path),
    { noHtmlBlocks: true, noHtmlSpans: true, headings: { ids: true } },
  );
  // What is too wide is scrolled, by keyboard too.
  return html.replaceAll(/<(pre|table)>/g, '<$1 tabindex="0">');
}

/** The sections of a page whose heading begins with some words: the rest of the heading, and their text as HTML. */
export function sectionsOf(doc: Doc, site: Site, words: string): { title: string; html: string }[] {
  return doc.body
    .split(/^## /m)
    .filter((section) => section.startsWith(words))
    .map((section) => {
      const end = section.indexOf("\n");
      return {
        title: section.slice(words.length, end).trim(),
        html: toHtml({ ...doc, body: section.slice(end) }, site),
      };
    });
}

/** The index of all pages as Markdown. */
export function indexMarkdown(site: Site): string {
  const lists = [...Map.groupBy(docs, ({ section }) => section)].map(([section, pages]) => {
    const items = pages.map(({ slug, title, description }) => {
      return `- [${title}](${site.baseUrl}${toDocPath(slug)}.md): ${description}`;
    });
    return `## ${section}\n\n${items.join("\n")}\n`;
  });
  return `# Documentation

> All pages of this documentation, in reading order.

${indexHint(site)}

${lists.join("\n")}`;
}

const indexHint = ({ baseUrl }: Site) => `For agents: [${baseUrl}/llms.txt](${baseUrl}/llms.txt) lists every page.`;

/** `%EVALD_URL%` is where this service is, `%SETTINGS%` the table of its settings; links in the text begin at the base. */
function filledIn(body: string, site: Site, link: (path: string) => string): string {
  return body
    .replaceAll("%EVALD_URL%", site.baseUrl)
    .replace("%SETTINGS%", () => settingsMarkdown())
    .replace(/\]\((\/[^)\s]*)\)/g, (_, path: string) => `](${link(path)})`);
}

function settingsMarkdown(): string {
  const rows = settingTable.map(
    ({ name, default: fallback, means }) =>
      `| \`${name}\` | ${fallback === "" ? "none" : `\`${fallback}\``} | ${means} |`,
  );
  return ["| Setting | Default | Meaning |", "|---|---|---|", ...rows].join("\n");
}
