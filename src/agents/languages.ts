/** Languages of samples that can be parsed, with their names in labels. */
const families = {
  script: ["js", "javascript", "mjs", "cjs", "node", "jsx", "ts", "typescript", "mts", "cts", "tsx"],
  json: ["json"],
  yaml: ["yaml", "yml"],
  shell: ["sh", "bash", "shell", "zsh"],
  toml: ["toml"],
  python: ["python", "py", "python3", "py3", "pycon"],
  go: ["go", "golang"],
  java: ["java"],
  rust: ["rust", "rs"],
  cpp: ["c", "cpp", "c++", "cc", "h", "hpp"],
  php: ["php"],
  ruby: ["ruby", "rb"],
  csharp: ["csharp", "cs", "c#"],
  kotlin: ["kotlin", "kt"],
  scala: ["scala"],
  dart: ["dart"],
  swift: ["swift"],
  lua: ["lua"],
  protobuf: ["protobuf", "proto"],
  graphql: ["graphql", "gql"],
  hcl: ["hcl", "terraform", "tf"],
  session: ["console", "terminal", "shell-session", "shellsession", "sh-session", "bash-session"],
};
export type LanguageFamily = keyof typeof families;

const familyByName = new Map(
  Object.entries(families).flatMap(([family, names]) => names.map((name) => [name, family as LanguageFamily] as const)),
);

/** The language that a label names; undefined if it can't be parsed. */
export const familyOf = (label: string): LanguageFamily | undefined => familyByName.get(label);

/** Families of data, which isn't code that runs, and of commands. */
const dataFamilies: LanguageFamily[] = ["json", "yaml", "toml"];
const commandFamilies: LanguageFamily[] = ["shell", "session"];
const isTypeScript = (name: string): boolean => /^(?:typescript|m?ts|cts|tsx)$/.test(name);

/** What a sample with this label is called in prose: by its language, and as code, a command or a query. */
export function namesOfSample(label: string): string[] {
  const family = familyByName.get(label);
  if (isTextLabel(label)) return [];
  if (family === undefined) return label === "sql" ? [label, "query"] : [label];
  if (commandFamilies.includes(family)) return ["command", "shell", "code"];
  const names = families[family].filter((name) => family !== "script" || isTypeScript(name) === isTypeScript(label));
  return dataFamilies.includes(family) ? names : [...names, "code"];
}

/** Labels that say that a block isn't code. */
const textLabels = ["text", "txt", "plain", "plaintext", "output", "none", "nohighlight"];
/** Whether the label of a block says that it isn't code. */
export const isTextLabel = (label: string): boolean => textLabels.includes(label);

/** Languages that can't be parsed, but that documentation often shows. */
const otherNames =
  "irb fsharp vb groovy elixir erlang haskell perl r julia clojure ocaml elm zig nim objc objective-c sql xml html css scss less vue svelte ini properties conf env dotenv diff http nginx dockerfile docker makefile cmake powershell ps1 fish batch bat json5 jsonc solidity jinja markdown md mdx".split(
    " ",
  );
const knownNames = new Set([...familyByName.keys(), ...textLabels, ...otherNames]);

/** Whether a word is the name of a language. */
export const isLanguageName = (word: string): boolean => knownNames.has(word);
