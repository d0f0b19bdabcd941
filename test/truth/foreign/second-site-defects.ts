import { replaced } from "./first-site-defects.ts";
import { renderPage, toMarkdown } from "./render.ts";
import { answerOf, type Block, type Defect, pageAt } from "./site.ts";

const text = (content: string): Block => ({ kind: "text", text: content });
const setup = "manual/setup";
const keys = "manual/keys";
const html = (title: string, body: string, head = "") => ({
  body: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>${head}</head><body>${body}</body></html>`,
});

/** Kinds of defects of responses, links and files of a site, in forms that the first round lacks. */
export const secondSiteDefects: Record<string, Defect> = {
  dead_link: {
    promised: true,
    plant(site, nth) {
      const path = `/manual/${["glossary-of-terms", "items/archive.html", "video/intro"][nth % 3]}`;
      const label = ["our glossary", "archived items", "watch the introduction"][nth % 3];
      answerOf(site).blocks.splice(1, 0, { kind: "list", items: [`[${label}](${path})`] });
      if (nth % 3 === 1) site.replacements.set(path, { status: 410, body: "<h1>Gone</h1>" });
      return { path, categories: ["dead_link"], words: /dead|404|410|not found|missing/i, line: path };
    },
  },
  wrong_anchor: {
    promised: true,
    only: ["docusaurus-3", "starlight", "nextra", "gitbook", "docsy", "hexdocs", "typedoc", "mediawiki"],
    plant(site, nth) {
      const anchor = ["#behind-a-firewall", "#rotate-a-key", "#uninstall"][nth % 3];
      const path = `${pageAt(site, nth % 3 === 1 ? keys : setup).path}${anchor}`;
      answerOf(site).blocks.push(text(`If that fails, [read this part](${path}).`));
      return { path, categories: ["dead_link"], words: /section|anchor|fragment|#/i, line: path };
    },
  },
  redirect_loop: {
    promised: true,
    plant(site) {
      const { path } = pageAt(site, setup);
      const to = (location: string) => ({ status: 307, headers: { location } });
      site.replacements.set(path, to("/go/one"));
      site.replacements.set("/go/one", to("/go/two"));
      site.replacements.set("/go/two", to(path));
      return { path, categories: ["dead_link"], words: /redirect|loop/i };
    },
  },
  soft_404: {
    promised: true,
    plant: replaced(
      keys,
      [
        html(
          "Manual",
          `<header><a href="/">Manual</a></header><main><h1>We can't find that one</h1><p>Maybe it moved, maybe it never was. Try one of the popular pages instead.</p></main>`,
        ),
        html(
          "Hmm",
          "<main><h1>Hmm, no luck</h1><p>This document is no longer available. If you followed a link, please tell its owner.</p></main>",
        ),
        html("Error", `<div class="error-page"><span>404</span><p>Sorry! Nothing lives at this address.</p></div>`),
      ],
      { categories: ["silent_failure"], words: /soft|404|exist|error page|not found/i },
    ),
  },
  wall_401: {
    promised: true,
    plant: replaced(keys, [{ status: 401, body: '{"message":"Authentication required"}', type: "application/json" }], {
      categories: ["auth"],
      words: /401|sign|refused|log.?in/i,
    }),
  },
  wall_403: {
    promised: true,
    plant: replaced(
      setup,
      [
        { ...html("Attention required", "<h1>Sorry, you have been blocked</h1><p>Ray ID: 8f1</p>"), status: 403 },
        { ...html("403", "<h1>You don't have permission</h1>"), status: 403 },
        { status: 403, body: "" },
      ],
      { categories: ["auth"], words: /403|refused|sign|forbidden|block/i },
    ),
  },
  wall_200: {
    promised: true,
    plant: replaced(
      setup,
      [
        html(
          "Get access",
          `<main><h1>Get access to the manual</h1><p>Enter your work e-mail address, and we'll send you a link.</p><form method="post" action="/access"><label>Work e-mail <input type="email" name="mail" required></label><button>Send link</button></form></main>`,
        ),
        html(
          "One moment",
          `<main><h1>Verifying that you are human</h1><p>This may take a few seconds. The connection is being checked before you can proceed.</p></main><script src="/challenge.js"></script>`,
        ),
        html(
          "Partner portal",
          `<main><h1>Partner portal</h1><p>This content is available to registered partners only.</p><a class="button" href="/saml">Use single sign-on</a></main>`,
        ),
      ],
      { categories: ["auth", "needs_human"], words: /sign|log.?in|access|human|challenge|wall|bot protection/i },
    ),
  },
  js_shell: {
    promised: true,
    plant: replaced(
      keys,
      [
        html(
          "Manual",
          `<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div>`,
          `<script defer src="/static/main.js"></script>`,
        ),
        html(
          "Manual",
          `<header><a href="/">Home</a><a href="/manual/setup">Set up</a></header><main></main><footer>All rights reserved</footer>`,
          `<script type="module" src="/assets/index.js"></script>`,
        ),
        html(
          "Manual",
          `<app-root><div class="spinner">Please wait</div></app-root><script src="/runtime.js" type="module"></script>`,
        ),
      ],
      { categories: ["unreadable_page"], words: /script|empty|text/i },
    ),
  },
  server_500: {
    promised: true,
    plant: replaced(
      setup,
      [
        { status: 500, body: "Internal Server Error", type: "text/plain" },
        { ...html("Error", "<h1>Something went wrong on our side</h1>"), status: 500 },
      ],
      { categories: ["other", "unreadable_page", "dead_link"], words: /500|server error/i },
    ),
  },
  slow_5s: {
    promised: true,
    plant: replaced(keys, [{ delayMs: 5600 }], { categories: ["slow"], words: /slow|took/i }),
  },
  octet_stream: {
    promised: false,
    plant(site, nth) {
      const page = pageAt(site, [keys, setup, site.answer][nth % 3]!);
      const type = ["application/x-download", "text/css", "image/png"][nth % 3]!;
      site.replacements.set(page.path, { body: renderPage(site, page).body, type });
      return { path: page.path, categories: ["unreadable_page", "other"], words: /type|read|download/i };
    },
  },
  charset: {
    promised: false,
    plant(site, nth) {
      const page = answerOf(site);
      page.blocks.splice(
        1,
        0,
        text("Łódź, Škoda, “quotes” and em—dashes: 5 € für Straßenbahn, naïveté, piñata, Åsa, Ærø."),
      );
      const { type, body } = renderPage(site, page);
      const mime = type.split(";")[0]!;
      const asWritten = Buffer.from([...body].map((each) => (each > "ÿ" ? "?" : each)).join(""), "latin1");
      const response = [
        { raw: Buffer.from(body), type: `${mime}; charset=iso-8859-1` },
        { raw: asWritten, type: `${mime}; charset=utf-8` },
        { raw: Buffer.from(body, "utf16le"), type: `${mime}; charset=utf-8` },
      ][nth % 3]!;
      site.replacements.set(page.path, response);
      const words = /charset|encod|character|latin|utf|unreadable|garbled/i;
      return { path: page.path, categories: ["unreadable_page", "other", "misleading_docs"], words };
    },
  },
  empty_page: {
    promised: true,
    plant: replaced(
      keys,
      [
        { body: "" },
        html("Get a key", `<nav><a href="/">Home</a></nav><main><article></article></main>`),
        html("Get a key", "<main><h1>Get a key</h1></main>"),
      ],
      { categories: ["unreadable_page", "missing_docs"], words: /empty|text|content/i },
    ),
  },
  noindex: {
    promised: false,
    plant(site, nth) {
      const needed = [site.answer, pageAt(site, setup).path, pageAt(site, keys).path];
      const path = needed[nth % 3]!;
      if (nth % 3 === 2 || site.markup.isMarkdown)
        site.replacements.set(path, { headers: { "x-robots-tag": "noindex, nofollow" } });
      else site.head.set(path, `<meta name="robots" content="${nth % 3 === 0 ? "none" : "noindex"}">`);
      return {
        path,
        categories: ["auth", "missing_docs", "other", "unreadable_page"],
        words: /noindex|robots|index|search engine/i,
      };
    },
  },
  robots_block: {
    promised: true,
    plant(site, nth) {
      const { path } = pageAt(site, [site.answer, setup, keys][nth % 3]!);
      site.robotsTxt = [
        `User-agent: *\nDisallow: ${path}\n`,
        "User-agent: *\nDisallow: /manual/s\nCrawl-delay: 1\n",
        "User-agent: Evald\nDisallow: /manual/keys\n\nUser-agent: *\nAllow: /\n",
      ][nth % 3]!;
      return { path: "", categories: ["auth"], words: /robots/i };
    },
  },
  md_differs: {
    promised: false,
    except: ["mdx"],
    plant(site, nth) {
      const answer = answerOf(site);
      const shortened = [
        { ...answer, blocks: answer.blocks.filter(({ kind }) => kind !== "code") },
        { ...answer, blocks: answer.blocks.slice(0, 1) },
        { ...answer, title: "Welcome", blocks: [text("This is the old manual. It is kept for the record.")] },
      ][nth % 3]!;
      site.markdown = new Map(site.pages.map((page) => [page.path, toMarkdown(page === answer ? shortened : page)]));
      const words = /differ|markdown/i;
      return { path: "", categories: ["misleading_docs", "other", "missing_docs", "unreadable_page"], words };
    },
  },
  llms_stale: {
    promised: true,
    plant(site) {
      site.llmsTxt = site.pages.map(({ path }) => path);
      site.llmsTxt.unshift("/manual/v2/overview");
      return { path: "/manual/v2/overview", categories: ["dead_link"], words: /llms/i };
    },
  },
  llms_lacks_answer: {
    promised: false,
    plant(site) {
      site.llmsTxt = site.pages.map(({ path }) => path).filter((path) => path !== site.answer);
      return { path: "", categories: ["missing_docs", "other"], words: /llms/i };
    },
  },
  sitemap_stale: {
    promised: true,
    plant(site) {
      site.sitemap = [...site.pages.map(({ path }) => path), "/blog/2019/hello", "/manual/v1/setup", "/manual/v1/keys"];
      return { path: "/manual/v1/", categories: ["dead_link"], words: /sitemap/i };
    },
  },
  openapi_ref: {
    promised: true,
    plant(site, nth) {
      const api = site.api!;
      const [path, operations] = Object.entries(api.paths).find(([each]) => each.includes("{id}"))!;
      const operation = Object.values(operations)[0]!;
      if (nth % 3 === 0)
        operation.requestBody!.content["application/json"]!.schema.$ref = "#/components/schemas/Nowhere";
      else if (nth % 3 === 1) operation.parameters[0] = { ...operation.parameters[0]!, in: "route" };
      else api.paths[path] = { ...operations, patch: { ...operation, responses: [] as never } };
      return { path: "/openapi.json", categories: ["wrong_contract"], words: /description|ref|valid/i };
    },
  },
};
