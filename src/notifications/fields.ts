import type { Config } from "../config/config.ts";
import type { destinationKinds } from "../db/tables/notifications.ts";
import { invalidField } from "../errors.ts";
import { allowRemedy, isListed } from "../net/addresses.ts";
import { objectionToUrl } from "../net/upstream.ts";
import { checkHttpUrl } from "../schema.ts";
import type { DestinationPatch } from "./schema.ts";

const maxHeaders = 20;

/** Names and prefixes of headers that only this service or HTTP itself may set. */
const reservedHeaders = "host connection transfer-encoding te upgrade expect accept-encoding user-agent".split(" ");
const reservedPrefixes = ["webhook-", "content-", "proxy-"];

const isReserved = (name: string) =>
  reservedHeaders.includes(name) || reservedPrefixes.some((prefix) => name.startsWith(prefix));

/** Parses the URL of a destination. Throws bad_request if deliveries could never reach it. */
export function checkUrl(config: Config, url: string): URL {
  checkHttpUrl("url", url);
  const parsed = new URL(url);
  if (parsed.username || parsed.password)
    throw invalidField("url", "must not contain a user name or password; send an Authorization header instead");
  const objection = objectionTo(config, parsed);
  if (objection) throw invalidField("url", objection);
  return parsed;
}

/** Why a URL can't be a destination, and the setting that would allow it; null if it can. */
function objectionTo({ allowPrivate }: Config, url: URL): string | null {
  const { protocol, hostname, port, href } = url;
  const objection = objectionToUrl(href, allowPrivate);
  if (objection !== null) return objection;
  const host = hostname.replace(/^\[|\]$/g, "");
  if (protocol === "https:" || isListed(allowPrivate, host)) return null;
  return `must be an https URL; ${allowRemedy(allowPrivate, host, Number(port) || 80)}`;
}

/** Throws bad_request for a field that belongs to another kind of destination. */
export function checkFields(
  kind: (typeof destinationKinds)[number],
  { url, headers, recipients }: DestinationPatch,
): void {
  if (url !== undefined && kind === "email") throw invalidField("url", "is not for email");
  if (headers !== undefined && kind !== "webhook") throw invalidField("headers", "is only for webhook");
  if (recipients !== undefined && kind !== "email") throw invalidField("recipients", "is only for email");
}

/** Throws bad_request for a header that can't be sent. */
export function checkHeaders(headers: Record<string, string>): Record<string, string> {
  const entries = Object.entries(headers);
  if (entries.length > maxHeaders) throw invalidField("headers", `must be at most ${maxHeaders}`);
  for (const [name, value] of entries) {
    const problem = objectionToHeader(name, value);
    if (problem !== null) throw invalidField("headers", `${JSON.stringify(name)} ${problem}`);
  }
  return headers;
}

function objectionToHeader(name: string, value: string): string | null {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(name)) return "is not a valid header name";
  if (isReserved(name.toLowerCase())) return "is set by evald and can't be changed";
  return /^[\x20-\x7e\t]*$/.test(value) ? null : "must have a value of printable ASCII characters";
}

/** The addresses in lowercase; null: all owners. Throws bad_request for an address that belongs to no member. */
export function checkRecipients(members: string[], recipients: string[] | null): string[] | null {
  const addresses = recipients?.map((address) => address.trim().toLowerCase()) ?? null;
  const unknownAddress = addresses?.find((address) => !members.includes(address));
  if (unknownAddress !== undefined)
    throw invalidField("recipients", `${unknownAddress} is not a member of the organization; invite them first`);
  return addresses;
}
