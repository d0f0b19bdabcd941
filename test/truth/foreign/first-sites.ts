import { randomOf } from "../../support/random.ts";
import { firstMarkups } from "./first-markups.ts";
import { httpSample, installationOf, sampleOf } from "./samples.ts";
import {
  type Api,
  type Block,
  capital,
  type ForeignPage,
  type ForeignSite,
  type Markup,
  type Product,
} from "./site.ts";

const names = ["Brindle", "Jetsam", "Kestrel", "Lodestar", "Mistral", "Nightjar", "Oakum", "Pennant", "Quoin"];
/** Kinds of product, with the language of their samples. */
const kinds: [kind: string, language: string][] = [
  ["cli", "bash"],
  ["sdk-go", "go"],
  ["sdk-rust", "rust"],
  ["sdk-php", "php"],
  ["sdk-csharp", "csharp"],
  ["sdk-ruby", "ruby"],
  ["graphql", "graphql"],
  ["grpc", "protobuf"],
  ["terraform", "hcl"],
  ["helm", "yaml"],
  ["extension", "js"],
  ["hardware", "cpp"],
  ["rest", "bash"],
  ["sdk-python", "python"],
  ["sdk-java", "java"],
  ["sdk-js", "js"],
];
const subjects: [noun: string, verb: string][] = [
  ["label", "print"],
  ["valve", "open"],
  ["entry", "reverse"],
  ["recording", "publish"],
  ["booking", "cancel"],
  ["harvest", "schedule"],
  ["program", "upload"],
  ["loan", "approve"],
  ["reading", "collect"],
  ["detour", "announce"],
  ["barrel", "move"],
  ["hold", "extend"],
  ["referral", "forward"],
  ["session", "reserve"],
  ["blast", "postpone"],
  ["batch", "split"],
];
const variants: [tail: string, field: string, value: string | number][] = [
  ["before the deadline", "deadline", "2027-03-01"],
  ["for a second site", "site", "north"],
  ["with a custom label", "label", "blue"],
  ["in small portions", "portion", 5],
  ["under another name", "alias", "spare"],
  ["with a longer timeout", "timeout", 40],
  ["from a template", "template", "basic"],
  ["without notifying anyone", "silent", 1],
];
const sentences = [
  "The change is visible after a few seconds.",
  "Other items of the account stay as they are.",
  "Every operator of the team sees the result.",
  "You can repeat the step at any time.",
  "A record of the change is kept for ninety days.",
  "The operation has no effect on running work.",
  "Only owners may do this.",
  "The value may be changed later.",
];
const sizes = [10, 14, 20, 34, 60, 16, 110, 200];
/** The start page lists this many guides; the others are on a page of their own. */
const listed = 40;
/** Pages that aren't guides. */
const frameSize = 6;

type Guide = {
  path: string;
  title: string;
  noun: string;
  verb: string;
  tail: string;
  field: string;
  value: string | number;
};
type Options = { markup?: Markup /** A kind of product. */; kind?: string; size?: number };

/** A clean site of the first round. The same seed gives the same site. */
export function firstSite(
  seed: number,
  { markup = firstMarkups[seed % firstMarkups.length]!, kind, size }: Options = {},
): ForeignSite {
  const random = randomOf(seed * 7907 + 11);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const [productKind, language] = kinds.find(([each]) => each === kind) ?? kinds[(seed * 7 + 3) % kinds.length]!;
  const name = pick(names);
  const product: Product = {
    name,
    package: name.toLowerCase(),
    kind: productKind,
    language,
    variable: `${name.toUpperCase()}_TOKEN`,
  };
  const guides = guidesOf(seed, (size ?? pick(sizes)) - frameSize, markup.extension);
  const pathOf = (page: string) => `/${page}${markup.extension}`;
  const frame = frameOf(product, guides, pathOf);
  const guidePages = guides.map((guide) => guidePage(product, guide, pathOf, [pick(sentences), pick(sentences)]));
  const pages = [...frame.before, ...guidePages, ...frame.after];
  const paths = pages.map(({ path }) => path);
  const asked = guides[Math.min(guides.length - 1, 2 + Math.floor(random() * Math.min(30, guides.length - 2)))]!;
  return {
    seed,
    markup,
    product,
    pages,
    api: apiOf(product, guides),
    llmsTxt: seed % 2 ? paths.slice(0, 60) : null,
    sitemap: seed % 3 ? paths : null,
    robotsTxt: null,
    goal: asked.title,
    answer: asked.path,
    replacements: new Map(),
    markdown: null,
    head: new Map(),
  };
}

function guidesOf(seed: number, wanted: number, extension: string): Guide[] {
  const guides = new Map<string, Guide>();
  for (let i = 0; i < Math.max(4, wanted); i++) {
    const [noun, verb] = subjects[(i + seed) % subjects.length]!;
    const [tail, field, value] = variants[(Math.floor(i / subjects.length) + i + seed) % variants.length]!;
    const path = `/guides/${verb}-${noun}-${tail.replace(/[^a-z]+/g, "-")}${i >= 64 ? `-${i >> 6}` : ""}${extension}`;
    if (!guides.has(path))
      guides.set(path, { path, title: `${capital(verb)} a ${noun} ${tail}`, noun, verb, tail, field, value });
  }
  return [...guides.values()];
}

