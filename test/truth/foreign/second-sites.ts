import { randomOf } from "../../support/random.ts";
import { secondMarkups } from "./second-markups.ts";
import { pitfallsOf } from "./second-pitfalls.ts";
import {
  clientSample,
  credentialOf,
  itemId,
  type Operation,
  pathOfResource,
  requestOf,
  setupOf,
} from "./second-samples.ts";
import {
  type Api,
  type Block,
  camel,
  capital,
  type ForeignPage,
  type ForeignSite,
  idOf,
  type Markup,
  type Product,
} from "./site.ts";

const names = [
  "Tessel",
  "Vireo",
  "Halyard",
  "Sorrel",
  "Plinth",
  "Umbra",
  "Caldera",
  "Wicket",
  "Zephyr",
  "Bramble",
  "Cobalt",
  "Drumlin",
  "Eyrie",
  "Furrow",
  "Gantry",
  "Hollow",
  "Isthmus",
  "Juniper",
  "Keel",
  "Lintel",
];
/** Kinds of product, with the language of their samples. */
const kinds: [kind: string, language: string][] = [
  ["service", "bash"],
  ["node", "js"],
  ["typescript", "ts"],
  ["python", "python"],
  ["go", "go"],
  ["rust", "rust"],
  ["php", "php"],
  ["dotnet", "csharp"],
  ["ruby", "ruby"],
  ["jvm", "java"],
  ["embedded", "c"],
  ["native", "cpp"],
  ["graph", "graphql"],
  ["operator", "yaml"],
  ["daemon", "toml"],
  ["provider", "hcl"],
  ["console", "bash"],
];
const nouns = [
  "subtitle track",
  "telescope slot",
  "pallet",
  "voucher",
  "crawler",
  "mailbox",
  "polygon",
  "firmware image",
  "lease",
  "badge",
  "turbine",
  "seed batch",
  "waveform",
  "permit",
  "mosaic",
  "drone route",
  "recipe",
  "ticket queue",
  "night shift",
  "river gauge",
  "almanac",
  "probe",
  "exam room",
  "ad slot",
  "loyalty tier",
  "trail map",
  "parking bay",
  "song sheet",
  "soil sample",
  "cable run",
];
type Task = Operation & { heading: (noun: string) => string; why: string };
const tasks: Task[] = [
  {
    action: "rename",
    heading: (noun) => `Rename a ${noun}`,
    why: "Names are only shown to people. Programs keep using the ID.",
    method: "PATCH",
    path: "/{id}",
    query: {},
    settings: { title: "Spare" },
  },
  {
    action: "freeze",
    heading: (noun) => `Freeze a ${noun} until a date`,
    why: "Nobody can edit it before that day. The freeze ends at midnight, UTC.",
    method: "PUT",
    path: "/{id}/freeze",
    query: {},
    settings: { until: "2027-05-01" },
  },
  {
    action: "duplicate",
    heading: (noun) => `Duplicate a ${noun} into another project`,
    why: "The duplicate gets an ID of its own. Its comments stay with the original.",
    method: "POST",
    path: "/{id}/duplicate",
    query: {},
    settings: { project: "p-2" },
  },
  {
    action: "limit",
    heading: (noun) => `Limit the visitors of a ${noun}`,
    why: "Whoever comes later sees a friendly notice.",
    method: "PUT",
    path: "/{id}/limit",
    query: {},
    settings: { visitors: 25 },
  },
  {
    action: "restore",
    heading: (noun) => `Restore a ${noun} from the trash`,
    why: "Deleted items stay in the trash for four weeks.",
    method: "POST",
    path: "/{id}/restore",
    query: {},
    settings: { reason: "mistake" },
  },
];
/** Operations that have no setting, and are shown as requests only. */
const plainTasks: Task[] = [
  {
    action: "list",
    heading: (noun) => `Find every ${noun} with a given status`,
    why: "The newest come first, 50 at a time.",
    method: "GET",
    path: "",
    query: { status: "archived" },
    settings: {},
  },
  {
    action: "delete",
    heading: (noun) => `Delete a ${noun} but keep its history`,
    why: "The history remains readable for auditors.",
    method: "DELETE",
    path: "/{id}",
    query: { keep_history: "true" },
    settings: {},
  },
];
const sizes = [9, 13, 22, 36];
const frameSize = 6;

type Options = { markup?: Markup; kind?: string; size?: number };
const text = (content: string): Block => ({ kind: "text", text: content });
const heading = (content: string): Block => ({ kind: "heading", level: 2, text: content });

