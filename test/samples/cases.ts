/** A page of docs with one sample or more, and the checks that must fail on it; none if the page is right. */
export type Case = { name: string; pages: Record<string, string>; finds: string[]; contract?: object };

export const fence = (language: string, code: string) => `\`\`\`${language}\n${code}\n\`\`\``;
const onePage = (language: string, code: string): Record<string, string> => ({
  "/": `# Create a widget\n\nThis page shows how to create a widget with the client of Hollow.\n\n${fence(language, code)}\n`,
});
export const parses = (name: string, language: string, code: string): Case => ({
  name,
  pages: onePage(language, code),
  finds: [],
});
export const breaks = (name: string, language: string, code: string): Case => ({
  name,
  pages: onePage(language, code),
  finds: ["sample-parses"],
});
/** A page with a call of the API that `contract` describes. */
const call = (name: string, language: string, code: string, isRight: boolean): Case => ({
  name,
  pages: {
    "/": `# Create a widget\n\nThis page shows how to create a widget. See the [API](/openapi.json). Put a key of yours into HOLLOW_KEY.\n\n${fence(language, code)}\n`,
  },
  finds: isRight ? [] : ["sample-matches-api"],
});
export const matches = (name: string, language: string, code: string) => call(name, language, code, true);
export const contradicts = (name: string, language: string, code: string) => call(name, language, code, false);
/** Docs of three pages: the start page, the guide that answers the goal, and a page of setup. */
export const docs = (
  name: string,
  { guide, setup = "", other = "", finds }: { guide: string; setup?: string; other?: string; finds: string[] },
): Case => ({
  name,
  pages: {
    "/": `# Hollow\n\nHollow stores widgets. Read how to [set it up](/setup), [create a widget](/guide), and [list widgets](/list).\n`,
    "/guide": `# Create a widget\n\nThis page shows how to create a widget in a few lines.\n\n${guide}\n`,
    "/setup": `# Set up Hollow\n\nThis page shows what is needed before the first call, on every system and in every language.\n\n${setup}\n`,
    "/list": `# List widgets\n\nThis page shows how to list all widgets, page by page.\n\n${other}\n`,
  },
  finds,
});

/** The description of the API that the cases call, which runs at `https://api.hollow.test/v1`. */
export const contract = {
  openapi: "3.0.3",
  info: { title: "Hollow", version: "1" },
  servers: [{ url: "https://api.hollow.test/v1" }],
  security: [{ bearer: [] }],
  paths: {
    "/widgets": {
      get: {
        parameters: [
          { name: "limit", in: "query", schema: { type: "integer" } },
          { name: "cursor", in: "query", schema: { type: "string" } },
        ],
        responses: { 200: { description: "ok" } },
      },
      post: {
        requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Widget" } } } },
        responses: { 201: { description: "ok" } },
      },
    },
    "/widgets/{id}": {
      parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
      get: { responses: { 200: { description: "ok" } } },
      delete: { responses: { 204: { description: "ok" } } },
    },
    "/search": {
      get: {
        parameters: [{ name: "q", in: "query", required: true, schema: { type: "string" } }],
        responses: { 200: { description: "ok" } },
      },
    },
    "/files": {
      post: {
        requestBody: {
          content: {
            "multipart/form-data": {
              schema: { type: "object", properties: { file: { type: "string", format: "binary" } } },
            },
          },
        },
        responses: { 201: { description: "ok" } },
      },
    },
    "/files/{name}": {
      put: {
        parameters: [{ name: "name", in: "path", required: true, schema: { type: "string" } }],
        requestBody: { content: { "application/octet-stream": {} } },
        responses: { 204: { description: "ok" } },
      },
    },
    "/status": { get: { security: [], responses: { 200: { description: "ok" } } } },
    "/labels": {
      post: {
        requestBody: {
          content: {
            "application/json": {
              schema: {
                type: "object",
                properties: { name: { type: "string" } },
                additionalProperties: { type: "string" },
              },
            },
          },
        },
        responses: { 201: { description: "ok" } },
      },
    },
  },
  components: {
    securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    schemas: {
      Widget: {
        type: "object",
        required: ["id", "name"],
        properties: {
          id: { type: "string", readOnly: true },
          name: { type: "string" },
          count: { type: "integer" },
          tags: { type: "array", items: { type: "string" } },
        },
      },
    },
  },
};

const auth = '-H "Authorization: Bearer $HOLLOW_KEY"';
const url = "https://api.hollow.test/v1";

