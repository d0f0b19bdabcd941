import { redactSecrets } from "../schema.ts";
import type { DeclaredCheck } from "./task.ts";

/** The values of secrets by name. */
export type CheckSecrets = Readonly<Record<string, string>>;

/** Where a check refers to a secret. */
const reference = /\{\{secret\.([A-Za-z_][A-Za-z0-9_]{0,99})\}\}/g;

/** The names of the secrets in a text. */
export const secretNamesIn = (text: string): string[] =>
  [...text.matchAll(reference)].flatMap(([, name]) => name ?? []);

/** The names of the secrets that success checks refer to. */
export const secretNamesOf = (checks: readonly DeclaredCheck[]): string[] => [
  ...new Set(checks.flatMap((check) => secretNamesIn(secretTextsOf(check).join("\n")))),
];

/** The texts of a check in which secrets are filled in. */
const secretTextsOf = ({ url = "", headers = {}, body = "", env = {} }: DeclaredCheck): string[] => [
  url,
  ...Object.values(headers),
  body,
  ...Object.values(env),
];

/**
 * A check with its secrets filled in: encoded in the query of its URL, and in a body by its content type. `missing`: the secret that has no value.
 */
export function fillSecrets<Check extends DeclaredCheck>(
  check: Check,
  secrets: CheckSecrets,
): Check | { missing: string } {
  const missing = secretNamesOf([check]).find((name) => !Object.hasOwn(secrets, name));
  if (missing !== undefined) return { missing };
  const { url, headers, body, env } = check;
  const fill = (text: string, encode = (value: string) => value) =>
    text.replace(reference, (_, name: string) => encode(secrets[name] as string));
  const fillAll = (texts: Record<string, string>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]));
  return {
    ...check,
    // Never in the host, which would tell the secret to others.
    ...(url !== undefined && { url: url.replace(/\?[^#]*/, (query) => fill(query, encodeURIComponent)) }),
    ...(headers && { headers: fillAll(headers) }),
    ...(body !== undefined && { body: fill(body, encodingOfBody(headers)) }),
    ...(env && { env: fillAll(env) }),
  };
}

/** How a secret is written in a body, so that it can't end the text that it is in. */
function encodingOfBody(headers: Record<string, string> = {}): (value: string) => string {
  const [, type = ""] = Object.entries(headers).find(([name]) => name.toLowerCase() === "content-type") ?? [];
  if (/json/i.test(type)) return (value) => JSON.stringify(value).slice(1, -1);
  return /x-www-form-urlencoded/i.test(type) ? encodeURIComponent : (value) => value;
}

/** All spellings of secrets in what is sent, for redaction. */
export const spellingsOf = (secrets: CheckSecrets): string[] => [
  ...new Set(
    Object.values(secrets).flatMap((value) => [
      value,
      encodeURIComponent(value),
      // A parsed URL encodes a few characters more.
      new URL(`http://localhost/?${encodeURIComponent(value)}`).search.slice(1),
      JSON.stringify(value).slice(1, -1),
    ]),
  ),
];

/** A text without secrets. */
export const withoutCheckSecrets = (text: string, secrets: CheckSecrets): string =>
  redactSecrets(text, spellingsOf(secrets));
