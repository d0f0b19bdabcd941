import { capitalize } from "../grading/text.ts";

/** A paragraph, optionally with a link at its end. `to`: a path of the site, with an anchor or without. */
export type Block =
  | { kind: "text"; text: string; link?: { to: string; text: string } }
  | { kind: "code"; language: string; code: string };
type Section = { heading: string; blocks: Block[] };
export type DocsPage = { title: string; sections: Section[] };

/** The parts of an OpenAPI description that calls of samples are compared with. */
type Api = {
  openapi: string;
  info: { title: string; version: string };
  servers: { url: string }[];
  paths: Record<string, object>;
  components: { schemas: Record<string, object> };
};

/** A documentation site as data. Paths end with a slash. */
export type DocsSite = {
  /** The URL that it is published at. */
  at: string;
  product: string;
  /** What the agent is asked to do; a heading of the page `answer`. */
  goal: string;
  answer: string;
  pages: Map<string, DocsPage>;
  /** HTML that is served in place of a page. */
  replaced: Map<string, string>;
  /** Lines of `_redirects`. */
  redirects: string[];
  llmsTxt: string[];
  sitemap: string[];
  api: Api;
};

const products = ["Palisade", "Quillstack", "Tidegate", "Fernhook", "Octavo", "Marlin", "Sableworks", "Hexapod"];
const topics = [
  ["webhook endpoint", "access token", "invoice", "audit log"],
  ["message queue", "storage bucket", "email template", "scheduled job"],
  ["custom domain", "search filter", "payment link", "build step"],
  ["subscription", "shipment", "firewall rule", "contact list"],
  ["price list", "release channel", "phone number", "alert rule"],
];
const actions = [
  { verb: "Rotate", tail: "without downtime", field: "overlap_hours", value: 24, aside: "the old one stays valid" },
  { verb: "Export", tail: "as CSV", field: "delimiter", value: ";", aside: "there is one row for every entry" },
  { verb: "Archive", tail: "after a grace period", field: "grace_days", value: 30, aside: "it is hidden from lists" },
  {
    verb: "Transfer",
    tail: "to another workspace",
    field: "workspace",
    value: "ws_2",
    aside: "its history moves along",
  },
  { verb: "Clone", tail: "with new settings", field: "settings", value: "default", aside: "the original is untouched" },
  { verb: "Encrypt", tail: "with your own key", field: "key_id", value: "key_7", aside: "the key never leaves you" },
  { verb: "Tag", tail: "with custom metadata", field: "labels", value: "blue", aside: "labels are searchable" },
];
type Action = (typeof actions)[number];

export const slugOf = (text: string): string => text.toLowerCase().replaceAll(" ", "-");
/** An item of a list that begins again at its end. */
const itemAt = <T>(items: readonly T[], i: number): T => items[i % items.length]!;

/** A clean site of 10 pages. The same number always makes the same site. */
export function generateSite(number: number): DocsSite {
  const product = itemAt(products, number);
  const host = `${slugOf(product)}.example`;
  const api: Api = {
    openapi: "3.1.0",
    info: { title: `${product} API`, version: "1.0.0" },
    servers: [{ url: `https://api.${host}` }],
    paths: {},
    components: { schemas: {} },
  };
  const subjects = itemAt(topics, number);
  const pages = new Map([...framePages(product, subjects), ...topicPages(api, number, subjects)]);
  const answer = `/${slugOf(itemAt(subjects, Math.floor(number / 2)))}/`;
  const [_introduction, firstTask] = pages.get(answer)!.sections;
  const at = `https://docs.${host}/`;
  const lists = { replaced: new Map(), redirects: [], llmsTxt: [...pages.keys()], sitemap: [...pages.keys()] };
  return { at, product, goal: firstTask!.heading, answer, pages, api, ...lists };
}

/** A page for each subject, with two tasks; their calls are added to the API description. */
function topicPages(api: Api, number: number, subjects: readonly string[]): [string, DocsPage][] {
  return subjects.map((noun, i): [string, DocsPage] => {
    const [firstAction, secondAction] = [itemAt(actions, number + 2 * i), itemAt(actions, number + 2 * i + 3)];
    const other = itemAt(subjects, i + 1);
    const introduction: Section = {
      heading: "",
      blocks: [
        { kind: "text", text: `Each ${noun} belongs to one workspace. You need the client and an API token for it.` },
        { kind: "text", text: "Before you begin:", link: { to: "/install/", text: "install the client" } },
        { kind: "text", text: "For each call:", link: { to: "/authentication/", text: "create an API token" } },
        { kind: "text", text: "See also:", link: { to: `/${slugOf(other)}/`, text: `${capitalize(other)}s` } },
      ],
    };
    const tasks = [taskSection(api, noun, firstAction, "bash"), taskSection(api, noun, secondAction, "js")];
    return [`/${slugOf(noun)}/`, { title: `${capitalize(noun)}s`, sections: [introduction, ...tasks] }];
  });
}

