import { camel, capital, type Product } from "./site.ts";
import type { Domain, Task, Value } from "./third-products.ts";

const majorVersion = 4;
export const version = `${majorVersion}.2.1`;
/** What a sample is about: the SDK call, or the request, of one task for one kind of thing. */
type Call = { product: Product; domain: Domain; task: Task; thing: string };

export const pluralOf = (thing: string): string => {
  if (/[^aeiou]y$/.test(thing)) return `${thing.slice(0, -1)}ies`;
  return /(ch|sh|s|x)$/.test(thing) ? `${thing}es` : `${thing}s`;
};
export const pathOfThing = (thing: string): string => `/${pluralOf(thing).replaceAll(" ", "-")}`;
export const hostOf = ({ package: id }: Product): string => `api.${id}.example`;

const lowerCamel = (text: string) => camel(text)[0]!.toLowerCase() + camel(text).slice(1);
const snake = (text: string) =>
  text
    .replace(/([A-Z])/g, "_$1")
    .toLowerCase()
    .replaceAll(" ", "_");

type Style = { open: string; close: string; pair(key: string, value: string): string; truth?: [string, string] };
const styles = {
  js: { open: "{ ", close: " }", pair: (key, value) => `${key}: ${value}` },
  python: { open: "{", close: "}", pair: (key, value) => `"${key}": ${value}`, truth: ["True", "False"] },
  go: { open: "map[string]any{", close: "}", pair: (key, value) => `"${key}": ${value}` },
  rust: { open: "{ ", close: " }", pair: (key, value) => `"${key}": ${value}` },
  java: { open: "Map.of(", close: ")", pair: (key, value) => `"${key}", ${value}` },
  kotlin: { open: "mapOf(", close: ")", pair: (key, value) => `"${key}" to ${value}` },
  swift: { open: "[", close: "]", pair: (key, value) => `"${key}": ${value}` },
  csharp: { open: "new() { ", close: " }", pair: (key, value) => `["${key}"] = ${value}` },
  php: { open: "[", close: "]", pair: (key, value) => `'${key}' => ${value}` },
  ruby: { open: "{ ", close: " }", pair: (key, value) => `${key}: ${value}` },
} satisfies Record<string, Style>;

/** A value as the source code of a language. */
function literal(value: Value, style: keyof typeof styles): string {
  const { open, close, pair, truth = ["true", "false"] }: Style = styles[style];
  if (typeof value === "boolean") return truth[value ? 0 : 1];
  if (typeof value !== "object") return JSON.stringify(value);
  const pairs = Object.entries(value).map(([key, each]) => pair(key, literal(each, style)));
  return `${open}${pairs.join(", ")}${close}`;
}

/** The name and the value of the header that authenticates. `key` is how the language writes the secret. */
export function credentialOf({ name, kind }: Product, key: string): [name: string, value: string] {
  if (kind.length % 3 === 0) return [`X-${name}-Key`, key];
  return ["Authorization", `${kind.length % 3 === 1 ? "Bearer" : "Token"} ${key}`];
}

/** A header that each request of some APIs must have. */
export const requiredHeaderOf = ({ kind }: Product): [name: string, value: string] | null =>
  ["mail", "payments", "flags", "maps"].includes(kind) ? ["Idempotency-Key", "3f0c-71"] : null;

const addressOf = ({ product, domain, task, thing }: Call) => {
  const query = new URLSearchParams(task.query).toString();
  const path = `/v${majorVersion}${pathOfThing(thing)}${task.path.replace("{id}", domain.id)}`;
  return { path: query ? `${path}?${query}` : path, host: hostOf(product) };
};

