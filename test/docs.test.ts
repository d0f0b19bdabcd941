import { describe, expect, test } from "bun:test";
import { isReadable, readPage } from "../src/agents/page.ts";

const at = "https://docs.test/guide/start.html";
const html = (body: string, head = "<title>T</title>") =>
  `<!doctype html><html lang="EN"><head>${head}</head><body>${body}</body></html>`;

/** Headings as generators write them. */
const headings: [generator: string, write: (text: string, id: string) => string][] = [
  ["Sphinx", (text, id) => `<h2>${text}<a class="headerlink" href="#${id}" title="Link to this heading">¶</a></h2>`],
  [
    "Docusaurus",
    (text, id) =>
      `<h2 id="${id}">${text}<a href="#${id}" class="hash-link" title="Direct link to ${text}">\u200b</a></h2>`,
  ],
  [
    "VitePress",
    (text, id) =>
      `<h2 id="${id}">${text} <a class="header-anchor" href="#${id}" aria-label="Permalink to &quot;${text}&quot;">\u200b</a></h2>`,
  ],
  [
    "GitHub",
    (text, id) =>
      `<div class="markdown-heading"><h2>${text}</h2><a id="user-content-${id}" class="anchor" aria-label="Permalink: ${text}" href="#${id}"><svg></svg></a></div>`,
  ],
  ["mdBook", (text, id) => `<h2 id="${id}"><a class="header" href="#${id}">${text}</a></h2>`],
  ["rustdoc", (text, id) => `<h2 id="${id}"><a class="doc-anchor" href="#${id}">§</a>${text}</h2>`],
  [
    "Javadoc",
    (text, id) =>
      `<h2>${text}<a href="#${id}" class="anchor-link" aria-label="Link to this section"><img src="link.svg" alt="Link icon" width="16"></a></h2>`,
  ],
  [
    "Asciidoctor",
    (text, id) =>
      `<h2 id="_${id}"><a class="anchor" href="#_${id}"></a><a class="link" href="#_${id}">${text}</a></h2>`,
  ],
  [
    "ReadMe",
    (text, id) =>
      `<h2><div class="anchor" id="${id}"></div><div class="heading-text">${text}</div><a aria-label="Skip link to ${text}" class="fa fa-anchor" href="#${id}"></a></h2>`,
  ],
  [
    "Mintlify",
    (text, id) =>
      `<h2 id="${id}"><div><a href="#${id}" aria-label="Navigate to header">\u200b<div><svg></svg></div></a></div><span>${text}</span></h2>`,
  ],
  [
    "Doxygen",
    (text, id) => `<h2 class="memtitle"><span class="permalink"><a href="#${id}">&#9670;&#160;</a></span>${text}</h2>`,
  ],
  [
    "RDoc",
    (text, id) =>
      `<h2 id="label-${id}">${text}<span><a href="#label-${id}">&para;</a> <a href="#top">&uarr;</a></span></h2>`,
  ],
  [
    "a generator with the page's own URL",
    (text, id) => `<h2 id="${id}">${text} <a href="start.html#${id}">Permalink</a></h2>`,
  ],
];

