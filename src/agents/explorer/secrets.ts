import { withoutFences } from "../fences.ts";
import type { CodeSample } from "../page.ts";
import { isRelated } from "./packages.ts";
import type { ReadPage } from "./session.ts";

/** A variable of the environment that a sample reads and that has no default. `isSent`: the sample sends it in a header. */
export type Secret = { name: string; isSent: boolean };

const secretName = /(?:TOKEN|KEY|SECRET|PASSWORD|CREDENTIALS?)$/;
const variable = "([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\\b";
/** `process.env.`, `os.environ[`, `System.getenv(`, `std::env::var(`, `ENV[`, `env!(`. */
const environment = "[eE][nN][vV]\\w*(?:(?:\\.|::)\\w+)*!?\\s*[([{.:]*";
/** Reads of a variable of the environment in any language, in a workflow of CI, and in shells and texts: `$NAME`. */
const environmentRead = new RegExp(
  [`(?:${environment}|\\$_SERVER\\[)\\s*["'\`]?\\b${variable}`, `\\bsecrets\\.${variable}`, `\\$\\{?${variable}`].join(
    "|",
  ),
  "g",
);
/** `getenv("NAME", "x")`. */
const defaultArgument = "[\"'`]\\s*,\\s*[^\\s)]";
/** `env.NAME ?? "x"`, `env["NAME"] || "x"`, `${NAME:-x}`. */
const defaultAfter = "[\"'`]?[\\])}]*\\s*(?:\\?\\?|\\|\\||\\bor\\b|:-|\\.unwrap_or)\\s*";
/** What follows a name that has a default; an empty text is none. */
const hasDefault = new RegExp(`^(?:${defaultArgument}|${defaultAfter})(?!["'\`]{2})`);

/** A key with the start of a text, before a variable in that text. */
const keyBefore = /["'`]?([\w-]+)["']?:\s*[f$]?["'`][^"'`\n]*$|["']([\w-]+):\s[^"'\n]*$/;
const headerName = /^(?:authorization|apikey|x-.+|.+-(?:key|token))$/i;
/** What before a key says that it names a header. */
const headersBefore = /(?:-H|--header)[ =]*$|\bheaders?\b["']?\s*[:=({,](?:\$\{[^}]*\}|[^}])*$/i;
/** How many characters before a variable its header may begin. */
const maxCharsBefore = 300;

function isSentInHeader(before: string): boolean {
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const key = keyBefore.exec(line);
  if (!key) return false;
  const textBefore = before.slice(0, before.length - line.length + key.index);
  return headerName.test(key[1] ?? key[2]!) || headersBefore.test(textBefore);
}

/** The environment variables that a sample reads without a default, and whether it sends each in a header. */
export function secretsOf({ code }: CodeSample): Secret[] {
  return [...code.matchAll(environmentRead)].flatMap((match) => {
    const name = match[1] ?? match[2] ?? match[3] ?? "";
    if (hasDefault.test(code.slice(match.index + match[0].length))) return [];
    return [{ name, isSent: isSentInHeader(code.slice(Math.max(0, match.index - maxCharsBefore), match.index)) }];
  });
}

/** Whether a page sets a secret, or names it in its text. */
export function namesSecret({ markdown, samples }: ReadPage, name: string): boolean {
  const word = RegExp.escape(name);
  // A variable that is set to itself is only passed on: `KEY="$KEY"`, `KEY: ${{ secrets.KEY }}`.
  const assignment = new RegExp(`\\b${word}["']?\\s*[=:](?!=|[^\\n;&|]*\\b${word}\\b)`);
  return (
    samples.some(({ code }) => assignment.test(code)) || new RegExp(`\\b${word}\\b`).test(withoutSamples(markdown))
  );
}

/**
 * Whether a page mentions the kind of a secret, such as a token. It may be in a heading. It may also be in the text of a page whose samples use the
 * secret. The samples of the answer's page use the secret in any case, so the text of that page doesn't count.
 */
export function speaksOfSecret(
  { markdown, samples, headings }: ReadPage,
  { name }: Secret,
  isAnswer: boolean,
): boolean {
  const noun = new RegExp(`\\b${nounOf(name)}s?\\b`, "i");
  if (headings.some(({ text }) => noun.test(text))) return true;
  return !isAnswer && noun.test(withoutSamples(markdown)) && samples.some(({ code }) => code.includes(name));
}

const nounOf = (name: string): string => name.split("_").at(-1)!.replace(/S$/, "");

/**
 * Whether a paragraph of a page has all words of a secret's name. `otherName`: a secret that the docs name. Its words may be missing, except the last
 * one.
 */
export function describesSecret({ markdown }: ReadPage, { name }: Secret, otherName: string | undefined): boolean {
  const others = otherName?.split("_").slice(0, -1) ?? [];
  const noun = name.split("_").at(-1);
  const words = name.split("_").filter((word) => word.length >= 3 && (word === noun || !others.includes(word)));
  return hasWords(paragraphsOf(markdown), words);
}

/**
 * Whether a variable is named after the product. If its name isn't the name of a secret, it must have the product's own prefix, and the docs must
 * have other variables or a package with this prefix.
 */
export function isOfProduct({ name }: Secret, productNames: string[], knownNames: string[]): boolean {
  if (secretName.test(name)) return productNames.some((product) => isRelated(name.replace(secretName, ""), product));
  const prefix = name.split("_")[0]!.toLowerCase();
  return (
    productNames.some((product) => product.toLowerCase() === prefix) &&
    knownNames.some(
      (known) =>
        known !== name &&
        known
          .toLowerCase()
          .split(/[^a-z0-9]+/)
          .includes(prefix),
    )
  );
}

/** The paragraphs and the rows of a page, in lower case. */
export const paragraphsOf = (markdown: string): string[] =>
  withoutSamples(markdown)
    .toLowerCase()
    .split(/\n(?:[ \t]*\n|(?=[|*-]))/);

/** Whether one of the texts, in lower case, has all words, in singular or plural. */
export function hasWords(texts: string[], words: string[]): boolean {
  const patterns = words.map((word) => new RegExp(`(?<![a-z])${word.toLowerCase().replace(/s$/, "")}`));
  return texts.some((text) => patterns.every((pattern) => pattern.test(text)));
}

/** The text of a page around its samples, as readers see it: Markdown made from HTML escapes underscores. */
const withoutSamples = (markdown: string): string =>
  withoutFences(markdown)
    // A sample in a table cell, or in inline code.
    .replace(/<pre>[^\n]*?<\/pre>|`[^`\n]{80,}`/g, "")
    .replace(/\\(?=[_*-])/g, "");