/** The first sixty, which the rules were written against. */
export const cases: Case[] = [
  // Broken samples.
  breaks(
    "await before the error",
    "js",
    'const r = await client.widgets.create("a", {\n  count: 1,\n};\nconsole.log(r);',
  ),
  breaks(
    "TypeScript with an import and await",
    "ts",
    'import { Hollow } from "hollow";\nconst c = new Hollow();\nconst list = await c.list({ limit: 10 );\nfor (const w of list) console.log(w);',
  ),
  breaks("Python session, unclosed", "pycon", ">>> client = Client(\n...     token='x'\n>>> client.list()\n[]"),
  breaks("Python call", "python", 'client = Client(token="x"\nprint(client.list())'),
  breaks("PHP with an attribute", "php", "<?php\n#[Route('/a')]\nfunction a(array $x) {\n  return f($x;\n}"),
  breaks("C with a macro", "c", 'HOLLOW_FOREACH(widget, list) {\n  printf("%s", widget->name;\n}'),
  breaks("Go", "go", 'client := hollow.New("x")\nif err := client.Ping(ctx; err != nil {\n\tlog.Fatal(err)\n}'),
  breaks("Java", "java", 'Widget w = client.create(new Widget("a").count(1);\nSystem.out.println(w);'),
  breaks("Rust", "rust", 'let w = client.create(Widget { name: "a".into() ).await?;\nprintln!("{}", w.name);'),
  breaks("shell", "bash", 'export HOLLOW_KEY="abc\nhollow create a'),
  // Calls against the API description.
  contradicts("unknown query parameter", "sh", `curl "${url}/widgets?page_size=3" ${auth}`),
  contradicts("missing query parameter", "sh", `curl "${url}/search" ${auth}`),
  contradicts("wrong auth header", "sh", `curl ${url}/widgets -H "X-Api-Key: $HOLLOW_KEY"`),
  contradicts("wrong JSON type", "sh", `curl ${url}/widgets ${auth} --json '{"name": "a", "count": "three"}'`),
  contradicts(
    "wrong field in Python",
    "python",
    `import requests\n\nbody = {"title": "a"}\nrequests.post("${url}/widgets", headers={"Authorization": f"Bearer {key}"}, json=body)`,
  ),
  contradicts(
    "wrong method in options",
    "js",
    `const options = { method: "PATCH", headers: { Authorization: "Bearer " + key } };\nconst r = await fetch("${url}/widgets", options);`,
  ),
  contradicts("wrong path", "sh", `curl -sS -XPOST ${url}/widget ${auth} -d '{"name":"a"}'`),
  contradicts(
    "wrong version",
    "js",
    `await axios.get("https://api.hollow.test/v2/widgets", { headers: { Authorization: token } });`,
  ),
  // Prerequisites.
  docs("another npm package", {
    setup: fence("sh", "npm install @hollow/client-js"),
    guide: fence("js", 'import { Client } from "@hollow/client";\nnew Client();'),
    other: fence("js", 'import { Client } from "@hollow/client";\nnew Client().list();'),
    finds: ["prerequisite-explained"],
  }),
  docs("another Python package", {
    setup: fence("sh", "pip install brisk-tools"),
    guide: fence("python", "from hollow import Client\nClient().create()"),
    other: fence("python", "from hollow import Client\nClient().list()"),
    finds: ["prerequisite-explained"],
  }),
  docs("another Go module", {
    setup: fence("sh", "go get github.com/hollow/sdk-go"),
    guide: fence("go", 'import "github.com/hollow/hollow-go"\n\nc := hollow.New()'),
    other: fence("go", 'import "github.com/hollow/hollow-go"\n\nc := hollow.New()'),
    finds: ["prerequisite-explained"],
  }),
  docs("another crate", {
    setup: fence("sh", "cargo add hollow-rs"),
    guide: fence("rust", "use hollow::Client;\n\nlet c = Client::new();"),
    other: fence("rust", "use hollow::Client;\n\nlet c = Client::new();"),
    finds: ["prerequisite-explained"],
  }),
  docs("no installation in Python", {
    setup: "Have Python 3.10 or newer.",
    guide: fence("python", "from hollow import Client\nClient().create()"),
    other: fence("python", "from hollow import Client\nClient().list()"),
    finds: ["prerequisite-explained"],
  }),
  docs("a secret in Ruby", {
    setup: fence("sh", "gem install hollow"),
    guide: fence("ruby", 'require "hollow"\nHollow::Client.new(ENV.fetch("HOLLOW_API_KEY"))'),
    finds: ["prerequisite-explained"],
  }),
  docs("a secret in Rust", {
    setup: fence("sh", "cargo add hollow"),
    guide: fence("rust", 'let key = std::env::var("HOLLOW_TOKEN")?;\nlet c = hollow::Client::new(key);'),
    finds: ["prerequisite-explained"],
  }),
  docs("a secret in Go", {
    setup: fence("sh", "go get github.com/hollow/hollow-go"),
    guide: fence("go", 'c := hollow.New(os.Getenv("HOLLOW_SECRET"))'),
    finds: ["prerequisite-explained"],
  }),
  docs("modules of a framework", {
    guide: fence("js", 'import { goto } from "$app/navigation";\nimport Layout from "@theme/Layout";\ngoto(Layout);'),
    other: fence("js", 'import { goto } from "$app/navigation";\nimport Layout from "@theme/Layout";\ngoto(Layout);'),
    finds: [],
  }),
  docs("a package of JSR", {
    setup: fence("sh", "deno add jsr:@hollow/client"),
    guide: fence("ts", 'import { Client } from "@hollow/client";\nnew Client();'),
    other: fence("ts", 'import { Client } from "@hollow/client";\nnew Client().list();'),
    finds: [],
  }),
  docs("a variable in the name of an environment", {
    guide: fence("yaml", 'review:\n  environment:\n    name: "review/$CI_COMMIT_REF_SLUG"'),
    finds: [],
  }),
  docs("a variable in a header of the product's own", {
    guide: fence("python", `requests.get(url, headers={"Brisk-Id": f"id {os.environ['BRISK_IDENTITY']}"})`),
    finds: ["prerequisite-explained"],
  }),
  docs("a placeholder that nothing explains", {
    guide: fence("sh", `curl ${url}/widgets/<region-code>/new`),
    finds: ["placeholder-explained"],
  }),
  docs("an import of another major version", {
    setup: fence("sh", "go get github.com/hollow/hollow-go/v3"),
    guide: fence("go", 'import "github.com/hollow/hollow-go/v2"\n\nc := hollow.New()'),
    other: fence("go", 'import "github.com/hollow/hollow-go/v3"\n\nc := hollow.New()'),
    finds: ["sdk-version-matches"],
  }),
  docs("another major version in a URL", {
    setup: fence("sh", "npm install hollow@4"),
    guide: fence("js", 'import { Client } from "https://esm.sh/hollow@2";\nnew Client();'),
    finds: ["sdk-version-matches"],
  }),
  docs("a prompt in one of two commands", {
    setup: fence("sh", "hollow login"),
    guide: `${fence("sh", "hollow init")}\n\nThen:\n\n${fence("sh", "$ hollow create a")}`,
    finds: ["command-copyable"],
  }),
  // Valid, but tricky.
  parses(
    "await",
    "js",
    'const { data } = await client.list();\nfor await (const w of data) console.log(w?.name ?? "none");',
  ),
  parses("Python session without dots", "python", ">>> add.apply_async((2, 2),\n    countdown=10,\n)\n<AsyncResult>"),
  parses(
    "Python session with a close after dots",
    "python",
    ">>> app.control.broadcast('rate_limit',\n...     arguments={'a': 1}\n...)\n[{'ok': 1}]",
  ),
  parses("address labelled by default", "python", "consul://host:port[?one_client=1]"),
  parses(
    "C with macros",
    "c",
    'AP_INIT_TAKE1("DBDriver", set_param, (void*)offsetof(svr_cfg, name),\n  RSRC_CONF, "driver"),\nAPR_DECLARE_OPTIONAL_FN(ap_dbd_t*, ap_dbd_open, (apr_pool_t*, server_rec*));',
  ),
  parses(
    "pseudo-code",
    "c",
    "for (each worker in the pool) {\n    if (worker isn't busy)\n        hand the request (and its data) to it\n}",
  ),
  parses(
    "PHP attributes",
    "php",
    "#[Route('/a', methods: ['GET'])]\n#[IsGranted('ROLE')]\nfn(array $x) => [...$x, 1];",
  ),
  parses("Rust macro", "rust", 'let v = json!({ "a": [1, 2], "b": { "c": null } });\nassert_eq!(v["a"][0], 1);'),
  parses(
    "Go with generics and raw strings",
    "go",
    "func Map[T, U any](in []T, f func(T) U) []U {\n\treturn nil\n}\nvar q = `SELECT ( FROM x`",
  ),
  parses("Java text block", "java", 'String s = """\n  { "a": (1\n  """;\nclient.send(s);'),
  parses("shell here-document", "bash", "cat <<'EOF' > a.txt\nit's ( fine\nEOF\necho done"),
  parses("Ruby, which has no parser", "ruby", "widgets.each do |w|\n  puts %q(it's ( fine)\nend"),
  matches("curl -G", "sh", `curl -G ${url}/search ${auth} -d q=x`),
  matches("curl -F", "sh", `curl ${url}/files ${auth} -F file=@a.png`),
  matches("curl -sXPOST", "sh", `curl -sXPOST ${url}/widgets ${auth} -d '{"name":"a"}'`),
  matches("curl -T", "sh", `curl ${auth} -T a.bin ${url}/files/a.bin`),
  matches("data from a file", "sh", `curl ${url}/widgets ${auth} -d @widget.json`),
  matches(
    "fetch with options in a variable",
    "js",
    `const options = {\n  method: "POST",\n  headers: { Authorization: \`Bearer \${key}\` },\n  body: JSON.stringify({ name: "a" }),\n};\nconst r = await fetch("${url}/widgets", options);`,
  ),
  matches(
    "read-only property left out",
    "sh",
    `curl ${url}/widgets ${auth} --json '{"name": "a", "count": 3, "tags": ["x"]}'`,
  ),
  matches("additional properties", "sh", `curl ${url}/labels ${auth} --json '{"name": "a", "colour": "red"}'`),
  matches(
    "commented-out call",
    "js",
    `// await fetch("${url}/old-widgets", { method: "PUT" });\nconst r = await fetch("${url}/status");`,
  ),
  matches(
    "an invalid percent sign in a URL",
    "sh",
    `curl https://files.hollow.test/backup-%Y.tgz\ncurl ${url}/status ${auth}`,
  ),
  {
    ...matches("an invalid percent sign in a reference", "sh", `curl ${url}/odd ${auth}`),
    contract: { ...contract, paths: { "/odd": { get: { parameters: [{ $ref: "#/a%" }] } } } },
  },
  matches("commented-out curl", "sh", `# curl ${url}/old-widgets\ncurl ${url}/status`),
  docs("a key explained by its use", {
    setup: `Make a key in the dashboard and send it as a bearer token.\n\n${fence("sh", `curl ${url}/widgets ${auth}`)}`,
    guide: fence("js", "const client = connect(process.env.HOLLOW_KEY);"),
    finds: [],
  }),
  docs("a secret of the reader's own", {
    guide: fence("js", "app.use(sessions({ secret: process.env.SESSION_SECRET }));"),
    finds: [],
  }),
  docs("a Python package with another import name", {
    setup: fence("sh", "pip install python-hollow"),
    guide: fence("python", "import json\nimport hollow\nhollow.create()"),
    other: fence("python", "import json\nimport hollow\nhollow.list()"),
    finds: [],
  }),
  docs("a Go subpackage", {
    setup: fence("sh", "go get github.com/hollow/hollow-go@latest"),
    guide: fence(
      "go",
      'import (\n\t"context"\n\t"github.com/hollow/hollow-go/widgets"\n)\n\nwidgets.New(context.Background())',
    ),
    other: fence("go", 'import "github.com/hollow/hollow-go/widgets"\n\nwidgets.List()'),
    finds: [],
  }),
  docs("Maven coordinates", {
    setup: fence(
      "xml",
      "<dependency>\n  <groupId>com.hollow</groupId>\n  <artifactId>hollow-java</artifactId>\n  <version>2.1.0</version>\n</dependency>",
    ),
    guide: fence("java", "import com.hollow.Client;\nimport java.util.List;\n\nnew Client().create();"),
    other: fence("java", "import com.hollow.Client;\n\nnew Client().list();"),
    finds: [],
  }),
  docs("a placeholder that the text explains", {
    guide: `Take the region code from the console.\n\n${fence("sh", "hollow create --in <region-code>")}`,
    finds: [],
  }),
  docs("prompts everywhere", {
    setup: fence("console", "$ hollow login"),
    guide: fence("console", "$ hollow create a\ncreated a"),
    finds: [],
  }),
  docs("a third-party package", {
    setup: fence("sh", "npm install hollow"),
    guide: fence("python", "import requests\nrequests.get('https://hollow.test')"),
    other: fence("python", "import requests\nrequests.get('https://hollow.test')"),
    finds: [],
  }),
];
