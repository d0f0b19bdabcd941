import { changeCode, codeOf, type Defect, pageAt } from "./site.ts";

type Change = (code: string) => string;

/** The kind of product whose samples are in a language. */
const products: Record<string, string> = {
  bash: "console",
  js: "node",
  ts: "typescript",
  python: "python",
  go: "go",
  rust: "rust",
  php: "php",
  csharp: "dotnet",
  ruby: "ruby",
  java: "jvm",
  c: "embedded",
  cpp: "native",
  graphql: "graph",
  yaml: "operator",
  toml: "daemon",
  hcl: "provider",
};

/** A bracket or a quote too few or too many. */
const brackets: Record<string, Change> = {
  bash: (code) => code.replace(" --wait", ' --note "later'),
  js: (code) => code.replace("async function run() {", "async function run( {"),
  ts: (code) => code.replace('?? "");', '?? "";'),
  python: (code) => code.replace('.id}")', '.id}"'),
  go: (code) => code.replace("; err != nil {\n\t\tlog.Fatal(err)\n\t}\n}", "; err != nil {\n\t\tlog.Fatal(err)\n}"),
  rust: (code) => code.replace("Box<dyn std::error::Error>> {", "Box<dyn std::error::Error>> {{"),
  php: (code) => code.replace("->changes() as $change) {", "->changes() as $change {"),
  csharp: (code) => code.replace(")!);", ")!;"),
  ruby: (code) => code.replace('")', '"').replace('"])', '"]'),
  java: (code) => code.replace(/ {8}\}\n {4}\}\n\}$/, "        }\n    }"),
  c: (code) => code.replace("int main(void) {", "int main(void {"),
  cpp: (code) => code.replace('")};', '")}};'),
  graphql: (code) => code.replace("changes(first: 5) {", "changes(first: 5 {"),
  yaml: (code) => code.replace("  name: k7-0031", '  name: "k7-0031'),
  toml: (code) => code.replace('"bo"]', '"bo"'),
  hcl: (code) => code.replace(".name]", ".name"),
  json: (code) => code.replace(/\}$/, ""),
};

/** Balanced brackets, but not the grammar of the language. */
const grammars: Record<string, Change> = {
  bash: (code) => code.replace("\nfi", ""),
  js: (code) => code.replace("export async function", "export async funktion"),
  ts: (code) => code.replace("(id: string): Promise", "(id: string) -> Promise"),
  python: (code) => code.replace("def main():", "def main()"),
  go: (code) => code.replace("api, err := ", "api, err := := "),
  rust: (code) => code.replace("let key = ", "let key = = "),
  php: (code) => code.replace("foreach (", "for each ("),
  csharp: (code) => code.replace("foreach (var change in ", "foreach (var change of of "),
  ruby: (code) => code.replace(/\nend$/, ""),
  java: (code) => code.replace("void run() throws Exception", "void run() throws"),
  c: (code) => code.replace("if (api == NULL)", "if api == NULL"),
  cpp: (code) => code.replace("const auto& change : ", "const auto& change in "),
  graphql: (code) => code.replace("($id: ID!)", "($id ID!)"),
  yaml: (code) => code.replace("  action: ", "\taction: "),
  toml: (code) => code.replace('id = "', 'id: "'),
  hcl: (code) => code.replace("  value = [", "  value : [").replace('output "changes" {', "output changes = {"),
  json: (code) => code.replace('"frozen": false', "frozen: no"),
};

const promisedBrackets = [
  "bash",
  "js",
  "ts",
  "python",
  "go",
  "rust",
  "php",
  "java",
  "c",
  "cpp",
  "yaml",
  "toml",
  "json",
];
const promisedGrammars = ["bash", "js", "ts", "yaml", "toml", "json"];
/** Markups that don't tell the language of a sample. */
const withoutLabels = ["doxygen", "pdoc"];

const syntaxDefect = (language: string, change: Change, promised: boolean): Defect => ({
  promised,
  except: withoutLabels,
  ...(language === "json" ? {} : { products: [products[language]!] }),
  plant(site) {
    const { code } = changeCode(site, language, change);
    const line = code.split("\n").find((each) => each.length > 8);
    return {
      path: site.answer,
      categories: ["broken_sample"],
      words: /parse|sample|bracket|syntax/i,
      line,
      sample: true,
    };
  },
});

/** Kinds of samples that don't parse, in the wordings of the second round. */
export const secondSyntaxDefects: Record<string, Defect> = {
  ...Object.fromEntries([
    ...Object.entries(brackets).map(([language, change]) => [
      `bracket_${language}`,
      syntaxDefect(language, change, promisedBrackets.includes(language)),
    ]),
    ...Object.entries(grammars).map(([language, change]) => [
      `grammar_${language}`,
      syntaxDefect(language, change, promisedGrammars.includes(language)),
    ]),
  ]),
  setup_does_not_parse: {
    promised: true,
    except: withoutLabels,
    plant(site) {
      const page = pageAt(site, "manual/keys");
      const [sample] = codeOf(page);
      sample!.code = sample!.code.replace(/'$/, "");
      return { path: page.path, categories: ["broken_sample"], words: /parse|sample|quote/i };
    },
  },
};
