import { readFileSync } from "node:fs";
import { lazy } from "../once.ts";
import codingAgents from "./docs/agents.md" with { type: "file" };
import architecture from "./docs/architecture.md" with { type: "file" };
import auditLog from "./docs/audit.md" with { type: "file" };
import benchmarks from "./docs/benchmarks.md" with { type: "file" };
import calibration from "./docs/calibration.md" with { type: "file" };
import ci from "./docs/ci.md" with { type: "file" };
import cli from "./docs/cli.md" with { type: "file" };
import configuration from "./docs/configuration.md" with { type: "file" };
import doctor from "./docs/doctor.md" with { type: "file" };
import experiments from "./docs/experiments.md" with { type: "file" };
import explorer from "./docs/explorer.md" with { type: "file" };
import exports from "./docs/exports.md" with { type: "file" };
import extending from "./docs/extending.md" with { type: "file" };
import failures from "./docs/failures.md" with { type: "file" };
import field from "./docs/field.md" with { type: "file" };
import gates from "./docs/gates.md" with { type: "file" };
import glossary from "./docs/glossary.md" with { type: "file" };
import growing from "./docs/growing.md" with { type: "file" };
import guarantees from "./docs/guarantees.md" with { type: "file" };
import history from "./docs/history.md" with { type: "file" };
import install from "./docs/install.md" with { type: "file" };
import keys from "./docs/keys.md" with { type: "file" };
import mcp from "./docs/mcp.md" with { type: "file" };
import models from "./docs/models.md" with { type: "file" };
import operations from "./docs/operations.md" with { type: "file" };
import people from "./docs/people.md" with { type: "file" };
import prompts from "./docs/prompts.md" with { type: "file" };
import proposals from "./docs/proposals.md" with { type: "file" };
import regrading from "./docs/regrading.md" with { type: "file" };
import reports from "./docs/reports.md" with { type: "file" };
import rest from "./docs/rest.md" with { type: "file" };
import runs from "./docs/runs.md" with { type: "file" };
import schedules from "./docs/schedules.md" with { type: "file" };
import scoring from "./docs/scoring.md" with { type: "file" };
import spending from "./docs/spending.md" with { type: "file" };
import start from "./docs/start.md" with { type: "file" };
import suites from "./docs/suites.md" with { type: "file" };
import troubleshooting from "./docs/troubleshooting.md" with { type: "file" };
import webhooks from "./docs/webhooks.md" with { type: "file" };
import workers from "./docs/workers.md" with { type: "file" };
import type { Site } from "./site.ts";

/** A page of the documentation. The title is its first heading. The description is the quotation after that heading. */
export type Doc = { slug: string; section: string; title: string; description: string; body: string };

/**
 * All pages in reading order. Navigation, `/llms.txt`, the sitemap and the tests use this list. The pages are read from files. As text in the code,
 * each page would be in the executable and in memory twice, as a constant and in the bytecode.
 */
export const allDocs = lazy((): Doc[] => [
  toDoc("start", "Get started", start),
  toDoc("glossary", "Get started", glossary),
  toDoc("prompts", "Guides", prompts),
  toDoc("proposals", "Guides", proposals),
  toDoc("schedules", "Guides", schedules),
  toDoc("runs", "Guides", runs),
  toDoc("failures", "Guides", failures),
  toDoc("reports", "Guides", reports),
  toDoc("gates", "Guides", gates),
  toDoc("ci", "Guides", ci),
  toDoc("history", "Guides", history),
  toDoc("field", "Guides", field),
  toDoc("suites", "Guides", suites),
  toDoc("experiments", "Guides", experiments),
  toDoc("calibration", "Guides", calibration),
  toDoc("spending", "Guides", spending),
  toDoc("regrading", "Guides", regrading),
  toDoc("exports", "Guides", exports),
  toDoc("webhooks", "Guides", webhooks),
  toDoc("mcp", "Guides", mcp),
  toDoc("rest", "Reference", rest),
  toDoc("cli", "Reference", cli),
  toDoc("keys", "Reference", keys),
  toDoc("explorer", "Reference", explorer),
  toDoc("scoring", "Reference", scoring),
  toDoc("install", "Run evald", install),
  toDoc("operations", "Run evald", operations),
  toDoc("doctor", "Run evald", doctor),
  toDoc("workers", "Run evald", workers),
  toDoc("growing", "Run evald", growing),
  toDoc("configuration", "Run evald", configuration),
  toDoc("people", "Run evald", people),
  toDoc("audit", "Run evald", auditLog),
  toDoc("models", "Run evald", models),
  toDoc("agents", "Run evald", codingAgents),
  toDoc("troubleshooting", "Run evald", troubleshooting),
  toDoc("architecture", "Background", architecture),
  toDoc("extending", "Background", extending),
  toDoc("guarantees", "Background", guarantees),
  toDoc("benchmarks", "Background", benchmarks),
]);

