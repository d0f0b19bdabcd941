import { type Code, camel, type Product } from "./site.ts";

/** A request: `action` is what a client library calls it; `settings` are its body. */
export type Operation = {
  action: string;
  method: string;
  /** Below the path of the resource, with `{id}`. */
  path: string;
  query: Record<string, string>;
  settings: Record<string, string | number>;
};

export const itemId = "k7-0031";
const lowerCamel = (text: string) => camel(text)[0]!.toLowerCase() + camel(text).slice(1);
export const pathOfResource = (noun: string): string => `/${noun.replaceAll(" ", "-")}s`;
const baseOf = ({ package: name }: Product) => `https://${name}.example/api/v3`;

/** The name and the value of the header that authenticates a request. */
export const credentialOf = (product: Product, variable: string): [name: string, value: string] =>
  product.kind.length % 2 ? ["Authorization", `Bearer ${variable}`] : [`${product.name}-Key`, variable];

function urlOf(product: Product, noun: string, { path, query }: Operation): string {
  const parameters = new URLSearchParams(query).toString();
  return `${baseOf(product)}${pathOfResource(noun)}${path.replace("{id}", itemId)}${parameters && `?${parameters}`}`;
}

/** The request as a command. */
export function curlOf(product: Product, noun: string, operation: Operation): string {
  const [header, credential] = credentialOf(product, `$${product.variable}`);
  const lines = [
    `curl --request ${operation.method} '${urlOf(product, noun, operation)}'`,
    `  --header "${header}: ${credential}"`,
  ];
  if (Object.keys(operation.settings).length > 0)
    lines.push("  --header 'Content-Type: application/json'", `  --data '${JSON.stringify(operation.settings)}'`);
  return lines.join(" \\\n");
}

/** The request in a language that has HTTP in its standard or its usual library. */
export function requestOf(product: Product, noun: string, operation: Operation): Code {
  const url = urlOf(product, noun, operation);
  if (product.language === "js" || product.language === "ts") {
    const [header, credential] = credentialOf(product, `\${process.env.${product.variable}}`);
    return {
      kind: "code",
      language: product.language,
      code: `const response = await fetch("${url}", {\n  method: "${operation.method}",\n  headers: {\n    "${header}": \`${credential}\`,\n    "Content-Type": "application/json",\n  },\n  body: JSON.stringify(${JSON.stringify(operation.settings)}),\n});\nconsole.log(response.status);`,
    };
  }
  if (product.language === "python") {
    const [header, credential] = credentialOf(product, `{os.environ['${product.variable}']}`);
    return {
      kind: "code",
      language: "python",
      code: `import os\nimport requests\n\nresponse = requests.${operation.method.toLowerCase()}(\n    "${url}",\n    headers={"${header}": f"${credential}"},\n    json=${JSON.stringify(operation.settings)},\n)\nresponse.raise_for_status()`,
    };
  }
  return { kind: "code", language: "bash", code: curlOf(product, noun, operation) };
}

