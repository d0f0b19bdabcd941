import type { Friction } from "../../src/grading/grade.ts";
import type { Block, DocsPage, DocsSite } from "./docs-site.ts";
import { pathOf } from "./markup.ts";

/** `way`: on the answer's page or on a page without which the answer cannot be used. `elsewhere`: on another page. */
export const places = ["way", "elsewhere"] as const;
export type Place = (typeof places)[number];

/** The planted defect, and what a finding of it must contain: its category, and a path in its URL, title or text. */
export type Planted = { kind: DefectKind; place: Place; categories: Friction["category"][]; path: string };

type Plant = (site: DocsSite, page: DocsPage, place: Place) => Planted["path"] | null;
type Defect = {
  categories: Friction["category"][];
  places: readonly Place[];
  /** `needs` breaks a page that others lead to; `content` breaks something on the page. */
  on: "content" | "target";
  plant: Plant;
};

const codeBlocks = (page: DocsPage, language: RegExp) =>
  page.sections.flatMap(({ blocks }) =>
    blocks.flatMap((block) => (block.kind === "code" && language.test(block.language) ? [block] : [])),
  );

/** A sentence with a link, placed where a reader of the section passes. */
const addLink = (page: DocsPage, to: string, text: string) => {
  const block: Block = { kind: "text", text: ["For the details see ", { to, text }, "."] };
  (page.sections.find(({ heading }) => heading !== "") ?? page.sections[0])?.blocks.push(block);
};

const replaced = (answer: Parameters<DocsSite["answers"]["set"]>[1]): Plant => {
  return (site, page) => {
    site.answers.set(page.id, answer);
    return pathOf(site, page.id);
  };
};
const html = "text/html; charset=utf-8";

/** One call of a sample, in the style of the curl and fetch samples on the pages. */
const callPattern = /"([a-z_]+)":/;

const defects = {
  dead_link: {
    categories: ["dead_link"],
    places,
    on: "content",
    plant: (site, page) => {
      const to = `${page.id}-details`;
      addLink(page, to, "the details");
      return pathOf(site, to);
    },
  },
  dead_llms_entry: {
    categories: ["dead_link"],
    places: ["elsewhere"],
    on: "content",
    plant: (site, page) => {
      if (!site.llmsTxt) return null;
      const id = `${page.id}-moved`;
      site.llmsTxt.splice(Math.floor(site.llmsTxt.length / 2), 0, id);
      return pathOf(site, id);
    },
  },
  dead_sitemap_entry: {
    categories: ["dead_link"],
    places: ["elsewhere"],
    on: "content",
    plant: (site, page) => {
      if (!site.sitemap) return null;
      const id = `${page.id}-gone`;
      site.sitemap.splice(Math.floor(site.sitemap.length / 2), 0, id);
      return pathOf(site, id);
    },
  },
  redirect_loop: {
    categories: ["dead_link"],
    places,
    on: "target",
    plant: (site, page) => {
      const path = pathOf(site, page.id);
      site.answers.set(page.id, { status: 302, type: html, body: "", headers: { location: path } });
      return path;
    },
  },
  soft_404: {
    categories: ["silent_failure"],
    places,
    on: "target",
    plant: replaced({
      status: 200,
      type: html,
      body: "<!doctype html><html><head><title>Page not found</title></head><body><h1>Page not found</h1><p>Sorry, there is nothing here.</p></body></html>",
    }),
  },
  sign_in_wall: {
    categories: ["auth"],
    places,
    on: "target",
    plant: (site, page, place) =>
      site.seed % 2 === 0
        ? replaced({ status: 401, type: html, body: "<title>Sign in</title><h1>Sign in</h1>" })(site, page, place)
        : replaced({
            status: 200,
            type: html,
            body: '<!doctype html><html><head><title>Sign in</title></head><body><h1>Sign in</h1><form action="/session" method="post"><label>Email <input name="email" type="email"></label><label>Password <input name="password" type="password"></label><button>Sign in</button></form></body></html>',
          })(site, page, place),
  },
  script_shell: {
    categories: ["unreadable_page"],
    places,
    on: "target",
    plant: replaced({
      status: 200,
      type: html,
      body: '<!doctype html><html><head><title>Docs</title><script src="/main.js" defer></script></head><body><div id="root"></div><noscript>You need to enable JavaScript to run this app.</noscript></body></html>',
    }),
  },
  slow_page: {
    categories: ["slow"],
    places,
    on: "target",
    plant: (site, page) => {
      const type = site.markup === "markdown" ? "text/markdown; charset=utf-8" : html;
      site.answers.set(page.id, { status: 200, type, body: "", delayMs: 3300 });
      return pathOf(site, page.id);
    },
  },
  broken_sample: {
    categories: ["broken_sample"],
    places,
    on: "content",
    plant: (site, page) => {
      const [sample] = codeBlocks(page, /^(js|json|bash|python|go)$/);
      if (!sample) return null;
      if (sample.language === "json") sample.code = sample.code.replace(/,\n/, "\n");
      else if (sample.language === "bash") sample.code = `${sample.code.replace(/"\s*$/, "")} --data 'unclosed`;
      else if (sample.language === "python") sample.code = sample.code.replace(/\n\)/, "");
      else sample.code = sample.code.replace(/\}\);|\}\)/, "};");
      return pathOf(site, page.id);
    },
  },
  sample_against_api: {
    categories: ["wrong_contract", "broken_sample"],
    places,
    on: "content",
    plant: (site, page) => {
      for (const sample of codeBlocks(page, /^bash$/)) {
        if (!sample.code.includes("/v1/") || /\/do-|_value"/.test(sample.code)) continue;
        sample.code =
          site.seed % 2 === 0
            ? sample.code.replace("/id_123/", "/id_123/do-")
            : sample.code.replace(callPattern, '"$1_value":');
        return pathOf(site, page.id);
      }
      return null;
    },
  },
  invalid_api: {
    categories: ["wrong_contract"],
    places: ["way"],
    on: "content",
    plant: (site) => {
      delete site.api.components.schemas[Object.keys(site.api.components.schemas)[0]!];
      return "/openapi.json";
    },
  },
  missing_prerequisite: {
    categories: ["missing_docs"],
    places: ["way"],
    on: "content",
    plant: (site) => {
      const id = site.seed % 2 === 0 ? "install" : "authentication";
      removePage(site, id);
      return pathOf(site, site.answer.page);
    },
  },
} satisfies Record<string, Defect>;

