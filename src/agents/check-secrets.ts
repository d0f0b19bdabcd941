import { ownMember, redactSecrets } from "../schema.ts";
import type { DeclaredCheck } from "./task.ts";

/**
 * `hosts`: the only hosts that may get the secret, each as in a URL, such as `api.acme.example` or `localhost:8080`; null: the host of each check
 * may.
 */
type CheckSecret = { value: string; hosts: readonly string[] | null };

/** Secrets by name. */
export type CheckSecrets = Readonly<Record<string, CheckSecret>>;

/** Why a secret is not filled in: it has no value, or the host of the check may not get it. */
export type SecretProblem = { name: string; host: string | null; hosts: readonly string[] };

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

/** Whether a host, as in a URL, may get a secret. */
export const permitsHost = (hosts: readonly string[] | null, host: string): boolean =>
  hosts === null || hosts.includes(host);

/**
 * A check with its secrets filled in. In the query of its URL they are percent-encoded, and in a body they are encoded by its content type. In a
 * command, a secret with hosts stays a reference. `fillHeaders` fills it in on the way to one of these hosts.
 */
export function fillSecrets<Check extends DeclaredCheck>(
  check: Check,
  secrets: CheckSecrets,
): Check | { problem: SecretProblem } {
  const { url, headers, body, env } = check;
  const problem = findProblem(secretNamesOf([check]), secrets, url === undefined ? null : new URL(url).host);
  if (problem) return { problem };
  const fill = (text: string, encode = (value: string) => value) =>
    text.replace(reference, (whole, name: string) => {
      const { value, hosts } = secrets[name]!;
      return url === undefined && hosts !== null ? whole : encode(value);
    });
  const fillAll = (texts: Record<string, string>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]));
  return {
    ...check,
    // A secret is never filled into the host, because resolving the host would tell it to others.
    ...(url !== undefined && { url: url.replace(/\?[^#]*/, (query) => fill(query, encodeURIComponent)) }),
    ...(headers && { headers: fillAll(headers) }),
    ...(body !== undefined && { body: fill(body, encodingOfBody(headers)) }),
    ...(env && { env: fillAll(env) }),
  };
}

/** `host`: the host of the check; null: the check is a command. */
function findProblem(names: string[], secrets: CheckSecrets, host: string | null): SecretProblem | null {
  for (const name of names) {
    const secret = ownMember(secrets, name);
    if (secret === undefined) return { name, host: null, hosts: [] };
    if (host !== null && !permitsHost(secret.hosts, host)) return { name, host, hosts: secret.hosts ?? [] };
  }
  return null;
}

/** A value of an Authorization header that is encoded. */
const basicCredentials = /^(basic\s+)([A-Za-z0-9+/]+=*)$/i;

/** The headers of a request with the secrets that are bound to its host. `fillSecrets` has already filled in the secrets that any host may get. */
export function fillHeaders<Headers extends Record<string, unknown>>(
  headers: Headers,
  host: string,
  secrets: CheckSecrets,
): Headers {
  const fill = (text: string) =>
    text.replace(reference, (whole, name: string) => {
      const secret = ownMember(secrets, name);
      return secret?.hosts?.includes(host) ? secret.value : whole;
    });
  const fillValue = (text: string) => {
    const [, scheme, encoded] = basicCredentials.exec(text) ?? [];
    if (scheme === undefined || encoded === undefined) return fill(text);
    return scheme + Buffer.from(fill(Buffer.from(encoded, "base64").toString())).toString("base64");
  };
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    typeof value === "string" ? fillValue(value) : value,
  ]);
  return Object.fromEntries(entries);
}

/** URLs of the hosts that secrets are bound to. */
export const hostUrlsOfSecrets = (secrets: CheckSecrets): string[] => [
  ...new Set(Object.values(secrets).flatMap(({ hosts }) => (hosts ?? []).map((host) => `https://${host}/`))),
];

/** How a secret is written in a body, so that it can't end the text that it is in. */
function encodingOfBody(headers: Record<string, string> = {}): (value: string) => string {
  const [, type = ""] = Object.entries(headers).find(([name]) => name.toLowerCase() === "content-type") ?? [];
  if (/json/i.test(type)) return (value) => JSON.stringify(value).slice(1, -1);
  return /x-www-form-urlencoded/i.test(type) ? encodeURIComponent : (value) => value;
}

/** All spellings of secrets in what is sent, for redaction. */
export const spellingsOf = (secrets: CheckSecrets): string[] => [
  ...new Set(
    Object.values(secrets).flatMap(({ value }) => [
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
