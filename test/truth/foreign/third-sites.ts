import {
  type Api,
  type Block,
  type Code,
  camel,
  capital,
  type ForeignPage,
  type ForeignSite,
  idOf,
  type Markup,
  type Product,
} from "./site.ts";
import { extraPages, translatedPages } from "./third-extras.ts";
import { thirdMarkups } from "./third-markups.ts";
import { type Context, code, framePage, heading, layouts, list, type Role, roles, text } from "./third-pages.ts";
import { type Domain, domains, type Task, type Value } from "./third-products.ts";
import { credentialOf, hostOf, pathOfThing, pluralOf, requestOf, requiredHeaderOf, sampleOf } from "./third-samples.ts";
import { tools } from "./third-tools.ts";

const names = [
  "Quillon",
  "Marlpit",
  "Orrery",
  "Pomelo",
  "Saltire",
  "Brindle",
  "Cairnly",
  "Dovetail",
  "Foxglove",
  "Gimlet",
  "Inkhorn",
  "Jackdaw",
  "Kumquat",
  "Larkspur",
  "Moorhen",
  "Nettle",
  "Ospreyly",
  "Periwig",
  "Rowanly",
  "Skerry",
];
const sizes = [14, 20, 30, 44];
const smallSite = 12;
const shownGuides = 8;
const smallRoles: Role[] = ["install", "auth", "quickstart", "errors", "reference"];
const multilingual = ["sms", "auth", "engine"];

/** The parts of a site that a defect can be planted in. They are the objects of the site itself. */
export type Parts = {
  install: ForeignPage;
  auth: ForeignPage;
  quickstart: ForeignPage;
  errors: ForeignPage;
  /** What answers the goal, with its heading if it is not a page of its own. */
  section: Block[];
  sample: Code;
  request: Code | null;
  task: Task;
};
const partsBySite = new WeakMap<ForeignSite, Parts>();
export const partsOf = (site: ForeignSite): Parts => partsBySite.get(site)!;

function randomOf(seed: number): () => number {
  let state = (seed * 2654435761 + 12345) >>> 0;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}

type Options = { markup?: Markup; kind?: string; size?: number };
/** A section about one task for one kind of thing. */
type Guide = { title: string; blocks: Block[]; sample: Code; request: Code | null; task: Task; thing: string };

/** A clean site of the third round. */
export function thirdSite(
  seed: number,
  { markup = thirdMarkups[seed % thirdMarkups.length]!, kind, size }: Options = {},
): ForeignSite {
  const random = randomOf(seed);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const all = [...domains, ...tools];
  const domain = all.find((each) => each.kind === kind) ?? all[(seed * 8 + 3) % all.length]!;
  const product = productOf(pick(names), domain);
  const layout = layouts[seed % layouts.length]!;
  const pathOf = (page: string) => `/${page}${markup.extension}`;
  const wanted = size ?? pick(sizes);
  const tone = Math.floor(random() * 3);
  const to = (role: Role) => pathOf(layout[role]);
  const base = { product, domain, tone, to };
  const isSmall = wanted <= smallSite;

  const offset = Math.floor(random() * domain.things.length);
  const things = domain.things.map((_, at) => domain.things[(at + offset) % domain.things.length]!);
  const perThing = random() < 0.4;
  const count = Math.max(5, Math.min(domain.tasks.length * things.length, wanted - (isSmall ? 6 : 12)));
  const guides = Array.from({ length: perThing ? things.length * domain.tasks.length : count }, (_, at) =>
    perThing
      ? guideOf(base, things[Math.floor(at / domain.tasks.length)]!, domain.tasks[at % domain.tasks.length]!, 3)
      : guideOf(base, things[at % things.length]!, domain.tasks[at % domain.tasks.length]!, 2),
  );
  const pages = guidePages(guides, perThing, (page) => pathOf(`${layout.guides}/${page}`), to);
  const context: Context = { ...base, hello: helloOf(product, domain, guides[0]!), first: pages[0]! };
  const frames = new Map(
    (isSmall ? smallRoles : roles).map((role) => [role, { path: to(role), ...framePage(role, context) }]),
  );
  const extras = extraPages(context, seed, pathOf).slice(0, isSmall ? 2 : 4);
  const translations = multilingual.includes(domain.kind) ? translatedPages(context, pathOf) : [];
  const index: ForeignPage = {
    path: pathOf(`${layout.guides}/all`),
    title: ["All guides", "Everything you can do", "List of how-to guides"][tone]!,
    blocks: [list(...pages.map(linkTo))],
  };
  const home: ForeignPage = {
    path: "/",
    title: [`${product.name} docs`, `Welcome to ${product.name}`, `${product.name} documentation`][tone]!,
    blocks: homeBlocks(context, [...frames.values()], pages, index, extras),
  };
  if (translations.length > 0)
    home.blocks.push(text(translations.map(({ link, page }) => `[${link}](${page.path})`).join(" · ")));
  const site: ForeignSite = {
    seed,
    markup,
    product,
    pages: [home, ...frames.values(), ...pages, index, ...extras, ...translations.map(({ page }) => page)],
    api: domain.form ? apiOf(product, domain) : null,
    llmsTxt: null,
    sitemap: null,
    robotsTxt: seed % 3 === 0 ? "User-agent: *\nDisallow: /console/\nDisallow: /internal/\n" : null,
    goal: "",
    answer: "",
    replacements: new Map(),
    markdown: null,
    head: new Map(
      translations.map(({ language, page }) => [
        page.path,
        `<meta http-equiv="content-language" content="${language}">`,
      ]),
    ),
  };
  const paths = site.pages.map(({ path }) => path);
  if (seed % 4 === 1) site.llmsTxt = paths;
  if (seed % 2 === 0) site.sitemap = paths;
  ask(site, domain, pick(guides), frames);
  return site;
}

