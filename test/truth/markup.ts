import type { Block, DocsPage, DocsSite, Inline } from "./docs-site.ts";

const escapeHtml = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const anchor = (heading: string) => heading.toLowerCase().replace(/[^a-z0-9]+/g, "-");

/** The path under which a site serves a page. */
export function pathOf({ markup }: Pick<DocsSite, "markup">, id: string): string {
  const [page = "", fragment] = id.split("#");
  const hash = fragment === undefined ? "" : `#${fragment}`;
  if (/\.\w+$/.test(page)) return `/${page}${hash}`;
  if (markup === "docusaurus") return `${page === "index" ? "/docs/" : `/docs/${page}`}${hash}`;
  if (markup === "mkdocs") return `${page === "index" ? "/guide/" : `/guide/${page}/`}${hash}`;
  if (markup === "jekyll") return `/${page === "index" ? "" : `docs/v2/${page}`}${hash}`;
  if (markup === "markdown") return `${page === "index" ? "/docs/index.md" : `/docs/${page}.md`}${hash}`;
  return `${page === "index" ? "/" : `/${page}.html`}${hash}`;
}

/** A page in the markup of its site, with its content type. */
export function renderPage(site: DocsSite, page: DocsPage): { type: string; body: string } {
  if (site.markup === "markdown") return { type: "text/markdown; charset=utf-8", body: toMarkdown(site, page) };
  return { type: "text/html; charset=utf-8", body: toHtml(site, page) };
}

const plainText = (parts: Inline[]) => parts.map((part) => (typeof part === "string" ? part : part.text)).join("");

function toMarkdown(site: DocsSite, page: DocsPage): string {
  const inline = (parts: Inline[]) =>
    parts.map((part) => (typeof part === "string" ? part : `[${part.text}](${pathOf(site, part.to)})`)).join("");
  const block = (one: Block): string => {
    if (one.kind === "text") return inline(one.text);
    if (one.kind === "code") return `\`\`\`${one.language}\n${one.code}\n\`\`\``;
    return one.items.map((item) => `- ${inline(item)}`).join("\n");
  };
  const sections = page.sections.map(({ heading, blocks }) =>
    [...(heading ? [`## ${heading}`] : []), ...blocks.map(block)].join("\n\n"),
  );
  return `# ${page.title}\n\n${sections.join("\n\n")}\n`;
}

/** A link as its markup writes it: relative to the page, or from the root. */
function hrefOf(site: DocsSite, page: DocsPage, to: string): string {
  const path = pathOf(site, to);
  const isInGuide = path.startsWith("/guide/");
  if (site.markup === "mkdocs" && isInGuide)
    return `${page.id === "index" ? "./" : "../"}${path.replace(/^\/guide\//, "")}`;
  if (site.markup === "vitepress") return `.${path}`;
  return site.markup === "asciidoctor" ? path.slice(1) || "./" : path;
}

/** A code block of a highlighter that puts an element around each token or line. */
function toCode(site: DocsSite, language: string, text: string): string | null {
  const lines = text.split("\n").map(escapeHtml);
  if (site.markup === "mkdocs")
    return `<div class="language-${language} highlight"><pre id="__code_0"><span></span><button class="md-clipboard">Copy</button><code>${lines
      .map(
        (line, at) =>
          `<span id="__span-0-${at}"><a id="__codelineno-0-${at}" href="#__codelineno-0-${at}"></a>${line}\n</span>`,
      )
      .join("")}</code></pre></div>`;
  if (site.markup === "vitepress")
    return `<div class="language-${language} vp-adaptive-theme"><button title="Copy Code" class="copy"></button><span class="lang">${language}</span><pre class="shiki shiki-themes github-light github-dark vp-code" tabindex="0"><code>${lines
      .map(
        (line) =>
          `<span class="line">${line.replace(/^(\s*)(\w+)/, '$1<span style="--shiki-light:#D73A49">$2</span>')}</span>`,
      )
      .join("\n")}</code></pre></div>`;
  if (site.markup === "jekyll")
    return `<div class="language-${language} highlighter-rouge"><div class="highlight"><pre class="highlight"><code>${lines.join("\n").replace(/&quot;/g, '<span class="s2">&quot;</span>')}\n</code></pre></div></div>`;
  if (site.markup === "asciidoctor")
    return `<div class="listingblock"><div class="title">Example</div><div class="content"><pre class="CodeRay highlight"><code data-lang="${language}">${lines.join("\n")}</code></pre></div></div>`;
  return null;
}