/** A clean site of the second round: one page for each kind of item, with a section for each operation. */
export function secondSite(
  seed: number,
  { markup = secondMarkups[seed % secondMarkups.length]!, kind, size }: Options = {},
): ForeignSite {
  const random = randomOf(seed * 6151 + 29);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const [productKind, language] = kinds.find(([each]) => each === kind) ?? kinds[(seed * 5 + 1) % kinds.length]!;
  const name = pick(names);
  const id = name.toLowerCase();
  const product: Product = { name, package: id, kind: productKind, language, variable: `${name.toUpperCase()}_KEY` };
  const pathOf = (page: string) => `/manual/${page}${markup.extension}`;
  const first = Math.floor(random() * nouns.length);
  const count = Math.max(3, Math.min(nouns.length, (size ?? pick(sizes)) - frameSize));
  const chosen = Array.from({ length: count }, (_, at) => nouns[(first + at) % nouns.length]!);
  const resources = chosen.map((noun, at) => resourcePage(product, noun, at, pathOf));
  const listed = markup.name === "slate" ? [merged(resources, pathOf)] : resources;
  const pages = [...frameOf(product, listed, chosen[0]!, pathOf), ...listed, ...pitfallsOf(product, seed, pathOf)];
  const paths = pages.map(({ path }) => path);
  const asked = pick(chosen);
  const at = chosen.indexOf(asked);
  return {
    seed,
    markup,
    product,
    pages,
    api: apiOf(product, chosen),
    llmsTxt: seed % 3 === 1 ? paths : null,
    sitemap: seed % 2 === 0 ? paths : null,
    robotsTxt: seed % 5 === 0 ? "User-agent: *\nDisallow: /search\n" : null,
    goal: tasksOf(at)[0]!.heading(asked),
    answer: markup.name === "slate" ? listed[0]!.path : resources[at]!.path,
    replacements: new Map(),
    markdown: null,
    head: new Map(),
  };
}

/** The tasks that the page of the nth kind of item explains, from one that comes first. */
const tasksOf = (at: number): Task[] => [0, 1, 2].map((offset) => tasks[(at + offset) % tasks.length]!);

function resourcePage(product: Product, noun: string, at: number, pathOf: (page: string) => string): ForeignPage {
  const hasClient = product.kind !== "service";
  const sections = tasksOf(at).flatMap((task): Block[] => [
    heading(task.heading(noun)),
    text(task.why),
    ...(hasClient
      ? [
          { kind: "code" as const, language: product.language, code: clientSample(product, noun, task) },
          text("Without the client, send this request:"),
        ]
      : []),
    requestOf(product, noun, task),
    {
      kind: "table",
      head: ["Setting", "Kind", "What it does"],
      rows: Object.entries(task.settings).map(([field, value]) => [
        field,
        typeof value === "number" ? "integer" : "string",
        `The ${field} of the ${noun}`,
      ]),
    },
  ]);
  const plain = plainTasks.flatMap((task): Block[] => [
    heading(task.heading(noun)),
    text(task.why),
    requestOf({ ...product, language: "bash" }, noun, task),
  ]);
  return {
    path: pathOf(`items/${idOf(noun)}`),
    title: `${capital(noun)}s`,
    blocks: [
      text(
        `Every ${noun} belongs to one project. What follows needs [a working client](${pathOf("setup")}) and [a key](${pathOf("keys")}).`,
      ),
      ...sections,
      ...plain,
      heading("What you get back"),
      { kind: "code", language: "json", code: JSON.stringify({ id: itemId, kind: noun, frozen: false }, null, 2) },
      text(`If a request fails, see [what errors mean](${pathOf("errors")}).`),
    ],
  };
}

/** All pages as sections of one. */
function merged(pages: ForeignPage[], pathOf: (page: string) => string): ForeignPage {
  const nested = pages.flatMap(({ title, blocks }): Block[] => [{ kind: "heading", level: 1, text: title }, ...blocks]);
  return { path: pathOf("items"), title: "All items", blocks: nested };
}

function apiOf(product: Product, chosen: string[]): Api {
  const [header, credential] = credentialOf(product, "");
  const scheme: Record<string, string> =
    credential === "" ? { type: "apiKey", in: "header", name: header } : { type: "http", scheme: "bearer" };
  const api: Api = {
    openapi: "3.1.0",
    info: { title: `${product.name} API`, version: "3.0.4" },
    servers: [{ url: `https://${product.package}.example/api/v3` }],
    paths: {},
    components: { schemas: {}, securitySchemes: { key: scheme } },
    security: [{ key: [] }],
  };
  chosen.forEach((noun, at) => {
    for (const task of [...tasksOf(at), ...plainTasks]) addOperation(api, noun, task);
  });
  return api;
}

