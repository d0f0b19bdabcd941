import { capital, type Markup } from "./site.ts";

const html = (head: string, body: string) =>
  `<!doctype html>\n<html lang="en">\n<head>\n${head}\n</head>\n${body}\n</html>`;
const list = (navigation: string) => `<ul>${navigation}</ul>`;
const lines = (code: string, write: (line: string, at: number) => string, between = "\n") =>
  code.split("\n").map(write).join(between);
const keywords = /\b(import|from|func|return|const|if|for|use|let|var|new|class|def)\b/g;

const guides: Markup[] = [
  {
    name: "docusaurus-3",
    extension: "",
    heading: (level, text, id) =>
      `<h${level} class="anchor anchorTargetStickyNavbar_Vzrq" id="${id}">${text}<a href="#${id}" class="hash-link" aria-label="Direct link to ${text}" title="Direct link to ${text}" translate="no">​</a></h${level}>`,
    note: (content) =>
      `<div class="theme-admonition theme-admonition-note admonition_xJq3 alert alert--secondary"><div class="admonitionHeading_Gvgb"><span class="admonitionIcon_Rf37"><svg viewBox="0 0 14 16"><path d="M6 5"></path></svg></span>note</div><div class="admonitionContent_BuS1"><p>${content}</p></div></div>`,
    code: (language, code) =>
      `<div class="${language ? `language-${language} ` : ""}codeBlockContainer_Ckt0 theme-code-block" style="--prism-color:#393A34"><div class="codeBlockContent_QJqH"><pre tabindex="0" class="prism-code ${language ? `language-${language} ` : ""}codeBlock_bY9V thin-scrollbar"><code class="codeBlockLines_e6Vv"><span class="token-line codeLine_lJS_" style="color:#393A34"><span class="codeLineNumber_Tfdd"></span>${lines(code, (line) => `<span class="codeLineContent_feaV"><span class="token plain" style="display:inline-block">${line}</span></span><br></span>`, '<span class="token-line codeLine_lJS_">')}</code></pre><div class="buttonGroup_M5ko"><button type="button" aria-label="Copy code to clipboard" class="clean-btn"><span aria-hidden="true"></span></button></div></div></div>`,
    tabs: (names, shown, panels) =>
      `<div class="theme-tabs-container tabs-container tabList__CuJ"><ul role="tablist" aria-orientation="horizontal" class="tabs">${names.map((name, at) => `<li role="tab" tabindex="${at === shown ? 0 : -1}" aria-selected="${at === shown}" class="tabs__item">${name}</li>`).join("")}</ul><div class="margin-top--md">${panels.map((panel, at) => `<div role="tabpanel" class="tabItem_Ymn6"${at === 0 ? "" : " hidden"}>${panel}</div>`).join("")}</div></div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="Docusaurus v3.9.2">`,
        `<body><script>!function(){var t="light";document.documentElement.setAttribute("data-theme",t)}()</script><div id="__docusaurus"><div role="region" aria-label="Skip to main content"><a class="skipToContent_fXgn" href="#__docusaurus_skipToContent_fallback">Skip to main content</a></div><nav aria-label="Main" class="theme-layout-navbar navbar navbar--fixed-top"><a class="navbar__brand" href="/"><b>${product}</b></a></nav><div id="__docusaurus_skipToContent_fallback" class="theme-layout-main main-wrapper"><aside class="theme-doc-sidebar-container"><nav aria-label="Docs sidebar" class="menu thin-scrollbar"><ul class="theme-doc-sidebar-menu menu__list">${navigation}</ul></nav></aside><main class="docMainContainer"><div class="container"><article><div class="theme-doc-markdown markdown"><header><h1>${title}</h1></header>${body}</div></article></div></main></div></div></body>`,
      ),
  },
  {
    name: "starlight",
    extension: "/",
    heading: (level, text, id) =>
      `<div class="sl-heading-wrapper level-h${level}"><h${level} id="${id}">${text}</h${level}><a class="sl-anchor-link" href="#${id}"><span aria-hidden="true" class="sl-anchor-icon"><svg width="16"></svg></span><span class="sr-only">Section titled “${text}”</span></a></div>`,
    note: (content) =>
      `<aside aria-label="Note" class="starlight-aside starlight-aside--note"><p class="starlight-aside__title" aria-hidden="true">Note</p><div class="starlight-aside__content"><p>${content}</p></div></aside>`,
    code: (language, code) =>
      `<div class="expressive-code"><figure class="frame"><figcaption class="header"></figcaption><pre data-language="${language ?? "plaintext"}"><code>${lines(code, (line) => `<div class="ec-line"><div class="code"><span style="--0:#d6deeb">${line === "" ? "\n" : line}</span></div></div>`, "")}</code></pre><div class="copy"><button title="Copy to clipboard" data-copied="Copied!"><div></div></button></div></figure></div>`,
    tabs: (names, shown, panels) =>
      `<starlight-tabs><div class="tablist-wrapper not-content"><ul role="tablist">${names.map((name, at) => `<li role="presentation" class="tab"><a role="tab" href="#tab-panel-${at}" aria-selected="${at === shown}">${name}</a></li>`).join("")}</ul></div>${panels.map((panel, at) => `<div id="tab-panel-${at}" role="tabpanel"${at === 0 ? "" : " hidden"}>${panel}</div>`).join("")}</starlight-tabs>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="Astro v5.16.4"><meta name="generator" content="Starlight v0.36.2">`,
        `<body class="astro-bguv2lll"><a href="#_top">Skip to content</a><div class="page sl-flex"><header class="header"><a href="/" class="site-title">${product}</a></header><nav class="sidebar" aria-label="Main"><div class="sidebar-content">${list(navigation)}</div></nav><div class="main-frame"><main data-pagefind-body lang="en" dir="ltr"><div class="content-panel"><h1 id="_top">${title}</h1></div><div class="content-panel"><div class="sl-markdown-content">${body}</div></div></main></div></div></body>`,
      ),
  },
  {
    name: "nextra",
    extension: "",
    heading: (level, text, id) =>
      `<h${level} class="x:tracking-tight x:font-semibold x:mt-10" id="${id}">${text}<a href="#${id}" class="x:focus-visible:nextra-focus subheading-anchor" aria-label="Permalink for this section"></a></h${level}>`,
    code: (language, code) =>
      `<div class="nextra-code x:relative"><pre class="x:group x:not-prose" tabindex="0" data-language="${language ?? "text"}" data-word-wrap=""><code class="nextra-code" dir="ltr">${lines(code, (line) => `<span><span style="--shiki-light:#24292E">${line}</span></span>`)}</code></pre></div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<link rel="preload" as="script" href="/_next/static/chunks/main.js">`,
        `<body><div class="nextra-banner"></div><header class="nextra-navbar"><nav><a href="/">${product}</a></nav></header><div class="x:mx-auto x:flex"><aside class="nextra-sidebar">${list(navigation)}</aside><article class="x:w-full x:break-words"><main data-pagefind-body="true"><h1 class="x:tracking-tight x:mt-2">${title}</h1>${body}</main></article></div><script src="/_next/static/chunks/main.js" async=""></script><script>self.__next_f.push([1,"0:[]"])</script></body>`,
      ),
  },
  {
    name: "gitbook",
    extension: "",
    text: (content) => `<p class="mx-auto page-width-wide:mx-0 decoration-primary/6 w-full">${content}</p>`,
    heading: (level, text, id) =>
      `<h${level} id="${id}" class="text-2xl font-semibold flex items-baseline group relative"><div class="hash grid-area-1-1"><a href="#${id}" aria-label="Direct link to heading"><svg class="gb-icon"></svg></a></div><div class="flex-1 justify-self-start text-left">${text}</div></h${level}>`,
    code: (language, code) =>
      `<div class="group/codeblock grid grid-flow-col w-full"><div class="flex items-center"><span>${capital(language ?? "text")}</span></div><button class="button">Copy</button><pre class="relative overflow-auto"><code class="inline-grid" data-language="${language ?? "text"}">${lines(code, (line) => `<span class="highlight-line"><span class="highlight-line-content"><span style="color:rgb(var(--shiki-color-text))">${line}</span></span></span>`)}</code></pre></div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="GitBook (db5c1f4)">`,
        `<body class="bg-tint-base"><header id="site-header"><a href="/">${product}</a></header><div class="flex flex-col"><aside data-testid="table-of-contents">${list(navigation)}</aside><main class="page-width-default flex-1"><header class="page-header"><h1 class="text-4xl font-bold">${title}</h1></header><div class="whitespace-pre-wrap">${body}</div></main></div></body>`,
      ),
  },
  {
    name: "docsy",
    extension: "/",
    heading: (level, text, id) =>
      `<h${level} id="${id}">${text}<a class="td-heading-self-link" href="#${id}" aria-label="Heading self-link"></a></h${level}>`,
    note: (content) =>
      `<div class="alert alert-info" role="alert"><div class="h4 alert-heading" role="heading">Note</div><p>${content}</p></div>`,
    code: (language, code) =>
      `<div class="highlight"><pre tabindex="0" style="background-color:#f8f8f8;-moz-tab-size:4;tab-size:4;"><code class="language-${language ?? "text"}" data-lang="${language ?? "text"}">${lines(code, (line) => `<span style="display:flex;"><span>${line.replace(keywords, '<span style="color:#204a87;font-weight:bold">$1</span>')}\n</span></span>`, "")}</code></pre></div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="Hugo 0.152.2">`,
        `<body class="td-page"><header><nav class="td-navbar"><a class="navbar-brand" href="/">${product}</a></nav></header><div class="container-fluid td-outer"><div class="td-main"><div class="row"><aside class="td-sidebar d-print-none"><div id="td-sidebar-menu"><nav class="td-sidebar-nav">${list(navigation)}</nav></div></aside><main role="main"><nav aria-label="breadcrumb"><ol class="breadcrumb"><li class="breadcrumb-item active">${title}</li></ol></nav><div class="td-content"><h1>${title}</h1>${body}</div></main></div></div></div></body>`,
      ),
  },
  {
    name: "antora",
    extension: ".html",
    text: (content) => `<div class="paragraph">\n<p>${content}</p>\n</div>`,
    note: (content) =>
      `<div class="admonitionblock note"><table><tbody><tr><td class="icon"><i class="fa icon-note" title="Note"></i></td><td class="content">${content}</td></tr></tbody></table></div>`,
    heading: (level, text, id) =>
      `<h${level} id="_${id.replaceAll("-", "_")}"><a class="anchor" href="#_${id.replaceAll("-", "_")}"></a>${text}</h${level}>`,
    code: (language, code) =>
      `<div class="listingblock"><div class="content"><pre class="highlightjs highlight"><code${language ? ` class="language-${language} hljs" data-lang="${language}"` : ""}>${code}</code></pre></div></div>`,
    table: (head, rows) =>
      `<table class="tableblock frame-all grid-all stretch"><colgroup></colgroup><thead><tr>${head.map((cell) => `<th class="tableblock halign-left valign-top">${cell}</th>`).join("")}</tr></thead><tbody>${rows.map((row) => `<tr>${row.map((cell) => `<td class="tableblock halign-left valign-top"><p class="tableblock">${cell}</p></td>`).join("")}</tr>`).join("")}</tbody></table>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="Antora 3.1.14">`,
        `<body class="article"><header class="header"><nav class="navbar"><a class="navbar-item" href="/">${product}</a></nav></header><div class="body"><div class="nav-container" data-component="home"><aside class="nav"><div class="panels"><nav class="nav-menu">${list(navigation)}</nav></div></aside></div><main class="article"><div class="content"><article class="doc"><h1 class="page">${title}</h1>${body}</article></div></main></div></body>`,
      ),
  },
  {
    name: "mediawiki",
    extension: "",
    heading: (level, text, id) =>
      `<div class="mw-heading mw-heading${level}"><h${level} id="${id}">${text}</h${level}><span class="mw-editsection"><span class="mw-editsection-bracket">[</span><a href="#${id}" title="Edit section: ${text}"><span>edit</span></a><span class="mw-editsection-bracket">]</span></span></div>`,
    code: (language, code) =>
      `<div class="mw-highlight mw-highlight-lang-${language ?? "text"} mw-content-ltr" dir="ltr"><pre><span></span>${code.replace(keywords, '<span class="k">$1</span>')}\n</pre></div>`,
    table: (head, rows) =>
      `<table class="wikitable"><tbody><tr>${head.map((cell) => `<th>${cell}\n</th>`).join("")}</tr>${rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}\n</td>`).join("")}</tr>`).join("")}</tbody></table>`,
    page: ({ title, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="MediaWiki 1.44.2">`,
        `<body class="mediawiki ltr skin-vector"><div id="mw-page-base" class="noprint"></div><div id="content" class="mw-body" role="main"><h1 id="firstHeading" class="firstHeading mw-first-heading"><span class="mw-page-title-main">${title}</span></h1><div id="bodyContent" class="vector-body"><div id="mw-content-text" class="mw-body-content"><div class="mw-content-ltr mw-parser-output" lang="en" dir="ltr">${body}</div></div></div></div><div id="mw-navigation"><nav class="vector-menu">${list(navigation)}</nav></div></body>`,
      ),
  },
  {
    name: "confluence",
    extension: ".html",
    heading: (level, text, id) => `<h${level} id="${id}">${text}</h${level}>`,
    note: (content) =>
      `<div class="confluence-information-macro confluence-information-macro-information"><span class="aui-icon aui-icon-small aui-iconfont-info"></span><div class="confluence-information-macro-body"><p>${content}</p></div></div>`,
    code: (language, code) =>
      `<div class="code panel pdl" style="border-width: 1px;"><div class="codeContent panelContent pdl"><pre class="syntaxhighlighter-pre" data-syntaxhighlighter-params="brush: ${language ?? "text"}; gutter: false; theme: Confluence" data-theme="Confluence">${code}</pre></div></div>`,
    table: (head, rows) =>
      `<div class="table-wrap"><table class="confluenceTable"><tbody><tr>${head.map((cell) => `<th class="confluenceTh">${cell}</th>`).join("")}</tr>${rows.map((row) => `<tr>${row.map((cell) => `<td class="confluenceTd">${cell}</td>`).join("")}</tr>`).join("")}</tbody></table></div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        head,
        `<body class="theme-default aui-theme-default"><div id="page"><div id="main" class="aui-page-panel"><div id="main-header"><div id="breadcrumb-section"><ol id="breadcrumbs"><li class="first"><span><a href="/">${product}</a></span></li></ol></div><h1 id="title-heading" class="pagetitle"><span id="title-text">${title}</span></h1></div><div id="content" class="view"><div class="page-metadata">Created by <span class="author"> Docs Team</span></div><div id="main-content" class="wiki-content group">${body}</div><div class="pageSection group"><div class="pageSectionHeader"><h2 class="pageSectionTitle">Pages of this space:</h2></div>${list(navigation)}</div></div></div></div></body>`,
      ),
  },
  {
    name: "gitea-readme",
    extension: "",
    heading: (level, text, id) =>
      `<h${level} id="user-content-${id}" dir="auto">${text}<a class="anchor" aria-label="anchor" href="#${id}"></a></h${level}>`,
    code: (language, code) =>
      `<div class="code-block-container"><pre class="code-block"><code class="chroma language-${language ?? "text"} display">${lines(code, (line) => `<span class="line"><span class="cl">${line}\n</span></span>`, "")}</code></pre></div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="author" content="${product.toLowerCase()}">`,
        `<body><div class="full height"><nav id="navbar" aria-label="Navigation Bar"><a class="item" href="/">${product}</a></nav><div role="main" aria-label="${title}" class="page-content repository file list"><div class="ui container"><div id="readme" class="non-diff-file-content"><h4 class="file-header ui top attached header"><span>README.md</span></h4><div class="ui bottom attached table unstackable segment"><div class="file-view markup markdown"><h1 id="user-content-title">${title}</h1>${body}</div></div></div><div class="repo-files">${list(navigation)}</div></div></div></div></body>`,
      ),
  },
  {
    name: "slate",
    extension: ".html",
    heading: (level, text, id) => `<h${level} id='${id}'>${text}</h${level}>`,
    note: (content) => `<aside class="notice">${content}</aside>`,
    code: (language, code) =>
      `<div class="highlight"><pre class="highlight ${language ?? "plaintext"} tab-${language ?? "plaintext"}"><code>${code.replace(keywords, '<span class="k">$1</span>')}\n</code></pre></div>`,
    page: ({ title, head, navigation, body }) =>
      html(
        head,
        `<body class="index" data-languages="[]"><div class="toc-wrapper"><ul id="toc" class="toc-list-h1">${navigation}</ul></div><div class="page-wrapper"><div class="dark-box"></div><div class="content"><h1 id='top'>${title}</h1>${body}</div></div></body>`,
      ),
  },
  {
    name: "mdx",
    extension: ".md",
    isMarkdown: true,
    code: (_, code) => code,
    page: ({ body }) => body,
  },
];