function toHtml(site: DocsSite, page: DocsPage): string {
  const link = (to: string, text: string) => `<a href="${escapeHtml(hrefOf(site, page, to))}">${escapeHtml(text)}</a>`;
  const inline = (parts: Inline[]) =>
    parts.map((part) => (typeof part === "string" ? escapeHtml(part) : link(part.to, part.text))).join("");
  const code = (language: string, text: string) => {
    if (site.markup === "sphinx")
      return `<div class="highlight-${language} notranslate"><div class="highlight"><pre><span></span>${escapeHtml(text)}\n</pre></div></div>`;
    if (site.markup === "docusaurus")
      return `<div class="language-${language} codeBlockContainer"><div><pre tabindex="0" class="prism-code language-${language}"><code>${text
        .split("\n")
        .map((line) => `<span class="token-line">${escapeHtml(line)}<br></span>`)
        .join("")}</code></pre><button type="button" aria-label="Copy code">Copy</button></div></div>`;
    return toCode(site, language, text) ?? `<pre><code class="language-${language}">${escapeHtml(text)}</code></pre>`;
  };
  const block = (one: Block): string => {
    if (one.kind === "text") return `<p>${inline(one.text)}</p>`;
    if (one.kind === "code") return code(one.language, one.code);
    return `<ul>${one.items.map((item) => `<li>${inline(item)}</li>`).join("\n")}</ul>`;
  };
  const section = ({ heading, blocks }: DocsPage["sections"][number]) => {
    const inner = blocks.map(block).join("\n");
    if (!heading) return inner;
    const id = anchor(heading);
    if (site.markup === "asciidoctor")
      return `<div class="sect1"><h2 id="_${id}"><a class="anchor" href="#_${id}"></a>${escapeHtml(heading)}</h2><div class="sectionbody">${inner}</div></div>`;
    if (site.markup === "vitepress")
      return `<h2 id="${id}" tabindex="-1">${escapeHtml(heading)} <a class="header-anchor" href="#${id}" aria-label="Permalink to “${escapeHtml(heading)}”">​</a></h2>\n${inner}`;
    if (site.markup === "sphinx")
      return `<section id="${id}"><h2>${escapeHtml(heading)}<a class="headerlink" href="#${id}" title="Permalink to this heading">¶</a></h2>\n${inner}</section>`;
    return `<h2 id="${id}">${escapeHtml(heading)}</h2>\n${inner}`;
  };
  const body = `<h1 id="top">${escapeHtml(page.title)}</h1>\n${page.sections.map(section).join("\n")}`;
  const head = `<meta charset="utf-8"><title>${escapeHtml(page.title)}${site.markup === "plain" ? "" : ` | ${site.product}`}</title><meta name="description" content="${escapeHtml(plainText(firstText(page)).slice(0, 150))}">`;
  const top = ["index", "quickstart", "install", "authentication", "api-reference"]
    .filter((id) => site.pages.has(id))
    .map((id) => `<li>${link(id, site.pages.get(id)!.title)}</li>`)
    .join("");
  if (site.markup === "docusaurus")
    return `<!doctype html><html lang="en"><head>${head}<script src="/main.js" defer></script></head><body><div id="__docusaurus"><nav class="navbar"><ul>${top}</ul></nav><main><article><div class="theme-doc-markdown">${body}</div></article></main><footer>Built with care.</footer></div></body></html>`;
  if (site.markup === "sphinx")
    return `<!DOCTYPE html><html lang="en"><head>${head}</head><body><div class="document"><div class="bodywrapper"><div class="body" role="main">${body}</div></div><div class="sphinxsidebar" role="navigation"><ul>${top}</ul></div></div></body></html>`;
  if (site.markup === "mkdocs")
    return `<!doctype html><html lang="en" class="no-js"><head>${head}</head><body dir="ltr"><header class="md-header"><nav class="md-tabs"><ul>${top}</ul></nav></header><div class="md-container"><main class="md-main"><div class="md-content"><article class="md-content__inner md-typeset">${body}</article></div></main></div><script src="/main.js"></script></body></html>`;
  if (site.markup === "vitepress")
    return `<!DOCTYPE html><html lang="en-US" dir="ltr"><head>${head}<script type="module" src="/main.js"></script></head><body><div id="app"><div class="Layout"><aside class="VPSidebar"><nav><ul>${top}</ul></nav></aside><div class="VPContent"><main class="main"><div class="vp-doc">${body}</div></main></div></div></div></body></html>`;
  if (site.markup === "asciidoctor")
    return `<!DOCTYPE html><html lang="en"><head>${head}</head><body class="article"><div id="header"><div id="toc" class="toc"><ul class="sectlevel1">${top}</ul></div></div><div id="content">${body}</div></body></html>`;
  return `<!DOCTYPE html><html lang="en"><head>${head}</head><body>${body}<hr><ul>${top}</ul></body></html>`;
}

const firstText = (page: DocsPage): Inline[] =>
  page.sections.flatMap(({ blocks }) => blocks.flatMap((block) => (block.kind === "text" ? [block.text] : [])))[0] ??
  [];
