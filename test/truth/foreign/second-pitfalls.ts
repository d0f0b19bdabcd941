import { curlOf } from "./second-samples.ts";
import type { Block, ForeignPage, Product } from "./site.ts";

const text = (content: string): Block => ({ kind: "text", text: content });
const heading = (content: string): Block => ({ kind: "heading", level: 2, text: content });
const code = (language: string | null, content: string): Block => ({ kind: "code", language, code: content });
const perSite = 4;

type Pitfall = { id: string; title: string; blocks(product: Product): Block[] };

/** Correct pages that resemble defects: a report that complains about one of them invents a problem. */
const pitfalls: Pitfall[] = [
  {
    id: "sign-in",
    title: "Sign in with your company account",
    blocks: ({ name }) => [
      text(
        `People sign in to ${name} with their company account. Choose Sign in, enter your e-mail address, and follow the link in the message. Access is denied to anyone who is not in the directory.`,
      ),
      heading("Require a password as well"),
      text("An administrator can require a password and a second factor under Settings, Sign-in."),
    ],
  },
  {
    id: "not-found",
    title: "404: page not found",
    blocks: () => [
      text(
        "Your own site shows this error when someone opens an address that does not exist. This page explains how to replace it with a friendly one.",
      ),
      heading("Write a page of your own"),
      code("html", "<title>Not found</title>\n<h1>Sorry, this page doesn't exist</h1>"),
      text("Save it as 404.html next to your start page. It takes effect immediately."),
    ],
  },
  {
    id: "names-to-replace",
    title: "Use the address of your region",
    blocks: ({ package: id }) => [
      text("Replace YOUR_REGION with the region of your account, for example eu-west, and send a ping:"),
      code("sh", `ping -c 1 YOUR_REGION.${id}.example`),
      text("The answer arrives within a few milliseconds if you are near that region."),
    ],
  },
  {
    id: "terminal-session",
    title: "A session in the terminal",
    blocks: () => [
      text("This is what a typical session looks like, with what the computer prints:"),
      code("console", "$ uname -s\nLinux\n$ whoami\nanna"),
      text("Lines with a dollar sign are typed by a person. The others are answers."),
    ],
  },
  {
    id: "wrong-on-purpose",
    title: "Mistakes that parsers find",
    blocks: () => [
      text("The following JSON doesn't parse, because a comma is missing:"),
      code("json", '{\n  "id": "k7"\n  "frozen": false\n}'),
      text("With the comma, it parses:"),
      code("json", '{\n  "id": "k7",\n  "frozen": false\n}'),
    ],
  },
  {
    id: "old-clients",
    title: "Move from version 2 to version 3",
    blocks: ({ name }) => [
      text(
        `Clients of ${name} 2 are deprecated and keep working until the end of the year. Change the number in the address from v2 to v3, then replace the key.`,
      ),
      heading("What is different"),
      text("Version 2 knew no freezing. Everything else has the same name as before."),
    ],
  },
  {
    id: "plans",
    title: "What we plan",
    blocks: ({ name }) => [
      text(`These parts of ${name} are coming soon. We write them down so that you can tell us what matters to you.`),
      { kind: "list", items: ["A dark theme", "Search in attachments", "An app for tablets"] },
      text("Nothing here is a promise. We review the list every quarter."),
    ],
  },
  {
    id: "screen",
    title: "Around the screen",
    blocks: () => [
      text(
        "The picture shows the four areas of the screen: the menu on the left, the list, the details and the search.",
      ),
      { kind: "image", source: "/screen.png", alt: "The screen with its menu, list, details and search" },
      text("Press the slash key to jump to the search from any of them."),
    ],
  },
  {
    id: "todo-lists",
    title: "Keep a list of open tasks",
    blocks: () => [
      text("A list named TODO holds what is still open. Items move to Done when somebody ticks them."),
      heading("Share the list"),
      text("Open the list, choose Share, and select a colleague."),
    ],
  },
  {
    id: "any-values",
    title: "Values in braces",
    blocks: (product) => [
      text("In the paths of this manual, {id} stands for the ID of an item, such as k7-0031."),
      {
        kind: "table",
        head: ["Path", "Meaning"],
        rows: [
          ["/pallets/{id}", "One pallet"],
          ["/pallets", "All pallets"],
        ],
      },
      text("A request never contains the braces:"),
      code(
        "sh",
        curlOf(product, "pallet", { action: "list", method: "GET", path: "", query: {}, settings: {} }).replace(
          /'https.*'/,
          `'https://status.${product.package}.example/'`,
        ),
      ),
    ],
  },
  {
    id: "shell-variables",
    title: "Repeat a request",
    blocks: () => [
      text("A loop repeats a request until it succeeds. The variable is defined in the first line:"),
      code("bash", 'attempts=5\nfor attempt in $(seq "$attempts"); do\n  echo "attempt $attempt"\ndone'),
      text("Five attempts are enough in almost every case."),
    ],
  },
  {
    id: "robots",
    title: "Keep search engines away",
    blocks: () => [
      text("To hide your public pages from search engines, switch on Hidden. Every page then contains this line:"),
      code("html", '<meta name="robots" content="noindex">'),
      text("Existing entries disappear after some weeks."),
    ],
  },
  {
    id: "snippets",
    title: "Parts of a file",
    blocks: () => [
      text("Add these lines inside the existing object; leave the rest of the file as it is:"),
      code("json5", '// …\n"retries": 3,\n"verbose": true,\n// …'),
      text("The server reads the file again within a minute."),
    ],
  },
  {
    id: "colors",
    title: "Ünïcode and emoji",
    blocks: () => [
      text("Names may contain any letter: Größe, naïve, 日本語, Ελληνικά and emoji such as 🎈 all work."),
      text("They are compared without regard to case, where a script has cases."),
    ],
  },
];

/** Some of these pages, other ones for each seed, and a page that lists them. */
export function pitfallsOf(product: Product, seed: number, pathOf: (page: string) => string): ForeignPage[] {
  const chosen = Array.from({ length: perSite }, (_, at) => pitfalls[(seed * 3 + at * 5) % pitfalls.length]!);
  const pages = [...new Set(chosen)].map(({ id, title, blocks }) => ({
    path: pathOf(`more/${id}`),
    title,
    blocks: blocks(product),
  }));
  const index: ForeignPage = {
    path: pathOf("more/all"),
    title: "Good to know",
    blocks: [{ kind: "list", items: pages.map(({ title, path }) => `[${title}](${path})`) }],
  };
  return [index, ...pages];
}