/** Chooses the goal. */
function ask(site: ForeignSite, domain: Domain, guide: Guide, frames: Map<Role, ForeignPage>): void {
  const { title, blocks, sample, request, task } = guide;
  const small = title[0]!.toLowerCase() + title.slice(1);
  site.goal = [title, `${title} with the ${domain.sdk}`, `Use the ${domain.sdk} to ${small}`][site.seed % 3]!;
  const page = site.pages.find((each) => each.blocks.includes(blocks[0]!))!;
  site.answer = page.path;
  const [install, auth, quickstart, errors] = (["install", "auth", "quickstart", "errors"] as const).map(
    (role) => frames.get(role)!,
  );
  const section = page.title === title ? blocks : [page.blocks[page.blocks.indexOf(blocks[0]!) - 1]!, ...blocks];
  partsBySite.set(site, {
    install: install!,
    auth: auth!,
    quickstart: quickstart!,
    errors: errors!,
    section,
    sample,
    request,
    task,
  });
}

const linkTo = ({ title, path }: ForeignPage) => `[${title}](${path})`;

function productOf(name: string, { kind, language }: Domain): Product {
  const id = name.toLowerCase();
  const variable = `${name.toUpperCase()}_${["SECRET", "API_KEY", "TOKEN"][kind.length % 3]}`;
  return { name, package: id, kind, language, variable: kind === "maps" ? `VITE_${variable}` : variable };
}

/** Other spellings of the names of languages, as some docs have them. */
const spellings: Record<string, string[]> = {
  js: ["js", "javascript"],
  ts: ["ts", "typescript"],
  python: ["python", "py"],
  rust: ["rust", "rs"],
  yaml: ["yaml", "yml"],
  bash: ["bash", "sh", "shell"],
  csharp: ["csharp", "cs"],
};

function guideOf(base: Omit<Context, "hello" | "first">, thing: string, task: Task, level: number): Guide {
  const { product, domain, tone, to } = base;
  const title = task.title.replace(/\ba \{\}/, `${/^[aeiou]/.test(thing) ? "an" : "a"} ${thing}`).replace("{}", thing);
  const call = { product, domain, task, thing };
  const spell = (language: string) => {
    const spelled = spellings[language] ?? [language];
    return spelled[product.name.length % spelled.length]!;
  };
  const asked = requestOf(call);
  const request = asked && (code(spell(asked.language), asked.code) as Code);
  const sample = domain.kind === "mail" ? request! : (code(spell(product.language), sampleOf(call)) as Code);
  const blocks: Block[] = [
    text(
      `${task.why} You need ${[`[an installation](${to("install")}) and [a secret](${to("auth")})`, `[the tools](${to("install")}) and [your secret](${to("auth")})`, `an [installed version](${to("install")}) and valid [credentials](${to("auth")})`][tone]}.`,
    ),
    heading(
      [`With the ${domain.sdk}`, `The ${domain.sdk} does it in one call`, `Procedure for the ${domain.sdk}`][tone]!,
      level,
    ),
    sample,
  ];
  if (request && request !== sample)
    blocks.push(heading(["Over HTTP", "No SDK? No problem", "Procedure for plain HTTP"][tone]!, level), request);
  const fields = Object.entries(task.body);
  blocks.push(heading(["Fields", "What you can set", "Parameters"][tone]!, level), {
    kind: "table",
    head: ["Name", "Type", "Example"],
    rows: fields.map(([name, value]) => [
      `\`${name}\``,
      typeof value === "number" ? "integer" : typeof value,
      typeof value === "object" ? "see above" : `${value}`,
    ]),
  });
  if (request)
    blocks.push(
      text("The answer looks like this:"),
      code("json", JSON.stringify({ id: domain.id, object: thing, steps: [{ name: task.verb, done: true }] }, null, 2)),
    );
  blocks.push(text(`If it fails, look up the code under [errors](${to("errors")}).`));
  return { title, blocks, sample, request, task, thing };
}

