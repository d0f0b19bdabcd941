import { renderPage, toMarkdown } from "./render.ts";
import { answerOf, type Block, type Defect, type ForeignSite, type Planted, pageAt, type Replacement } from "./site.ts";

const text = (content: string): Block => ({ kind: "text", text: content });

/** A defect of the response of one page. */
export const replaced =
  (id: string | null, responses: Replacement[], named: Omit<Planted, "path">) =>
  (site: ForeignSite, nth: number): Planted => {
    const { path } = id === null ? answerOf(site) : pageAt(site, id);
    site.replacements.set(path, responses[nth % responses.length]!);
    return { path, ...named };
  };

/** Kinds of defects of links, pages and files of the site. */
export const firstSiteDefects: Record<string, Defect> = {
  dead_link: {
    promised: true,
    plant(site) {
      answerOf(site).blocks.push(text(`More in [the details](${site.answer}-details).`));
      const path = `${site.answer}-details`;
      return { path, categories: ["dead_link"], words: /dead|404|not found|missing/i, line: "-details" };
    },
  },
  wrong_anchor: {
    promised: true,
    only: ["mkdocs-material", "docusaurus", "mdbook", "jekyll", "vitepress"],
    plant(site) {
      const path = `${pageAt(site, "install").path}#proxy-settings`;
      answerOf(site).blocks.push(text(`See [the proxy settings](${path}).`));
      return { path, categories: ["dead_link"], words: /section|anchor|proxy-settings/i, line: "#proxy-settings" };
    },
  },
  redirect_loop: {
    promised: true,
    plant(site) {
      const { path } = pageAt(site, "authentication");
      site.replacements.set(path, { status: 302, headers: { location: `${path}/x` } });
      site.replacements.set(`${path}/x`, { status: 302, headers: { location: path } });
      return { path, categories: ["dead_link"], words: /redirect/i };
    },
  },
  soft_404: {
    promised: true,
    plant: replaced(
      "authentication",
      [
        { body: "<title>Oops</title><h1>This page has wandered off</h1><p>Try the search.</p>" },
        { body: "<title>404 | Docs</title><h1>404</h1><p>We looked everywhere.</p>" },
        {
          body: "<title>Docs</title><h1>Nothing here</h1><p>The page that you requested does not exist any more.</p>",
        },
      ],
      { categories: ["silent_failure"], words: /soft|404|exist/i },
    ),
  },
  wall_401: {
    promised: true,
    plant: replaced(
      "install",
      [{ status: 401, body: "<h1>Unauthorized</h1>", headers: { "www-authenticate": "Basic" } }],
      { categories: ["auth"], words: /401|sign|refused/i },
    ),
  },
  wall_403: {
    promised: true,
    plant: replaced(null, [{ status: 403, body: "<h1>Forbidden</h1>" }], {
      categories: ["auth"],
      words: /403|refused|sign/i,
    }),
  },
  wall_200: {
    promised: true,
    plant: replaced(
      "install",
      [
        {
          body: `<title>Log in</title><h1>Log in to continue</h1><p>This page is for customers.</p><a href="/sso">Continue with SSO</a><a href="/google">Continue with Google</a>`,
        },
        {
          body: `<title>Members only</title><h1>Members only</h1><p>Please sign in to read this page.</p><form action="/login" method="post"><input type="email" name="e"><button>Send me a link</button></form>`,
        },
        {
          body: `<title>Sign in</title><h1>Sign in</h1><form><input name="u"><input type="password" name="p"></form>`,
        },
      ],
      { categories: ["auth"], words: /sign.?in|log.?in/i },
    ),
  },
  js_shell: {
    promised: true,
    plant: replaced(
      "install",
      [
        {
          body: `<!doctype html><html><head><title>Docs</title><script type="module" src="/main.js"></script></head><body><div id="app"></div></body></html>`,
        },
        {
          body: `<!doctype html><html><head><title>Docs</title><script src="/a.js"></script></head><body><main><div class="skeleton"></div><div class="skeleton"></div><p>Loading…</p></main></body></html>`,
        },
        {
          body: `<!doctype html><html><head><title>Docs</title></head><body><docs-app></docs-app><script src="/a.js"></script></body></html>`,
        },
      ],
      { categories: ["unreadable_page"], words: /script|empty|text/i },
    ),
  },
  server_500: {
    promised: true,
    plant: replaced("authentication", [{ status: 500, body: "<h1>Error</h1>" }], {
      categories: ["other", "unreadable_page", "dead_link"],
      words: /500|server error/i,
    }),
  },
  slow_5s: {
    promised: true,
    plant: replaced(null, [{ delayMs: 5200 }], { categories: ["slow"], words: /slow|took/i }),
  },
  octet_stream: {
    promised: false,
    plant(site) {
      const page = pageAt(site, "install");
      const { body } = renderPage(site, page);
      site.replacements.set(page.path, { body, type: "application/octet-stream" });
      return { path: page.path, categories: ["unreadable_page", "other"], words: /type|read/i };
    },
  },
  charset: {
    promised: false,
    except: ["markdown"],
    plant(site) {
      const page = answerOf(site);
      page.blocks.unshift(
        text("Größe, Übergabe, Straße, naïve café, résumé, Ärger, öffnen, für, später, déjà vu, señor, coração."),
      );
      const { type, body } = renderPage(site, page);
      site.replacements.set(page.path, { raw: Buffer.from(body, "latin1"), type });
      const words = /charset|encod|character|latin|utf/i;
      return { path: site.answer, categories: ["unreadable_page", "other", "misleading_docs"], words };
    },
  },
  empty_page: {
    promised: true,
    plant: replaced(
      "install",
      [{ body: "<!doctype html><html><head><title>Installation</title></head><body></body></html>" }],
      { categories: ["unreadable_page"], words: /empty|text/i },
    ),
  },
  noindex: {
    promised: false,
    except: ["markdown"],
    plant(site) {
      for (const { path } of site.pages) site.head.set(path, '<meta name="robots" content="noindex,nofollow">');
      return { path: "", categories: ["auth", "missing_docs", "other"], words: /noindex|robots|search engine/i };
    },
  },
  robots_block: {
    promised: true,
    plant(site) {
      site.robotsTxt = "User-agent: *\nDisallow: /guides/\n";
      return { path: "", categories: ["auth"], words: /robots/i };
    },
  },
  md_differs: {
    promised: false,
    except: ["markdown"],
    plant(site) {
      const archived = "This page was moved to the archive. Nothing to see.";
      site.markdown = new Map(
        site.pages.map((page) => [
          page.path,
          page.path === site.answer ? `# ${page.title}\n\n${archived}\n` : toMarkdown(page),
        ]),
      );
      const words = /differ|markdown and html/i;
      return { path: "", categories: ["misleading_docs", "other", "missing_docs", "unreadable_page"], words };
    },
  },
  llms_stale: {
    promised: true,
    plant(site) {
      site.llmsTxt = site.pages.slice(0, 30).map(({ path }) => path);
      site.llmsTxt.splice(3, 0, "/old/start-here", "/old/cookbook");
      return { path: "/old/", categories: ["dead_link"], words: /llms/i };
    },
  },
  llms_lacks_answer: {
    promised: false,
    plant(site) {
      site.llmsTxt = site.pages.map(({ path }) => path).filter((path) => !path.includes("guides"));
      return { path: "", categories: ["missing_docs", "other"], words: /llms/i };
    },
  },
  sitemap_stale: {
    promised: true,
    plant(site) {
      site.sitemap = site.pages.map(({ path }) => path);
      site.sitemap.splice(2, 0, "/old/page-a", "/old/page-b");
      return { path: "/old/", categories: ["dead_link"], words: /sitemap/i };
    },
  },
  openapi_ref: {
    promised: true,
    plant(site) {
      const [schema] = Object.keys(site.api!.components.schemas);
      delete site.api!.components.schemas[schema!];
      return { path: "/openapi.json", categories: ["wrong_contract"], words: /description|ref/i };
    },
  },
};