describe("an HTML page", () => {
  test.each(headings)("has headings without their permalinks in %s", (_, write) => {
    const body = `<h1>Start</h1><p>Some words.</p>${write("Install it", "install")}<p>Run it.</p>${write("Upgrade it", "upgrade")}<p>Run it again.</p>`;
    expect(readPage(at, "text/html", html(body)).headings.map(({ text }) => text)).toEqual([
      "Start",
      "Install it",
      "Upgrade it",
    ]);
  });

  test("has title, language, headings, links, samples and anchors", () => {
    const page = readPage(
      at,
      "text/html; charset=utf-8",
      html(
        `<nav><a href="/">Home</a></nav>
         <h1 id="top">Start &amp; run</h1>
         <p>Read <a href="next.html?a=1&amp;b=2#part">the <b>next</b> page</a>.</p>
         <h2 id="install">Install<a class="headerlink" href="#install">¶</a></h2>
         <div class="highlight-sh notranslate"><div class="highlight"><pre><span>npm</span> i x &gt; log</pre></div></div>
         <pre><code class="language-TS hljs">const a: number = 1;\nif (a &lt; 2) run();</code></pre>
         <blockquote><pre>plain</pre></blockquote>`,
        "<title>Start &#8211; Docs</title>",
      ),
    );
    expect({ ...page, markdown: page.markdown.includes("¶"), anchors: [...(page.anchors ?? [])] }).toEqual({
      url: at,
      form: "html",
      title: "Start – Docs",
      lead: "",
      language: "en",
      markdown: false,
      headings: [
        { level: 1, text: "Start & run", line: 1 },
        { level: 2, text: "Install", line: 5 },
      ],
      links: [
        { url: "https://docs.test/", text: "Home", context: "Home", heading: "" },
        {
          url: "https://docs.test/guide/next.html?a=1&b=2#part",
          text: "the next page",
          context: "Read the next page.",
          heading: "Start & run",
        },
        {
          url: "https://docs.test/guide/start.html#install",
          text: "¶",
          context: "Install¶",
          heading: "Start & run",
        },
      ],
      samples: [
        { language: "sh", code: "npm i x > log", line: 7, isClosed: true },
        { language: "ts", code: "const a: number = 1;\nif (a < 2) run();", line: 11, isClosed: true },
        { language: null, code: "plain", line: 16, isClosed: true, isPlain: true },
      ],
      anchors: ["top", "install"],
      problem: null,
      isThin: false,
      redirect: null,
      isDeadEnd: false,
      hasTools: false,
      asksToSignIn: false,
      asksForProof: false,
      isUnlisted: false,
      source: { robots: null, tabs: null },
      pictures: 0,
      hasOnlyImages: false,
      emptyTabs: 0,
    });
  });

  test("has links relative to its base, and a meta refresh is a link", () => {
    const page = readPage(
      at,
      "text/html",
      html(`<a href="b">b</a>`, `<base href="/x/"><meta http-equiv="Refresh" content="0; url='c.html'">`),
    );
    expect(page.links.map(({ url, text }) => ({ url, text }))).toEqual([
      { url: "https://docs.test/x/c.html", text: "redirect" },
      { url: "https://docs.test/x/b", text: "b" },
    ]);
  });

  test("has the lines of samples that start with a prompt", () => {
    const page = readPage(
      at,
      "text/html",
      html(`<h1>Try</h1><p>First.</p><pre>&gt;&gt;&gt; one()\n1</pre><p>Then.</p><pre>&gt;&gt;&gt; two()\n2</pre>`),
    );
    const lines = page.markdown.split("\n");
    expect(page.samples.map(({ line }) => lines[line])).toEqual([">>> one()", ">>> two()"]);
  });

  test("has the surrounding text and the heading of each link", () => {
    const page = readPage(
      at,
      "text/html",
      html(
        `<h2>Undoing things</h2>
         <dl><dt><a href="reset">reset</a></dt><dd><p>Set HEAD to a state. It moves the branch.</p></dd>
             <dt><a href="revert">revert</a></dt><dd><p>Undo a commit.</p></dd></dl>
         <ul><li><a href="a">A</a> first<li><p><a href="b">B</a> second</p></ul>
         <table><tr><td><a href="c">C</a></td><td>third</td></tr><tr><td>fourth</td></tr></table>
         <p>One thing. See <a href="d">D</a> for another. And more.</p>
         <h2>Else</h2><p><a href="e">E</a></p>`,
      ),
    );
    expect(page.links.map(({ text, context, heading }) => [text, context, heading])).toEqual([
      ["reset", "reset Set HEAD to a state.", "Undoing things"],
      ["revert", "revert Undo a commit.", "Undoing things"],
      ["A", "A first", "Undoing things"],
      ["B", "B second", "Undoing things"],
      ["C", "C third", "Undoing things"],
      ["D", "See D for another.", "Undoing things"],
      ["E", "E", "Else"],
    ]);
  });

  test.each([
    [`<h2 id="a"><a class="anchor" href="#a"></a>Restore it</h2>`, ["Restore it"]],
    [`<h2 id="a"><a class="anchor" href="/guide/start.html#a"></a> Restore it</h2>`, ["Restore it"]],
    [`<h2 id="a">Restore it <a href="#a">§</a></h2>`, ["Restore it"]],
    [`<h2 id="a"><a href="#a"><code>restore</code></a></h2>`, ["restore"]],
    [`<h2 id="a"><a href="#a">1.2.0</a> (2026)</h2>`, ["1.2.0 (2026)"]],
    [
      `<h2 id="a">Restore <a href="#a">Copy link</a></h2><p>x</p><h2 id="b">Freeze <a href="#b">Copy link</a></h2>`,
      ["Restore", "Freeze"],
    ],
  ])("has headings without links to themselves: %s", (headings, texts) => {
    const page = readPage(at, "text/html", html(`<h1>Guide</h1><p>Some words.</p>${headings}<p>More words.</p>`));
    expect(page.headings.slice(1).map(({ text }) => text)).toEqual(texts);
  });

  test("has a summary from its description or first paragraph, and terms with definitions are headings", () => {
    const text =
      "<h1>N</h1><p>Finds the commit that brought a fault.</p><dl><dt>Undo it</dt><dd><pre>x</pre></dd></dl>";
    expect(readPage(at, "text/html", html(text)).lead).toBe("Finds the commit that brought a fault.");
    expect(readPage(at, "text/html", html(text, `<meta name="description" content="By &amp; by">`)).lead).toBe(
      "By & by",
    );
    expect(readPage(at, "text/html", html(text)).headings.map((heading) => [heading.level, heading.text])).toEqual([
      [1, "N"],
      [7, "Undo it"],
    ]);
  });

  test("has samples without copy buttons and line numbers", () => {
    const page = readPage(
      at,
      "text/html",
      html(
        `<table><tr><td class="linenos"><pre>1\n2</pre></td><td><pre data-lang="js"><button>Copy</button><span class="lineno">1</span>a();<br>b();</pre></td></tr></table>`,
      ),
    );
    expect(page.samples.map(({ language, code }) => [language, code])).toEqual([["js", "a();\nb();"]]);
  });

  test("has plain spaces in samples where the HTML has no-break spaces", () => {
    const page = readPage(at, "text/html", html("<pre>a&nbsp;b&#160;c&#xA0;d\u00a0e</pre>"));
    expect(page.samples.map(({ code }) => code)).toEqual(["a b c d e"]);
  });

  test("is an empty shell if it has scripts but no text", () => {
    const shell = readPage(at, "text/html", html(`<div id="root"></div><script src="/app.js"></script>`));
    const small = readPage(at, "text/html", html(`<p>Moved.</p>`));
    const rich = readPage(
      at,
      "text/html",
      html(`<div id="root"><p>${"words ".repeat(60)}</p></div><script src="/a.js"></script>`),
    );
    expect([shell.problem, small.problem, rich.problem]).toEqual(["empty_shell", null, null]);
  });

  test.each([
    ["404 Not Found", "soft_404"],
    ["Page not found | Docs", "soft_404"],
    ["Seite nicht gefunden", "soft_404"],
    ["ページが見つかりません", "soft_404"],
    ["404", "soft_404"],
    ["How to handle not found errors", null],
    ["Handling 404 errors in your app", null],
    ["Not found pages", null],
  ])("titled %p has the problem %p", (title, problem) => {
    expect(
      readPage(at, "text/html", html(`<h1>${title}</h1><p>Some words.</p>`, `<title>${title}</title>`)).problem,
    ).toBe(problem as never);
  });

  test("never throws, even if it is broken, deep or hostile", () => {
    for (const body of ["<", "<p", "\0\0", "<div>".repeat(3000), `<a href="http://[">x</a><pre>`, "<table><td><pre>x"])
      expect(readPage(at, "text/html", html(body)).url).toBe(at);
  });
});