/** A page for each task, or one for each kind of thing with a section for each task. */
function guidePages(
  guides: Guide[],
  perThing: boolean,
  pathOf: (page: string) => string,
  to: (role: Role) => string,
): ForeignPage[] {
  if (!perThing)
    return guides.map(({ title, blocks, thing }) => ({
      path: pathOf(`${idOf(title)}`),
      title,
      blocks: [...blocks, text(`More about every ${thing}: [reference](${to("reference")}).`)],
    }));
  return [...Map.groupBy(guides, ({ thing }) => thing)].map(([thing, each]) => ({
    path: pathOf(`${idOf(pluralOf(thing))}`),
    title: `Working with ${pluralOf(thing)}`,
    blocks: [
      text(`Everything that you can do with a single ${thing}. Limits are in [the reference](${to("reference")}).`),
      ...each.flatMap(({ title, blocks }) => [heading(title), ...blocks]),
    ],
  }));
}

/** The first call that somebody makes. */
function helloOf(product: Product, domain: Domain, { sample }: Guide): Block {
  if (domain.form)
    return code(
      "bash",
      `curl -H "${credentialOf(product, `$${product.variable}`).join(": ")}" https://${hostOf(product)}/v4/account`,
    );
  return product.language === "bash"
    ? code("bash", `${product.package} whoami --output json`)
    : structuredClone(sample);
}

function homeBlocks(
  { product, domain, tone }: Context,
  frames: ForeignPage[],
  pages: ForeignPage[],
  index: ForeignPage,
  extras: ForeignPage[],
): Block[] {
  const [start, rest] = [frames.slice(0, 3), frames.slice(3)];
  return [
    text(`${product.name} ${domain.what}.`),
    heading(["Start", "New here?", "Getting started"][tone]!),
    list(...start.map(linkTo)),
    heading(["Guides", "What would you like to do?", "How-to guides"][tone]!),
    list(...pages.slice(0, shownGuides).map(linkTo), `[${index.title}](${index.path})`),
    heading(["More", "Everything else", "Further documents"][tone]!),
    list(...[...rest, ...extras].map(linkTo)),
  ];
}

type Schema = Api["components"]["schemas"][string];
function schemaOf(value: Value): Schema {
  if (typeof value === "object")
    return {
      type: "object",
      properties: Object.fromEntries(Object.entries(value).map(([key, each]) => [key, schemaOf(each)])),
      required: Object.keys(value),
    };
  return { type: typeof value === "number" ? "integer" : typeof value };
}

function apiOf(product: Product, domain: Domain): Api {
  const [header, credential] = credentialOf(product, "");
  const extra = requiredHeaderOf(product);
  const responses = { "200": { description: "Done." } };
  const api: Api = {
    openapi: "3.1.0",
    info: { title: `${product.name} API`, version: "4.2.1" },
    servers: [{ url: `https://${hostOf(product)}/v4` }],
    security: [{ secret: [] }],
    paths: { "/account": { get: { operationId: "getAccount", parameters: [], responses } } },
    components: {
      schemas: {},
      securitySchemes: {
        secret: credential.startsWith("Bearer")
          ? { type: "http", scheme: "bearer" }
          : { type: "apiKey", in: "header", name: header },
      },
    },
  };
  for (const thing of domain.things)
    for (const task of domain.tasks) {
      const name = capital(task.verb) + camel(thing);
      const path = pathOfThing(thing) + task.path;
      api.components.schemas[name] = schemaOf(task.body);
      api.paths[path] = {
        ...api.paths[path],
        [task.method.toLowerCase()]: {
          operationId: name[0]!.toLowerCase() + name.slice(1),
          parameters: [
            { name: "id", in: "path", required: true, schema: { type: "string" } },
            { name: "dry_run", in: "query", required: false, schema: { type: "boolean" } },
            ...(extra ? [{ name: extra[0], in: "header", required: true, schema: { type: "string" } }] : []),
          ],
          requestBody: {
            required: true,
            content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } },
          },
          responses,
        },
      };
    }
  return api;
}