const references: Markup[] = [
  {
    name: "rustdoc",
    extension: ".html",
    heading: (level, text, id) => `<h${level} id="${id}"><a class="doc-anchor" href="#${id}">§</a>${text}</h${level}>`,
    code: (language, code) =>
      `<div class="example-wrap"><pre class="${language === "rust" ? "rust rust-example-rendered" : `language-${language ?? "text"}`}"><code>${code.replace(keywords, '<span class="kw">$1</span>')}</code></pre></div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="rustdoc">`,
        `<body class="rustdoc mod"><nav class="sidebar"><div class="sidebar-crate"><h2><a href="/">${product}</a><span class="version">3.0.4</span></h2></div><div class="sidebar-elems">${list(navigation)}</div></nav><main><div class="width-limiter"><section id="main-content" class="content"><div class="main-heading"><h1>Module <span>${title}</span></h1></div><details class="toggle top-doc" open><summary class="hideme"><span>Expand description</span></summary><div class="docblock">${body}</div></details></section></div></main></body>`,
      ),
  },
  {
    name: "pkgsite",
    extension: "",
    heading: (level, text, id) =>
      `<h${level + 1} tabindex="-1" id="hdr-${id}" class="Documentation-functionHeader">${text} <a class="Documentation-idLink" href="#hdr-${id}" title="Go to ${text}" aria-label="Go to ${text}">¶</a></h${level + 1}>`,
    code: (language, code) =>
      language === "go"
        ? `<details tabindex="-1" id="example-package" class="Documentation-exampleDetails js-exampleContainer" open><summary class="Documentation-exampleDetailsHeader">Example</summary><div class="Documentation-exampleDetailsBody"><p>Code:</p><pre class="Documentation-exampleCode"><code class="language-go">${code}\n</code></pre></div></details>`
        : `<pre><code class="language-${language ?? "text"}">${code}</code></pre>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        head,
        `<body class="go-Main"><header class="go-Header"><a href="/">${product}</a></header><main class="go-Container"><div class="go-Content"><header class="UnitHeader"><h1 class="UnitHeader-titleHeading">${title}</h1></header><nav class="go-Main-nav go-Main-nav--sticky">${list(navigation)}</nav><article class="go-Main-article"><div class="UnitDetails-content"><div class="Documentation-content js-docContent"><section class="Documentation-overview">${body}</section></div></div></article></div></main></body>`,
      ),
  },
  {
    name: "javadoc-21",
    extension: ".html",
    text: (content) => `<div class="block">${content}</div>`,
    heading: (level, text, id) => `<h${level} id="${id}-heading">${text}</h${level}>`,
    code: (language, code) =>
      `<div class="snippet-container"><button class="copy snippet-copy" aria-label="Copy snippet"><span data-copied="Copied!">Copy</span><img src="/copy.png" alt="Copy snippet"></button><pre class="snippet"><code class="language-${language ?? "text"}">${code}\n</code></pre></div>`,
    table: (head, rows) =>
      `<div class="summary-table two-column-summary">${head.map((cell, at) => `<div class="table-header ${at ? "col-last" : "col-first"}">${cell}</div>`).join("")}${rows.map((row) => row.map((cell, at) => `<div class="${at ? "col-last" : "col-first"} even-row-color"><div class="block">${cell}</div></div>`).join("")).join("")}</div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="description" content="module"><meta name="generator" content="javadoc/ModuleWriterImpl">`,
        `<body class="module-declaration-page"><noscript><div>JavaScript is disabled on your browser.</div></noscript><div class="flex-box"><header role="banner" class="flex-header"><nav role="navigation"><div class="top-nav" id="navbar-top"><div class="about-language"><a href="/">${product} 3</a></div><ul id="navbar-top-firstrow" class="nav-list" title="Navigation">${navigation}</ul></div></nav></header><div class="flex-content"><main role="main"><div class="header"><h1 title="${title}" class="title">${title}</h1></div><section class="module-description" id="module-description">${body}</section></main><footer role="contentinfo"><hr><p class="legal-copy"><small>Copyright</small></p></footer></div></div></body>`,
      ),
  },
  {
    name: "typedoc",
    extension: ".html",
    heading: (level, text, id) =>
      `<h${level} id="${id}" class="tsd-anchor-link">${text}<a href="#${id}" aria-label="Permalink" class="tsd-anchor-icon"><svg viewBox="0 0 24 24" aria-hidden="true"></svg></a></h${level}>`,
    code: (language, code) =>
      `<pre><code class="${language ?? "text"}">${lines(code, (line) => `<span class="hl-1">${line}</span>`, "<br/>")}</code><button type="button">Copy</button></pre>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<script defer src="/assets/main.js"></script>`,
        `<body><script>document.documentElement.dataset.theme = "os";</script><header class="tsd-page-toolbar"><div class="tsd-toolbar-contents container"><a href="/" class="title">${product}</a></div></header><div class="container container-main"><div class="col-content"><div class="tsd-page-title"><h1>${title}</h1></div><div class="tsd-panel tsd-typography">${body}</div></div><div class="col-sidebar"><nav class="tsd-navigation">${list(navigation)}</nav></div></div></body>`,
      ),
  },
  {
    name: "rdoc",
    extension: ".html",
    heading: (level, text, id) =>
      `<h${level} id="label-${id}">${text}<span><a href="#label-${id}">&para;</a> <a href="#top">&uarr;</a></span></h${level}>`,
    code: (language, code) =>
      `<pre class="${language ?? "text"}">${code.replace(keywords, '<span class="ruby-keyword">$1</span>')}\n</pre>`,
    page: ({ title, head, navigation, body }) =>
      html(
        head,
        `<body id="top" role="document" class="file"><nav id="navigation" role="navigation"><div id="project-navigation"><h3>Pages</h3><ul class="link-list">${navigation}</ul></div></nav><main role="main" aria-label="Page ${title}"><h1 id="label-top">${title}</h1>${body}</main></body>`,
      ),
  },
  {
    name: "yard",
    extension: ".html",
    heading: (level, text, id) => `<h${level} id="label-${id}">${text}</h${level}>`,
    code: (language, code) =>
      `<pre class="code ${language ?? "text"}"><code class="${language ?? "text"}">${code.replace(keywords, "<span class='kw'>$1</span>")}\n</code></pre>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        head,
        `<body><div class="nav_wrap"><div id="nav">${list(navigation)}</div></div><div id="main" tabindex="-1"><div id="header"><div id="menu"><a href="/">${product}</a> &raquo; <span class="title">File: ${title}</span></div></div><div id="content"><div id='filecontents'><h1 id="label-top">${title}</h1>${body}</div></div><div id="footer">Generated by yard 0.9.37.</div></div></body>`,
      ),
  },
  {
    name: "doxygen",
    extension: ".html",
    heading: (level, text, id) =>
      `<h${level} class="doxsection"><a class="anchor" id="autotoc_${id}"></a>\n${text}</h${level}>`,
    code: (_, code) =>
      `<div class="fragment">${lines(code, (line) => `<div class="line">${line.replace(keywords, '<span class="keyword">$1</span>')}</div>`)}</div><!-- fragment -->`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="Doxygen 1.14.0"/>`,
        `<body><div id="top"><div id="titlearea"><table cellspacing="0" cellpadding="0"><tbody><tr id="projectrow"><td id="projectalign"><div id="projectname">${product}<span id="projectnumber">&#160;3.0.4</span></div></td></tr></tbody></table></div></div><div id="side-nav">${list(navigation)}</div><div id="doc-content"><div><div class="header"><div class="headertitle"><h1 class="title">${title}</h1></div></div><div class="contents"><div class="textblock">${body}</div></div></div></div></body>`,
      ),
  },
  {
    name: "hexdocs",
    extension: ".html",
    heading: (level, text, id) =>
      `<h${level} id="${id}" class="section-heading"><a href="#${id}" class="hover-link"><i class="ri-link-m" aria-hidden="true"></i></a><span class="text">${text}</span></h${level}>`,
    note: (content) =>
      `<section role="note" class="admonition info"><h4 class="admonition-title info">Info</h4><p>${content}</p></section>`,
    code: (language, code) =>
      `<pre><code class="makeup ${language ?? "text"}" translate="no">${code.replace(keywords, '<span class="kn">$1</span>')}</code></pre>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="ExDoc v0.39.1"><meta name="project" content="${product} v3.0.4">`,
        `<body class="page-extra"><div class="body-wrapper"><nav id="sidebar" class="sidebar"><div class="sidebar-header"><a href="/">${product}</a></div><ul id="extras-full-list">${navigation}</ul></nav><output role="status" id="toast"></output><main class="content page-extra"><div id="content" class="content-inner"><div class="top-heading"><h1>${title}</h1></div>${body}</div></main></div></body>`,
      ),
  },
  {
    name: "pdoc",
    extension: ".html",
    heading: (level, text, id) => `<h${level} id="${id}">${text}</h${level}>`,
    code: (_, code) =>
      `<div class="pdoc-code codehilite">\n<pre><span></span><code>${code.replace(keywords, '<span class="kn">$1</span>')}\n</code></pre>\n</div>`,
    page: ({ title, product, head, navigation, body }) =>
      html(
        `${head}<meta name="generator" content="pdoc 15.0.4"/>`,
        `<body><nav class="pdoc"><label id="navtoggle" for="togglestate" class="pdoc-button"></label><div><a class="pdoc-button module-list-button" href="/">${product}</a>${list(navigation)}</div></nav><main class="pdoc"><section class="module-info"><h1 class="modulename">${title}</h1><div class="docstring">${body}</div></section></main></body>`,
      ),
  },
];

/** The markups of the second round. */
export const secondMarkups: Markup[] = [...guides, ...references];