export type DefectKind = keyof typeof defects;
export const defectKinds = Object.keys(defects) as DefectKind[];

/** Takes a page out of a site, and every link and entry that leads to it. */
function removePage(site: DocsSite, id: string): void {
  site.pages.delete(id);
  site.llmsTxt = site.llmsTxt?.filter((each) => each !== id) ?? null;
  site.sitemap = site.sitemap?.filter((each) => each !== id) ?? null;
  const plain = (part: DocsPage["sections"][number]["blocks"][number]) => {
    if (part.kind === "text") part.text = part.text.map((one) => (typeof one !== "string" && one.to === id ? "" : one));
    if (part.kind === "list")
      part.items = part.items.filter((item) => !item.some((one) => typeof one !== "string" && one.to === id));
  };
  for (const page of site.pages.values()) for (const { blocks } of page.sections) blocks.forEach(plain);
}

/** Plants one defect, or returns null if the site has no place for it. `nth` selects among the places of one kind. */
export function plant(site: DocsSite, kind: DefectKind, place: Place, nth = 0): Planted | null {
  const { categories, on, plant: put, places: possible }: Defect = defects[kind];
  if (!possible.includes(place)) return null;
  const own = [site.answer.page, ...site.needs];
  const others = [...site.pages.keys()].filter((id) => id !== "index" && !own.includes(id));
  const candidates =
    place === "elsewhere" ? others.slice(2) : on === "target" ? site.needs : [site.answer.page, ...site.needs];
  for (let tried = 0; tried < candidates.length; tried++) {
    const page = site.pages.get(candidates[(nth + tried) % candidates.length]!);
    if (!page || site.answers.has(page.id)) continue;
    const path = put(site, page, place);
    if (path !== null) return { kind, place, categories, path };
  }
  return null;
}

/** Whether a friction point names the planted defect, by its category and by the path in its URL or text. */
export function names(friction: Friction, { categories, path }: Planted): boolean {
  const { url, title, description, category } = friction;
  return categories.includes(category) && [url, title, description].some((text) => text?.includes(path));
}
