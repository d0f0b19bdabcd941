import { changeCode, type Defect } from "./site.ts";

type Change = (code: string) => string;

/** A bracket or a quote too few. */
const brackets: Record<string, Change> = {
  bash: (code) => (code.includes("'") ? code.replace(/'$/, "") : `${code} 'x`),
  go: (code) => code.replace(/\}$/, ""),
  rust: (code) => code.replace(/\}$/, ""),
  php: (code) => code.replace("]);", ");"),
  csharp: (code) => code.replace(" });", ");"),
  ruby: (code) => code.replace('ENV.fetch("', "ENV.fetch("),
  graphql: (code) => code.replace(/\}$/, ""),
  protobuf: (code) => code.replace(/\}$/, ""),
  hcl: (code) => code.replace(/\}$/, ""),
  yaml: (code) => code.replace("name: item-7", "name: [item-7"),
  js: (code) => code.replace("\n});", "\n};"),
  cpp: (code) => code.replace("\n}\n\nvoid loop", "\n\nvoid loop"),
  python: (code) => code.replace(/\)\nprint/, "\nprint"),
  java: (code) => code.replace(/\}$/, ""),
  json: (code) => code.replace(",\n", "\n"),
};

/** Balanced brackets, but not the grammar of the language. */
const grammars: Record<string, Change> = {
  bash: (code) => `if [ -n "$X" ]; then\n  ${code.replaceAll("\n", "\n  ")}`,
  go: (code) => code.replace("func main()", "fun main()"),
  rust: (code) => code.replace("let client =", "let client"),
  php: (code) => code.replace("$result =", "$result = = "),
  csharp: (code) => code.replace("var result = await", "var = await"),
  ruby: (code) => `${code}\n\ndef again(client)\n  client.retry if\n`,
  graphql: (code) => code.replace("mutation {", "mutation ("),
  protobuf: (code) => code.replace("string id = 1;", "string id : 1"),
  hcl: (code) => code.replace('" {', '" = {{'),
  yaml: (code) => code.replace("\n  name:", "\n   name:"),
  js: (code) => code.replace("const result = await", "const result await"),
  cpp: (code) => code.replace("void loop()", "void loop("),
  python: (code) => code.replace("print(result.state)", "if result.state\n    print(result.state)"),
  java: (code) => code.replace("public static void main(String[] args) {", "public static void main(String[] args {"),
};

/** The kind of product whose samples are in a language. */
const products: Record<string, string> = {
  bash: "cli",
  go: "sdk-go",
  rust: "sdk-rust",
  php: "sdk-php",
  csharp: "sdk-csharp",
  ruby: "sdk-ruby",
  graphql: "graphql",
  protobuf: "grpc",
  hcl: "terraform",
  yaml: "helm",
  js: "sdk-js",
  cpp: "hardware",
  python: "sdk-python",
  java: "sdk-java",
};

const promisedBrackets = ["bash", "go", "rust", "php", "yaml", "js", "cpp", "python", "java", "json"];
const promisedGrammars = ["bash", "yaml", "js"];

const syntaxDefect = (language: string, change: Change, promised: boolean): Defect => ({
  promised,
  // Every site has a sample in JSON.
  ...(language === "json" ? {} : { products: [products[language]!] }),
  plant(site) {
    const { code } = changeCode(site, language, change);
    const [line] = code.split("\n");
    return { path: site.answer, categories: ["broken_sample"], words: /parse|sample/i, line, sample: true };
  },
});

/** Kinds of samples that don't parse, by language. */
export const firstSyntaxDefects: Record<string, Defect> = Object.fromEntries([
  ...Object.entries(brackets).map(([language, change]) => [
    `bracket_${language}`,
    syntaxDefect(language, change, promisedBrackets.includes(language)),
  ]),
  ...Object.entries(grammars).map(([language, change]) => [
    `grammar_${language}`,
    syntaxDefect(language, change, promisedGrammars.includes(language)),
  ]),
]);
