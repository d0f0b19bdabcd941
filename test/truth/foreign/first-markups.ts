import { capital, type Markup } from "./site.ts";

const lines = (escaped: string, write: (line: string, at: number) => string, between = "\n") =>
  escaped.split("\n").map(write).join(between);
const list = (navigation: string) => `<ul>${navigation}</ul>`;
const html = (head: string, body: string) => `<!DOCTYPE html><html lang="en"><head>${head}</head>${body}</html>`;
const highlighterNames: Record<string, string> = {
  bash: "shell",
  hcl: "terraform",
  cpp: "c++",
  csharp: "cs",
};

/** The markups of the first round. */
export const firstMarkups: Markup[] = [
  {
    name: "mkdocs-material",
    extension: "",
    heading: (level, text, id) =>
      `<h${level} id="${id}">${text}<a class="headerlink" href="#${id}" title="Permanent link">&para;</a></h${level}>`,
    code: (language, code) =>
      `<div class="language-${language ?? "text"} highlight"><pre><span></span><code>${lines(
        code,
        (line, at) =>
          `<a id="__codelineno-0-${at + 1}" name="__codelineno-0-${at + 1}" href="#__codelineno-0-${at + 1}"></a><span class="n">${line}</span>`,
      )}\n</code></pre></div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="mkdocs-1.5.3, mkdocs-material-9.4.6">`,
        `<body dir="ltr"><header class="md-header"><nav class="md-header__inner"><a href="/" class="md-logo">${product}</a></nav></header><div class="md-container"><main class="md-main"><div class="md-main__inner md-grid"><div class="md-sidebar md-sidebar--primary"><nav class="md-nav"><ul class="md-nav__list">${navigation}</ul></nav></div><div class="md-content" data-md-component="content"><article class="md-content__inner md-typeset"><h1 id="top">${title}<a class="headerlink" href="#top">&para;</a></h1>${body}</article></div></div></main></div></body>`,
      ),
  },
  {
    name: "docusaurus",
    extension: "",
    heading: (level, text, id) =>
      `<h${level} class="anchor" id="${id}">${text}<a href="#${id}" class="hash-link" aria-label="Direct link">&#8203;</a></h${level}>`,
    code: (language, code) =>
      `<div class="language-${language ?? "text"} codeBlockContainer_Ckt0 theme-code-block"><div class="codeBlockContent_biex"><pre tabindex="0" class="prism-code language-${language ?? "text"} codeBlock_bY9V"><code class="codeBlockLines_e6Vv">${lines(
        code,
        (line) => `<span class="token-line" style="color:#393A34"><span class="token plain">${line}</span><br></span>`,
        "",
      )}</code></pre><div class="buttonGroup__atx"><button type="button" aria-label="Copy code to clipboard">Copy</button></div></div></div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<script src="/assets/js/main.js" defer></script>`,
        `<body class="navigation-with-keyboard"><div id="__docusaurus"><nav class="navbar"><a href="/">${product}</a></nav><aside class="theme-doc-sidebar-container"><nav class="menu">${list(navigation)}</nav></aside><main><article><div class="theme-doc-markdown markdown"><header><h1>${title}</h1></header>${body}</div></article></main></div></body>`,
      ),
  },
  {
    name: "sphinx",
    extension: ".html",
    code: (language, code) =>
      `<div class="highlight-${language ?? "text"} notranslate"><div class="highlight"><pre><span></span>${code.replace(
        /\b(import|func|return|const|if)\b/g,
        '<span class="kn">$1</span>',
      )}\n</pre></div></div>`,
    page: ({ title, head, navigation, body }) =>
      html(
        head,
        `<body><div class="document"><div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main"><section id="page"><h1>${title}<a class="headerlink" href="#page" title="Permalink">¶</a></h1>${body}</section></div></div></div><div class="sphinxsidebar" role="navigation"><div class="sphinxsidebarwrapper">${list(navigation)}</div></div></div></body>`,
      ),
  },
  {
    name: "vitepress",
    extension: "",
    code: (language, code) =>
      `<div class="language-${language ?? "text"} vp-adaptive-theme"><button title="Copy Code" class="copy"></button><span class="lang">${language ?? "text"}</span><pre class="shiki shiki-themes github-light" tabindex="0"><code>${lines(
        code,
        (line) => `<span class="line"><span style="--shiki-light:#D73A49;">${line}</span></span>`,
      )}</code></pre></div>`,
    page: ({ title, head, navigation, body }) =>
      html(
        `${head}<script type="module" src="/assets/app.js"></script>`,
        `<body><div id="app"><div class="Layout"><aside class="VPSidebar"><nav>${list(navigation)}</nav></aside><div class="VPContent"><div class="VPDoc"><main class="main"><div class="vp-doc"><div><h1 id="top" tabindex="-1">${title} <a class="header-anchor" href="#top">&#8203;</a></h1>${body}</div></div></main></div></div></div></div></body>`,
      ),
  },
  {
    name: "html32",
    extension: ".html",
    link: (text, href) => `<A HREF="${href}">${text}</A>`,
    text: (text) => `<P><FONT FACE="Arial" SIZE="2">${text}</FONT>`,
    heading: (level, text) => `<H${level}>${text}</H${level}>`,
    code: (_, code) => `<PRE>\n${code}\n</PRE>`,
    page: ({ title, head, navigation, body }) =>
      `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN"><HTML><HEAD>${head}</HEAD><BODY BGCOLOR="#FFFFFF"><TABLE WIDTH="100%" BORDER=0><TR><TD WIDTH=180 VALIGN=TOP><UL>${navigation}</UL></TD><TD VALIGN=TOP><H1>${title}</H1>\n${body}\n</TD></TR></TABLE></BODY></HTML>`,
  },
  {
    name: "jekyll",
    extension: "",
    code: (language, code) =>
      `<div class="language-${language ?? "text"} highlighter-rouge"><div class="highlight"><pre class="highlight"><code>${code}\n</code></pre></div></div>`,
    page: ({ title, head, navigation, body }) =>
      html(
        head,
        `<body><div class="side-bar"><nav class="site-nav"><ul class="nav-list">${navigation}</ul></nav></div><div class="main" id="top"><div id="main-content" class="main-content"><main><h1 id="t">${title}</h1>${body}</main></div></div></body>`,
      ),
  },
  {
    name: "mdbook",
    extension: ".html",
    code: (language, code) => `<pre><code class="language-${language ?? "text"}">${code}\n</code></pre>`,
    page: ({ title, head, navigation, body }) =>
      html(
        head,
        `<body><div id="body-container"><nav id="sidebar" class="sidebar"><ol class="chapter">${navigation}</ol></nav><div id="page-wrapper" class="page-wrapper"><div class="page"><div id="content" class="content"><main><h1 id="t"><a class="header" href="#t">${title}</a></h1>${body}</main></div></div></div></div></body>`,
      ),
  },
  {
    name: "readme",
    extension: "",
    code: (language, code) =>
      `<div class="CodeTabs"><pre><button aria-label="Copy Code" class="rdmd-code-copy"></button><code class="rdmd-code lang-${language ?? "text"}" data-lang="${language ?? "text"}" name="">${code}</code></pre></div>`,
    page: ({ title, head, navigation, body }) =>
      html(
        head,
        `<body><div id="ssr-top"></div><div id="ssr-main"><div class="App"><nav class="rm-Sidebar">${list(navigation)}</nav><article class="rm-Article"><header><h1>${title}</h1></header><div class="rm-Markdown markdown-body">${body}</div></article></div></div><script id="ssr-props" data-initial-props="{&quot;doc&quot;:&quot;${title}&quot;}"></script><script src="/main.js"></script></body>`,
      ),
  },
  {
    name: "redoc",
    extension: "",
    code: (language, code) =>
      `<div class="react-tabs__tab-panel"><pre><code class="language-${language ?? "text"}">${code}</code></pre></div>`,
    page: ({ title, head, navigation, body }) =>
      html(
        head,
        `<body><div id="redoc"><div class="redoc-wrap"><div class="menu-content"><ul role="menu">${navigation}</ul></div><div class="api-content"><div class="api-info"><h1>${title}</h1></div>${body}</div></div></div></body>`,
      ),
  },
  {
    name: "swagger",
    extension: "",
    code: (language, code) => `<pre><code class="language-${language ?? "text"}">${code}</code></pre>`,
    page: ({ title, head, navigation, body }) =>
      html(head, `<body><nav>${list(navigation)}</nav><main><h1>${title}</h1>${body}</main></body>`),
  },
  {
    name: "javadoc",
    extension: ".html",
    text: (text) => `<div class="block">${text}</div>`,
    code: (language, code) => `<pre><code class="language-${language ?? "text"}">${code}\n</code></pre>`,
    page: ({ title, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="javadoc/PackageWriter">`,
        `<body class="class-declaration-page"><div class="flex-box"><header role="banner" class="flex-header"><nav role="navigation"><ul class="nav-list">${navigation}</ul></nav></header><div class="flex-content"><main role="main"><div class="header"><h1 title="${title}" class="title">${title}</h1></div><section class="class-description">${body}</section></main></div></div></body>`,
      ),
  },
  {
    name: "man",
    extension: "",
    code: (_, code) => `<pre>\n${code}\n</pre>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        head,
        `<body><table class="head"><tr><td class="head-ltitle">${product.toUpperCase()}(1)</td></tr></table><div class="manual-text"><h1 class="Sh" id="NAME">${title}</h1>${body}</div><hr>${list(navigation)}</body>`,
      ),
  },
  {
    name: "github",
    extension: "",
    heading: (level, text, id) =>
      `<div class="markdown-heading" dir="auto"><h${level} tabindex="-1" class="heading-element" dir="auto">${text}</h${level}><a id="user-content-${id}" class="anchor" href="#${id}"></a></div>`,
    code: (language, code) =>
      `<div class="highlight highlight-source-${highlighterNames[language ?? ""] ?? language ?? "text"} notranslate position-relative overflow-auto" dir="auto"><pre>${code}</pre><div class="zeroclipboard-container"><clipboard-copy aria-label="Copy" value="${code.replaceAll('"', "&quot;")}"></clipboard-copy></div></div>`,
    page: ({ title, head, navigation, body }) =>
      html(
        head,
        `<body class="logged-out"><div class="application-main"><main id="js-repo-pjax-container"><div id="readme" class="Box"><article class="markdown-body entry-content container-lg" itemprop="text"><div class="markdown-heading"><h1>${title}</h1></div>${body}</article></div></main><div>${list(navigation)}</div></div></body>`,
      ),
  },
  {
    name: "notion",
    extension: "",
    text: (text) => `<div class="notion-text-block"><div><div>${text}</div></div></div>`,
    heading: (level, text) =>
      `<div class="notion-header-block"><div><h${level + 1} class="notion-h">${text}</h${level + 1}></div></div>`,
    code: (language, code) =>
      `<div class="notion-code-block"><div><div>${capital(language ?? "text")}</div><pre class="notion-code language-${language ?? "text"}"><code class="language-${language ?? "text"}" tabindex="0">${code}</code></pre></div></div>`,
    page: ({ title, head, navigation, body }) =>
      html(
        head,
        `<body><div id="notion-app"><div><div><div><div class="notion-sidebar"><div>${list(navigation)}</div></div><div class="notion-frame"><div><div><div class="notion-page-content"><div><h1>${title}</h1></div>${body}</div></div></div></div></div></div></div></div></body>`,
      ),
  },
  {
    name: "asciidoc",
    extension: ".html",
    text: (text) => `<div class="paragraph"><p>${text}</p></div>`,
    code: (language, code) =>
      `<div class="listingblock"><div class="content"><pre class="highlightjs highlight"><code class="language-${language ?? "text"} hljs" data-lang="${language ?? "text"}">${code}</code></pre></div></div>`,
    page: ({ title, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="Asciidoctor 2.0.18">`,
        `<body class="article"><div id="header"><h1>${title}</h1></div><div id="content"><div class="sect1"><div class="sectionbody">${body}</div></div></div><div id="toc">${list(navigation)}</div></body>`,
      ),
  },
  { name: "markdown", extension: ".md", isMarkdown: true, code: (_, code) => code, page: ({ body }) => body },
];
