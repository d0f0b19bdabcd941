import { randomOf } from "../support/random.ts";

/** A run of text, or a link by the id of the page it leads to. */
export type Inline = string | { to: string; text: string };
export type Block =
  | { kind: "text"; text: Inline[] }
  | { kind: "code"; language: string; code: string }
  | { kind: "list"; items: Inline[][] };
type Section = { heading: string; blocks: Block[] };
export type DocsPage = { id: string; title: string; sections: Section[] };

const markups = ["plain", "docusaurus", "sphinx", "markdown", "mkdocs", "vitepress", "jekyll", "asciidoctor"] as const;
export type Markup = (typeof markups)[number];

/** A response that replaces the normal one of a page. */
type Answer = { status: number; type: string; body: string; headers?: Record<string, string>; delayMs?: number };

/** A documentation site as data: `pages` by id, the first is the start page. */
export type DocsSite = {
  seed: number;
  product: string;
  markup: Markup;
  pages: Map<string, DocsPage>;
  goal: string;
  /** Page and heading of the section that answers the goal. */
  answer: { page: string; heading: string };
  /** Pages without which the answer cannot be used. */
  needs: string[];
  api: Api;
  /** IDs of the pages in llms.txt and the sitemap, or null if the site has neither. */
  llmsTxt: string[] | null;
  sitemap: string[] | null;
  /** Responses by page ID that replace the normal ones. */
  answers: Map<string, Answer>;
};

type Api = {
  openapi: string;
  info: { title: string; version: string };
  servers: { url: string }[];
  paths: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, unknown> };
};

const products = ["Palisade", "Quillstack", "Tidegate", "Fernhook", "Octavo", "Marlin", "Sableworks", "Hexapod"];
const topics = [
  "webhook endpoint",
  "access token",
  "invoice",
  "audit log",
  "feature flag",
  "message queue",
  "storage bucket",
  "scheduled job",
  "email template",
  "team member",
  "custom domain",
  "search index",
  "payment link",
  "notification channel",
  "deployment",
  "certificate",
  "subscription",
  "coupon",
  "refund",
  "device",
  "sensor",
  "workflow",
  "dataset",
  "annotation",
  "report",
  "survey",
  "shipment",
  "warehouse",
  "price list",
  "tax rate",
  "chat room",
  "transcript",
  "voice prompt",
  "phone number",
  "contact list",
  "campaign",
  "segment",
  "dashboard",
  "alert rule",
  "log stream",
  "container image",
  "build cache",
  "release channel",
  "namespace",
  "volume",
  "snapshot",
  "firewall rule",
  "load balancer",
];
type Action = { verb: string; tail: string; field: string; value: string | number; aside: string };
const actions: Action[] = [
  { verb: "Rotate", tail: "without downtime", field: "overlap_hours", value: 24, aside: "the old one stays valid" },
  { verb: "Export", tail: "as CSV", field: "delimiter", value: ";", aside: "one row for every entry" },
  { verb: "Archive", tail: "after a grace period", field: "grace_days", value: 30, aside: "it is hidden from lists" },
  {
    verb: "Transfer",
    tail: "to another workspace",
    field: "workspace",
    value: "ws_2",
    aside: "its history moves along",
  },
  { verb: "Clone", tail: "with new settings", field: "settings", value: "default", aside: "the original is untouched" },
  { verb: "Pause", tail: "for maintenance", field: "until", value: "2026-01-01", aside: "nothing is lost meanwhile" },
  { verb: "Tag", tail: "with custom metadata", field: "labels", value: "blue", aside: "labels are searchable" },
  { verb: "Import", tail: "from a spreadsheet", field: "sheet", value: "A1", aside: "empty rows are skipped" },
  { verb: "Throttle", tail: "during traffic peaks", field: "per_second", value: 10, aside: "bursts are smoothed" },
  { verb: "Encrypt", tail: "with your own key", field: "key_id", value: "key_7", aside: "the key never leaves you" },
  {
    verb: "Share",
    tail: "through a public link",
    field: "expires_in",
    value: 3600,
    aside: "anyone who has it can read",
  },
  { verb: "Compare", tail: "between two versions", field: "against", value: "v1", aside: "differences come by line" },
];
const fillers = [
  "Most teams set this up once and leave it alone.",
  "The change takes effect within a minute.",
  "Nothing else in the account is affected.",
  "Limits of your plan apply as usual.",
  "Every step is recorded, so you can review it later.",
  "If the call returns 409, wait for the running operation and repeat it.",
  "Results are eventually consistent across regions.",
  "Keep identifiers in your own records: they never change.",
];

const slug = (text: string) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-");
const article = (noun: string) => (/^[aeiou]/.test(noun) ? "an" : "a");
const title = (text: string) => text[0]!.toUpperCase() + text.slice(1);

