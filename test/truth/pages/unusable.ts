import type { Friction } from "../../../src/grading/grade.ts";
import { html, type PageCase } from "./case.ts";

/** A host that sends this page for `/keys` and for every path that doesn't exist. */
const forAll = (name: string, finds: Friction["category"][], page: (path: string) => string): PageCase => ({
  name,
  pages: { "/keys": page("/keys") },
  missing: page,
  finds,
});

const header = `<header><a href="/">Skiff</a> <a href="/p/Labels">Labels</a> <a href="/p/Depots">Depots</a></header>`;
const footer = `<footer><p>Skiff Logistics, Harbour Road 4. All rights reserved by the owners of Skiff.</p><a href="/p/Terms">Terms</a> <a href="/p/Imprint">Imprint</a></footer>`;

/** Error pages with status 200, walls and pages without content, in several wordings and languages. */
export const unusableCases: PageCase[] = [
  forAll("soft 404, English", ["silent_failure"], () =>
    html(
      "Skiff",
      `${header}<main><h1>Oh no!</h1><p>We looked everywhere, but this one has sailed.</p></main>${footer}`,
    ),
  ),
  forAll("soft 404, German, with search", ["silent_failure"], () =>
    html(
      "Skiff Handbuch",
      `${header}<main><h2>Hier ist leider nichts</h2><p>Die gewünschte Adresse führt ins Leere. Vielleicht hilft die Suche weiter.</p><form action="/suche"><input name="q"><button>Suchen</button></form></main>${footer}`,
      "",
      "de",
    ),
  ),
  forAll("soft 404, French", ["silent_failure"], () =>
    html(
      "Skiff",
      `${header}<main><h1>Oups</h1><p>Cette adresse ne mène à rien.</p><a href="/">Accueil</a></main>`,
      "",
      "fr",
    ),
  ),
  forAll("soft 404, Spanish, echoes the path", ["silent_failure"], (path) =>
    html("Skiff", `<main><h1>Vaya</h1><p>No hay nada en <code>${path}</code>.</p></main>${footer}`, "", "es"),
  ),
  forAll("soft 404, Japanese", ["silent_failure"], () =>
    html("Skiff", `${header}<main><p>お探しの文書は移動または削除された可能性があります。</p></main>`, "", "ja"),
  ),
  forAll("soft 404, Portuguese, suggests pages", ["silent_failure"], () =>
    html(
      "Skiff",
      `<main><h1>Opa!</h1><p>Não encontramos o que você procura. Veja também:</p><ul><li><a href="/p/Labels">Labels</a></li><li><a href="/p/Depots">Depots</a></li></ul></main>`,
      "",
      "pt",
    ),
  ),
  {
    name: "soft 404, the start page for every path",
    pages: { "/keys": startLike() },
    missing: startLike,
    finds: ["silent_failure"],
  },
  {
    name: "soft 404 as plain text",
    pages: { "/keys": { type: "text/plain", body: "Nothing lives at this address.\n" } },
    missing: () => ({ type: "text/plain", body: "Nothing lives at this address.\n" }),
    finds: ["silent_failure"],
  },
  forAll("wall with password, German", ["auth"], () =>
    html(
      "Anmelden",
      `<main><h1>Anmelden</h1><form method="post" action="/anmelden"><label>Benutzer <input name="u"></label><label>Kennwort <input type="password" name="p"></label><button>Weiter</button></form></main>`,
      "",
      "de",
    ),
  ),
  forAll("wall with SSO links only", ["auth"], () =>
    html(
      "Skiff Docs",
      `<main><h1>Welcome back</h1><p>Choose how to continue.</p><a class="button" href="https://accounts.idp.invalid/o/oauth2/v2/auth?client_id=42&amp;redirect_uri=https%3A%2F%2Fdocs.invalid%2Fcb&amp;response_type=code">Continue with Google</a></main>`,
    ),
  ),
  forAll("wall with a link by e-mail, French", ["auth"], () =>
    html(
      "Skiff",
      `<main><h1>Bienvenue</h1><p>Saisissez votre adresse et nous vous enverrons un lien.</p><form method="post" action="/lien"><input type="email" name="email" required><button>Envoyer</button></form></main>`,
      "",
      "fr",
    ),
  ),
  {
    name: "wall after a redirect that remembers the page",
    pages: {
      "/keys": { status: 302, headers: { location: "/entrar?volver=%2Fkeys" }, body: "" },
      "/entrar": html(
        "Skiff",
        `<main><h1>Identifícate</h1><p>Usa tu cuenta de empresa.</p><form method="post" action="/saml"><button>Continuar</button></form></main>`,
        "",
        "es",
      ),
    },
    finds: ["auth"],
  },
  forAll("protected preview", ["auth"], () =>
    html(
      "Skiff preview",
      `<div class="card"><h1>This deployment is protected</h1><form method="POST"><input type="password" name="_preview_password" placeholder="Visitor password"><button type="submit">Enter</button></form></div>`,
    ),
  ),
  forAll("checking the browser", ["auth"], () =>
    html(
      "Just a moment...",
      `<div class="main"><h1>docs.skiff.invalid</h1><p>Checking your browser before you go on. This takes a few seconds.</p></div><script src="/cdn-cgi/challenge-platform/h/b/orchestrate/jsch/v1"></script>`,
      `<meta name="robots" content="noindex,nofollow"><meta http-equiv="refresh" content="390">`,
    ),
  ),
  forAll("challenge, Japanese", ["auth"], () =>
    html(
      "確認中",
      `<div><p>ブラウザを確認しています。しばらくお待ちください。</p><form id="challenge-form" method="POST" action="/keys?__token=1"><div class="captcha-box" data-sitekey="10000000-ffff-ffff"></div></form></div><script src="https://js.captcha.invalid/1/api.js" async defer></script>`,
      "",
      "ja",
    ),
  ),
  {
    name: "shell with a menu and a footer",
    pages: {
      "/keys": html("Skiff", `${header}<div id="root"></div>${footer}<script src="/static/main.4f2a.js"></script>`),
    },
    finds: ["unreadable_page"],
  },
  {
    name: "shell that says it is loading",
    pages: {
      "/keys": html(
        "Skiff",
        `<div id="docs-viewer"><div class="spinner"></div><p>Loading…</p></div><script type="module" src="/assets/index-4f2a.js"></script>`,
      ),
    },
    finds: ["unreadable_page"],
  },
  {
    name: "shell with a skeleton and a cookie notice",
    pages: {
      "/keys": html(
        "Skiff",
        `<div class="topbar"><a href="/">Skiff</a> <a href="/p/Labels">Labels</a></div><div class="skeleton"><div class="bar"></div><div class="bar"></div></div><div class="cookies">We use cookies. <button>Fine</button></div><script defer src="/bundle.js"></script>`,
      ),
    },
    finds: ["unreadable_page"],
  },
  {
    name: "shell that asks for JavaScript, German",
    pages: {
      "/keys": html(
        "Skiff",
        `<noscript>Bitte JavaScript einschalten.</noscript><redoc spec-url="/openapi.json"></redoc><script src="/redoc.standalone.js"></script>`,
        "",
        "de",
      ),
    },
    finds: ["unreadable_page"],
  },
  {
    name: "page whose text is gone",
    pages: { "/keys": html("Rotate an API key", `${header}<main></main>${footer}`) },
    finds: ["unreadable_page"],
  },
];

/** The start page of the site, as a server with a fallback sends it for every path. */
function startLike() {
  return html(
    "Skiff Docs",
    `<main><h1>Skiff Docs</h1><p>Skiff delivers parcels by boat.</p><ul><li><a href="/keys">Rotate an API key</a></li><li><a href="/p/Labels">Labels</a></li></ul></main>`,
  );
}