describe("a Markdown page", () => {
  test("has front matter, headings and links outside of code, and samples without indentation", () => {
    const sentence = "Read the next page, [ref] and . Not this, not that.";
    const page = readPage(
      "https://docs.test/guide/start.md",
      "text/markdown",
      [
        "---",
        "title: 'The start'",
        'description: "How to begin"',
        "---",
        "# Start",
        "Read [the *next* page](next.md#part), [ref] and <https://else.test/x>. Not `[this](code.md)`, not ![that](i.png).",
        "",
        "1. Run",
        '   ```sh title="run"',
        "   # no heading",
        "   npm i",
        "   ```",
        "> ```{.python}",
        "> x = 1",
        "> ```",
        "```",
        "> bare",
        "```",
        '<Card title="Cards" href="/cards" />',
        "<Card",
        '  title="More"',
        '  href="/more">',
        "  All of it",
        "</Card>",
        "[ref]: ./ref.md",
        "~~~js",
        "open();",
      ].join("\n"),
    );
    expect({ ...page, markdown: page.markdown.split("\n").slice(0, 5) }).toEqual({
      url: "https://docs.test/guide/start.md",
      form: "markdown",
      title: "The start",
      lead: "How to begin",
      language: null,
      markdown: ["", "", "", "", "# Start"],
      headings: [{ level: 1, text: "Start", line: 5 }],
      links: [
        { url: "https://docs.test/guide/next.md#part", text: "the next page", context: sentence, heading: "Start" },
        { url: "https://else.test/x", text: "", context: sentence, heading: "Start" },
        { url: "https://docs.test/cards", text: "Cards", context: "", heading: "Start" },
        { url: "https://docs.test/more", text: "More", context: "All of it", heading: "Start" },
        { url: "https://docs.test/guide/ref.md", text: "ref", context: "", heading: "Start" },
      ],
      samples: [
        { language: "sh", code: "# no heading\nnpm i", line: 9, isClosed: true },
        { language: "python", code: "x = 1", line: 13, isClosed: true },
        { language: null, code: "> bare", line: 16, isClosed: true },
        { language: "js", code: "open();", line: 26, isClosed: false },
      ],
      anchors: null,
      problem: null,
      isThin: false,
      redirect: null,
      isDeadEnd: false,
      hasTools: false,
      asksToSignIn: false,
      asksForProof: false,
      isUnlisted: false,
      source: { robots: null, tabs: null },
      pictures: 1,
      hasOnlyImages: false,
      emptyTabs: 0,
    });
  });
});

