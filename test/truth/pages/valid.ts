import { answer, filler, html, type PageCase } from "./case.ts";

const names = ["Parcels", "Labels", "Couriers", "Webhooks", "Refunds", "Depots", "Pallets", "Customs"];
const links = (before = "/p/") => names.map((name) => `<li><a href="${before}${name}">${name}</a></li>`).join("");
const sample = "<pre>skiff keys rotate key_123</pre>";
const words = "<p>To rotate an API key, pass its ID. The old key stays valid for one hour.</p>";

/** Shapes of pages as generators write them; each is valid HTML that a browser shows. */
export const validCases: PageCase[] = [
  {
    name: "no </head>, as RDoc writes it",
    pages: {
      "/keys": `<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="UTF-8">\n<title>class Skiff::Keys</title>\n<script src="/js/navigation.js" defer></script>\n<link href="/css/rdoc.css" rel="stylesheet">\n\n<body id="top" role="document" class="class">\n<nav id="navigation" role="navigation"><div id="project-navigation"><h2><a href="/">Home</a></h2></div></nav>\n<main role="main"><h1 id="class-Keys" class="class">class Skiff::Keys</h1>${answer("h3")}</main>\n</body></html>`,
    },
    reads: "/keys",
  },
  {
    name: "no head, body or html tags at all",
    pages: { "/keys": `<!doctype html>\n<title>Keys</title>\n<meta charset=utf-8>\n<h1>Keys</h1>\n${answer()}` },
    reads: "/keys",
  },
  {
    name: "head ended by its first paragraph",
    pages: { "/keys": `<html><head><title>Keys</title><script>var x = 1</script>\n<h1>Keys</h1>${answer()}` },
    reads: "/keys",
  },
  {
    name: "javadoc with a banner of links",
    pages: {
      "/keys": html(
        "Keys (Skiff 3)",
        `<div class="flex-box"><header role="banner" class="flex-header"><div class="top-nav" id="navbar-top"><ul id="navbar-top-firstrow" class="nav-list">${links()}</ul></div></header><div class="flex-content"><main role="main"><div class="header"><h1 title="Class Keys" class="title">Class Keys</h1></div><section class="detail" id="rotate(java.lang.String)"><h3>Rotate an API key</h3><div class="member-signature"><span class="return-type">void</span> <span class="element-name">rotate</span></div><div class="block">To rotate an API key, pass its ID.</div>${sample}</section></main></div></div><script src="/script.js"></script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "doxygen with tabs in divs",
    pages: {
      "/keys": `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "https://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">\n<html xmlns="http://www.w3.org/1999/xhtml" lang="en-US"><head><meta http-equiv="Content-Type" content="text/xhtml;charset=UTF-8"/><title>libskiff: Keys</title><script type="text/javascript" src="jquery.js"></script></head><body><div id="top"><div id="titlearea"><table cellspacing="0"><tbody><tr><td id="projectalign"><div id="projectname">libskiff</div></td></tr></tbody></table></div><div id="main-nav"><ul>${links()}</ul></div></div><div class="header"><div class="headertitle"><div class="title">Keys</div></div></div><div class="contents"><div class="textblock"><h1><a class="anchor" id="rotate"></a>Rotate an API key</h1>${words}<div class="fragment"><div class="line">skiff_rotate(key);</div></div>${sample}</div></div></body></html>`,
    },
    reads: "/keys",
  },
  {
    name: "man page in HTML 3.2, capital tags",
    pages: {
      "/keys": `<HTML><HEAD><TITLE>SKIFF-KEYS(1)</TITLE></HEAD><BODY>\n<H1>SKIFF-KEYS</H1>\nSection: User Commands (1)<BR><A HREF="#index">Index</A>\n<A HREF="/">Return to Main Contents</A><HR>\n<A NAME="lbAB">&nbsp;</A>\n<H2>NAME</H2>\nskiff-keys - manage keys\n<A NAME="lbAC">&nbsp;</A>\n<H2>Rotate an API key</H2>\nTo rotate an API key, pass its ID.\n<P>\n<PRE>\nskiff keys rotate key_123\n</PRE>\n<HR>\n<A NAME="index">&nbsp;</A><H2>Index</H2>\n<DL>\n<DT><A HREF="#lbAB">NAME</A><DD>\n<DT><A HREF="#lbAC">Rotate an API key</A><DD>\n</DL>\n</BODY></HTML>`,
    },
    reads: "/keys",
  },
  {
    name: "DocBook chunk",
    pages: {
      "/keys": `<html><head><meta http-equiv="Content-Type" content="text/html; charset=ISO-8859-1"><title>Chapter 4. Keys</title><link rel="home" href="/" title="Skiff"></head><body bgcolor="white"><div class="navheader"><table width="100%"><tr><th colspan="3" align="center">Chapter 4. Keys</th></tr><tr><td align="left"><a accesskey="p" href="/p/Labels">Prev</a></td><td align="right"><a accesskey="n" href="/p/Depots">Next</a></td></tr></table><hr></div><div class="sect1"><div class="titlepage"><div><div><h2 class="title"><a name="rotate"></a>Rotate an API key</h2></div></div></div>${words}<pre class="programlisting">skiff keys rotate key_123</pre></div></body></html>`,
    },
    reads: "/keys",
  },
  {
    name: "frameset whose frame has the answer",
    pages: {
      "/keys": `<html><head><title>Skiff API</title></head><frameset cols="20%,80%"><frame src="/menu.html" name="menu"><frame src="/body.html" name="main"><noframes><p>No frames.</p></noframes></frameset></html>`,
      "/menu.html": html("Menu", `<ul>${links()}</ul>`),
      "/body.html": html("Keys", `<h1>Keys</h1>${answer()}`),
    },
    reads: "/body.html",
  },
  {
    name: "Notion export",
    pages: {
      "/keys": html(
        "Rotate an API key",
        `<article id="3f0a" class="page sans"><header><div class="page-header-icon"><span class="icon">K</span></div><h1 class="page-title">Rotate an API key</h1><p class="page-description"></p></header><div class="page-body"><p id="a1" class="">To rotate an API key, pass its ID.</p><pre id="a2" class="code"><code>skiff keys rotate key_123</code></pre><figure class="link-to-page"><a href="/p/Labels">Labels</a></figure></div></article><span class="sans" style="font-size:14px"></span>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "short page in a mount point with scripts",
    pages: {
      "/keys": html(
        "Keys",
        `<div id="__next"><h1>Rotate an API key</h1><p>Pass its ID.</p><pre><code class="language-bash">skiff keys rotate key_123</code></pre></div><script src="/_next/static/main.js"></script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "short index in a mount point that leads to the answer",
    pages: {
      "/keys": html(
        "Keys",
        `<div id="app"><h1>Keys</h1><ul><li><a href="/keys/create">Create a key</a></li><li><a href="/keys/rotate">Rotate an API key</a></li><li><a href="/keys/revoke">Revoke a key</a></li></ul></div><script type="module" src="/assets/app.js"></script>`,
      ),
      "/keys/create": html("Create", "<h1>Create</h1><p>Call create with a name for it.</p>"),
      "/keys/rotate": html("Rotate an API key", `<h1>Rotate an API key</h1>${words}${sample}`),
      "/keys/revoke": html("Revoke", "<h1>Revoke</h1><p>Call revoke with its number.</p>"),
    },
    reads: "/keys/rotate",
  },
  {
    name: "Sphinx, its menu in a div",
    pages: {
      "/keys": html(
        "Keys — Skiff",
        `<div class="document"><div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main"><section id="keys"><h1>Keys<a class="headerlink" href="#keys" title="Link to this heading">¶</a></h1>${filler(3)}<section id="rotate"><h2>Rotate an API key<a class="headerlink" href="#rotate">¶</a></h2>${words}<div class="highlight-bash notranslate"><div class="highlight"><pre><span></span>skiff keys rotate key_123</pre></div></div></section></section></div></div></div><div class="sphinxsidebar" role="navigation" aria-label="Main"><div class="sphinxsidebarwrapper"><h3>Navigation</h3><ul>${links()}</ul></div></div></div><script src="_static/doctools.js"></script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "Swagger page, rendered by the server",
    pages: {
      "/keys": html(
        "Skiff API",
        `<div id="swagger-ui"><section class="block"><h3 id="rotate">Rotate an API key</h3><span class="method">POST</span> <span class="path">/keys/{id}/rotate</span>${words}<pre class="microlight">skiff keys rotate key_123</pre></section></div><script src="/swagger-ui-bundle.js"></script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "sign-up form below the text",
    pages: {
      "/keys": html(
        "Keys",
        `<main><h1>Keys</h1>${answer()}</main><form action="/newsletter" method="post"><label>Mail <input type="email" name="mail"></label><button>Subscribe</button></form>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "documents its own sign-in form",
    pages: {
      "/keys": html(
        "Sign in and rotate an API key",
        `<main><h1>Sign in</h1>${answer()}<h2>Demo</h2><form><input name="user"><input type="password"><button>Sign in</button></form></main>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "explains error 404",
    pages: {
      "/keys": html(
        "404 Not Found",
        `<main><h1>404 Not Found</h1><p>The API returns this status for an unknown key.</p><h2>Rotate an API key</h2>${words}${sample}</main>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "text in table cells, 1999",
    pages: {
      "/keys": `<html><title>Keys</title><body><table><tr><td width=150 valign=top><b>Menu</b><br>${names.map((name) => `<a href=/p/${name}>${name}</a><br>`).join("")}</td><td><h2>Rotate an API key</h2>To rotate an API key, pass its ID.<br>${sample}</td></tr></table></body></html>`,
    },
    reads: "/keys",
  },
  {
    name: "XHTML with self-closing tags",
    pages: {
      "/keys": {
        type: "application/xhtml+xml",
        body: `<?xml version="1.0" encoding="UTF-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Keys</title><script src="/a.js"/></head><body><h1>Keys</h1>${answer()}<a id="end"/></body></html>`,
      },
    },
    reads: "/keys",
  },
  {
    name: "release note of three lines",
    pages: {
      "/keys": html(
        "Rotate an API key",
        `<article><h1>Rotate an API key</h1><p>Run <code>skiff keys rotate</code>:</p><pre>skiff keys rotate key_123</pre></article>`,
        `<script async src="https://stats.invalid/s.js"></script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "Markdown as plain text",
    pages: {
      "/keys": {
        type: "text/plain",
        body: "# Keys\n\n## Rotate an API key\n\nTo rotate an API key, pass its ID.\n\n```bash\nskiff keys rotate key_123\n```\n",
      },
    },
    reads: "/keys",
  },
];
