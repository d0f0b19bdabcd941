import type { ComponentChildren } from "preact";
import { Layout } from "../components/layout.tsx";
import { allDocs, type Doc, toDocPath, toHtml } from "../docs.ts";
import type { SearchHit } from "../docs-search.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

/** The input of documentation pages. With a viewer, the pages have the menu of the viewer's organization. */
export type DocsProps = { site: Site; viewer?: Viewer };

type NavProps = DocsProps & { current: string | null; words?: string };

/** The sidebar of the documentation. `current`: slug of the current page. `words`: the search text. */
export const DocsNav = ({ site, viewer, current, words = "" }: NavProps) => (
  <nav class="side" aria-label="Documentation">
    {viewer && (
      <p class="back">
        <a href={`${site.base}/`}>← Back to {viewer.orgName}</a>
      </p>
    )}
    <Search {...{ site, words }} />
    {[...Map.groupBy(allDocs(), ({ section }) => section)].map(([section, pages]) => (
      <section key={section}>
        <h2>{section}</h2>
        <ul>
          {pages.map(({ slug, title }) => (
            <li key={slug}>
              <a href={site.base + toDocPath(slug)} aria-current={slug === current ? "page" : undefined}>
                {title}
              </a>
            </li>
          ))}
          {section === "Reference" && (
            <li>
              <a href={`${site.base}/docs/api`} aria-current={current === "api" ? "page" : undefined}>
                API reference
              </a>
            </li>
          )}
        </ul>
      </section>
    ))}
  </nav>
);

/** On narrow screens, the search is shown above the page, because the sidebar comes after the page. */
const Search = ({ site, words = "" }: { site: Site; words?: string }) => (
  <search>
    <form class="find" action={`${site.base}/docs/search`}>
      <input type="search" name="q" value={words} aria-label="Search the docs" placeholder="Search the docs" required />
    </form>
  </search>
);

const ForAgents = ({ site }: { site: Site }) => (
  <p class="hint">
    For agents: <a href={`${site.base}/llms.txt`}>{site.baseUrl}/llms.txt</a> lists every page.
  </p>
);

/** A page of the documentation. Its HTML is rendered from our own Markdown, with raw HTML turned off. */
export function DocPage({ site, viewer, doc }: DocsProps & { doc: Doc }) {
  const path = toDocPath(doc.slug);
  const html = toHtml(doc, site);
  const position = allDocs().indexOf(doc);
  return (
    <Layout
      {...{ site, viewer }}
      path={path}
      title={doc.title}
      description={doc.description}
      isPublic
      markdownPath={`${path}.md`}
      crumbs={[{ name: "Docs", path: "/docs" }, { name: doc.title }]}
      aside={<DocsNav site={site} viewer={viewer} current={doc.slug} />}
    >
      <Search site={site} />
      <article class="prose">
        <h1>{doc.title}</h1>
        <p class="lead">{doc.description}</p>
        <ForAgents site={site} />
        <OnThisPage html={html} />
        <div dangerouslySetInnerHTML={{ __html: html }} />
      </article>
      <nav class="page-turner" aria-label="Next and previous page">
        <NeighborLink site={site} doc={allDocs()[position - 1]} label="Previous" />
        <NeighborLink site={site} doc={allDocs()[position + 1]} label="Next" />
      </nav>
    </Layout>
  );
}

/** The headings come from the renderer, so their IDs and text are already escaped. */
function OnThisPage({ html }: { html: string }) {
  const items = [...html.matchAll(/<h2 id="([^"]+)">(.*?)<\/h2>/g)].map(
    ([, id, text]) => `<li><a href="#${id}">${text}</a></li>`,
  );
  if (items.length < 3) return null;
  return (
    <nav class="contents" aria-label="On this page">
      <ol dangerouslySetInnerHTML={{ __html: items.join("") }} />
    </nav>
  );
}

function NeighborLink({ site, doc, label }: { site: Site; doc: Doc | undefined; label: string }) {
  if (!doc) return <span />;
  return (
    <a href={site.base + toDocPath(doc.slug)}>
      <small>{label}</small>
      {doc.title}
    </a>
  );
}

/** All pages of the documentation, in reading order. */
export function DocsIndexPage({ site, viewer }: DocsProps) {
  return (
    <Layout
      {...{ site, viewer }}
      path="/docs"
      title="Documentation"
      description="All pages of the documentation."
      isPublic
      markdownPath="/docs.md"
      crumbs={[{ name: "Docs" }]}
      aside={<DocsNav site={site} viewer={viewer} current={null} />}
    >
      <Search site={site} />
      <article class="prose">
        <h1>Documentation</h1>
        <p class="lead">All pages of the documentation.</p>
        <ForAgents site={site} />
        {[...Map.groupBy(allDocs(), ({ section }) => section)].map(([section, pages]) => (
          <section key={section}>
            <h2>{section}</h2>
            <ul class="index">
              {pages.map(({ slug, title, description }) => (
                <li key={slug}>
                  <a href={site.base + toDocPath(slug)}>{title}</a>: {description}
                </li>
              ))}
            </ul>
          </section>
        ))}
      </article>
    </Layout>
  );
}

/** Sections of the documentation that match a search. */
export function DocsSearchPage({ site, viewer, words, hits }: DocsProps & { words: string; hits: SearchHit[] }) {
  return (
    <Layout
      {...{ site, viewer }}
      path="/docs/search"
      title={words === "" ? "Search the docs" : `${words} in the docs`}
      crumbs={[{ name: "Docs", path: "/docs" }, { name: "Search" }]}
      aside={<DocsNav site={site} viewer={viewer} current={null} words={words} />}
    >
      <Search {...{ site, words }} />
      <h1>Search the docs</h1>
      {words !== "" && (
        <p role="status" class="muted">
          {hits.length === 0
            ? `No results for “${words}”. Try fewer or different words.`
            : `${hits.length === 1 ? "1 result" : `${hits.length} results`} for “${words}”`}
        </p>
      )}
      <ol class="found">
        {hits.map(({ slug, title, heading, anchor, snippet }) => (
          <li key={`${slug}#${anchor}`}>
            <a href={site.base + toDocPath(slug) + (anchor === null ? "" : `#${anchor}`)}>
              {heading === null ? title : `${title} › ${heading}`}
            </a>
            <p>{highlight(snippet)}</p>
          </li>
        ))}
      </ol>
    </Layout>
  );
}

/** A text in which the searched words are marked. In the snippet, they are between U+0001 and U+0002. */
const highlight = (snippet: string): ComponentChildren[] =>
  snippet.split("\u0001").flatMap((part, i) => {
    const [word = "", rest = ""] = part.split("\u0002");
    return i === 0 ? [part] : [<mark key={String(i)}>{word}</mark>, rest];
  });
