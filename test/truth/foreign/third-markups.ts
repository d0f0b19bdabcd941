import { capital, type Markup } from "./site.ts";
import { byClass, documentOf, highlight, lines, list, rich } from "./third-html.ts";
import { thirdReferenceMarkups } from "./third-reference-markups.ts";

const guides: Markup[] = [
  {
    name: "mintlify",
    extension: "",
    text: (content) => `<p>${content}</p>`,
    note: (content) =>
      `<div class="callout my-4 px-5 py-4 overflow-hidden rounded-2xl flex gap-3 border border-sky-200/80" data-callout-type="info"><div class="mt-0.5 w-4" data-component-part="callout-icon"><svg width="14" height="14" aria-label="Info"><path d="M7 1"></path></svg></div><div class="text-sm prose min-w-0 w-full" data-component-part="callout-content"><p>${content}</p></div></div>`,
    heading: (level, text, id) =>
      `<h${level} class="flex whitespace-pre-wrap group font-semibold" id="${id}"><div class="absolute" tabindex="-1"><a href="#${id}" class="-ml-10 flex items-center opacity-0 border-0 group-hover:opacity-100" aria-label="Navigate to header">​<div class="w-6 h-6"><svg viewBox="0 0 576 512"></svg></div></a></div><span class="cursor-pointer">${text}</span></h${level}>`,
    code: (language, code) =>
      `<div class="code-block mt-5 mb-8 not-prose rounded-2xl relative group" numberoflines="${code.split("\n").length}" language="${language ?? "text"}"><div class="absolute top-3 right-4 z-10" data-floating-buttons="true"><button class="h-[26px] w-[26px]" aria-label="Copy the contents from the code block"><svg></svg></button><button aria-label="Ask AI"><svg></svg></button></div><div class="w-0 min-w-full max-w-full py-3.5 px-4" data-component-part="code-block-root"><pre class="shiki shiki-themes github-light-default dark-plus" style="background-color:transparent" language="${language ?? "text"}"><code language="${language ?? "text"}" numberoflines="${code.split("\n").length}">${lines(code, (line) => `<span class="line">${highlight(line, (_, each) => `<span style="color:rgb(17, 99, 41);--shiki-dark:#CE9178">${each}</span>`)}</span>`)}\n</code></pre></div></div>`,
    tabs: (names, shown, panels) =>
      `<div class="tabs tabs tab-container"><ul class="not-prose mb-6 pb-[1px] flex-none" data-component-part="tabs-list" role="tablist">${names.map((name, at) => `<li class="cursor-pointer" role="tab" aria-selected="${at === shown}"><div class="flex" data-component-part="tab-button" data-active="${at === shown}">${name}</div></li>`).join("")}</ul>${panels.map((panel, at) => `<div role="tabpanel" class="prose"${at === shown ? "" : ' style="display:none"'} data-component-part="tab-content">${panel}</div>`).join("")}</div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<meta name="generator" content="Mintlify">`,
        `<body class="min-h-screen"><a href="#content-area" class="sr-only">Skip to main content</a><div id="navbar"><a href="/"><span class="sr-only">${product} home page</span></a><button type="button" id="search-bar-entry" aria-label="Open search"><div>Search...</div><span>⌘K</span></button><button id="assistant-entry">Ask AI</button></div><div id="sidebar-content"><div id="navigation-items"><div class="mt-6"><h5 id="sidebar-title">Documentation</h5><ul class="sidebar-group space-y-px">${navigation}</ul></div></div></div><div id="content-container"><div id="content-area"><header id="header"><div class="eyebrow">Documentation</div><h1 id="page-title" class="inline-block text-2xl">${title}</h1><div id="page-context-menu"><button aria-label="Copy page">Copy page</button></div></header><div class="mdx-content relative mt-8 prose" data-page-title="${title}" id="content">${body}</div><div class="feedback-toolbar"><p>Was this page helpful?</p><button><small>Yes</small></button><button><small>No</small></button></div><footer id="footer"><span>Powered by Mintlify</span></footer></div></div><script>(self.__next_f=self.__next_f||[]).push([0])</script></body>`,
        ' class="antialiased"',
      ),
  },
  {
    name: "vuepress-2",
    extension: ".html",
    heading: (level, text, id) =>
      `<h${level} id="${id}" tabindex="-1"><a class="header-anchor" href="#${id}"><span>${text}</span></a></h${level}>`,
    note: (content) =>
      `<div class="hint-container note"><p class="hint-container-title">Note</p><p>${content}</p></div>`,
    code: (language, code) =>
      `<div class="language-${language ?? "text"} line-numbers-mode" data-highlighter="prismjs" data-ext="${language ?? "text"}"><pre><code class="language-${language ?? "text"}">${lines(code, (line) => `<span class="line">${byClass(line, "token string", "token keyword", "token number")}</span>`)}\n</code></pre><div class="line-numbers" aria-hidden="true" style="counter-reset:line-number 0">${lines(code, () => `<div class="line-number"></div>`, "")}</div></div>`,
    tabs: (names, shown, panels) =>
      `<div class="vp-code-tabs"><div class="vp-code-tabs-nav" role="tablist">${names.map((name, at) => `<button type="button" class="vp-code-tab-nav${at === shown ? " active" : ""}" role="tab" aria-controls="codetab-${at}" aria-selected="${at === shown}">${name}</button>`).join("")}</div>${panels.map((panel, at) => `<div class="vp-code-tab${at === shown ? " active" : ""}" id="codetab-${at}" role="tabpanel" aria-expanded="${at === shown}"><div class="vp-code-tab-title">${names[at] ?? ""}</div>${panel}</div>`).join("")}</div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<meta name="generator" content="VuePress 2.0.0-rc.26">`,
        `<body><div id="app"><!--[--><div class="vp-theme-container"><!--[--><header class="vp-navbar" vp-navbar><a class="route-link vp-site-name" href="/">${product}</a><div class="vp-navbar-items-wrapper"><button class="vp-color-mode-button" type="button" title="toggle color mode"></button></div></header><aside class="vp-sidebar" vp-sidebar><ul class="vp-sidebar-items">${navigation}</ul></aside><main class="vp-page"><div vp-content><h1 id="${title}" tabindex="-1"><a class="header-anchor" href="#"><span>${title}</span></a></h1>${body}</div><footer class="vp-page-meta"><div class="vp-meta-item last-updated"><span class="meta-item-label">Last Updated: </span><time>11/2/2026</time></div></footer></main></div><!--]--></div><script type="module" src="/assets/app.js" defer></script></body>`,
      ),
  },
  {
    name: "zensical",
    extension: "/",
    heading: (level, text, id) =>
      `<h${level} id="${id}">${text}<a class="headerlink" href="#${id}" title="Permanent link">&para;</a></h${level}>`,
    note: (content) => `<div class="admonition note">\n<p class="admonition-title">Note</p>\n<p>${content}</p>\n</div>`,
    code: (language, code) =>
      `<div class="language-${language ?? "text"} highlight"><table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre><span></span>${lines(code, (_, at) => `<span class="normal"><a href="#__codelineno-${at}">${String(at).padStart(2)}</a></span>`)}</pre></div></td><td class="code"><div><pre id="__code_0"><span></span><button class="md-clipboard md-icon" title="Copy to clipboard" data-clipboard-target="#__code_0 > code"></button><code>${lines(code, (line, at) => `<a id="__codelineno-${at}" name="__codelineno-${at}"></a>${byClass(line, "s2", "kn", "mi")}`)}\n</code></pre></div></td></tr></table></div>`,
    tabs: (names, shown, panels) =>
      `<div class="tabbed-set tabbed-alternate" data-tabs="1:${names.length}">${names.map((_, at) => `<input${at === shown ? ' checked="checked"' : ""} id="__tabbed_1_${at + 1}" name="__tabbed_1" type="radio" />`).join("")}<div class="tabbed-labels">${names.map((name, at) => `<label for="__tabbed_1_${at + 1}">${name}</label>`).join("")}</div><div class="tabbed-content">${panels.map((panel) => `<div class="tabbed-block">${panel}</div>`).join("")}</div></div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<meta name="generator" content="zensical-0.0.24">`,
        `<body dir="ltr" data-md-color-scheme="default"><input class="md-toggle" data-md-toggle="drawer" type="checkbox" id="__drawer" autocomplete="off"><div data-md-component="skip"><a href="#top" class="md-skip">Skip to content</a></div><header class="md-header"><nav class="md-header__inner md-grid" aria-label="Header"><a href="/" class="md-header__button md-logo" aria-label="${product}">${product}</a><div class="md-search" data-md-component="search" role="dialog"><form class="md-search__form" name="search"><input type="text" class="md-search__input" name="query" aria-label="Search" placeholder="Search"></form></div></nav></header><div class="md-container"><main class="md-main"><div class="md-main__inner md-grid"><div class="md-sidebar md-sidebar--primary"><nav class="md-nav md-nav--primary" aria-label="Navigation"><ul class="md-nav__list">${navigation}</ul></nav></div><div class="md-content" data-md-component="content"><article class="md-content__inner md-typeset"><h1 id="top">${title}</h1>${body}<aside class="md-source-file"><span class="md-source-file__fact">November 4, 2026</span></aside><form class="md-feedback" name="feedback" hidden><fieldset><legend class="md-feedback__title">Was this page helpful?</legend></fieldset></form></article></div></div></main><footer class="md-footer"><div class="md-copyright">Made with Zensical</div></footer></div></body>`,
        ' class="no-js"',
      ),
  },
  {
    name: "hextra",
    extension: "/",
    heading: (level, text, id) =>
      `<h${level}>${text}<span class="hx:absolute hx:-mt-20" id="${id}"></span><a href="#${id}" class="subheading-anchor" aria-label="Permalink for this section"></a></h${level}>`,
    note: (content) =>
      `<div class="hx:overflow-x-auto hx:mt-6 hx:flex hx:rounded-lg hx:border hextra-callout" data-hx-callout><div class="hx:py-2 hx:select-none"><svg height="1.2em"></svg></div><div class="hx:w-full hx:min-w-0"><div class="hx:mt-6"><p>${content}</p></div></div></div>`,
    code: (language, code) =>
      `<div class="hextra-code-block hx:relative hx:mt-6 hx:first:mt-0 hx:group/code">\n<div><div class="highlight"><div class="chroma">\n<table class="lntable"><tr><td class="lntd">\n<pre tabindex="0" class="chroma"><code>${lines(code, (_, at) => `<span class="lnt">${at}\n</span>`, "")}</code></pre></td>\n<td class="lntd">\n<pre tabindex="0" class="chroma"><code class="language-${language ?? "text"}" data-lang="${language ?? "text"}">${lines(code, (line) => `<span class="line"><span class="cl">${byClass(line, "s2", "kd", "mi")}\n</span></span>`, "")}</code></pre></td></tr></table>\n</div>\n</div></div><div class="hextra-code-copy-btn-container"><button class="hextra-code-copy-btn" aria-label="Copy code"><div class="hextra-copy-icon"></div></button></div></div>`,
    tabs: (names, shown, panels) =>
      `<div class="hextra-scrollbar"><div class="hx:mt-4 hx:flex" role="tablist">${names.map((name, at) => `<button class="hextra-tabs-toggle" role="tab" type="button" aria-controls="tabs-panel-${at}" aria-selected="${at === shown}">${name}</button>`).join("")}</div></div><div>${panels.map((panel, at) => `<div class="hextra-tabs-panel${at === shown ? "" : " hx:hidden"}" id="tabs-panel-${at}" role="tabpanel" tabindex="0">${panel}</div>`).join("")}</div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<meta name="generator" content="Hugo 0.152.2">`,
        `<body dir="ltr"><div class="hextra-nav-container hx:sticky"><nav class="hextra-max-navbar-width"><a class="hx:flex" href="/"><span class="hx:mr-2 hx:font-extrabold" title="${product}">${product}</span></a><div class="hextra-search-wrapper"><input placeholder="Search..." class="hextra-search-input" type="search"></div></nav></div><div class="hx:mx-auto hx:flex hextra-max-page-width"><aside class="hextra-sidebar-container"><div class="hextra-scrollbar">${list(navigation)}</div></aside><article class="hx:w-full hx:break-words"><main class="hx:w-full hx:min-w-0"><div class="hx:mt-1.5 hx:flex hx:items-center"><div class="hx:whitespace-nowrap hx:font-medium">${title}</div></div><div class="content"><h1>${title}</h1>${body}</div><div class="hx:mt-12 hx:mb-8 hx:block hx:text-xs">Last updated on <time datetime="2026-10-07T00:00:00.000Z">October 7, 2026</time></div></main></article></div><footer class="hextra-footer"><div>Powered by Hextra</div></footer></body>`,
      ),
  },
  {
    name: "nuxt-content",
    extension: "",
    text: (content) => `<p class="my-5 leading-7 text-pretty"><!--[-->${content}<!--]--></p>`,
    heading: (level, text, id) =>
      `<h${level} id="${id}" class="relative text-2xl text-highlighted font-bold mt-12 mb-6"><a href="#${id}" class="group lg:ps-2 lg:-ms-2"><span class="absolute -ms-8 top-1 opacity-0" aria-hidden="true"></span><!--[-->${text}<!--]--></a></h${level}>`,
    code: (language, code) =>
      `<div class="relative my-5 group"><!----><button type="button" aria-label="Copy code to clipboard" class="rounded-md absolute top-[11px] right-[11px] lg:opacity-0"><span class="iconify" aria-hidden="true"></span></button><pre class="group font-mono text-sm/6 border language-${language ?? "text"} shiki shiki-themes material-theme-lighter" style=""><!--[--><code>${lines(code, (line, at) => `<span class="line" line="${at}">${highlight(line, (kind, each) => `<span class="${kind === "string" ? "sfazB" : "s7zQu"}">${each}</span>`)}\n</span>`, "")}</code><!--]--></pre></div>`,
    tabs: (names, shown, panels) =>
      `<div data-orientation="horizontal" dir="ltr" class="relative group *:not-first:!mt-1 my-5"><div role="tablist" aria-orientation="horizontal">${names.map((name, at) => `<button id="reka-tabs-trigger-${at}" role="tab" type="button" aria-selected="${at === shown}" data-state="${at === shown ? "active" : "inactive"}"><span class="truncate">${name}</span></button>`).join("")}</div>${panels.map((panel, at) => `<div role="tabpanel" data-state="${at === shown ? "active" : "inactive"}"${at === shown ? "" : ' style="display:none;"'}>${panel}</div>`).join("")}</div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<link rel="modulepreload" as="script" crossorigin href="/_nuxt/entry.js">`,
        `<body><div id="__nuxt"><div class="isolate"><header class="bg-default/75 sticky top-0"><div class="flex"><a href="/" aria-label="${product}">${product}</a></div></header><main class="min-h-screen"><div class="flex flex-col lg:grid"><aside class="hidden lg:block"><nav><ul class="isolate space-y-1.5">${navigation}</ul></nav></aside><div class="lg:col-span-8"><div class="relative border-b border-default py-8"><div class="flex flex-col lg:flex-row"><h1 class="text-3xl sm:text-4xl text-pretty font-bold">${title}</h1></div></div><div class="mt-8 pb-24 space-y-12"><div class="prose"><div>${body}</div></div></div></div></div></main></div></div><script type="application/json" data-nuxt-data="nuxt-app" data-ssr="true" id="__NUXT_DATA__">[["Reactive",1],{"data":2},{}]</script><script>window.__NUXT__={}</script></body>`,
      ),
  },
  {
    name: "wordpress",
    extension: "/",
    heading: (level, text, id) =>
      `\n<h${level} class="wp-block-heading" id="${id}"><span class="ez-toc-section" id="toc-${id}"></span>${text}<span class="ez-toc-section-end"></span></h${level}>\n`,
    note: (content) =>
      `\n<div class="wp-block-group has-background"><div class="wp-block-group__inner-container is-layout-flow">\n<p class="has-small-font-size">${content}</p>\n</div></div>\n`,
    code: (language, code) =>
      `\n<pre class="wp-block-code"><code class="language-${language ?? "none"} line-numbers">${code}</code></pre>\n`,
    table: (head, rows) =>
      `\n<figure class="wp-block-table is-style-stripes"><table class="has-fixed-layout"><thead><tr>${head.map((cell) => `<th>${cell}</th>`).join("")}</tr></thead><tbody>${rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join("")}</tr>`).join("")}</tbody></table></figure>\n`,
    tabs: (names, _shown, panels) =>
      panels.map((panel, at) => `\n<p><strong>${names[at] ?? ""}</strong></p>\n${panel}`).join(""),
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<meta name="generator" content="WordPress 6.9"><style id="wp-block-library-inline-css">:root{--wp-admin-theme-color:#007cba}</style>`,
        `<body class="wp-singular epkb_post_type_1-template-default single wp-embed-responsive"><a class="skip-link screen-reader-text" href="#content">Skip to content</a><header id="masthead" class="site-header"><p class="site-title"><a href="/" rel="home">${product}</a></p><nav id="site-navigation"><ul id="primary-menu" class="menu">${navigation}</ul></nav><form role="search" method="get" class="search-form" action="/"><label><span class="screen-reader-text">Search for:</span><input type="search" class="search-field" placeholder="Search …" value="" name="s"></label><input type="submit" class="search-submit" value="Search"></form></header><div id="content" class="site-content"><main id="main" class="site-main"><article class="epkb_post_type_1 type-epkb_post_type_1 status-publish hentry"><header class="entry-header"><h1 class="entry-title">${title}</h1><div class="entry-meta"><span class="posted-on"><time class="entry-date published">September 9, 2026</time></span><span class="byline"> by <span class="author vcard">Docs team</span></span></div></header><div class="entry-content">${body}</div><footer class="entry-footer"><span class="cat-links">Posted in Docs</span></footer></article><section class="widget widget_like"><h4>Was this article helpful?</h4><button>Yes</button><button>No</button></section></main></div><div id="cookie-law-info-bar" data-nosnippet="true" role="dialog"><span>We use cookies to make this site better. By clicking “Accept”, you consent to all of them.</span><button id="cookie_action_accept">Accept</button><button id="cookie_action_reject">Reject all</button></div><script id="wp-emoji-settings" type="application/json">{"source":{}}</script></body>`,
      ),
  },
  {
    name: "zendesk",
    extension: "",
    heading: (level, text, id) => `<h${level} id="h_${id}">${text}</h${level}>`,
    note: (content) => `<div class="callout callout--info"><p><strong>Note: </strong>${content}</p></div>`,
    code: (language, code) => `<pre><code class="language-${language ?? "plaintext"}">${code}</code></pre>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        `${head}<meta name="csrf-param" content="authenticity_token"><meta name="csrf-token" content="">`,
        `<body class=""><a class="skip-navigation" tabindex="1" href="#main-content">Skip to main content</a><header class="header"><div class="logo"><a title="Home" href="/"><span>${product} Help Center</span></a></div><div class="nav-wrapper-desktop"><nav class="user-nav" aria-label="User navigation"><ul class="user-nav-list"><li><span class="sign-in">Sign in</span></li></ul></nav></div></header><main role="main"><div class="container-divider"></div><div class="container"><div class="sub-nav"><nav aria-label="Current location"><ol class="breadcrumbs"><li title="${product}"><a href="/">${product}</a></li><li title="Developers"><span>Developers</span></li></ol></nav><form role="search" class="search" data-search="" action="/search" method="get"><input type="search" name="query" placeholder="Search" autocomplete="off" aria-label="Search"></form></div><div class="article-container" id="article-container"><aside class="article-sidebar" aria-labelledby="section-articles-title"><h2 class="collapsible-sidebar-title" id="section-articles-title">Articles in this section</h2>${list(navigation)}</aside><article id="main-content" class="article"><header class="article-header"><h1 title="${title}" class="article-title">${title}</h1><div class="article-author"><div class="article-meta"><ul class="meta-group"><li class="meta-data"><time datetime="2026-05-19T08:11:00Z" data-datetime="relative">6 months ago</time></li><li class="meta-data">Updated</li></ul></div></div></header><section class="article-info"><div class="article-content"><div class="article-body">${body}</div></div></section><footer><div class="article-votes"><h2 class="article-votes-question">Was this article helpful?</h2><div class="article-votes-controls" role="group"><button type="button" class="button article-vote">Yes</button><button type="button" class="button article-vote">No</button></div><small class="article-votes-count">12 out of 19 found this helpful</small></div></footer></article></div></div></main><footer class="footer"><div class="footer-inner">${product}</div></footer></body>`,
        ' dir="ltr"',
      ),
  },
  {
    name: "atlaskit",
    extension: "",
    text: (content) => `<p data-renderer-start-pos="2" data-local-id="">${content}</p>`,
    heading: (level, text, id) =>
      `<h${level} id="${id}" data-renderer-start-pos="40">${text}<span role="presentation" class="heading-anchor-wrapper"><button aria-label="Copy link to heading" type="button"></button></span></h${level}>`,
    note: (content) =>
      `<div class="ak-editor-panel" data-panel-type="info"><div class="ak-editor-panel__icon"><span role="img" aria-label="Panel info"></span></div><div class="ak-editor-panel__content"><p>${content}</p></div></div>`,
    code: (language, code) =>
      `<div class="code-block css-1b2d" data-local-id=""><span data-ds--code--code-block="" data-code-lang="${language ?? "text"}" style="display:flex;overflow-x:auto"><code class="language-${language ?? "text"}" style="white-space:pre">${lines(code, (line, at) => `<span data-testid="renderer-code-block-line-${at}" data-ds--code--row=""><span class="comment linenumber ds-line-number" data-ds--line-number="${at}"></span><span class="">${line}\n</span></span>`, "")}</code></span></div>`,
    table: (head, rows) =>
      `<div class="pm-table-container" data-layout="default"><div class="pm-table-wrapper"><table data-number-column="false"><colgroup>${head.map(() => '<col style="width:200px">').join("")}</colgroup><tbody><tr>${head.map((cell) => `<th rowspan="1" colspan="1" class="ak-renderer-tableHeader-sortable-column__wrapper"><p>${cell}</p></th>`).join("")}</tr>${rows.map((row) => `<tr>${row.map((cell) => `<td rowspan="1" colspan="1"><p>${cell}</p></td>`).join("")}</tr>`).join("")}</tbody></table></div></div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        head,
        `<body><div id="root"><header data-testid="top-nav"><a href="/">${product}</a></header><div id="app-layout"><nav data-testid="space-navigation" aria-label="Space">${list(navigation)}</nav><div id="content" role="main"><div class="page-header"><h1 id="title-text" data-test-id="title-text">${title}</h1><div data-testid="byline">Owned by Docs Guild · <span>Last updated: Oct 30, 2026</span> · <span>2 min read</span></div></div><div id="content-body"><div class="ak-renderer-wrapper"><div class="ak-renderer-document">${body}</div></div></div><div data-testid="reactions"><button aria-label="Add reaction"></button><span>Be the first to add a reaction</span></div></div></div></div></body>`,
      ),
  },
  {
    name: "retype-like",
    extension: "/",
    heading: (level, text, id) =>
      `<h${level} id="${id}" class="doc-anchor-target"><a class="docs-content-anchor" href="#${id}"><span class="hash">#</span></a><span>${text}</span></h${level}>`,
    code: (language, code) =>
      `<div class="codeblock-wrapper"><doc-codeblock><figure data-language="${capital(language ?? "text")}"><pre class="language-${language ?? "text"}"><code v-pre class="language-${language ?? "text"}">${byClass(code, "hljs-string", "hljs-keyword", "hljs-number")}</code></pre></figure></doc-codeblock></div>`,
    page: ({ title, product, head, navigation, body }) =>
      documentOf(
        head,
        `<body><div id="docs-app"><header id="docs-site-header"><a href="/">${product}</a></header><div class="flex"><aside id="docs-sidebar"><ul class="docs-sidebar-nav">${navigation}</ul></aside><main id="docs-content"><div class="docs-markdown"><h1 id="top">${title}</h1>${body}</div><nav class="docs-paging"></nav></main></div></div></body>`,
      ),
  },
  {
    name: "html4-upper",
    extension: ".htm",
    link: (text, href) => `<A HREF="${href}">${text}</A>`,
    text: (content) => `<P ALIGN=JUSTIFY>${content}`,
    note: (content) => `<BLOCKQUOTE><FONT COLOR="#990000"><B>N.B.</B></FONT> ${content}</BLOCKQUOTE>`,
    heading: (level, text, id) => `<A NAME="${id}"></A>\n<H${level}><FONT FACE="Arial">${text}</FONT></H${level}>`,
    code: (_, code) =>
      `<TABLE BGCOLOR="#EEEEEE" CELLPADDING=8 WIDTH="100%"><TR><TD><PRE>\n${code}\n</PRE></TD></TR></TABLE>`,
    table: (head, rows) =>
      `<TABLE BORDER=1 CELLSPACING=0 CELLPADDING=3>\n<TR>${head.map((cell) => `<TH BGCOLOR=silver>${cell}`).join("")}\n${rows.map((row) => `<TR>${row.map((cell) => `<TD>${cell}`).join("")}\n`).join("")}</TABLE>`,
    tabs: (names, _shown, panels) =>
      `<DL>${panels.map((panel, at) => `<DT><B>${names[at] ?? ""}</B><DD>${panel}`).join("\n")}</DL>`,
    page: ({ title, product, head, navigation, body }) =>
      `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN" "http://www.w3.org/TR/html4/loose.dtd">\n<HTML>\n<HEAD>\n${head}\n</HEAD>\n<BODY BGCOLOR=white TEXT=black LINK=blue>\n<TABLE WIDTH="100%" BORDER=0><TR VALIGN=TOP><TD WIDTH=160 BGCOLOR="#DDDDFF">\n<CENTER><A HREF="/"><IMG SRC="/logo.png" ALT="${product}" BORDER=0></A></CENTER>\n<UL>${navigation.replaceAll("li>", "LI>").replace(/<a href/g, "<A HREF")}</UL>\n</TD><TD>\n<H1>${title}</H1>\n<HR NOSHADE>\n${rich(body)}\n<HR>\n<ADDRESS>Comments to the webmaster. Best viewed with any browser.</ADDRESS>\n</TD></TR></TABLE>\n</BODY>\n</HTML>\n`,
  },
];

/** The markups of the third round. */
export const thirdMarkups: Markup[] = [...guides, ...thirdReferenceMarkups];