/** The page of the documentation with a slug. */
export const findDoc = (slug: string): Doc | undefined => allDocs().find((doc) => doc.slug === slug);

/** The path of a page of the documentation, without the base path. */
export const toDocPath = (slug: string): string => `/docs/${slug}`;

function toDoc(slug: string, section: string, file: string): Doc {
  const text = readFileSync(file, "utf8");
  const [, title, description, body] = /^# (.+)\n\n> (.+)\n\n([\s\S]+)$/.exec(text) ?? [];
  if (!title || !description || !body) throw new Error(`${slug}.md must start with a heading and a quotation.`);
  return { slug, section, title, description, body };
}

/** A page as Markdown. All links are absolute. Links to other pages lead to their Markdown version. */
export function toMarkdown({ title, description, body }: Doc, site: Site): string {
  return `# ${title}

> ${description}

${indexHint(site)}

${adaptToSite(body, site, (slug) => `${site.baseUrl}${toDocPath(slug)}.md`)}`;
}

/** The text of a page as HTML, without its heading and description. Raw HTML in the text is escaped. */
export function toHtml({ body }: Doc, site: Site): string {
  const html = Bun.markdown.html(
    adaptToSite(body, site, (slug) => site.base + toDocPath(slug)),
    { noHtmlBlocks: true, noHtmlSpans: true, headings: { ids: true } },
  );
  // Makes wide blocks scrollable, also with the keyboard.
  return html
    .replaceAll("<table>", '<table tabindex="0">')
    .replaceAll("<pre>", '<div class="sample"><pre tabindex="0">')
    .replaceAll("</pre>", `</pre>${copyButton}</div>`);
}

/** A button that copies the sample before it. */
const copyButton = '<button type="button" class="only-live" data-copy="">Copy</button>';

/** The sections of a page whose heading starts with `headingStart`. `title`: the rest of the heading. `html`: the text of the section. */
export function sectionsOf(doc: Doc, site: Site, headingStart: string): { title: string; html: string }[] {
  return doc.body
    .split(/^## /m)
    .filter((section) => section.startsWith(headingStart))
    .map((section) => {
      const end = section.indexOf("\n");
      return {
        title: section.slice(headingStart.length, end).trim(),
        html: toHtml({ ...doc, body: section.slice(end) }, site),
      };
    });
}

/** The index of all pages as Markdown. */
export function indexMarkdown(site: Site): string {
  return `# Documentation

> All pages of the documentation.

${indexHint(site)}

${listDocs(site)}
`;
}

/** All pages as Markdown: a list with links for each section. */
export function listDocs(site: Site): string {
  const lists = [...Map.groupBy(allDocs(), ({ section }) => section)].map(([section, pages]) => {
    const items = pages.map(
      ({ slug, title, description }) => `- [${title}](${site.baseUrl}${toDocPath(slug)}.md): ${description}`,
    );
    return `## ${section}\n\n${items.join("\n")}`;
  });
  return lists.join("\n\n");
}

const indexHint = ({ baseUrl }: Site) => `For agents: [${baseUrl}/llms.txt](${baseUrl}/llms.txt) lists every page.`;

/** The URL of a service with default settings. The source of every page uses it, so that the source is readable in the repository. */
const defaultUrl = "http://localhost:3000";

/** The source of a page adapted to this service: with the URL of the service, without comments, and with links to other pages made by `link`. */
function adaptToSite(body: string, site: Site, link: (slug: string) => string): string {
  return body
    .replaceAll(defaultUrl, site.baseUrl)
    .replace(/^<!--.*-->\n/gm, "")
    .replace(/\]\(([a-z]+)\.md(#[^)\s]*)?\)/g, (_, slug: string, hash = "") => `](${link(slug)}${hash})`);
}
