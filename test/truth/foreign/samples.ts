import { type Code, camel, capital, type Product } from "./site.ts";

/** A call of the product: `verb` on the item "item-7" of kind `noun`, with one setting. */
export type Call = { noun: string; verb: string; field: string; value: string | number };

/** The call over HTTP. Version 2 of the API is the current one. */
export const httpSample = (product: Product, { noun, verb, field, value }: Call): string =>
  `curl -X POST https://api.${product.package}.example/v2/${noun}s/item-7/${verb} \\\n  -H "Authorization: Bearer $${product.variable}" \\\n  -H "Content-Type: application/json" \\\n  -d '${JSON.stringify({ [field]: value })}'`;

/** The call in a language. */
export function sampleOf(product: Product, language: string, call: Call): string {
  const { noun, verb, field } = call;
  const [Noun, Verb, Field, value] = [camel(noun), capital(verb), camel(field), JSON.stringify(call.value)];
  const { package: name, variable } = product;
  switch (language) {
    case "bash":
      return product.kind === "cli"
        ? `${name} ${noun} ${verb} item-7 --${field} ${call.value}`
        : httpSample(product, call);
    case "js":
      return `import { Client } from "${name}";\n\nconst client = new Client({ token: process.env.${variable} });\nconst result = await client.${noun}s.${verb}("item-7", {\n  ${field}: ${value},\n});\nconsole.log(result.state);`;
    case "python":
      return `import os\nimport ${name} as sdk\n\nclient = sdk.Client(token=os.environ["${variable}"])\nresult = client.${noun}s.${verb}("item-7", ${field}=${value})\nprint(result.state)`;
    case "go":
      return `package main\n\nimport (\n\t"context"\n\t"fmt"\n\t"os"\n\n\t"example.com/${name}/v2"\n)\n\nfunc main() {\n\tclient := ${name}.New(os.Getenv("${variable}"))\n\tresult, err := client.${Noun}s.${Verb}(context.Background(), "item-7", ${name}.${Verb}Options{${Field}: ${value}})\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\tfmt.Println(result.State)\n}`;
    case "rust":
      return `use ${name}::Client;\n\n#[tokio::main]\nasync fn main() -> Result<(), ${name}::Error> {\n    let client = Client::new(std::env::var("${variable}")?);\n    let result = client.${noun}s().${verb}("item-7").${field}(${value}).send().await?;\n    println!("{}", result.state);\n    Ok(())\n}`;
    case "php":
      return `<?php\nrequire 'vendor/autoload.php';\n\n$client = new ${Noun}\\Client(getenv('${variable}'));\n$result = $client->${noun}s->${verb}('item-7', ['${field}' => ${value}]);\necho $result->state;`;
    case "csharp":
      return `using ${Noun}Sdk;\n\nvar client = new Client(Environment.GetEnvironmentVariable("${variable}"));\nvar result = await client.${Noun}s.${Verb}Async("item-7", new ${Verb}Options { ${Field} = ${value} });\nConsole.WriteLine(result.State);`;
    case "ruby":
      return `require "${name}"\n\nclient = ${Noun}::Client.new(token: ENV.fetch("${variable}"))\nresult = client.${noun}s.${verb}("item-7", ${field}: ${value})\nputs result.state`;
    case "graphql":
      return `mutation {\n  ${verb}${Noun}(id: "item-7", ${field}: ${value}) {\n    state\n  }\n}`;
    case "protobuf":
      return `service ${Noun}Service {\n  rpc ${Verb}${Noun}(${Verb}${Noun}Request) returns (${Verb}${Noun}Reply);\n}\n\nmessage ${Verb}${Noun}Request {\n  string id = 1;\n  string ${field} = 2;\n}`;
    case "hcl":
      return `resource "${name}_${noun}" "main" {\n  name   = "item-7"\n  ${field} = ${value}\n}`;
    case "yaml":
      return `${noun}:\n  name: item-7\n  ${verb}:\n    ${field}: ${value}\n  replicas: 2`;
    case "cpp":
      return `#include <${Noun}.h>\n\n${Noun} device(4);\n\nvoid setup() {\n  device.begin();\n  device.${verb}("${field}", ${value});\n}\n\nvoid loop() {\n  device.update();\n}`;
    case "java":
      return `import dev.${name}.Client;\n\npublic class Main {\n    public static void main(String[] args) {\n        Client client = new Client(System.getenv("${variable}"));\n        Result result = client.${noun}s().${verb}("item-7", Map.of("${field}", ${value}));\n        System.out.println(result.state());\n    }\n}`;
    case "json":
      return JSON.stringify({ id: "item-7", [field]: call.value, state: "done" }, null, 2);
    default:
      throw new Error(`No sample in ${language}`);
  }
}

/** How to install version 2 of the product. */
export function installationOf({ package: name, kind }: Product): Code {
  const shell = (code: string): Code => ({ kind: "code", language: "bash", code });
  switch (kind) {
    case "cli":
      return shell(`brew install ${name}@2`);
    case "sdk-go":
      return shell(`go get example.com/${name}/v2`);
    case "sdk-rust":
      return shell(`cargo add ${name}@2`);
    case "sdk-php":
      return shell(`composer require ${name}/${name}:^2.0`);
    case "sdk-csharp":
      return shell(`dotnet add package ${camel(name)}Sdk --version 2.0.0`);
    case "sdk-ruby":
      return shell(`gem install ${name} -v 2.0.0`);
    case "sdk-python":
      return shell(`pip install "${name}>=2,<3"`);
    case "sdk-java":
      return {
        kind: "code",
        language: "xml",
        code: `<dependency>\n  <groupId>dev.${name}</groupId>\n  <artifactId>${name}</artifactId>\n  <version>2.0.0</version>\n</dependency>`,
      };
    case "terraform":
      return {
        kind: "code",
        language: "hcl",
        code: `terraform {\n  required_providers {\n    ${name} = {\n      source  = "example/${name}"\n      version = "~> 2.0"\n    }\n  }\n}`,
      };
    case "helm":
      return shell(`helm install ${name} oci://charts.${name}.example/${name} --version 2.0.0`);
    case "extension":
      return {
        kind: "code",
        language: "json",
        code: JSON.stringify({ manifest_version: 3, name, version: "2.0.0" }, null, 2),
      };
    case "hardware":
      return shell(`arduino-cli lib install ${name}@2.0.0`);
    default:
      return shell(`npm install ${name}@2`);
  }
}