/** The operation with the client library of the product. */
export function clientSample(product: Product, noun: string, operation: Operation): string {
  const { name, package: id, variable, language } = product;
  const [[field, value] = ["note", "none"]] = Object.entries(operation.settings);
  const [Noun, noun1, Action, quoted] = [camel(noun), lowerCamel(noun), camel(operation.action), JSON.stringify(value)];
  const snake = noun.replaceAll(" ", "_");
  switch (language) {
    case "bash":
      return product.kind === "console"
        ? `${id} ${noun.replaceAll(" ", "-")} ${operation.action} ${itemId} --${field}=${value} --wait\nif [ $? -eq 0 ]; then\n  ${id} ${noun.replaceAll(" ", "-")} show ${itemId} | grep ${field}\nfi`
        : curlOf(product, noun, operation);
    case "js":
      return `import ${id} from "@${id}/client";\n\nconst api = ${id}({ key: process.env.${variable} });\n\nexport async function run() {\n  const ${noun1} = await api.${noun1}s.${operation.action}("${itemId}", { ${field}: ${quoted} });\n  return ${noun1}.id;\n}`;
    case "ts":
      return `import { ${name}, type ${Noun} } from "@${id}/client";\n\nconst api = new ${name}(process.env.${variable} ?? "");\n\nexport async function ${operation.action}One(id: string): Promise<${Noun}> {\n  return await api.${noun1}s.${operation.action}(id, { ${field}: ${quoted} });\n}`;
    case "python":
      return `import os\nfrom ${id} import ${name}\n\n\ndef main():\n    with ${name}(key=os.getenv("${variable}")) as api:\n        ${snake} = api.${snake}s.${operation.action}("${itemId}", ${field}=${quoted})\n        print(f"done: {${snake}.id}")\n\n\nmain()`;
    case "go":
      return `package main\n\nimport (\n\t"log"\n\t"os"\n\n\t${id} "${id}.example/go/v3"\n)\n\nfunc main() {\n\tapi, err := ${id}.Dial(os.Getenv("${variable}"))\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tdefer api.Close()\n\n\tif err := api.${Noun}.${Action}("${itemId}", ${quoted}); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}`;
    case "rust":
      return `use ${id}_client::{Api, ${Noun}};\n\nfn main() -> Result<(), Box<dyn std::error::Error>> {\n    let key = std::env::var("${variable}")?;\n    let api = Api::connect(&key)?;\n    let ${snake}: ${Noun} = api.${snake}s().${operation.action}("${itemId}", ${quoted})?;\n    println!("{:?}", ${snake});\n    Ok(())\n}`;
    case "php":
      return `<?php\n\ndeclare(strict_types=1);\n\nuse ${name}\\Api;\n\n$api = new Api($_ENV['${variable}']);\n$${noun1} = $api->${noun1}s()->${operation.action}('${itemId}', ['${field}' => ${quoted}]);\n\nforeach ($${noun1}->changes() as $change) {\n    echo $change->name, PHP_EOL;\n}`;
    case "csharp":
      return `using ${name}.Client;\n\nvar api = new Api(Environment.GetEnvironmentVariable("${variable}")!);\nvar ${noun1} = await api.${Noun}s.${Action}Async("${itemId}", ${quoted});\n\nforeach (var change in ${noun1}.Changes)\n{\n    Console.WriteLine(change.Name);\n}`;
    case "ruby":
      return `require "${id}/client"\n\napi = ${name}::Api.new(key: ENV["${variable}"])\n${snake} = api.${snake}s.${operation.action}("${itemId}", ${field}: ${quoted})\n\n${snake}.changes.each do |change|\n  puts change.name\nend`;
    case "java":
      return `import ${id}.client.Api;\nimport ${id}.client.${Noun};\n\nclass Example {\n    void run() throws Exception {\n        try (Api api = Api.open(System.getenv("${variable}"))) {\n            ${Noun} ${noun1} = api.${noun1}s().${operation.action}("${itemId}", ${quoted});\n            System.out.println(${noun1}.id());\n        }\n    }\n}`;
    case "c":
      return `#include <stdio.h>\n#include <stdlib.h>\n#include <${id}.h>\n\nint main(void) {\n  ${id}_api *api = ${id}_open(getenv("${variable}"));\n  if (api == NULL) {\n    return 1;\n  }\n  printf("%d\\n", ${id}_${snake}_${operation.action}(api, "${itemId}", ${quoted}));\n  ${id}_close(api);\n  return 0;\n}`;
    case "cpp":
      return `#include <cstdlib>\n#include <iostream>\n#include <${id}/api.hpp>\n\nint main() {\n  ${id}::api api{std::getenv("${variable}")};\n  for (const auto& change : api.${snake}s().${operation.action}("${itemId}", ${quoted})) {\n    std::cout << change.name << '\\n';\n  }\n}`;
    case "graphql":
      return `query Find${Noun}($id: ID!) {\n  ${noun1}(id: $id, ${field}: ${quoted}) {\n    id\n    changes(first: 5) {\n      name\n    }\n  }\n}`;
    case "yaml":
      return `kind: ${Noun}\nmetadata:\n  name: ${itemId}\nspec:\n  action: ${operation.action}\n  ${field}: ${quoted}\n  watchers:\n    - anna\n    - bo`;
    case "toml":
      return `[${snake}.${operation.action}]\nid = "${itemId}"\n${field} = ${quoted}\nwatchers = ["anna", "bo"]`;
    case "hcl":
      return `data "${id}_${snake}" "one" {\n  id = "${itemId}"\n}\n\noutput "changes" {\n  value = [for change in data.${id}_${snake}.one.changes : change.name]\n}`;
    default:
      throw new Error(`No sample in ${language}`);
  }
}

/** What to install so that a sample works: the command in each package manager, or an entry of a file. */
export function setupOf({ package: id, kind, name }: Product): { name: string; language: string; code: string }[] {
  const shell = (program: string, code: string) => ({ name: program, language: "sh", code });
  switch (kind) {
    case "node":
    case "typescript":
    case "graph":
      return [
        shell("npm", `npm install --save @${id}/client@^3`),
        shell("pnpm", `pnpm add @${id}/client@^3`),
        shell("yarn", `yarn add @${id}/client@^3`),
      ];
    case "python":
      return [shell("pip", `python -m pip install '${id}~=3.0'`), shell("uv", `uv add '${id}~=3.0'`)];
    case "go":
      return [shell("go", `go get ${id}.example/go/v3@latest`)];
    case "rust":
      return [
        { name: "Cargo.toml", language: "toml", code: `[dependencies]\n${id}-client = "3"` },
        shell("cargo", `cargo add ${id}-client@3`),
      ];
    case "php":
      return [shell("composer", `composer require ${id}/client "^3.0"`)];
    case "dotnet":
      return [shell("dotnet", `dotnet add package ${name}.Client --version 3.0.4`)];
    case "ruby":
      return [
        { name: "Gemfile", language: "ruby", code: `gem "${id}-client", "~> 3.0"` },
        shell("gem", `gem install ${id}-client`),
      ];
    case "jvm":
      return [
        { name: "Gradle", language: "groovy", code: `implementation("${id}:client:3.0.4")` },
        {
          name: "Maven",
          language: "xml",
          code: `<dependency>\n  <groupId>${id}</groupId>\n  <artifactId>client</artifactId>\n  <version>3.0.4</version>\n</dependency>`,
        },
      ];
    case "embedded":
    case "native":
      return [shell("apt", `sudo apt-get install lib${id}-dev`), shell("vcpkg", `vcpkg install ${id}`)];
    case "operator":
      return [shell("kubectl", `kubectl apply -f https://${id}.example/operator/v3.yaml`)];
    case "provider":
      return [
        {
          name: "versions.tf",
          language: "hcl",
          code: `terraform {\n  required_providers {\n    ${id} = {\n      source  = "${id}/${id}"\n      version = "~> 3.0"\n    }\n  }\n}`,
        },
      ];
    default:
      return [
        shell("Homebrew", `brew install ${id}/tap/${id}`),
        shell("Linux", `curl -fsSL https://${id}.example/install.sh | sh`),
      ];
  }
}