/** A clean site of `size` pages (8 to 200). The same seed gives the same site. */
export function generateSite(seed: number, { size, markup }: { size?: number; markup?: Markup } = {}): DocsSite {
  const random = randomOf(seed * 7919 + 17);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const shuffled = <T>(items: readonly T[]) =>
    items
      .map((item) => ({ item, key: random() }))
      .sort((a, b) => a.key - b.key)
      .map(({ item }) => item);
  const sizes = [8, 12, 20, 30, 30, 45, 80, 200];
  const count = size ?? sizes[seed % sizes.length]!;
  const product = pick(products);
  const sdk = `${slug(product)}-sdk`;
  const env = `${product.toUpperCase()}_TOKEN`;
  const base = `https://api.${slug(product)}.example`;
  const api: Api = {
    openapi: "3.1.0",
    info: { title: `${product} API`, version: "1.0.0" },
    servers: [{ url: base }],
    paths: {},
    components: { schemas: {} },
  };

  /** Subjects of pages: a topic alone, then its variants until there are enough. */
  const ordered = shuffled(topics);
  const variants = ["", " policy", " archive", " history", " quota"];
  const nouns = variants.flatMap((variant) => ordered.map((topic) => `${topic}${variant}`));
  const fixed = 5;
  const groupSize = 9;
  const groupCount = Math.max(1, Math.round((count - fixed) / (groupSize + 1)));
  const subjects = nouns.slice(0, Math.max(2, count - fixed - groupCount));

  const sectionOf = (noun: string, action: Action, kind: number): Section => {
    const phrase = `${action.verb} ${article(noun)} ${noun} ${action.tail}`;
    const path = `/v1/${slug(noun)}s/{id}/${slug(action.verb)}`;
    const schema = `${title(slug(noun)).replace(/-(.)/g, (_, letter) => letter.toUpperCase())}${action.verb}`;
    api.components.schemas[schema] = {
      type: "object",
      required: [action.field],
      properties: { [action.field]: { type: typeof action.value === "number" ? "integer" : "string" } },
    };
    api.paths[path] = {
      post: {
        operationId: `${slug(action.verb)}-${slug(noun)}`,
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
        requestBody: {
          required: true,
          content: { "application/json": { schema: { $ref: `#/components/schemas/${schema}` } } },
        },
        responses: { "200": { description: "Done" } },
      },
    };
    const body = JSON.stringify({ [action.field]: action.value });
    const samples: Block[] = [
      {
        kind: "code",
        language: "js",
        code: `import { Client } from "${sdk}";\n\nconst client = new Client({ token: process.env.${env} });\nconst result = await client.${slug(noun).replaceAll("-", "_")}s.${slug(action.verb)}("id_123", {\n  ${action.field}: ${JSON.stringify(action.value)},\n});\nconsole.log(result.status);`,
      },
      {
        kind: "code",
        language: "bash",
        code: `curl -X POST ${base}${path.replace("{id}", "id_123")} \\\n  -H "Authorization: Bearer $${env}" \\\n  -H "Content-Type: application/json" \\\n  -d '${body}'`,
      },
      {
        kind: "code",
        language: "python",
        code: `import os\nimport ${sdk.replaceAll("-", "_")} as sdk\n\nclient = sdk.Client(token=os.environ["${env}"])\nresult = client.${slug(noun).replaceAll("-", "_")}s.${slug(action.verb)}(\n    "id_123",\n    ${action.field}=${JSON.stringify(action.value)},\n)\nprint(result["status"])`,
      },
      {
        kind: "code",
        language: "go",
        code: `client := sdk.NewClient(os.Getenv("${env}"))\nresult, err := client.${title(slug(noun).replaceAll("-", ""))}s.${action.verb}(ctx, "id_123", map[string]any{\n\t"${action.field}": ${JSON.stringify(action.value)},\n})\nif err != nil {\n\treturn err\n}\nfmt.Println(result.Status)`,
      },
      { kind: "code", language: "json", code: JSON.stringify({ id: "id_123", [action.field]: action.value }, null, 2) },
    ];
    return {
      heading: phrase,
      blocks: [
        {
          kind: "text",
          text: [
            `You can ${action.verb.toLowerCase()} ${article(noun)} ${noun} ${action.tail}: ${action.aside}. ${pick(fillers)} ${pick(fillers)}`,
          ],
        },
        samples[kind % 4]!,
        { kind: "text", text: [`Set ${action.field} as your team needs it. ${pick(fillers)}`] },
        ...(random() < 0.5 ? [samples[4]!] : []),
      ],
    };
  };

  const groups = Array.from({ length: groupCount }, (_, i) => ({
    id: `area-${i + 1}`,
    subjects: subjects.filter((_, at) => at % groupCount === i),
  }));
  const topicPages = subjects.map((noun, at): DocsPage => {
    const related = [subjects[(at + 1) % subjects.length]!, subjects[(at + 5) % subjects.length]!];
    return {
      id: slug(noun),
      title: `${title(noun)}s`,
      sections: [
        {
          heading: "",
          blocks: [
            {
              kind: "text",
              text: [
                `${title(article(noun))} ${noun} belongs to one workspace of ${product}. ${pick(fillers)} Before you begin, `,
                { to: "install", text: "install the client" },
                " and ",
                { to: "authentication", text: "create an API token" },
                ".",
              ],
            },
          ],
        },
        ...shuffled(actions)
          .slice(0, 3 + Math.floor(random() * 2))
          .map((action, index) => sectionOf(noun, action, index + at)),
        {
          heading: "Related pages",
          blocks: [
            {
              kind: "list",
              items: [
                ...new Set(related.filter((other) => other !== noun))
                  .values()
                  .map((other): Inline[] => [{ to: slug(other), text: `${title(other)}s` }]),
                [{ to: "api-reference", text: "API reference" }],
              ],
            },
          ],
        },
      ],
    };
  });
  const groupPages = groups.map(
    ({ id, subjects: of }): DocsPage => ({
      id,
      title: `Area ${id.slice(5)}: ${of.slice(0, 2).join(", ")} and more`,
      sections: [
        { heading: "", blocks: [{ kind: "text", text: [`This area of ${product} is about ${of.join(", ")}.`] }] },
        {
          heading: "Pages in this area",
          blocks: [{ kind: "list", items: of.map((noun): Inline[] => [{ to: slug(noun), text: `${title(noun)}s` }]) }],
        },
      ],
    }),
  );
  const pages = [...frame({ product, sdk, env, base, groups: groupPages }), ...groupPages, ...topicPages];
  const target = pick(topicPages);
  const chosen = pick(target.sections.filter(({ heading }) => heading !== "" && heading !== "Related pages"));
  const ids = pages.map(({ id }) => id);
  return {
    seed,
    product,
    // Each markup occurs with each size.
    markup: markup ?? markups[(seed * 5 + Math.floor(seed / sizes.length)) % markups.length]!,
    pages: new Map(pages.map((page) => [page.id, page])),
    goal: chosen.heading,
    answer: { page: target.id, heading: chosen.heading },
    needs: ["install", "authentication"],
    api,
    llmsTxt: seed % 3 === 0 ? null : ids,
    sitemap: seed % 2 === 0 ? ids : null,
    answers: new Map(),
  };
}