test("a sample has its line also in a table, beside line numbers and without a block of its own", () => {
  const samplesOf = (html: string) => readPage("https://docs.test/", "text/html", `<h1>Start</h1>${html}`).samples;
  const lines = ["import start", "", "start.everything()"];
  const cell = `<table><tr><td><pre>1\n2\n3</pre></td><td><pre>${lines.join("\n")}</pre></td></tr></table>`;
  expect(samplesOf(`<p>Two.</p>${cell}`)).toMatchObject([{ code: lines.join("\n"), line: 5 }]);
  const numbered = lines.map((line, at) => `<span class="linenos">${at + 1}</span>${line}`).join("\n");
  expect(samplesOf(`<p>Two.</p><pre>${numbered}</pre>`)).toMatchObject([{ code: lines.join("\n"), line: 5 }]);
  const twice = ["import all\n\nimport start\n\nall()", lines.join("\n")]
    .map((code) => `<pre>${code}</pre>`)
    .join("<p>Or:</p>");
  expect(samplesOf(twice).map(({ line }) => line)).toEqual([3, 13]);
  const inline = `<span><code class="language-py" style="color: red; white-space: pre-wrap">${lines.join("\n")}</code></span>`;
  expect(samplesOf(`<p>Two.</p>${inline}<p>Run <code>start</code>.</p>`)).toMatchObject([
    { language: "py", code: lines.join("\n"), line: 4 },
  ]);
});

test("the text of a page is Markdown with absolute links, without navigation", () => {
  const { markdown: text } = readPage(
    at,
    "text/html",
    html(
      `<nav>${"Menu ".repeat(50)}</nav><main><h1>A</h1><p>${"word ".repeat(60)}<a href="b.html">b</a></p><table><tr><th>x</th></tr><tr><td>1</td></tr></table></main>`,
    ),
  );
  expect([text.includes("Menu"), text.includes("[b](https://docs.test/guide/b.html)"), text.includes("| x |")]).toEqual(
    [false, true, true],
  );
});

test.each([
  ["text/html; charset=x", true],
  ["text/markdown", true],
  ["text/plain", true],
  ["application/xhtml+xml", true],
  [null, true],
  ["image/png", false],
  ["application/json", false],
])("a page of type %p is readable: %p", (type, readable) => {
  expect(isReadable(type)).toBe(readable);
});
