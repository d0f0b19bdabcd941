import type { DocsPage, DocsSite } from "../truth/docs-site.ts";
import { pathOf } from "../truth/markup.ts";

/** Changes of docs that cost points. Each returns the path of the page that it is about, as a finding names it. */
export const docsChanges = {
  page_removed: (site) => {
    site.pages.delete(site.answer.page);
    return pathOf(site, site.answer.page);
  },
  wall: (site) => {
    const body = "<!doctype html><title>Sign in</title><h1>Sign in</h1><p>Sign in to read this page.</p>";
    site.answers.set(site.answer.page, { status: 401, type: "text/html; charset=utf-8", body });
    return pathOf(site, site.answer.page);
  },
  scripts_only: (site) => {
    const body =
      '<!doctype html><html><head><title>Docs</title><script src="/main.js" defer></script></head><body><div id="root"></div></body></html>';
    site.answers.set(site.answer.page, { status: 200, type: "text/html; charset=utf-8", body });
    return pathOf(site, site.answer.page);
  },
  samples_broken: (site) => {
    for (const id of [site.answer.page, ...site.needs])
      for (const sample of samplesOf(pageOf(site, id))) sample.code = `${sample.code}\n{ ( [ "unclosed`;
    return pathOf(site, site.answer.page);
  },
  endpoint_renamed: (site) => {
    site.api.paths = Object.fromEntries(
      Object.entries(site.api.paths).map(([path, item]) => [path.replace("/v1/", "/v2/"), item]),
    );
    return pathOf(site, site.answer.page);
  },
  links_dead: (site) => {
    const page = pageOf(site, site.answer.page);
    const section = page.sections.find(({ heading }) => heading === site.answer.heading) ?? page.sections[0];
    for (const part of ["limits", "errors", "permissions"])
      section?.blocks.push({
        kind: "text",
        text: ["Read about ", { to: `${page.id}-${part}`, text: part }, " before you start."],
      });
    return pathOf(site, page.id);
  },
  prerequisite_removed: (site) => {
    site.pages.delete("authentication");
    return pathOf(site, "authentication");
  },
  prerequisite_loop: (site) => {
    const path = pathOf(site, "install");
    const headers = { location: path };
    site.answers.set("install", { status: 302, type: "text/html; charset=utf-8", body: "", headers });
    return path;
  },
} satisfies Record<string, (site: DocsSite) => string>;
export type DocsChange = keyof typeof docsChanges;

const pageOf = (site: DocsSite, id: string): DocsPage => {
  const page = site.pages.get(id);
  if (!page) throw new Error(`no page ${id}`);
  return page;
};

const samplesOf = (page: DocsPage) =>
  page.sections.flatMap(({ blocks }) => blocks.flatMap((block) => (block.kind === "code" ? [block] : [])));
