import { answer, filler, goal, html, type PageCase } from "./case.ts";

const menu = `<nav><a href="/">Start</a> <a href="/keys">Keys</a> <a href="/p/Labels">Labels</a> <a href="/p/Depots">Depots</a></nav>`;
/** A page of a site with a menu. */
const page = (title: string, body: string, head = "") =>
  html(title, `${menu}<main><h1>${title}</h1>${body}</main>`, head);
/** The page with the answer, which needs another page. */
const needing = (link: string) => page("Keys", `<p>What follows needs ${link}.</p>${answer()}`);
const withPage = (name: string, path: string, label: string, content: PageCase["pages"][string]): PageCase => ({
  name,
  pages: {
    "/keys": page("Keys", `${answer()}<h2>See also</h2><p><a href="${path}">${label}</a></p>`),
    [path]: content,
  },
  reads: "/keys",
});
const picture = (name: string, alternative: string) => `<img src="/i/${name}.png" alt="${alternative}">`;
const opinionForm = `<form method="post" action="/opinion"><textarea name="t"></textarea><div data-sitekey="x"></div><button>Send</button></form>`;
const loginBox = `<div id="login"><form method="post" action="/in"><input name="u"><input type="password" name="p"><button>Log in</button></form></div>`;

/** Correct pages that resemble unusable ones. */
export const soundShapes: PageCase[] = [
  withPage(
    "a list of two pages about signing in",
    "/account",
    "Your account",
    page(
      "Your account",
      `<ul><li><a href="/account/login">Log in with a passkey</a></li><li><a href="/account/sso">SSO</a></li></ul>`,
    ),
  ),
  withPage(
    "cards that lead to pages about authentication",
    "/security",
    "Security",
    page(
      "Security",
      `<div class="cards"><div><a href="/p/auth">Tokens</a></div><div><a href="/p/Labels">Labels</a></div></div><p>Choose what you want to protect.</p>`,
    ),
  ),
  {
    name: "a login box on every page",
    pages: {
      "/keys": html(
        "Keys",
        `${loginBox}<h1>Keys</h1>${filler(9)}${answer()}<p><a href="/rights">Rights of a key</a></p>`,
      ),
      "/rights": html(
        "Rights",
        `${loginBox}<h1>Rights of a key</h1><p>A key may read, write or both. Ask an owner to change its rights, and wait for a minute.</p>`,
      ),
    },
    reads: "/keys",
  },
  withPage(
    "a newsletter form under a short text",
    "/news",
    "News",
    page(
      "News",
      `<p>Twice a year, we write about what is new. The last letter told how the boats got their new engines, and why the depots in the north now stay open at night, when most of the parcels arrive from the ferries.</p><form method="post" action="/letters"><input type="email" name="mail"><button>Subscribe</button></form>`,
    ),
  ),
  withPage(
    "a figure with a caption and a description",
    "/parts",
    "Parts of Skiff",
    page(
      "Parts of Skiff",
      `<figure>${picture("parts", "A browser talks to the gateway, which asks the ledger and the planner, and both write to one log")}<figcaption>How the parts work together</figcaption></figure>`,
    ),
  ),
  withPage(
    "a gallery in which each picture is explained",
    "/boats",
    "Boats",
    page(
      "Boats",
      ["Heron", "Otter", "Pike"]
        .map(
          (name) =>
            `<figure>${picture(name, `A boat of the class ${name}`)}<figcaption>The ${name} carries four pallets, and needs a crew of two for the lakes in the north.</figcaption></figure>`,
        )
        .join(""),
    ),
  ),
  withPage(
    "badges above one sentence",
    "/about",
    "About",
    page(
      "About",
      `<p>${["build", "release", "licence", "chat"].map((name) => `<a href="https://badges.invalid/${name}"><img src="/b/${name}.svg" alt="${name}"></a>`).join(" ")}</p><p>Skiff is made by six people on a lake.</p>`,
    ),
  ),
  withPage(
    "an explanation of status 404",
    "/errors/404",
    "404 Not Found",
    page(
      "404 Not Found",
      "<p>The parcel doesn't exist, or your key may not see it. Check the ID, then the rights of the key.</p>",
    ),
  ),
  withPage(
    "an index of modules with icons",
    "/modules",
    "Modules",
    page(
      "Modules",
      `<table>${["ledger", "planner", "gate"].map((name) => `<tr><td><img src="/minus.png" alt="-"></td><td><a href="/p/${name}"><code>${name}</code></a></td><td><em>The ${name}</em></td></tr>`).join("")}</table>`,
    ),
  ),
  withPage(
    "one sentence in another language",
    "/impressum",
    "Impressum",
    html("Impressum", `${menu}<main><h1>Impressum</h1><p>Skiff, Hafenstraße 4, Kiel</p></main>`, "", "de"),
  ),
  withPage("an HTML file that is offered as a download", "/files/report", "A report to download", {
    type: "application/octet-stream",
    headers: { "content-disposition": 'attachment; filename="report.html"' },
    body: html("Report", "<h1>Report</h1>"),
  }),
  withPage("a program to download", "/files/skiff", "The program", {
    type: "application/octet-stream",
    body: "\u007fELF and so on",
  }),
  {
    name: "a short page that the answer needs",
    pages: {
      "/keys": needing(`<a href="/office/name">an account</a>`),
      "/office/name": page(
        "Get an account",
        "<p>Write to the harbour office, and give your name. You get an account on the same day.</p>",
      ),
    },
    reads: "/keys",
  },
  {
    name: "a short page in Japanese that the answer needs",
    pages: {
      "/keys": needing(`<a href="/office/name">アカウント</a>`),
      "/office/name": html(
        "アカウント",
        `${menu}<main><h1>アカウント</h1><p>設定を開き、アカウントを選び、名前を入力します。</p></main>`,
        "",
        "ja",
      ),
    },
    reads: "/keys",
  },
  {
    name: "tabs with all of their panels",
    pages: {
      "/keys": page(
        "Keys",
        `${answer()}<div role="tablist"><button role="tab">Go</button><button role="tab">PHP</button></div><div role="tabpanel"><p>Use the Go client.</p></div><div role="tabpanel" hidden><p>Use the PHP client.</p></div>`,
      ),
    },
    reads: "/keys",
  },
  withPage(
    "a list of tags that search engines skip",
    "/tags",
    "All tags",
    page("All tags", `<ul><li><a href="/p/Labels">boats</a></li></ul>`, `<meta name="robots" content="noindex">`),
  ),
  withPage(
    "a form for opinions with a test for people",
    "/opinion",
    "Tell us",
    page("Tell us", `${filler(8)}${opinionForm}`),
  ),
  {
    name: "text from the server beside a note for browsers without scripts",
    pages: {
      "/keys": html(
        "Keys",
        `<noscript>Please enable JavaScript.</noscript><div id="root">${menu}<main><h1>Keys</h1>${answer()}</main></div><script src="/app.js"></script>`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "a short page of a site that tests readers in a form on every page",
    pages: {
      "/keys": page(
        "Keys",
        `${filler(9)}${answer()}<p><a href="/rights">Rights of a key</a></p>${opinionForm}`,
        `<script src="https://captcha.invalid/client.js"></script>`,
      ),
      "/rights": page(
        "Rights",
        `<p>A key may read, write or both. Ask an owner to change its rights, and wait for a minute.</p>${opinionForm}`,
        `<script src="https://captcha.invalid/client.js"></script>`,
      ),
    },
    reads: "/keys",
  },
  withPage(
    "a short page with the script of a test that it doesn't use",
    "/hours",
    "Opening hours",
    page(
      "Opening hours",
      "<p>The depots are open from eight to six, and on Sundays from ten to two.</p>",
      `<script src="https://www.google.com/recaptcha/api.js?render=6L" async defer></script>`,
    ),
  ),
  withPage(
    "a changelog with one entry",
    "/changelog",
    "Changelog",
    page("Releases", "<h2>1.0</h2><p>The first one.</p>"),
  ),
  {
    name: "a screenshot that repeats what the text says",
    pages: {
      "/keys": page(
        "Keys",
        `<h2>${goal}</h2><p>To rotate an API key, open Settings, choose Keys, and press Rotate next to its name. Confirm it with your password. The old key stays valid for one hour, and everyone in your crew gets a message.</p>${picture("rotate", "The list of keys with the button Rotate at the right of each row")}`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "a screenshot in a section whose name starts like that of the answer",
    pages: {
      "/keys": page(
        "Keys",
        `<h2>${goal}</h2><p>To rotate an API key, open Settings, choose Keys, and press Rotate next to its name. To rotate an API key of others, ask an owner.</p><h2>${goal}board on Mac</h2><p>Turn it:</p>${picture("board", "Board")}`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "a screenshot in each step, whose links have long addresses",
    pages: {
      "/keys": page(
        "Keys",
        `<h2>${goal}</h2>${["the settings of your crew", "the list of its keys", "the history of that key"]
          .map(
            (place) =>
              `<p>To rotate an API key, open <a href="/p/Labels?${"place=harbour&amp;".repeat(20)}">${place}</a>, and look for the row that has its name and the date on which it was made.</p>${picture(place, "Screenshot")}`,
          )
          .join("")}`,
      ),
    },
    reads: "/keys",
  },
  {
    name: "a screenshot of the dialog that complete instructions name",
    pages: {
      "/keys": page(
        "Keys",
        `<h2>${goal}</h2><p>To rotate an API key, open Settings, choose Keys, and press Rotate next to its name. The old key stays valid for one hour, and everyone in your crew gets a message. If you don't want to wait, press Revoke afterwards, which ends the old key at once. An owner can do the same for keys of others. The dialog opens:</p>${picture("dialog", "Dialog")}<h2>Rights</h2>${filler(3)}`,
      ),
    },
    reads: "/keys",
  },
];

const onlyKeys = (
  name: string,
  finds: Extract<PageCase, { finds: unknown }>["finds"],
  content: PageCase["pages"][string],
): PageCase => ({
  name,
  pages: { "/keys": content },
  finds,
});
const needed = (
  name: string,
  finds: Extract<PageCase, { finds: unknown }>["finds"],
  content: PageCase["pages"][string],
  more: PageCase["pages"] = {},
): PageCase => ({
  name,
  pages: { "/keys": needing(`<a href="/office/name">an account</a>`), "/office/name": content, ...more },
  finds,
  at: "/office/name",
});

/** Unusable pages of other forms. */
export const brokenShapes: PageCase[] = [
  onlyKeys(
    "a wall with two buttons, Swedish",
    ["auth"],
    html(
      "Skiff",
      `<div class="card"><h1>Välkommen</h1><div><a class="btn" href="/auth/okta">Okta</a></div><div><a class="btn" href="/auth/entra">Entra</a></div></div>`,
      "",
      "sv",
    ),
  ),
  onlyKeys(
    "a wall with a password and a long text",
    ["auth"],
    html(
      "Members",
      `<main><h1>Members</h1><p>These pages are for people who rent a boat from us. The harbour office sends you a name and a password with the contract. If you lost them, call the office, which is open from eight to six.</p><form method="post" action="/m"><input name="n"><input type="password" name="w"><button>Open</button></form></main>`,
    ),
  ),
  {
    name: "a redirect to a form that knows the way back",
    pages: {
      "/keys": { status: 302, headers: { location: "/enter?then=%2Fkeys" }, body: "" },
      "/enter": html("Enter", "<h1>Who are you?</h1><p>Ask the office for a link.</p>"),
    },
    finds: ["auth"],
  },
  onlyKeys(
    "a wall with an e-mail address, Polish",
    ["auth"],
    html(
      "Skiff",
      `<main><h1>Zaloguj się</h1><form method="POST" action="/link"><input type="email" name="e" placeholder="E-mail"><button>Dalej</button></form></main>`,
      "",
      "pl",
    ),
  ),
  onlyKeys(
    "a wall with a SAML request",
    ["auth"],
    html(
      "Skiff",
      `<main><p>Continue to the directory of your company.</p><div><a href="https://id.invalid/start?SAMLRequest=fZ&RelayState=1">Continue</a></div></main>`,
    ),
  ),
  onlyKeys(
    "a challenge in a frame",
    ["auth"],
    html("Checking", `<p>One more step.</p><iframe src="https://captcha.invalid/frame?k=1"></iframe>`),
  ),
  onlyKeys(
    "a challenge that loads itself again",
    ["auth"],
    html(
      "Wait",
      `<h1>Please wait</h1><p>We look at your browser.</p><script src="/c.js"></script>`,
      `<meta http-equiv="refresh" content="5">`,
    ),
  ),
  onlyKeys(
    "an error page without the menu, Finnish",
    ["silent_failure"],
    html("Hups", "<h1>Hups</h1><p>Tätä sivua ei löydy. Se on ehkä siirretty.</p>", "", "fi"),
  ),
  needed(
    "an error page of another program",
    ["silent_failure"],
    html("Problem", `<h2>Problem</h2><p>The requested object was removed by its owner.</p>`),
  ),
  needed(
    "a sentence in place of its content",
    ["missing_docs"],
    page("Account", "<p>We are still writing this, so come back next week.</p>"),
  ),
  {
    name: "an error page with the menu for every path, Korean",
    pages: { "/keys": html("안내", `${menu}<main><h1>안내</h1><p>지금은 볼 수 없습니다.</p></main>`, "", "ko") },
    missing: () => html("안내", `${menu}<main><h1>안내</h1><p>지금은 볼 수 없습니다.</p></main>`, "", "ko"),
    finds: ["silent_failure"],
  },
  onlyKeys(
    "steps as pictures without alternatives",
    ["unreadable_page"],
    page("Rotate an API key", ["a", "b", "c"].map((name) => `<p>${picture(name, "")}</p>`).join("")),
  ),
  onlyKeys(
    "steps in a table of pictures",
    ["unreadable_page"],
    page(
      "Rotate an API key",
      `<table><tr><td>1</td><td>${picture("1", "Step")}</td></tr><tr><td>2</td><td>${picture("2", "Step")}</td></tr></table>`,
    ),
  ),
  onlyKeys(
    "a command as a picture",
    ["unreadable_page"],
    page(
      "Keys",
      `<h2>${goal}</h2><p>To rotate an API key, type:</p>${picture("t", "Terminal")}<h2>Rights</h2>${filler(3)}`,
    ),
  ),
  needed("Markdown as a file", ["unreadable_page"], {
    type: "application/octet-stream",
    body: "# Get an account\n\nWrite to the harbour office.\n",
  }),
  onlyKeys("HTML as a style sheet", ["unreadable_page"], { type: "text/css", body: page("Keys", answer()) }),
  needed(
    "a page that is not written yet, German",
    ["missing_docs"],
    html("Konto", `${menu}<main><h1>Konto</h1><p>Kommt bald.</p></main>`, "", "de"),
  ),
  onlyKeys(
    "tabs without panels",
    ["unreadable_page"],
    page(
      "Keys",
      `${answer()}<div role="tablist"><button role="tab">Go</button><button role="tab">PHP</button><button role="tab">Perl</button></div><div role="tabpanel"><p>Use the Go client.</p></div>`,
    ),
  ),
  onlyKeys("a header that hides the answer from search engines", ["missing_docs"], {
    headers: { "x-robots-tag": "nofollow, noindex" },
    body: page("Keys", answer()),
  }),
  onlyKeys(
    "a shell with an empty main element",
    ["unreadable_page"],
    html("Skiff", `<main id="app"></main><script type="module" src="/app.js"></script>`),
  ),
  needed("a page that robots.txt forbids", ["auth"], page("Get an account", filler(3)), {
    "/robots.txt": { type: "text/plain", body: "User-agent: *\nDisallow: /office/name\n" },
  }),
];
