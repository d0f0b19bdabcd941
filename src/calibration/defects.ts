import type { PlantedDefect } from "../db/tables/calibrations.ts";
import type { frictionCategories } from "../grading/kinds.ts";
import type { DocsPage, DocsSite } from "./docs-site.ts";

/** The defects that can be planted into a site that evald made. */
const siteDefects = [
  "dead_link",
  "missing_section",
  "broken_program",
  "broken_json",
  "renamed_field",
  "renamed_call",
  "missing_package",
  "soft_404",
  "sign_in_wall",
  "script_shell",
  "redirect_loop",
  "dead_llms_entry",
  "dead_sitemap_entry",
  "invalid_api",
] as const;
type SiteDefect = (typeof siteDefects)[number];

type Category = (typeof frictionCategories)[number];

/** Each site gets one defect of each group: they are on different pages, or on different parts of the page with the answer. */
const groups: readonly (readonly SiteDefect[])[] = [
  ["dead_link", "missing_section"],
  ["broken_program", "broken_json", "renamed_field", "renamed_call", "missing_package"],
  ["soft_404", "sign_in_wall", "script_shell", "redirect_loop"],
  ["dead_llms_entry", "dead_sitemap_entry", "invalid_api"],
];

/**
 * Changes a site by planting four defects into it. `number`: the number of the site. Other numbers get other defects, so that each defect has its
 * turn.
 */
export const plantInSite = (site: DocsSite, number: number): PlantedDefect[] =>
  groups.map((kinds, group) => {
    // Each group rotates at its own speed, so that different defects are combined.
    const kind = kinds[(number + group * Math.floor(number / kinds.length)) % kinds.length]!;
    const { categories, plant } = defects[kind];
    const { path, named = path } = plant(site);
    return { kind, categories: [...categories], url: new URL(path, site.at).href, named };
  });

/** Changes a site. `path`: where the defect is. `named`: the text by which findings name the defect; default: its path. */
type Plant = (site: DocsSite) => { path: string; named?: string };
/** `categories`: the categories of findings that can name the defect. */
type Definition = { categories: readonly Category[]; plant: Plant };

const defects: Record<SiteDefect, Definition> = {
  dead_link: {
    categories: ["dead_link"],
    plant: (site) => ({ path: site.answer, named: addLink(site, `${site.answer}details/`) }),
  },
  missing_section: {
    categories: ["dead_link"],
    plant: (site) => ({ path: site.answer, named: addLink(site, "/quickstart/#rotate-keys").replace(/^.*#/, "") }),
  },
  broken_program: {
    categories: ["broken_sample"],
    plant: (site) => changeCode(site, "js", (code) => code.replace("})\n});", "}\n});")),
  },
  broken_json: {
    categories: ["broken_sample"],
    plant: (site) => changeCode(site, "json", (code) => code.replace(",\n", "\n")),
  },
  renamed_field: {
    categories: ["wrong_contract", "broken_sample"],
    plant: (site) => changeCode(site, "bash", (code) => code.replace(/\{"(\w+)":/, '{"$1_value":')),
  },
  renamed_call: {
    categories: ["wrong_contract", "broken_sample"],
    plant: (site) => changeCode(site, "bash", (code) => code.replace("/id_123/", "/id_123/do-")),
  },
  missing_package: {
    categories: ["missing_docs"],
    plant: (site) => {
      const name = `${site.product.toLowerCase()}-signer`;
      changeCode(site, "js", (code) => `import { sign } from "${name}";\n\n${code}`);
      return { path: site.answer, named: name };
    },
  },
  soft_404: {
    categories: ["silent_failure"],
    plant: (site) =>
      replacePage(site, "<title>Page not found</title><h1>Page not found</h1><p>There is nothing here.</p>"),
  },
  sign_in_wall: {
    categories: ["auth"],
    plant: (site) =>
      replacePage(
        site,
        '<title>Sign in</title><h1>Sign in</h1><form action="/session" method="post"><label>Email <input name="email" type="email"></label><label>Password <input name="password" type="password"></label><button>Sign in</button></form>',
      ),
  },
  script_shell: {
    categories: ["unreadable_page"],
    plant: (site) =>
      replacePage(
        site,
        '<title>Docs</title><script src="/main.js" defer></script><div id="root"></div><noscript>You need to enable JavaScript to run this app.</noscript>',
      ),
  },
  redirect_loop: {
    categories: ["dead_link"],
    plant: (site) => {
      site.redirects.push("/install/ /install/ 302!", "/install /install/ 302!");
      return { path: "/install/" };
    },
  },
  dead_llms_entry: {
    categories: ["dead_link"],
    plant: (site) => ({ path: "/llms.txt", named: addEntry(site.llmsTxt, "/changelog/") }),
  },
  dead_sitemap_entry: {
    categories: ["dead_link"],
    plant: (site) => ({ path: "/sitemap.xml", named: addEntry(site.sitemap, "/glossary/") }),
  },
  invalid_api: {
    categories: ["wrong_contract"],
    plant: ({ api }) => {
      const [first = ""] = Object.keys(api.components.schemas);
      delete api.components.schemas[first];
      return { path: "/openapi.json" };
    },
  },
};

const answerPage = ({ pages, answer }: DocsSite): DocsPage => pages.get(answer)!;

/** Adds a link to the page with the answer, where a reader comes across it. */
function addLink(site: DocsSite, to: string): string {
  answerPage(site).sections[1]?.blocks.push({ kind: "text", text: "For more, see", link: { to, text: "the details" } });
  return to;
}

function addEntry(entries: string[], path: string): string {
  entries.splice(Math.floor(entries.length / 2), 0, path);
  return path;
}

/** Changes the first sample of a language on the page with the answer. */
function changeCode(site: DocsSite, language: string, change: (code: string) => string): { path: string } {
  const blocks = answerPage(site).sections.flatMap(({ blocks }) => blocks);
  const sample = blocks.find((block) => block.kind === "code" && block.language === language);
  if (sample?.kind === "code") sample.code = change(sample.code);
  return { path: site.answer };
}

/** Replaces the page about authentication, which every call of the answer needs. */
function replacePage(site: DocsSite, html: string): { path: string } {
  site.replaced.set("/authentication/", `<!doctype html>${html}`);
  return { path: "/authentication/" };
}