function apiOf(product: Product, guides: Guide[]): Api {
  const api: Api = {
    openapi: "3.0.3",
    info: { title: product.name, version: "2.0.0" },
    servers: [{ url: `https://api.${product.package}.example` }],
    paths: {},
    components: { schemas: {}, securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
    security: [{ bearer: [] }],
  };
  for (const { noun, verb, field, value } of guides) {
    const schema = `${capital(verb)}${capital(noun)}`;
    const properties = api.components.schemas[schema]?.properties ?? {};
    properties[field] = { type: typeof value === "number" ? "integer" : "string" };
    api.components.schemas[schema] = { type: "object", properties };
    api.paths[`/v2/${noun}s/{id}/${verb}`] = {
      post: {
        operationId: `${verb}-${noun}`,
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
        requestBody: {
          required: true,
          content: { "application/json": { schema: { $ref: `#/components/schemas/${schema}` } } },
        },
        responses: { "200": { description: "Done" } },
      },
    };
  }
  return api;
}

const text = (content: string): Block => ({ kind: "text", text: content });
const heading = (content: string): Block => ({ kind: "heading", level: 2, text: content });
const code = (language: string, content: string): Block => ({ kind: "code", language, code: content });
const list = (items: string[]): Block => ({ kind: "list", items });

function guidePage(
  product: Product,
  guide: Guide,
  pathOf: (page: string) => string,
  asides: [string, string],
): ForeignPage {
  const { noun, verb, tail, field, value } = guide;
  const hasOtherSample = product.language !== "bash" || product.kind === "cli";
  return {
    path: guide.path,
    title: guide.title,
    blocks: [
      text(
        `This guide shows how to ${verb} a ${noun} ${tail}. ${asides[0]} Before you begin, [install ${product.name}](${pathOf("install")}) and [set the token](${pathOf("authentication")}).`,
      ),
      heading(`${capital(verb)} the ${noun}`),
      text(`Use ${verb} with the ${field} that you need:`),
      code(product.language, sampleOf(product, product.language, guide)),
      ...(hasOtherSample ? [text("The same over HTTP:"), code("bash", httpSample(product, guide))] : []),
      heading("Parameters"),
      {
        kind: "table",
        head: ["Name", "Type", "Meaning"],
        rows: [
          ["id", "string", `The ${noun}`],
          [field, typeof value === "number" ? "integer" : "string", `The ${field} to use`],
        ],
      },
      heading("Response"),
      code("json", sampleOf(product, "json", guide)),
      text(`${asides[1]} See also the [reference](${pathOf("reference")}).`),
    ],
  };
}

/** The pages of every site, before and after its guides. */
function frameOf(
  product: Product,
  guides: Guide[],
  pathOf: (page: string) => string,
): { before: ForeignPage[]; after: ForeignPage[] } {
  const { name, variable } = product;
  const first = guides[0]!;
  const linkTo = ({ title, path }: Guide) => `[${title}](${path})`;
  const page = (id: string, title: string, ...blocks: Block[]): ForeignPage => ({ path: pathOf(id), title, blocks });
  const start: ForeignPage = {
    path: "/",
    title: `${name} documentation`,
    blocks: [
      text(
        `${name} runs the daily work of your site. Start with the [installation](${pathOf("install")}), then [sign in](${pathOf("authentication")}) and follow the [quickstart](${pathOf("quickstart")}).`,
      ),
      heading("Guides"),
      list(guides.slice(0, listed).map(linkTo)),
      ...(guides.length > listed ? [text(`See [all guides](${pathOf("guides-index")}).`)] : []),
      heading("Reference"),
      list(["Reference", "Troubleshooting", "Changelog"].map((title) => `[${title}](${pathOf(title.toLowerCase())})`)),
    ],
  };
  return {
    before: [
      start,
      page(
        "install",
        "Installation",
        text(`Install ${name} 2.0 on your machine.`),
        installationOf(product),
        text(`Check that it works, then go on with [authentication](${pathOf("authentication")}).`),
        heading("Requirements"),
        text("A machine with 2 GB of memory and a network connection."),
      ),
      page(
        "authentication",
        "Authentication",
        text(
          `Create a token in the console under Settings, Tokens. Set the variable ${variable} to this token: every sample of these docs reads it.`,
        ),
        code("bash", `export ${variable}="paste the token here"`),
        text("Tokens are valid for one year."),
      ),
      page(
        "quickstart",
        "Quickstart",
        text(
          `First [install ${name}](${pathOf("install")}) and [set the token](${pathOf("authentication")}). Then run this:`,
        ),
        code(product.language, sampleOf(product, product.language, first)),
        text(`Next: ${linkTo(first)}.`),
        heading("Configuration file"),
        code("json", JSON.stringify({ region: "eu-1", retries: 3, verbose: false }, null, 2)),
      ),
    ],
    after: [
      ...(guides.length > listed ? [page("guides-index", "All guides", list(guides.map(linkTo)))] : []),
      page(
        "reference",
        "Reference",
        text("The description of the API is in [openapi.json](/openapi.json)."),
        heading("Calls"),
        {
          kind: "table",
          head: ["Call", "Path"],
          rows: guides.slice(0, 16).map(({ noun, verb }) => [`${verb} ${noun}`, `/v2/${noun}s/{id}/${verb}`]),
        },
      ),
      page(
        "troubleshooting",
        "Troubleshooting",
        heading("Status 429"),
        text("Wait for the seconds in Retry-After and repeat the call. The limit is 40 calls a minute."),
        heading("Status 401"),
        text(`The token is missing or expired. [Create a new one](${pathOf("authentication")}).`),
      ),
      page("changelog", "Changelog", heading("2.0"), text("The calls were renamed. Version 1 is no longer supported.")),
    ],
  };
}
