import { renderPage } from "./render.ts";
import type { Defect, ForeignSite, Planted } from "./site.ts";
import { thirdLinkDefects } from "./third-link-defects.ts";
import { text } from "./third-pages.ts";
import { answerPage, bare, framed, instead } from "./third-plant.ts";
import { partsOf } from "./third-sites.ts";

const signIn: Omit<Planted, "path"> = {
  categories: ["auth", "needs_human"],
  words: /sign|log.?in|access|human|challenge|wall|bot|captcha|40[13]|refused|forbidden/i,
};
const noPage: Omit<Planted, "path"> = {
  categories: ["silent_failure"],
  words: /soft|404|exist|error page|not found|missing/i,
};

/** Kinds of defects of what a server sends instead of a page. */
const responses: Record<string, Defect> = {
  soft_404: instead(
    ["auth", "install", "auth"],
    [
      (site) =>
        framed(
          site,
          "Lost?",
          "<h2>Lost?</h2><p>The page you requested could not be located on this server. Use the menu to find what you need.</p>",
        ),
      () =>
        bare(
          "Page unavailable",
          `<div class="wrap"><h1>Looks like you've wandered off</h1><p>There's nothing behind this link any more.</p><a href="/">Take me home</a></div>`,
        ),
      (site) => framed(site, "Error 404", "<p>Error 404: this document has been removed or renamed.</p>"),
    ],
    noPage,
  ),
  soft_404_foreign: instead(
    ["install", "auth"],
    [
      () =>
        bare(
          "Seite nicht gefunden",
          "<h1>Diese Seite gibt es nicht</h1><p>Die angeforderte Seite wurde verschoben oder gelöscht. Bitte nutzen Sie die Suche.</p>",
        ),
      (site) =>
        framed(
          site,
          "Page introuvable",
          "<p>Oups ! La page demandée est introuvable. Elle a peut-être été déplacée ou supprimée.</p>",
        ),
      (site) =>
        framed(site, "404", "<p>お探しのページは見つかりませんでした。削除されたか、移動した可能性があります。</p>"),
    ],
    noPage,
  ),
  wall_401: instead(
    ["auth", "install"],
    [
      () => ({
        status: 401,
        headers: { "www-authenticate": 'Basic realm="Docs"' },
        body: "Unauthorized\n",
        type: "text/plain",
      }),
      (site) => ({
        ...framed(site, "Members only", "<p>Your session has ended. Sign in once more to read on.</p>"),
        status: 401,
      }),
      () => ({
        status: 401,
        headers: { "www-authenticate": 'Bearer error="invalid_token"' },
        body: '{"error":"invalid_token"}',
        type: "application/json",
      }),
    ],
    signIn,
  ),
  wall_403: instead(
    ["install", "auth"],
    [
      () => ({
        status: 403,
        type: "application/xml",
        body: "<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
      }),
      () => ({
        ...bare("403 Forbidden", "<center><h1>403 Forbidden</h1></center><hr><center>nginx/1.29.3</center>"),
        status: 403,
      }),
      (site) => ({
        ...framed(site, "Not in your country", "<p>For legal reasons, we can't show this page in your region.</p>"),
        status: 403,
      }),
    ],
    signIn,
  ),
  wall_200: instead(
    ["auth", "install", "auth"],
    [
      (site) =>
        framed(
          site,
          "Continue reading",
          `<form action="/magic" method="post"><p>Readers of the developer area need a free account. Type your address, and we mail you a code.</p><input type="email" name="address" autocomplete="email"><button type="submit">Mail me a code</button></form>`,
        ),
      () =>
        bare(
          "Security check",
          `<h1>Please complete the security check</h1><p>Press and hold the button to prove that you are a person, not a robot.</p><div id="px-captcha"></div>`,
          `<script src="/px/captcha.js"></script>`,
        ),
      () =>
        bare(
          "Developer portal",
          `<main><h2>Developer portal</h2><button type="button">Continue with GitHub</button><button type="button">Continue with Google</button><p>By continuing, you accept our terms. Don't have an account yet? Sign up for free.</p></main>`,
        ),
    ],
    signIn,
  ),
  wall_login_redirect: {
    promised: true,
    plant(site, nth) {
      const { path } = partsOf(site)[nth % 2 ? "install" : "auth"];
      const login = ["/login", "/users/sign_in", "/oauth2/start"][nth % 3]!;
      site.replacements.set(path, {
        status: [302, 303, 307][nth % 3]!,
        headers: { location: `${login}?return_to=${encodeURIComponent(path)}` },
      });
      site.replacements.set(
        login,
        bare(
          "Sign in",
          `<h1>Sign in to continue</h1><form method="post"><label>User name <input name="user"></label><label>Password <input name="pass" type="password"></label><button>Sign in</button></form>`,
        ),
      );
      return { path: "", ...signIn };
    },
  },
  js_shell: instead(
    ["auth", "install"],
    [
      (site) =>
        bare(
          site.product.name,
          `<div id="app"></div>`,
          `<script type="module" crossorigin src="/assets/index-b81f2.js"></script>`,
        ),
      (site) =>
        bare(
          site.product.name,
          `<div id="docs-root" data-page="guide"><p>Loading…</p></div><noscript><p>This site requires JavaScript.</p></noscript>`,
          `<script src="/bundle.js" defer></script>`,
        ),
      () =>
        bare(
          "Docs",
          `<redoc-like spec-url="/openapi.json"></redoc-like><script>customElements.define("redoc-like", class extends HTMLElement {});</script>`,
        ),
    ],
    { categories: ["unreadable_page"], words: /script|empty|text/i },
  ),
  server_500: instead(
    ["install", "auth"],
    [
      () => ({
        status: 500,
        type: "application/json",
        body: '{"status":500,"error":"Internal Server Error","path":"/docs"}',
      }),
      () => ({
        ...bare(
          "Application error",
          "<h1>Application error: a server-side exception has occurred</h1><p>Digest: 271983</p>",
        ),
        status: 500,
      }),
      (site) => ({
        ...framed(
          site,
          "Whoops",
          "<pre>NoMethodError: undefined method 'title' for nil\n  app/views/docs/show.html.erb:12</pre>",
        ),
        status: 500,
      }),
    ],
    { categories: ["other", "unreadable_page", "dead_link"], words: /500|server error/i },
  ),
  slow_5s: instead(["auth", "install"], [() => ({ delayMs: 5300 }), () => ({ delayMs: 6100 })], {
    categories: ["slow"],
    words: /slow|took|second/i,
  }),
  octet_stream: {
    promised: true,
    plant(site, nth) {
      const { install, auth } = partsOf(site);
      const page = [install, answerPage(site), auth][nth % 3]!;
      const type = ["application/octet-stream", "binary/octet-stream", "application/force-download"][nth % 3]!;
      site.replacements.set(page.path, {
        body: renderPage(site, page).body,
        type,
        headers: { "content-disposition": "attachment" },
      });
      return { path: page.path, categories: ["unreadable_page", "other"], words: /type|read|download|octet/i };
    },
  },
  charset: {
    promised: true,
    plant(site, nth) {
      const page = answerPage(site);
      page.blocks.push(
        text(
          "Names like “Zoë Weißgärber”, “Śliwa”, “Ñandú” and “Çelik” are fine — prices in £ and € too. Größenänderungen gelten für Überschriften.",
        ),
      );
      const { body } = renderPage(site, page);
      const oldBytes = Buffer.from([...body].map((each) => (each > "ÿ" ? "-" : each)).join(""), "latin1");
      const responses = [
        {
          raw: Buffer.from(body.replace('<meta charset="utf-8">', '<meta charset="windows-1252">')),
          type: "text/html",
        },
        { raw: oldBytes, type: "text/html; charset=UTF-8" },
        { raw: Buffer.from(body), type: "text/html; charset=windows-1250" },
      ];
      site.replacements.set(page.path, responses[nth % 3]!);
      const words = /charset|encod|character|latin|utf|windows|unreadable|garbled/i;
      return { path: page.path, categories: ["unreadable_page", "other", "misleading_docs"], words };
    },
  },
  empty_page: instead(
    ["auth", "install"],
    [
      (site) => framed(site, "", ""),
      () => ({ body: "\n\n" }),
      (site, page) => framed(site, page.title, "<p></p><div class='placeholder'></div>"),
    ],
    { categories: ["unreadable_page", "missing_docs"], words: /empty|text|content/i },
  ),
  noindex: {
    promised: true,
    plant(site, nth) {
      const { install, auth } = partsOf(site);
      const path = [auth.path, site.answer, install.path][nth % 3]!;
      if (nth % 2)
        site.replacements.set(path, {
          headers: { "x-robots-tag": nth % 4 === 1 ? "none" : "googlebot: nofollow, noindex" },
        });
      else site.head.set(path, `<meta content="noindex,follow" name="ROBOTS">`);
      const words = /noindex|robots|index|search engine/i;
      return { path, categories: ["auth", "missing_docs", "other", "unreadable_page"], words };
    },
  },
  html_redirect: {
    promised: true,
    plant(site, nth) {
      const page = partsOf(site)[nth % 2 ? "install" : "auth"];
      const moved = `/moved${page.path}`;
      site.pages.push({ ...page, path: moved });
      site.replacements.set(
        page.path,
        [
          bare(
            "Redirecting…",
            `<a href="${moved}">Click here if you are not redirected.</a>`,
            `<meta http-equiv="refresh" content="0; url=${moved}">`,
          ),
          bare("Moved", "", `<script>window.location.replace("${moved}" + location.hash);</script>`),
          bare(
            "This page has a new home",
            `<p>It moves there in three seconds.</p>`,
            `<meta http-equiv="Refresh" content="3;URL='${moved}'">`,
          ),
        ][nth % 3]!,
      );
      return {
        path: page.path,
        categories: ["unreadable_page", "other", "dead_link", "slow", "needs_human"],
        words: /redirect|refresh|script/i,
      };
    },
  },
  long_without_headings: {
    promised: true,
    plant(site, nth) {
      const page = partsOf(site)[nth % 2 ? "auth" : "install"];
      page.blocks = page.blocks.filter(({ kind }) => kind !== "heading");
      for (let number = 1; number <= 220; number++) page.blocks.push(text(storyOf(site, number)));
      return {
        path: page.path,
        categories: ["unreadable_page", "other", "slow"],
        words: /long|heading|characters|tokens/i,
      };
    },
  },
  page_5mb: {
    promised: true,
    plant(site, nth) {
      const page = nth % 2 ? partsOf(site).auth : answerPage(site);
      for (let number = 0; number < 30; number++)
        page.blocks.push(text(`Appendix ${number}. ${storyOf(site, number)} `.repeat(1300)));
      const words = /large|long|size|MB|MiB|heavy|characters|big/i;
      return { path: page.path, categories: ["unreadable_page", "slow", "other"], words };
    },
  },
};

/** A paragraph of a very long page. */
const storyOf = ({ product }: ForeignSite, number: number) =>
  `In week ${number}, the team of ${product.name} moved ${number * 3 + 1} machines to another hall, and wrote down which cable belonged to which socket. Nobody complained, although two of the racks had to be turned around, and lunch was late.`;

/** Kinds of defects of responses, links and files of a site, in forms that the other rounds lack. */
export const thirdSiteDefects: Record<string, Defect> = { ...thirdLinkDefects, ...responses };
