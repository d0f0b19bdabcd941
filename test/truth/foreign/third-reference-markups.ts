import type { Markup } from "./site.ts";
import { byClass, documentOf, lines, list, rich } from "./third-html.ts";

const brushes: Record<string, string> = { javascript: "js", shell: "bash", yml: "yaml", csharp: "csharp" };

/** Markups of generators whose main purpose are references, and of their guides. */
export const thirdReferenceMarkups: Markup[] = [
  {
    name: "sphinx-rtd",
    extension: ".html",
    heading: (level, text, id) =>
      `<h${level}>${text}<a class="headerlink" href="#${id}" title="Link to this heading"></a></h${level}><span class="target" id="${id}"></span>`,
    note: (content) => `<div class="admonition note">\n<p class="admonition-title">Note</p>\n<p>${content}</p>\n</div>`,
    code: (language, code) =>
      `<div class="highlight-${language ?? "default"} notranslate"><div class="highlight"><pre id="codecell0"><span></span>${lines(code, (line, at) => `<span class="linenos">${String(at).padStart(2)}</span>${byClass(line, "s2", "kn", "mi")}`)}\n</pre><button class="copybtn o-tooltip--left" data-tooltip="Copy" data-clipboard-target="#codecell0"><svg xmlns="http://www.w3.org/2000/svg" class="icon" width="44"><title>Copy to clipboard</title></svg></button></div>\n</div>`,
    tabs: (names, shown, panels) =>
      `<div class="sphinx-tabs docutils container"><div aria-label="Tabbed content" class="closeable" role="tablist">${names.map((name, at) => `<button aria-controls="panel-0-${at}" aria-selected="${at === shown}" class="sphinx-tabs-tab" id="tab-0-${at}" name="${at}" role="tab" tabindex="${at === shown ? 0 : -1}">${name}</button>`).join("")}</div>${panels.map((panel, at) => `<div aria-labelledby="tab-0-${at}" class="sphinx-tabs-panel" id="panel-0-${at}"${at === shown ? "" : ' hidden="true"'} name="${at}" role="tabpanel" tabindex="0">${panel}</div>`).join("")}</div>`,
    table: (head, rows) =>
      `<div class="wy-table-responsive"><table class="docutils align-default">\n<thead>\n<tr class="row-odd">${head.map((cell) => `<th class="head"><p>${cell}</p></th>`).join("\n")}</tr>\n</thead>\n<tbody>\n${rows.map((row, at) => `<tr class="row-${at % 2 ? "odd" : "even"}">${row.map((cell) => `<td><p>${cell}</p></td>`).join("\n")}</tr>`).join("\n")}\n</tbody>\n</table></div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<script src="/_static/copybutton.js?v=f281be69"></script>`,
        `<body class="wy-body-for-nav"><div class="wy-grid-for-nav"><nav data-toggle="wy-nav-shift" class="wy-nav-side"><div class="wy-side-scroll"><div class="wy-side-nav-search"><a href="/" class="icon icon-home">${product}</a><div class="version">4.2</div><div role="search"><form id="rtd-search-form" class="wy-form" action="/search.html" method="get"><input type="text" name="q" placeholder="Search docs" aria-label="Search docs" /><input type="hidden" name="check_keywords" value="yes" /></form></div></div><div class="wy-menu wy-menu-vertical" data-spy="affix" role="navigation" aria-label="Navigation menu"><p class="caption" role="heading"><span class="caption-text">Contents:</span></p>${list(navigation)}</div></div></nav><section data-toggle="wy-nav-shift" class="wy-nav-content-wrap"><div class="wy-nav-content"><div class="rst-content"><div role="navigation" aria-label="Page navigation"><ul class="wy-breadcrumbs"><li><a href="/" class="icon icon-home" aria-label="Home"></a></li><li class="breadcrumb-item active">${title}</li></ul><hr/></div><div role="main" class="document" itemscope="itemscope"><div itemprop="articleBody"><section id="top"><h1>${title}<a class="headerlink" href="#top" title="Link to this heading"></a></h1>${body}</section></div></div><footer><hr/><div role="contentinfo"><p>&#169; Copyright 2026.</p></div>Built with Sphinx using a theme provided by Read the Docs.</footer></div></div></section></div><div class="rst-versions" data-toggle="rst-versions" role="note" aria-label="Versions"><span class="rst-current-version" data-toggle="rst-current-version">v: stable</span><div class="rst-other-versions"><dl><dt>Versions</dt><dd>stable</dd><dd>latest</dd></dl></div></div></body>`,
        ' class="writer-html5" data-content_root="./"',
      ),
  },
  {
    name: "furo",
    extension: ".html",
    heading: (level, text, id) =>
      `<h${level} id="${id}">${text}<a class="headerlink" href="#${id}" title="Link to this heading">¶</a></h${level}>`,
    code: (language, code) =>
      `<div class="literal-block-wrapper docutils container"><div class="code-block-caption"><span class="caption-text">Example</span></div><div class="highlight-${language ?? "default"} notranslate"><div class="highlight"><pre><span></span>${byClass(code, "s2", "kn", "mi")}\n</pre></div>\n</div></div>`,
    tabs: (names, shown, panels) =>
      `<div class="sd-tab-set docutils">\n${panels.map((panel, at) => `<input${at === shown ? ' checked="checked"' : ""} id="sd-tab-item-${at}" name="sd-tab-set-0" type="radio">\n<label class="sd-tab-label" data-sync-id="${at}" for="sd-tab-item-${at}">${names[at] ?? ""}</label><div class="sd-tab-content docutils">${panel}</div>`).join("\n")}</div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<meta name="generator" content="sphinx-8.2.3, furo 2025.12.19">`,
        `<body><script>document.body.dataset.theme = "auto";</script><svg xmlns="http://www.w3.org/2000/svg" style="display: none;"><symbol id="svg-toc" viewBox="0 0 24 24"><title>Contents</title></symbol></svg><a class="skip-to-content muted-link" href="#furo-main-content">Skip to content</a><div class="page"><header class="mobile-header"><div class="header-center"><a href="/"><div class="brand">${product}</div></a></div></header><aside class="sidebar-drawer"><div class="sidebar-container"><div class="sidebar-sticky"><a class="sidebar-brand" href="/"><span class="sidebar-brand-text">${product}</span></a><form class="sidebar-search-container" method="get" action="/search.html" role="search"><input class="sidebar-search" placeholder="Search" name="q" aria-label="Search"></form><div class="sidebar-tree">${list(navigation)}</div></div></div></aside><div class="main"><div class="content"><div class="article-container"><a href="#" class="back-to-top muted-link"><span>Back to top</span></a><div class="content-icon-container"><div class="edit-this-page"><span class="visually-hidden">Edit this page</span></div></div><article role="main" id="furo-main-content"><section id="top"><h1>${title}<a class="headerlink" href="#top" title="Link to this heading">¶</a></h1>${body}</section></article></div><footer><div class="related-pages"></div><div class="bottom-of-page"><div class="left-details">Made with Furo</div></div></footer></div></div></div></body>`,
      ),
  },
  {
    name: "docfx",
    extension: ".html",
    heading: (level, text, id) => `<h${level} id="${id}">${text}</h${level}>`,
    note: (content) => `<div class="NOTE">\n<h5>Note</h5>\n<p>${content}</p>\n</div>`,
    code: (language, code) => `<pre><code class="lang-${language ?? "text"}" name="Main">${code}\n</code></pre>`,
    tabs: (names, shown, panels) =>
      `<div class="tabGroup" id="tabgroup_1">\n<ul role="tablist">\n${names.map((name, at) => `<li role="presentation">\n<a href="#tabpanel_1_${at}" role="tab" aria-controls="tabpanel_1_${at}" data-tab="${at}" tabindex="${at === shown ? 0 : -1}" aria-selected="${at === shown}">${name}</a>\n</li>`).join("\n")}\n</ul>\n${panels.map((panel, at) => `<section id="tabpanel_1_${at}" role="tabpanel" data-tab="${at}"${at === shown ? "" : ' aria-hidden="true" hidden="hidden"'}>\n${panel}\n</section>`).join("\n")}\n</div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<meta name="docfx:navrel" content="/toc.html"><meta name="docfx:rel" content="/">`,
        `<body class="tex2jax_ignore" data-layout="conceptual" data-yaml-mime=""><header class="bg-body border-bottom"><nav id="autocollapse" class="navbar navbar-expand-md" role="navigation"><a class="navbar-brand" href="/">${product}</a><div class="collapse navbar-collapse" id="navpanel"><form class="search" role="search" id="search"><input class="form-control" id="search-query" type="search" disabled placeholder="Search" autocomplete="off" aria-label="Search"></form></div></nav></header><main class="container-xxl"><div class="toc-offcanvas"><nav class="toc" id="toc">${list(navigation)}</nav></div><div class="content"><div class="actionbar"><nav id="breadcrumb"></nav></div><article data-uid=""><h1 id="top">${title}</h1>${body}</article><div class="contribution d-print-none"><span class="edit-link">Edit this page</span></div></div></main><footer class="border-top text-secondary"><div class="container-xxl">Made with docfx</div></footer></body>`,
      ),
  },
  {
    name: "quarto",
    extension: ".html",
    heading: (level, text, id) =>
      `<section id="${id}" class="level${level}"><h${level} class="anchored" data-anchor-id="${id}">${text}<a class="anchorjs-link" aria-label="Anchor" data-anchorjs-icon="" href="#${id}"></a></h${level}></section>`,
    note: (content) =>
      `<div class="callout callout-style-default callout-note callout-titled"><div class="callout-header d-flex align-content-center"><div class="callout-icon-container"><i class="callout-icon"></i></div><div class="callout-title-container flex-fill">Note</div></div><div class="callout-body-container callout-body"><p>${content}</p></div></div>`,
    code: (language, code) =>
      `<div class="code-copy-outer-scaffold"><div class="sourceCode" id="cb1"><pre class="sourceCode ${language ?? "default"} code-with-copy"><code class="sourceCode ${language ?? "default"}">${lines(code, (line, at) => `<span id="cb1-${at}"><a href="#cb1-${at}" aria-hidden="true" tabindex="-1"></a>${byClass(line, "st", "im", "dv")}</span>`)}</code></pre></div><button title="Copy to Clipboard" class="code-copy-button"><i class="bi"></i></button></div>`,
    tabs: (names, shown, panels) =>
      `<div class="tabset-margin-container"></div><div class="panel-tabset"><ul class="nav nav-tabs" role="tablist">${names.map((name, at) => `<li class="nav-item" role="presentation"><a class="nav-link${at === shown ? " active" : ""}" id="tabset-1-${at}-tab" data-bs-toggle="tab" data-bs-target="#tabset-1-${at}" role="tab" aria-controls="tabset-1-${at}" aria-selected="${at === shown}" href="">${name}</a></li>`).join("")}</ul><div class="tab-content">${panels.map((panel, at) => `<div id="tabset-1-${at}" class="tab-pane${at === shown ? " active" : ""}" role="tabpanel" aria-labelledby="tabset-1-${at}-tab">${panel}</div>`).join("")}</div></div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<meta name="generator" content="quarto-1.8.26"><meta name="viewport" content="width=device-width, initial-scale=1.0, user-scalable=yes">`,
        `<body class="nav-sidebar docked fullcontent quarto-light"><div id="quarto-search-results"></div><header id="quarto-header" class="headroom fixed-top"><nav class="quarto-secondary-nav"><h1 class="quarto-secondary-nav-title">${product}</h1></nav></header><div id="quarto-content" class="quarto-container page-columns page-rows-contents"><nav id="quarto-sidebar" class="sidebar collapse" role="doc-toc"><div class="sidebar-menu-container"><ul class="list-unstyled mt-1">${navigation}</ul></div></nav><main class="content" id="quarto-document-content"><header id="title-block-header" class="quarto-title-block default"><div class="quarto-title"><h1 class="title">${title}</h1></div><div class="quarto-title-meta"></div></header>${body}</main></div></body>`,
        ' xmlns="http://www.w3.org/1999/xhtml"',
      ),
  },
  {
    name: "pkgdown",
    extension: ".html",
    heading: (level, text, id) =>
      `<div class="section level${level}"><h${level} id="${id}">${text}<a class="anchor" aria-label="anchor" href="#${id}"></a></h${level}></div>`,
    code: (language, code) =>
      `<div class="sourceCode" id="cb1"><pre class="downlit sourceCode ${language ?? "r"}">\n<code class="sourceCode ${language ?? "R"}">${lines(code, (line) => `<span>${byClass(line, "st", "kw", "fl")}</span>`)}</code></pre></div>`,
    table: (head, rows) =>
      `<table class="table"><colgroup>${head.map(() => '<col width="33%">').join("")}</colgroup><thead><tr class="header">${head.map((cell) => `<th align="left">${cell}</th>`).join("")}</tr></thead><tbody>${rows.map((row, at) => `<tr class="${at % 2 ? "even" : "odd"}">${row.map((cell) => `<td align="left">${cell}</td>`).join("")}</tr>`).join("")}</tbody></table>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<!-- bootstrap-toc --><meta property="og:title" content="${title}">`,
        `<body><a href="#main" class="visually-hidden-focusable">Skip to contents</a><nav class="navbar navbar-expand-lg fixed-top bg-light" data-bs-theme="light" aria-label="Site navigation"><div class="container"><a class="navbar-brand me-2" href="/">${product}</a><small class="nav-text text-muted me-auto" data-bs-toggle="tooltip">4.2.1</small><div id="navbar" class="collapse navbar-collapse ms-3"><ul class="navbar-nav me-auto">${navigation}</ul></div></div></nav><div class="container template-article"><div class="row"><main id="main" class="col-md-9"><div class="page-header"><h1>${title}</h1><div class="d-none name"><code>${title}.Rmd</code></div></div>${body}</main><aside class="col-md-3"><nav id="toc" aria-label="Table of contents"><h2>On this page</h2></nav></aside></div><footer><div class="pkgdown-footer-left"><p>Developed by the docs team.</p></div><div class="pkgdown-footer-right"><p>Site built with pkgdown 2.1.3.</p></div></footer></div></body>`,
      ),
  },
  {
    name: "scribe",
    extension: ".html",
    heading: (level, text, id) => `<h${level} id="${id}">${text}</h${level}>`,
    note: (content) => `<aside class="info">${content}</aside>`,
    code: (language, code) =>
      `<div class="${language ?? "text"}-example">\n    <pre><code class="language-${language ?? "text"}">${code}</code></pre></div>`,
    table: (head, rows) =>
      rows
        .map(
          (row) =>
            `<div style="padding-left: 28px; clear: unset;"><b style="line-height: 2;"><code>${row[0] ?? ""}</code></b>&nbsp;&nbsp;\n<small>${row[1] ?? ""}</small>&nbsp;\n<br>\n<p>${row
              .slice(2)
              .map((cell, at) => `${head[at + 2] ?? ""}: ${cell}`)
              .join(". ")}</p></div>`,
        )
        .join("\n"),
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<style id="language-style">body .content .bash-example code { display: block; }</style>`,
        `<body data-languages="[&quot;bash&quot;,&quot;javascript&quot;]"><span class="nav-button" id="nav-button"><span>MENU</span></span><div class="tocify-wrapper"><div class="lang-selector"><button type="button" class="lang-button" data-language-name="bash">bash</button><button type="button" class="lang-button" data-language-name="javascript">javascript</button></div><div class="search"><input type="text" class="search" id="input-search" placeholder="Search"></div><div id="toc"><ul id="tocify-header-0" class="tocify-header">${navigation}</ul></div><ul class="toc-footer" id="last-updated"><li>Last updated: November 3, 2026</li></ul></div><div class="page-wrapper"><div class="dark-box"></div><div class="content"><p><a href="/">${product}</a></p><h1 id="top">${title}</h1>${body}</div><div class="dark-box"></div></div></body>`,
      ),
  },
  {
    name: "oxygen-webhelp",
    extension: ".html",
    text: (content) => `<p class="p">${content}</p>`,
    heading: (level, text, id) =>
      `<article class="nested${level - 1}" aria-labelledby="ariaid-${id}"><h${level} class="title topictitle${level}" id="${id}">${text}</h${level}></article>`,
    note: (content) =>
      `<div class="note note note_note"><span class="note__title">Note:</span> <span class="ph">${content}</span></div>`,
    code: (language, code) =>
      `<pre class="+ topic/pre pr-d/codeblock pre codeblock language-${language ?? "text"}"><code>${code}</code></pre>`,
    table: (head, rows) =>
      `<div class="table-container"><table class="table frame-all"><colgroup>${head.map(() => "<col>").join("")}</colgroup><thead class="thead"><tr class="row">${head.map((cell) => `<th class="entry colsep-1 rowsep-1">${cell}</th>`).join("")}</tr></thead><tbody class="tbody">${rows.map((row) => `<tr class="row">${row.map((cell) => `<td class="entry colsep-1 rowsep-1">${cell}</td>`).join("")}</tr>`).join("")}</tbody></table></div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<meta name="generator" content="DITA-OT"/><meta name="wh-source-relpath" content="topic.dita"/>`,
        `<body class="wh_topic_page frmBody"><a href="#wh_topic_body" class="sr-only sr-only-focusable">Jump to main content</a><header class="navbar navbar-default wh_header"><div class="container-fluid"><div class="wh_header_flex_container"><div class="wh_logo_and_publication_title_container"><div class="wh_publication_title"><a href="/"><span class="booktitle"><span class="ph mainbooktitle">${product}</span></span></a></div></div></div></div></header><div class="wh_search_input navbar-form wh_topic_page_search search" role="form"><form id="searchForm" method="get" role="search" action="/search.html"><div><input type="search" placeholder="Search " class="wh_search_textfield" id="textToSearch" name="searchQuery" aria-label="Search query"/><button type="submit" class="wh_search_button" aria-label="Search"><span class="search_input_text">Search</span></button></div></form></div><div class="container-fluid" id="wh_topic_container"><nav role="navigation" id="wh_publication_toc" class="wh_publication_toc" data-tooltip-position="right">${list(navigation)}</nav><div class="wh_topic_body" id="wh_topic_body"><main role="main"><article class="" role="article" aria-labelledby="ariaid-title1"><article class="nested0"><h1 class="title topictitle1" id="ariaid-title1">${title}</h1><div class="body conbody">${body}</div></article></article></main></div></div></body>`,
        ' xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"',
      ),
  },
  {
    name: "jsdoc",
    extension: ".html",
    heading: (level, text, id) => `<h${level} id="${id}">${text}</h${level}>`,
    code: (_, code) => `<pre class="prettyprint source linenums"><code>${code}</code></pre>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<script src="/scripts/prettify/prettify.js"> </script>`,
        `<body><div id="main"><h1 class="page-title">${title}</h1><section class="readme"><article>${body}</article></section></div><nav><h2><a href="/">Home</a></h2><h3>Tutorials</h3>${list(navigation)}</nav><br class="clear"><footer>Documentation of ${product}, generated by JSDoc 4.0.5</footer></body>`,
      ),
  },
  {
    name: "syntaxhighlighter",
    extension: ".html",
    heading: (level, text, id) => `<h${level}><a name="${id}"></a>${text}</h${level}>`,
    note: (content) => `<p class="tip"><img src="/tip.png" alt="Tip" width="16"> ${content}</p>`,
    code: (language, code) =>
      `<pre class="brush: ${brushes[language ?? ""] ?? language ?? "plain"}; toolbar: false; gutter: true">${code}</pre>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<script src="/scripts/shCore.js"></script>`,
        `<body onload="SyntaxHighlighter.all()"><div id="wrap"><div id="header"><h2><a href="/">${product}</a></h2></div><div id="left"><h3>Topics</h3>${list(navigation)}</div><div id="right"><h1>${title}</h1><p class="date">Posted 2026-03-14</p>${body}</div><div id="footer">All trademarks belong to their owners.</div></div></body>`,
      ),
  },
  {
    name: "no-end-tags",
    extension: "",
    text: (content) => `<p>${content}\n`,
    note: (content) => `<p><em>Note:</em> ${content}\n`,
    heading: (level, text, id) => `<h${level} id=${id}>${text}</h${level}>\n`,
    code: (language, code) => `<pre><code class=language-${language ?? "text"}>${code}</code></pre>\n`,
    table: (head, rows) =>
      `<table><thead><tr>${head.map((cell) => `<th>${cell}`).join("")}<tbody>${rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}`).join("")}`).join("\n")}</table>\n`,
    tabs: (names, _shown, panels) =>
      `<dl>${panels.map((panel, at) => `<dt>${names[at] ?? ""}<dd>${panel}`).join("")}</dl>`,
    page: ({ title, product, head, navigation, body }) =>
      `<!doctype html>\n<html lang=${/content-language" content="(\w+)/.exec(head)?.[1] ?? "en"}>${head}\n<header><a href=/>${product}</a></header>\n<nav><ul>${navigation.replaceAll("</li>", "\n")}</ul></nav>\n<main>\n<h1>${title}</h1>\n${rich(body).replaceAll("</li>", "")}\n</main>\n<footer><p>Hand-made, with love.</footer>\n`,
  },
];
