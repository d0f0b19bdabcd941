import type { Block, ForeignPage } from "./site.ts";
import type { Context } from "./third-pages.ts";
import { code, heading, list, text } from "./third-pages.ts";

type Extra = { id: string; title: string; blocks(context: Context): Block[] };

/** Correct pages with what resembles a defect, as real docs have it. */
const extras: Extra[] = [
  {
    id: "single-sign-on",
    title: "Single sign-on for your team",
    blocks: ({ product }) => [
      text(
        `Owners can connect ${product.name} to the directory of their company. People then see one button, and no field for a password.`,
      ),
      heading("What people see"),
      text(
        "They choose **Continue with my company**, sign in there, and come back. If they close the window, they see the message `Please log in to continue`.",
      ),
      code(
        "html",
        '<form action="/session" method="post">\n  <label>E-mail <input name="email" type="email"></label>\n  <button>Continue with my company</button>\n</form>',
      ),
    ],
  },
  {
    id: "custom-error-pages",
    title: "Error pages of your own",
    blocks: () => [
      text(
        "Visitors who follow an outdated link see a standard page. You can write a friendlier one, and give it a picture.",
      ),
      code("nginx", "server {\n  error_page 404 /lost.html;\n  error_page 500 502 503 /sorry.html;\n}"),
      text("Keep it short. `Oops! We couldn't find that page` is enough for most people."),
    ],
  },
  {
    id: "ci",
    title: "Run it in a pipeline",
    blocks: ({ product }) => [
      text("Most pipelines keep secrets in a store of their own. Map it to the variable:"),
      code(
        "yaml",
        `jobs:\n  check:\n    runs-on: ubuntu-24.04\n    env:\n      ${product.variable}: \${{ secrets.${product.variable} }}\n    steps:\n      - uses: actions/checkout@v5\n      - run: make check`,
      ),
      text("Pull requests of strangers don't get the secret, so skip the step for them."),
    ],
  },
  {
    id: "docker",
    title: "Use a container",
    blocks: ({ product }) => [
      text("The image has nothing but the program and its certificates."),
      code(
        "dockerfile",
        `FROM registry.${product.package}.example/base:4\nCOPY . /app\nWORKDIR /app\nCMD ["serve", "--port", "8080"]`,
      ),
      text("What it prints at its start looks like this:"),
      code("text", "level=info listening on [::]:8080\nlevel=warn no cache (this is fine"),
    ],
  },
  {
    id: "terminal-transcript",
    title: "A walk through the terminal",
    blocks: () => [
      text("This transcript shows commands and what they print. Only the lines with a dollar sign are yours:"),
      code("console", "$ hostname\nrack-7\n$ date -u +%F\n2027-02-03"),
      text("If your computer prints the same date, its clock is right."),
    ],
  },
  {
    id: "editor",
    title: "Set up your editor",
    blocks: () => [
      text("Comments are allowed in this file, although its name ends with `.json`:"),
      code("jsonc", '{\n  // Two spaces, please\n  "editor.tabSize": 2,\n  "files.eol": "\\n",\n}'),
      text("Close the editor and open it again."),
    ],
  },
  {
    id: "common-mistakes",
    title: "Common mistakes",
    blocks: () => [
      text("A trailing comma is the mistake that we see most often. This is wrong:"),
      code("json", '{\n  "name": "left",\n}'),
      text("This is right:"),
      code("json", '{\n  "name": "left"\n}'),
    ],
  },
  {
    id: "regions",
    title: "Regions and their addresses",
    blocks: ({ product }) => [
      text("In the command below, replace `REGION` by the short name of your region from the table."),
      code("bash", `nslookup REGION.${product.package}.example`),
      {
        kind: "table",
        head: ["Region", "Short name"],
        rows: [
          ["Frankfurt", "fra"],
          ["Osaka", "osa"],
          ["Montréal", "mtl"],
        ],
      },
    ],
  },
  {
    id: "diff",
    title: "What an upgrade changes in your code",
    blocks: () => [
      text("Usually it is one line:"),
      code("diff", "--- a/settings.ini\n+++ b/settings.ini\n@@ -1,2 +1,2 @@\n [client]\n-token = abc\n+secret = abc"),
      text("The old line is ignored, so you can keep both while you roll out."),
    ],
  },
  {
    id: "sql",
    title: "Keep a copy in your own database",
    blocks: () => [
      text("Create a table first. It needs no index:"),
      code("sql", "CREATE TABLE copies (\n  id text PRIMARY KEY,\n  seen timestamptz NOT NULL DEFAULT now()\n);"),
      text("Write one row for each event, and ignore those that you have seen."),
    ],
  },
  {
    id: "screens",
    title: "A tour of the console",
    blocks: () => [
      text("On the left is the list of projects. What you choose there opens on the right, in tabs."),
      { kind: "image", source: "/images/console-left.png", alt: "The list of projects" },
      { kind: "image", source: "/images/console-right.png", alt: "The tabs of a project" },
      text("Press `g` and then `p` to come back to the list from anywhere."),
    ],
  },
  {
    id: "roadmap",
    title: "Roadmap",
    blocks: () => [
      text("We work on these parts. None of them is available yet, and we may change our mind."),
      list("Coming soon: a query builder.", "Coming soon: reports by mail.", "Under construction: an app for watches."),
      text("Tell us what you miss."),
    ],
  },
  {
    id: "hide-from-search",
    title: "Hide a status page from search engines",
    blocks: () => [
      text("Add this line to the head of the template of your status page:"),
      code("html", '<meta name="robots" content="noindex, nofollow">'),
      text("It takes a few weeks until search engines forget the page."),
    ],
  },
];

