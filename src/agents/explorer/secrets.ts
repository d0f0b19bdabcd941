import type { CodeSample } from "../page.ts";
import { isRelated } from "./packages.ts";
import type { ReadPage } from "./session.ts";

/** A variable of the environment that a sample reads and that has no default. `isSent`: the sample sends it in a header. */
export type Secret = { name: string; isSent: boolean };

const secretName = /(?:TOKEN|KEY|SECRET|PASSWORD|CREDENTIALS?)$/;
const variable = "([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\\b";
/**
 * Reads of the environment in any language: something named like it, then the name of a variable as an argument, an
 * index or a member; `$NAME` in shells and in texts.
 */
const environmentRead = new RegExp(
  `(?:[eE][nN][vV]\\w*(?:(?:\\.|::)\\w+)*!?\\s*[([{.:]*|\\$_SERVER\\[)\\s*["'\`]?\\b${variable}|\\bsecrets\\.${variable}|\\$\\{?${variable}`,
  "g",
);
/** What follows a name that has a default; an empty text is none. */
const hasDefault = /^(?:["'`]\s*,\s*[^\s)]|["'`]?[\])}]*\s*(?:\?\?|\|\||\bor\b|:-|\.unwrap_or)\s*)(?!["'`]{2})/;

/** A key with the start of a text, before a variable in that text. */
const keyBefore = /["'`]?([\w-]+)["']?:\s*[f$]?["'`][^"'`\n]*$|["']([\w-]+):\s[^"'\n]*$/;
const headerName = /^(?:authorization|apikey|x-.+|.+-(?:key|token))$/i;
/** What before a key says that it names a header. */
const headersBefore = /(?:-H|--header)[ =]*$|\bheaders?\b["']?\s*[:=({,](?:\$\{[^}]*\}|[^}])*$/i;
/** How far before a variable that may be. */
const maxCharsBefore = 300;

function isSentInHeader(before: string): boolean {
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const key = keyBefore.exec(line);
  if (!key) return false;
  const textBefore = before.slice(0, before.length - line.length + key.index);
  return headerName.test(key[1] ?? key[2]!) || headersBefore.test(textBefore);
}

export function secretsOf({ code }: CodeSample): Secret[] {
  return [...code.matchAll(environmentRead)].flatMap((match) => {
    const name = match[1] ?? match[2] ?? match[3] ?? "";
    if (hasDefault.test(code.slice(match.index + match[0].length))) return [];
    return [{ name, isSent: isSentInHeader(code.slice(Math.max(0, match.index - maxCharsBefore), match.index)) }];
  });
}

/**
 * Whether the docs explain a secret: they set it, name it in their text, or show its use on a page that speaks of such
 * a thing.
 */
export function explainsSecret(
  { markdown, samples, headings }: ReadPage,
  { name }: Secret,
  isAnswer: boolean,
): boolean {
  const word = RegExp.escape(name);
  const assignment = new RegExp(`\\b${word}["']?\\s*[=:](?!=)`);
  const prose = withoutSamples(markdown);
  if (samples.some(({ code }) => assignment.test(code)) || new RegExp(`\\b${word}\\b`).test(prose)) return true;
  const noun = new RegExp(`\\b${name.split("_").at(-1)!.replace(/S$/, "")}s?\\b`, "i");
  if (headings.some(({ text }) => noun.test(text))) return true;
  return !isAnswer && noun.test(prose) && samples.some(({ code }) => code.includes(name));
}

/**
 * Whether a variable is named after the product. One that isn't named as a secret must have the product's own prefix, under
 * which the docs know other variables or a package.
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

/** The text of a page around its samples, as readers see it: Markdown made from HTML escapes underscores. */
export const withoutSamples = (markdown: string): string =>
  markdown.replace(/^\s*(`{3,}|~{3,})[\s\S]*?^\s*\1/gm, "").replace(/\\(?=[_*-])/g, "");