/** The pages that every site has: home, quickstart, install, authentication, API reference. */
function frame({
  product,
  sdk,
  env,
  base,
  groups,
}: {
  product: string;
  sdk: string;
  env: string;
  base: string;
  groups: DocsPage[];
}): DocsPage[] {
  const text = (...parts: Inline[]): Block => ({ kind: "text", text: parts });
  const code = (language: string, lines: string): Block => ({ kind: "code", language, code: lines });
  return [
    {
      id: "index",
      title: `${product} documentation`,
      sections: [
        {
          heading: "",
          blocks: [
            text(
              `${product} runs the back office of your product. Begin with the `,
              { to: "quickstart", text: "quickstart" },
              ".",
            ),
          ],
        },
        {
          heading: "Where to go",
          blocks: [
            {
              kind: "list",
              items: [
                [{ to: "install", text: "Install the client" }],
                [{ to: "authentication", text: "Authentication" }],
                ...groups.map(({ id, title: name }): Inline[] => [{ to: id, text: name }]),
                [{ to: "api-reference", text: "API reference" }],
              ],
            },
          ],
        },
      ],
    },
    {
      id: "quickstart",
      title: "Quickstart",
      sections: [
        {
          heading: "",
          blocks: [
            text(
              "From nothing to a first call in two steps: ",
              { to: "install", text: "install" },
              ", then ",
              { to: "authentication", text: "authenticate" },
              ".",
            ),
          ],
        },
        {
          heading: "First call",
          blocks: [
            text("This prints the name of your account."),
            code(
              "js",
              `import { Client } from "${sdk}";\n\nconst client = new Client({ token: process.env.${env} });\nconsole.log(await client.account());`,
            ),
          ],
        },
      ],
    },
    {
      id: "install",
      title: "Install the client",
      sections: [
        {
          heading: "",
          blocks: [
            text(
              `The client of ${product} is one package for Node.js 20, and one for Python 3.11. It has no dependencies of its own.`,
            ),
          ],
        },
        {
          heading: "With npm",
          blocks: [text("Run this in the folder of your project."), code("bash", `npm install ${sdk}`)],
        },
        {
          heading: "With pip",
          blocks: [text("Run this in the environment of your project."), code("bash", `pip install ${sdk}`)],
        },
      ],
    },
    {
      id: "authentication",
      title: "Authentication",
      sections: [
        {
          heading: "",
          blocks: [
            text("Every call carries an API token. A token belongs to one workspace and can be withdrawn at any time."),
          ],
        },
        {
          heading: "Create an API token",
          blocks: [
            text(
              "Open the settings of your workspace, choose API tokens, and create one. Then keep it in the environment.",
            ),
            code("bash", `export ${env}="tok_123"`),
          ],
        },
      ],
    },
    {
      id: "api-reference",
      title: "API reference",
      sections: [
        {
          heading: "",
          blocks: [
            text(
              `The API answers at ${base}. It is described in `,
              { to: "openapi.json", text: "openapi.json" },
              ", which follows OpenAPI 3.1.",
            ),
          ],
        },
        {
          heading: "Errors",
          blocks: [
            text("An error has a code and a message."),
            code("json", `{\n  "code": "not_found",\n  "message": "No such object"\n}`),
          ],
        },
      ],
    },
  ];
}
