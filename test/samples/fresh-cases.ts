import { breaks, type Case, contradicts, docs, fence, matches, parses } from "./cases.ts";

/** An API with an API key in a header, in Swagger 2. */
const tides = {
  swagger: "2.0",
  info: { title: "Tidegate", version: "2" },
  host: "tidegate.test",
  basePath: "/api/2",
  schemes: ["https"],
  securityDefinitions: { key: { type: "apiKey", in: "header", name: "X-Tide-Key" } },
  security: [{ key: [] }],
  paths: {
    "/gates": {
      get: {
        parameters: [
          { name: "open", in: "query", type: "boolean" },
          { name: "limit", in: "query", type: "integer", minimum: 1, maximum: 100 },
          { name: "order", in: "query", type: "string", enum: ["name", "newest"] },
        ],
        responses: { 200: { description: "ok" } },
      },
      post: {
        parameters: [
          { name: "body", in: "body", required: true, schema: { $ref: "#/definitions/Gate" } },
          { name: "dry_run", in: "query", type: "boolean" },
        ],
        responses: { 201: { description: "ok" } },
      },
    },
    "/gates/{gate}/levels": {
      put: {
        parameters: [
          { name: "gate", in: "path", required: true, type: "string" },
          { name: "body", in: "body", schema: { type: "object", properties: { metres: { type: "number" } } } },
        ],
        responses: { 204: { description: "ok" } },
      },
    },
  },
  definitions: {
    Gate: {
      type: "object",
      required: ["place"],
      properties: { place: { type: "string" }, width: { type: "number" }, owner: { $ref: "#/definitions/Owner" } },
    },
    Owner: { type: "object", properties: { mail: { type: "string" } } },
  },
};
const base = "https://tidegate.test/api/2";

const call = (name: string, language: string, code: string, finds: string[]): Case => ({
  name,
  contract: tides,
  pages: {
    "/": `<!doctype html><html><head><title>Create a widget with Tidegate</title></head><body><main><h1>Create a widget</h1><p>This page shows how to create a widget. The <a href="/openapi.json">description of the API</a> has more. TIDE_KEY holds your key.</p><pre><code class="language-${language}">${code.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</code></pre></main></body></html>`,
  },
  finds,
});
const wrong = ["sample-matches-api"];