function taskSection(api: Api, noun: string, action: Action, language: "bash" | "js"): Section {
  const { verb, tail, field, value, aside } = action;
  const article = /^[aeiou]/.test(noun) ? "an" : "a";
  const heading = `${verb} ${article} ${noun} ${tail}`;
  const path = `/v1/${slugOf(noun)}s/{id}/${slugOf(verb)}`;
  const schema = `${verb}${noun.replaceAll(" ", "")}`;
  api.paths[path] = operationOf(heading, schema);
  api.components.schemas[schema] = {
    type: "object",
    required: [field],
    additionalProperties: false,
    properties: { [field]: { type: typeof value === "number" ? "integer" : "string" } },
  };
  const { url } = api.servers[0]!;
  const token = tokenOf(api.info.title);
  const body = JSON.stringify({ [field]: value });
  const call = path.replace("{id}", "id_123");
  const code =
    language === "js"
      ? `const response = await client.send("POST", "${call}", {\n  body: JSON.stringify({ "${field}": ${JSON.stringify(value)} })\n});\nconsole.log(response.status);`
      : `curl -X POST "${url}${call}" -H "Authorization: Bearer $${token}" -H "Content-Type: application/json" --data '${body}'`;
  return {
    heading,
    blocks: [
      { kind: "text", text: `This call changes one ${noun}: ${aside}. The field ${field} says how.` },
      { kind: "code", language, code },
      { kind: "text", text: "The API answers with the changed object." },
      { kind: "code", language: "json", code: JSON.stringify({ id: "id_123", [field]: value }, null, 2) },
    ],
  };
}

const operationOf = (summary: string, schema: string) => ({
  post: {
    summary,
    operationId: schema,
    parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
    requestBody: {
      required: true,
      content: { "application/json": { schema: { $ref: `#/components/schemas/${schema}` } } },
    },
    responses: { "200": { description: "The changed object" } },
  },
});

/** The environment variable with the token of a product. `title`: begins with its name. */
const tokenOf = (title: string): string => `${title.split(" ")[0]!.toUpperCase()}_TOKEN`;

/** The pages that every site has. */
function framePages(product: string, subjects: readonly string[]): [string, DocsPage][] {
  const client = `${slugOf(product)}-client`;
  const token = tokenOf(product);
  const link = (text: string, to: string, name: string): Block => ({ kind: "text", text, link: { to, text: name } });
  const page = (path: string, title: string, ...sections: Section[]): [string, DocsPage] => [path, { title, sections }];
  const intro = (...blocks: Block[]): Section => ({ heading: "", blocks });
  const code = (language: string, text: string): Block => ({ kind: "code", language, code: text });
  const text = (sentence: string): Block => ({ kind: "text", text: sentence });
  return [
    page(
      "/",
      `${product} documentation`,
      intro(
        text(`${product} runs the back office of your product. These pages show what you can do with its API.`),
        link("New here?", "/quickstart/", "Quickstart"),
      ),
      {
        heading: "Where to go",
        blocks: [
          link("First:", "/install/", "Install the client"),
          link("Then:", "/authentication/", "Authentication"),
          ...subjects.map((noun) => link("Guide:", `/${slugOf(noun)}/`, `${capitalize(noun)}s`)),
          link("All calls:", "/api-reference/", "API reference"),
        ],
      },
    ),
    page(
      "/quickstart/",
      "Quickstart",
      intro(
        text("From nothing to a first call in three steps. Each takes a minute."),
        link("Step 1:", "/install/", "Install the client"),
        link("Step 2:", "/authentication/", "Create an API token"),
      ),
      {
        heading: "First call",
        blocks: [
          text("This prints the name of your account."),
          code(
            "js",
            `import { Client } from "${client}";\n\nconst client = Client.withToken("tok_123");\nconsole.log(await client.account());`,
          ),
        ],
      },
    ),
    page(
      "/install/",
      "Install the client",
      intro(text(`The client of ${product} is one package for Node.js 20 and later. It has no dependencies.`)),
      {
        heading: "With npm",
        blocks: [text("Run this in the folder of your project."), code("bash", `npm install ${client}`)],
      },
    ),
    page(
      "/authentication/",
      "Authentication",
      intro(text("Every call carries an API token. A token belongs to one workspace and can be revoked at any time.")),
      {
        heading: "Create an API token",
        blocks: [
          text("Open the settings of your workspace, choose API tokens, and create one. Keep it in the environment."),
          code("bash", `export ${token}="tok_123"`),
        ],
      },
    ),
    page(
      "/api-reference/",
      "API reference",
      intro(
        text("All calls are described in one file, which follows OpenAPI 3.1."),
        link("The file:", "/openapi.json", "openapi.json"),
      ),
      {
        heading: "Errors",
        blocks: [
          text("An error has a code and a message. The status of the response is 400 or more."),
          code("json", `{\n  "code": "not_found",\n  "message": "No such object"\n}`),
        ],
      },
    ),
  ];
}
