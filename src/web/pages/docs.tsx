import { Layout } from "../components/layout.tsx";
import { type Doc, docs, toDocPath, toHtml } from "../docs.ts";
import type { Site } from "../site.ts";

/** Documentation sidebar. `current`: slug of the page shown. */
export const DocsNav = ({ site, current }: { site: Site; current: string | null }) => (
  <nav class="side" aria-label="Documentation">
    {[...Map.groupBy(docs, ({ section }) => section)].map(([section, pages]) => (
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

const ForAgents = ({ site }: { site: Site }) => (
  <p class="hint">
    For agents: <a href={`${site.base}/llms.txt`}>{site.baseUrl}/llms.txt</a> lists every page.
  </p>
);

/** A page of the documentation. Its HTML is our own Markdown, rendered with raw HTML turned off. */
export function DocPage({ site, doc }: { site: Site; doc: Doc }) {
  const path = toDocPath(doc.slug);
  const html = toHtml(doc, site);
  const position = docs.indexOf(doc);
  return (
    <Layout
      site={site}
      path={path}
      title={doc.title}
      description={doc.description}
      isPublic
      markdownPath={`${path}.md`}
      crumbs={[{ name: "Docs", path: "/docs" }, { name: doc.title }]}
      aside={<DocsNav site={site} current={doc.slug} />}
    >
      <article class="prose">
        <h1>{doc.title}</h1>
        <p class="lead">{doc.description}</p>
        <ForAgents site={site} />
        <OnThisPage html={html} />
        <div dangerouslySetInnerHTML={{ __html: html }} />
      </article>
      <nav class="turn" aria-label="Next and previous page">
        <Turn site={site} doc={docs[position - 1]} label="Previous" />
        <Turn site={site} doc={docs[position + 1]} label="Next" />
      </nav>
    </Layout>
  );
}

/** Headings come from the renderer, whose IDs and text are already escaped. */
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

function Turn({ site, doc, label }: { site: Site; doc: Doc | undefined; label: string }) {
  if (!doc) return <span />;
  return (
    <a href={site.base + toDocPath(doc.slug)}>
      <small>{label}</small>
      {doc.title}
    </a>
  );
}

/** All pages of the documentation, in reading order. */
export function DocsIndexPage({ site }: { site: Site }) {
  return (
    <Layout
      site={site}
      path="/docs"
      title="Documentation"
      description="All pages of the documentation."
      isPublic
      markdownPath="/docs.md"
      crumbs={[{ name: "Docs" }]}
      aside={<DocsNav site={site} current={null} />}
    >
      <article class="prose">
        <h1>Documentation</h1>
        <p class="lead">All pages of the documentation.</p>
        <ForAgents site={site} />
        {[...Map.groupBy(docs, ({ section }) => section)].map(([section, pages]) => (
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