/** The request of a task without an SDK, and the language of that sample. */
export function requestOf(call: Call): { language: string; code: string } | null {
  const { product, domain, task } = call;
  const { host, path } = addressOf(call);
  const url = `https://${host}${path}`;
  const extra = requiredHeaderOf(product);
  const body = JSON.stringify(task.body, null, 2);
  const method = task.method.toLowerCase();
  const headers = (key: string): [string, string][] => [credentialOf(product, key), ...(extra ? [extra] : [])];
  const inJs = headers(`\${${domain.kind === "maps" ? "import.meta.env" : "process.env"}.${product.variable}}`)
    .map(
      ([name, value]) =>
        `    ${/\W/.test(name) ? `"${name}"` : name}: ${value.includes("$") ? `\`${value}\`` : `"${value}"`},\n`,
    )
    .join("");
  const inShell = headers(`$${product.variable}`).map(([name, value]) => ` \\\n  -H "${name}: ${value}"`);
  switch (domain.form) {
    case "curl":
      return {
        language: "bash",
        code: `curl -X ${task.method} "${url}"${inShell.join("")} \\\n  -H "Content-Type: application/json" \\\n  -d '${body}'`,
      };
    case "curlJson":
      return {
        language: "bash",
        code: `curl --request ${task.method} \\\n  --url ${url}${inShell.join("")} \\\n  --json '${JSON.stringify(task.body)}'`,
      };
    case "http":
      return {
        language: "http",
        code: [
          `${task.method} ${path} HTTP/1.1`,
          `Host: ${host}`,
          ...headers("sk_live_81c2e").map((pair) => pair.join(": ")),
          "Content-Type: application/json",
          "",
          body,
        ].join("\n"),
      };
    case "axios":
      return {
        language: "js",
        code: `import axios from "axios";\n\nconst settings = {\n  headers: {\n${inJs}  },\n};\nconst { data } = await axios.${method}("${url}", ${literal(task.body, "js")}, settings);\nconsole.log(data.id);`,
      };
    case "got":
      return {
        language: "ts",
        code: `import got from "got";\n\nconst result = await got.${method}("${url}", {\n  headers: {\n${inJs}  },\n  json: ${literal(task.body, "js")},\n}).json<{ id: string }>();\nconsole.log(result.id);`,
      };
    case "fetch":
      return {
        language: "js",
        code: `const reply = await fetch("${url}", {\n  method: "${task.method}",\n  headers: {\n    "Content-Type": "application/json",\n${inJs}  },\n  body: JSON.stringify(${literal(task.body, "js")}),\n});\nif (!reply.ok) throw new Error(await reply.text());`,
      };
    case "httpx": {
      const lines = headers(`{os.environ['${product.variable}']}`).map(
        ([name, value]) => `        "${name}": ${value.includes("{") ? "f" : ""}"${value}",\n`,
      );
      return {
        language: "python",
        code: `import os\n\nimport httpx\n\nreply = httpx.${method}(\n    "${url}",\n    headers={\n${lines.join("")}    },\n    json=${literal(task.body, "python")},\n)\nreply.raise_for_status()`,
      };
    }
    case null:
      return null;
  }
}

type Names = {
  Thing: string;
  Things: string;
  thing: string;
  things: string;
  verb: string;
  Verb: string;
  id: string;
  Name: string;
  key: string;
};

/** A task with the SDK, the program or the file of a product. */
export function sampleOf(call: Call): string {
  const { product, domain, task, thing } = call;
  const { body, verb } = task;
  const { name: Name, package: id, variable: key, language } = product;
  const names: Names = {
    Thing: camel(thing),
    Things: camel(pluralOf(thing)),
    thing: snake(thing),
    things: snake(pluralOf(thing)),
    verb,
    Verb: capital(verb),
    id,
    Name,
    key,
  };
  const write = [writeScript, writeCompiled, writeFile].find((each) => language in each)![language]!;
  return write(names, body, domain.id);
}

type Write = (names: Names, body: Record<string, Value>, item: string) => string;

const writeScript: Record<string, Write> = {
  js: ({ Name, id, thing, things, verb, key }, body, item) =>
    key.startsWith("VITE_")
      ? `import { ${Name}Map } from "@${id}/maps";\n\nconst map = new ${Name}Map(document.querySelector("#map"), {\n  key: import.meta.env.${key},\n  center: [16.37, 48.21],\n});\n\nmap.on("ready", async () => {\n  const ${lowerCamel(thing)} = await map.find("${item}");\n  ${lowerCamel(thing)}.${verb}(${literal(body, "js")});\n  console.log(\`\${${lowerCamel(thing)}.name} is done\`);\n});`
      : `const { ${Name} } = require("@${id}/node");\n\nconst ${id} = new ${Name}(process.env.${key});\n\n${id}.${lowerCamel(things)}\n  .${verb}("${item}", ${literal(body, "js")})\n  .then((done) => console.log("Status:", done.status))\n  .catch((error) => {\n    console.error(error.message);\n    process.exitCode = 1;\n  });`,
  ts: ({ Name, id, Thing, things, verb, Verb, key }, body, item) =>
    `import { create${Name}, type ${Thing}Result } from "@${id}/sdk";\n\ninterface ${Verb}Options {\n  id: string;\n  retries?: number;\n}\n\nconst ${id} = create${Name}({ secret: process.env.${key} as string });\n\nexport const ${verb}${Thing} = async ({ id, retries = 3 }: ${Verb}Options): Promise<${Thing}Result> =>\n  ${id}.${lowerCamel(things)}.${verb}(id, ${literal(body, "js")}, { retries });\n\nawait ${verb}${Thing}({ id: "${item}" });`,
  python: ({ Name, id, thing, things, verb, key }, body, item) =>
    `import asyncio\nimport os\n\nfrom ${id}_sdk import Async${Name}, ${Name}Error\n\nclient = Async${Name}(token=os.environ["${key}"])\n\n\nasync def main() -> None:\n    try:\n        ${thing} = await client.${things}.${snake(verb)}(\n            "${item}",\n            ${Object.entries(
      body,
    )
      .map(([field, value]) => `${field}=${literal(value, "python")}`)
      .join(
        ",\n            ",
      )},\n        )\n    except ${Name}Error as error:\n        raise SystemExit(f"Failed: {error.code}")\n    print(${thing}.id, [step.name for step in ${thing}.steps])\n\n\nasyncio.run(main())`,
  php: ({ Name, thing, things, verb, key }, body, item) =>
    `<?php\n\nrequire __DIR__ . '/vendor/autoload.php';\n\nuse ${Name}\\Client;\nuse ${Name}\\Exception\\Rejected;\n\n$client = Client::withKey(getenv('${key}'));\n\ntry {\n    $${lowerCamel(thing)} = $client->${lowerCamel(things)}()->${verb}('${item}', ${literal(body, "php")});\n    printf("%s: %s\\n", $${lowerCamel(thing)}->id, implode(', ', $${lowerCamel(thing)}->tags()));\n} catch (Rejected $rejected) {\n    error_log($rejected->getMessage());\n}`,
  ruby: ({ Name, id, thing, things, verb, key }, body, item) =>
    `require "${id}"\n\n${Name}.configure do |config|\n  config.api_key = ENV.fetch("${key}")\nend\n\n${thing} = ${Name}::${camel(thing.replaceAll("_", " "))}.find("${item}")\nresult = ${thing}.${verb}(${literal(body, "ruby").slice(2, -2)})\n\nif result.ok?\n  puts "${things}: #{result.events.map(&:name).join(", ")}"\nelse\n  warn result.error\nend`,
  bash: ({ id, thing, verb }, body, item) => {
    const flags = Object.entries(body).map(([field, value]) => ` \\\n  --${field.replaceAll("_", "-")} "${value}"`);
    return `set -euo pipefail\n\n${id} ${thing.replaceAll("_", "-")} ${verb} ${item}${flags.join("")}\n\nuntil ${id} status ${item} | grep -q ready; do\n  sleep 2\ndone\necho "It took $(${id} status ${item} --seconds) seconds"`;
  },
};

const writeCompiled: Record<string, Write> = {
  go: ({ id, Things, Verb, key }, body, item) =>
    `package main\n\nimport (\n\t"context"\n\t"fmt"\n\t"os"\n\t"time"\n\n\t"go.${id}.example/client/v${majorVersion}"\n)\n\nfunc main() {\n\tctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)\n\tdefer cancel()\n\n\tc := client.New(client.WithToken(os.Getenv("${key}")))\n\tresult, err := c.${Things}.${Verb}(ctx, "${item}", ${literal(body, "go")})\n\tif err != nil {\n\t\tfmt.Fprintln(os.Stderr, err)\n\t\tos.Exit(1)\n\t}\n\tfmt.Printf("%s took %v\\n", result.ID, result.Elapsed)\n}`,
  rust: ({ Name, id, thing, things, verb, key }, body, item) =>
    `use serde_json::json;\nuse ${id}_db::{Client, Error};\n\n#[tokio::main]\nasync fn main() -> Result<(), Error> {\n    let client = Client::builder()\n        .token(std::env::var("${key}").expect("${key} is set"))\n        .user_agent("${Name} example")\n        .build()?;\n    let ${thing} = client\n        .${things}()\n        .${snake(verb)}("${item}", json!(${literal(body, "rust")}))\n        .await?;\n    for step in ${thing}.steps.iter().filter(|step| !step.done) {\n        println!("{}: {:?}", step.name, step.state);\n    }\n    Ok(())\n}`,
  java: ({ Name, id, Thing, thing, things, verb, key }, body, item) =>
    `import com.${id}.${Name}Client;\nimport com.${id}.model.${Thing};\nimport java.util.Map;\n\npublic final class Main {\n  public static void main(String[] args) {\n    var client = ${Name}Client.builder().apiKey(System.getenv("${key}")).build();\n    ${Thing} ${lowerCamel(thing)} = client.${lowerCamel(things)}().${verb}("${item}", ${literal(body, "java")});\n    ${lowerCamel(thing)}.events().stream()\n        .filter(event -> event.level() > 1)\n        .forEach(event -> System.out.println(event.text()));\n  }\n}`,
  kotlin: ({ Name, id, thing, things, verb, key }, body, item) =>
    `import com.${id}.android.${Name}\nimport com.${id}.android.${Name}Config\n\nclass SupportActivity : AppCompatActivity() {\n    private val client by lazy { ${Name}(this, ${Name}Config(key = BuildConfig.${key})) }\n\n    override fun onStart() {\n        super.onStart()\n        lifecycleScope.launch {\n            val ${lowerCamel(thing)} = client.${lowerCamel(things)}.${verb}("${item}", ${literal(body, "kotlin")})\n            Log.d("Support", "\${${lowerCamel(thing)}.id} is \${${lowerCamel(thing)}.state}")\n        }\n    }\n}`,
  swift: ({ Name, thing, things, verb }, body, item) =>
    `import ${Name}Kit\nimport SwiftUI\n\nstruct NotesView: View {\n    @State private var ink = ${Name}()\n\n    var body: some View {\n        ${Name}Canvas(ink)\n            .task {\n                guard let ${lowerCamel(thing)} = try? await ink.${lowerCamel(things)}.${verb}("${item}", ${literal(body, "swift")}) else { return }\n                print("Done: \\(${lowerCamel(thing)}.id)")\n            }\n    }\n}`,
  csharp: ({ Name, Thing, Things, Verb, key }, body, item) =>
    `using ${Name}.Net;\nusing ${Name}.Net.Models;\n\nvar key = Environment.GetEnvironmentVariable("${key}") ?? throw new InvalidOperationException("No key");\nusing var client = new ${Name}Client(new ${Name}Options { ApiKey = key });\n\nDictionary<string, object> settings = ${literal(body, "csharp")};\n${Thing} result = await client.${Things}.${Verb}Async("${item}", settings);\n\nConsole.WriteLine($"{result.Id}: {string.Join(", ", result.Lines.Select(line => line.Text))}");`,
  c: ({ id, thing, verb }, body, item) => {
    const sets = Object.entries(body).map(
      ([field, value]) =>
        `    ${id}_set_${typeof value === "string" ? "str" : "int"}(&job, "${field}", ${typeof value === "boolean" ? Number(value) : JSON.stringify(value)});\n`,
    );
    return `#include <${id}/${id}.h>\n#include <stdint.h>\n#include <stdio.h>\n\nstatic void on_done(int code, void *user) {\n    (void)user;\n    printf("code %d\\n", code);\n}\n\nint main(void) {\n    struct ${id}_job job;\n    uint8_t buffer[64] = {0};\n\n    if (${id}_${thing}_open(&job, "${item}", buffer, sizeof(buffer)) != 0) {\n        return 1;\n    }\n${sets.join("")}    ${id}_${thing}_${verb}(&job, on_done, NULL);\n    return ${id}_run();\n}`;
  },
  cpp: ({ id, Thing, thing, verb }, body, item) =>
    `#include <${id}/scene.hpp>\n#include <${id}/${thing}.hpp>\n#include <memory>\n#include <vector>\n\nusing namespace ${id};\n\nclass Demo final : public Scene {\n public:\n  void setup() override {\n    auto ${thing} = std::make_unique<${Thing}>(assets().load("${item}"));\n    ${thing}->${verb}({${Object.entries(
      body,
    )
      .map(([field, value]) => `.${field} = ${literal(value, "js")}`)
      .join(
        ", ",
      )}});\n    items_.push_back(std::move(${thing}));\n  }\n\n private:\n  std::vector<std::unique_ptr<${Thing}>> items_;\n};\n\nint main() { return run<Demo>("Demo", {1280, 720}); }`,
};

const writeFile: Record<string, Write> = {
  yaml: ({ id, Thing, verb }, body, item) =>
    `apiVersion: ${id}.example/v${majorVersion}\nkind: ${Thing}\nmetadata:\n  name: ${item}\n  labels: {app: web, tier: "1"}\nspec:\n  ${verb}:\n${Object.entries(
      body,
    )
      .map(([field, value]) => `    ${field}: ${JSON.stringify(value)}\n`)
      .join(
        "",
      )}  targets:\n    - namespace: default\n      volumes: [data, logs]\n    - namespace: billing\n  script: |\n    echo "done"\n    exit 0`,
  toml: ({ Name, thing, things, verb }, body, item) =>
    `# ${Name} reads this file at its start.\n[server]\nworkers = 4\n\n[[${things}]]\nname = "${item}"\nports = [8080, 8443]\n\n[${things}.${verb}]\n${Object.entries(
      body,
    )
      .map(([field, value]) => `${field} = ${JSON.stringify(value)}`)
      .join("\n")}\nnotes = """\nChanged by the ${thing} guide.\n"""`,
  hcl: ({ id, thing, verb }, body, item) =>
    `resource "${id}_${thing}" "main" {\n  name = "${item}"\n\n  ${snake(verb)} {\n${Object.entries(body)
      .map(([field, value]) => `    ${field} = ${JSON.stringify(value)}`)
      .join(
        "\n",
      )}\n  }\n\n  tags = merge(var.tags, { owner = "web" })\n}\n\noutput "state" {\n  value = ${id}_${thing}.main.state\n}`,
  graphql: ({ Thing, thing, verb, Verb }, body, item) =>
    `mutation ${Verb}${Thing}($id: ID = "${item}") {\n  ${lowerCamel(thing)}${Verb}(id: $id, input: ${literal(body, "js")}) {\n    ${lowerCamel(thing)} {\n      id\n      updatedAt\n      channels(first: 3) { edges { node { name } } }\n    }\n    userErrors {\n      field\n      message\n    }\n  }\n  # The name of the mutation is ${lowerCamel(thing)}${capital(verb)}.\n}`,
  json: ({ id, thing, verb, key }, body, item) =>
    JSON.stringify(
      {
        mcpServers: {
          [id]: {
            command: "npx",
            args: ["-y", `@${id}/mcp@${majorVersion}`, `--${thing.replaceAll("_", "-")}`, item],
            env: { [key]: `\${${key}}` },
          },
        },
        policies: [{ when: thing, [verb]: body }],
      },
      null,
      2,
    ),
};

type Setup = { name: string; language: string; code: string };

/** How to get what a sample needs: in each package manager, or in each file. */
export function setupOf({ package: id, kind, name, language }: Product): Setup[] {
  const shell = (label: string, code: string): Setup => ({ name: label, language: "bash", code });
  const npm = (names: string) => [
    shell("npm", `npm i ${names}`),
    shell("pnpm", `pnpm add ${names}`),
    shell("Bun", `bun add ${names}`),
  ];
  if (kind === "payments") return npm(`@${id}/node@${majorVersion} axios`);
  if (kind === "maps") return npm(`@${id}/maps@${majorVersion}`);
  switch (language) {
    case "ts":
      return npm(`@${id}/sdk@${majorVersion} got`);
    case "python":
      return [
        shell("pip", `pip install "${id}-sdk>=${majorVersion},<${majorVersion + 1}" httpx`),
        shell("Poetry", `poetry add ${id}-sdk@^${majorVersion} httpx`),
      ];
    case "go":
      return [shell("Modules", `go get go.${id}.example/client/v${majorVersion}`)];
    case "rust":
      return [
        {
          name: "Cargo.toml",
          language: "toml",
          code: `[dependencies]\n${id}-db = "${version}"\nserde_json = "1"\ntokio = { version = "1", features = ["full"] }`,
        },
        shell("cargo add", `cargo add ${id}-db@${majorVersion} serde_json\ncargo add tokio --features full`),
      ];
    case "java":
      return [
        {
          name: "Maven",
          language: "xml",
          code: `<dependency>\n  <groupId>com.${id}</groupId>\n  <artifactId>${id}-java</artifactId>\n  <version>${version}</version>\n</dependency>`,
        },
        {
          name: "Gradle",
          language: "groovy",
          code: `dependencies {\n  implementation "com.${id}:${id}-java:${version}"\n}`,
        },
      ];
    case "kotlin":
      return [
        {
          name: "Gradle",
          language: "kotlin",
          code: `dependencies {\n    implementation("com.${id}:${id}-android:${version}")\n}`,
        },
      ];
    case "swift":
      return [
        {
          name: "Package.swift",
          language: "swift",
          code: `dependencies: [\n    .package(url: "https://git.${id}.example/${id}-kit.git", from: "${version}"),\n]`,
        },
      ];
    case "csharp":
      return [shell(".NET CLI", `dotnet add package ${name}.Net --version ${version}`)];
    case "php":
      return [shell("Composer", `composer require ${id}/${id}:^${majorVersion}`)];
    case "ruby":
      return [
        { name: "Bundler", language: "ruby", code: `gem "${id}", "~> ${majorVersion}.2"` },
        shell("RubyGems", `gem install ${id} -v "~> ${majorVersion}.2"`),
      ];
    case "c":
    case "cpp":
      return [
        shell("Conan", `conan install --requires=${id}/${version}`),
        {
          name: "CMake",
          language: "cmake",
          code: `find_package(${id} ${majorVersion} REQUIRED)\ntarget_link_libraries(app PRIVATE ${id}::${id})`,
        },
      ];
    case "yaml":
      return [
        shell(
          "Helm",
          `helm repo add ${id} https://charts.${id}.example\nhelm upgrade --install ${id} ${id}/operator --namespace ${id} --create-namespace`,
        ),
      ];
    case "hcl":
      return [
        {
          name: "main.tf",
          language: "hcl",
          code: `terraform {\n  required_providers {\n    ${id} = {\n      source  = "registry.${id}.example/${id}/${id}"\n      version = "~> ${majorVersion}.2"\n    }\n  }\n}`,
        },
      ];
    case "json":
      return [shell("npx", `npx -y @${id}/mcp@${majorVersion} --version`)];
    case "graphql":
      return [shell("curl", "curl --version")];
    default:
      return kind === "mail"
        ? [shell("curl", "curl --version")]
        : [
            shell(
              "Debian",
              `curl -fsSL https://get.${id}.example/key.asc | sudo tee /etc/apt/keyrings/${id}.asc\nsudo apt install ${id}`,
            ),
            shell("macOS", `brew install ${id}`),
            { name: "Windows", language: "powershell", code: `winget install ${name}` },
          ];
  }
}