function addOperation(api: Api, noun: string, { action, method, path, query, settings }: Task): void {
  const operationId = `${action}${camel(noun)}`;
  const hasBody = Object.keys(settings).length > 0;
  if (hasBody)
    api.components.schemas[capital(operationId)] = {
      type: "object",
      properties: Object.fromEntries(
        Object.entries(settings).map(([field, value]) => [
          field,
          { type: typeof value === "number" ? "integer" : "string" },
        ]),
      ),
      required: Object.keys(settings),
    };
  const full = `${pathOfResource(noun)}${path}`;
  api.paths[full] = {
    ...api.paths[full],
    [method.toLowerCase()]: {
      operationId,
      parameters: [
        ...(path.includes("{id}") ? [{ name: "id", in: "path", required: true, schema: { type: "string" } }] : []),
        ...Object.keys(query).map((name) => ({ name, in: "query", required: false, schema: { type: "string" } })),
      ],
      ...(hasBody && {
        requestBody: {
          required: true,
          content: { "application/json": { schema: { $ref: `#/components/schemas/${capital(operationId)}` } } },
        },
      }),
      responses: { "200": { description: "It worked." } },
    },
  };
}

/** The pages of every site except those about items. */
function frameOf(
  product: Product,
  listed: ForeignPage[],
  noun: string,
  pathOf: (page: string) => string,
): ForeignPage[] {
  const { name, variable } = product;
  const linkTo = ({ title, path }: ForeignPage) => `[${title}](${path})`;
  const setups = setupOf(product);
  const page = (id: string, title: string, ...blocks: Block[]): ForeignPage => ({ path: pathOf(id), title, blocks });
  return [
    {
      path: "/",
      title: `The ${name} manual`,
      blocks: [
        text(`${name} keeps the things of your organization in order. New here? Read these in turn:`),
        {
          kind: "list",
          items: [
            `[Set up ${name}](${pathOf("setup")})`,
            `[Get a key](${pathOf("keys")})`,
            `[Your first five minutes](${pathOf("first-steps")})`,
          ],
        },
        heading("What you can work with"),
        { kind: "list", items: listed.map(linkTo) },
        heading("Look it up"),
        {
          kind: "list",
          items: [
            `[What errors mean](${pathOf("errors")})`,
            `[What changed](${pathOf("releases")})`,
            `[Good to know](${pathOf("more/all")})`,
          ],
        },
      ],
    },
    page(
      "setup",
      `Set up ${name}`,
      text(`You need ${name} 3. Choose how to get it:`),
      setups.length > 1
        ? { kind: "tabs", shown: null, tabs: setups }
        : { kind: "code", language: setups[0]!.language, code: setups[0]!.code },
      text(`Afterwards, [get a key](${pathOf("keys")}).`),
    ),
    page(
      "keys",
      "Get a key",
      text(`Open your profile, choose Keys and then New key. Put the key into the variable ${variable}:`),
      { kind: "code", language: "sh", code: `export ${variable}='k_live_2b9'` },
      text("Whoever has the key can do what you can. Treat it like a password."),
    ),
    page(
      "first-steps",
      "Your first five minutes",
      text(`Once you [have ${name}](${pathOf("setup")}) and [a key](${pathOf("keys")}), look at your account:`),
      {
        kind: "code",
        language: "sh",
        code: `curl --silent --header "${credentialOf(product, `$${variable}`).join(": ")}" 'https://${product.package}.example/api/v3${pathOfResource(noun)}'`,
      },
      text(`Then go on with ${linkTo(listed[0]!)}.`),
    ),
    page(
      "errors",
      "What errors mean",
      text("The API is described in [openapi.json](/openapi.json). All operations answer errors in the same way:"),
      { kind: "code", language: "json", code: JSON.stringify({ code: "frozen", detail: "It is frozen." }, null, 2) },
      heading("Too many requests"),
      text("You may send 300 requests a minute. After that, wait until the minute is over."),
      heading("The key was rejected"),
      text(`It was withdrawn or has a typing error. [Get another one](${pathOf("keys")}).`),
    ),
    page(
      "releases",
      "What changed",
      heading("Version 3"),
      text("Items may be frozen. Clients of version 2 work until the end of the year."),
    ),
  ];
}
