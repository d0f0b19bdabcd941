import type { Defect } from "./site.ts";
import { changePart, lineOf, withoutLabels } from "./third-plant.ts";
import { partsOf } from "./third-sites.ts";

type Change = (code: string) => string;
type Part = "sample" | "request" | "json";

/** The kind of product whose samples are in a language. */
const products: Record<string, string> = {
  bash: "deploy",
  js: "payments",
  ts: "auth",
  python: "flags",
  go: "queue",
  rust: "vectors",
  php: "sms",
  csharp: "ledger",
  ruby: "hooks",
  java: "warehouse",
  kotlin: "chat",
  swift: "keyboard",
  c: "sensors",
  cpp: "engine",
  graphql: "catalog",
  yaml: "operator",
  toml: "gateway",
  hcl: "dns",
  json: "mcp",
};
const swap =
  (before: string | RegExp, after: string): Change =>
  (code) =>
    code.replace(before, after);
/** Drops what the last line closes. */
const unfinished = swap(/[)}\]]+;?\s*$/, "");

/** A bracket or a quote too few or too many: in the middle, in the last line, in a nested call. */
const brackets: Record<string, Change[]> = {
  bash: [swap(' --seconds) seconds"', ' --seconds seconds"'), swap(/"$/, ""), swap(/"( \\\n)/, "$1")],
  js: [swap('"Status:", done.status))', '"Status:", done.status)'), swap(/\}\);$/, "};"), swap('/node");', '/node";')],
  ts: [swap("retries = 3 }:", "retries = 3 :"), swap(/\}\);$/, "};"), swap("\n}\n\nconst", "\n\nconst")],
  python: [swap(/(os\.environ\["\w+")\]/, "$1)"), swap(/\(\)\)$/, "()"), swap("steps])", "steps)")],
  go: [swap("defer cancel()", "defer cancel("), unfinished, swap(/(os\.Getenv\("\w+"\)\))\)/, "$1")],
  rust: [swap("|step| !step.done)", "|step| !step.done"), unfinished, swap(" }))\n", " ))\n")],
  php: [swap("->tags()));", "->tags());"), unfinished, swap("autoload.php'", "autoload.php")],
  csharp: [swap("line.Text)", "line.Text"), swap(/\);$/, ";"), swap("{ ApiKey = key });", "{ ApiKey = key );")],
  ruby: [swap("(&:name)", "(&:name"), swap(/\nend$/, "\n}"), swap('.find("', '.find(("')],
  java: [swap("event.level() > 1)", "event.level() > 1"), unfinished, swap("String[] args", "String[ args")],
  kotlin: [swap("BuildConfig.", "(BuildConfig."), unfinished, swap("by lazy {", "by lazy {{")],
  swift: [swap("NotesView: View {", "NotesView: View {{"), unfinished, swap(".id)", ".id")],
  c: [swap("sizeof(buffer)", "sizeof(buffer"), unfinished, swap("{0};", "{0;")],
  cpp: [swap("assets().load(", "assets(.load("), unfinished, swap("720});", "720);")],
  graphql: [
    swap("(first: 3)", "(first: 3"),
    swap(/ \} \} \}/, " } }"),
    swap("      message\n    }\n", "      message\n"),
  ],
  yaml: [swap("[data, logs]", "[data, logs"), swap('tier: "1"}', 'tier: "1"'), swap('"1"}', '"1}')],
  toml: [swap("8443]", "8443"), swap(/\n"""$/, ""), swap(/\]\]/, "]")],
  hcl: [swap('"web" })', '"web" )'), unfinished, swap('resource "', "resource ")],
};
const jsonBrackets: Change[] = [swap(/\}$/, ""), swap("]", ""), swap(/": "([^"]*)"/, '": "$1')];

/** Balanced brackets, but not the grammar of the language. */
const grammars: Record<string, Change[]> = {
  bash: [swap("\ndone\n", "\n"), swap("; do\n", "; then\n"), swap("until ", "if ")],
  js: [swap("(error) =>", "(error) = >"), swap("= new ", "= = new "), swap("exitCode = 1", "exitCode = ")],
  ts: [swap("retries?: number", "retries?: = number"), swap("> =>\n", "> ->\n"), swap(" as string }", " as }")],
  python: [swap("-> None:", "-> None"), swap(" as error:", " as error"), swap("= await ", "= wait for ")],
  go: [
    swap("result, err :=", "result, err :"),
    swap("if err != nil {", "if err != nil then {"),
    swap("defer cancel", "defer defer cancel"),
  ],
  rust: [swap("let client = ", "let client := "), swap(" in ", " of "), swap("async fn main", "async main")],
  php: [swap("try {", "try do {"), swap("$client = ", "$client := "), swap("catch (", "catch case (")],
  csharp: [
    swap("= await ", "= await = "),
    swap("using var client", "using client"),
    swap("=> line.Text", "-> line.Text"),
  ],
  ruby: [swap("do |config|", "|config|"), swap("\nelse\n", "\nelse if\n"), swap(/\nend$/, "")],
  java: [
    swap("public final class", "public final"),
    swap("event -> event.level()", "event => event.level()"),
    swap("var client =", "var client"),
  ],
  kotlin: [swap("by lazy {", "by = lazy {"), swap("override fun", "override void fun"), swap("val ", "val = ")],
  swift: [swap("guard let", "guard guard let"), swap("some View {", "some {"), swap("else {", "then {")],
  c: [swap("(void)user;", "(void)user"), swap("return 1;", "return 1"), swap("!= 0)", "!== 0)")],
  cpp: [swap(" public:", " public"), swap("void setup()", "setup void()"), swap("auto ", "auto auto ")],
  graphql: [swap("($id: ID", "($id ID"), swap("edges {", "edges: {"), swap("mutation ", "mutate ")],
  yaml: [
    swap("kind: ", "\tkind: "),
    swap("  name: ", "  name: is: "),
    swap("    - namespace: billing", "   - namespace: billing"),
  ],
  toml: [
    swap("workers = 4", "workers: 4"),
    swap(/name = "([^"]*)"/, "name = $1 $1"),
    swap("workers = 4", "workers = 4\nworkers = 5"),
  ],
  hcl: [swap(/ \{\n {2}name =/, " = {{\n  name :"), swap("output ", "output = "), swap("value = ", "value == ")],
};
const jsonGrammars: Change[] = [swap(",\n", "\n"), swap(/"(\w+)":/, "'$1':"), swap(/\{\n/, "{\n  ...\n")];

const promisedBrackets = ["bash", "js", "ts", "python", "go", "rust", "php", "java", "c", "cpp", "yaml", "toml"];
const promisedGrammars = ["bash", "js", "ts", "yaml", "toml"];

const broken = (kinds: string[] | undefined, part: Part, changes: Change[], promised: boolean): Defect => ({
  promised,
  except: withoutLabels,
  ...(kinds && { products: kinds }),
  plant(site, nth) {
    const sample = changePart(site, part, changes[nth % changes.length]!);
    return {
      path: site.answer,
      categories: ["broken_sample"],
      words: /parse|sample|bracket|quote|syntax/i,
      line: lineOf(site, sample),
      sample: true,
    };
  },
});

/** Samples under a label that isn't theirs. */
const otherLabel = (part: Part, labels: string[]): Defect => ({
  promised: true,
  except: withoutLabels,
  products: ["sms", "mail", "warehouse"],
  plant(site, nth) {
    const sample = changePart(site, part, (code) => `${code}\n`);
    sample.code = sample.code.trimEnd();
    sample.language = labels[nth % labels.length]!;
    return {
      path: site.answer,
      categories: ["broken_sample", "misleading_docs"],
      words: /parse|label|language|sample/i,
      line: lineOf(site, sample),
      sample: true,
    };
  },
});

/** Kinds of samples that don't parse, in the wordings of the third round. */
export const thirdSyntaxDefects: Record<string, Defect> = {
  ...Object.fromEntries(
    Object.entries(brackets).map(([language, changes]) => [
      `bracket_${language}`,
      broken([products[language]!], "sample", changes, promisedBrackets.includes(language)),
    ]),
  ),
  bracket_json: broken(["mcp", "mail", "payments", "hooks"], "json", jsonBrackets, true),
  bracket_curl: broken(
    ["mail", "ledger", "hooks"],
    "request",
    [swap(/'$/, ""), swap(/"( \\\n)/, "$1"), swap("-d '", "-d ")],
    true,
  ),
  ...Object.fromEntries(
    Object.entries(grammars).map(([language, changes]) => [
      `grammar_${language}`,
      broken([products[language]!], "sample", changes, promisedGrammars.includes(language)),
    ]),
  ),
  grammar_json: broken(["mail", "mcp", "warehouse"], "json", jsonGrammars, true),
  wrong_label: otherLabel("request", ["json", "js", "toml"]),
  setup_does_not_parse: {
    promised: true,
    except: withoutLabels,
    plant(site, nth) {
      const { auth } = partsOf(site);
      for (const block of auth.blocks)
        if (block.kind === "code")
          block.code = nth % 2 ? block.code.replace(/"$/, "") : `if [ -z "$HOME" ]; then\n  ${block.code}`;
      return { path: auth.path, categories: ["broken_sample"], words: /parse|sample|quote|syntax/i };
    },
  },
};