type Translation = { id: string; language: string; title: string; link: string; blocks(context: Context): Block[] };
const translations: Translation[] = [
  {
    id: "de",
    language: "de",
    link: "Deutsch",
    title: "Kurz erklärt",
    blocks: ({ product, to }) => [
      text(
        `${product.name} läuft auf deinem Rechner und im Netz. Du brauchst dafür nur einen Schlüssel und ein paar Minuten Zeit.`,
      ),
      heading("So fängst du an"),
      text(
        `Richte zuerst [das Werkzeug](${to("install")}) ein, besorge dir dann [einen Schlüssel](${to("auth")}). Beides ist auf Englisch beschrieben.`,
      ),
      code("bash", `export ${product.variable}="sk_live_81c2e"`),
      text("Danach kannst du alles ausprobieren, ohne dass etwas verloren geht."),
    ],
  },
  {
    id: "fr",
    language: "fr",
    link: "Français",
    title: "En deux mots",
    blocks: ({ product, to }) => [
      text(`${product.name} s'utilise depuis votre poste ou depuis un serveur. Une clé et quelques minutes suffisent.`),
      heading("Pour commencer"),
      text(
        `Installez d'abord [l'outil](${to("install")}), puis créez [une clé](${to("auth")}). Ces deux pages sont en anglais.`,
      ),
      text("Les essais ne coûtent rien, et rien n'est effacé avant trente jours."),
    ],
  },
  {
    id: "ja",
    language: "ja",
    link: "日本語",
    title: "はじめに",
    blocks: ({ product, to }) => [
      text(`${product.name}は手元のパソコンでもサーバーでも動きます。必要なのはキーと数分の時間だけです。`),
      heading("準備"),
      text(
        `まず[ツールを入れて](${to("install")})、次に[キーを作成します](${to("auth")})。この二つのページは英語です。`,
      ),
      text("試すだけなら料金はかかりません。データは三十日間残ります。"),
    ],
  },
];

/** Some of these pages, others for each seed. */
export function extraPages(context: Context, seed: number, pathOf: (page: string) => string): ForeignPage[] {
  const chosen = [0, 4, 7, 9].map((offset) => extras[(seed * 2 + offset) % extras.length]!);
  return [...new Set(chosen)].map(({ id, title, blocks }) => ({
    path: pathOf(`more/${id}`),
    title,
    blocks: blocks(context),
  }));
}

/** Short introductions in other languages. */
export const translatedPages = (context: Context, pathOf: (page: string) => string) =>
  translations.map(({ id, language, title, link, blocks }) => ({
    language,
    link,
    page: { path: pathOf(`${id}/start`), title, blocks: blocks(context) },
  }));