/** Forty more, of other languages and markups, which the rules were not written against. */
export const freshCases: Case[] = [
  call(
    "a nested unknown field",
    "javascript",
    `const gate = { place: "a", owner: { email: "x@y.test" } };\nawait axios.post("${base}/gates", gate, { headers: { "X-Tide-Key": key } });`,
    wrong,
  ),
  call(
    "a number as text in Python",
    "python",
    `import httpx\n\nhttpx.put(\n    f"${base}/gates/{gate}/levels",\n    headers={"X-Tide-Key": key},\n    json={"metres": "high"},\n)`,
    wrong,
  ),
  call(
    "an unknown query parameter in params",
    "python",
    `requests.get("${base}/gates", params={"closed": False}, headers={"X-Tide-Key": key})`,
    wrong,
  ),
  call(
    "another header in fetch",
    "ts",
    `const response = await fetch(\`${base}/gates\`, { headers: { Authorization: \`Bearer \${key}\` } });`,
    wrong,
  ),
  call("a method in Ruby", "ruby", `HTTParty.delete("${base}/gates", headers: { "X-Tide-Key" => key })`, wrong),
  call("a path in Go", "go", `req, _ := http.NewRequest("POST", "${base}/gate", body)`, wrong),
  call(
    "a request message",
    "http",
    `PATCH /api/2/gates HTTP/1.1\nHost: tidegate.test\nX-Tide-Key: abc\n\n{"place": "a"}`,
    wrong,
  ),
  call(
    "no body",
    "bash",
    `curl --request POST \\\n  --url ${base}/gates \\\n  --header "X-Tide-Key: $TIDE_KEY"`,
    wrong,
  ),
  call("a base in a variable", "bash", `API=${base}\ncurl -H "X-Tide-Key: $TIDE_KEY" "$API/gates?open=yes"`, []),
  ...[
    ["at the limit of a number", "limit=100", []],
    ["above the limit of a number", "limit=500", wrong],
    ["below the limit of a number", "limit=0", wrong],
    ["a text for a number", "limit=all", wrong],
    ["a placeholder for a number", "limit={limit}", []],
    ["one of the values", "order=newest", []],
    ["none of the values", "order=oldest", wrong],
    ["a placeholder for a value", "order=YOUR_ORDER", []],
  ].map(([name, query, finds]) =>
    call(`a query with ${name}`, "bash", `curl -H "X-Tide-Key: $TIDE_KEY" "${base}/gates?${query}"`, finds as string[]),
  ),
  ...(
    [
      ["Upgrade to version 2", []],
      ["Migration guide", []],
      ["Upgrade a gate", wrong],
    ] as const
  ).map(([title, finds]): Case => {
    const { pages, ...rest } = call(`a call that is no longer right on the page ${title}`, "bash", `curl ${base}/old`, [
      ...finds,
    ]);
    return { ...rest, pages: { "/": String(pages["/"]).replace(/<title>.*?<\/title>/, `<title>${title}</title>`) } };
  }),
  call(
    "an older version in a variable",
    "bash",
    `API=https://tidegate.test/api/1\ncurl -H "X-Tide-Key: $TIDE_KEY" "$API/gates"`,
    wrong,
  ),
  call(
    "a body in a here-document",
    "bash",
    `curl ${base}/gates -H "X-Tide-Key: $TIDE_KEY" --json @- <<EOF\n{"anything": 1}\nEOF`,
    [],
  ),
  call(
    "a placeholder as a number",
    "bash",
    `curl -X PUT ${base}/gates/<gate>/levels -H "X-Tide-Key: $TIDE_KEY" -d '{"metres": "<metres>"}'`,
    [],
  ),
  call(
    "a client of its own",
    "js",
    `const client = axios.create({ headers: { "X-Tide-Key": key } });\nawait client.get("${base}/gates");`,
    [],
  ),
  call("headers from a function", "ts", `await fetch("${base}/gates?open=true", { headers: headersOf(user) });`, []),
  call(
    "a spread body",
    "js",
    `await fetch("${base}/gates", { method: "POST", headers, body: JSON.stringify({ ...gate, width: 3 }) });`,
    [],
  ),
  call(
    "a session of requests",
    "python",
    `session = requests.Session()\nsession.headers["X-Tide-Key"] = key\nsession.post("${base}/gates", params={"dry_run": True}, json={"place": "a"})`,
    [],
  ),
  call(
    "a terminal session",
    "console",
    `$ curl -s -H "X-Tide-Key: $TIDE_KEY" ${base}/gates | jq '.[0]'\n{ "place": "a" }`,
    [],
  ),
  breaks(
    "Kotlin-like Java lambda, unclosed",
    "java",
    "gates.forEach(gate -> {\n  System.out.println(gate.name());\n);\ngates.clear();",
  ),
  breaks("C++ initializer", "cpp", 'std::vector<Gate> gates = {{"a", 1}, {"b", 2};\nopen(gates);'),
  breaks(
    "TypeScript generic call with await",
    "tsx",
    'const { data } = await useQuery<Gate[]>({\n  key: ["gates"],\n  load: () => client.list(,\n});\nreturn data;',
  ),
  breaks(
    "PHP array",
    "php",
    '$gate = $client->gates->create([\n  "place" => "a",\n  "width" => 3,\n;\necho $gate->id;',
  ),
  breaks("Python string", "py", 'print("gate is open)\nclient.close()'),
  breaks("YAML with a bad indent", "yaml", "gate:\n  place: a\n width: 3\n"),
  parses(
    "Python session with a loop",
    "pycon",
    ">>> for gate in gates:\n...     print(gate)\n...\na\nb (closed\n>>> len(gates)\n2",
  ),
  parses("C with conditional braces", "c", "#ifdef WITH_TIDES\nif (tides()) {\n#else\nif (1) {\n#endif\n  open();\n}"),
  parses(
    "Java with generics and a char",
    "java",
    "Map<String, List<Gate>> map = new HashMap<>();\nchar c = '\\'';\nif (c == '(') open();",
  ),
  parses("Rust lifetimes and chars", "rust", "impl<'a> Gate<'a> {\n    fn first(&'a self) -> char { '(' }\n}"),
  parses(
    "Go struct tags",
    "go",
    'type Gate struct {\n\tPlace string `json:"place,omitempty"`\n\tWidth int    `json:"width"`\n}',
  ),
  parses(
    "JavaScript followed by what it prints",
    "js",
    'console.log(await client.get("a"));\n// =>\n{\n  place: "a",\n  width: 3,\n}',
  ),
  breaks("an open bracket in Scala", "scala", "val gates = List(1, 2\ngates.map(_ + 1)"),
  breaks("a quote in Ruby", "ruby", "client = Hollow.new('east)\nclient.open('gate')"),
  parses(
    "quotes in comments, symbols and replacements of Ruby",
    "ruby",
    "# It's open\nputs \"#{gates.map { |gate| gate['id'] }.join(', ')}\", :\"a b\", ?'",
  ),
  breaks("a quote in C#", "csharp", 'var client = new Client("east);\nclient.Open();'),
  parses("a verbatim string in C#", "csharp", 'var path = @"C:\\";\nclient.Open(path);'),
  docs("an image of another version", {
    setup: fence("sh", "docker run -p 6033:6033 hollow/hollow:3.1"),
    guide: fence("sh", "docker run -d hollow/hollow:1.7.0"),
    finds: ["sdk-version-matches"],
  }),
  docs("an installation of another version in a file, without an import", {
    setup: fence("sh", "gem install hollow --version 3.0"),
    guide: fence("ruby", 'source "https://rubygems.org"\n\ngem "hollow", "~> 1.2"'),
    finds: ["sdk-version-matches"],
  }),
  docs("images of the same version and of another product", {
    setup: fence("sh", "docker pull hollow/hollow:3.1"),
    guide: fence("yaml", "services:\n  hollow:\n    image: hollow/hollow:3\n  cache:\n    image: redis:7"),
    finds: [],
  }),
  docs("a secret of another service, beside a heading about secrets", {
    setup: "## Secrets\n\nThe configuration holds no secrets, so it may be under version control.",
    guide: fence("sh", 'curl -H "X-Hook-Secret: $DEPLOY_HOOK_SECRET" https://hooks.hollow.test/done'),
    finds: ["prerequisite-explained"],
  }),
  docs("a prompt of root", {
    setup: `${fence("sh", "hollow start")}\n\n${fence("sh", "hollow stop")}`,
    guide: fence("sh", "root@box:/srv# hollow widgets create"),
    finds: ["command-copyable"],
  }),
  docs("a prompt without a label", {
    setup: `${fence("", "hollow widgets list --all")}\n\n${fence("", "curl -fsS https://hollow.test/install.sh | sh")}`,
    guide: fence("", "$ hollow widgets create"),
    finds: ["command-copyable"],
  }),
  docs("a session without a label", {
    setup: `${fence("", "hollow widgets list --all")}\n\n${fence("", "curl -fsS https://hollow.test/install.sh | sh")}`,
    guide: fence("", "$ hollow widgets create\nCreated widget 7"),
    finds: [],
  }),
  docs("a placeholder in quotes", {
    guide: fence("rust", 'fn main() {\n    println!("{}", hollow::open("<cell-affinity>"));\n}'),
    finds: ["placeholder-explained"],
  }),
  docs("an element in quotes, and a placeholder that is explained", {
    guide: `${fence("js", 'root.innerHTML = "<hollow-list>" + items + "</hollow-list>";\nopen("<gate-code>");')}\n\nThe code of the gate is on its door.`,
    finds: [],
  }),
  docs("a gem of another name", {
    setup: fence("sh", "gem install tidal-client"),
    guide: fence("ruby", 'require "hollow"\nHollow.open'),
    other: fence("ruby", 'require "hollow"\nHollow.close'),
    finds: ["prerequisite-explained"],
  }),
  docs("a NuGet package of another name", {
    setup: fence("sh", "dotnet add package Brisk.Sdk"),
    guide: fence("csharp", "using Hollow.Widgets;\n\nvar c = new Client();"),
    other: fence("csharp", "using Hollow.Widgets;\n\nvar c = new Client();"),
    finds: ["prerequisite-explained"],
  }),
  docs("Composer with a version", {
    setup: fence("sh", "composer require hollow/sdk:^3.0"),
    guide: fence("php", "<?php\nuse Hollow\\Client;\n\n$c = new Client();"),
    other: fence("php", "<?php\nuse Hollow\\Client;\n\n$c = new Client();"),
    finds: [],
  }),
  docs("Gradle coordinates of another group", {
    setup: fence("groovy", "implementation 'io.brisk:brisk-core:1.0'"),
    guide: fence("kotlin", "import com.hollow.Client\n\nval c = Client()"),
    other: fence("kotlin", "import com.hollow.Client\n\nval c = Client()"),
    finds: ["prerequisite-explained"],
  }),
  docs("a secret in Elixir", {
    setup: "Use a recent Elixir.",
    guide: fence("elixir", 'client = Hollow.new(System.fetch_env!("HOLLOW_API_KEY"))'),
    finds: ["prerequisite-explained"],
  }),
  docs("a secret in C#", {
    setup: "Use a recent .NET.",
    guide: fence("csharp", 'var c = new Client(Environment.GetEnvironmentVariable("HOLLOW_TOKEN"));'),
    finds: ["prerequisite-explained"],
  }),
  docs("a secret set in a file", {
    setup: fence("dotenv", "HOLLOW_TOKEN=abc"),
    guide: fence("csharp", 'var c = new Client(Environment.GetEnvironmentVariable("HOLLOW_TOKEN"));'),
    finds: [],
  }),
  docs("a pinned Python version", {
    setup: fence("sh", "pip install 'hollow>=2'"),
    guide: fence("python", "import hollow\nhollow.create()"),
    other: fence("python", "import hollow\nhollow.list()"),
    finds: [],
  }),
  docs("an older jsDelivr version", {
    setup: fence("json", '{ "dependencies": { "@hollow/web": "^5.1.0" } }'),
    guide: fence("js", 'import { Widget } from "https://cdn.jsdelivr.net/npm/@hollow/web@3.2.0/+esm";\nnew Widget();'),
    finds: ["sdk-version-matches"],
  }),
  docs("a placeholder in a URL that nothing explains", {
    guide: fence("js", 'await fetch("https://api.hollow.test/tenants/{tenant_slug}/widgets");'),
    finds: ["placeholder-explained"],
  }),
  docs("placeholders that ask for a value that nothing explains", {
    guide: fence("js", 'await hollow.create("INSERT_REALM_CODE", "<<realm>>");'),
    finds: ["placeholder-explained"],
  }),
  {
    name: "a placeholder with brackets in a URL, of which nothing but its own sample in a table speaks",
    pages: {
      "/": "<title>Create a widget</title><h1>Create a widget</h1><p>This page shows how to create a widget.</p><table><tr><td><pre>1\n2</pre></td><td><pre>curl -X DELETE \\\n  https://api.hollow.test/tenants/[your-tenant-slug]</pre></td></tr></table>",
    },
    finds: ["placeholder-explained"],
  },
  docs("a selector with brackets, and a constant in capitals", {
    guide: fence("js", 'document.querySelector("[data-realm]");\nhollow.create({ state: "IN_REVIEW" });'),
    finds: [],
  }),
  docs("a second secret, where the docs name only the first", {
    setup: `Set \`HOLLOW_TOKEN\` to your token.\n\n## Tokens and keys\n\nThe console has them.`,
    guide: fence("py", 'c = hollow.Client(os.environ["HOLLOW_TOKEN"], signer=os.environ["HOLLOW_SIGNING_KEY"])'),
    finds: ["prerequisite-explained"],
  }),
  docs("a second secret that the docs describe in words", {
    setup: `Set \`HOLLOW_TOKEN\` to your token.\n\n## Keys\n\nThe console shows the key for signing once.`,
    guide: fence("py", 'c = hollow.Client(os.environ["HOLLOW_TOKEN"], signer=os.environ["HOLLOW_SIGNING_KEY"])'),
    finds: [],
  }),
  contradicts(
    "a path below more than the base of the API",
    "sh",
    'curl -H "Authorization: Bearer $HOLLOW_KEY" https://api.hollow.test/api/v1/widgets',
  ),
  contradicts(
    "a path without the base of the API",
    "sh",
    'curl -H "Authorization: Bearer $HOLLOW_KEY" https://api.hollow.test/widgets',
  ),
  matches("a path of another API of the host", "sh", "curl https://api.hollow.test/admin/widgets/7/audit"),
];
