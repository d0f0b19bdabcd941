import type { Friction } from "../../../src/grading/grade.ts";
import { answer, filler, goal, html, type PageCase } from "./case.ts";

const text = "<p>To rotate an API key, give its name. Clients get the new one at their next call.</p>";
const sample = "<pre>fjord key rotate --name ci</pre>";
const topics = ["Buckets", "Regions", "Quotas", "Tickets", "Mirrors"];
const entries = topics.map((name) => `<li><a href="/p/${name}">${name}</a></li>`).join("");
const forAll = (name: string, finds: Friction["category"][], page: () => string): PageCase => ({
  name,
  pages: { "/keys": page() },
  missing: page,
  finds,
});

/** Pages that were written after the rules, and measured once before anything was mended. */
export const freshCases: PageCase[] = [
  {
    name: "Asciidoctor with its contents in a div",
    pages: {
      "/keys": `<!DOCTYPE html><html lang="en"><head><meta charset="UTF-8"><title>Keys</title></head><body class="book toc2 toc-left"><div id="header"><h1>Keys</h1><div id="toc" class="toc2"><div id="toctitle">Table of Contents</div><ul class="sectlevel1"><li><a href="#_create">Create</a></li><li><a href="#_rotate">${goal}</a></li><li><a href="#_end">The end</a></li></ul></div></div><div id="content"><div class="sect1"><h2 id="_create">Create</h2><div class="paragraph"><p>Ask for one.</p></div></div><div class="sect1"><h2 id="_rotate">${goal}</h2><div class="sectionbody"><div class="paragraph">${text}</div><div class="listingblock"><div class="content">${sample}</div></div></div></div><div class="sect1"><h2 id="_end">The end</h2><p>That is all.</p></div></div></body></html>`,
    },
    reads: "/keys",
  },
  {
    name: "rustdoc",
    pages: {
      "/keys": `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>rotate in fjord::keys - Rust</title><script>if(window.location.protocol!=="file:")document.head.insertAdjacentHTML("beforeend","x")</script><script defer src="/static.files/main.js"></script></head><body class="rustdoc fn"><nav class="sidebar"><div class="sidebar-crate"><h2><a href="/">fjord</a></h2></div></nav><main><section id="main-content" class="content"><h1>${goal}</h1><pre class="rust item-decl"><code>pub fn rotate(name: &amp;str)</code></pre><details class="toggle top-doc" open><div class="docblock">${text}</div></details></section></main></body></html>`,
    },
    reads: "/keys",
  },
  {
    name: "pydoc in nested tables, without quotes",
    pages: {
      "/keys": `<html><head><title>Python: module fjord.keys</title></head><body bgcolor=#f0f0f8><table width=100% cellspacing=0><tr bgcolor=#7799ee><td valign=bottom><big><strong>fjord.keys</strong></big></td><td align=right><a href=/>index</a></td></tr></table><table width=100%><tr><td colspan=3><h2>${goal}</h2></td></tr><tr><td><tt>To rotate an API key, give its name.</tt><table><tr><td>${sample}</td></tr></table></td></tr></table></body></html>`,
    },
    reads: "/keys",
  },
  {
    name: "texinfo with a navigation line",
    pages: {
      "/keys": `<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN"><html><!-- Created by GNU Texinfo --><head><title>Keys (Fjord)</title></head><body lang="en"><div class="section"><div class="header"><p>Next: <a href="/p/Quotas" rel="next">Quotas</a>, Previous: <a href="/p/Regions" rel="prev">Regions</a>, Up: <a href="/" rel="up">Top</a></p></div><hr><h3 class="section">4.1 ${goal}</h3>${text}<div class="example">${sample}</div></div></body></html>`,
    },
    reads: "/keys",
  },
  {
    name: "GitHub's rendering of a README",
    pages: {
      "/keys": html(
        "fjord/README.md",
        `<div id="readme"><article class="markdown-body entry-content"><h1 id="user-content-fjord">Fjord</h1><p>See <a href="#rotate">below</a>.</p>${filler(2)}<h2 id="user-content-rotate">${goal}</h2>${text}${sample}</article></div><script src="/assets/behaviors.js"></script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "WebForms, the whole page in a form",
    pages: {
      "/keys": `<!DOCTYPE html><html><head id="Head1"><title>Keys</title></head><body><form method="post" action="./keys" id="aspnetForm"><input type="hidden" name="__VIEWSTATE" value="x" /><div id="content"><h1>Keys</h1><h2>${goal}</h2>${text}${sample}</div></form></body></html>`,
    },
    reads: "/keys",
  },
  {
    name: "custom elements with server-rendered text",
    pages: {
      "/keys": html(
        "Keys",
        `<app-shell><doc-page><h1>${goal}</h1>${text}<code-block>${sample}</code-block></doc-page></app-shell><script type="module" src="/app.js"></script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "head with a comment, a template and no end",
    pages: {
      "/keys": `<!doctype html><html><head><!-- <body> --><title>Keys</title><template><h1>no</h1></template><style>h1{}</style><h1>Keys</h1>${answer()}`,
    },
    reads: "/keys",
  },
  {
    name: "link to the dashboard in the text",
    pages: {
      "/keys": html(
        "Keys",
        `<main><h1>${goal}</h1><p>Open the <a href="/login">dashboard</a> and choose Rotate, or run this:</p>${sample}</main>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "German page about the answer",
    pages: {
      "/keys": html("Schlüssel", `<article><h1>${goal}</h1><p>Nennen Sie den Namen.</p>${sample}</article>`, "", "de"),
    },
    reads: "/keys",
  },
  forAll("soft 404, Korean", ["silent_failure"], () =>
    html("Fjord", `<main><h1>앗!</h1><p>요청하신 내용을 찾지 못했습니다.</p><a href="/">홈으로</a></main>`, "", "ko"),
  ),
  forAll("soft 404, Polish, with a long list of pages", ["silent_failure"], () =>
    html("Fjord", `<main><h1>Ups</h1><p>Pod tym adresem nic nie ma.</p><ul>${entries}${entries}</ul></main>`, "", "pl"),
  ),
  forAll("soft 404 with a poem", ["silent_failure"], () =>
    html(
      "Fjord",
      `<main><h1>Lost at sea</h1>${"<p>The wind went round, the chart was wet, the harbour was not there, and we are sailing yet.</p>".repeat(9)}</main>`,
    ),
  ),
  {
    name: "soft 404 with a number of the request",
    pages: { "/keys": html("Fjord", "<h1>Hm.</h1><p>Nope. Reference 8c1f04aa2b, at 12:04.</p>") },
    missing: () => html("Fjord", "<h1>Hm.</h1><p>Nope. Reference 77ab01c3f9, at 12:05.</p>"),
    finds: ["silent_failure"],
  },
  forAll("wall with two SSO buttons, Dutch", ["auth"], () =>
    html(
      "Fjord",
      `<div class="box"><img src="/logo.svg" alt="Fjord"><h2>Inloggen</h2><form action="/auth/github" method="post"><button>GitHub</button></form><form action="/auth/gitlab" method="post"><button>GitLab</button></form></div>`,
      "",
      "nl",
    ),
  ),
  forAll("wall of an access proxy", ["auth"], () =>
    html(
      "Sign in ・ Access",
      `<div id="root"><h1>Fjord Docs</h1><p>Get a login code emailed to you</p><form method="post" action="/cdn-cgi/access/callback"><input type="email" name="email" placeholder="Email"><input type="hidden" name="s" value="1"><button>Send me a code</button></form></div>`,
    ),
  ),
  forAll("wall with passkey and password, Italian", ["auth"], () =>
    html(
      "Accedi",
      `<main><h1>Accedi</h1><form method="post" action="/s"><input name="e"><input type="PASSWORD" name="p"><button>Avanti</button></form></main>`,
      "",
      "it",
    ),
  ),
  forAll("challenge with a spinner", ["auth"], () =>
    html(
      "One moment",
      `<div class="spinner"></div><p>Verifying that you are human.</p><div class="widget" data-sitekey="0x4AAA"></div><script src="https://widgets.invalid/turn.js" async></script>`,
    ),
  ),
  {
    name: "shell of a design with many empty boxes",
    pages: {
      "/keys": html(
        "Fjord",
        `<div id="header"></div><div id="sidebar"></div><div id="content"></div><script src="/runtime.js"></script><script src="/main.js"></script>`,
      ),
    },
    finds: ["unreadable_page"],
  },
  {
    name: "shell with a menu of the server in a list",
    pages: {
      "/keys": html("Fjord", `<ul class="menu">${entries}</ul><div id="page"></div><script src="/main.js"></script>`),
    },
    finds: ["unreadable_page"],
  },
  {
    name: "meta refresh with delay 3 and a sentence",
    pages: {
      "/keys": html(
        "Moved",
        `<p>This page has moved to <a href="/k2">a new place</a>.</p>`,
        `<meta http-equiv="refresh" content="3; URL=/k2">`,
      ),
      "/k2": html("Keys", answer()),
    },
    reads: "/k2",
  },
  {
    name: "location in a function that is called on load",
    pages: {
      "/keys": `<html><head><script>function go(){ window.location.href = "k2"; } window.onload = go;</script></head><body></body></html>`,
      "/k2": html("Keys", answer()),
    },
    reads: "/k2",
  },
  {
    name: "top.location in a frame breaker, with text",
    pages: { "/keys": html("Keys", `<script>if (top !== self) top.location = "/elsewhere"</script>${answer()}`) },
    reads: "/keys",
  },
  {
    name: "meta refresh in noscript of a full page",
    pages: {
      "/keys": html("Keys", answer(), `<noscript><meta http-equiv="refresh" content="0; url=/plain"></noscript>`),
      "/plain": html("Keys", answer()),
    },
    reads: "/keys",
  },
  {
    name: "Shift_JIS by its header",
    pages: {
      "/keys": {
        type: "text/html; charset=Shift_JIS",
        body: new Uint8Array([
          ...new TextEncoder().encode(`<title>Keys</title>${answer()}<p>`),
          0x83,
          0x4c,
          0x81,
          0x5b,
          0x83,
          0x4c,
          0x81,
          0x5b,
        ]),
      },
    },
    reads: "/keys",
  },
  {
    name: "UTF-8 declared by nothing",
    pages: { "/keys": { type: "text/html", body: `<title>Keys</title>${answer()}<p>Żółć, łódź, gęś, jaźń.</p>` } },
    reads: "/keys",
  },
  {
    name: "Markdown as a download",
    pages: {
      "/keys": {
        type: "application/x-download",
        body: `# ${goal}\n\nGive its name.\n\n\`\`\`bash\nfjord key rotate\n\`\`\`\n`,
      },
    },
    finds: ["unreadable_page"],
  },
  {
    name: "Markdown as text/x-markdown",
    pages: {
      "/keys": {
        type: "text/x-markdown",
        body: `# ${goal}\n\nTo rotate an API key, give its name.\n\n\`\`\`bash\nfjord key rotate\n\`\`\`\n`,
      },
    },
    reads: "/keys",
  },
  {
    name: "screenshot instead of the command",
    pages: {
      "/keys": html(
        "Keys",
        `<main><h1>Keys</h1>${filler(4)}<h2>${goal}</h2><p>To rotate an API key, run this in your terminal:</p><figure><img src="/i/rotate.png" alt="Terminal"></figure><h2>Limits</h2>${filler(2)}</main>`,
      ),
    },
    finds: ["unreadable_page", "broken_sample"],
  },
  {
    name: "tabs whose panels are loaded when they are opened",
    pages: {
      "/keys": html(
        "Keys",
        `<main><h1>Keys</h1><h2>${goal}</h2>${text}<div role="tablist"><button role="tab" aria-selected="true">Ruby</button><button role="tab">Shell</button></div><div role="tabpanel"></div></main><script src="/tabs.js"></script>`,
      ),
    },
    finds: ["unreadable_page", "broken_sample"],
  },
];
